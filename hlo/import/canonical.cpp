#include "hlo/import/canonical.h"

#include <algorithm>

namespace tenon::hlo {
namespace {

// A longer list cannot be an attribute of an op; it only tries to use memory.
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
    return matrix->values.empty() ? I64Matrix{} : *matrix;  // one form of the empty matrix
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
  // api_version is a number in text.
  const auto* number = raw.get<IntegerAttr>();
  if (number != nullptr && number->value >= 0 &&
      number->value < static_cast<int64_t>(enum_size(kind))) {
    return EnumAttr{kind, static_cast<uint8_t>(number->value)};
  }
  return std::nullopt;
}

// An array of elements that `convert` takes each.
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

std::optional<Attribute> convert(const AttrSpec& spec, const Attribute& raw) {
  switch (spec.kind) {
    case AttrKind::kNone:
      return std::nullopt;
    case AttrKind::kBool:
    case AttrKind::kUnit:
      return wrap(as_bool(raw));
    case AttrKind::kI64:
    case AttrKind::kI32:
    case AttrKind::kChannelId:
      return wrap(as_integer(raw));
    case AttrKind::kF32: {
      const auto* real = raw.get<FloatAttr>();
      if (real == nullptr) return std::nullopt;
      return Attribute(FloatAttr::of(ElementType::kF32, real->value()));
    }
    case AttrKind::kString:
      return wrap(as_string(raw));
    case AttrKind::kSymbol:
      return as_symbol(raw);
    case AttrKind::kSymbols:
      return as_array(raw, as_symbol);
    case AttrKind::kI64s:
      return wrap(as_i64s(raw));
    case AttrKind::kI64Matrix:
      return wrap(as_matrix(raw));
    case AttrKind::kReplicaGroups:
      return raw.get<OpaqueAttr>() ? std::optional(raw) : wrap(as_matrix(raw));
    case AttrKind::kBools:
      return wrap(as_bools(raw));
    case AttrKind::kDense:
      return same<DenseAttr>(raw);
    case AttrKind::kI64sArray:
      return as_array(raw, as_i64s);
    case AttrKind::kTilings:
      return as_array(raw, [](const Attribute& e) { return as_array(e, as_i64s); });
    case AttrKind::kEnum:
      return wrap(as_enum(spec.enum_kind, raw));
    case AttrKind::kPrecisions:
      return as_array(raw, [](const Attribute& e) { return as_enum(EnumKind::kPrecision, e); });
    case AttrKind::kDotDims:
      return same<DotDims>(raw);
    case AttrKind::kGatherDims:
      return same<GatherDims>(raw);
    case AttrKind::kScatterDims:
      return same<ScatterDims>(raw);
    case AttrKind::kConvDims:
      return same<ConvDims>(raw);
    case AttrKind::kRaggedDotDims:
      return same<RaggedDotDims>(raw);
    case AttrKind::kChannelHandle:
      return same<ChannelHandle>(raw);
    case AttrKind::kDotAlgorithm:
      return same<DotAlgorithm>(raw);
    case AttrKind::kResultAccuracy:
      return same<ResultAccuracy>(raw);
    case AttrKind::kAliases:
      return as_array(raw, same<OutputOperandAlias>);
    case AttrKind::kDict:
      return raw.get<Dict>() ? std::optional(canonical_undeclared(raw)) : std::nullopt;
    case AttrKind::kAny:
      return canonical_undeclared(raw);
  }
  return std::nullopt;
}

std::string_view expectation(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
    case AttrKind::kUnit:
      return "true or false";
    case AttrKind::kI64:
    case AttrKind::kI32:
    case AttrKind::kChannelId:
      return "an integer";
    case AttrKind::kF32:
      return "a float";
    case AttrKind::kString:
      return "a string";
    case AttrKind::kSymbol:
      return "a symbol";
    case AttrKind::kSymbols:
      return "a list of symbols";
    case AttrKind::kI64s:
      return "a list of integers";
    case AttrKind::kI64Matrix:
    case AttrKind::kReplicaGroups:
      return "a two-dimensional list of integers";
    case AttrKind::kBools:
      return "a list of booleans";
    case AttrKind::kDense:
      return "a dense constant";
    case AttrKind::kI64sArray:
    case AttrKind::kTilings:
      return "a list of integer lists";
    case AttrKind::kEnum:
      return "a word of its enumeration";
    case AttrKind::kPrecisions:
      return "a list of precisions";
    case AttrKind::kDict:
      return "a dictionary";
    default:
      return "its structure";
  }
}

}  // namespace

Result<Attribute> canonical_attribute(const AttrSpec& spec, const Attribute& raw) {
  auto value = convert(spec, raw);
  if (!value) {
    return invalid_argument("attribute {} is not {}", attr_key_name(spec.key),
                            expectation(spec.kind));
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
