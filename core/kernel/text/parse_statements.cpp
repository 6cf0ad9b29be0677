#include "core/kernel/text/parse_statements.h"

#include <algorithm>
#include <limits>

#include "core/kernel/ir/structure.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::kernel {

bool StatementParser::statement(bool& yielded) {
  const size_t start = scan_.token_start();
  Names results;
  if (scan_.peek() == '%') {
    do {
      if (!name(results.emplace_back())) return false;
    } while (scan_.accept(','));
    if (!scan_.expect('=')) return false;
  }
  const size_t at = scan_.token_start();
  const uint32_t line = scan_.position(at).line;
  const std::string_view word = scan_.word();
  const auto code = op_from_name(word);
  if (!code) return scan_.fail_at(at, fmt::format("'{}' is not an operation", word));
  Values made;
  yielded = *code == OpCode::kYield;
  if (!statement_of(*code, made)) return false;
  // The statement's own node was appended after the nodes in its blocks.
  note_lines(line);
  lines_.back() = line;
  if (made.size() != results.size()) {
    return scan_.fail_at(start, fmt::format("K0: {} gives {} values, {} are named", word,
                                            made.size(), results.size()));
  }
  define_all(results, made);
  return true;
}

bool StatementParser::statement_of(OpCode code, Values& made) {
  return visit(code, Overloads{
                         [&](OnScalar) { return scalar(code, made); },
                         [&](OnLoad) { return load(made); },
                         [&](OnAccess) { return store(code); },
                         [&](OnDeclaration) { return declaration(code); },
                         [&](OnLanes) { return lanes(); },
                         [&](OnFor) { return for_loop(made); },
                         [&](OnWhile) { return while_loop(made); },
                         [&](OnIf) { return if_else(made); },
                         [&](OnReduction) { return reduction(code, made); },
                         [&](OnCopy) { return copy(); },
                         [&](OnContract) { return contract(); },
                         [&](OnYield) { return yield(); },
                     });
}

// --- Blocks

bool StatementParser::body(const Names& names, const Types& types, bool has_yield, BlockId& block) {
  if (!scan_.expect('{')) return false;
  if (++depth_ > kMostNesting) return scan_.fail("K0: nested deeper than {} levels", kMostNesting);
  block = builder_.begin_block(types);
  open_scope();
  define_all(names, builder_.arguments(block));
  bool yielded = false;
  while (!scan_.accept('}')) {
    if (yielded) return scan_.fail_expected("'}' after yield");
    if (!statement(yielded)) return false;
  }
  close_scope();
  --depth_;
  builder_.end_block(has_yield && !yielded, {});
  note_lines(scan_.position(scan_.offset()).line);
  return true;
}

bool StatementParser::named_body(std::string_view keyword, const Types& types, bool has_yield,
                                 BlockId& block) {
  Names names;
  return scan_.expect_keyword(keyword) && scan_.expect('(') && this->names(names, ')') &&
         body(names, types, has_yield, block);
}

StatementParser::Types StatementParser::index_and(const Types& types) const {
  Types all(types.size() + 1, builder_.index_type());
  std::ranges::copy(types, all.begin() + 1);
  return all;
}

bool StatementParser::yield() {
  Values values;
  // Constants have the types that the enclosing statement requires.
  const Types wanted = yield_types_.empty() ? Types() : yield_types_.back();
  do {
    const ElementType type =
        values.size() < wanted.size() ? wanted[values.size()] : builder_.index_type();
    if (!value(type, values.emplace_back())) return false;
  } while (scan_.accept(','));
  Node node;
  node.op = OpCode::kYield;
  node.operands = std::move(values);
  builder_.append(std::move(node), {});
  return true;
}

// --- Scalars and memory

bool StatementParser::scalar(OpCode code, Values& made) {
  const ScalarOp& row = scalar_op(code);
  const size_t start = scan_.token_start();
  Node node;
  node.op = code;
  if (!type_behind(node.from)) return false;
  for (size_t i = 0; i < row.operands; ++i) {
    const bool condition = code == OpCode::kSelect && i == 0;
    if (i != 0 && !scan_.expect(',')) return false;
    if (!value(condition ? ElementType::kPred : node.from, node.operands.emplace_back())) {
      return false;
    }
  }
  if (!scan_.expect(':') || !type(node.type)) return false;
  if (row.result == ResultType::kStated && (!scan_.expect("->") || !type(node.type))) {
    return false;
  }
  if (!contains(row.types, node.from)) {
    return scan_.fail_at(start,
                         fmt::format("K0: {} has no meaning on {}", row.name, name_of(node.from)));
  }
  const ElementType result = row.result == ResultType::kPred ? ElementType::kPred : node.type;
  // Built as written: nothing is folded.
  made = builder_.append(std::move(node), {result});
  return true;
}

