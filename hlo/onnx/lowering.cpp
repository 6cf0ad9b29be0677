#include "hlo/onnx/lowering.h"

#include <algorithm>
#include <cmath>

#include "hlo/onnx/reader.h"

namespace tenon::hlo {

Value OnnxLowering::in(size_t i) const {
  if (!has(i)) bad_onnx("input {} is missing", i);
  return inputs_[i];
}

const OnnxAttribute* OnnxLowering::attribute(std::string_view name) const {
  const auto found = node_->attributes.find(name);
  return found == node_->attributes.end() ? nullptr : &found->second;
}

namespace {

// Numbers beyond these limits mean "to the end", or are wrong: sums and products of two stay
// within 64 bits.
constexpr int64_t kMostAttribute = int64_t{1} << 31, kMostKnown = int64_t{1} << 40;

int64_t limited(int64_t value, int64_t most) { return std::clamp(value, -most, most); }

int64_t integer_at(const Literal& value, int64_t i) {
  if (!is_float(value.element_type()) && !is_complex(value.element_type())) {
    return limited(value.get_integer(i), kMostKnown);
  }
  const double number = is_complex(value.element_type()) ? std::nan("") : value.get_double(i);
  if (std::isnan(number)) bad_onnx("a size or position is NaN");
  constexpr auto kMost = static_cast<double>(kMostKnown);
  return static_cast<int64_t>(std::clamp(number, -kMost, kMost));
}

}  // namespace

int64_t OnnxLowering::integer(std::string_view name, int64_t otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr && found->integer ? limited(*found->integer, kMostAttribute) : otherwise;
}

double OnnxLowering::real(std::string_view name, double otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr && found->real ? static_cast<double>(*found->real) : otherwise;
}

std::string OnnxLowering::text(std::string_view name, std::string_view otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found != nullptr && found->text ? *found->text : std::string(otherwise);
}

I64s OnnxLowering::integers(std::string_view name) const {
  const OnnxAttribute* found = attribute(name);
  I64s values = found != nullptr ? found->integers : I64s{};
  for (int64_t& each : values) each = limited(each, kMostAttribute);
  return values;
}

I64s OnnxLowering::integers(std::string_view name, size_t size, int64_t fill) const {
  I64s found = integers(name);
  if (found.empty()) return I64s(size, fill);
  if (found.size() != size) bad_onnx("{} has {} numbers, expected {}", name, found.size(), size);
  return found;
}

const OnnxGraph& OnnxLowering::graph(std::string_view name) const {
  const OnnxAttribute* found = attribute(name);
  if (found == nullptr || !found->graph) bad_onnx("{} is missing", name);
  return *found->graph;
}

ElementType OnnxLowering::type_attribute(std::string_view name, ElementType otherwise) const {
  const int64_t number = integer(name, 0);
  if (number == 0) return otherwise;
  const std::optional<ElementType> type = onnx_element_type(number);
  if (!type) refuse_onnx("{} is {}, no type of numbers", name, number);
  return *type;
}

std::optional<Literal> OnnxLowering::try_known(size_t i) const {
  return has(i) ? scope_->known(inputs_[i]) : std::nullopt;
}

Literal OnnxLowering::known(size_t i) const {
  std::optional<Literal> value = scope_->known(in(i));
  if (!value) {
    const std::string name = i < node_->inputs.size() ? node_->inputs[i] : "";
    if (!scope_->failure().ok())
      exceed_onnx(
          "input {} ('{}') decides a shape, and is not computed while the model is imported: {}", i,
          name, scope_->failure().message());
    throw OnnxFailure{
        make_error(
            ErrorCode::kUnimplemented,
            "input {} ('{}') decides a shape, and depends on an argument whose value is not given",
            i, name),
        static_cast<int64_t>(i)};
  }
  return *std::move(value);
}

I64s OnnxLowering::known_i64s(size_t i) const {
  const Literal value = known(i);
  I64s numbers;
  for (int64_t n = 0; n < value.element_count(); ++n) numbers.push_back(integer_at(value, n));
  return numbers;
}

double OnnxLowering::known_number(size_t i) const {
  const Literal value = known(i);
  if (value.element_count() != 1 || is_complex(value.element_type()))
    bad_onnx("input {} is not one number", i);
  return value.get_double(0);
}

int64_t OnnxLowering::known_integer(size_t i) const {
  const I64s value = known_i64s(i);
  if (value.size() != 1) bad_onnx("input {} is not one number", i);
  return value[0];
}

std::optional<bool> OnnxLowering::known_flag(size_t i) const {
  const std::optional<Literal> value = try_known(i);
  if (!value) return std::nullopt;
  if (value->element_count() != 1) bad_onnx("input {} is not one number", i);
  return integer_at(*value, 0) != 0;
}

std::optional<I64s> OnnxLowering::input_or_attribute(size_t i, std::string_view name) const {
  if (has(i)) return known_i64s(i);
  if (attribute(name) != nullptr) return integers(name);
  return std::nullopt;
}

// --- The table

namespace {

using RowGroup = std::span<const OnnxRow> (*)();
constexpr RowGroup kRowGroups[] = {
    onnx_elementwise_rows,
    onnx_activation_rows,
    onnx_shape_rows,
    onnx_reduction_rows,
    onnx_indexing_rows,
    onnx_product_rows,
    onnx_pooling_rows,
    onnx_normalization_rows,
    onnx_control_rows,
    onnx_quantization_rows,
    onnx_resize_rows,
    onnx_sampling_rows,
    onnx_attention_rows,
    onnx_loss_rows,
    onnx_signal_rows,
    onnx_recurrent_rows,
    onnx_microsoft_rows,
    onnx_microsoft_attention_rows,
    onnx_microsoft_quantized_rows,
};

}  // namespace

const OnnxRow* find_onnx_row(std::string_view domain, std::string_view name, int64_t version) {
  const OnnxRow* best = nullptr;
  for (const RowGroup group : kRowGroups) {
    for (const OnnxRow& row : group()) {
      if (row.name == name && row.domain == domain && row.since <= version &&
          (best == nullptr || row.since > best->since)) {
        best = &row;
      }
    }
  }
  return best;
}

bool has_onnx_row(std::string_view domain, std::string_view name) {
  return std::ranges::any_of(kRowGroups, [&](RowGroup group) {
    return std::ranges::any_of(
        group(), [&](const OnnxRow& row) { return row.name == name && row.domain == domain; });
  });
}

std::vector<const OnnxRow*> all_onnx_rows() {
  std::vector<const OnnxRow*> rows;
  for (const RowGroup group : kRowGroups) {
    for (const OnnxRow& row : group()) rows.push_back(&row);
  }
  std::ranges::sort(rows, [](const OnnxRow* a, const OnnxRow* b) {
    return std::tie(a->domain, a->name, a->since) < std::tie(b->domain, b->name, b->since);
  });
  return rows;
}

}  // namespace tenon::hlo
