// Scanner: converts characters to tokens, for both text forms.
//
// Errors are sticky: the first error is kept with its position, and later calls fail at once.
// Parsing functions return false (or an empty value) on error, so a parser can skip the check after
// each token and check once at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon {

class Scanner {
 public:
  Scanner(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  const Status& status() const { return status_; }
  bool failed() const { return !status_.ok(); }

  /// Records an error at the current token (or at `offset`); always returns false.
  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    return fail_at(token_start(), fmt::format(format, std::forward<Args>(args)...));
  }
  bool fail_at(size_t offset, std::string message);
  /// Reports "expected X, found Y" at the current token.
  bool fail_expected(std::string_view what);

  size_t offset() const { return offset_; }
  void set_offset(size_t offset) { offset_ = offset; }
  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }
  bool at_end();
  /// Offset of the next token.
  size_t token_start();
  /// Line and column of `offset`; fast if called with increasing offsets.
  SourcePosition position(size_t offset);
  /// The number of bytes of text that `position` has searched for line ends; for tests.
  size_t searched() const { return searched_; }

  /// The next character after space and comments, '\0' at the end.
  char peek();
  bool peek(std::string_view punctuation);
  bool accept(char c);
  bool accept(std::string_view punctuation);
  bool expect(char c);
  bool expect(std::string_view punctuation);

  /// A bare word [A-Za-z_][A-Za-z0-9_$.]*; empty if the next token is not a word. `dashes`: '-' may
  /// be part of the word.
  std::string_view word(bool dashes = false);
  std::string_view peek_word();
  /// Consumes `keyword` if it is the next whole word.
  bool accept_keyword(std::string_view keyword);
  bool expect_keyword(std::string_view keyword);
  /// The name after a sigil (% @ # ! ^): [A-Za-z0-9_$.-]*, read without skipping space.
  std::string_view suffix();

  /// A quoted string with its escapes resolved.
  bool string_literal(std::string& out);
  /// [-]digits or 0x…; hexadecimal may use all 64 bits.
  bool integer(int64_t& out);
  /// Whether a number comes next, and whether it is a float (has a point or an exponent).
  bool peek_number(bool& is_float);
  bool real(double& out);

  /// Skips a balanced group whose opening bracket is the next character, including other brackets
  /// and strings in it; returns the text with the brackets.
  bool balanced(std::string_view& out);

 private:
  void skip_space();

  std::string_view text_;
  std::string file_;
  size_t offset_ = 0;
  Status status_;
  // A cache of the last position that was asked for.
  size_t line_offset_ = 0;
  uint32_t line_ = 1;
  size_t line_known_ = 0;  ///< The line of line_offset_ does not end before this offset.
  size_t searched_ = 0;
};

}  // namespace tenon
