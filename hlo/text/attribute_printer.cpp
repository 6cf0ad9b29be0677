#include "hlo/text/attribute_printer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "core/types/float_convert.h"

namespace tenon::hlo {
namespace {

bool is_bare_word(std::string_view text) {
  if (text.empty() || (std::isalpha(static_cast<unsigned char>(text[0])) == 0 && text[0] != '_')) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '$' || c == '.';
  });
}

// A float as MLIR reads it: a decimal with a point, or the bits in hexadecimal.
std::string float_text(ElementType type, uint64_t bits) {
  const double value = decode_float(type, bits);
  const bool exact = encode_float(type, value) == bits;
  if (!std::isfinite(value) || !exact) {
    return fmt::format("0x{:0{}X}", bits, (bit_width(type) + 3) / 4);
  }
  std::string text = float_to_string(type, value);
  if (text.find('.') == std::string::npos) {
    const size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

std::string element_text(const Literal& literal, int64_t index) {
  const ElementType type = literal.element_type();
  const auto part_bits = [&](size_t part) {
    uint64_t bits = 0;
    const size_t size = storage_bytes(complex_part(type));
    std::memcpy(
        &bits,
        literal.data().data() + static_cast<size_t>(index) * storage_bytes(type) + part * size,
        size);
    return bits;
  };
  if (is_float(type)) return float_text(type, part_bits(0));
  if (is_complex(type)) {
    const ElementType part = complex_part(type);
    return fmt::format("({},{})", float_text(part, part_bits(0)), float_text(part, part_bits(1)));
  }
  return literal.element_to_string(index);
}

void append_elements(const Literal& literal, size_t axis, int64_t& next, std::string& out) {
  if (axis == literal.shape().dims().size()) {
    out += element_text(literal, next++);
    return;
  }
  out += '[';
  for (int64_t i = 0; i < literal.shape().dim(axis); ++i) {
    if (i != 0) out += ", ";
    append_elements(literal, axis + 1, next, out);
  }
  out += ']';
}

std::string hex_data(const Literal& literal) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const int width = bit_width(literal.element_type());
  std::string out = "\"0x";
  out.reserve(literal.data().size() * 2 + 4);
  for (const std::byte byte : literal.data()) {
    const unsigned value = static_cast<unsigned>(byte) & (width < 8 ? (1u << width) - 1 : 0xFFu);
    out += kDigits[value >> 4];
    out += kDigits[value & 15];
  }
  return out + '"';
}

std::string matrix_text(const I64Matrix& matrix) {
  std::string out = "[";
  for (int64_t row = 0; row < matrix.rows; ++row) {
    if (row != 0) out += ", ";
    const auto begin = matrix.values.begin() + row * matrix.columns;
    out += list_text(I64s(begin, begin + matrix.columns));
  }
  return out + "]";
}

std::string field(std::string_view name, const I64s& list) {
  return list.empty() ? "" : fmt::format("{} = {}, ", name, list_text(list));
}

std::string struct_text(std::string_view head, std::string fields) {
  if (fields.ends_with(", ")) fields.resize(fields.size() - 2);
  return fmt::format("{}<{}>", head, fields);
}

// Lists of layouts or tilings, nested to any depth.
std::string layouts_text(const Attribute& value, bool hlo) {
  if (const auto* list = value.get<I64s>()) {
    return hlo ? list_text(*list)
               : fmt::format("dense<{}> : tensor<{}xindex>", list->empty() ? "" : list_text(*list),
                             list->size());
  }
  const auto* array = value.get<ArrayAttr>();
  std::string out = "[";
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (i != 0) out += ", ";
    out += layouts_text((*array)[i], hlo);
  }
  return out + "]";
}

std::string array_text(const ArrayAttr& array, TextForm form) {
  std::string out = "[";
  for (size_t i = 0; i < array.size(); ++i) {
    if (i != 0) out += ", ";
    out += attribute_text(array[i], form);
  }
  return out + "]";
}

struct AttributePrinter {
  TextForm form;

