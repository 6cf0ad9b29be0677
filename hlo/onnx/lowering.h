// How one node of an ONNX model becomes ops; the rows of the table.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>

#include "hlo/builder/builder.h"
#include "hlo/onnx/model.h"

namespace tenon::hlo {

/// The newest version of the domain ai.onnx that the table was written for.
inline constexpr int64_t kNewestOnnxOpset = 28;

/// The domain of ops that ONNX Runtime defines.
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

/// Thrown by lowerings, and caught by the importer around each node: an expression of many
/// ops needs no test after each.
struct OnnxFailure {
  Status status;
  /// The input of the node whose value is missing, without which it has no static shape, or -1.
  int64_t wanted_input = -1;
};

[[noreturn]] void fail_onnx(Error error);
[[noreturn]] void fail_onnx(ErrorCode code, fmt::string_view format, fmt::format_args arguments);

// Out of line, so that a check costs its caller little: kInvalidArgument, kUnimplemented and
// kResourceExhausted.
template <class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void bad_onnx(fmt::format_string<Args...> format,
                                                     Args&&... args) {
  fail_onnx(ErrorCode::kInvalidArgument, format, fmt::make_format_args(args...));
}
template <class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_onnx(fmt::format_string<Args...> format,
                                                        Args&&... args) {
  fail_onnx(ErrorCode::kUnimplemented, format, fmt::make_format_args(args...));
}
template <class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void exceed_onnx(fmt::format_string<Args...> format,
                                                        Args&&... args) {
  fail_onnx(ErrorCode::kResourceExhausted, format, fmt::make_format_args(args...));
}

using Values = std::vector<Value>;
using Direction = ComparisonDirection;

/// Writes ops with NumPy's broadcasting. All functions throw OnnxFailure.
class OnnxEmitter {
 public:
  explicit OnnxEmitter(Builder& builder) : builder_(&builder) {}

  Builder& builder() const { return *builder_; }
  /// A Value that the Builder returned; throws its error if there is one.
  Value checked(Value value) const;

  Value constant(Literal literal) const { return checked(builder_->constant(std::move(literal))); }
  Value number(ElementType type, double value) const;
  Value like(Value x, double value) const { return number(type_of(x), value); }
  Value i64s(const I64s& values) const { return constant(Literal::from_i64s(values)); }
  Value splat(ElementType type, Dims dims, double value) const;
  Value iota(ElementType type, Dims dims, int64_t dimension) const;

  static ElementType type_of(Value x) { return x.type().element_type(); }
  static const Dims& dims_of(Value x) { return x.type().dims(); }
  static int64_t rank_of(Value x) { return x.type().rank(); }
  static int64_t count_of(Value x) { return element_count(x.type().dims()); }

  /// Throws if the rank is none of these.
  static void check_rank(Value x, int64_t least, int64_t most = INT64_MAX);

  Value unary(OpCode code, Value x) const { return checked(builder_->unary(code, x)); }
  /// Both operands are broadcast to a common shape.
  Value binary(OpCode code, Value x, Value y) const;
  Value compare(Direction direction, Value x, Value y) const;
  Value select(Value condition, Value x, Value y) const;
  Value add(Value x, Value y) const { return binary(OpCode::kAdd, x, y); }
  Value sub(Value x, Value y) const { return binary(OpCode::kSubtract, x, y); }
  Value mul(Value x, Value y) const { return binary(OpCode::kMultiply, x, y); }
  Value div(Value x, Value y) const { return binary(OpCode::kDivide, x, y); }
  Value max(Value x, Value y) const { return binary(OpCode::kMaximum, x, y); }
  Value min(Value x, Value y) const { return binary(OpCode::kMinimum, x, y); }
  Value add(Value x, double y) const { return add(x, like(x, y)); }
  Value sub(Value x, double y) const { return sub(x, like(x, y)); }
  Value mul(Value x, double y) const { return mul(x, like(x, y)); }
  Value div(Value x, double y) const { return div(x, like(x, y)); }
  Value max(Value x, double y) const { return max(x, like(x, y)); }
  Value min(Value x, double y) const { return min(x, like(x, y)); }
  Value logical_and(Value x, Value y) const { return binary(OpCode::kAnd, x, y); }
  Value logical_or(Value x, Value y) const { return binary(OpCode::kOr, x, y); }
  Value logical_not(Value x) const { return unary(OpCode::kNot, x); }
  Value compare(Direction direction, Value x, double y) const {
    return compare(direction, x, like(x, y));
  }
  Value neg(Value x) const { return unary(OpCode::kNegate, x); }
  Value abs(Value x) const { return unary(OpCode::kAbs, x); }
  Value exp(Value x) const { return unary(OpCode::kExponential, x); }
  Value log(Value x) const { return unary(OpCode::kLog, x); }
  Value sqrt(Value x) const { return unary(OpCode::kSqrt, x); }
  Value floor(Value x) const { return unary(OpCode::kFloor, x); }
  Value sigmoid(Value x) const { return unary(OpCode::kLogistic, x); }
  Value tanh(Value x) const { return unary(OpCode::kTanh, x); }
  /// To pred: whether it is not 0.
  Value convert(Value x, ElementType type) const;

