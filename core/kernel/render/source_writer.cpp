#include "core/kernel/render/source_writer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/render/names.h"
#include "core/kernel/render/spelling.h"

namespace tenon::kernel {
namespace {

using Names = std::vector<std::string>;

class SourceWriter {
 public:
  // The host launches `launched` workgroups, the number of the kernel before it was legalised.
  SourceWriter(const Kernel& kernel, int64_t launched, const RenderOptions& options,
               std::string function, std::set<std::string>& helpers)
      : kernel_(kernel),
        launched_(launched),
        spelling_(spelling_of(options.language)),
        lanes_(options.lanes),
        // Functions behind a table are static: they need no symbols, and a function of the same
        // name in another library must not be called instead (C has a `random`).
        local_(!options.table.empty()),
        function_(std::move(function)),
        helpers_(helpers),
        ranges_(kernel),
        names_(kernel.values.size()),
        memories_(kernel.memories.size()) {}

  WrittenSource take() {
    names_table_.take(function_);
    const std::string head = parameters();
    depth_ = 1;
    if (spelling_.has_lanes()) {
      const std::string index = name_new("group");
      line("const int32_t {} = (int32_t){};", index, spelling_.group);
      line("const int32_t lane = (int32_t){};", spelling_.lane);
      if (element_count(kernel_.grid) < launched_) {
        line("if ({} >= {}) return;", index, element_count(kernel_.grid));
      }
      decompose(kNone, kernel_.block(kernel_.body).arguments, kernel_.grid, index);
      block(kernel_.body);
    } else {
      nest(kNone, kernel_.block(kernel_.body).arguments, kernel_.grid,
           [&] { block(kernel_.body); });
    }
    std::string text = kernel_.label.empty() ? "" : fmt::format("// {}\n", comment(kernel_.label));
    text += head + " {\n" + scratch_;
    const auto before = static_cast<size_t>(std::ranges::count(text, '\n'));
    for (LineValue& each : values_) each.line += before;
    return {text + out_ + "}\n", std::move(values_)};
  }

 private:
  // --- Text

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(static_cast<size_t>(depth_) * 2, ' ');
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
    ++lines_;
  }
  // States what the line that was written last computes.
  void mark(std::string name, ValueId value, NodeId node) {
    if (!is_partial_) values_.push_back({lines_ - 1, std::move(name), value, node});
  }
  NodeId id_of(const Node& n) const { return static_cast<NodeId>(&n - kernel_.nodes.data()); }
  static std::string comment(const std::string& text) {
    std::string plain;
    for (const char c : text) plain += c >= ' ' && c <= '~' && c != '\\' && c != '?' ? c : '_';
    return plain;
  }
  std::string name_new(std::string_view wanted) { return names_table_.take(wanted); }
  std::string fresh() { return name_new(fmt::format("v{}", next_++)); }
  std::string text(ValueId value) {
    const Value& v = kernel_.value(value);
    if (v.kind != ValueKind::kConstant) return names_[value];
    const std::string constant = constant_text(spelling_, v.type, v.bits);
    return constant[0] == '-' ? "(" + constant + ")" : constant;
  }
  Names texts(const std::vector<ValueId>& values, size_t first = 0) {
    Names list;
    for (size_t i = first; i < values.size(); ++i) list.push_back(text(values[i]));
    return list;
  }
  std::string_view type_of(ValueId value) { return type_text(kernel_.value(value).type); }
  static std::string_view stored(ElementType type) {
    return is_pred(type) ? "uint8_t" : type_text(type);
  }

  // --- The function

  std::string parameters() {
    Names list;
    for (MemoryId m = 0; m < kernel_.buffer_count; ++m) {
      const Memory& buffer = kernel_.memory(m);
      memories_[m] = name_new(buffer.name);
      const bool shared = buffer.over != kNone || is_under(m);
      list.push_back(fmt::format("{}{}{} *{}{}", spelling_.memory,
                                 buffer.access == Access::kIn ? "const " : "", stored(buffer.type),
                                 shared ? "" : spelling_.restricted, memories_[m]));
    }
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
      const ValueId scalar = kernel_.scalars[i];
      names_[scalar] = name_new(kernel_.scalar_names[i]);
      list.push_back(fmt::format("{} {}", stored(kernel_.value(scalar).type), names_[scalar]));
    }
    return fmt::format(
        "{}{}{}({})", local_ ? "static " : "", spelling_.kernel, function_,
        list.empty() && !spelling_.has_lanes() ? "void" : fmt::format("{}", fmt::join(list, ", ")));
  }
  bool is_under(MemoryId m) const {
    return std::any_of(kernel_.memories.begin(), kernel_.memories.end(),
                       [&](const Memory& other) { return other.over == m; });
  }

