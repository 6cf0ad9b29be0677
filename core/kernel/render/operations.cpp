// Writes operations on scalars as expressions, and helper functions for operations that the
// languages leave undefined for some operands.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/kernel/math/scalar.h"
#include "core/kernel/render/spelling.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

std::string_view short_name(ElementType type) { return name_of(type); }
ElementType unsigned_of(ElementType type) { return *integer_of_width(bit_width(type), false); }
ElementType signed_of(ElementType type) { return *integer_of_width(bit_width(type), true); }

std::string_view infix(OpCode code) {
  switch (code) {
    case OpCode::kAdd:
      return "+";
    case OpCode::kSub:
      return "-";
    case OpCode::kMul:
      return "*";
    case OpCode::kDiv:
      return "/";
    case OpCode::kAnd:
      return "&";
    case OpCode::kOr:
      return "|";
    case OpCode::kXor:
      return "^";
    case OpCode::kEq:
      return "==";
    case OpCode::kNe:
      return "!=";
    case OpCode::kLt:
      return "<";
    case OpCode::kLe:
      return "<=";
    case OpCode::kGt:
      return ">";
    case OpCode::kGe:
      return ">=";
    default:
      return "";
  }
}

std::string_view function_name(OpCode code) {
  switch (code) {
    case OpCode::kRem:
      return "fmod";
    case OpCode::kAbs:
      return "fabs";
    case OpCode::kFma:
      return "fma";
    case OpCode::kSqrt:
      return "sqrt";
    case OpCode::kFloor:
      return "floor";
    case OpCode::kCeil:
      return "ceil";
    case OpCode::kTrunc:
      return "trunc";
    case OpCode::kRoundEven:
      return "rint";
    case OpCode::kRoundAway:
      return "round";
    default:
      return "";
  }
}

std::string call(std::string_view name, const std::vector<std::string>& operands) {
  return fmt::format("{}({})", name, fmt::join(operands, ", "));
}

/// The name of a helper, which consists of the operation and its types; helper_text() writes its
/// definition.
std::string helper(std::set<std::string>& helpers, std::string_view what, ElementType type,
                   const std::vector<std::string>& operands, std::string_view to = "") {
  std::string name =
      fmt::format("tenon_{}_{}{}{}", what, short_name(type), to.empty() ? "" : "_", to);
  std::string text = call(name, operands);
  helpers.insert(std::move(name));
  return text;
}

std::string on_floats(const Spelling& spelling, OpCode code, ElementType type,
                      const std::vector<std::string>& x, std::set<std::string>& helpers) {
  if (code == OpCode::kNeg) return "-" + x[0];
  if (code == OpCode::kMin || code == OpCode::kMax) {
    return helper(helpers, op_name(code), type, x);
  }
  if (const std::string_view sign = infix(code); !sign.empty()) {
    return fmt::format("{} {} {}", x[0], sign, x[1]);
  }
  const std::string_view suffix = type == kF32 ? spelling.suffix_f32 : "";
  return call(fmt::format("{}{}", function_name(code), suffix), x);
}

