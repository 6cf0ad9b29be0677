// Ops of XLA's own dialect that occur in StableHLO programs.
//
// XLA's conversion of HLO to StableHLO leaves some ops that StableHLO lacks: as `mhlo.erf`, or as
// a custom call of that name. TensorFlow and PyTorch/XLA send such programs.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace tenon::hlo {

inline constexpr std::string_view kMhloCopy = "mhlo.copy";  ///< The identity.
inline constexpr std::string_view kMhloTopK =
    "mhlo.topk";  ///< A custom call: attributes k, largest.

/// Ops with one operand and one result, of one type, and the ops of Tenon that compute the same.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kMhloUnary = {{
    {"mhlo.acos", "chlo.acos"},
    {"mhlo.acosh", "chlo.acosh"},
    {"mhlo.asin", "chlo.asin"},
    {"mhlo.asinh", "chlo.asinh"},
    {"mhlo.atanh", "chlo.atanh"},
    {"mhlo.cosh", "chlo.cosh"},
    {"mhlo.erf", "chlo.erf"},
    {"mhlo.erfc", "chlo.erfc"},
    {"mhlo.erf_inv", "chlo.erf_inv"},
    {"mhlo.sinh", "chlo.sinh"},
    {"mhlo.tan", "chlo.tan"},
}};

inline std::optional<std::string_view> unary_of_mhlo(std::string_view name) {
  for (const auto& [mhlo, ours] : kMhloUnary) {
    if (mhlo == name || ours == name) return ours;
  }
  return std::nullopt;
}

/// The target of the custom call by which a program for XLA names an op of Tenon: unary_of_mhlo
/// reads it again. XLA itself has no erfc, and refuses unknown names of its own dialect.
inline std::optional<std::string_view> call_target_for_xla(std::string_view name) {
  for (const auto& [mhlo, ours] : kMhloUnary) {
    if (ours == name) return ours == "chlo.erfc" ? ours : mhlo;
  }
  return std::nullopt;
}

}  // namespace tenon::hlo
