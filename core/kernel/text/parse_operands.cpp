#include "core/kernel/text/parse_operands.h"

#include <algorithm>
#include <cmath>

#include "core/kernel/ir/structure.h"
#include "core/kernel/math/scalar.h"

namespace tenon::kernel {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 40;

}  // namespace

// --- Words

bool OperandParser::type(ElementType& out) {
  const size_t start = scan_.token_start();
  const std::string_view word = scan_.word();
  const auto found = element_type_from_name(word);
  if (!found) return scan_.fail_at(start, fmt::format("'{}' is not an element type", word));
  if (is_complex(*found)) return scan_.fail_at(start, "K0: a kernel has no complex numbers");
  out = *found;
  return true;
}

bool OperandParser::types(Types& out) {
  do {
    if (!type(out.emplace_back())) return false;
  } while (scan_.accept(','));
  return true;
}

bool OperandParser::name(std::string& out) {
  if (!scan_.expect('%')) return false;
  out = scan_.suffix();
  return !out.empty() || scan_.fail_expected("a name after '%'");
}

bool OperandParser::names(Names& out, char closing) {
  while (scan_.peek() != closing) {
    if (!name(out.emplace_back())) return false;
    if (!scan_.accept(',')) break;
  }
  return scan_.expect(closing);
}

bool OperandParser::extent(int64_t& out) {
  const size_t start = scan_.token_start();
  if (!scan_.integer(out)) return false;
  return (out >= 0 && out <= kMaxExtent) ||
         scan_.fail_at(start, fmt::format("K0: extent {} is out of range", out));
}

bool OperandParser::numbers(Dims& out, char closing) {
  while (scan_.peek() != closing) {
    if (!extent(out.emplace_back())) return false;
    if (out.size() > kMostRank) return scan_.fail("K0: more than {} dimensions", kMostRank);
    if (!scan_.accept(',')) break;
  }
  return scan_.expect(closing);
}

bool OperandParser::induction(Names& names, Dims& extents) {
  while (scan_.peek() != ')') {
    if (!name(names.emplace_back()) || !scan_.expect(':') || !extent(extents.emplace_back())) {
      return false;
    }
    if (extents.size() > kMostRank) return scan_.fail("K0: more than {} dimensions", kMostRank);
    if (!scan_.accept(',')) break;
  }
  return scan_.expect(')');
}

bool OperandParser::shape(Memory& m) {
  if (!type(m.type) || !scan_.expect('[') || !numbers(m.dims, ']')) return false;
  if (!scan_.accept('{')) return true;
  if (!numbers(m.strides, '}')) return false;
  return m.strides.size() == m.dims.size() || scan_.fail("K0: as many strides as dimensions");
}

// --- Meanings of names

void OperandParser::define(const std::string& name, ValueId value) {
  auto [entry, added] = values_.try_emplace(name, value);
  undo_.push_back({name, added ? std::nullopt : std::optional(entry->second)});
  entry->second = value;
}

void OperandParser::define_all(const Names& names, const Values& values) {
  for (size_t i = 0; i < names.size() && i < values.size(); ++i) define(names[i], values[i]);
}

void OperandParser::close_scope() {
  while (undo_.size() > marks_.back()) {
    if (undo_.back().value) {
      values_[undo_.back().name] = *undo_.back().value;
    } else {
      values_.erase(undo_.back().name);
    }
    undo_.pop_back();
  }
  marks_.pop_back();
}

void OperandParser::forget_names() {
  values_.clear();
  memories_.clear();
  undo_.clear();
}

// --- Operands

bool OperandParser::memory(MemoryId& out) {
  const size_t start = scan_.token_start();
  std::string text;
  if (!name(text)) return false;
  const auto found = memories_.find(text);
  if (found == memories_.end()) {
    return scan_.fail_at(start, fmt::format("K0: no memory %{} is declared here", text));
  }
  out = found->second;
  return true;
}

bool OperandParser::value(ElementType type, ValueId& out) {
  if (scan_.peek() != '%') return constant(type, out);
  const size_t start = scan_.token_start();
  std::string text;
  if (!name(text)) return false;
  const auto found = values_.find(text);
  if (found == values_.end()) {
    return scan_.fail_at(start, fmt::format("K0: %{} is not defined here", text));
  }
  out = found->second;
  return true;
}

