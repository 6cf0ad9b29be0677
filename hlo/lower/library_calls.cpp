#include "hlo/lower/library_calls.h"

#include <algorithm>
#include <bit>

#include "hlo/ir/region.h"
#include "hlo/lower/elements/prefix_windows.h"
#include "hlo/lower/foreign_calls.h"
#include "hlo/lower/lower_op.h"
#include "hlo/text/attribute_printer.h"

namespace tenon::hlo::lower {
namespace {

using program::Combiner;
using program::LibraryCall;
using Call = std::optional<LibraryCall>;

bool is_empty(const Type& type) { return element_count(type.dims()) == 0; }

Call contraction(const Instruction& op) {
  const auto& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const ElementType type = op.operand_type(0).element_type();
  if (op.operand_type(1).element_type() != type) return {};
  return program::Contraction{dims.lhs_batching, dims.rhs_batching, dims.lhs_contracting,
                              dims.rhs_contracting};
}

// LT or GT of one pair of the comparator's arguments, which are interleaved.
Call sort(const Instruction& op) {
  const Computation& region = op.region(0);
  const Instruction* compare = region.first();
  const Instruction* end = region.return_instruction();
  if (compare == end || compare->next() != end || compare->code() != OpCode::kCompare ||
      end->operand(0).def != compare) {
    return {};
  }
  const auto direction = compare->enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  if (direction != ComparisonDirection::kLt && direction != ComparisonDirection::kGt) return {};
  for (uint32_t k = 0; k < op.operand_count(); ++k) {
    const Value first = region.parameter(2 * k);
    const Value second = region.parameter(2 * k + 1);
    const bool straight = compare->operand(0) == first && compare->operand(1) == second;
    const bool swapped = compare->operand(0) == second && compare->operand(1) == first;
    if (!straight && !swapped) continue;
    program::Sort call;
    call.dimension = op.integer(AttrKey::dimension, -1);
    if (call.dimension < 0) call.dimension += op.operand_type(0).rank();
    call.key = k;
    call.descending = (direction == ComparisonDirection::kGt) == straight;
    call.total_order =
        compare->enumeration<ComparisonType>(AttrKey::compare_type) == ComparisonType::kTotalOrder;
    return call;
  }
  return {};
}

Call scan(const Instruction& op) {
  const auto windows = prefix_windows(op);
  const std::optional<Combiner> combiner = combiner_of(op.region(0));
  if (!windows || !combiner || op.result_count() != 1) return {};
  const Type& type = op.result_type();
  if (is_complex(type.element_type()) || type != op.operand_type(0)) return {};
  if (op.operand_type(1).element_type() != type.element_type()) return {};
  return program::Scan{windows->dimension, windows->reverse, *combiner};
}

Call fft(const Instruction& op) {
  static_assert(static_cast<int>(FftType::kIrfft) ==
                static_cast<int>(program::FftKind::kRealInverse));
  program::Fft call;
  call.kind = static_cast<program::FftKind>(op.enumeration<FftType>(AttrKey::fft_type));
  call.lengths = op.i64s(AttrKey::fft_length);
  const auto direct = [](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); };
  return std::ranges::all_of(call.lengths, direct) ? Call(std::move(call)) : Call();
}

// The numbers of a short list, or nothing.
std::optional<Dims> integers_of(const Attribute& value) {
  if (const auto* flag = value.get<bool>()) return Dims{*flag ? 1 : 0};
  if (const auto* integer = value.get<IntegerAttr>()) return Dims{integer->value};
  if (const auto* list = value.get<I64s>()) return *list;
  if (const auto* flags = value.get<BoolsAttr>())
    return Dims(flags->values.begin(), flags->values.end());
  if (const auto* array = value.get<ArrayAttr>()) {
    Dims all;
    for (const Attribute& each : *array) {
      const auto* const integer = each.get<IntegerAttr>();
      if (integer == nullptr) return {};
      all.push_back(integer->value);
    }
    return all;
  }
  return {};
}

// A dense array, which a program may state to be as large as it likes.
std::optional<program::CompositeAttribute> dense_attribute(const std::string& name,
                                                           const DenseAttr& dense) {
  constexpr int64_t kMost = 1 << 10;
  const ElementType type = dense.shape.element_type();
  if (dense.shape.element_count() > kMost || is_complex(type)) return {};
  const Literal values = dense.expanded();
  Dims integers;
  std::vector<double> reals;
  for (int64_t i = 0; i < values.element_count(); ++i) {
    if (is_float(type)) {
      reals.push_back(values.get_double(i));
    } else {
      integers.push_back(values.get_integer(i));
    }
  }
  if (is_float(type)) return program::CompositeAttribute{name, std::move(reals)};
  return program::CompositeAttribute{name, std::move(integers)};
}

program::CompositeAttribute composite_attribute(const std::string& name, const Attribute& value) {
  if (const auto integers = integers_of(value)) return {name, *integers};
  if (const auto* real = value.get<FloatAttr>()) return {name, std::vector<double>{real->value()}};
  if (const auto* text = value.get<std::string>()) return {name, *text};
  if (const auto* dense = value.get<DenseAttr>()) {
    if (auto attribute = dense_attribute(name, *dense)) return *std::move(attribute);
  }
  return {name, attribute_text(value, TextForm::kHlo)};
}

Call composite(const Instruction& op) {
  program::Composite call;
  call.name = op.text(AttrKey::name);
  call.version = op.integer(AttrKey::version, 0);
  if (const auto* attributes = op.attr<Dict>(AttrKey::composite_attributes)) {
    for (const auto& [name, value] : *attributes) {
      call.attributes.push_back(composite_attribute(name, value));
    }
  }
  return call;
}

// A custom call of row-major arrays, without tokens and aliases, by its target's name.
Call custom_call(const Instruction& op) {
  const std::string_view target = op.text(AttrKey::call_target_name);
  if (target.starts_with("check.") || target.starts_with("interpreter.")) return {};
  const auto foreign = foreign_call_of(op);
  const auto is_row_major = [](const program::ForeignArray& array) {
    return array.minor_to_major.empty() && !array.is_token;
  };
  if (!foreign || !foreign->aliases.empty() ||
      !std::ranges::all_of(foreign->operands, is_row_major) ||
      !std::ranges::all_of(foreign->results, is_row_major)) {
    return {};
  }
  program::Composite call;
  call.name = target;
  const Dict* attributes = attributes_of_call(op);
  for (size_t i = 0; attributes != nullptr && i < attributes->size(); ++i) {
    call.attributes.push_back(composite_attribute((*attributes)[i].first, (*attributes)[i].second));
  }
  const auto* text = op.attr<std::string>(AttrKey::backend_config);
  if (text != nullptr && !text->empty()) call.attributes.push_back({"backend_config", *text});
  return call;
}

Call convolution(const Instruction& op) {
  if (op.operand_type(0).element_type() != op.operand_type(1).element_type()) return {};
  return convolution_of(op);
}

Call sort_of_dimension(const Instruction& op) {
  return op.operand_type(0).rank() == 0 ? Call() : sort(op);
}

}  // namespace

