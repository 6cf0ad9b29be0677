#include "hlo/types/attribute.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/types/float_convert.h"

namespace tenon::hlo {
namespace {

struct EnumRow {
  EnumKind kind;
  std::string_view name;
  std::span<const std::string_view> words;
};

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kComparisonTypes[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED",
                                                 "UNSIGNED"};
constexpr std::string_view kPrecisions[] = {"DEFAULT", "HIGH", "HIGHEST"};
constexpr std::string_view kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
constexpr std::string_view kDistributions[] = {"", "UNIFORM", "NORMAL"};
constexpr std::string_view kTransposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
                                            "ADJOINT"};
constexpr std::string_view kApiVersions[] = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
constexpr std::string_view kAccuracyModes[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};

constexpr EnumRow kEnums[] = {
    {EnumKind::kComparisonDirection, "comparison_direction", kDirections},
    {EnumKind::kComparisonType, "comparison_type", kComparisonTypes},
    {EnumKind::kPrecision, "precision", kPrecisions},
    {EnumKind::kFftType, "fft_type", kFftTypes},
    {EnumKind::kRngAlgorithm, "rng_algorithm", kAlgorithms},
    {EnumKind::kRngDistribution, "rng_distribution", kDistributions},
    {EnumKind::kTranspose, "transpose", kTransposes},
    {EnumKind::kCustomCallApiVersion, "custom_call_api_version", kApiVersions},
    {EnumKind::kResultAccuracyMode, "result_accuracy_mode", kAccuracyModes},
};

const EnumRow& row_of(EnumKind kind) { return kEnums[static_cast<size_t>(kind)]; }

}  // namespace

double FloatAttr::value() const { return decode_float(type, bits); }
FloatAttr FloatAttr::of(ElementType type, double value) {
  return FloatAttr{encode_float(type, value), type};
}

DenseAttr DenseAttr::of(Literal literal) {
  Shape shape = literal.shape();
  if (!shape.is_scalar() && literal.is_splat()) {
    return {std::move(shape),
            Literal::scalar_from_bytes(literal.element_type(), literal.data().data())};
  }
  return {std::move(shape), std::move(literal)};
}

DenseAttr DenseAttr::splat(Shape shape, Literal element) {
  if (!shape.is_scalar() && shape.element_count() == 0) {
    Literal empty(shape);
    return {std::move(shape), std::move(empty)};
  }
  return {std::move(shape), std::move(element)};
}

Literal DenseAttr::expanded() const { return is_splat() ? values.splat_to(shape) : values; }

std::string_view enum_word(EnumAttr attr) {
  const EnumRow& row = row_of(attr.kind);
  return attr.value < row.words.size() ? row.words[attr.value] : "?";
}

std::string_view enum_kind_name(EnumKind kind) { return row_of(kind).name; }

std::optional<EnumKind> enum_kind_from_name(std::string_view name) {
  for (const EnumRow& row : kEnums) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

std::optional<EnumAttr> enum_from_word(EnumKind kind, std::string_view word) {
  const EnumRow& row = row_of(kind);
  for (size_t i = 0; i < row.words.size(); ++i) {
    if (!word.empty() && row.words[i] == word) return EnumAttr{kind, static_cast<uint8_t>(i)};
  }
  return std::nullopt;
}

size_t enum_size(EnumKind kind) { return row_of(kind).words.size(); }

namespace {
auto lower_bound(const Dict& dict, std::string_view key) {
  return std::lower_bound(dict.begin(), dict.end(), key,
                          [](const auto& entry, std::string_view k) { return entry.first < k; });
}
}  // namespace

const Attribute* find(const Dict& dict, std::string_view key) {
  const auto place = lower_bound(dict, key);
  return place != dict.end() && place->first == key ? &place->second : nullptr;
}

void insert(Dict& dict, std::string key, Attribute value) {
  const auto place = dict.begin() + (lower_bound(dict, key) - dict.cbegin());
  if (place != dict.end() && place->first == key) {
    place->second = std::move(value);
  } else {
    dict.emplace(place, std::move(key), std::move(value));
  }
}

}  // namespace tenon::hlo
