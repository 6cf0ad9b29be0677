// Names with a meaning in C, OpenCL C or CUDA C++. Private to core/kernel/render.
//
// One set for the three languages: a kernel's function has the same name in all of them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tenon::kernel {

/// Whether the identifier has a meaning in one of the languages, in its built-in functions, in the
/// headers that sources include, or in sources that we render.
bool is_reserved(std::string_view identifier);

/// The letters, digits and underscores of a text, the others as underscores; begins with a letter.
std::string identifier_of(std::string_view text);

/// Names that no two things of a source share.
class NameTable {
 public:
  std::string take(std::string_view wanted);
  /// Takes a name as it is, reserved or not; false if it is taken.
  bool hold(std::string name) { return taken_.insert(std::move(name)).second; }

 private:
  std::set<std::string> taken_;
};

}  // namespace tenon::kernel