  std::string operator()(const Unit&) const { return "unit"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const IntegerAttr& a) const {
    const auto type = element_type_info(a.type).mlir_name;
    return a.type == ElementType::kU64
               ? fmt::format("{} : {}", static_cast<uint64_t>(a.value), type)
               : fmt::format("{} : {}", a.value, type);
  }
  std::string operator()(const FloatAttr& a) const {
    return fmt::format("{} : {}", float_text(a.type, a.bits), element_type_info(a.type).mlir_name);
  }
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(const SymbolAttr& symbol) const { return symbol_text(symbol.name); }
  std::string operator()(const OpaqueAttr& opaque) const { return opaque.text; }
  std::string operator()(const EnumAttr& word) const {
    return fmt::format("#stablehlo<{} {}>", enum_kind_name(word.kind), enum_word(word));
  }
  std::string operator()(const I64s& list) const {
    if (list.empty()) return "array<i64>";
    const std::string inner = list_text(list);
    return fmt::format("array<i64: {}>", inner.substr(1, inner.size() - 2));
  }
  std::string operator()(const BoolsAttr& list) const {
    std::string out;
    for (const uint8_t value : list.values) out += value != 0 ? "true, " : "false, ";
    if (out.empty()) return "array<i1>";
    return fmt::format("array<i1: {}>", out.substr(0, out.size() - 2));
  }
  std::string operator()(const ChannelHandle& c) const {
    return fmt::format("#stablehlo.channel_handle<handle = {}, type = {}>", c.handle, c.type);
  }
  std::string operator()(const Boxed<I64Matrix>& m) const {
    if (m->values.empty()) {
      return fmt::format("dense<> : {}", type_text(Type::tensor(ElementType::kS64, {0, 0}), form));
    }
    return fmt::format("dense<{}> : {}", matrix_text(*m),
                       type_text(Type::tensor(ElementType::kS64, {m->rows, m->columns}), form));
  }
  std::string operator()(const Boxed<DenseAttr>& dense) const {
    return fmt::format("{} : {}", dense_text(*dense, form), type_text(Type(dense->shape), form));
  }
  std::string operator()(const Boxed<Type>& type) const { return type_text(*type, form); }
  std::string operator()(const Boxed<DotDims>& d) const {
    return struct_text("#stablehlo.dot", dot_fields(*d));
  }
  std::string operator()(const Boxed<RaggedDotDims>& d) const {
    return struct_text("#chlo.ragged_dot", dot_fields(d->dot) +
                                               field("lhs_ragged_dimensions", d->lhs_ragged) +
                                               field("rhs_group_dimensions", d->rhs_group));
  }
  std::string operator()(const Boxed<GatherDims>& d) const {
    return struct_text("#stablehlo.gather",
                       field("offset_dims", d->offset_dims) +
                           field("collapsed_slice_dims", d->collapsed_slice_dims) +
                           field("operand_batching_dims", d->operand_batching_dims) +
                           field("start_indices_batching_dims", d->start_indices_batching_dims) +
                           field("start_index_map", d->start_index_map) +
                           index_vector(d->index_vector_dim));
  }
  std::string operator()(const Boxed<ScatterDims>& d) const {
    return struct_text(
        "#stablehlo.scatter",
        field("update_window_dims", d->update_window_dims) +
            field("inserted_window_dims", d->inserted_window_dims) +
            field("input_batching_dims", d->input_batching_dims) +
            field("scatter_indices_batching_dims", d->scatter_indices_batching_dims) +
            field("scatter_dims_to_operand_dims", d->scatter_dims_to_operand_dims) +
            index_vector(d->index_vector_dim));
  }
  std::string operator()(const Boxed<ConvDims>& d) const {
    return fmt::format("#stablehlo.conv<{}>", conv_dims_text(*d));
  }
  std::string operator()(const Boxed<DotAlgorithm>& a) const {
    return "#stablehlo.dot_algorithm" + dot_algorithm_text(*a);
  }
  std::string operator()(const Boxed<ResultAccuracy>& a) const {
    std::string out;
    if (a->atol != 0) out += fmt::format("atol = {}, ", real(a->atol));
    if (a->rtol != 0) out += fmt::format("rtol = {}, ", real(a->rtol));
    if (a->ulps != 0) out += fmt::format("ulps = {}, ", a->ulps);
    return fmt::format("#stablehlo.result_accuracy<{}mode = #stablehlo.result_accuracy_mode<{}>>",
                       out,
                       enum_word({EnumKind::kResultAccuracyMode, static_cast<uint8_t>(a->mode)}));
  }
  std::string operator()(const Boxed<OutputOperandAlias>& a) const {
    return fmt::format(
        "#stablehlo.output_operand_alias<output_tuple_indices = {}, operand_index = {}, "
        "operand_tuple_indices = {}>",
        list_text(a->output_tuple_indices), a->operand_index, list_text(a->operand_tuple_indices));
  }
  std::string operator()(const Boxed<ArrayAttr>& array) const { return array_text(*array, form); }
  std::string operator()(const Boxed<Dict>& dict) const { return dict_text(*dict, form); }

 private:
  static std::string dot_fields(const DotDims& d) {
    return field("lhs_batching_dimensions", d.lhs_batching) +
           field("rhs_batching_dimensions", d.rhs_batching) +
           field("lhs_contracting_dimensions", d.lhs_contracting) +
           field("rhs_contracting_dimensions", d.rhs_contracting);
  }
  static std::string index_vector(int64_t dim) {
    return dim == 0 ? "" : fmt::format("index_vector_dim = {}, ", dim);
  }
  static std::string real(double value) {
    return float_text(ElementType::kF64, encode_float(ElementType::kF64, value));
  }
};

}  // namespace

std::string type_text(const Type& type, TextForm form) {
  return form == TextForm::kHlo ? type.to_string() : type.to_mlir();
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string symbol_text(std::string_view name) {
  return is_bare_word(name) ? fmt::format("@{}", name) : fmt::format("@{}", quoted(name));
}

std::string list_text(const I64s& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
  }
  return out + "]";
}