bool StatementParser::load(Values& made) {
  MemoryId m = 0;
  Values at;
  if (!memory(m) || !indices(m, at) || !colon_type(builder_.kernel().memory(m).type)) {
    return false;
  }
  made = {builder_.load(m, at)};
  return true;
}

bool StatementParser::store(OpCode code) {
  AtomicKind kind{};
  if (code == OpCode::kAtomic && !atomic_kind(kind)) return false;
  ElementType type{};
  ValueId stored = 0;
  MemoryId m = 0;
  Values at;
  if (!type_behind(type) || !value(type, stored) || !scan_.expect(',') || !memory(m) ||
      !indices(m, at) || !colon_type(builder_.kernel().memory(m).type)) {
    return false;
  }
  if (code == OpCode::kAtomic) {
    builder_.atomic(kind, stored, m, at);
  } else {
    builder_.store(stored, m, at);
  }
  return true;
}

bool StatementParser::atomic_kind(AtomicKind& kind) {
  const size_t start = scan_.token_start();
  const std::string_view word = scan_.word();
  for (int k = 0; k <= static_cast<int>(AtomicKind::kXor); ++k) {
    kind = static_cast<AtomicKind>(k);
    if (op_name(combination_of(kind)) == word) return true;
  }
  return scan_.fail_at(start, fmt::format("K6: '{}' is not an atomic combination", word));
}

bool StatementParser::declaration(OpCode code) {
  Memory m;
  const size_t start = scan_.token_start();
  if (!name(m.name) || !scan_.expect(':') || !shape(m)) return false;
  int64_t lane_rank = 0;
  if (code == OpCode::kPrivate &&
      (!scan_.expect_keyword("per") || !scan_.expect_keyword("lanes") || !extent(lane_rank))) {
    return false;
  }
  if (lane_rank > static_cast<int64_t>(m.dims.size()) ||
      (code == OpCode::kPrivate && lane_rank == 0)) {
    return scan_.fail_at(start, "K0: lanes are the leading dimensions of private memory");
  }
  if (!m.strides.empty()) return scan_.fail_at(start, "K0: only a buffer has strides");
  if (is_memory(m.name)) {
    return scan_.fail_at(start, fmt::format("K0: %{} is declared twice", m.name));
  }
  declare(m.name, builder_.private_memory(m.name, m.type, std::move(m.dims),
                                          static_cast<uint32_t>(lane_rank)));
  return true;
}

bool StatementParser::colon_type(ElementType expected) {
  ElementType found{};
  const size_t start = scan_.token_start();
  if (!scan_.expect(':') || !type(found)) return false;
  return found == expected || scan_.fail_at(start, fmt::format("K0: the memory holds {}, not {}",
                                                               name_of(expected), name_of(found)));
}

// --- Control

bool StatementParser::lanes() {
  Node node;
  node.op = OpCode::kLanes;
  Names names;
  if (!scan_.expect('(') || !induction(names, node.extents)) return false;
  const Types types(names.size(), builder_.index_type());
  if (!body(names, types, false, node.blocks.emplace_back())) return false;
  builder_.append(std::move(node), {});
  return true;
}

bool StatementParser::for_loop(Values& made) {
  Node node;
  node.op = OpCode::kFor;
  Names names(1);
  const ElementType index = builder_.index_type();
  node.operands.resize(2);
  if (!name(names[0]) || !scan_.expect('=') || !scan_.expect('(') ||
      !value(index, node.operands[0]) || !scan_.expect(',') || !value(index, node.operands[1]) ||
      !scan_.expect(',') || !extent(node.extents.emplace_back()) || !scan_.expect(')')) {
    return false;
  }
  Types results;
  Values inits;
  if (scan_.accept_keyword("carry") && !carried(names, inits, results)) return false;
  node.operands.insert(node.operands.end(), inits.begin(), inits.end());
  yield_types_.push_back(results);
  if (!body(names, index_and(results), true, node.blocks.emplace_back())) return false;
  yield_types_.pop_back();
  made = builder_.append(std::move(node), results);
  return true;
}

bool StatementParser::while_loop(Values& made) {
  Node node;
  node.op = OpCode::kWhile;
  Names names;
  Types results;
  yield_types_.push_back({ElementType::kPred});
  if (!carried(names, node.operands, results) ||
      !body(names, results, true, node.blocks.emplace_back())) {
    return false;
  }
  yield_types_.back() = results;
  if (!named_body("do", results, true, node.blocks.emplace_back())) return false;
  yield_types_.pop_back();
  made = builder_.append(std::move(node), results);
  return true;
}

