// core/kernel/render/: source text of kernels in C-like languages.
//
// For chips without an LLVM backend, whose compilers take C-like source.
//
// Each kernel becomes one function, with the statements of the kernel as loops. In C a call runs
// the whole grid serially. In OpenCL C and CUDA C++ a workgroup is a work-group or thread block:
// every lane runs the statements outside lanes loops, only lane 0 stores there, and barriers are
// placed where rule K2 makes stores visible. In a reduction over lanes, each lane reduces a
// contiguous run, and the runs are combined in order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/legalize/legalize.h"

namespace tenon::kernel {

enum class Language : uint8_t { kC, kOpenCl, kCuda };

struct RenderOptions {
  Language language = Language::kC;
  /// Lanes per workgroup, in languages with lanes. With one, loops over lanes are plain loops, and
  /// there are no barriers.
  int64_t lanes = 128;
  /// In C, the name of a table with one function per kernel, in order, all with one signature: void
  /// (*const TABLE[])(void *const *buffers, const uint64_t *scalars). Empty: no table.
  std::string table;
  /// Each kernel has only as many of the lanes as its loops over lanes can use: a power of two.
  bool fit_lanes = false;
  /// 32 or 64, in languages with lanes: a buffer is two parameters, the pointer to an allocation
  /// and the buffer's offset in bytes, an unsigned integer of that width. 0: a pointer alone.
  int offset_bits = 0;
  /// The width of the vectors that the compiler of the source makes; 0: none. If `lanes` is 1, sums
  /// are then kept in parts, and lanes that reduce along columns run side by side, in loops that
  /// become vectors; products have vector types where the language has those.
  int64_t vector_bytes = 0;
  /// In languages with lanes: the last parameter of each function is a pointer to a uint32_t, and
  /// while loops end once that is not 0 (B27). What the kernel wrote is then of no meaning.
  bool stop = false;
  /// Kernels of one name get names of their own, which RenderedKernel states.
  bool rename = false;
};

/// How to launch a kernel's function.
struct RenderedKernel {
  std::string function;
  int64_t workgroups = 0;  ///< At least; more do nothing.
  int64_t lanes = 1;       ///< Exactly; 1 in languages without lanes.
};

struct RenderedSource {
  std::string text;
  std::vector<RenderedKernel> kernels;  ///< In the order of the kernels.
};

/// The features of a language: integers of 8 bits and more, f32, f64, fma; atomics on some integer
/// types; memory of one dimension.
TargetFeatures source_form(Language language);

/// The name of a kernel's function in the source of any language. It is the kernel's name if that
/// is an identifier and not reserved in any of the languages; otherwise it is a different
/// identifier, distinct for each kernel name.
std::string source_name(std::string_view kernel);

/// Source of `kernels`, with the helper functions that they use. Each kernel must be verified;
/// render() legalises it for source_form(language). The function of kernel @k is
/// source_name("k")(buffers …, scalars …, stop), with the language's qualifiers for kernels. It may
/// be launched with the grid of `kernels`, even if its legal form needs fewer workgroups (one, if
/// the language lacks an atomic of the kernel): the other workgroups do nothing. Errors: those of
/// legalize(); two kernels of one name without a table or `rename`; in languages with lanes, a grid
/// of 2^31 - 1 workgroups or more.
Result<RenderedSource> render(std::span<const Kernel> kernels, const RenderOptions& options = {});

/// Keeps the text of each render() that succeeds on this thread while it exists, for people who
/// want to see what a backend renders. They may be nested: each text goes to the innermost one.
class RenderCapture {
 public:
  RenderCapture();
  ~RenderCapture();
  RenderCapture(const RenderCapture&) = delete;
  RenderCapture& operator=(const RenderCapture&) = delete;

  /// In the order of the calls; equal ones once.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  friend Result<RenderedSource> render(std::span<const Kernel> kernels,
                                       const RenderOptions& options);
  void add(const std::string& text);

  RenderCapture* const outer_;
  std::vector<std::string> texts_;
};

}  // namespace tenon::kernel
