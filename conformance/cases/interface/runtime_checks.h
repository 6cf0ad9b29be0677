// Arrays, programs and checks for the cases of memory (runtime_memory.cpp) and of the runtime.
#pragma once

#include <fmt/format.h>

#include "conformance/cases/interface/runtime_device.h"
#include "core/types/float_convert.h"

namespace tenon::conformance::runtime_checks {

/// first, first + 7, …, as the type wraps them.
inline Literal test_numbers(Dims dims, int64_t first, ElementType type = ElementType::kS32) {
  Literal array(Shape(type, std::move(dims)));
  for (int64_t i = 0; i < array.element_count(); ++i)
    array.set_integer(i, wrap_integer(type, first + 7 * i));
  return array;
}

/// Each element, and `added`.
inline Literal plus(const Literal& x, int64_t added) {
  Literal sum = x;
  for (int64_t i = 0; i < x.element_count(); ++i)
    sum.set_integer(i, wrap_integer(x.element_type(), x.get_integer(i) + added));
  return sum;
}

/// `donor` is an attribute of the argument: " {tf.aliasing_output = 0 : i32}".
inline std::string add_one(int64_t count, std::string_view donor = "") {
  return fmt::format(
      "func.func @main(%a: tensor<{0}xi32>{1}) -> tensor<{0}xi32> {{\n"
      " %k = stablehlo.constant dense<1> : tensor<{0}xi32>\n"
      " %r = stablehlo.add %a, %k : tensor<{0}xi32>\n return %r : tensor<{0}xi32>\n}}\n",
      count, donor);
}
inline constexpr std::string_view kDonor = " {tf.aliasing_output = 0 : i32}";

/// An error with the first element that differs.
inline Status same(const Literal& got, const Literal& expected, std::string_view what) {
  if (got == expected) return {};
  for (int64_t i = 0; i < got.element_count(); ++i) {
    if (got.get_integer(i) != expected.get_integer(i)) {
      return internal_error("{}: element {} is {}, expected {}", what, i, got.element_to_string(i),
                            expected.element_to_string(i));
    }
  }
  return internal_error("{}: another shape", what);
}

// --- Checks of memory

Status donation_takes_the_buffer(RuntimeDevice& d);
Status chain_of_donations(RuntimeDevice& d);
Status held_buffers_stay(RuntimeDevice& d);
Status one_buffer_twice(RuntimeDevice& d);
Status large_temporaries(RuntimeDevice& d);
Status memory_used_up_and_given_back(RuntimeDevice& d);
Status fragmentation(RuntimeDevice& d);

}  // namespace tenon::conformance::runtime_checks
