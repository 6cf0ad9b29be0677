// Reserved names of C, OpenCL C and CUDA C++. Private to core/kernel/render.
//
// There is one set for the three languages, so that a kernel's function has the same name in all of
// them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tenon::kernel {

/// Whether the identifier is reserved in one of the languages, in its built-in functions, in the
/// headers that sources include, or in rendered sources.
bool is_reserved(std::string_view identifier);

/// The letters, digits and underscores of a text, with other characters replaced by underscores;
/// begins with a letter.
std::string identifier_of(std::string_view text);

/// Makes the names of a source unique.
class NameTable {
 public:
  std::string take(std::string_view wanted);
  /// Takes a name unchanged, reserved or not; false if it is taken already.
  bool hold(std::string name) { return taken_.insert(std::move(name)).second; }

 private:
  std::set<std::string> taken_;
};

}  // namespace tenon::kernel
