// hlo/builder/: makes instructions, with result types inferred.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Appends instructions to a computation (or inserts them before one), inferring result types and
/// verifying each. The functions below return plain Values, so that expressions stay readable: the
/// first error is recorded, later calls do nothing and return null Values, and `status()` returns
/// the error at the end.
///
///   Builder b(function);
///   Value y = b.unary(OpCode::kTanh, b.binary(OpCode::kAdd, x, b.splat_like(x, 1.0)));
///   TENON_TRY(b.finish({y}));   // status, and the return
class Builder {
 public:
  explicit Builder(Computation& computation, Instruction* before = nullptr)
      : computation_(&computation), before_(before) {}

  Computation& computation() const { return *computation_; }
  /// Sets the location of the instructions built from now on.
  void set_location(Location location) { location_ = std::move(location); }

  /// u64[2], a key and a counter: the state from which decompositions draw random numbers, and
  /// which they replace.
  Value random_state() const { return random_state_; }
  void set_random_state(Value state) { random_state_ = state; }

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  /// Records `status` as the error unless there is one.
  void fail(Status status);

  using AttrList = std::initializer_list<std::pair<AttrKey, Attribute>>;

  /// The general form. `stated` gives the result types of ops that do not determine them (constant,
  /// iota, reshape, convert, custom_call …); leave it empty for other ops. Returns null on error.
  Instruction* create(OpCode code, const std::vector<Value>& operands, AttrList attributes = {},
                      std::vector<Type> stated = {},
                      std::vector<std::unique_ptr<Computation>> regions = {});
  Instruction* create(std::unique_ptr<Instruction> instruction);
  /// `create` for an op with one result.
  Value make(OpCode code, const std::vector<Value>& operands, AttrList attributes = {},
             std::vector<Type> stated = {});

  Value constant(Literal literal);
  Value constant(DenseAttr value);
  /// A rank-0 constant of `type`.
  Value scalar(ElementType type, double value);
  /// A constant of x's shape and element type with all elements equal to `value`; x must be static.
  Value splat_like(Value x, double value);
  Value splat(const Shape& shape, double value);
  Value i64_constant(int64_t value) {
    return constant(Literal::scalar_integer(ElementType::kS64, value));
  }
  Value iota(ElementType type, Dims dims, int64_t dimension);

  Value unary(OpCode code, Value x) { return make(code, {x}); }
  Value binary(OpCode code, Value x, Value y) { return make(code, {x, y}); }
  Value add(Value x, Value y) { return binary(OpCode::kAdd, x, y); }
  Value sub(Value x, Value y) { return binary(OpCode::kSubtract, x, y); }
  Value mul(Value x, Value y) { return binary(OpCode::kMultiply, x, y); }
  Value div(Value x, Value y) { return binary(OpCode::kDivide, x, y); }
  Value neg(Value x) { return unary(OpCode::kNegate, x); }
  Value abs(Value x) { return unary(OpCode::kAbs, x); }
  Value select(Value pred, Value on_true, Value on_false) {
    return make(OpCode::kSelect, {pred, on_true, on_false});
  }
  Value compare(ComparisonDirection direction, Value x, Value y,
                ComparisonType type = ComparisonType::kNoType);
  Value convert(Value x, ElementType type);
  Value bitcast(Value x, Type type) {
    return make(OpCode::kBitcastConvert, {x}, {}, {std::move(type)});
  }
  Value reshape(Value x, Dims dims);
  Value broadcast_in_dim(Value x, Dims dims, I64s broadcast_dimensions);
  /// A rank-0 value broadcast to `dims`.
  Value broadcast_scalar(Value x, Dims dims) { return broadcast_in_dim(x, std::move(dims), {}); }
  Value transpose(Value x, I64s permutation);
  Value slice(Value x, I64s start, I64s limit, I64s strides = {});
  Value concatenate(const std::vector<Value>& parts, int64_t dimension);
  Value pad(Value x, Value padding, I64s low, I64s high, I64s interior = {});
  Value dot_general(Value lhs, Value rhs, DotDims dims, ElementType result);
  /// A reduction of one value with a binary op; `init` has rank 0.
  Value reduce(OpCode combiner, Value x, Value init, I64s dimensions);
  Value dynamic_slice(Value x, std::vector<Value> starts, I64s sizes);
  Value dynamic_update_slice(Value x, Value update, std::vector<Value> starts);
  /// A while loop over `state`; `cond` and `body` get a builder for the region and its parameters.
  std::vector<Value> while_loop(
      const std::vector<Value>& state,
      const std::function<Value(Builder&, const std::vector<Value>&)>& cond,
      const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& body);

  /// Appends `return` (not if there was an error).
  Status finish(const std::vector<Value>& results);

 private:
  Computation* computation_;
  Instruction* before_;
  Location location_;
  Value random_state_;
  Status status_;
};

/// A region whose parameters have `types` and whose body is `combiner` of its two parameters.
std::unique_ptr<Computation> binary_region(OpCode combiner, const Type& scalar);

}  // namespace tenon::hlo
