#include "core/kernel/render/source_writer.h"

#include <algorithm>
#include <utility>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/render/statement_writer.h"

namespace tenon::kernel {

WrittenSource SourceWriter::take() {
  names_table_.take(function_);
  const std::string head = parameters();
  depth_ = 1;
  if (spelling_.has_lanes()) {
    const std::string index = name_new("group");
    line("const int32_t {} = (int32_t){};", index, spelling_.group);
    if (has_lanes()) line("const int32_t lane = (int32_t){};", spelling_.lane);
    if (element_count(kernel_.grid) < launched_) {
      line("if ({} >= {}) return;", index, element_count(kernel_.grid));
    }
    decompose(kNone, kernel_.block(kernel_.body).arguments, kernel_.grid, index);
    block(kernel_.body);
  } else {
    nest(kNone, kernel_.block(kernel_.body).arguments, kernel_.grid, [&] { block(kernel_.body); });
  }
  std::string text = kernel_.label.empty() ? "" : fmt::format("// {}\n", comment(kernel_.label));
  text += head + " {\n" + heads_ + scratch_;
  const auto before = static_cast<size_t>(std::ranges::count(text, '\n'));
  for (LineValue& each : values_) each.line += before;
  return {text + out_ + "}\n", std::move(values_), lanes_};
}

std::string SourceWriter::comment(const std::string& text) {
  std::string plain;
  for (const char c : text) plain += c >= ' ' && c <= '~' && c != '\\' && c != '?' ? c : '_';
  return plain;
}

std::string SourceWriter::text(ValueId value) {
  const Value& v = kernel_.value(value);
  if (v.kind != ValueKind::kConstant) return names_[value];
  const std::string constant = constant_text(spelling_, v.type, v.bits);
  return constant[0] == '-' ? "(" + constant + ")" : constant;
}

int64_t SourceWriter::lanes_that_fit(const Kernel& kernel, int64_t most) {
  int64_t longest = 1;
  for (const Node& n : kernel.nodes) {
    const bool over_lanes = n.op == OpCode::kLanes || (n.op == OpCode::kReduce && n.over_lanes);
    if (over_lanes) longest = std::max(longest, element_count(n.extents));
  }
  int64_t lanes = 1;
  while (lanes < longest && lanes * 2 <= most) lanes *= 2;
  return lanes;
}

std::string SourceWriter::parameters() {
  Names list;
  for (MemoryId m = 0; m < kernel_.buffer_count; ++m) {
    const Memory& buffer = kernel_.memory(m);
    memories_[m] = name_new(buffer.name);
    const bool shared = buffer.over != kNone || is_under(m);
    const std::string type =
        fmt::format("{}{}{} *{}", spelling_.memory, buffer.access == Access::kIn ? "const " : "",
                    stored(buffer.type), shared ? "" : spelling_.restricted);
    if (offset_bits_ == 0) {
      list.push_back(type + memories_[m]);
      continue;
    }
    const std::string base = name_new(memories_[m] + "_base");
    const std::string offset = name_new(memories_[m] + "_offset");
    list.push_back(fmt::format("{}uint8_t *{}", spelling_.memory, base));
    list.push_back(fmt::format("uint{}_t {}", offset_bits_, offset));
    heads_ += fmt::format("  {0}{1} = ({0})({2} + {3});\n", type, memories_[m], base, offset);
  }
  for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
    const ValueId scalar = kernel_.scalars[i];
    names_[scalar] = name_new(kernel_.scalar_names[i]);
    list.push_back(fmt::format("{} {}", stored(kernel_.value(scalar).type), names_[scalar]));
  }
  if (stops_) {
    stop_ = name_new("stop");
    list.push_back(fmt::format("{}uint32_t *{}", spelling_.volatile_memory, stop_));
  }
  const std::string bounds =
      spelling_.has_lanes() ? fmt::format(fmt::runtime(spelling_.bounds), lanes_) : "";
  return fmt::format(
      "{}{}{}{}({})", local_ ? "static " : "", spelling_.kernel, bounds, function_,
      list.empty() && !spelling_.has_lanes() ? "void" : fmt::format("{}", fmt::join(list, ", ")));
}

bool SourceWriter::is_under(MemoryId m) const {
  return std::any_of(kernel_.memories.begin(), kernel_.memories.end(),
                     [&](const Memory& other) { return other.over == m; });
}

