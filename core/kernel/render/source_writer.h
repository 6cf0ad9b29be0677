// Writes the source of one kernel. Private to core/kernel/render.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/kernel/render/listing.h"
#include "core/kernel/render/render.h"

namespace tenon::kernel {

/// A function's source, and the values that its lines compute.
struct WrittenSource {
  std::string text;
  std::vector<LineValue> values;
  int64_t lanes = 1;  // of a workgroup
};

/// A product of f32 or f64 into scratch, or into all of a private tile, of factors by rows: the
/// writer has a form for it. Others are expanded.
bool is_register_product(const Kernel& kernel, const Node& node);

/// The kernel as write_source() takes it: legal for source_form(), but for register products, whose
/// memories keep their dimensions.
Result<Kernel> legal_for_source(const Kernel& kernel, Language language);

/// The function of a kernel from legal_for_source(), of which the host launches `launched`
/// workgroups: the number of the kernel before it was legalised. Adds the helper functions that it
/// uses.
WrittenSource write_source(const Kernel& legal, int64_t launched, const RenderOptions& options,
                           std::string function, std::set<std::string>& helpers);

}  // namespace tenon::kernel