std::string on_integers(OpCode code, ElementType type, const std::vector<std::string>& x,
                        bool may_overflow, std::set<std::string>& helpers) {
  const std::string_view t = type_text(type);
  const std::string_view u = type_text(unsigned_of(type));
  const bool narrow = bit_width(type) < 32;
  switch (code) {
    case OpCode::kAdd:
    case OpCode::kSub:
    case OpCode::kMul:
      if (!narrow && (!is_signed_integer(type) || !may_overflow)) {
        return fmt::format("{} {} {}", x[0], infix(code), x[1]);
      }
      // Computed unsigned, so that it wraps; a product of 16-bit numbers would overflow int.
      return narrow ? fmt::format("({})((uint32_t){} {} (uint32_t){})", t, x[0], infix(code), x[1])
                    : fmt::format("({})(({}){} {} ({}){})", t, u, x[0], infix(code), u, x[1]);
    case OpCode::kAnd:
    case OpCode::kOr:
    case OpCode::kXor:
      return narrow ? fmt::format("({})({} {} {})", t, x[0], infix(code), x[1])
                    : fmt::format("{} {} {}", x[0], infix(code), x[1]);
    case OpCode::kNot:
      return fmt::format("({})~{}", t, x[0]);
    case OpCode::kNeg:
      return fmt::format("({})(0 - ({}){})", t, u, x[0]);
    case OpCode::kAbs:
      if (!is_signed_integer(type)) return x[0];
      return fmt::format("({} < 0 ? ({})(0 - ({}){}) : {})", x[0], t, u, x[0], x[0]);
    case OpCode::kMin:
      return fmt::format("({} < {} ? {} : {})", x[0], x[1], x[0], x[1]);
    case OpCode::kMax:
      return fmt::format("({} < {} ? {} : {})", x[0], x[1], x[1], x[0]);
    default:
      return helper(helpers, op_name(code), type, x);
  }
}

std::string conversion(const Node& n, ElementType from, const std::string& x,
                       std::set<std::string>& helpers) {
  if (is_pred(n.type)) return fmt::format("{} != 0", x);
  if (from == ElementType::kF16) return call("tenon_of_half", {x});
  if (n.type == ElementType::kF16) return call("tenon_half", {x});
  if (is_float(from) && is_integer(n.type)) {
    return helper(helpers, "convert", from, {x}, short_name(n.type));
  }
  return fmt::format("({}){}", type_text(n.type), x);
}

std::string reinterpretation(const Spelling& s, const Node& n, ElementType from,
                             const std::string& x) {
  if (from == n.type || from == ElementType::kF16 || n.type == ElementType::kF16) return x;
  const bool single = bit_width(n.type) == 32;
  if (is_float(from)) {
    const std::string bits = call(single ? s.bits_of_f32 : s.bits_of_f64, {x});
    return fmt::format("({}){}", type_text(n.type), bits);
  }
  if (!is_float(n.type)) return fmt::format("({}){}", type_text(n.type), x);
  return call(single ? s.f32_from_bits : s.f64_from_bits,
              {fmt::format("({}){}", single ? "uint32_t" : "uint64_t", x)});
}

// --- Helpers

struct HelperText {
  std::string_view what;
  std::string_view text;
};

// T is the type, U and S are the integers of its width, W is its width; LEAST and MOST are its
// bounds, TO is the target type of a conversion and LIMIT the float from which on it saturates.
constexpr HelperText kHelpers[] = {
    {"min",
     "T NAME(T x, T y) {\n  if (x != x || y != y) return x + y;\n"
     "  if (x == y) return SIGN_OF_X ? x : y;\n  return x < y ? x : y;\n}\n"},
    {"max",
     "T NAME(T x, T y) {\n  if (x != x || y != y) return x + y;\n"
     "  if (x == y) return SIGN_OF_X ? y : x;\n  return x < y ? y : x;\n}\n"},
    {"div",
     "T NAME(T x, T y) {\n  if (y == 0) return (T)~(U)0;\n  if (IS_SIGNED && y == (T)~(U)0) "
     "return (T)(0 - (U)x);\n  return (T)(x / y);\n}\n"},
    {"rem",
     "T NAME(T x, T y) {\n  if (y == 0) return x;\n  if (IS_SIGNED && y == (T)~(U)0) return 0;"
     "\n  return (T)(x % y);\n}\n"},
    {"shl", "T NAME(T x, T y) { return (U)y >= W ? (T)0 : (T)((U)x << (U)y); }\n"},
    {"shr", "T NAME(T x, T y) { return (U)y >= W ? (T)0 : (T)((U)x >> (U)y); }\n"},
    {"sar", "T NAME(T x, T y) { return (T)((S)x >> ((U)y >= W ? W - 1 : (U)y)); }\n"},
    {"rotl",
     "T NAME(T x, T y) {\n  const U n = (U)y % W;\n"
     "  return n == 0 ? x : (T)((U)((U)x << n) | (U)((U)x >> (W - n)));\n}\n"},
    {"clz",
     "T NAME(T x) {\n  int32_t n = 0;\n  for (U bit = (U)1 << (W - 1); bit != 0 && ((U)x & bit) == "
     "0; "
     "bit = (U)(bit >> 1)) ++n;\n  return (T)n;\n}\n"},
    {"popcount",
     "T NAME(T x) {\n  int32_t n = 0;\n  for (U rest = (U)x; rest != 0; rest = (U)(rest & (rest - "
     "1))) "
     "++n;\n  return (T)n;\n}\n"},
    {"mulhi", "T NAME(T x, T y) { return (T)((WIDE)x * (WIDE)y >> W); }\n"},
    {"convert",
     "TO NAME(T x) {\n  if (x != x) return 0;\n  if (x <= (T)LEAST) return (TO)LEAST;\n"
     "  if (x >= LIMIT) return (TO)MOST;\n  return (TO)x;\n}\n"},
};

