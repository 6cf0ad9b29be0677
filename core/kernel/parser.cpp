// The parser of kernels: one function a statement, straight into the builder.
#include <algorithm>
#include <unordered_map>

#include "core/kernel/builder.h"
#include "core/kernel/scalar.h"
#include "core/kernel/text.h"
#include "core/text/scanner.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

constexpr int kMaxDepth = 100;  // of statements
constexpr int64_t kMaxExtent = int64_t{1} << 40;
constexpr size_t kMaxRank = 64;

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : scan_(text, file), builder_("") {}

  Result<std::vector<Kernel>> take_all() {
    std::vector<Kernel> kernels;
    while (!scan_.at_end()) {
      if (!kernel()) return Error(scan_.status()).at({});
      kernels.push_back(builder_.finish());
      kernels.back().lines = std::move(lines_);
      lines_.clear();
    }
    return kernels;
  }

 private:
  using Types = std::vector<ElementType>;

  // --- Words

  bool type(ElementType& out) {
    const size_t start = scan_.token_start();
    const std::string_view word = scan_.word();
    const auto found = element_type_from_name(word);
    if (!found) return scan_.fail_at(start, fmt::format("'{}' is no element type", word));
    if (is_complex(*found)) return scan_.fail_at(start, "K0: a kernel has no complex numbers");
    out = *found;
    return true;
  }
  bool types(Types& out) {
    do {
      if (!type(out.emplace_back())) return false;
    } while (scan_.accept(','));
    return true;
  }
  bool name(std::string& out) {
    if (!scan_.expect('%')) return false;
    out = scan_.suffix();
    return !out.empty() || scan_.fail_expected("a name after '%'");
  }
  bool names(std::vector<std::string>& out, char closing) {
    while (scan_.peek() != closing) {
      if (!name(out.emplace_back())) return false;
      if (!scan_.accept(',')) break;
    }
    return scan_.expect(closing);
  }
  bool extent(int64_t& out) {
    const size_t start = scan_.token_start();
    if (!scan_.integer(out)) return false;
    return (out >= 0 && out <= kMaxExtent) ||
           scan_.fail_at(start, fmt::format("K0: extent {} is out of range", out));
  }
  bool numbers(Dims& out, char closing) {
    while (scan_.peek() != closing) {
      if (!extent(out.emplace_back())) return false;
      if (out.size() > kMaxRank) return scan_.fail("K0: more than {} dimensions", kMaxRank);
      if (!scan_.accept(',')) break;
    }
    return scan_.expect(closing);
  }
  // '%i: 4, %j: 8)'
  bool induction(std::vector<std::string>& names, Dims& extents) {
    while (scan_.peek() != ')') {
      if (!name(names.emplace_back()) || !scan_.expect(':') || !extent(extents.emplace_back())) {
        return false;
      }
      if (extents.size() > kMaxRank) return scan_.fail("K0: more than {} dimensions", kMaxRank);
      if (!scan_.accept(',')) break;
    }
    return scan_.expect(')');
  }

  // --- Names of values and memories

  struct Undo {
    std::string name;
    std::optional<ValueId> value;
  };
  bool define(const std::string& name, ValueId value) {
    auto [entry, added] = values_.try_emplace(name, value);
    undo_.push_back({name, added ? std::nullopt : std::optional(entry->second)});
    entry->second = value;
    return true;
  }
  void define_all(const std::vector<std::string>& names, const Values& values) {
    for (size_t i = 0; i < names.size() && i < values.size(); ++i) define(names[i], values[i]);
  }
  bool open(const std::vector<std::string>& names, const Types& types, BlockId& block) {
    if (!scan_.expect('{')) return false;
    if (++depth_ > kMaxDepth) return scan_.fail("K0: nested deeper than {} levels", kMaxDepth);
    block = builder_.begin_block(types);
    marks_.push_back(undo_.size());
    define_all(names, builder_.arguments(block));
    return true;
  }
  // Statements up to '}'; a yield of nothing is not written.
  bool close(bool has_yield) {
    bool yielded = false;
    while (!scan_.accept('}')) {
      if (yielded) return scan_.fail_expected("'}' after yield");
      if (!statement(yielded)) return false;
    }
    while (undo_.size() > marks_.back()) {
      if (undo_.back().value) {
        values_[undo_.back().name] = *undo_.back().value;
      } else {
        values_.erase(undo_.back().name);
      }
      undo_.pop_back();
    }
    marks_.pop_back();
    --depth_;
    builder_.end_block(has_yield && !yielded, {});
    note_lines(scan_.position(scan_.offset()).line);
    return true;
  }
  bool body(const std::vector<std::string>& names, const Types& types, bool has_yield,
            BlockId& block) {
    return open(names, types, block) && close(has_yield);
  }
  bool memory(MemoryId& out) {
    const size_t start = scan_.token_start();
    std::string text;
    if (!name(text)) return false;
    const auto found = memories_.find(text);
    if (found == memories_.end()) {
      return scan_.fail_at(start, fmt::format("K0: no memory %{} is declared here", text));
    }
    out = found->second;
    return true;
  }

  // --- Values

  // A name, or a constant of `type`.
  bool value(ElementType type, ValueId& out) {
    if (scan_.peek() != '%') return constant(type, out);
    const size_t start = scan_.token_start();
    std::string text;
    if (!name(text)) return false;
    const auto found = values_.find(text);
    if (found == values_.end()) {
      return scan_.fail_at(start, fmt::format("K0: %{} is not defined here", text));
    }
    out = found->second;
    return true;
  }

  bool constant(ElementType type, ValueId& out) {
    const size_t start = scan_.token_start();
    if (is_pred(type)) {
      const bool truth = scan_.accept_keyword("true");
      if (!truth && !scan_.accept_keyword("false")) return scan_.fail_expected("a pred");
      out = builder_.pred(truth);
      return true;
    }
    const bool hex = scan_.peek("0x");
    if (is_integer(type) || hex) {
      int64_t number = 0;
      if (!scan_.integer(number)) return false;
      const uint64_t bits = from_pattern(type, static_cast<uint64_t>(number));
      const bool fits =
          is_integer(type)
              ? static_cast<int64_t>(bits) == number
              : bit_width(type) == 64 || (static_cast<uint64_t>(number) >> bit_width(type)) == 0;
      if (!fits) return scan_.fail_at(start, fmt::format("the constant is no {}", name_of(type)));
      out = builder_.constant(type, bits);
      return true;
    }
    const bool negative = scan_.peek("-inf") && scan_.accept('-');
    double number = HUGE_VAL;
    if (scan_.accept_keyword("nan")) {
      number = __builtin_nan("");
    } else if (!scan_.accept_keyword("inf") && !scan_.real(number)) {
      return false;
    }
    out = builder_.real(type, negative ? -number : number);
    return true;
  }

  // The type of an operand is known only after the colon: operands are read twice, first to find
  // it.
  bool type_behind(ElementType& out) {
    const size_t start = scan_.offset();
    const size_t end = std::min(scan_.text().find('\n', start), scan_.text().size());
    const size_t colon = scan_.text().substr(0, end).find(" : ", start);
    if (colon == std::string_view::npos) {
      return scan_.fail("expected ': TYPE' behind the operands");
    }
    scan_.set_offset(colon + 1);
    const bool good = scan_.expect(':') && type(out);
    if (good) scan_.set_offset(start);
    return good;
  }
  bool indices(MemoryId memory, Values& out) {
    const size_t rank = builder_.kernel().memory(memory).dims.size();
    return indices_of_rank(memory, rank, out);
  }
  bool indices_of_rank(MemoryId memory, size_t rank, Values& out) {
    const size_t start = scan_.token_start();
    if (!scan_.expect('[')) return false;
    size_t count = 0;
    while (scan_.peek() != ']') {
      if (!value(builder_.index_type(), out.emplace_back())) return false;
      ++count;
      if (!scan_.accept(',')) break;
    }
    if (count != rank) {
      return scan_.fail_at(start, fmt::format("K0: %{} has {} indices, {} given",
                                              builder_.kernel().memory(memory).name, rank, count));
    }
    return scan_.expect(']');
  }

  // --- The head

  bool kernel() {
    values_.clear();
    memories_.clear();
    undo_.clear();
    depth_ = 0;
    if (!scan_.expect_keyword("kernel") || !scan_.expect('@')) return false;
    const std::string name(scan_.suffix());
    if (name.empty()) return scan_.fail_expected("a kernel's name");
    builder_ = Builder(name);
    const size_t parameters = scan_.offset();
    if (!parameter_list()) return false;
    ElementType index{};
    if (!scan_.expect_keyword("index") || !type(index)) return false;
    if (index != ElementType::kS32 && index != ElementType::kS64) {
      return scan_.fail("K10: the index type is s32 or s64");
    }
    const size_t end = scan_.offset();
    // The builder wants to know the index type first.
    builder_ = Builder(name, index);
    memories_.clear();
    values_.clear();
    scan_.set_offset(parameters);
    if (!parameter_list()) return false;
    scan_.set_offset(end);
    std::vector<std::string> names;
    Dims extents;
    if (!scan_.expect_keyword("grid") || !scan_.expect('(') || !induction(names, extents)) {
      return false;
    }
    if (scan_.accept_keyword("label")) {
      std::string label;
      if (!scan_.string_literal(label)) return false;
      builder_.set_label(std::move(label));
    }
    define_all(names, builder_.grid(std::move(extents)));
    if (!scan_.expect('{')) return false;
    bool yielded = false;
    while (!scan_.accept('}')) {
      if (!statement(yielded)) return false;
    }
    return !yielded || scan_.fail("K0: a kernel's body yields nothing");
  }

  bool parameter_list() {
    if (!scan_.expect('(')) return false;
    while (scan_.peek() != ')') {
      if (!parameter()) return false;
      if (!scan_.accept(',')) break;
    }
    return scan_.expect(')');
  }

  bool parameter() {
    const size_t start = scan_.token_start();
    std::string text;
    if (!name(text) || !scan_.expect(':')) return false;
    if (memories_.contains(text) || values_.contains(text)) {
      return scan_.fail_at(start, fmt::format("K0: parameter %{} is declared twice", text));
    }
    if (scan_.accept_keyword("scalar")) {
      ElementType scalar{};
      return type(scalar) && define(text, builder_.scalar(text, scalar));
    }
    Memory m;
    m.name = text;
    m.packed = scan_.accept_keyword("packed");
    const std::string_view access = scan_.word();
    if (access != "in" && access != "out" && access != "inout") {
      return scan_.fail_at(start, "expected 'in', 'out', 'inout' or 'scalar'");
    }
    m.access = access == "in" ? Access::kIn : access == "out" ? Access::kOut : Access::kInOut;
    if (!shape(m)) return false;
    if (scan_.accept_keyword("over") && !memory(m.over)) return false;
    memories_[text] = builder_.buffer(std::move(m));
    return true;
  }

  bool shape(Memory& m) {
    if (!type(m.type) || !scan_.expect('[') || !numbers(m.dims, ']')) return false;
    if (!scan_.accept('{')) return true;
    if (!numbers(m.strides, '}')) return false;
    return m.strides.size() == m.dims.size() || scan_.fail("K0: as many strides as dimensions");
  }

  // --- Statements

  /// Nodes made since the last call are of `line`.
  void note_lines(uint32_t line) { lines_.resize(builder_.kernel().nodes.size(), line); }

  bool statement(bool& yielded) {
    const size_t start = scan_.token_start();
    std::vector<std::string> results;
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
    if (!code) return scan_.fail_at(at, fmt::format("'{}' is no operation", word));
    Values made;
    yielded = *code == OpCode::kYield;
    if (!statement_of(*code, made)) return false;
    // The statement's own node was appended after those in its blocks.
    note_lines(line);
    lines_.back() = line;
    if (made.size() != results.size()) {
      return scan_.fail_at(start, fmt::format("K0: {} gives {} values, {} are named", word,
                                              made.size(), results.size()));
    }
    define_all(results, made);
    return true;
  }

  bool statement_of(OpCode code, Values& made) {
    switch (code) {
      case OpCode::kLoad: {
        MemoryId m = 0;
        Values at;
        if (!memory(m) || !indices(m, at) || !colon_type(builder_.kernel().memory(m).type)) {
          return false;
        }
        made = {builder_.load(m, at)};
        return true;
      }
      case OpCode::kStore:
      case OpCode::kAtomic:
        return store(code);
      case OpCode::kScratch:
      case OpCode::kPrivate:
        return declaration(code);
      case OpCode::kLanes:
        return lanes();
      case OpCode::kFor:
        return for_loop(made);
      case OpCode::kWhile:
        return while_loop(made);
      case OpCode::kIf:
        return if_else(made);
      case OpCode::kReduce:
      case OpCode::kScan:
        return reduction(code, made);
      case OpCode::kCopy:
        return copy();
      case OpCode::kContract:
        return contract();
      case OpCode::kYield:
        return yield();
      default:
        return scalar(code, made);
    }
  }

  bool colon_type(ElementType expected) {
    ElementType found{};
    const size_t start = scan_.token_start();
    if (!scan_.expect(':') || !type(found)) return false;
    return found == expected ||
           scan_.fail_at(start, fmt::format("K0: the memory holds {}, not {}", name_of(expected),
                                            name_of(found)));
  }

  bool scalar(OpCode code, Values& made) {
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
      return scan_.fail_at(
          start, fmt::format("K0: {} has no meaning on {}", row.name, name_of(node.from)));
    }
    const ElementType result = row.result == ResultType::kPred ? ElementType::kPred : node.type;
    // As written: nothing is folded.
    made = builder_.append(std::move(node), {result});
    return true;
  }

  bool store(OpCode code) {
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

  bool atomic_kind(AtomicKind& kind) {
    const size_t start = scan_.token_start();
    const std::string_view word = scan_.word();
    for (int k = 0; k <= static_cast<int>(AtomicKind::kXor); ++k) {
      kind = static_cast<AtomicKind>(k);
      if (op_name(combination_of(kind)) == word) return true;
    }
    return scan_.fail_at(start, fmt::format("K6: '{}' is no atomic combination", word));
  }

  bool declaration(OpCode code) {
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
    if (memories_.contains(m.name)) {
      return scan_.fail_at(start, fmt::format("K0: %{} is declared twice", m.name));
    }
    const std::string text = m.name;
    memories_[text] = builder_.private_memory(m.name, m.type, std::move(m.dims),
                                              static_cast<uint32_t>(lane_rank));
    return true;
  }

  bool lanes() {
    Node node;
    node.op = OpCode::kLanes;
    std::vector<std::string> names;
    if (!scan_.expect('(') || !induction(names, node.extents)) return false;
    const Types types(names.size(), builder_.index_type());
    if (!body(names, types, false, node.blocks.emplace_back())) return false;
    builder_.append(std::move(node), {});
    return true;
  }

  // '(%s = VALUE, …)' [':' types]: the types are needed to read constants, so the list is skipped
  // first.
  bool carried(std::vector<std::string>& names, Values& inits, Types& out) {
    const size_t start = scan_.token_start();
    std::string_view skipped;
    if (!scan_.balanced(skipped)) return scan_.fail_expected("'('");
    const bool has_types = scan_.accept(':');
    if (has_types && !types(out)) return false;
    const size_t end = scan_.offset();
    scan_.set_offset(start);
    if (!scan_.expect('(')) return false;
    while (scan_.peek() != ')') {
      if (inits.size() == out.size()) return scan_.fail("K0: more values than types");
      const ElementType type = out[inits.size()];
      if (!name(names.emplace_back()) || !scan_.expect('=') || !value(type, inits.emplace_back())) {
        return false;
      }
      if (!scan_.accept(',')) break;
    }
    if (!scan_.expect(')')) return false;
    if (inits.size() != out.size()) return scan_.fail_at(start, "K0: fewer values than types");
    scan_.set_offset(end);
    return true;
  }

  bool for_loop(Values& made) {
    Node node;
    node.op = OpCode::kFor;
    std::vector<std::string> names(1);
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
    Types arguments = {index};
    arguments.insert(arguments.end(), results.begin(), results.end());
    yield_types_.push_back(results);
    if (!body(names, arguments, true, node.blocks.emplace_back())) return false;
    yield_types_.pop_back();
    made = builder_.append(std::move(node), results);
    return true;
  }

  bool while_loop(Values& made) {
    Node node;
    node.op = OpCode::kWhile;
    std::vector<std::string> names;
    Types results;
    yield_types_.push_back({ElementType::kPred});
    if (!carried(names, node.operands, results) ||
        !body(names, results, true, node.blocks.emplace_back())) {
      return false;
    }
    yield_types_.back() = results;
    std::vector<std::string> again;
    if (!scan_.expect_keyword("do") || !scan_.expect('(') || !this->names(again, ')') ||
        !body(again, results, true, node.blocks.emplace_back())) {
      return false;
    }
    yield_types_.pop_back();
    made = builder_.append(std::move(node), results);
    return true;
  }

  bool if_else(Values& made) {
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

  bool reduction(OpCode code, Values& made) {
    Node node;
    node.op = code;
    node.over_lanes = scan_.accept_keyword("lanes");
    if (!node.over_lanes && !scan_.expect_keyword("serial")) return false;
    std::vector<std::string> names;
    if (!scan_.expect('(') || !induction(names, node.extents) || !scan_.expect_keyword("init")) {
      return false;
    }
    Types results;
    if (!inits(node.operands, results)) return false;
    node.commutative = scan_.accept_keyword("commutative");
    const Types indices(names.size(), builder_.index_type());
    yield_types_.push_back(results);
    if (!body(names, indices, true, node.blocks.emplace_back())) return false;
    Types sides = results;
    sides.insert(sides.end(), results.begin(), results.end());
    names.clear();
    if (!scan_.expect_keyword("combine") || !scan_.expect('(') || !this->names(names, ')') ||
        !body(names, sides, true, node.blocks.emplace_back())) {
      return false;
    }
    yield_types_.pop_back();
    if (code == OpCode::kScan) {
      names.clear();
      Types arguments = {builder_.index_type()};
      arguments.insert(arguments.end(), results.begin(), results.end());
      if (!scan_.expect_keyword("each") || !scan_.expect('(') || !this->names(names, ')') ||
          !body(names, arguments, false, node.blocks.emplace_back())) {
        return false;
      }
    }
    made = builder_.append(std::move(node), results);
    return true;
  }

  // '(VALUE, …)' ':' types
  bool inits(Values& out, Types& result_types) {
    const size_t start = scan_.token_start();
    std::string_view skipped;
    if (!scan_.peek("(") || !scan_.balanced(skipped)) return scan_.fail_expected("'('");
    if (!scan_.expect(':') || !types(result_types)) return false;
    const size_t end = scan_.offset();
    scan_.set_offset(start);
    if (!scan_.expect('(')) return false;
    for (size_t i = 0; i < result_types.size(); ++i) {
      if (i != 0 && !scan_.expect(',')) return false;
      if (!value(result_types[i], out.emplace_back())) return false;
    }
    if (!scan_.expect(')')) return false;
    scan_.set_offset(end);
    return true;
  }

  // Constants take the types that the enclosing statement asks for.
  bool yield() {
    Values values;
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

  // One dimension of the memory for each of the box.
  bool by(size_t count, std::vector<uint32_t>& out) {
    Dims dims;
    const size_t start = scan_.token_start();
    if (!scan_.expect_keyword("by") || !scan_.expect('(') || !numbers(dims, ')')) return false;
    if (dims.size() != count) {
      return scan_.fail_at(start,
                           fmt::format("K0: the box has {} dimensions, by {}", count, dims.size()));
    }
    for (const int64_t d : dims) out.push_back(static_cast<uint32_t>(d));
    return true;
  }

  bool copy() {
    Dims box;
    MemoryId destination = 0;
    MemoryId source = 0;
    Values to;
    Values from;
    std::vector<uint32_t> to_by;
    std::vector<uint32_t> from_by;
    if (!scan_.expect_keyword("box") || !scan_.expect('(') || !numbers(box, ')') ||
        !memory(destination) || !indices(destination, to) || !by(box.size(), to_by) ||
        !scan_.expect('=') || !memory(source) || !indices(source, from) ||
        !by(box.size(), from_by)) {
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

  bool tile(MemoryId& m, Values& start) {
    if (!memory(m)) return false;
    const Memory& info = builder_.kernel().memory(m);
    return indices_of_rank(m, info.space == Space::kPrivate ? 2 : info.dims.size(), start);
  }

  bool contract() {
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

  Scanner scan_;
  Builder builder_;
  int depth_ = 0;
  std::vector<uint32_t> lines_;
  std::unordered_map<std::string, ValueId> values_;
  std::unordered_map<std::string, MemoryId> memories_;
  std::vector<Undo> undo_;
  std::vector<size_t> marks_;
  std::vector<Types> yield_types_;
};

}  // namespace

Result<std::vector<Kernel>> parse_all(std::string_view text, const std::string& file) {
  return Parser(text, file).take_all();
}

Result<Kernel> parse(std::string_view text, const std::string& file) {
  TENON_ASSIGN(std::vector<Kernel> kernels, parse_all(text, file));
  if (kernels.size() != 1) {
    return invalid_argument("one kernel expected, {} found", kernels.size()).at({file, 1, 1});
  }
  return std::move(kernels[0]);
}

}  // namespace tenon::kernel