  Value reshape(Value x, Dims dims) const;
  Value broadcast_to(Value x, const Dims& dims) const;
  Value broadcast_in_dim(Value x, Dims dims, I64s dimensions) const;
  Value transpose(Value x, I64s permutation) const;
  Value slice(Value x, I64s start, I64s limit, I64s strides = {}) const;
  /// Elements `start` … `limit` of one dimension.
  Value slice_of(Value x, int64_t axis, int64_t start, int64_t limit, int64_t stride = 1) const;
  Value concatenate(const Values& parts, int64_t axis) const;
  Value pad(Value x, Value padding, I64s low, I64s high, I64s interior = {}) const;
  Value reverse(Value x, I64s dimensions) const;
  /// Adds dimensions of size 1 where they will be.
  Value unsqueeze(Value x, I64s axes) const;
  Value squeeze(Value x, I64s axes) const;

  /// With kAdd, kMultiply, kMaximum, kMinimum, kAnd or kOr.
  Value reduce(OpCode combiner, Value x, const I64s& axes, bool keep) const;
  Value sum(Value x, const I64s& axes, bool keep) const {
    return reduce(OpCode::kAdd, x, axes, keep);
  }
  Value mean(Value x, const I64s& axes, bool keep) const;
  /// The number that a reduction begins with.
  Literal identity_of(OpCode combiner, ElementType type) const;
  struct EmittedWindow {
    I64s size, strides, low, high, dilations;
  };
  /// A reduction over windows; each list has an entry for every dimension.
  Value reduce_window(OpCode combiner, Value x, const EmittedWindow& window) const;

  Value softmax(Value x, int64_t axis) const;
  /// Batches as in numpy.matmul.
  Value matmul(Value x, Value y, std::optional<ElementType> result = {}) const;
  Value dot_general(Value x, Value y, DotDims dims, std::optional<ElementType> result = {}) const;
  /// Slices along `axis` at `indices`, of any rank: numpy.take, negative indices allowed.
  Value take(Value x, Value indices, int64_t axis) const;
  /// For each index an element along `axis`: numpy.take_along_axis.
  Value take_along(Value x, Value indices, int64_t axis) const;
  /// Slices at index vectors, the last dimension of `indices`, behind `batch` common dimensions.
  Value gather_nd(Value x, Value indices, int64_t batch) const;
  /// Writes slices at index vectors, the last dimension of `indices`. Combines with `combiner` if
  /// there is one.
  Value scatter_nd(Value x, Value indices, Value updates, std::optional<OpCode> combiner,
                   bool unique = false) const;
  /// The sorted values and their positions along `axis`; stable. NaN is greater than all numbers.
  std::pair<Value, Value> sort(Value x, int64_t axis, bool descending) const;
  /// Positions of the greatest or least elements along `axis` as s64, the dimension kept. NaN
  /// counts as greatest and least.
  Value arg_extreme(Value x, int64_t axis, bool greatest, bool last) const;
  /// Sums or products of all elements up to each.
  Value cumulative(OpCode combiner, Value x, int64_t axis, bool exclusive, bool reversed) const;
  /// Negative indices count from `size`.
  Value wrapped(Value indices, int64_t size) const;

