// Names that C, OpenCL C or CUDA C++ means something by. Private to core/kernel/render.
//
// One set for the three languages: a kernel's function has one name, whatever language it is
// rendered to.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tenon::kernel {

/// Whether one of the languages, its built-in functions or the headers that sources include mean
/// something by the identifier, or a source of ours does.
bool is_reserved(std::string_view identifier);

/// The letters, digits and underscores of a text, the others as underscores; begins with a letter.
std::string identifier_of(std::string_view text);

/// Names that no two things of a source share.
class NameTable {
 public:
  std::string take(std::string_view wanted);
  /// A name as it is, whatever it means; false if it is taken.
  bool hold(std::string name) { return taken_.insert(std::move(name)).second; }

 private:
  std::set<std::string> taken_;
};

}  // namespace tenon::kernel
