// The parser of a kernel's statements, into the builder as they are read. parser.cpp derives from
// it. Private to core/kernel.
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

  /// One statement and the blocks in it. `yielded`: whether it is a yield.
  bool statement(bool& yielded);
  /// The line of each node read since the last call.
  std::vector<uint32_t> take_lines() { return std::exchange(lines_, {}); }

 private:
  /// Reads the statement behind the name of the operation; `made` are its results.
  bool statement_of(OpCode code, Values& made);

  // --- Blocks
  /// '{ … }', in which `names` stand for arguments of `types`. It ends in a yield if `has_yield`; a
  /// yield of nothing is not written.
  bool body(const Names& names, const Types& types, bool has_yield, BlockId& block);
  /// 'KEYWORD(%x, …) { … }': a block behind another one of its statement, which names its
  /// arguments.
  bool named_body(std::string_view keyword, const Types& types, bool has_yield, BlockId& block);
  /// The types of an index and of the values carried along with it.
  Types index_and(const Types& types) const;
  bool yield();

  // --- Scalars and memory
  bool scalar(OpCode code, Values& made);
  bool load(Values& made);
  bool store(OpCode code);  // atomics too
  bool atomic_kind(AtomicKind& kind);
  bool declaration(OpCode code);  // scratch and private
  /// ': TYPE' behind a statement on a memory of type `expected`.
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
  /// 'by(0, 1)': one dimension of the memory for each of the box's `count`.
  bool by(size_t count, std::vector<uint32_t>& out);
  /// '%c[%i, %j]': a memory and where the tile begins in it.
  bool tile(MemoryId& m, Values& start);

  /// Nodes made since the last call are of `line`.
  void note_lines(uint32_t line) { lines_.resize(builder_.kernel().nodes.size(), line); }

  int depth_ = 0;  // of blocks that are open
  std::vector<uint32_t> lines_;
  std::vector<Types> yield_types_;  // the types that each enclosing statement asks its block for
};

}  // namespace tenon::kernel