  // --- Loops

  /// Writes body() for each index of `extents`, in order; in a scope even if there are no extents.
  void nest(NodeId node, const std::vector<ValueId>& indices, const Dims& extents,
            const std::function<void()>& body) {
    if (extents.empty()) line("{{");
    for (size_t d = 0; d < extents.size(); ++d) {
      const std::string i = names_[indices[d]] = fresh();
      line("for ({} {} = 0; {} < {}; ++{}) {{", index_text(), i, i, extents[d], i);
      mark(i, indices[d], node);
      ++depth_;
    }
    depth_ += extents.empty() ? 1 : 0;
    body();
    for (size_t d = 0; d < std::max<size_t>(extents.size(), 1); ++d) {
      --depth_;
      line("}}");
    }
  }
  std::string_view index_text() const { return type_text(kernel_.index_type); }

  /// Computes indices from a linear index in row-major order.
  void decompose(NodeId node, const std::vector<ValueId>& indices, const Dims& extents,
                 const std::string& place) {
    std::string rest = place;
    for (size_t d = extents.size(); d-- > 0;) {
      names_[indices[d]] = fresh();
      const std::string quotient = d == 0 ? rest : fmt::format("{} % {}", rest, extents[d]);
      line("const {} {} = ({}){};", index_text(), names_[indices[d]], index_text(),
           d == 0 ? rest : "(" + quotient + ")");
      mark(names_[indices[d]], indices[d], node);
      rest = fmt::format("({} / {})", rest, std::max<int64_t>(extents[d], 1));
    }
  }

  void barrier() {
    if (!spelling_.has_lanes()) return;
    line("{}", spelling_.barrier);
    loaded_ = false;
  }
  bool by_one_lane() const { return spelling_.has_lanes() && !in_lanes_; }

  void lanes(const Node& n) {
    const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
    if (!spelling_.has_lanes()) {
      return nest(id_of(n), indices, n.extents, [&] { block(n.blocks[0]); });
    }
    // This lanes loop may store to memory that a slower lane still reads before the loop.
    if (loaded_) barrier();
    const std::string place = fresh();
    line("for (int64_t {} = lane; {} < {}; {} += {}) {{", place, place, element_count(n.extents),
         place, lanes_);
    ++depth_;
    in_lanes_ = true;
    decompose(id_of(n), indices, n.extents, place);
    block(n.blocks[0]);
    in_lanes_ = false;
    --depth_;
    line("}}");
    barrier();
  }

  // --- Variables

