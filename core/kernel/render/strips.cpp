// Loops for compilers that make vectors: where one lane runs everything, a sum is kept in as many
// parts as fit a few vectors, and lanes that reduce along columns run side by side. The inner loops
// have constant bounds and no dependence, so that no vector types are needed.
#include <algorithm>

#include "core/kernel/analysis/slope.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/render/statement_writer.h"

namespace tenon::kernel {
namespace {

// The last dimension of more than one element.
std::optional<size_t> inner_dimension(const Dims& extents) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (extents[d] != 1) return d;
  }
  return {};
}

bool is_simple(const Node& n) { return is<OnScalar, OnLoad, OnYield>(n.op); }

}  // namespace

int64_t SourceWriter::strip_width(const std::vector<ValueId>& values, int64_t count, int64_t strips,
                                  int64_t most) const {
  int64_t bytes = 1;
  for (const ValueId value : values) {
    bytes = std::max<int64_t>(bytes, bit_width(kernel_.value(value).type) / 8);
  }
  const int64_t vector = strip_bytes_ / bytes;
  if (vector < 2 || (vector & (vector - 1)) != 0) return 1;
  for (int64_t vectors = most; vectors > 0; vectors /= 2) {
    const int64_t width = vectors * vector;
    if (count >= strips * width && count % width == 0) return width;
  }
  return count >= 2 * most * vector ? most * vector : count >= strips * vector ? vector : 1;
}

bool SourceWriter::are_simple(const Node& reduction) const {
  return std::ranges::all_of(reduction.blocks, [&](BlockId b) {
    return std::ranges::all_of(kernel_.block(b).nodes,
                               [&](NodeId n) { return is_simple(kernel_.node(n)); });
  });
}

void SourceWriter::strip(const std::string& each, int64_t count,
                         const std::function<void()>& body) {
  line("for (int32_t {0} = 0; {0} < {1}; ++{0}) {{", each, count);
  ++depth_;
  body();
  --depth_;
  line("}}");
}

// --- A reduction in parts

int64_t SourceWriter::parts_of(const Node& n) const {
  const auto inner = inner_dimension(n.extents);
  // The first strip is of leaves, so that there must be some.
  const bool is_empty = element_count(n.extents) == 0;
  if (strip_bytes_ == 0 || !n.commutative || !inner || is_empty || !are_simple(n)) return 1;
  Slopes slopes(kernel_, kernel_.block(n.blocks[0]).arguments[*inner]);
  for (const NodeId id : kernel_.block(n.blocks[0]).nodes) {
    const Node& load = kernel_.node(id);
    if (!is<OnLoad>(load.op)) continue;
    const auto slope = slopes.of_place(load);
    if (slope != 0 && slope != 1) return 1;
  }
  const int64_t row = n.extents[*inner];
  constexpr int64_t kVectors = 4;  // One alone waits for its own sums.
  return strip_width(n.results, row, element_count(n.extents) == row ? 2 : 1, kVectors);
}

void SourceWriter::reduce_in_parts(const Node& n, int64_t width) {
  const bool was_partial = std::exchange(is_partial_, true);
  const size_t inner = *inner_dimension(n.extents);
  const std::string each = fresh();
  const Names variables = declare(n.results, texts(n.operands));
  StripParts parts{{}, width};
  if (std::set<ValueId> vectors = vectors_of(n, inner, width); vectors.empty()) {
    parts.arrays = declare_strip(n.results, width);
    first_and_other_strips(n, parts.arrays, each, width);
  } else {
    parts = parts_in_vectors(n, inner, std::move(vectors), width, each);
  }
  combine_parts_of_strip(n, parts.arrays, each, parts.width);
  is_partial_ = was_partial;
  combine(n, variables, elements(parts.arrays, "0"));
  set(n.results, variables);
}

void SourceWriter::first_and_other_strips(const Node& n, const Names& parts,
                                          const std::string& each, int64_t width) {
  const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
  const size_t inner = *inner_dimension(n.extents);
  for (const ValueId index : indices) names_[index] = "0";
  strip(each, width, [&] {
    names_[indices[inner]] = fresh();
    line("const {} {} = {};", index_text(), names_[indices[inner]], each);
    const Names leaves = block(n.blocks[0]);
    for (size_t i = 0; i < parts.size(); ++i) line("{}[{}] = {};", parts[i], each, leaves[i]);
  });
  const auto combine_strip = [&](const std::string& place, int64_t count) {
    strip(each, count, [&] {
      names_[indices[inner]] = fresh();
      line("const {} {} = {} + {};", index_text(), names_[indices[inner]], place, each);
      combine(n, elements(parts, each), block(n.blocks[0]));
    });
  };
  other_strips(
      n, width, [&](const std::string& place) { combine_strip(place, width); },
      [&](const std::string& place, int64_t rest) { combine_strip(place, rest); });
}

