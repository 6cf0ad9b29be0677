// The parser of kernels below its statements: names, types, shapes, values, and the meaning of a
// name where it is read. parse_statements.h derives from it. Private to core/kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/scanner.h"
#include "core/kernel/ir/builder.h"

namespace tenon::kernel {

/// A function reads the item that it is named after from `scan_` and tells whether it stood there;
/// the first error stays in `scan_`. Names stand without their '%' in `out`. Lists end in
/// `closing`, which is read too.
class OperandParser {
 protected:
  using Types = std::vector<ElementType>;
  using Names = std::vector<std::string>;

  OperandParser(std::string_view text, const std::string& file) : scan_(text, file), builder_("") {}

  // --- Words
  bool type(ElementType& out);
  bool types(Types& out);  // 'f32, s32', one at least
  bool name(std::string& out);
  bool names(Names& out, char closing);
  bool extent(int64_t& out);  // the length of a dimension or a loop
  bool numbers(Dims& out, char closing);
  bool induction(Names& names, Dims& extents);  // '%i: 4, %j: 8)'
  bool shape(Memory& m);                        // 'f32[4,8]{1,4}'

  // --- Meanings of names
  /// Defines a name to the end of the innermost scope, which restores its meaning before.
  void define(const std::string& name, ValueId value);
  void define_all(const Names& names, const Values& values);
  void open_scope() { marks_.push_back(undo_.size()); }
  void close_scope();
  bool is_value(const std::string& name) const { return values_.contains(name); }
  /// Defines a name to the end of the kernel: no two memories of a kernel share a name.
  void declare(const std::string& name, MemoryId memory) { memories_[name] = memory; }
  bool is_memory(const std::string& name) const { return memories_.contains(name); }
  /// Forgets names of values and memories, where a kernel begins.
  void forget_names();

  // --- Operands
  bool memory(MemoryId& out);
  /// A name, or a constant of `type`.
  bool value(ElementType type, ValueId& out);
  /// As many as `memory` has dimensions, or `rank`: '[%i, 0]'.
  bool indices(MemoryId memory, Values& out);
  bool indices_of_rank(MemoryId memory, size_t rank, Values& out);

  // --- Operands whose types stand behind them. A constant is read as its type says, so the types
  // are read first.
  /// The type behind the next ' : ' of the line; the text before it is still to be read.
  bool type_behind(ElementType& out);
  /// '(0, %x) : f32, s32'
  bool inits(Values& out, Types& types);
  /// '(%s = 0, %t = %x) : f32, s32', or '()'.
  bool carried(Names& names, Values& inits, Types& types);

  Scanner scan_;
  Builder builder_;  ///< Builds the kernel that is being read.

 private:
  /// A name that closing a scope restores, with the value that it had before, if any.
  struct Undo {
    std::string name;
    std::optional<ValueId> value;
  };

  bool constant(ElementType type, ValueId& out);

  std::unordered_map<std::string, ValueId> values_;
  std::unordered_map<std::string, MemoryId> memories_;
  std::vector<Undo> undo_;
  std::vector<size_t> marks_;  // how long undo_ was where each open scope begins
};

}  // namespace tenon::kernel