 protected:
  Builder* builder_;
};

/// NumPy's broadcasting of several shapes.
Dims broadcast_dims(const std::vector<Dims>& shapes);
/// "axis" with negative numbers counted from the end; throws if it is out of range.
int64_t normal_axis(int64_t axis, int64_t rank);
I64s normal_axes(I64s axes, int64_t rank);
I64s all_axes(int64_t rank, int64_t first = 0);

struct OnnxRow;

/// Services of the importer to a lowering.
class OnnxScope {
 public:
  virtual ~OnnxScope() = default;
  /// The value as a constant, if it follows from constants and from arguments that are given.
  virtual std::optional<Literal> known(Value value) = 0;
  /// Why values that follow from constants are not known: too much work. Otherwise ok.
  virtual const Status& failure() const = 0;
  /// Imports the nodes of a graph here, where its inputs are `arguments`; returns its outputs.
  virtual Values import_graph(const OnnxGraph& graph, const Values& arguments, Builder& into) = 0;
  /// Lowers a node of another op of ai.onnx here, of the model's version or of `opset`: functions
  /// are written as nodes.
  virtual Values lower(std::string_view op_type, const Values& inputs, OnnxAttributes attributes,
                       size_t outputs, Builder& into, int64_t opset = 0) = 0;
  /// Forgets what is known of ops that are destroyed.
  virtual void forget() = 0;
};

/// A node in the hands of its lowering.
class OnnxLowering : public OnnxEmitter {
 public:
  OnnxLowering(OnnxScope& scope, Builder& builder, const OnnxNode& node, const OnnxRow& row,
               int64_t opset, Values inputs)
      : OnnxEmitter(builder),
        scope_(&scope),
        node_(&node),
        row_(&row),
        opset_(opset),
        inputs_(std::move(inputs)) {}

  OnnxScope& scope() const { return *scope_; }
  const OnnxNode& node() const { return *node_; }
  const OnnxRow& row() const { return *row_; }
  int64_t opset() const { return opset_; }

  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  size_t input_count() const { return inputs_.size(); }
  /// Throws if the input is missing.
  Value in(size_t i) const;
  const Values& inputs() const { return inputs_; }
  /// Whether a result is asked for.
  bool wants(size_t output) const {
    return output < node_->outputs.size() && !node_->outputs[output].empty();
  }
  size_t output_count() const { return node_->outputs.size(); }

  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const {
    return integer(name, otherwise ? 1 : 0) != 0;
  }
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// Empty if there is no such attribute.
  I64s integers(std::string_view name) const;
  I64s integers(std::string_view name, size_t size, int64_t fill) const;
  bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  const OnnxAttribute* attribute(std::string_view name) const;
  const OnnxGraph& graph(std::string_view name) const;
  ElementType type_attribute(std::string_view name, ElementType otherwise) const;

  /// The values of an input that must be known here: a shape, axes … Throws if they are not.
  Literal known(size_t i) const;
  I64s known_i64s(size_t i) const;
  double known_number(size_t i) const;
  int64_t known_integer(size_t i) const;
  /// Nothing if the value is not known.
  std::optional<bool> known_flag(size_t i) const;
  std::optional<Literal> try_known(size_t i) const;
  /// The input if there is one, else the attribute; older versions have the attribute.
  std::optional<I64s> input_or_attribute(size_t i, std::string_view name) const;

 private:
  OnnxScope* scope_;
  const OnnxNode* node_;
  const OnnxRow* row_;
  int64_t opset_;
  Values inputs_;
};

using OnnxLower = Values (*)(OnnxLowering&);

/// A row of the table: an op from a version on, until the next row of its name.
struct OnnxRow {
  std::string_view name;
  int64_t since;
  OnnxLower lower;
  int64_t parameter = 0;  ///< For the function, for example an opcode.
  std::string_view domain = "";

  OpCode code() const { return static_cast<OpCode>(parameter); }
};

/// The rows, in groups by kind.
std::span<const OnnxRow> onnx_elementwise_rows();
std::span<const OnnxRow> onnx_activation_rows();
std::span<const OnnxRow> onnx_shape_rows();
std::span<const OnnxRow> onnx_reduction_rows();
std::span<const OnnxRow> onnx_indexing_rows();
std::span<const OnnxRow> onnx_product_rows();
std::span<const OnnxRow> onnx_pooling_rows();
std::span<const OnnxRow> onnx_normalization_rows();
std::span<const OnnxRow> onnx_quantization_rows();
std::span<const OnnxRow> onnx_control_rows();
std::span<const OnnxRow> onnx_resize_rows();
std::span<const OnnxRow> onnx_sampling_rows();
std::span<const OnnxRow> onnx_attention_rows();
std::span<const OnnxRow> onnx_loss_rows();
std::span<const OnnxRow> onnx_signal_rows();
std::span<const OnnxRow> onnx_recurrent_rows();
std::span<const OnnxRow> onnx_microsoft_rows();
std::span<const OnnxRow> onnx_microsoft_attention_rows();
std::span<const OnnxRow> onnx_microsoft_quantized_rows();

/// The row of an op for a version of its domain, or null.
const OnnxRow* find_onnx_row(std::string_view domain, std::string_view name, int64_t version);
/// Whether there is a row of the op for any version.
bool has_onnx_row(std::string_view domain, std::string_view name);
/// All rows, by name and version.
std::vector<const OnnxRow*> all_onnx_rows();

}  // namespace tenon::hlo
