// core/kernel/render/: source text of kernels in C-like languages.
//
// Source text of kernels for compilers of C-like languages, for chips without an LLVM backend.
//
// One function a kernel, with the statements of the kernel as loops. In C a call runs the whole
// grid, one iteration after the other. In OpenCL C and CUDA C++ a workgroup is a work-group or
// thread block: every lane runs what stands outside lanes loops, lane 0 alone stores there, and
// barriers stand where rule K2 makes stores visible. Lanes share reductions over lanes in runs of
// neighbours, combined in order.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/kernel/legalize/legalize.h"

namespace tenon::kernel {

enum class Language : uint8_t { kC, kOpenCl, kCuda };

struct RenderOptions {
  Language language = Language::kC;
  /// Lanes of a workgroup, in languages that have them.
  int64_t lanes = 128;
  /// In C, the name of a table of all kernels in their order behind one signature:
  /// void (*const TABLE[])(void *const *buffers, const uint64_t *scalars). Empty: none.
  std::string table;
};

/// The features of a language: integers of 8 bits and more, f32, f64, fma; atomics on some of the
/// integers; memory of one dimension.
TargetFeatures source_form(Language language);

/// The function of a kernel of this name in the source of any language: the name itself, or, where
/// that is no identifier or one of the languages means something by it, another that no other
/// kernel's name leads to.
std::string source_name(std::string_view kernel);

/// Source of `kernels`, with the helper functions that they use. Each is verified, and is legalised
/// for source_form(language) on the way. The function of kernel @k is
/// source_name("k")(buffers …, scalars …), preceded by the qualifiers of kernels in the language.
/// It is launched with the grid of `kernels`, also where its legal form takes fewer workgroups
/// (one, where the language lacks an atomic): the others do nothing. Errors: those of legalize();
/// two kernels of one name without a table; in languages with lanes a grid of 2^31 - 1 workgroups
/// or more.
Result<std::string> render(std::span<const Kernel> kernels, const RenderOptions& options = {});

}  // namespace tenon::kernel
