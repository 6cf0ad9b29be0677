#include "conformance/compare/ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::conformance {
namespace {

// The distance of the numbers of `type` about `magnitude`, at least that of denormals.
double spacing(ElementType type, double magnitude) {
  const FloatFormat& format = element_type_info(type).format;
  const int least = 1 - format.bias;  // The exponent of the least normal number.
  int exponent = least;
  if (magnitude > 0) exponent = std::max(least, std::ilogb(magnitude));
  return std::ldexp(1.0, exponent - format.mantissa_bits);
}

}  // namespace

double ulp_error(ElementType type, double got, Float128 exact, double size) {
  const double nearest = round_to(type, exact);
  const double most = float_max(type);
  const bool in_range = exact >= -Float128(most) && exact <= Float128(most);
  // NaN, infinity, and what the type has in their place.
  const bool same = got == nearest || (std::isnan(got) && std::isnan(nearest));
  if (same && (!in_range || std::isnan(got))) return 0;
  if (exact != exact || std::isnan(got)) return std::numeric_limits<double>::infinity();
  const double magnitude = std::max(std::abs(static_cast<double>(exact)), std::abs(size));
  const double unit = spacing(type, std::min(magnitude, most));
  const Float128 beyond = static_cast<Float128>(most) + unit;
  const Float128 bounded = exact > beyond ? beyond : exact < -beyond ? -beyond : exact;
  const Float128 result = std::isinf(got) ? (got > 0 ? beyond : -beyond) : Float128(got);
  const Float128 error = (result > bounded ? result - bounded : bounded - result) / unit;
  return static_cast<double>(error);
}

std::vector<LedgerEntry> Ledger::entries() const {
  std::vector<LedgerEntry> list;
  for (const auto& [key, entry] : entries_) list.push_back(entry);
  return list;
}

void merge(std::map<std::pair<std::string, ElementType>, LedgerEntry>& into,
           const LedgerEntry& entry) {
  const auto [place, is_new] = into.try_emplace({entry.op, entry.type}, entry);
  if (is_new) return;
  const int64_t elements = place->second.elements + entry.elements;
  if (entry.error > place->second.error) place->second = entry;
  place->second.elements = elements;
}

}  // namespace tenon::conformance