void SourceWriter::other_strips(const Node& n, int64_t width,
                                const std::function<void(const std::string&)>& whole,
                                const std::function<void(const std::string&, int64_t)>& last) {
  const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
  const size_t inner = *inner_dimension(n.extents);
  const std::vector<ValueId> outer(indices.begin(),
                                   indices.begin() + static_cast<std::ptrdiff_t>(inner));
  nest(id_of(n), outer, Dims(n.extents.begin(), n.extents.begin() + inner), [&] {
    const Names rows = texts(outer);
    const std::string first =
        rows.empty() ? std::to_string(width)
                     : fmt::format("({}) == 0 ? {} : 0", fmt::join(rows, " | "), width);
    const int64_t rest = n.extents[inner] % width;
    const std::string place = fresh();
    line("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", index_text(), place, first,
         n.extents[inner] - rest, width);
    ++depth_;
    whole(place);
    --depth_;
    line("}}");
    if (rest > 0) last(std::to_string(n.extents[inner] - rest), rest);
  });
}

Names SourceWriter::declare_strip(const std::vector<ValueId>& like, int64_t width) {
  Names arrays;
  for (const ValueId value : like) {
    arrays.push_back(fresh());
    line("{} {}[{}];", type_of(value), arrays.back(), width);
  }
  return arrays;
}

Names SourceWriter::elements(const Names& arrays, const std::string& index) {
  Names texts;
  for (const std::string& array : arrays) texts.push_back(fmt::format("{}[{}]", array, index));
  return texts;
}

void SourceWriter::combine_parts_of_strip(const Node& n, const Names& parts,
                                          const std::string& each, int64_t width) {
  for (int64_t half = width / 2; half > 0; half /= 2) {
    strip(each, half, [&] {
      combine(n, elements(parts, each), elements(parts, fmt::format("{} + {}", each, half)));
    });
  }
}

// --- Lanes side by side

bool SourceWriter::run_side_by_side(const Node& n) const {
  const auto inner = inner_dimension(n.extents);
  if (strip_bytes_ == 0 || !inner) return false;
  const Block& body = kernel_.block(n.blocks[0]);
  Slopes slopes(kernel_, body.arguments[*inner]);
  bool runs_along_memory = false;
  for (const NodeId id : body.nodes) {
    const Node& each = kernel_.node(id);
    if (is_simple(each) || is<OnStore>(each.op)) continue;
    if (!is<OnReduce>(each.op) || !are_simple(each)) return false;
    for (const NodeId leaf : kernel_.block(each.blocks[0]).nodes) {
      const Node& load = kernel_.node(leaf);
      if (!is<OnLoad>(load.op)) continue;
      const auto slope = slopes.of_place(load);
      if (slope != 0 && slope != 1) return false;
      runs_along_memory |= slope == 1;
    }
  }
  return runs_along_memory;
}

int64_t SourceWriter::lanes_side_by_side(const Node& n) const {
  if (!run_side_by_side(n)) return 1;
  std::vector<ValueId> sums;
  for (const NodeId id : kernel_.block(n.blocks[0]).nodes) {
    const Node& each = kernel_.node(id);
    if (is<OnReduce>(each.op)) sums.insert(sums.end(), each.results.begin(), each.results.end());
  }
  constexpr int64_t kVectors = 16;  // Long runs of memory, whose sums stay in the first cache.
  return strip_width(sums, n.extents[*inner_dimension(n.extents)], 1, kVectors);
}

void SourceWriter::lanes_in_strips(const Node& n, int64_t width) {
  const bool was_partial = std::exchange(is_partial_, true);
  const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
  const size_t inner = *inner_dimension(n.extents);
  for (const ValueId index : indices) names_[index] = "0";
  const std::vector<ValueId> outer(indices.begin(),
                                   indices.begin() + static_cast<std::ptrdiff_t>(inner));
  nest(id_of(n), outer, Dims(n.extents.begin(), n.extents.begin() + inner), [&] {
    const int64_t rest = n.extents[inner] % width;
    const std::string place = fresh();
    line("for ({0} {1} = 0; {1} < {2}; {1} += {3}) {{", index_text(), place,
         n.extents[inner] - rest, width);
    ++depth_;
    lanes_of_strip(n, indices[inner], place, width);
    --depth_;
    line("}}");
    if (rest == 0) return;
    line("{{");
    ++depth_;
    lanes_of_strip(n, indices[inner], std::to_string(n.extents[inner] - rest), rest);
    --depth_;
    line("}}");
  });
  is_partial_ = was_partial;
}

