// hlo/sample/: random instances of each op, for tests of what is done to programs.
//
// A sample function draws one instance of an op: valid operands and attributes. The Sampler
// provides the operands: the generator of random programs takes existing values of the program
// (conformance/generate/generator.h), the tests of rewrite rules make them from patterns
// (hlo/passes/rewrite/sampler.h).
#pragma once

#include <functional>

#include "core/base/random.h"
#include "hlo/builder/builder.h"

namespace tenon::hlo {

class Sampler {
 public:
  Sampler(Random& drawn_from, int64_t most_elements)
      : random(drawn_from), max_elements(most_elements) {}
  virtual ~Sampler() = default;

  /// Operand `i` of the op: an array for which `fits` is true; null if there is none.
  using Fits = std::function<bool(const Type&)>;
  virtual Value array(size_t i, const Fits& fits) = 0;
  Value array(size_t i) {
    return array(i, [](const Type&) { return true; });
  }
  /// Operand `i`, of this type.
  virtual Value of_type(size_t i, const Type& type) = 0;
  /// A rank-0 value that is not an operand of a pattern: an index, a padding value.
  virtual Value number(ElementType type) = 0;
  /// An element type for results that may have any.
  virtual ElementType element_type() = 0;
  /// Whether the attributes of this instance should be ones that change nothing.
  virtual bool is_trivial() { return false; }

  /// Dimensions of a new array: few elements; sizes include 1, primes, and sometimes 0.
  virtual Dims dims() = 0;
  /// `values` in random order.
  I64s shuffled(I64s values);
  /// 0 … count - 1.
  static I64s counting(size_t count);
  /// Some dimensions of `rank`, each once.
  I64s some_dimensions(int64_t rank);
  /// Dimensions with a total of `count` elements.
  Dims refactored(int64_t count);
  /// Start indices for an array of these dimensions, some of them out of range.
  std::vector<Value> starts(const Dims& dims);

  /// An op whose result does not depend on the order of combination.
  OpCode combiner(ElementType type);
  Value neutral(OpCode combiner, ElementType type);
  /// An op on two numbers whose result has the same bits on every device, inserted by `b`.
  Value exact(Builder& b, Value x, Value y);

  Builder& b() { return *builder_; }
  void set_builder(Builder* builder) { builder_ = builder; }

  Random& random;              // NOLINT: what every sample draws from
  const int64_t max_elements;  // NOLINT: of one array

 private:
  Builder* builder_ = nullptr;
};

/// The sample functions that `.sample` of the op table names. Each adds one instance, or returns
/// null without adding one if no operands fit or the drawn instance is not valid.
namespace sample {
using Rule = Instruction*(Sampler& s, OpCode code);

// An elementwise op on operands of one type, without required attributes.
Rule elementwise;
Rule bitcast_convert, broadcast_in_dim, case_op, clamp, compare, complex, concatenate, constant,
    convert, convolution, dot_general, dynamic_slice, dynamic_update_slice, gather, if_op, iota,
    pad, reduce, reduce_precision, reduce_window, reshape, reverse, rng_bit_generator, scatter,
    select, slice, sort, transpose, while_op;
}  // namespace sample

}  // namespace tenon::hlo
