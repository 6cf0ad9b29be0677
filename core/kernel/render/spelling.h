// How a language spells the parts of a kernel. Private to core/kernel/render.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/kernel.h"
#include "core/kernel/render/render.h"

namespace tenon::kernel {

/// The description of a language; a new language is a row of spelling.cpp.
struct Spelling {
  std::string_view header;  ///< At the top of the source.
  std::string_view
      header_f16;  ///< After it, if the source converts f16: tenon_half and its inverse.
  std::string_view header_s64;  ///< After that, if the source uses 64-bit integers.
  std::string_view header_f64;  ///< After that, if the source uses double.
  std::string_view kernel;      ///< Before a kernel's function.
  std::string_view bounds;      ///< After that; {} is the number of lanes of a workgroup.
  std::string_view helper;      ///< Before a helper's.
  std::string_view memory;      ///< Before a pointer to a buffer's type.
  std::string_view restricted;
  std::string_view scratch;  ///< Before the declaration of workgroup memory.
  std::string_view group;    ///< The index of the workgroup; empty: a call runs the whole grid.
  std::string_view lane;     ///< The index of the lane within its workgroup.
  std::string_view barrier;
  std::string_view volatile_memory;  ///< Before a pointer to what the host changes.
  std::string_view suffix_f32;       ///< Suffix of names of functions on f32: sqrtf.
  std::string_view suffix_64;        ///< Suffix of literals of 64-bit integers.
  std::string_view f32_from_bits, f64_from_bits, bits_of_f32, bits_of_f64;  ///< Functions.
  /// The prefix of "add", "min" …, in the language's case; empty if calls run serially.
  std::string_view atomic;
  bool atomic_capital = false;  ///< atomicAdd, not atomic_add.
  bool has_vectors = false;     ///< float4, vload4 and operations on them.
  bool has_lanes() const { return !group.empty(); }
};
const Spelling& spelling_of(Language language);

/// int32_t, double …; pred is bool, in memory uint8_t.
std::string_view type_text(ElementType type);
std::string constant_text(const Spelling& spelling, ElementType type, uint64_t bits);

/// The expression for an operation on the given operand texts; helpers that it calls are added to
/// `helpers`.
std::string operation_text(const Spelling& spelling, const Kernel& kernel, const Node& node,
                           const std::vector<std::string>& operands, bool may_overflow,
                           std::set<std::string>& helpers);

/// Operations on floats that languages with vectors write alike for those: the text of one on
/// operands that are all vectors of `width` such elements.
bool has_vector_text(OpCode code);
std::string vector_operation_text(OpCode code, ElementType type, int64_t width,
                                  const std::vector<std::string>& operands);

/// The statement that atomically combines `value` into `element`.
std::string atomic_text(const Spelling& spelling, const Node& node, const std::string& element,
                        const std::string& value, std::set<std::string>& helpers);

/// The definitions of the helpers with these names.
std::string helper_text(const Spelling& spelling, const std::set<std::string>& helpers);

}  // namespace tenon::kernel
