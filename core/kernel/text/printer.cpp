#include <fmt/format.h>

#include <cmath>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/math/scalar.h"
#include "core/kernel/text/text.h"

#include <set>

namespace tenon::kernel {
namespace {

std::string list(const Dims& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, std::vector<uint32_t>* lines)
      : kernel_(kernel), lines_(lines), names_(kernel.values.size(), kNone) {
    taken_.insert(kernel.scalar_names.begin(), kernel.scalar_names.end());
    if (lines_ != nullptr) lines_->assign(kernel.nodes.size(), 0);
  }

  std::string take() {
    head();
    block(kernel_.body, 1);
    out_ += "}\n";
    return std::move(out_);
  }

  // The names of values, once they are printed.
  std::vector<std::string> names() {
    std::vector<std::string> list(kernel_.values.size());
    for (ValueId id = 0; id < list.size(); ++id) {
      if (kernel_.value(id).kind == ValueKind::kScalar || names_[id] != kNone) list[id] = value(id);
    }
    return list;
  }

 private:
  void head() {
    std::vector<std::string> parameters;
    for (size_t m = 0; m < kernel_.buffer_count; ++m) {
      parameters.push_back(buffer(static_cast<MemoryId>(m)));
    }
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
      parameters.push_back(fmt::format("%{}: scalar {}", kernel_.scalar_names[i],
                                       name_of(kernel_.value(kernel_.scalars[i]).type)));
    }
    const Values_& indices = kernel_.block(kernel_.body).arguments;
    line(0, fmt::format("kernel @{}({}) index {} grid({}){} {{", kernel_.name,
                        fmt::join(parameters, ", "), name_of(kernel_.index_type),
                        induction(indices, kernel_.grid), label()));
  }

  std::string label() const {
    if (kernel_.label.empty()) return "";
    std::string text = " label \"";
    for (const char c : kernel_.label) {
      const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
      text += plain ? std::string(1, c) : fmt::format("\\{:02X}", static_cast<uint8_t>(c));
    }
    return text + '"';
  }

  std::string buffer(MemoryId id) {
    static constexpr std::string_view kAccess[] = {"in", "out", "inout"};
    const Memory& m = kernel_.memory(id);
    std::string text = fmt::format("{}: {}{} {}", memory(id), m.packed ? "packed " : "",
                                   kAccess[static_cast<size_t>(m.access)], shape(m));
    if (m.over != kNone) text += " over " + memory(m.over);
    return text;
  }
  std::string shape(const Memory& m) {
    std::string text = fmt::format("{}[{}]", name_of(m.type), list(m.dims));
    if (!m.strides.empty()) text += "{" + list(m.strides) + "}";
    return text;
  }

  using Values_ = std::vector<ValueId>;

  void line(int depth, std::string_view text) {
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    out_ += text;
    out_ += '\n';
    ++line_;
  }

