// How a language spells the parts of a kernel. Private to core/kernel/render.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/kernel.h"
#include "core/kernel/render/render.h"

namespace tenon::kernel {

/// A language as data; a new one is a row of spelling.cpp.
struct Spelling {
  std::string_view header;      ///< At the top of the source.
  std::string_view header_f64;  ///< Behind it, of a source that has a double.
  std::string_view kernel;      ///< Before a kernel's function.
  std::string_view helper;      ///< Before a helper's.
  std::string_view memory;      ///< Before a pointer to a buffer's type.
  std::string_view restricted;
  std::string_view scratch;  ///< Before the declaration of workgroup memory.
  std::string_view group;    ///< The index of the workgroup; empty: calls run the whole grid.
  std::string_view lane;     ///< Its lane's index.
  std::string_view barrier;
  std::string_view suffix_f32;  ///< Suffix of names of functions on f32: sqrtf.
  std::string_view suffix_64;   ///< Suffix of literals of 64-bit integers.
  std::string_view f32_from_bits, f64_from_bits, bits_of_f32, bits_of_f64;  ///< Functions.
  /// Before "add", "min" …, in the language's case; empty where calls run one after the other.
  std::string_view atomic;
  bool atomic_capital = false;  ///< atomicAdd, not atomic_add.
  bool has_lanes() const { return !group.empty(); }
};
const Spelling& spelling_of(Language language);

/// int32_t, double …; pred is bool, in memory uint8_t.
std::string_view type_text(ElementType type);
std::string constant_text(const Spelling& spelling, ElementType type, uint64_t bits);

/// An operation on operands that are written out; helpers that it calls are added to `helpers`.
std::string operation_text(const Spelling& spelling, const Kernel& kernel, const Node& node,
                           const std::vector<std::string>& operands, bool may_overflow,
                           std::set<std::string>& helpers);

/// The statement that combines `value` into `element` as one step that no other lane comes between.
std::string atomic_text(const Spelling& spelling, const Node& node, const std::string& element,
                        const std::string& value, std::set<std::string>& helpers);

/// The definitions of helpers by name.
std::string helper_text(const Spelling& spelling, const std::set<std::string>& helpers);

}  // namespace tenon::kernel
