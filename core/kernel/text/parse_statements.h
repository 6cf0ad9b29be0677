// The parser of a kernel's statements, which builds them as it reads. parser.cpp derives from it.
// Private to core/kernel.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/text/parse_operands.h"

namespace tenon::kernel {

class StatementParser : protected OperandParser {
 protected:
  using OperandParser::OperandParser;

  /// Reads one statement and its blocks. `yielded`: whether it is a yield.
  bool statement(bool& yielded);
  /// The line of each node read since the last call.
  std::vector<uint32_t> take_lines() { return std::exchange(lines_, {}); }

 private:
  /// Reads the statement after the name of its operation; `made` receives its results.
  bool statement_of(OpCode code, Values& made);

  // --- Blocks
  /// '{ … }', in which `names` are arguments of `types`. It ends in a yield if `has_yield`; a yield
  /// without values is not written.
  bool body(const Names& names, const Types& types, bool has_yield, BlockId& block);
  /// 'KEYWORD(%x, …) { … }': a further block of a statement, which names its arguments.
  bool named_body(std::string_view keyword, const Types& types, bool has_yield, BlockId& block);
  /// The types of an index and of the carried values.
  Types index_and(const Types& types) const;
  bool yield();

  // --- Scalars and memory
  bool scalar(OpCode code, Values& made);
  bool load(Values& made);
  bool store(OpCode code);  // atomics too
  bool atomic_kind(AtomicKind& kind);
  bool declaration(OpCode code);  // scratch and private
  /// ': TYPE' after a statement on a memory of type `expected`.
  bool colon_type(ElementType expected);

  // --- Control
  bool lanes();
  bool for_loop(Values& made);
  bool while_loop(Values& made);
  bool if_else(Values& made);
  bool reduction(OpCode code, Values& made);  // reduce and scan

  // --- Tiles
  bool copy();
  bool contract();
  /// 'by(0, 1)': one dimension of the memory for each of the `count` dimensions of the box.
  bool by(size_t count, std::vector<uint32_t>& out);
  /// '%c[%i, %j]': a memory and the start of the tile in it.
  bool tile(MemoryId& m, Values& start);

  /// Sets the line of the nodes built since the last call.
  void note_lines(uint32_t line) { lines_.resize(builder_.kernel().nodes.size(), line); }

  int depth_ = 0;  // of blocks that are open
  std::vector<uint32_t> lines_;
  std::vector<Types> yield_types_;  // the types that each enclosing statement requires of its block
};

}  // namespace tenon::kernel