bool OperandParser::constant(ElementType type, ValueId& out) {
  const size_t start = scan_.token_start();
  if (is_pred(type)) {
    const bool truth = scan_.accept_keyword("true");
    if (!truth && !scan_.accept_keyword("false")) return scan_.fail_expected("a pred");
    out = builder_.pred(truth);
    return true;
  }
  const bool hex = scan_.peek("0x");
  if (is_integer(type) || hex) {
    int64_t number = 0;
    if (!scan_.integer(number)) return false;
    const uint64_t bits = from_pattern(type, static_cast<uint64_t>(number));
    const bool fits =
        is_integer(type)
            ? static_cast<int64_t>(bits) == number
            : bit_width(type) == 64 || (static_cast<uint64_t>(number) >> bit_width(type)) == 0;
    if (!fits)
      return scan_.fail_at(start,
                           fmt::format("the constant is not a value of type {}", name_of(type)));
    out = builder_.constant(type, bits);
    return true;
  }
  const bool negative = scan_.peek("-inf") && scan_.accept('-');
  double number = HUGE_VAL;
  if (scan_.accept_keyword("nan")) {
    number = __builtin_nan("");
  } else if (!scan_.accept_keyword("inf") && !scan_.real(number)) {
    return false;
  }
  out = builder_.real(type, negative ? -number : number);
  return true;
}

bool OperandParser::indices(MemoryId memory, Values& out) {
  const size_t rank = builder_.kernel().memory(memory).dims.size();
  return indices_of_rank(memory, rank, out);
}

bool OperandParser::indices_of_rank(MemoryId memory, size_t rank, Values& out) {
  const size_t start = scan_.token_start();
  if (!scan_.expect('[')) return false;
  size_t count = 0;
  while (scan_.peek() != ']') {
    if (!value(builder_.index_type(), out.emplace_back())) return false;
    ++count;
    if (!scan_.accept(',')) break;
  }
  if (count != rank) {
    return scan_.fail_at(start, fmt::format("K0: %{} has {} indices, {} given",
                                            builder_.kernel().memory(memory).name, rank, count));
  }
  return scan_.expect(']');
}

// --- Operands whose types follow them

bool OperandParser::type_behind(ElementType& out) {
  const size_t start = scan_.offset();
  const size_t end = std::min(scan_.text().find('\n', start), scan_.text().size());
  const size_t colon = scan_.text().substr(0, end).find(" : ", start);
  if (colon == std::string_view::npos) {
    return scan_.fail("expected ': TYPE' after the operands");
  }
  scan_.set_offset(colon + 1);
  const bool good = scan_.expect(':') && type(out);
  if (good) scan_.set_offset(start);
  return good;
}

bool OperandParser::inits(Values& out, Types& types) {
  const size_t start = scan_.token_start();
  std::string_view skipped;
  if (!scan_.peek("(") || !scan_.balanced(skipped)) return scan_.fail_expected("'('");
  if (!scan_.expect(':') || !this->types(types)) return false;
  const size_t end = scan_.offset();
  scan_.set_offset(start);
  if (!scan_.expect('(')) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != 0 && !scan_.expect(',')) return false;
    if (!value(types[i], out.emplace_back())) return false;
  }
  if (!scan_.expect(')')) return false;
  scan_.set_offset(end);
  return true;
}

bool OperandParser::carried(Names& names, Values& inits, Types& types) {
  const size_t start = scan_.token_start();
  std::string_view skipped;
  if (!scan_.balanced(skipped)) return scan_.fail_expected("'('");
  const bool has_types = scan_.accept(':');
  if (has_types && !this->types(types)) return false;
  const size_t end = scan_.offset();
  scan_.set_offset(start);
  if (!scan_.expect('(')) return false;
  while (scan_.peek() != ')') {
    if (inits.size() == types.size()) return scan_.fail("K0: more values than types");
    const ElementType type = types[inits.size()];
    if (!name(names.emplace_back()) || !scan_.expect('=') || !value(type, inits.emplace_back())) {
      return false;
    }
    if (!scan_.accept(',')) break;
  }
  if (!scan_.expect(')')) return false;
  if (inits.size() != types.size()) return scan_.fail_at(start, "K0: fewer values than types");
  scan_.set_offset(end);
  return true;
}

}  // namespace tenon::kernel
