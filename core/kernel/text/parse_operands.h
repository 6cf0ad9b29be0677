// The lower part of the kernel parser: names, types, shapes, values, and the meaning of each name
// where it is used. parse_statements.h derives from it. Private to core/kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/scanner.h"
#include "core/kernel/ir/builder.h"

namespace tenon::kernel {

/// Each function reads the item that it is named after from `scan_` and returns whether it was
/// there; `scan_` keeps the first error. Names in `out` have no '%'. Lists end in `closing`, which
/// is read too.
class OperandParser {
 protected:
  using Types = std::vector<ElementType>;
  using Names = std::vector<std::string>;

  OperandParser(std::string_view text, const std::string& file) : scan_(text, file), builder_("") {}

  // --- Words
  bool type(ElementType& out);
  bool types(Types& out);  // 'f32, s32', at least one
  bool name(std::string& out);
  bool names(Names& out, char closing);
  bool extent(int64_t& out);  // the length of a dimension or a loop
  bool numbers(Dims& out, char closing);
  bool induction(Names& names, Dims& extents);  // '%i: 4, %j: 8)'
  bool shape(Memory& m);                        // 'f32[4,8]{1,4}'

  // --- Meanings of names
  /// Defines a name until the end of the innermost scope, which then restores the previous meaning.
  void define(const std::string& name, ValueId value);
  void define_all(const Names& names, const Values& values);
  void open_scope() { marks_.push_back(undo_.size()); }
  void close_scope();
  bool is_value(const std::string& name) const { return values_.contains(name); }
  /// Defines a name until the end of the kernel: memories of a kernel have distinct names.
  void declare(const std::string& name, MemoryId memory) { memories_[name] = memory; }
  bool is_memory(const std::string& name) const { return memories_.contains(name); }
  /// Forgets the names of values and memories, at the start of a kernel.
  void forget_names();

  // --- Operands
  bool memory(MemoryId& out);
  /// A name, or a constant of `type`.
  bool value(ElementType type, ValueId& out);
  /// One index per dimension of `memory`, or `rank` indices: '[%i, 0]'.
  bool indices(MemoryId memory, Values& out);
  bool indices_of_rank(MemoryId memory, size_t rank, Values& out);

  // --- Operands whose types follow them. The type determines how a constant is read, so the types
  // are read first.
  /// The type after the next ' : ' of the line; the text before it is still to be read.
  bool type_behind(ElementType& out);
  /// '(0, %x) : f32, s32'
  bool inits(Values& out, Types& types);
  /// '(%s = 0, %t = %x) : f32, s32', or '()'.
  bool carried(Names& names, Values& inits, Types& types);

  Scanner scan_;
  Builder builder_;  ///< Builds the kernel that is being read.

 private:
  /// A name that the end of a scope restores, with its previous value, if any.
  struct Undo {
    std::string name;
    std::optional<ValueId> value;
  };

  bool constant(ElementType type, ValueId& out);

  std::unordered_map<std::string, ValueId> values_;
  std::unordered_map<std::string, MemoryId> memories_;
  std::vector<Undo> undo_;
  std::vector<size_t> marks_;  // the size of undo_ at the start of each open scope
};

}  // namespace tenon::kernel
