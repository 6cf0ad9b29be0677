// docs/ops.md from the op table.
#include <algorithm>
#include <array>
#include <string>

#include "hlo/ops/ops.h"

namespace tenon::hlo {
namespace {

std::string_view kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::kNone:
      return "none";
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kUnit:
      return "unit";
    case AttrKind::kI64:
      return "i64";
    case AttrKind::kI32:
      return "i32";
    case AttrKind::kF32:
      return "f32";
    case AttrKind::kString:
      return "string";
    case AttrKind::kSymbol:
      return "symbol";
    case AttrKind::kSymbols:
      return "list of symbols";
    case AttrKind::kI64s:
      return "list of i64";
    case AttrKind::kI64Matrix:
      return "matrix of i64";
    case AttrKind::kBools:
      return "list of bool";
    case AttrKind::kDense:
      return "constant array";
    case AttrKind::kI64sArray:
      return "lists of i64";
    case AttrKind::kTilings:
      return "lists of lists of i64";
    case AttrKind::kEnum:
      return "enum";
    case AttrKind::kPrecisions:
      return "list of precisions";
    case AttrKind::kDotDims:
    case AttrKind::kGatherDims:
    case AttrKind::kScatterDims:
    case AttrKind::kConvDims:
    case AttrKind::kRaggedDotDims:
      return "dimension numbers";
    case AttrKind::kChannelHandle:
    case AttrKind::kChannelId:
      return "channel";
    case AttrKind::kDotAlgorithm:
      return "algorithm";
    case AttrKind::kResultAccuracy:
      return "accuracy";
    case AttrKind::kAliases:
      return "list of aliases";
    case AttrKind::kDict:
      return "dictionary";
    case AttrKind::kReplicaGroups:
      return "matrix of i64 or mesh axes";
    case AttrKind::kAny:
      return "any";
  }
  return "?";
}

std::string default_text(const AttrSpec& spec) {
  switch (spec.default_value) {
    case AttrDefault::kRequired:
      return "required";
    case AttrDefault::kOptional:
      return "optional";
    case AttrDefault::kFalse:
      return "default false";
    case AttrDefault::kTrue:
      return "default true";
    case AttrDefault::kZero:
      return "default 0";
    case AttrDefault::kMinusOne:
      return "default -1";
    case AttrDefault::kEmpty:
      return "default empty";
    case AttrDefault::kOnes:
      return "default ones";
    case AttrDefault::kZeros:
      return "default zeros";
    case AttrDefault::kFalses:
      return "default all false";
    case AttrDefault::kEnumZero:
      return fmt::format("default {}", enum_word({spec.enum_kind, 0}));
    case AttrDefault::kOriginalApi:
      return fmt::format(
          "default {}",
          enum_word({spec.enum_kind, static_cast<uint8_t>(CustomCallApiVersion::kOriginal)}));
  }
  return "?";
}

std::string attribute_text(const AttrSpec& spec) {
  const bool is_enum = spec.kind == AttrKind::kEnum;
  return fmt::format("`{}`: {}, {}", attr_key_name(spec.key),
                     is_enum ? enum_kind_name(spec.enum_kind) : kind_name(spec.kind),
                     default_text(spec));
}

// "`lhs`, `rhs`", with "…" behind a list.
std::string names_text(std::span<const std::string_view> names) {
  std::string text;
  for (std::string_view name : names) {
    const bool is_list = name.ends_with('*');
    if (is_list) name.remove_suffix(1);
    text += fmt::format("{}`{}`{}", text.empty() ? "" : ", ", name, is_list ? "…" : "");
  }
  return text;
}

std::string attributes_text(const OpInfo& info) {
  std::string text;
  for (const AttrSpec& spec : info.attribute_specs()) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", attribute_text(spec));
  }
  return text;
}

std::string accuracy_text(const OpInfo& info) {
  if (info.ulp_bound < 0) return "order of combination";
  return info.ulp_bound == 0 ? "exact" : fmt::format("{} ulp", info.ulp_bound);
}

// A cell cannot hold the character that ends it.
std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string row_text(const OpInfo& info) {
  return fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", info.name, cell(info.summary),
                     names_text(info.operand_names()), cell(attributes_text(info)),
                     names_text(info.region_names()), names_text(info.result_names()),
                     info.is_decomposable() ? "decomposable" : "primitive", accuracy_text(info));
}

std::string capitalized(std::string_view text) {
  std::string result(text);
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z') result[0] -= 'a' - 'A';
  return result;
}

constexpr std::array kDialects = {
    std::pair{std::string_view("stablehlo"), std::string_view("StableHLO")},
    std::pair{std::string_view("chlo"), std::string_view("CHLO")},
    std::pair{std::string_view("func"), std::string_view("Functions")},
    std::pair{std::string_view("tenon"), std::string_view("Structure of the optimizer")},
};
constexpr int kCategoryCount = static_cast<int>(Category::kDynamic) + 1;

}  // namespace

std::string ops_documentation() {
  std::string text =
      "<!-- Generated by `tenon ops --markdown` from hlo/ops/op_table.inc; do not edit. -->\n"
      "# Ops\n\n"
      "Every op of Tenon by dialect and category. A decomposable op has a decomposition into "
      "simpler\n"
      "ops; a primitive one is evaluated and compiled as it is. Accuracy is what a backend owes "
      "the\n"
      "exact result, in units in the last place. A name followed by … stands for any number.\n";
  for (const auto& [dialect, title] : kDialects) {
    text += fmt::format("\n## {}\n", title);
    for (int i = 0; i < kCategoryCount; ++i) {
      const auto category = static_cast<Category>(i);
      std::string rows;
      for (const OpInfo& info : all_ops()) {
        if (info.dialect() == dialect && info.category == category) rows += row_text(info);
      }
      if (rows.empty()) continue;
      text += fmt::format(
          "\n### {}\n\n"
          "| Op | Summary | Operands | Attributes | Regions | Results | Kind | Accuracy |\n"
          "|---|---|---|---|---|---|---|---|\n{}",
          capitalized(category_name(category)), rows);
    }
  }
  return text;
}

}  // namespace tenon::hlo
