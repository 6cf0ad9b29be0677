#include "core/kernel/render/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_set>

#include "core/base/digest.h"
#include "core/kernel/render/render.h"

namespace tenon::kernel {
namespace {

constexpr std::string_view kKeywords =
    // C11 and C23.
    "alignas alignof auto bool break case char const constexpr continue default do double else "
    "enum "
    "extern false float for goto if inline int long nullptr register restrict return short signed "
    "sizeof static static_assert struct switch thread_local true typedef typeof typeof_unqual "
    "union "
    "unsigned void volatile while asm fortran main NULL "
    // C++20, with its alternative tokens.
    "and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield "
    "compl "
    "concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend "
    "mutable namespace new noexcept not not_eq operator or or_eq private protected public "
    "reinterpret_cast requires static_cast template this throw try typeid typename using virtual "
    "wchar_t xor xor_eq std "
    // OpenCL C: keywords, and type names.
    "kernel global local constant generic pipe uniform read_only write_only read_write complex "
    "imaginary half quad uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t event_t "
    "sampler_t reserve_id_t queue_t ndrange_t clk_event_t clk_profiling_info cl_mem_fence_flags "
    // CUDA's variables.
    "threadIdx blockIdx blockDim gridDim warpSize dim3 cudaStream_t "
    // Names that rendered sources define.
    "kernel_table buffers scalars lane";

constexpr std::string_view kFunctions =
    // math.h, in addition to kMath; stdlib.h, string.h, stdio.h and their extensions.
    "abs labs llabs div ldiv lldiv isnan isinf isfinite isnormal signbit fpclassify isgreater "
    "isgreaterequal isless islessequal islessgreater isunordered finite drem scalb signgam "
    "isnanf isinff finitef y0 y1 yn j0 j1 jn y0f y1f ynf j0f j1f jnf sincos sincosf exp10 exp10f "
    "pow10 memchr memcmp memcpy memmove memset memccpy memmem mempcpy memrchr bcmp bcopy bzero "
    "index "
    "rindex ffs ffsl ffsll strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlen "
    "strncat strncmp strncpy strndup strpbrk strrchr strspn strstr strtok strxfrm stpcpy malloc "
    "calloc realloc free exit abort atexit getenv system rand srand qsort bsearch "
    "printf fprintf sprintf snprintf puts putchar clock time assert trap "
    // More of stdlib.h and stdio.h, which C++'s math.h and CUDA's headers include.
    "random srandom initstate setstate drand48 erand48 lrand48 nrand48 mrand48 jrand48 srand48 "
    "seed48 lcong48 atof atoi atol atoll alloca valloc realpath putenv setenv unsetenv clearenv "
    "mktemp mkstemp mkdtemp quick_exit pselect remove rename rewind scanf fopen fclose "
    "fread fwrite fflush getchar perror "
    // More of math.h, since C23.
    "fadd fsub fmul fdiv fsqrt ffma canonicalize fmaximum fminimum totalorder totalordermag "
    "nextup nextdown llogb iszero iscanonical issignaling iseqsig fromfp ufromfp getpayload "
    "setpayload "
    // Common, integer, geometric, relational and other functions of OpenCL C.
    "min max clamp mix step smoothstep degrees radians sign dot cross distance length normalize "
    "fast_distance fast_length fast_normalize abs_diff add_sat sub_sat hadd rhadd clz ctz popcount "
    "rotate mad mad24 mad_hi mad_sat mul24 mul_hi upsample select bitselect any all isequal "
    "isnotequal isordered shuffle shuffle2 barrier prefetch vec_step fract maxmag minmag acospi "
    "asinpi atanpi atan2pi cospi sinpi tanpi rsqrt rootn pown powr wait_group_events mem_fence "
    "read_mem_fence write_mem_fence work_group_barrier enqueue_kernel enqueue_marker retain_event "
    "release_event create_user_event is_valid_event set_user_event_status ndrange_1D ndrange_2D "
    "ndrange_3D reserve_read_pipe reserve_write_pipe commit_read_pipe commit_write_pipe read_pipe "
    "write_pipe "
    // CUDA's functions, except those that begin with underscores or with a prefix of kPrefixes.
    "umin umax llmin llmax ullmin ullmax fdividef fdivide rsqrtf rcbrt rcbrtf sinpif cospif "
    "sincospi sincospif erfcinv erfcinvf erfcx erfcxf erfinv erfinvf normcdf normcdff normcdfinv "
    "normcdfinvf norm norm3d norm4d normf norm3df norm4df rnorm rnorm3d rnorm4d rnormf rnorm3df "
    "rnorm4df rhypot rhypotf cyl_bessel_i0 cyl_bessel_i1 cyl_bessel_i0f cyl_bessel_i1f umulhi "
    "mulhi "
    "mul64hi umul64hi saturate tex1D tex2D tex3D surf1Dread surf2Dread clock64 nanosleep swap";

/// Functions of math.h, each for three types.
constexpr std::string_view kMath =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 "
    "fabs "
    "fdim floor fma fmax fmin fmod frexp gamma hypot ilogb ldexp lgamma lgamma_r llrint llround "
    "log "
    "log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder "
    "remquo "
    "rint round roundeven scalbln scalbn significand sin sinh sqrt tan tanh tgamma trunc";

/// Prefixes of names: of built-in functions, and of our helpers.
constexpr std::string_view kPrefixes[] = {
    "tenon_",   "get_",         "convert_",    "as_",         "vload",       "vstore",
    "atomic_",  "atom_",        "atomicA",     "atomicC",     "atomicD",     "atomicE",
    "atomicI",  "atomicM",      "atomicO",     "atomicS",     "atomicX",     "async_work_group_",
    "native_",  "half_",        "read_image",  "write_image", "work_group_", "sub_group_",
    "intel_",   "to_global",    "to_local",    "to_private",  "image1d_",    "image2d_",
    "image3d_", "memory_order", "memory_scope"};

/// Vector types of OpenCL C and CUDA: float4, make_int2.
constexpr std::string_view kElements[] = {"bool",  "char",     "uchar",     "short", "ushort",
                                          "int",   "uint",     "long",      "ulong", "half",
                                          "float", "longlong", "ulonglong", "double"};
constexpr std::string_view kWidths[] = {"1", "2", "3", "4", "8", "16"};

template <class Body>
void for_each_word(std::string_view list, const Body& body) {
  for (size_t end = 0; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
    end = std::min(list.find(' '), list.size());
    body(std::string(list.substr(0, end)));
  }
}

const std::unordered_set<std::string>& reserved_words() {
  static const std::unordered_set<std::string> words = [] {
    std::unordered_set<std::string> set;
    for (const std::string_view list : {kKeywords, kFunctions}) {
      for_each_word(list, [&](const std::string& word) { set.insert(word); });
    }
    for_each_word(kMath,
                  [&](const std::string& word) { set.insert({word, word + "f", word + "l"}); });
    for (const std::string_view element : kElements) {
      for (const std::string_view width : kWidths) {
        set.insert(fmt::format("{}{}", element, width));
        set.insert(fmt::format("make_{}{}", element, width));
      }
    }
    return set;
  }();
  return words;
}

// No keyword and no family of functions begins with this.
constexpr std::string_view kMark = "k_";

}  // namespace

bool is_reserved(std::string_view identifier) {
  // Types of the headers; names of the implementation.
  if (identifier.ends_with("_t") || identifier.starts_with("_")) return true;
  const auto begins = [&](std::string_view prefix) { return identifier.starts_with(prefix); };
  return std::ranges::any_of(kPrefixes, begins) ||
         reserved_words().contains(std::string(identifier));
}

std::string identifier_of(std::string_view text) {
  std::string name;
  for (const char c : text) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "k" + name;
  return name;
}

std::string NameTable::take(std::string_view wanted) {
  std::string name = identifier_of(wanted);
  if (is_reserved(name)) name = fmt::format("{}{}", kMark, name);
  std::string unique = name;
  for (int i = 2; !taken_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  return unique;
}

std::string source_name(std::string_view kernel) {
  constexpr size_t kDigits = 8;
  const std::string name = identifier_of(kernel);
  if (name != kernel) {
    return fmt::format("{}{}_{}", kMark, name, serial::digest_of(kernel).substr(0, kDigits));
  }
  // A name that begins with the mark is prefixed too, so that different names stay different.
  const bool marked = is_reserved(name) || name.starts_with(kMark);
  return fmt::format("{}{}", marked ? kMark : "", name);
}

}  // namespace tenon::kernel