namespace calls {
constinit const LibraryCallRule composite = {lower::composite};
constinit const LibraryCallRule custom_call = {lower::custom_call};
constinit const LibraryCallRule contraction = {lower::contraction};
constinit const LibraryCallRule convolution = {lower::convolution};
constinit const LibraryCallRule fft = {lower::fft};
constinit const LibraryCallRule scan = {lower::scan};
constinit const LibraryCallRule sort = {sort_of_dimension};
}  // namespace calls

program::Convolution convolution_of(const Instruction& op) {
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  const size_t spatial = dims.input_spatial.size();
  program::Convolution c;
  c.input = {dims.input_batch, dims.input_feature, dims.input_spatial};
  c.kernel = {dims.kernel_output_feature, dims.kernel_input_feature, dims.kernel_spatial};
  c.output = {dims.output_batch, dims.output_feature, dims.output_spatial};
  c.strides = op.i64s_or(AttrKey::window_strides, spatial, 1);
  c.input_dilation = op.i64s_or(AttrKey::lhs_dilation, spatial, 1);
  c.kernel_dilation = op.i64s_or(AttrKey::rhs_dilation, spatial, 1);
  const I64Matrix padding = op.padding_or_zero(spatial);
  const auto* reversal = op.attr<BoolsAttr>(AttrKey::window_reversal);
  for (size_t s = 0; s < spatial; ++s) {
    c.padding_low.push_back(padding.at(static_cast<int64_t>(s), 0));
    c.padding_high.push_back(padding.at(static_cast<int64_t>(s), 1));
    if (reversal != nullptr && reversal->values[s] != 0) {
      c.reversed.push_back(static_cast<int64_t>(s));
    }
  }
  c.feature_groups = op.integer(AttrKey::feature_group_count, 1);
  c.batch_groups = op.integer(AttrKey::batch_group_count, 1);
  return c;
}

std::optional<LibraryCall> library_call_of(const Instruction& op) {
  const LibraryCallRule* const rule = op.info().library_call;
  if (rule == nullptr) return {};
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.operand_type(i).is_tensor() || is_empty(op.operand_type(i))) return {};
  }
  for (const Type& type : op.result_types()) {
    if (!type.is_tensor() || is_empty(type)) return {};
  }
  return rule->of(op);
}

std::optional<CallSite> call_site_of(const Instruction& op) {
  auto call = library_call_of(op);
  if (!call) return {};
  CallSite site{.call = *std::move(call), .operands = {}, .results = {}, .constant = {}};
  for (const Value operand : op.operands()) {
    site.operands.emplace_back(operand.type().element_type(), operand.type().dims());
    site.constant.push_back(operand.def->code() == OpCode::kConstant &&
                            !is_inline_constant(*operand.def));
  }
  for (const Type& type : op.result_types()) {
    site.results.emplace_back(type.element_type(), type.dims());
  }
  if (!program::check(site.call, site.operands, site.results).ok()) return {};
  return site;
}

}  // namespace tenon::hlo::lower
