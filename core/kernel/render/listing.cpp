#include "core/kernel/render/listing.h"
#include "core/base/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/kernel/legalize/tiles.h"
#include "core/kernel/math/scalar.h"
#include "core/kernel/render/source_writer.h"
#include "core/kernel/text/text.h"

namespace tenon::kernel {
namespace {

// Adds the values of a printed kernel's lines.
class TextValues {
 public:
  TextValues(Listing& listing, const std::vector<uint32_t>& lines,
             const std::vector<std::string>& names)
      : listing_(listing), kernel_(listing.kernel), lines_(lines), names_(names) {}

  void add_all() {
    for (const ValueId index : kernel_.block(kernel_.body).arguments) add(0, index, kNone);
    block(kernel_.body);
  }

 private:
  void add(size_t line, ValueId value, NodeId node) {
    listing_.values.push_back({line, names_[value], value, node});
  }

  // Results of loops that carry values, and of branches, are operands of their yields, which are
  // named where they are computed; in a loop that is not at its end they are not known yet.
  void block(BlockId id) {
    for (const NodeId n : kernel_.block(id).nodes) {
      const Node& node = kernel_.node(n);
      const size_t line = lines_[n] - 1;
      if (node.blocks.empty() || node.op == OpCode::kReduce) {
        for (const ValueId result : node.results) add(line, result, n);
      }
      if (node.op == OpCode::kFor) {
        add(line, kernel_.block(node.blocks[0]).arguments[0], n);
      } else if (!node.blocks.empty() && node.op != OpCode::kWhile && node.op != OpCode::kIf) {
        for (const ValueId index : kernel_.block(node.blocks[0]).arguments) add(line, index, n);
      }
      if (node.op == OpCode::kStore || node.op == OpCode::kAtomic) add_store(line, n);
      for (const BlockId inner : node.blocks) block(inner);
    }
  }

  void add_store(size_t line, NodeId n) {
    const Node& node = kernel_.node(n);
    std::vector<std::string> indices;
    for (const ValueId index : indices_of(node)) {
      const Value& v = kernel_.value(index);
      indices.push_back(v.kind == ValueKind::kConstant ? constant_text(v.type, v.bits)
                                                       : names_[index]);
    }
    const std::string element =
        fmt::format("%{}[{}]", kernel_.memory(node.memories[0]).name, fmt::join(indices, ", "));
    listing_.values.push_back({line,
                               node.op == OpCode::kAtomic ? "the operand of " + element : element,
                               node.operands[0], n});
  }

  Listing& listing_;
  const Kernel& kernel_;
  const std::vector<uint32_t>& lines_;
  const std::vector<std::string>& names_;
};

// The nodes on which a node depends: through values, through memory that is not a buffer, and
// because they contain it.
class NodeDependencies {
 public:
  explicit NodeDependencies(const Kernel& kernel) : kernel_(kernel) {
    owner_of_block_.assign(kernel.blocks.size(), kNone);
    owner_of_node_.assign(kernel.nodes.size(), kNone);
    owner_of_argument_.assign(kernel.values.size(), kNone);
    for (NodeId n = 0; n < kernel.nodes.size(); ++n) {
      for (const BlockId b : kernel.node(n).blocks) {
        owner_of_block_[b] = n;
        for (const ValueId argument : kernel.block(b).arguments) owner_of_argument_[argument] = n;
      }
    }
    for (BlockId b = 0; b < kernel.blocks.size(); ++b) {
      for (const NodeId n : kernel.block(b).nodes) owner_of_node_[n] = owner_of_block_[b];
    }
  }

  std::set<NodeId> of(NodeId node) {
    need(node);
    while (!waiting_.empty()) {
      const NodeId next = waiting_.back();
      waiting_.pop_back();
      take(kernel_.node(next), next);
    }
    return std::move(needed_);
  }

 private:
  void need(NodeId node) {
    if (node != kNone && needed_.insert(node).second) waiting_.push_back(node);
  }

  void take(const Node& node, NodeId id) {
    need(owner_of_node_[id]);
    for (const ValueId operand : node.operands) {
      const Value& v = kernel_.value(operand);
      need(v.kind == ValueKind::kResult ? v.node : owner_of_argument_[operand]);
    }
    const bool has_values = !node.results.empty();
    for (const BlockId b : node.blocks) {
      if (has_values && !kernel_.block(b).nodes.empty()) need(kernel_.block(b).nodes.back());
    }
    if (node.op != OpCode::kLoad || node.memories[0] < kernel_.buffer_count) return;
    for (NodeId n = 0; n < kernel_.nodes.size(); ++n) {
      const OpCode op = kernel_.node(n).op;
      if ((op == OpCode::kStore || op == OpCode::kAtomic) &&
          kernel_.node(n).memories[0] == node.memories[0])
        need(n);
    }
  }