// Statements up to a reduction, or after the last one, are one loop over the lanes of the strip;
// the leaves and combinations of a reduction are another, within the loops of the reduction. Values
// that a later loop uses are in arrays, but linear functions of the lane: each loop computes those
// again, since compilers see there that neighbouring lanes load neighbouring elements.
void SourceWriter::lanes_of_strip(const Node& n, ValueId index, const std::string& place,
                                  int64_t count) {
  LanesStrip of{kernel_.block(n.blocks[0]), index, place, fresh(), count, {}};
  Slopes slopes(kernel_, index);
  std::set<ValueId> computed;  // And no places.
  const auto is_place = [&](const Node& node) {
    const auto is_computed = [&](ValueId x) { return computed.contains(x); };
    return is<OnScalar>(node.op) && is_integer(node.type) && slopes.of(node.results[0]) &&
           std::ranges::none_of(node.operands, is_computed);
  };
  std::vector<NodeId> simple;
  for (const NodeId id : of.body.nodes) {
    const Node& node = kernel_.node(id);
    if (is_place(node)) {
      of.places.push_back(&node);
      continue;
    }
    computed.insert(node.results.begin(), node.results.end());
    if (!is<OnReduce>(node.op)) {
      simple.push_back(id);
      continue;
    }
    run_of_strip(of, std::exchange(simple, {}));
    reduction_of_strip(of, node);
  }
  run_of_strip(of, simple);
}

void SourceWriter::loop_of_strip(const LanesStrip& of, const std::vector<const Node*>& users,
                                 const std::function<void()>& write) {
  strip(of.each, of.count, [&] {
    names_[of.index] = fresh();
    line("const {} {} = {} + {};", index_text(), names_[of.index], of.place, of.each);
    write_places(of.places, users);
    write();
  });
}

void SourceWriter::run_of_strip(const LanesStrip& of, const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return;
  const std::set<ValueId> used = used_outside(of.body, nodes);
  std::vector<const Node*> users;
  std::vector<ValueId> later;
  for (const NodeId id : nodes) {
    const Node& node = kernel_.node(id);
    users.push_back(&node);
    std::ranges::copy_if(node.results, std::back_inserter(later),
                         [&](ValueId result) { return used.contains(result); });
  }
  const Names kept = elements(declare_strip(later, of.count), of.each);
  loop_of_strip(of, users, [&] {
    for (const NodeId id : nodes) statement(kernel_.node(id));
    for (size_t i = 0; i < later.size(); ++i) line("{} = {};", kept[i], text(later[i]));
  });
  set(later, kept);
}

void SourceWriter::reduction_of_strip(const LanesStrip& of, const Node& n) {
  const Names sums = elements(declare_strip(n.results, of.count), of.each);
  loop_of_strip(of, {&n}, [&] {
    for (size_t i = 0; i < sums.size(); ++i) line("{} = {};", sums[i], text(n.operands[i]));
  });
  std::vector<const Node*> users;
  for (const BlockId b : n.blocks) {
    for (const NodeId id : kernel_.block(b).nodes) users.push_back(&kernel_.node(id));
  }
  nest(id_of(n), kernel_.block(n.blocks[0]).arguments, n.extents,
       [&] { loop_of_strip(of, users, [&] { combine(n, sums, block(n.blocks[0])); }); });
  set(n.results, sums);
}

void SourceWriter::write_places(const std::vector<const Node*>& places,
                                const std::vector<const Node*>& users) {
  std::set<ValueId> wanted;
  const auto want = [&](const Node& user) {
    wanted.insert(user.operands.begin(), user.operands.end());
  };
  for (const Node* const user : users) want(*user);
  std::vector<const Node*> chosen;
  for (size_t i = places.size(); i-- > 0;) {
    if (!wanted.contains(places[i]->results[0])) continue;
    chosen.push_back(places[i]);
    want(*places[i]);
  }
  for (size_t i = chosen.size(); i-- > 0;) scalar(*chosen[i]);
}

std::set<ValueId> SourceWriter::used_outside(const Block& body,
                                             const std::vector<NodeId>& nodes) const {
  const std::set<NodeId> inside(nodes.begin(), nodes.end());
  std::set<ValueId> used;
  const auto use = [&](const Node& user) {
    used.insert(user.operands.begin(), user.operands.end());
  };
  for (const NodeId id : body.nodes) {
    if (inside.contains(id)) continue;
    use(kernel_.node(id));
    for (const BlockId block : kernel_.node(id).blocks) for_each_node(kernel_, block, use);
  }
  return used;
}

}  // namespace tenon::kernel