  /// Declares variables for values of these types.
  Names declare(const std::vector<ValueId>& like, const Names& inits) {
    Names variables;
    for (size_t i = 0; i < like.size(); ++i) {
      variables.push_back(fresh());
      const std::string init = i < inits.size() ? " = " + inits[i] : "";
      line("{} {}{};", type_of(like[i]), variables.back(), init);
    }
    return variables;
  }
  /// Assigns the operands of a yield, which have these names, to all variables at once.
  void assign(NodeId yield, const Names& variables, Names values) {
    for (size_t i = 0; i < variables.size(); ++i) {
      const bool later =
          std::find(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(i),
                    values[i]) != variables.begin() + static_cast<std::ptrdiff_t>(i);
      if (!later) continue;
      const std::string aside = fresh();
      const auto which = static_cast<size_t>(
          std::find(variables.begin(), variables.end(), values[i]) - variables.begin());
      line("const {} {} = {};", asides_type_[which], aside, values[i]);
      values[i] = aside;
    }
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i] == values[i]) continue;
      line("{} = {};", variables[i], values[i]);
      mark(variables[i], kernel_.node(yield).operands[i], yield);
    }
  }
  /// Writes the nodes of a block, whose yield gives the next values of `variables`.
  void assign_from(BlockId id, const std::vector<ValueId>& like, const Names& variables) {
    Names values = block(id);
    asides_type_.clear();
    for (const ValueId value : like) asides_type_.emplace_back(type_of(value));
    if (!variables.empty()) assign(kernel_.block(id).nodes.back(), variables, std::move(values));
  }
  void set(const std::vector<ValueId>& values, const Names& names, size_t first = 0) {
    for (size_t i = first; i < values.size(); ++i) names_[values[i]] = names[i - first];
  }

  /// Writes the nodes of a block; returns the operands of its yield.
  Names block(BlockId id) {
    for (const NodeId n : kernel_.block(id).nodes) {
      const Node& node = kernel_.node(n);
      if (node.op == OpCode::kYield) return texts(node.operands);
      statement(node);
    }
    return {};
  }

  void for_loop(const Node& n) {
    const Names variables = declare(n.results, texts(n.operands, 2));
    const std::vector<ValueId>& arguments = kernel_.block(n.blocks[0]).arguments;
    const std::string k = names_[arguments[0]] = fresh();
    set(arguments, variables, 1);
    const int64_t step = n.extents[0];
    const IntegerRange whole = range_of_type(kernel_.index_type);
    // The last step may overflow the type.
    const bool wraps = ranges_.of(n.operands[1]).high + step - 1 > whole.high;
    const std::string most = constant_text(spelling_, kernel_.index_type,
                                           static_cast<uint64_t>(static_cast<int64_t>(whole.high)));
    const std::string next =
        wraps ? fmt::format("{} = {} > {} - {} ? {} : {} + {}", k, k, most, step, most, k, step)
              : fmt::format("{} += {}", k, step);
    line("for ({} {} = {}; {} < {}; {}) {{", index_text(), k, text(n.operands[0]), k,
         text(n.operands[1]), next);
    mark(k, arguments[0], id_of(n));
    const bool before = loaded_;
    ++depth_;
    assign_from(n.blocks[0], n.results, variables);
    end_of_round();
    --depth_;
    line("}}");
    loaded_ |= before;
    set(n.results, variables);
  }

  // The next iteration may store to memory that a slower lane still reads in this one.
  void end_of_round() {
    if (loaded_ && by_one_lane()) barrier();
  }

  void while_loop(const Node& n) {
    const Names variables = declare(n.results, texts(n.operands));
    for (const BlockId b : n.blocks) set(kernel_.block(b).arguments, variables);
    line("for (;;) {{");
    ++depth_;
    const bool before = loaded_;
    line("if (!({})) break;", block(n.blocks[0])[0]);
    const bool in_condition = loaded_;
    assign_from(n.blocks[1], n.results, variables);
    end_of_round();
    --depth_;
    line("}}");
    loaded_ |= before || in_condition;
    set(n.results, variables);
  }

  void if_else(const Node& n) {
    const Names variables = declare(n.results, {});
    line("if ({}) {{", text(n.operands[0]));
    const bool before = loaded_;
    ++depth_;
    assign_from(n.blocks[0], n.results, variables);
    --depth_;
    const bool after_then = std::exchange(loaded_, before);
    const bool empty = n.results.empty() && kernel_.block(n.blocks[1]).nodes.size() <= 1;
    if (!empty) {
      line("}} else {{");
      ++depth_;
      assign_from(n.blocks[1], n.results, variables);
      --depth_;
    }
    line("}}");
    loaded_ |= after_then;
    set(n.results, variables);
  }

  // --- Reductions

  /// Combines `values` into `variables`.
  void combine(const Node& n, const Names& variables, const Names& values) {
    Names both = variables;
    both.insert(both.end(), values.begin(), values.end());
    set(kernel_.block(n.blocks[1]).arguments, both);
    assign_from(n.blocks[1], n.results, variables);
  }

  void reduce(const Node& n) {
    if (n.over_lanes && by_one_lane()) return reduce_over_lanes(n);
    const Names variables = declare(n.results, texts(n.operands));
    nest(id_of(n), kernel_.block(n.blocks[0]).arguments, n.extents,
         [&] { combine(n, variables, block(n.blocks[0])); });
    set(n.results, variables);
  }

  /// Each lane reduces a contiguous run, then all lanes combine the runs in order.
  void reduce_over_lanes(const Node& n) {
    const int64_t count = element_count(n.extents);
    const int64_t run = std::max<int64_t>((count + lanes_ - 1) / lanes_, 1);
    Names partials;
    for (const ValueId result : n.results) {
      partials.push_back(name_new("partial"));
      declare_scratch(stored(kernel_.value(result).type), partials.back(), lanes_);
    }
    const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
    if (loaded_) barrier();
    line("if ((int64_t)lane * {} < {}) {{", run, count);
    ++depth_;
    const std::string place = fresh();
    line("int64_t {} = (int64_t)lane * {};", place, run);
    is_partial_ = true;  // The values of the whole reduction are not those of a lane.
    decompose(id_of(n), indices, n.extents, place);
    const Names mine = declare(n.results, block(n.blocks[0]));
    line("for (++{}; {} < {} && {} < ((int64_t)lane + 1) * {}; ++{}) {{", place, place, count,
         place, run, place);
    ++depth_;
    decompose(id_of(n), indices, n.extents, place);
    combine(n, mine, block(n.blocks[0]));
    is_partial_ = false;
    --depth_;
    line("}}");
    for (size_t i = 0; i < mine.size(); ++i) line("{}[lane] = {};", partials[i], mine[i]);
    --depth_;
    line("}}");
    barrier();
    const Names variables = declare(n.results, texts(n.operands));
    const std::string part = fresh();
    line("for (int32_t {} = 0; {} < {}; ++{}) {{", part, part, (count + run - 1) / run, part);
    ++depth_;
    Names values;
    for (size_t i = 0; i < partials.size(); ++i) {
      values.push_back(fresh());
      line("const {} {} = {}[{}];", type_of(n.results[i]), values.back(), partials[i], part);
    }
    combine(n, variables, values);
    --depth_;
    line("}}");
    barrier();
    set(n.results, variables);
  }

  // --- Memory

  void declare_scratch(std::string_view type, const std::string& name, int64_t count) {
    const std::string text =
        fmt::format("{}{} {}[{}];", spelling_.scratch, type, name, std::max<int64_t>(count, 1));
    if (spelling_.has_lanes()) {  // Declared at the top of the function.
      scratch_ += "  " + text + "\n";
    } else {
      line("{}", text);
    }
  }

  void load(const Node& n) {
    const ValueId result = n.results[0];
    names_[result] = fresh();
    const std::string element =
        fmt::format("{}[{}]", memories_[n.memories[0]], text(n.operands[0]));
    if (is_pred(n.type)) {
      line("const bool {} = ({} & 1) != 0;", names_[result], element);
    } else {
      line("const {} {} = {};", type_of(result), names_[result], element);
    }
    mark(names_[result], result, id_of(n));
    loaded_ |= by_one_lane();
  }

  void store(const Node& n) {
    const std::string element =
        fmt::format("{}[{}]", memories_[n.memories[0]], text(n.operands[1]));
    if (by_one_lane()) barrier();
    line("{}{} = {};", by_one_lane() ? "if (lane == 0) " : "", element, text(n.operands[0]));
    mark(element, n.operands[0], id_of(n));
    if (by_one_lane()) barrier();
  }

  void atomic(const Node& n) {
    const std::string element =
        fmt::format("{}[{}]", memories_[n.memories[0]], text(n.operands[1]));
    const std::string combine = atomic_text(spelling_, n, element, text(n.operands[0]), helpers_);
    if (by_one_lane()) barrier();
    line("{}{}", by_one_lane() ? "if (lane == 0) " : "", combine);
    mark("the operand of " + element, n.operands[0], id_of(n));
    if (by_one_lane()) barrier();
  }

  void scratch(const Node& n) {
    const Memory& m = kernel_.memory(n.memories[0]);
    memories_[n.memories[0]] = name_new(m.name);
    declare_scratch(stored(m.type), memories_[n.memories[0]], m.span());
  }

  void scalar(const Node& n) {
    const ValueId result = n.results[0];
    const std::string value = operation_text(spelling_, kernel_, n, texts(n.operands),
                                             ranges_.may_overflow(result), helpers_);
    names_[result] = fresh();
    line("const {} {} = {};", type_of(result), names_[result], value);
    mark(names_[result], result, id_of(n));
  }

  void statement(const Node& n) {
    visit(n,
          Overloads{
              [&](OnScalar) { scalar(n); }, [&](OnLoad) { load(n); }, [&](OnStore) { store(n); },
              [&](OnAtomic) { atomic(n); }, [&](OnScratch) { scratch(n); },
              [&](OnLanes) { lanes(n); }, [&](OnFor) { for_loop(n); },
              [&](OnWhile) { while_loop(n); }, [&](OnIf) { if_else(n); },
              [&](OnReduce) { reduce(n); },
              // A kernel in source_form() has no such statements.
              [](OnPrivate) {}, [](OnScan) {}, [](OnTile) {}, [](OnYield) {},  // Read by block().
          });
  }

  const Kernel& kernel_;
  const int64_t launched_;
  const Spelling& spelling_;
  int64_t lanes_;
  const bool local_;
  std::string function_;
  std::set<std::string>& helpers_;
  Ranges ranges_;
  NameTable names_table_;
  Names names_;     // of values
  Names memories_;  // of memories
  Names asides_type_;
  std::string out_;
  std::string scratch_;
  std::vector<LineValue> values_;
  size_t lines_ = 0;  // of out_
  int depth_ = 0;
  int next_ = 0;
  bool is_partial_ = false;  // in a lane's part of a reduction
  bool in_lanes_ = false;
  bool loaded_ = false;  // outside lanes loops, since the last barrier
};

}  // namespace

WrittenSource write_source(const Kernel& legal, int64_t launched, const RenderOptions& options,
                           std::string function, std::set<std::string>& helpers) {
  return SourceWriter(legal, launched, options, std::move(function), helpers).take();
}

}  // namespace tenon::kernel