constexpr std::string_view kWideProduct =
    "T NAME(T x, T y) {\n"
    "  const uint64_t a = (uint32_t)x, b = (uint64_t)x >> 32, c = (uint32_t)y, d = (uint64_t)y >> "
    "32;\n"
    "  const uint64_t p = a * d + (a * c >> 32), q = b * c + (uint32_t)p;\n"
    "  uint64_t high = b * d + (p >> 32) + (q >> 32);\n"
    "  if (IS_SIGNED) {\n"
    "    high -= (0 - ((uint64_t)x >> 63)) & (uint64_t)y;\n"
    "    high -= (0 - ((uint64_t)y >> 63)) & (uint64_t)x;\n"
    "  }\n"
    "  return (T)high;\n}\n";

/// `text` with the words in `by` replaced.
std::string substitute(std::string_view text, const std::map<std::string_view, std::string>& by) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string result;
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string_view word = text.substr(0, std::max<size_t>(end, 1));
    const auto found = by.find(word);
    result += found == by.end() ? std::string(word) : found->second;
    text.remove_prefix(word.size());
  }
  return result;
}

std::string define(const Spelling& spelling, const std::string& name) {
  // tenon_<what>_<type>[_<to>]
  const size_t first = name.find('_') + 1;
  const size_t second = name.find('_', first) + 1;
  const size_t third = name.find('_', second);
  const std::string_view what = std::string_view(name).substr(first, second - 1 - first);
  const ElementType type = *element_type_from_name(name.substr(second, third - second));
  const int width = bit_width(type);
  const bool is_signed = is_signed_integer(type);
  std::map<std::string_view, std::string> words = {{"NAME", name},
                                                   {"T", std::string(type_text(type))}};
  if (third != std::string::npos) {
    const ElementType to = *element_type_from_name(name.substr(third + 1));
    const bool signed_to = is_signed_integer(to);
    words["TO"] = type_text(to);
    words["LEAST"] = constant_text(spelling, to, static_cast<uint64_t>(integer_min(to)));
    words["MOST"] = constant_text(spelling, to, static_cast<uint64_t>(integer_max(to)));
    words["LIMIT"] = constant_text(
        spelling, type, bits_of_real(type, std::ldexp(1.0, bit_width(to) - (signed_to ? 1 : 0))));
  }
  if (is_integer(type)) {
    words["U"] = type_text(unsigned_of(type));
    words["S"] = type_text(signed_of(type));
    words["W"] = std::to_string(width);
    words["IS_SIGNED"] = is_signed ? "1" : "0";
    words["WIDE"] = is_signed ? "int64_t" : "uint64_t";
  } else {
    words["SIGN_OF_X"] = width == 32
                             ? fmt::format("({}(x) >> 31) != 0", spelling.bits_of_f32)
                             : fmt::format("((uint64_t){}(x) >> 63) != 0", spelling.bits_of_f64);
  }
  const auto found = std::find_if(std::begin(kHelpers), std::end(kHelpers),
                                  [&](const HelperText& h) { return h.what == what; });
  const bool wide_product = what == "mulhi" && width == 64;
  const std::string_view text = wide_product ? kWideProduct : found->text;
  return fmt::format("{}{}", spelling.helper, substitute(text, words));
}

}  // namespace

