// Layouts of convolutions. Tiles of a product want rows: of the filter those of its outputs, of the
// arrays those of features where places are too few to fill a vector. PyTorch's filters end in the
// window, and its images in places; gathering tiles from them costs more than a transpose. Where
// registers are wide, arrays end in features throughout a network: transposes between its
// convolutions meet and are gone (sink_transposes.cpp).
#include <algorithm>

#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kVectorRow = 16;      // Vectors of f32 have up to so many elements.
constexpr int64_t kLargestWindow = 64;  // Above, the window itself has rows.
constexpr int64_t kLeastMoved = 4096;   // Elements; smaller arrays are not worth a kernel.

int64_t size_of(Value value, int64_t dimension) {
  return value.type().dims()[static_cast<size_t>(dimension)];
}

int64_t product_of(Value value, const I64s& dimensions) {
  int64_t product = 1;
  for (const int64_t d : dimensions) product *= size_of(value, d);
  return product;
}

int64_t last_of(Value value) { return value.type().rank() - 1; }

// The numbers from `first` on, one for each spatial dimension.
I64s following(const I64s& spatial, int64_t first) {
  I64s numbers(spatial.size());
  std::ranges::generate(numbers, [&] { return first++; });
  return numbers;
}

class ConvolutionLayout {
 public:
  ConvolutionLayout(Instruction& op, bool is_wide, TransposeSet& behind)
      : op_(op),
        dims_(*op.attr<ConvDims>(AttrKey::dimension_numbers)),
        is_grouped_(op.integer(AttrKey::feature_group_count, 1) > 1),
        is_wide_(is_wide),
        behind_(behind) {}

  bool run() {
    const bool arrays = (is_wide_ && gains_by_features()) || (!is_grouped_ && wants_arrays());
    const bool filter = wants_filter() && (arrays || !is_grouped_);
    if (filter) lay_out_filter();
    if (arrays) lay_out_arrays();
    if (filter || arrays) op_.mutable_attributes().set(AttrKey::dimension_numbers, dims_);
    return filter || arrays;
  }

 private:
  // A filter that ends in the window, or in inputs (the gradient by an input).
  bool wants_filter() const {
    const Value filter = op_.operand(1);
    const int64_t window = product_of(filter, dims_.kernel_spatial);
    const bool ends_in_window =
        std::ranges::find(dims_.kernel_spatial, last_of(filter)) != dims_.kernel_spatial.end();
    const bool ends_in_inputs =
        is_wide_ && !is_grouped_ && dims_.kernel_input_feature == last_of(filter);
    return (ends_in_window || ends_in_inputs) && window > 1 && window <= kLargestWindow &&
           size_of(filter, dims_.kernel_output_feature) >= kVectorRow &&
           (is_grouped_ || element_count(filter.type().dims()) >= kLeastMoved);
  }

  // A gradient by a filter stays, whose window is as large as an array.
  bool gains_by_features() const {
    const Value input = op_.operand(0), output = op_.result(0);
    const auto ends_in_places = [](Value array, int64_t batch, const I64s& spatial) {
      return !spatial.empty() && spatial.back() == last_of(array) && batch == 0 &&
             element_count(array.type().dims()) >= kLeastMoved;
    };
    return ends_in_places(input, dims_.input_batch, dims_.input_spatial) &&
           ends_in_places(output, dims_.output_batch, dims_.output_spatial) &&
           size_of(output, dims_.output_feature) >= kVectorRow &&
           product_of(op_.operand(1), dims_.kernel_spatial) <= kLargestWindow;
  }

  // The arrays' rows are shorter than a vector, and features are many.
  bool wants_arrays() const {
    const Value input = op_.operand(0), output = op_.result(0);
    const auto ends_in_places = [](Value array, const I64s& spatial) {
      return !spatial.empty() && spatial.back() == last_of(array) &&
             size_of(array, spatial.back()) < kVectorRow &&
             element_count(array.type().dims()) >= kLeastMoved;
    };
    return ends_in_places(input, dims_.input_spatial) &&
           ends_in_places(output, dims_.output_spatial) &&
           size_of(input, dims_.input_feature) >= kVectorRow &&
           size_of(output, dims_.output_feature) >= kVectorRow;
  }