  const Kernel& kernel_;
  std::vector<NodeId> owner_of_block_;
  std::vector<NodeId> owner_of_node_;
  std::vector<NodeId> owner_of_argument_;
  std::set<NodeId> needed_;
  std::vector<NodeId> waiting_;
};

// Whether a line opens or closes a scope.
bool is_bracket(std::string_view line) {
  const size_t first = line.find_first_not_of(' ');
  return first != std::string_view::npos && (line[first] == '}' || line.back() == '{');
}

// The lines to show.
std::vector<bool> chosen_lines(const Listing& listing, const Watch& watch, size_t most) {
  std::vector<bool> chosen(listing.lines.size(), true);
  if (listing.lines.size() <= most) return chosen;
  for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = is_bracket(listing.lines[i]);
  const std::set<NodeId> needed =
      watch.was_stored ? NodeDependencies(listing.kernel).of(watch.store) : std::set<NodeId>();
  for (const LineValue& each : listing.values) {
    if (each.node == kNone || needed.contains(each.node)) chosen[each.line] = true;
  }
  // The store is among the last lines.
  const auto count = static_cast<size_t>(std::ranges::count(chosen, true));
  size_t number = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    const bool is_between = number >= most / 2 && number + (most - most / 2) < count;
    if (count > most && is_between) chosen[i] = false;
    ++number;
  }
  return chosen;
}

// "v0 = 1, v1 = 2"
std::string values_text(const Listing& listing, const Watch& watch, size_t line,
                        const std::string& got) {
  std::string text;
  const auto [begin, end] = std::ranges::equal_range(listing.values, line, {}, &LineValue::line);
  for (auto each = begin; each != end; ++each) {
    if (!watch.was_stored || (each->node != kNone && !watch.ran[each->node])) continue;
    const ElementType type = listing.kernel.value(each->value).type;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", each->name,
                        value_text(type, watch.values[each->value]));
    if (each->node == watch.store && !got.empty()) text += ", the device: " + got;
  }
  return text;
}

}  // namespace

// NaNs have no identity: payloads are not shown.
std::string value_text(ElementType type, uint64_t bits) {
  return is_float(type) && std::isnan(real_of(type, bits)) ? "nan" : constant_text(type, bits);
}

Result<Listing> list_source(const Kernel& kernel, const RenderOptions& options) {
  TENON_ASSIGN(Kernel legal, legal_for_source(kernel, options.language));
  std::set<std::string> helpers;
  WrittenSource written =
      write_source(legal, element_count(kernel.grid), options, source_name(kernel.name), helpers);
  return Listing{std::move(legal), lines_of(written.text), std::move(written.values)};
}

Listing list_text(const Kernel& kernel) {
  Listing listing{has_tiles(kernel) ? expand_tiles(kernel) : kernel, {}, {}};
  std::vector<uint32_t> lines;
  std::vector<std::string> names;
  listing.lines = lines_of(print(listing.kernel, &lines, &names));
  TextValues(listing, lines, names).add_all();
  std::ranges::stable_sort(listing.values, {}, &LineValue::line);
  return listing;
}

std::string annotate(const Listing& listing, const Watch& watch, const std::string& got,
                     size_t most_lines) {
  constexpr size_t kWidest = 80;
  const std::vector<bool> chosen = chosen_lines(listing, watch, most_lines);
  std::vector<std::string> values(listing.lines.size());
  size_t width = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) values[i] = values_text(listing, watch, i, got);
    if (!values[i].empty()) width = std::max(width, std::min(listing.lines[i].size(), kWidest));
  }
  std::string text;
  bool skips = false;
  for (size_t i = 0; i < listing.lines.size(); ++i) {
    if (!chosen[i]) {
      if (!skips) text += "…\n";
      skips = true;
      continue;
    }
    skips = false;
    text += values[i].empty() ? listing.lines[i] + '\n'
                              : fmt::format("{:<{}} | {}\n", listing.lines[i], width, values[i]);
  }
  return text;
}

}  // namespace tenon::kernel
