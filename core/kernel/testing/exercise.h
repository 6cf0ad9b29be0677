// core/kernel/testing/: what tests of kernels share.
//
// Passes a verified kernel to all code that takes a kernel, for tests and fuzzers.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/legalize/legalize.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/render/render.h"
#include "core/kernel/text/text.h"
#include "core/kernel/transform/simplify.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {

/// Whether `status` is allowed: a store twice to one element (K3) or out of range (K7) may become
/// visible only after folding, and some kernels cannot be legalised.
inline bool may_be(const Status& status) {
  return status.ok() || status.code() == ErrorCode::kUnimplemented ||
         status.code() == ErrorCode::kResourceExhausted || status.message().starts_with("K3:") ||
         status.message().starts_with("K7:");
}

/// The first error, or an empty text. Large kernels are not legalised or run: that takes long, and
/// covers nothing that small ones do not.
inline std::string exercise(const Kernel& kernel, size_t most_nodes = 40) {
  const std::string text = print(kernel);
  const auto again = parse(text, "printed");
  if (!again)
    return fmt::format("the printed kernel does not parse: {}", again.error().to_string());
  if (!equal(kernel, *again)) return "the printed kernel parses as a different kernel";
  const auto sound = [](const Kernel& made, const char* how) {
    const Status status = verify(made);
    return may_be(status) ? "" : fmt::format("{}: {}\n{}", how, status.to_string(), print(made));
  };
  std::string wrong =
      sound(simplify(kernel), "simplified") + sound(expand_tiles(kernel), "expanded");
  if (!wrong.empty() || kernel.nodes.size() > most_nodes) return wrong;
  for (const std::string_view form : {"least", "fma,s64,u64,f64,private_memory,scans,dimensions"}) {
    const auto legal = legalize(kernel, TargetFeatures::parse(form).value());
    if (!legal && !may_be(legal.error())) wrong += "legalised: " + legal.error().to_string();
  }
  for (const Language language : {Language::kC, Language::kOpenCl, Language::kCuda}) {
    const auto source = render(std::span(&kernel, 1), {language, 32});
    if (!source && !may_be(source.error())) wrong += "rendered: " + source.error().to_string();
  }
  return wrong;
}

/// Runs a small kernel on zeros; an error is accepted. False if the kernel was too large to run.
inline bool run_on_zeros(const Kernel& kernel) {
  constexpr int64_t kMostBytes = 1 << 16;
  int64_t work = element_count(kernel.grid);
  for (const Node& n : kernel.nodes) {
    if (n.op == OpCode::kWhile || n.op == OpCode::kFor) return false;
    for (const int64_t extent : n.extents)
      work = std::min(work, kMostBytes) * std::max<int64_t>(extent, 1);
    if (work > kMostBytes) return false;
  }
  std::vector<std::vector<std::byte>> memories;
  for (const Memory& m : kernel.memories) {
    const int64_t bytes = m.span() * static_cast<int64_t>(storage_bytes(m.type));
    if (bytes > kMostBytes) return false;
    memories.emplace_back(static_cast<size_t>(bytes));
  }
  std::vector<BufferArgument> buffers;
  for (size_t b = 0; b < kernel.buffer_count; ++b) {
    buffers.push_back({memories[b].data(), memories[b].size()});
  }
  const std::vector<uint64_t> scalars(kernel.scalars.size());
  static_cast<void>(Interpreter(kernel).run(buffers, scalars, {}));
  return true;
}

}  // namespace tenon::kernel
