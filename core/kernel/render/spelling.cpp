#include "core/kernel/render/spelling.h"

#include <cmath>

#include "core/kernel/math/scalar.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

constexpr std::string_view kCHeader = R"(// Compile with -ffp-contract=off: only fma contracts.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float tenon_f32(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t tenon_bits32(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
)";

constexpr std::string_view kCHeaderF64 =
    R"(static inline double tenon_f64(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline uint64_t tenon_bits64(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
)";

constexpr std::string_view kOpenClHeaderF64 = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
constexpr std::string_view kOpenClHeader = R"(#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
)";
// Conversions of f16 are part of the language; arithmetic (cl_khr_fp16) is not needed.
constexpr std::string_view kOpenClHeaderF16 =
    R"(inline float tenon_of_half(uint16_t x) { return vload_half(0, (const __private half *)&x); }
inline uint16_t tenon_half(float x) { uint16_t h; vstore_half_rte(x, 0, (__private half *)&h); return h; }
)";
constexpr std::string_view kOpenClHeaderS64 = "typedef long int64_t;\ntypedef ulong uint64_t;\n";

constexpr std::string_view kCudaHeader = R"(// Compile with -fmad=false: only fma contracts.
#ifndef __CUDACC_RTC__
#include <stdint.h>
#else
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#endif
)";

constexpr Spelling kC = {kCHeader,
                         "",
                         "",
                         kCHeaderF64,
                         "void ",
                         "",
                         "static inline ",
                         "",
                         "restrict ",
                         "",
                         "",
                         "",
                         "",
                         "",
                         "f",
                         "ll",
                         "tenon_f32",
                         "tenon_f64",
                         "tenon_bits32",
                         "tenon_bits64",
                         ""};
constexpr Spelling kOpenCl = {kOpenClHeader,
                              kOpenClHeaderF16,
                              kOpenClHeaderS64,
                              kOpenClHeaderF64,
                              "__kernel ",
                              "__attribute__((reqd_work_group_size({}, 1, 1))) void ",
                              "inline ",
                              "__global ",
                              "restrict ",
                              "__local ",
                              "get_group_id(0)",
                              "get_local_id(0)",
                              "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                              "__global const volatile ",
                              "",
                              "l",
                              "as_float",
                              "as_double",
                              "as_uint",
                              "as_ulong",
                              "atomic_",
                              false,
                              true};
constexpr Spelling kCuda = {kCudaHeader,
                            "",
                            "",
                            "",
                            "extern \"C\" __global__ void ",
                            "__launch_bounds__({}) ",
                            "static __device__ __forceinline__ ",
                            "",
                            "__restrict__ ",
                            "__shared__ ",
                            "blockIdx.x",
                            "threadIdx.x",
                            "__syncthreads();",
                            "const volatile ",
                            "f",
                            "ll",
                            "__uint_as_float",
                            "__longlong_as_double",
                            "__float_as_uint",
                            "__double_as_longlong",
                            "atomic",
                            true};

}  // namespace

const Spelling& spelling_of(Language language) {
  switch (language) {
    case Language::kOpenCl:
      return kOpenCl;
    case Language::kCuda:
      return kCuda;
    default:
      return kC;
  }
}

std::string_view type_text(ElementType type) {
  switch (type) {
    case kPred:
      return "bool";
    case kS8:
      return "int8_t";
    case kS16:
      return "int16_t";
    case kS32:
      return "int32_t";
    case kS64:
      return "int64_t";
    case kU8:
      return "uint8_t";
    case kU16:
    case kF16:  // Its pattern: it is only converted.
      return "uint16_t";
    case kU32:
      return "uint32_t";
    case kU64:
      return "uint64_t";
    case kF32:
      return "float";
    default:
      return "double";
  }
}

std::string constant_text(const Spelling& spelling, ElementType type, uint64_t bits) {
  if (is_pred(type)) return bits != 0 ? "true" : "false";
  if (is_float(type)) {
    const double value = real_of(type, bits);
    const std::string_view end = type == kF32 ? "f" : "";
    if (!std::isfinite(value)) {
      return type == kF32
                 ? fmt::format("{}(0x{:X}u)", spelling.f32_from_bits, bits)
                 : fmt::format("{}(0x{:X}u{})", spelling.f64_from_bits, bits, spelling.suffix_64);
    }
    const bool is_short = value == std::trunc(value) && std::fabs(value) < 1e6;
    return is_short ? fmt::format("{:.1f}{}", value, end) : fmt::format("{:a}{}", value, end);
  }
  const bool is_signed = is_signed_integer(type);
  const bool wide = bit_width(type) == 64;
  const std::string_view end = wide ? spelling.suffix_64 : "";
  if (!is_signed) return fmt::format("{}u{}", bits, end);
  const auto number = static_cast<int64_t>(bits);
  // The least number cannot be written as a literal.
  const int64_t least = wide ? std::numeric_limits<int64_t>::min() : INT32_MIN;
  if (number == least) return fmt::format("({}{} - 1)", number + 1, end);
  return fmt::format("{}{}", number, end);
}

}  // namespace tenon::kernel
