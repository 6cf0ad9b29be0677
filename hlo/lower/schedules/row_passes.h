// Passes over rows: sorts and Fourier transforms process rows along one axis in a logarithmic
// number of passes, each of which reads the output of the previous one.
//
// Short rows stay in a workgroup's scratch memory; long ones go through temporaries, with one
// launch per pass.
#pragma once

#include <functional>

#include "hlo/lower/kernel_maker.h"

namespace tenon::hlo::lower {

/// Reads the elements at `position` of the row.
using RowReader = std::function<Elements(ValueId position)>;

struct RowPasses {
  Dims dims;  ///< Dimensions of the arrays; rows run along `axis`.
  size_t axis = 0;
  std::vector<ElementType> types;  ///< Types of the arrays, which are processed together.
  int passes = 0;                  ///< 0 means that rows are only copied.

  /// The input of the first pass: elements at an index of `dims`.
  std::function<Elements(KernelMaker&, const Values& index)> input;
  /// The elements that a pass writes to position `i`.
  std::function<Elements(KernelMaker&, int pass, const RowReader& read, ValueId i)> step;
  /// Writes the last pass's elements. The function is called where output buffers are declared, and
  /// returns the writer.
  using Writer = std::function<void(const Elements&, const Values& index)>;
  std::function<Writer(KernelMaker&)> output;
  /// Declares the buffers that `step` needs in addition to the op's inputs.
  std::function<void(KernelMaker&)> declare = [](KernelMaker&) {};
};

/// Appends the kernels for `rows`, with names that end in `suffix`.
Status lower_row_passes(LoweredOp& lowered, const Instruction& op, const RowPasses& rows,
                        const std::string& suffix, TuningParameters& tuning,
                        const LowerLimits& limits);

/// log2 of the least power of two that is at least `n`.
int log2_ceil(int64_t n);

// --- Ops with their own lowering; they append to `lowered`, whose inputs are set

Status lower_sort(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits);
Status lower_fft(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                 const LowerLimits& limits);
Status lower_scatter(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                     const LowerLimits& limits);

/// The kind of a fusion of one sort, slices of the first elements of its rows, equally many of each
/// result, and iotas that it sorts.
inline constexpr std::string_view kSelectionKind = "first";
bool is_selection(const Instruction& op);
/// An error of kResourceExhausted if there is not enough scratch memory.
Status lower_selection(LoweredOp& lowered, const Instruction& fusion, TuningParameters& tuning,
                       const LowerLimits& limits);

}  // namespace tenon::hlo::lower
