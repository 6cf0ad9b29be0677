// How many enumerators an enumeration has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tenon {

/// Whether E has an enumerator of this value: compilers write its name in a function's, and a
/// number or a cast where there is none.
template <class E, E value>
constexpr bool is_enumerator() {
  constexpr std::string_view kText = __PRETTY_FUNCTION__;  // "… [with E = F; E value = F::kName; …"
  constexpr size_t kAt = kText.rfind("value = ") + std::string_view("value = ").size();
  constexpr char kFirst = kText[kAt];
  return kFirst != '(' && (kFirst < '0' || kFirst > '9');
}

/// The number of E's enumerators, which begin at 0, leave out none, and are not more than 64.
template <class E>
  requires std::is_enum_v<E>
constexpr uint64_t enumerator_count() {
  constexpr size_t kMost = 64;
  return []<size_t... i>(std::index_sequence<i...>) {
    uint64_t count = 0;
    static_cast<void>(((is_enumerator<E, static_cast<E>(i)>() && ++count) && ...));
    return count;
  }(std::make_index_sequence<kMost>());
}

}  // namespace tenon
