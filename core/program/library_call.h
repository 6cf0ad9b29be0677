// Library calls: work that a backend may take whole, described by value.
//
// A set of kinds, versioned with the serial form of Programs; composites open it: their names are
// the program's. Each call stands beside the steps that do the same with kernels
// (LibraryCallStep::lowered in program.h): a backend that takes a call replaces them, any other
// runs them. Arrays are dense and row-major; their types and shapes are those of the call's
// buffers. Each kind but Composite computes the same as the StableHLO op that it is named after,
// corner cases too.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/types/shape.h"

namespace tenon::program {

/// (lhs, rhs) -> result: dot_general. The result's dimensions are the batch ones, the free ones of
/// lhs, the free ones of rhs, each in the order of the operand. Products and sums are of the
/// operands' precision or a greater one, never of a narrower form.
struct Contraction {
  Dims lhs_batch, rhs_batch;
  Dims lhs_contracting, rhs_contracting;
  bool operator==(const Contraction&) const = default;
};

/// The roles of the dimensions of an array of a convolution; for the kernel, `batch` is the output
/// feature. Precision is that of a contraction.
struct ConvolutionDims {
  int64_t batch = 0;
  int64_t feature = 0;
  Dims spatial;
  bool operator==(const ConvolutionDims&) const = default;
};

/// (input, kernel) -> result: convolution. Lists have one entry a spatial dimension.
struct Convolution {
  ConvolutionDims input, kernel, output;
  Dims strides, padding_low, padding_high, input_dilation, kernel_dilation;
  Dims reversed;  ///< Spatial dimensions along which the window runs backwards.
  int64_t feature_groups = 1;
  int64_t batch_groups = 1;
  bool operator==(const Convolution&) const = default;
};

/// (arrays …) -> (arrays …): a stable sort along a dimension, by the array `key`. Without
/// `total_order` -0 and 0 are equal, and for floats with NaNs any result is right.
struct Sort {
  int64_t dimension = 0;
  uint32_t key = 0;
  bool descending = false;
  bool total_order = false;  ///< For floats: -NaN < -inf … -0 < 0 … inf < NaN.
  bool operator==(const Sort&) const = default;
};

enum class Combiner : uint8_t { kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr, kXor };

/// (array, init) -> prefixes along a dimension: result[i] combines init and the elements up to i,
/// or from i on if `reverse`. A reduce_window whose windows reach to the end of the array.
struct Scan {
  int64_t dimension = 0;
  bool reverse = false;
  Combiner combiner = Combiner::kAdd;
  bool operator==(const Scan&) const = default;
};

enum class FftKind : uint8_t { kForward, kInverse, kRealForward, kRealInverse };

/// array -> transforms along the last dimensions, of `lengths`, powers of two: fft. (Others
/// are not offered.)
struct Fft {
  FftKind kind = FftKind::kForward;
  Dims lengths;
  bool operator==(const Fft&) const = default;
};

/// A member of a composite's dictionary of attributes: integers and flags, numbers, or text (also
/// that of a value of any other kind).
struct CompositeAttribute {
  std::string name;
  std::variant<Dims, std::vector<double>, std::string> value;
  bool operator==(const CompositeAttribute&) const = default;
};

/// (arrays …) -> (arrays …): a composite, by its name: one of the idioms that Tenon recognizes
/// (docs/idioms.md: "tenon.softmax"), or a name that a program states ("vendor.flash_attention"),
/// also as the target of a custom call, whose version is 0.
/// What it computes is what its name means to the backend that takes it; the steps beside the call
/// are its decomposition.
struct Composite {
  std::string name;
  int64_t version = 0;
  std::vector<CompositeAttribute> attributes;  ///< In the order of their names.
  bool operator==(const Composite&) const = default;
};

using LibraryCall = std::variant<Contraction, Convolution, Sort, Scan, Fft, Composite>;

/// "contraction", "composite" …
std::string_view name_of(const LibraryCall& call);
/// Names of all kinds, in the order of the variant.
std::span<const std::string_view> library_call_names();
/// "contraction lhs_contracting=[1] rhs_contracting=[0]": the members that differ from their
/// defaults.
std::string to_string(const LibraryCall& call);

/// A member as numbers: a flag as 0 or 1, an enumeration as its number.
struct LibraryCallAttribute {
  std::string name;  ///< "lhs_contracting", "input_spatial"
  Dims values;
};
/// All members, in the order of their declaration; of a composite none, whose attributes are not
/// all integers.
std::vector<LibraryCallAttribute> attributes_of(const LibraryCall& call);

/// OK, or why there is no such call on arrays of these shapes. Safe on values of any content.
Status check(const LibraryCall& call, std::span<const Shape> operands,
             std::span<const Shape> results);

}  // namespace tenon::program
