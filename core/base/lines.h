// Texts as lines, and in parts.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The lines of a text, without their ends.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The greatest number of bytes, at most `most`, with which a part of a text in UTF-8 ends between
/// two characters.
constexpr size_t whole_characters(std::string_view text, size_t most) {
  if (most >= text.size()) return text.size();
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return most;
}

}  // namespace tenon
