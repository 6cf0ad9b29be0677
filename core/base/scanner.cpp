#include "core/base/scanner.h"

#include <charconv>
#include <cstring>

namespace tenon {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return is_letter(c) || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$' || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Scanner::skip_space() {
  while (offset_ < text_.size()) {
    const char c = text_[offset_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++offset_;
    } else if (c == '/' && offset_ + 1 < text_.size() && text_[offset_ + 1] == '/') {
      const size_t end = text_.find('\n', offset_);
      offset_ = end == std::string_view::npos ? text_.size() : end;
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip_space();
  return offset_ >= text_.size();
}

size_t Scanner::token_start() {
  skip_space();
  return offset_;
}

SourcePosition Scanner::position(size_t offset) {
  if (offset < line_offset_) {
    line_offset_ = 0;
    line_ = 1;
    line_known_ = 0;
  }
  while (line_known_ < offset) {
    const char* const begin = text_.data() + line_known_;
    const void* found = std::memchr(begin, '\n', offset - line_known_);
    const auto length = static_cast<size_t>(
        found == nullptr ? offset - line_known_ : static_cast<const char*>(found) - begin + 1);
    searched_ += length;
    line_known_ += length;
    if (found == nullptr) break;
    line_offset_ = line_known_;
    ++line_;
  }
  return {file_, line_, static_cast<uint32_t>(offset - line_offset_ + 1)};
}

bool Scanner::fail_at(size_t offset, std::string message) {
  if (status_.ok()) {
    status_ = Status(ErrorCode::kInvalidArgument, std::move(message)).at(position(offset));
  }
  offset_ = text_.size();
  return false;
}

bool Scanner::fail_expected(std::string_view what) {
  skip_space();
  if (offset_ >= text_.size()) return fail("expected {}, found the end of the text", what);
  size_t end = offset_ + 1;
  while (end < text_.size() && end - offset_ < 24 && is_word(text_[offset_]) &&
         is_word(text_[end])) {
    ++end;
  }
  return fail("expected {}, found '{}'", what, text_.substr(offset_, end - offset_));
}

char Scanner::peek() {
  skip_space();
  return offset_ < text_.size() ? text_[offset_] : '\0';
}

bool Scanner::peek(std::string_view punctuation) {
  skip_space();
  return text_.substr(offset_).starts_with(punctuation);
}

bool Scanner::accept(char c) {
  if (peek() != c || offset_ >= text_.size()) return false;
  ++offset_;
  return true;
}

bool Scanner::accept(std::string_view punctuation) {
  if (!peek(punctuation)) return false;
  offset_ += punctuation.size();
  return true;
}

bool Scanner::expect(char c) { return accept(c) || fail_expected(std::string{'\'', c, '\''}); }

bool Scanner::expect(std::string_view punctuation) {
  return accept(punctuation) || fail_expected(fmt::format("'{}'", punctuation));
}

std::string_view Scanner::word(bool dashes) {
  skip_space();
  const size_t start = offset_;
  if (start >= text_.size() || !is_word_start(text_[start])) return {};
  while (offset_ < text_.size() && (is_word(text_[offset_]) || (dashes && text_[offset_] == '-' &&
                                                                offset_ + 1 < text_.size() &&
                                                                is_letter(text_[offset_ + 1])))) {
    ++offset_;
  }
  return text_.substr(start, offset_ - start);
}

std::string_view Scanner::peek_word() {
  const size_t start = token_start();
  const std::string_view found = word();
  offset_ = start;
  return found;
}

bool Scanner::accept_keyword(std::string_view keyword) {
  const size_t start = token_start();
  if (word() == keyword) return true;
  offset_ = start;
  return false;
}

bool Scanner::expect_keyword(std::string_view keyword) {
  return accept_keyword(keyword) || fail_expected(fmt::format("'{}'", keyword));
}

std::string_view Scanner::suffix() {
  const size_t start = offset_;
  while (offset_ < text_.size() && (is_word(text_[offset_]) || text_[offset_] == '-')) {
    // The arrow of a type is not part of a name.
    if (text_[offset_] == '-' && offset_ + 1 < text_.size() && text_[offset_ + 1] == '>') break;
    ++offset_;
  }
  return text_.substr(start, offset_ - start);
}

bool Scanner::string_literal(std::string& out) {
  out.clear();
  const size_t start = token_start();
  if (!accept('"')) return fail_expected("a string");
  while (offset_ < text_.size()) {
    const size_t stop = text_.find_first_of("\"\\\n", offset_);
    if (stop == std::string_view::npos || text_[stop] == '\n') break;
    out.append(text_, offset_, stop - offset_);
    offset_ = stop + 1;
    if (text_[stop] == '"') return true;
    if (offset_ >= text_.size()) break;
    const char c = text_[offset_];
    const int high = hex_digit(c);
    const int low = offset_ + 1 < text_.size() ? hex_digit(text_[offset_ + 1]) : -1;
    if (c == '\\' || c == '"') {
      out += c;
    } else if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      ++offset_;
    } else if (c == 'n' || c == 't') {
      out += c == 'n' ? '\n' : '\t';
    } else {
      return fail("unknown escape '\\{}' in a string", c);
    }
    ++offset_;
  }
  return fail_at(start, "a string is not closed on its line");
}

bool Scanner::integer(int64_t& out) {
  skip_space();
  const size_t start = offset_;
  const bool negative = accept('-');
  const bool hex = text_.substr(offset_).starts_with("0x");
  if (hex) offset_ += 2;
  uint64_t magnitude = 0;
  const char* first = text_.data() + offset_;
  const char* last = text_.data() + text_.size();
  const auto [end, error] = std::from_chars(first, last, magnitude, hex ? 16 : 10);
  if (error == std::errc::result_out_of_range) {
    return fail_at(start, "an integer does not fit 64 bits");
  }
  if (error != std::errc()) {
    offset_ = start;
    return fail_expected("an integer");
  }
  offset_ += static_cast<size_t>(end - first);
  if (negative && magnitude > (uint64_t{1} << 63)) {
    return fail_at(start, "an integer does not fit 64 bits");
  }
  out = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

bool Scanner::peek_number(bool& is_float) {
  skip_space();
  size_t at = offset_;
  if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) ++at;
  if (at >= text_.size() || !is_digit(text_[at])) return false;
  is_float = false;
  if (text_.substr(at).starts_with("0x")) return true;
  while (at < text_.size() && is_digit(text_[at])) ++at;
  if (at < text_.size() && (text_[at] == '.' || text_[at] == 'e' || text_[at] == 'E')) {
    is_float = true;
  }
  return true;
}

bool Scanner::real(double& out) {
  skip_space();
  const size_t start = offset_;
  const bool negative = accept('-');
  if (offset_ >= text_.size() ||
      !is_digit(text_[offset_])) {  // from_chars accepts a sign, inf and nan.
    offset_ = start;
    return fail_expected("a number");
  }
  const char* first = text_.data() + offset_;
  const char* last = text_.data() + text_.size();
  const auto [end, error] = std::from_chars(first, last, out);
  if (error == std::errc::result_out_of_range) {
    // Too large or too small for a double: strtod returns infinity or zero, as MLIR reads it.
    size_t length = 0;
    while (first + length < last &&
           (is_word(first[length]) || first[length] == '-' || first[length] == '+')) {
      ++length;
    }
    out = std::strtod(std::string(first, length).c_str(), nullptr);
    offset_ += length;
  } else {
    offset_ += static_cast<size_t>(end - first);
  }
  if (negative) out = -out;
  return true;
}

bool Scanner::balanced(std::string_view& out) {
  const size_t start = token_start();
  std::string closing;
  while (offset_ < text_.size()) {
    const char c = text_[offset_];
    if (c == '"') {
      std::string ignored;
      if (!string_literal(ignored)) return false;
      continue;
    }
    if (c == '/' && text_.substr(offset_).starts_with("//")) {
      skip_space();
      continue;
    }
    ++offset_;
    if (c == '<') closing += '>';
    if (c == '[') closing += ']';
    if (c == '(') closing += ')';
    if (c == '{') closing += '}';
    const bool arrow = c == '>' && offset_ >= 2 && text_[offset_ - 2] == '-';
    if ((c == '>' && !arrow) || c == ']' || c == ')' || c == '}') {
      if (closing.empty() || closing.back() != c) {
        return fail_at(offset_ - 1, fmt::format("unbalanced '{}'", c));
      }
      closing.pop_back();
      if (closing.empty()) {
        out = text_.substr(start, offset_ - start);
        return true;
      }
    }
  }
  return fail_at(start, "a bracket is not closed");
}

}  // namespace tenon
