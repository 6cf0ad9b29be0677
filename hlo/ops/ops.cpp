#include "hlo/ops/ops.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace tenon::hlo {
namespace {

constexpr std::string_view kAttrNames[] = {
#define TENON_ATTR(name) #name,
#include "hlo/ops/attr_keys.inc"
#undef TENON_ATTR
};
static_assert(std::is_sorted(std::begin(kAttrNames), std::end(kAttrNames)));

}  // namespace

std::string_view attr_key_name(AttrKey key) { return kAttrNames[static_cast<size_t>(key)]; }

std::optional<AttrKey> attr_key_from_name(std::string_view name) {
  const auto* found = std::lower_bound(std::begin(kAttrNames), std::end(kAttrNames), name);
  if (found == std::end(kAttrNames) || *found != name) return std::nullopt;
  return static_cast<AttrKey>(found - std::begin(kAttrNames));
}

std::string_view category_name(Category category) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "elementwise",   "shape",  "reduction",      "contraction",  "control",
      "communication", "random", "linear algebra", "quantization", "dynamic"};
  return kNames[static_cast<size_t>(category)];
}

std::span<const AttrSpec> OpInfo::attribute_specs() const {
  size_t count = 0;
  while (count < std::size(attributes) && attributes[count].kind != AttrKind::kNone) ++count;
  return {attributes, count};
}

const AttrSpec* OpInfo::find_attribute(AttrKey key) const {
  for (const AttrSpec& spec : attribute_specs()) {
    if (spec.key == key) return &spec;
  }
  return nullptr;
}

std::optional<OpCode> op_from_name(std::string_view name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, OpCode>;
    for (const OpInfo& info : all_ops()) map->emplace(info.name, info.code);
    map->emplace("func.return", OpCode::kReturn);
    return map;
  }();
  const auto found = by_name->find(name);
  if (found == by_name->end()) return std::nullopt;
  return found->second;
}

namespace {

bool all_equal_to(const Attribute& value, int64_t expected) {
  const auto matches = [&](int64_t v) { return v == expected; };
  if (const auto* list = value.get<I64s>()) {
    return std::all_of(list->begin(), list->end(), matches);
  }
  if (const auto* matrix = value.get<I64Matrix>()) {
    return std::all_of(matrix->values.begin(), matrix->values.end(), matches);
  }
  return false;
}

bool is_empty(const Attribute& value) {
  if (const auto* text = value.get<std::string>()) return text->empty();
  if (const auto* list = value.get<I64s>()) return list->empty();
  if (const auto* matrix = value.get<I64Matrix>()) return matrix->values.empty();
  if (const auto* array = value.get<ArrayAttr>()) return array->empty();
  if (const auto* dict = value.get<Dict>()) return dict->empty();
  return false;
}

bool is_enum_value(const Attribute& value, uint8_t expected) {
  if (const auto* word = value.get<EnumAttr>()) return word->value == expected;
  const auto* array = value.get<ArrayAttr>();
  return array && std::all_of(array->begin(), array->end(), [&](const Attribute& element) {
           return is_enum_value(element, expected);
         });
}

}  // namespace

bool is_default(const AttrSpec& spec, const Attribute& value) {
  const auto* flag = value.get<bool>();
  const auto* integer = value.get<IntegerAttr>();
  switch (spec.default_value) {
    case AttrDefault::kRequired:
      return false;
    case AttrDefault::kOptional: {
      const auto* accuracy = value.get<ResultAccuracy>();
      return accuracy && *accuracy == ResultAccuracy{};
    }
    case AttrDefault::kFalse:
      return flag && !*flag;
    case AttrDefault::kTrue:
      return flag && *flag;
    case AttrDefault::kZero:
      return integer && integer->value == 0;
    case AttrDefault::kMinusOne:
      return integer && integer->value == -1;
    case AttrDefault::kEmpty:
      return is_empty(value);
    case AttrDefault::kOnes:
      return all_equal_to(value, 1);
    case AttrDefault::kZeros:
      return all_equal_to(value, 0);
    case AttrDefault::kFalses: {
      const auto* flags = value.get<BoolsAttr>();
      return flags && std::all_of(flags->values.begin(), flags->values.end(),
                                  [](uint8_t v) { return v == 0; });
    }
    case AttrDefault::kEnumZero:
      return is_enum_value(value, 0);
    case AttrDefault::kOriginalApi:
      return is_enum_value(value, static_cast<uint8_t>(CustomCallApiVersion::kOriginal));
  }
  return false;
}

TypeSet type_set_of(ElementType type) {
  switch (element_type_info(type).kind) {
    case ElementKind::kPred:
      return kTypesPred;
    case ElementKind::kSigned:
    case ElementKind::kUnsigned:
      return kTypesInt;
    case ElementKind::kFloat:
      return kTypesFloat;
    case ElementKind::kComplex:
      return kTypesComplex;
  }
  return kTypesNone;
}

}  // namespace tenon::hlo