  void set_operand(size_t i, const I64s& order) {
    Builder before(*op_.parent(), &op_);
    before.set_location(op_.location());
    op_.set_operand(i, transposed(before, op_.operand(i), order));
  }

  void lay_out_filter() {
    I64s order = dims_.kernel_spatial;
    order.insert(order.end(), {dims_.kernel_input_feature, dims_.kernel_output_feature});
    set_operand(1, order);
    const auto window = static_cast<int64_t>(dims_.kernel_spatial.size());
    dims_.kernel_spatial = following(dims_.kernel_spatial, 0);
    dims_.kernel_input_feature = window;
    dims_.kernel_output_feature = window + 1;
  }

  void lay_out_arrays() {
    I64s order = {dims_.input_batch};
    order.insert(order.end(), dims_.input_spatial.begin(), dims_.input_spatial.end());
    order.push_back(dims_.input_feature);
    set_operand(0, order);
    I64s of_result = {dims_.output_batch};
    of_result.insert(of_result.end(), dims_.output_spatial.begin(), dims_.output_spatial.end());
    of_result.push_back(dims_.output_feature);
    const std::vector<Use> uses = op_.uses();
    const Type& type = op_.result_type();
    op_.set_result_type(0, Type::tensor(type.element_type(), in_order(type.dims(), of_result)));
    Builder after(*op_.parent(), op_.next());
    after.set_location(op_.location());
    const Value result = transposed(after, op_.result(0), inverse_order(of_result));
    for (const Use& use : uses) use.user->set_operand(use.operand, result);
    if (result.def != &op_) behind_.insert(result.def);
    dims_.input_batch = dims_.output_batch = 0;
    dims_.input_spatial = following(dims_.input_spatial, 1);
    dims_.output_spatial = following(dims_.output_spatial, 1);
    dims_.input_feature = dims_.output_feature = static_cast<int64_t>(order.size()) - 1;
  }

  Instruction& op_;
  ConvDims dims_;
  const bool is_grouped_, is_wide_;
  TransposeSet& behind_;
};

bool is_plain_convolution(const Instruction& op) {
  const auto plain = [](const Type& type) {
    return type.is_tensor() && !type.is_quantized() && type.shape().is_static() &&
           !is_complex(type.element_type());
  };
  return op.code() == OpCode::kConvolution && plain(op.operand_type(0)) &&
         plain(op.operand_type(1)) && plain(op.result_type()) &&
         op.integer(AttrKey::batch_group_count, 1) == 1;
}

// Whether the op brings features, last in what it reads, before the places: a convolution of one
// place has become a product and a transpose, and a gradient of a pool may end in features.
bool brings_features_forward(const Instruction& op) {
  constexpr size_t kOfImages = 4;
  if (op.code() != OpCode::kTranspose || op.operand(0).def == nullptr) return false;
  const OpCode read = op.operand(0).def->code();
  const I64s& order = op.i64s(AttrKey::permutation);
  if (order.size() < kOfImages) return false;
  I64s wanted = {0, static_cast<int64_t>(order.size()) - 1};
  for (size_t d = 2; d < order.size(); ++d) wanted.push_back(static_cast<int64_t>(d) - 1);
  return (read == OpCode::kDotGeneral || read == OpCode::kSelectAndScatter) && order == wanted;
}

}  // namespace

Result<bool> lay_out_convolutions(Module& module, const PassOptions& options) {
  const bool is_wide = options.cost.wide_tiles;
  bool has_convolutions = false;
  TransposeSet behind;
  const bool changed = change_ops(module, [&](Instruction& op) {
    if (!is_plain_convolution(op)) return false;
    has_convolutions = true;
    return ConvolutionLayout(op, is_wide, behind).run();
  });
  if (!is_wide || !has_convolutions) return changed;
  change_ops(module, [&](Instruction& op) {
    if (brings_features_forward(op)) behind.insert(&op);
    return false;
  });
  if (!sink_transposes(module, behind)) return changed;
  // Readers of what nothing reads would be readers to the passes behind.
  TENON_ASSIGN(const bool cleared, eliminate_dead(module));
  return changed || cleared || !behind.empty();
}

}  // namespace tenon::hlo