bool StatementParser::if_else(Values& made) {
  Node node;
  node.op = OpCode::kIf;
  Types results;
  if (!value(ElementType::kPred, node.operands.emplace_back())) return false;
  if (scan_.accept(':') && !types(results)) return false;
  yield_types_.push_back(results);
  if (!body({}, {}, true, node.blocks.emplace_back())) return false;
  if (scan_.accept_keyword("else")) {
    if (!body({}, {}, true, node.blocks.emplace_back())) return false;
  } else {
    node.blocks.push_back(builder_.begin_block({}));
    builder_.end_block(true, {});
  }
  yield_types_.pop_back();
  made = builder_.append(std::move(node), results);
  return true;
}

bool StatementParser::reduction(OpCode code, Values& made) {
  Node node;
  node.op = code;
  node.over_lanes = scan_.accept_keyword("lanes");
  if (!node.over_lanes && !scan_.expect_keyword("serial")) return false;
  Names names;
  if (!scan_.expect('(') || !induction(names, node.extents) || !scan_.expect_keyword("init")) {
    return false;
  }
  Types results;
  if (!inits(node.operands, results)) return false;
  node.commutative = scan_.accept_keyword("commutative");
  const Types indices(names.size(), builder_.index_type());
  Types sides = results;
  sides.insert(sides.end(), results.begin(), results.end());
  yield_types_.push_back(results);
  if (!body(names, indices, true, node.blocks.emplace_back()) ||
      !named_body("combine", sides, true, node.blocks.emplace_back())) {
    return false;
  }
  yield_types_.pop_back();
  if (code == OpCode::kScan &&
      !named_body("each", index_and(results), false, node.blocks.emplace_back())) {
    return false;
  }
  made = builder_.append(std::move(node), results);
  return true;
}

// --- Tiles

bool StatementParser::copy() {
  Dims box;
  MemoryId destination = 0;
  MemoryId source = 0;
  Values to;
  Values from;
  std::vector<uint32_t> to_by;
  std::vector<uint32_t> from_by;
  if (!scan_.expect_keyword("box") || !scan_.expect('(') || !numbers(box, ')') ||
      !memory(destination) || !indices(destination, to) || !by(box.size(), to_by) ||
      !scan_.expect('=') || !memory(source) || !indices(source, from) || !by(box.size(), from_by)) {
    return false;
  }
  ValueId pad = kNone;
  if (scan_.accept_keyword("pad") && !value(builder_.kernel().memory(destination).type, pad)) {
    return false;
  }
  const bool clip = scan_.accept_keyword("clip");
  builder_.copy(box, destination, to, to_by, source, from, from_by, pad, clip);
  return true;
}

bool StatementParser::contract() {
  Dims box;
  MemoryId tiles[3] = {};
  Values starts[3];
  if (!scan_.expect_keyword("box") || !scan_.expect('(') || !numbers(box, ')') ||
      !tile(tiles[0], starts[0]) || !scan_.expect("+=") || !tile(tiles[1], starts[1]) ||
      !scan_.expect('*') || !tile(tiles[2], starts[2])) {
    return false;
  }
  if (box.size() != 3) return scan_.fail("K0: the box of contract is (m, n, k)");
  bool transpose[2] = {};
  while (scan_.accept_keyword("transpose")) {
    const std::string_view side = scan_.word();
    if (side != "a" && side != "b") return scan_.fail("transpose a or b");
    transpose[side == "b" ? 1 : 0] = true;
  }
  builder_.contract(box[0], box[1], box[2], tiles[0], starts[0], tiles[1], starts[1], tiles[2],
                    starts[2], transpose[0], transpose[1]);
  return true;
}

bool StatementParser::by(size_t count, std::vector<uint32_t>& out) {
  Dims dims;
  const size_t start = scan_.token_start();
  if (!scan_.expect_keyword("by") || !scan_.expect('(') || !numbers(dims, ')')) return false;
  if (dims.size() != count) {
    return scan_.fail_at(start,
                         fmt::format("K0: the box has {} dimensions, by {}", count, dims.size()));
  }
  for (const int64_t d : dims) {
    if (d < 0 || d > std::numeric_limits<uint32_t>::max()) {
      return scan_.fail_at(start, fmt::format("K0: {} is not a dimension", d));
    }
    out.push_back(static_cast<uint32_t>(d));
  }
  return true;
}

bool StatementParser::tile(MemoryId& m, Values& start) {
  if (!memory(m)) return false;
  const Memory& info = builder_.kernel().memory(m);
  return indices_of_rank(m, info.space == Space::kPrivate ? 2 : info.dims.size(), start);
}

}  // namespace tenon::kernel
