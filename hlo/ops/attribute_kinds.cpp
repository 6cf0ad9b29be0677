#include "hlo/ops/attribute_kinds.h"

#include <algorithm>

#include "core/types/float_convert.h"

namespace tenon::hlo {
namespace {

// A longer list is never a valid attribute of an op; reading it could only exhaust memory.
constexpr int64_t kMaxListLength = 1 << 20;

std::optional<int64_t> as_integer(const Attribute& raw) {
  if (const auto* integer = raw.get<IntegerAttr>()) return integer->value;
  if (const auto* channel = raw.get<ChannelHandle>()) return channel->handle;
  return std::nullopt;
}

std::optional<bool> as_bool(const Attribute& raw) {
  if (const auto* flag = raw.get<bool>()) return *flag;
  if (raw.get<Unit>() != nullptr) return true;
  if (const auto* integer = raw.get<IntegerAttr>()) {
    if (is_pred(integer->type)) return integer->value != 0;
  }
  return std::nullopt;
}

std::optional<std::string> as_string(const Attribute& raw) {
  if (const auto* text = raw.get<std::string>()) return *text;
  if (const auto* symbol = raw.get<SymbolAttr>()) return symbol->name;
  return std::nullopt;
}

std::optional<I64s> dense_values(const DenseAttr& dense) {
  if (!is_integer(dense.shape.element_type()) && !is_pred(dense.shape.element_type())) {
    return std::nullopt;
  }
  const int64_t count = dense.shape.element_count();
  if (count > kMaxListLength) return std::nullopt;
  I64s values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = dense.values.get_integer(dense.is_splat() ? 0 : i);
  }
  return values;
}

std::optional<I64s> as_i64s(const Attribute& raw) {
  if (const auto* list = raw.get<I64s>()) return *list;
  if (const auto* dense = raw.get<DenseAttr>()) {
    return dense->shape.rank() <= 1 ? dense_values(*dense) : std::nullopt;
  }
  const auto* array = raw.get<ArrayAttr>();
  if (array == nullptr) return std::nullopt;
  I64s values;
  for (const Attribute& element : *array) {
    const auto value = as_integer(element);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<I64Matrix> as_matrix(const Attribute& raw) {
  if (const auto* matrix = raw.get<I64Matrix>()) {
    return matrix->values.empty() ? I64Matrix{} : *matrix;  // one form for the empty matrix
  }
  if (const auto* dense = raw.get<DenseAttr>()) {
    auto values = dense_values(*dense);
    if (!values) return std::nullopt;
    if (dense->shape.rank() == 2 && !values->empty()) {
      return I64Matrix{dense->shape.dim(0), dense->shape.dim(1), std::move(*values)};
    }
    if (values->empty()) return I64Matrix{};
    return std::nullopt;
  }
  if (const auto* list = raw.get<I64s>()) {
    return list->empty() ? std::optional(I64Matrix{}) : std::nullopt;
  }
  const auto* array = raw.get<ArrayAttr>();
  if (array == nullptr) return std::nullopt;
  if (array->empty()) return I64Matrix{};
  I64Matrix matrix;
  for (const Attribute& element : *array) {
    const auto row = as_i64s(element);
    if (!row) return std::nullopt;
    if (matrix.rows != 0 && matrix.columns != static_cast<int64_t>(row->size()))
      return std::nullopt;
    matrix.columns = static_cast<int64_t>(row->size());
    ++matrix.rows;
    matrix.values.insert(matrix.values.end(), row->begin(), row->end());
  }
  return matrix;
}

std::optional<BoolsAttr> as_bools(const Attribute& raw) {
  if (const auto* bools = raw.get<BoolsAttr>()) return *bools;
  BoolsAttr out;
  if (const auto* array = raw.get<ArrayAttr>()) {
    for (const Attribute& element : *array) {
      const auto flag = as_bool(element);
      const auto number = as_integer(element);
      if (!flag && !number) return std::nullopt;
      out.values.push_back(flag ? *flag : *number != 0);
    }
    return out;
  }
  const auto values = as_i64s(raw);
  if (!values) return std::nullopt;
  for (const int64_t value : *values) out.values.push_back(value != 0);
  return out;
}

std::optional<EnumAttr> as_enum(EnumKind kind, const Attribute& raw) {
  if (const auto* word = raw.get<EnumAttr>()) {
    return word->kind == kind ? std::optional(*word) : std::nullopt;
  }
  if (const auto* word = raw.get<OpaqueAttr>()) return enum_from_word(kind, word->text);
  // In text, api_version is a number.
  const auto* number = raw.get<IntegerAttr>();
  if (number != nullptr && number->value >= 0 &&
      number->value < static_cast<int64_t>(enum_size(kind))) {
    return EnumAttr{kind, static_cast<uint8_t>(number->value)};
  }
  return std::nullopt;
}

// An array whose elements `convert` converts.
template <class Convert>
std::optional<Attribute> as_array(const Attribute& raw, Convert convert) {
  const auto* array = raw.get<ArrayAttr>();
  if (array == nullptr) return std::nullopt;
  ArrayAttr out;
  for (const Attribute& element : *array) {
    auto converted = convert(element);
    if (!converted) return std::nullopt;
    out.emplace_back(std::move(*converted));
  }
  return Attribute(std::move(out));
}

std::optional<Attribute> as_symbol(const Attribute& raw) {
  auto name = as_string(raw);
  if (!name) return std::nullopt;
  return Attribute(SymbolAttr{std::move(*name)});
}

template <class T>
std::optional<Attribute> wrap(std::optional<T> value) {
  if (!value) return std::nullopt;
  return Attribute(std::move(*value));
}

template <class T>
std::optional<Attribute> same(const Attribute& raw) {
  if (raw.get<T>() == nullptr) return std::nullopt;
  return raw;
}

// --- Canonical forms, by kind

using Canonical = std::optional<Attribute>;

template <auto as>
Canonical converted(const AttrSpec&, const Attribute& raw) {
  return wrap(as(raw));
}
template <auto as>
Canonical array_of(const AttrSpec&, const Attribute& raw) {
  return as_array(raw, as);
}
template <class T>
Canonical unchanged(const AttrSpec&, const Attribute& raw) {
  return same<T>(raw);
}
Canonical f32(const AttrSpec&, const Attribute& raw) {
  const auto* real = raw.get<FloatAttr>();
  if (real == nullptr) return std::nullopt;
  return Attribute(FloatAttr::of(ElementType::kF32, real->value()));
}
Canonical symbol(const AttrSpec&, const Attribute& raw) { return as_symbol(raw); }
Canonical tilings(const AttrSpec&, const Attribute& raw) {
  return as_array(raw, [](const Attribute& tiling) { return as_array(tiling, as_i64s); });
}
Canonical word(const AttrSpec& spec, const Attribute& raw) {
  return wrap(as_enum(spec.enum_kind, raw));
}
Canonical precisions(const AttrSpec&, const Attribute& raw) {
  return as_array(raw, [](const Attribute& e) { return as_enum(EnumKind::kPrecision, e); });
}
Canonical replica_groups(const AttrSpec&, const Attribute& raw) {
  return raw.get<OpaqueAttr>() ? std::optional(raw) : wrap(as_matrix(raw));
}
Canonical dictionary(const AttrSpec&, const Attribute& raw) {
  return raw.get<Dict>() ? std::optional(canonical_undeclared(raw)) : std::nullopt;
}
Canonical any(const AttrSpec&, const Attribute& raw) { return canonical_undeclared(raw); }

// --- Checks, by kind

template <class T>
bool is(const AttrSpec&, const Attribute& value) {
  return value.get<T>() != nullptr;
}

bool is_enum(const Attribute& value, EnumKind kind) {
  const auto* found = value.get<EnumAttr>();
  return found != nullptr && found->kind == kind && found->value < enum_size(kind);
}

template <class Predicate>
bool is_array_of(const Attribute& value, Predicate predicate) {
  const auto* array = value.get<ArrayAttr>();
  return array != nullptr && std::all_of(array->begin(), array->end(), predicate);
}

template <class T>
bool holds_each(const AttrSpec&, const Attribute& value) {
  return is_array_of(value, [](const Attribute& v) { return v.get<T>() != nullptr; });
}

bool is_i32(const AttrSpec&, const Attribute& value) {
  const auto* integer = value.get<IntegerAttr>();
  return integer != nullptr && integer->value >= integer_min(ElementType::kS32) &&
         integer->value <= integer_max(ElementType::kS32);
}

bool is_matrix(const AttrSpec&, const Attribute& value) {
  const auto* matrix = value.get<I64Matrix>();
  if (matrix == nullptr || matrix->rows < 0 || matrix->columns < 0) return false;
  int64_t size = 0;
  return !__builtin_mul_overflow(matrix->rows, matrix->columns, &size) &&
         size == static_cast<int64_t>(matrix->values.size());
}

bool is_matrix_or_axes(const AttrSpec& spec, const Attribute& value) {
  return is_matrix(spec, value) || value.get<OpaqueAttr>() != nullptr;
}

bool is_dense(const AttrSpec&, const Attribute& value) {
  const auto* dense = value.get<DenseAttr>();
  if (dense == nullptr || !dense->shape.is_static()) return false;
  const Dims& dims = dense->shape.dims();
  const Dims& bounds = dense->shape.bounds();
  const auto is_bad = [](int64_t bound) { return bound < 0 && bound != kDynamic; };
  if ((!bounds.empty() && bounds.size() != dims.size()) || std::ranges::any_of(bounds, is_bad)) {
    return false;
  }
  if (std::ranges::any_of(dims, [](int64_t size) { return size < 0; }) ||
      !checked_element_count(dims)) {
    return false;
  }
  const Shape& shape = dense->values.shape();
  return shape.element_type() == dense->shape.element_type() &&
         (shape.is_scalar() || shape.dims() == dims);
}

bool are_tilings(const AttrSpec&, const Attribute& value) {
  return is_array_of(value, [](const Attribute& tiling) {
    return is_array_of(tiling, [](const Attribute& v) { return v.get<I64s>() != nullptr; });
  });
}

bool is_word(const AttrSpec& spec, const Attribute& value) {
  return is_enum(value, spec.enum_kind);
}

bool are_precisions(const AttrSpec&, const Attribute& value) {
  return is_array_of(value, [](const Attribute& v) { return is_enum(v, EnumKind::kPrecision); });
}

bool is_anything(const AttrSpec&, const Attribute&) { return true; }

// --- The table

constexpr std::string_view kStructure = "its structure";
constexpr std::string_view kDimensions = "dimension numbers";

constexpr AttrKindInfo kKinds[] = {
    {AttrKind::kNone, "none", kStructure, [](auto&, auto&) { return Canonical(); },
     [](auto&, auto&) { return false; }},
    {AttrKind::kBool, "bool", "true or false", converted<as_bool>, is<bool>},
    {AttrKind::kUnit, "unit", "true or false", converted<as_bool>, is<bool>},
    {AttrKind::kI64, "i64", "an integer", converted<as_integer>, is<IntegerAttr>},
    {AttrKind::kI32, "i32", "an integer", converted<as_integer>, is_i32},
    {AttrKind::kF32, "f32", "a float", f32, is<FloatAttr>},
    {AttrKind::kString, "string", "a string", converted<as_string>, is<std::string>},
    {AttrKind::kSymbol, "symbol", "a symbol", symbol, is<SymbolAttr>},
    {AttrKind::kSymbols, "list of symbols", "a list of symbols", array_of<as_symbol>,
     holds_each<SymbolAttr>},
    {AttrKind::kI64s, "list of i64", "a list of integers", converted<as_i64s>, is<I64s>},
    {AttrKind::kI64Matrix, "matrix of i64", "a two-dimensional list of integers",
     converted<as_matrix>, is_matrix},
    {AttrKind::kBools, "list of bool", "a list of booleans", converted<as_bools>, is<BoolsAttr>},
    {AttrKind::kDense, "constant array", "a dense constant", unchanged<DenseAttr>, is_dense},
    {AttrKind::kI64sArray, "lists of i64", "a list of integer lists", array_of<as_i64s>,
     holds_each<I64s>},
    {AttrKind::kTilings, "lists of lists of i64", "a list of integer lists", tilings, are_tilings},
    {AttrKind::kEnum, "enum", "a word of its enumeration", word, is_word},
    {AttrKind::kPrecisions, "list of precisions", "a list of precisions", precisions,
     are_precisions},
    {AttrKind::kDotDims, kDimensions, kStructure, unchanged<DotDims>, is<DotDims>},
    {AttrKind::kGatherDims, kDimensions, kStructure, unchanged<GatherDims>, is<GatherDims>},
    {AttrKind::kScatterDims, kDimensions, kStructure, unchanged<ScatterDims>, is<ScatterDims>},
    {AttrKind::kConvDims, kDimensions, kStructure, unchanged<ConvDims>, is<ConvDims>},
    {AttrKind::kRaggedDotDims, kDimensions, kStructure, unchanged<RaggedDotDims>,
     is<RaggedDotDims>},
    {AttrKind::kChannelHandle, "channel", kStructure, unchanged<ChannelHandle>, is<ChannelHandle>},
    {AttrKind::kChannelId, "channel", "an integer", converted<as_integer>, is<IntegerAttr>},
    {AttrKind::kDotAlgorithm, "algorithm", kStructure, unchanged<DotAlgorithm>, is<DotAlgorithm>},
    {AttrKind::kResultAccuracy, "accuracy", kStructure, unchanged<ResultAccuracy>,
     is<ResultAccuracy>},
    {AttrKind::kAliases, "list of aliases", kStructure, array_of<same<OutputOperandAlias>>,
     holds_each<OutputOperandAlias>},
    {AttrKind::kDict, "dictionary", "a dictionary", dictionary, is<Dict>},
    {AttrKind::kReplicaGroups, "matrix of i64 or mesh axes", "a two-dimensional list of integers",
     replica_groups, is_matrix_or_axes},
    {AttrKind::kAny, "any", kStructure, any, is_anything},
};
static_assert(
    [] {
      for (size_t i = 0; i < std::size(kKinds); ++i) {
        if (static_cast<size_t>(kKinds[i].kind) != i) return false;
      }
      return std::size(kKinds) == static_cast<size_t>(AttrKind::kAny) + 1;
    }(),
    "a kind of attributes has no row, or rows are out of order");

}  // namespace

const AttrKindInfo& attr_kind_info(AttrKind kind) { return kKinds[static_cast<size_t>(kind)]; }

Result<Attribute> canonical_attribute(const AttrSpec& spec, const Attribute& raw) {
  const AttrKindInfo& kind = attr_kind_info(spec.kind);
  auto value = kind.canonical(spec, raw);
  if (!value) {
    return invalid_argument("attribute {} is not {}", attr_key_name(spec.key), kind.expected);
  }
  return std::move(*value);
}

Attribute canonical_undeclared(const Attribute& raw) {
  if (const auto* list = raw.get<I64s>()) {
    return Attribute(DenseAttr::of(Literal::from_i64s(*list)));
  }
  if (const auto* bools = raw.get<BoolsAttr>()) {
    Literal literal(Shape(ElementType::kPred, {static_cast<int64_t>(bools->values.size())}));
    for (size_t i = 0; i < bools->values.size(); ++i) {
      literal.set_integer(static_cast<int64_t>(i), bools->values[i]);
    }
    return Attribute(DenseAttr::of(std::move(literal)));
  }
  if (const auto* array = raw.get<ArrayAttr>()) {
    ArrayAttr out;
    for (const Attribute& element : *array) out.push_back(canonical_undeclared(element));
    return Attribute(std::move(out));
  }
  if (const auto* dict = raw.get<Dict>()) return Attribute(canonical_undeclared(*dict));
  return raw;
}

Dict canonical_undeclared(const Dict& raw) {
  Dict out;
  out.reserve(raw.size());
  for (const auto& [key, value] : raw) out.emplace_back(key, canonical_undeclared(value));
  return out;
}

}  // namespace tenon::hlo