void SourceWriter::nest(NodeId node, const std::vector<ValueId>& indices, const Dims& extents,
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

void SourceWriter::decompose(NodeId node, const std::vector<ValueId>& indices, const Dims& extents,
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

std::string_view SourceWriter::counter_text(int64_t count) const {
  return count <= INT32_MAX - lanes_ ? "int32_t" : "int64_t";
}

void SourceWriter::barrier() {
  if (!has_lanes()) return;
  line("{}", spelling_.barrier);
  loaded_ = false;
}

void SourceWriter::lanes(const Node& n) {
  const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
  if (const int64_t width = lanes_side_by_side(n); width > 1) return lanes_in_strips(n, width);
  if (!has_lanes()) {
    return nest(id_of(n), indices, n.extents, [&] { block(n.blocks[0]); });
  }
  // This lanes loop may store to memory that a slower lane still reads before the loop.
  if (loaded_) barrier();
  const std::string place = fresh();
  line("for ({} {} = lane; {} < {}; {} += {}) {{", counter_text(element_count(n.extents)), place,
       place, element_count(n.extents), place, lanes_);
  ++depth_;
  in_lanes_ = true;
  lane_place_ = place;
  decompose(id_of(n), indices, n.extents, place);
  block(n.blocks[0]);
  in_lanes_ = false;
  --depth_;
  line("}}");
  barrier();
}

Names SourceWriter::declare(const std::vector<ValueId>& like, const Names& inits) {
  Names variables;
  for (size_t i = 0; i < like.size(); ++i) {
    variables.push_back(fresh());
    const std::string init = i < inits.size() ? " = " + inits[i] : "";
    line("{} {}{};", type_of(like[i]), variables.back(), init);
  }
  return variables;
}

void SourceWriter::assign(NodeId yield, const Names& variables, Names values) {
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

void SourceWriter::assign_from(BlockId id, const std::vector<ValueId>& like,
                               const Names& variables) {
  Names values = block(id);
  asides_type_.clear();
  for (const ValueId value : like) asides_type_.emplace_back(type_of(value));
  if (!variables.empty()) assign(kernel_.block(id).nodes.back(), variables, std::move(values));
}

void SourceWriter::set(const std::vector<ValueId>& values, const Names& names, size_t first) {
  for (size_t i = first; i < values.size(); ++i) names_[values[i]] = names[i - first];
}

Names SourceWriter::block(BlockId id) {
  for (const NodeId n : kernel_.block(id).nodes) {
    const Node& node = kernel_.node(n);
    if (node.op == OpCode::kYield) return texts(node.operands);
    statement(node);
  }
  return {};
}

void SourceWriter::for_loop(const Node& n) {
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

void SourceWriter::end_of_round() {
  if (loaded_ && by_one_lane()) barrier();
}

void SourceWriter::read_stop() {
  if (!stops_ || !by_one_lane()) return;
  if (stopped_.empty()) {
    stopped_ = name_new("stopped");
    declare_scratch("uint32_t", stopped_, 1);
  }
  line("if (lane == 0) {}[0] = *{};", stopped_, stop_);
  barrier();
  loaded_ = true;  // By the condition of the loop.
}

std::string SourceWriter::is_stopped() const {
  if (!stops_) return "";
  return fmt::format("({} != 0) | ", by_one_lane() ? stopped_ + "[0]" : "*" + stop_);
}

void SourceWriter::while_loop(const Node& n) {
  const Names variables = declare(n.results, texts(n.operands));
  for (const BlockId b : n.blocks) set(kernel_.block(b).arguments, variables);
  if (loaded_) barrier();
  read_stop();
  line("for (;;) {{");
  ++depth_;
  const bool before = loaded_;
  // PoCL wants one exit, and no barrier before it.
  const std::string stopped = is_stopped();
  line("if ({}!({})) break;", stopped, block(n.blocks[0])[0]);
  const bool in_condition = loaded_;
  assign_from(n.blocks[1], n.results, variables);
  end_of_round();
  read_stop();
  --depth_;
  line("}}");
  loaded_ |= before || in_condition;
  set(n.results, variables);
}

void SourceWriter::if_else(const Node& n) {
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

void SourceWriter::declare_scratch(std::string_view type, const std::string& name, int64_t count) {
  const std::string text =
      fmt::format("{}{} {}[{}];", spelling_.scratch, type, name, std::max<int64_t>(count, 1));
  if (spelling_.has_lanes()) {  // Declared at the top of the function.
    scratch_ += "  " + text + "\n";
  } else {
    line("{}", text);
  }
}

void SourceWriter::load(const Node& n) {
  if (is_vector(n)) return vector_load(n);
  const ValueId result = n.results[0];
  names_[result] = fresh();
  const std::string element = element_text(n);
  if (is_pred(n.type)) {
    line("const bool {} = ({} & 1) != 0;", names_[result], element);
  } else {
    line("const {} {} = {};", type_of(result), names_[result], element);
  }
  mark(names_[result], result, id_of(n));
  loaded_ |= by_one_lane();
}

void SourceWriter::store(const Node& n) {
  const std::string element = element_text(n);
  if (by_one_lane()) barrier();
  line("{}{} = {};", by_one_lane() ? "if (lane == 0) " : "", element, text(n.operands[0]));
  mark(element, n.operands[0], id_of(n));
  if (by_one_lane()) barrier();
}

void SourceWriter::atomic(const Node& n) {
  const std::string element = element_text(n);
  const std::string combine = atomic_text(spelling_, n, element, text(n.operands[0]), helpers_);
  if (by_one_lane()) barrier();
  line("{}{}", by_one_lane() ? "if (lane == 0) " : "", combine);
  mark("the operand of " + element, n.operands[0], id_of(n));
  if (by_one_lane()) barrier();
}

std::string SourceWriter::element_text(const Node& n) {
  const Memory& m = kernel_.memory(n.memories[0]);
  const std::span<const ValueId> indices = indices_of(n);
  const Dims strides = m.resolved_strides();
  std::vector<std::string> sum;
  // A work-item has its lanes' parts one after the other.
  const bool is_own = m.space == Space::kPrivate && has_lanes();
  const size_t first = is_own ? m.lane_rank : 0;
  if (is_own) {
    const int64_t part = m.lane_rank > 0 ? strides[m.lane_rank - 1] : 1;
    sum.push_back(fmt::format("{} / {} * {}", lane_place_, lanes_, part));
  }
  for (size_t d = first; d < indices.size(); ++d) {
    const std::string index = text(indices[d]);
    sum.push_back(strides[d] == 1 ? index : fmt::format("{} * {}", index, strides[d]));
  }
  return fmt::format("{}[{}]", memories_[n.memories[0]],
                     sum.empty() ? "0" : fmt::format("{}", fmt::join(sum, " + ")));
}

// An array of the function, which each work-item has.
void SourceWriter::private_memory(const Node& n) {
  const Memory& m = kernel_.memory(n.memories[0]);
  memories_[n.memories[0]] = name_new(m.name);
  int64_t lanes = 1;
  for (uint32_t d = 0; d < m.lane_rank; ++d) lanes *= m.dims[d];
  const int64_t each = m.span() / std::max<int64_t>(lanes, 1);
  const int64_t parts = has_lanes() ? (lanes + lanes_ - 1) / lanes_ : lanes;
  heads_ += fmt::format("  {} {}[{}];\n", stored(m.type), memories_[n.memories[0]],
                        std::max<int64_t>(parts * each, 1));
}

void SourceWriter::scratch(const Node& n) {
  const Memory& m = kernel_.memory(n.memories[0]);
  memories_[n.memories[0]] = name_new(m.name);
  declare_scratch(stored(m.type), memories_[n.memories[0]], m.span());
}

void SourceWriter::scalar(const Node& n) {
  if (is_vector(n)) return vector_scalar(n);
  const ValueId result = n.results[0];
  const std::string value = operation_text(spelling_, kernel_, n, texts(n.operands),
                                           ranges_.may_overflow(result), helpers_);
  names_[result] = fresh();
  line("const {} {} = {};", type_of(result), names_[result], value);
  mark(names_[result], result, id_of(n));
}

void SourceWriter::statement(const Node& n) {
  visit(n, Overloads{
               [&](OnScalar) { scalar(n); }, [&](OnLoad) { load(n); }, [&](OnStore) { store(n); },
               [&](OnAtomic) { atomic(n); }, [&](OnScratch) { scratch(n); },
               [&](OnLanes) { lanes(n); }, [&](OnFor) { for_loop(n); },
               [&](OnWhile) { while_loop(n); }, [&](OnIf) { if_else(n); },
               [&](OnReduce) { reduce(n); }, [&](OnPrivate) { private_memory(n); },
               [&](OnTile) { contract(n); },
               // A kernel in source_form() has no scans.
               [](OnScan) {}, [](OnYield) {},  // Read by block().
           });
}

WrittenSource write_source(const Kernel& legal, int64_t launched, const RenderOptions& options,
                           std::string function, std::set<std::string>& helpers) {
  return SourceWriter(legal, launched, options, std::move(function), helpers).take();
}

}  // namespace tenon::kernel
