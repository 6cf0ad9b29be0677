// For backends that compile rendered source: kernels that cannot be expressed, messages of the
// compiler.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <functional>
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

/// Completes what a target states if render_kernels() writes its kernels: tiles, private arrays and
/// memory of several dimensions, which the source has, and scratch memory without the two values of
/// eight bytes a lane that reductions take beyond what kernels declare. Where those do not fit,
/// kernels have no scratch memory at all. To be called last.
void declare_rendering(TargetInfo& target);

/// The options that follow from what a target states: lanes, as many as a kernel can use, and
/// vectors.
kernel::RenderOptions render_options(const TargetInfo& target, kernel::Language language);

/// The device's compiler: makes the bytes of a program, which are all that `load` will get, of
/// source.
using SourceCompiler = std::function<Result<std::string>(const std::string& source)>;

/// Renders and compiles kernels: the binary is a kernel::RenderedBinary with the bytes of `build`.
Result<Compiled> compile_rendered(const TargetInfo& target, Kernels kernels,
                                  const kernel::RenderOptions& options,
                                  const SourceCompiler& build);

/// The bytes of each scalar parameter of the kernel's function, for interfaces that want to know
/// them; a launch's values have them first.
std::vector<size_t> scalar_bytes(const kernel::Kernel& kernel);

/// The messages of a compiler about rendered source, "FILE:LINE:COLUMN: error: TEXT" or
/// "FILE(LINE): error: TEXT" on a line. Before them stand the text of the first error, the line of
/// the source that it names, and the op that the kernel around it is from. Messages of another form
/// are returned as they are.
std::string explain_messages(const std::string& messages, const std::string& source);

}  // namespace tenon::backend