  // By name: names are distinct (structure.h).
  std::string memory(MemoryId id) const { return fmt::format("%{}", kernel_.memory(id).name); }
  std::string value(ValueId id) {
    const Value& v = kernel_.value(id);
    if (v.kind == ValueKind::kConstant) return constant_text(v.type, v.bits);
    if (v.kind == ValueKind::kScalar) {
      for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
        if (kernel_.scalars[i] == id) return "%" + kernel_.scalar_names[i];
      }
    }
    if (names_[id] == kNone) {
      // The name of a parameter may be a number.
      while (taken_.contains(std::to_string(next_name_))) ++next_name_;
      names_[id] = next_name_++;
    }
    return fmt::format("%{}", names_[id]);
  }
  std::string values(const ValueId* first, size_t count) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.push_back(value(first[i]));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  std::string values(const Values_& ids, size_t from = 0) {
    return values(ids.data() + from, ids.size() - from);
  }
  std::string types(const Values_& ids) {
    std::vector<std::string_view> texts;
    for (const ValueId id : ids) texts.push_back(name_of(kernel_.value(id).type));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  std::string induction(const Values_& indices, const Dims& extents) {
    std::vector<std::string> texts;
    for (size_t d = 0; d < extents.size(); ++d) {
      texts.push_back(fmt::format("{}: {}", value(indices[d]), extents[d]));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  std::string element(MemoryId m, const ValueId* first, size_t rank) {
    return fmt::format("{}[{}]", memory(m), values(first, rank));
  }
  std::string element(MemoryId m, const Values_& operands, size_t from) {
    return element(m, operands.data() + from, operands.size() - from);
  }
  size_t rank(MemoryId m) const { return kernel_.memory(m).dims.size(); }

  void block(BlockId id, int depth) {
    for (const NodeId n : kernel_.block(id).nodes) node(n, depth);
  }

  void node(NodeId id, int depth) {
    if (lines_ != nullptr) (*lines_)[id] = line_;
    const Node& n = kernel_.node(id);
    visit(n, Overloads{
                 [&](OnScalar) { line(depth, scalar(n)); },
                 [&](OnLoad) {
                   line(depth, results(n) + fmt::format("load {} : {}",
                                                        element(n.memories[0], n.operands, 0),
                                                        name_of(n.type)));
                 },
                 [&](OnStore) { line(depth, store("store", n)); },
                 [&](OnAtomic) {
                   const auto kind = op_name(combination_of(n.atomic));
                   line(depth, store(fmt::format("atomic {}", kind), n));
                 },
                 [&](OnDeclaration) { line(depth, declaration(n)); },
                 [&](OnLanes) {
                   line(depth, fmt::format("lanes({}) {{", induction(arguments(n, 0), n.extents)));
                   close(n, 0, depth, "}");
                 },
                 [&](OnFor) { print_for(n, depth); },
                 [&](OnWhile) { print_while(n, depth); },
                 [&](OnIf) { print_if(n, depth); },
                 [&](OnReduction) { print_reduction(n, depth); },
                 [&](OnCopy) { line(depth, copy(n)); },
                 [&](OnContract) { line(depth, contract(n)); },
                 [&](OnYield) {
                   if (!n.operands.empty()) line(depth, "yield " + values(n.operands));
                 },
             });
  }

  const Values_& arguments(const Node& n, size_t block) const {
    return kernel_.block(n.blocks[block]).arguments;
  }
  void close(const Node& n, size_t block_index, int depth, std::string_view end) {
    block(n.blocks[block_index], depth + 1);
    line(depth, end);
  }
  // Values are numbered in the order in which they are printed.
  std::string results(const Node& n) { return n.results.empty() ? "" : values(n.results) + " = "; }

  std::string carried(const Node& n, size_t block_index, size_t first_argument,
                      size_t first_operand) {
    std::vector<std::string> texts;
    const Values_& names = arguments(n, block_index);
    for (size_t i = first_argument; i < names.size(); ++i) {
      const std::string init = value(n.operands[first_operand + i - first_argument]);
      texts.push_back(fmt::format("{} = {}", value(names[i]), init));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  void print_for(const Node& n, int depth) {
    std::string text = results(n);
    text += fmt::format("for {} = ({}, {}, {})", value(arguments(n, 0)[0]), value(n.operands[0]),
                        value(n.operands[1]), n.extents[0]);
    if (!n.results.empty()) {
      text += fmt::format(" carry({}) : {}", carried(n, 0, 1, 2), types(n.results));
    }
    line(depth, text + " {");
    close(n, 0, depth, "}");
  }

  // The names of the carried values are printed for the condition, and again for the body.
  void print_while(const Node& n, int depth) {
    std::string text = results(n);
    text += fmt::format("while({})", carried(n, 0, 0, 0));
    if (!n.results.empty()) text += " : " + types(n.results);
    line(depth, text + " {");
    block(n.blocks[0], depth + 1);
    line(depth, fmt::format("}} do({}) {{", values(arguments(n, 1))));
    close(n, 1, depth, "}");
  }

  void print_if(const Node& n, int depth) {
    std::string text = results(n) + "if " + value(n.operands[0]);
    if (!n.results.empty()) text += " : " + types(n.results);
    line(depth, text + " {");
    block(n.blocks[0], depth + 1);
    const auto& otherwise = kernel_.block(n.blocks[1]).nodes;
    const bool trivial =
        otherwise.size() == 1 && n.results.empty() && kernel_.node(otherwise[0]).operands.empty();
    if (trivial) return line(depth, "}");
    line(depth, "} else {");
    close(n, 1, depth, "}");
  }

  void print_reduction(const Node& n, int depth) {
    std::string text = results(n);
    text += fmt::format("{} {}({}) init({}) : {}{} {{", op_name(n.op),
                        n.over_lanes ? "lanes" : "serial", induction(arguments(n, 0), n.extents),
                        values(n.operands), types(n.results), n.commutative ? " commutative" : "");
    line(depth, text);
    block(n.blocks[0], depth + 1);
    line(depth, fmt::format("}} combine({}) {{", values(arguments(n, 1))));
    block(n.blocks[1], depth + 1);
    if (n.op == OpCode::kScan) {
      line(depth, fmt::format("}} each({}) {{", values(arguments(n, 2))));
      block(n.blocks[2], depth + 1);
    }
    line(depth, "}");
  }

  std::string scalar(const Node& n) {
    const std::string from = scalar_op(n.op).result == ResultType::kStated
                                 ? fmt::format("{} -> ", name_of(n.from))
                                 : std::string();
    return results(n) +
           fmt::format("{} {} : {}{}", op_name(n.op), values(n.operands), from, name_of(n.type));
  }

  std::string store(std::string_view words, const Node& n) {
    return fmt::format("{} {}, {} : {}", words, value(n.operands[0]),
                       element(n.memories[0], n.operands, 1), name_of(n.type));
  }

  std::string declaration(const Node& n) {
    const Memory& m = kernel_.memory(n.memories[0]);
    std::string text = fmt::format("{} {} : {}", op_name(n.op), memory(n.memories[0]), shape(m));
    if (n.op == OpCode::kPrivate) text += fmt::format(" per lanes {}", m.lane_rank);
    return text;
  }

  std::string copy(const Node& n) {
    const CopyOperands operands = copy_operands(kernel_, n);
    const size_t box = n.extents.size();
    const auto by = [&](size_t from) {
      return fmt::join(n.by.begin() + static_cast<std::ptrdiff_t>(from),
                       n.by.begin() + static_cast<std::ptrdiff_t>(from + box), ", ");
    };
    std::string text =
        fmt::format("copy box({}) {} by({}) = {} by({})", fmt::join(n.extents, ", "),
                    element(n.memories[0], operands.destination, rank(n.memories[0])), by(0),
                    element(n.memories[1], operands.source, rank(n.memories[1])), by(box));
    if (n.has_pad) text += " pad " + value(operands.pad);
    if (n.clip) text += " clip";
    return text;
  }

  std::string contract(const Node& n) {
    const ValueId* at = n.operands.data();
    std::vector<std::string> tiles;
    for (size_t i = 0; i < 3; ++i) {
      // A private tile is addressed by its row and column only.
      const Memory& m = kernel_.memory(n.memories[i]);
      const size_t starts = m.space == Space::kPrivate ? 2 : m.dims.size();
      tiles.push_back(element(n.memories[i], at, starts));
      at += starts;
    }
    return fmt::format("contract box({}) {} += {} * {}{}{}", fmt::join(n.extents, ", "), tiles[0],
                       tiles[1], tiles[2], n.transpose_a ? " transpose a" : "",
                       n.transpose_b ? " transpose b" : "");
  }

  const Kernel& kernel_;
  std::vector<uint32_t>* lines_;
  std::vector<uint32_t> names_;
  std::set<std::string> taken_;  // of scalar parameters
  uint32_t next_name_ = 0;
  uint32_t line_ = 1;
  std::string out_;
};

}  // namespace

std::string constant_text(ElementType type, uint64_t bits) {
  if (is_pred(type)) return bits != 0 ? "true" : "false";
  if (is_unsigned_integer(type)) return fmt::format("{}", bits);
  if (is_integer(type)) return fmt::format("{}", static_cast<int64_t>(bits));
  const double value = real_of(type, bits);
  if (std::isnan(value) || bits_of_real(type, value) != bits) {
    return fmt::format("0x{:X}", pattern_of(type, bits));
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = type == ElementType::kF32 ? fmt::format("{}", static_cast<float>(value))
                                               : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string print(const Kernel& kernel, std::vector<uint32_t>* lines,
                  std::vector<std::string>* names) {
  KernelPrinter printer(kernel, lines);
  std::string text = printer.take();
  if (names != nullptr) *names = printer.names();
  return text;
}

}  // namespace tenon::kernel
