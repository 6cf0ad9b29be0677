// For backends that compile rendered source: kernels that cannot be expressed, messages of the
// compiler.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"
#include "core/kernel/render/render.h"

namespace tenon::backend {

struct RenderedKernels {
  kernel::RenderedSource source;  ///< Meaningless if kernels are declined.
  std::vector<Declined> declined;
};

/// The source of `kernels`; or those that have more parameters than the target allows, or that the
/// language cannot express, each with the reason (B13). Kernels of one name get names of their own.
RenderedKernels render_kernels(const TargetInfo& target, Kernels kernels,
                               kernel::RenderOptions options);

/// The messages of a compiler about rendered source, "FILE:LINE:COLUMN: error: TEXT" or
/// "FILE(LINE): error: TEXT" on a line. Before them stand the text of the first error, the line of
/// the source that it names, and the op that the kernel around it is from. Messages of another form
/// are returned as they are.
std::string explain_messages(const std::string& messages, const std::string& source);

}  // namespace tenon::backend