std::string operation_text(const Spelling& spelling, const Kernel& kernel, const Node& n,
                           const std::vector<std::string>& x, bool may_overflow,
                           std::set<std::string>& helpers) {
  const ElementType type = kernel.value(n.operands.back()).type;
  if (n.op == OpCode::kSelect) return fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
  if (n.op == OpCode::kConvert) return conversion(n, type, x[0], helpers);
  if (n.op == OpCode::kBitcast) return reinterpretation(spelling, n, type, x[0]);
  if (is_comparison(n.op)) return fmt::format("{} {} {}", x[0], infix(n.op), x[1]);
  if (is_pred(type)) {
    return n.op == OpCode::kNot ? "!" + x[0] : fmt::format("{} {} {}", x[0], infix(n.op), x[1]);
  }
  if (is_float(type)) return on_floats(spelling, n.op, type, x, helpers);
  return on_integers(n.op, type, x, may_overflow, helpers);
}

bool has_vector_text(OpCode code) {
  using enum OpCode;
  constexpr OpCode kCodes[] = {kAdd, kSub, kMul, kDiv, kFma, kNeg, kAbs, kMin, kMax};
  return std::ranges::find(kCodes, code) != std::end(kCodes);
}

std::string vector_operation_text(OpCode code, ElementType type, int64_t width,
                                  const std::vector<std::string>& x) {
  if (code == OpCode::kNeg) return "-" + x[0];
  if (const std::string_view sign = infix(code); !sign.empty()) {
    return fmt::format("{} {} {}", x[0], sign, x[1]);
  }
  if (code != OpCode::kMin && code != OpCode::kMax) return call(function_name(code), x);
  // As the helper functions of elements.
  const std::string_view integer = type == kF32 ? "int" : "long";
  return fmt::format(
      "select(select({4}, {5}, ({0} < {1}) | (({0} == {1}) & (as_{2}{3}({0}) < 0))), {0} + {1}, "
      "({0} != {0}) | ({1} != {1}))",
      x[0], x[1], integer, width, code == OpCode::kMin ? x[1] : x[0],
      code == OpCode::kMin ? x[0] : x[1]);
}

std::string atomic_text(const Spelling& spelling, const Node& n, const std::string& element,
                        const std::string& value, std::set<std::string>& helpers) {
  const OpCode code = combination_of(n.atomic);
  if (spelling.atomic.empty()) {
    return fmt::format("{} = {};", element,
                       on_integers(code, n.type, {element, value}, true, helpers));
  }
  std::string name(op_name(code));
  if (spelling.atomic_capital) name[0] = static_cast<char>(std::toupper(name[0]));
  // CUDA defines the 64-bit atomics for (unsigned) long long, which need not be the type of that
  // width. Sums and bitwise combinations of signed numbers use the unsigned ones.
  if (bit_width(n.type) != 64)
    return fmt::format("{}{}(&{}, {});", spelling.atomic, name, element, value);
  const bool ordered = code == OpCode::kMin || code == OpCode::kMax;
  const std::string_view type =
      ordered && is_signed_integer(n.type) ? "long long" : "unsigned long long";
  return fmt::format("{0}{1}(({2} *)&{3}, ({2}){4});", spelling.atomic, name, type, element, value);
}

std::string helper_text(const Spelling& spelling, const std::set<std::string>& helpers) {
  std::string text;
  for (const std::string& name : helpers) text += define(spelling, name);
  return text;
}

}  // namespace tenon::kernel