std::string dense_text(const DenseAttr& dense, TextForm) {
  if (dense.shape.element_count() == 0) return "dense<>";
  if (dense.values.shape().is_scalar())
    return fmt::format("dense<{}>", element_text(dense.values, 0));
  const ElementType type = dense.shape.element_type();
  if (dense.shape.element_count() > 100 && !is_pred(type)) {
    return fmt::format("dense<{}>", hex_data(dense.values));
  }
  std::string out = "dense<";
  int64_t next = 0;
  append_elements(dense.values, 0, next, out);
  return out + ">";
}

std::string conv_dims_text(const ConvDims& d) {
  const auto list = [](int64_t first, std::string_view first_name, int64_t second,
                       std::string_view second_name, const I64s& spatial) {
    std::vector<std::string> places(spatial.size() + 2, "?");
    const auto put = [&](int64_t axis, std::string name) {
      if (axis >= 0 && axis < static_cast<int64_t>(places.size())) {
        places[static_cast<size_t>(axis)] = std::move(name);
      }
    };
    put(first, std::string(first_name));
    put(second, std::string(second_name));
    for (size_t i = 0; i < spatial.size(); ++i) put(spatial[i], fmt::format("{}", i));
    std::string out = "[";
    for (size_t i = 0; i < places.size(); ++i) out += (i == 0 ? "" : ", ") + places[i];
    return out + "]";
  };
  return fmt::format(
      "{}x{}->{}", list(d.input_batch, "b", d.input_feature, "f", d.input_spatial),
      list(d.kernel_input_feature, "i", d.kernel_output_feature, "o", d.kernel_spatial),
      list(d.output_batch, "b", d.output_feature, "f", d.output_spatial));
}

std::string dot_algorithm_text(const DotAlgorithm& a) {
  const auto name = [](const PrecisionType& type) {
    return type.is_tf32 ? std::string_view("tf32") : element_type_info(type.type).mlir_name;
  };
  return fmt::format(
      "<lhs_precision_type = {}, rhs_precision_type = {}, accumulation_type = {}, "
      "lhs_component_count = {}, rhs_component_count = {}, num_primitive_operations = {}, "
      "allow_imprecise_accumulation = {}>",
      name(a.lhs_precision), name(a.rhs_precision), name(a.accumulation), a.lhs_component_count,
      a.rhs_component_count, a.num_primitive_operations, a.allow_imprecise_accumulation);
}

std::string attribute_text(const Attribute& value, TextForm form) {
  return std::visit(AttributePrinter{form}, value.value());
}

std::string attribute_text(const AttrSpec& spec, const Attribute& value, TextForm form) {
  const auto* integer = value.get<IntegerAttr>();
  const bool hlo = form == TextForm::kHlo;
  switch (spec.kind) {
    case AttrKind::kI64:
      return fmt::format("{}{}", integer ? integer->value : 0, hlo ? "" : " : i64");
    case AttrKind::kI32:
      return fmt::format("{}{}", integer ? integer->value : 0, hlo ? "" : " : i32");
    case AttrKind::kChannelId:
      if (hlo) return fmt::format("{}", integer ? integer->value : 0);
      return attribute_text(Attribute(ChannelHandle{integer ? integer->value : 0, 0}), form);
    case AttrKind::kI64s:
      if (const auto* list = value.get<I64s>(); list && hlo) return list_text(*list);
      break;
    case AttrKind::kI64Matrix:
    case AttrKind::kReplicaGroups:
      if (const auto* matrix = value.get<I64Matrix>(); matrix && hlo) return matrix_text(*matrix);
      break;
    case AttrKind::kI64sArray:
    case AttrKind::kTilings:
      return layouts_text(value, hlo);
    case AttrKind::kEnum:
      if (const auto* word = value.get<EnumAttr>()) {
        if (hlo) return std::string(enum_word(*word));
        if (word->kind == EnumKind::kCustomCallApiVersion)
          return fmt::format("{} : i32", word->value);
      }
      break;
    case AttrKind::kPrecisions:
      if (const auto* array = value.get<ArrayAttr>(); array && hlo) {
        std::string out = "[";
        for (size_t i = 0; i < array->size(); ++i) {
          const auto* word = (*array)[i].get<EnumAttr>();
          out += fmt::format("{}{}", i == 0 ? "" : ", ", word ? enum_word(*word) : "?");
        }
        return out + "]";
      }
      break;
    default:
      break;
  }
  return attribute_text(value, form);
}

std::string dict_text(const Dict& dict, TextForm form) {
  std::string out = "{";
  for (size_t i = 0; i < dict.size(); ++i) {
    const auto& [key, value] = dict[i];
    if (i != 0) out += ", ";
    out += is_bare_word(key) ? key : quoted(key);
    if (value.get<Unit>() == nullptr) out += " = " + attribute_text(value, form);
  }
  return out + "}";
}

}  // namespace tenon::hlo
