// Reductions along neighbouring elements whose parts are variables of vector types. Compilers keep
// those in registers, while an array of parts stays in memory: each iteration would wait for what
// the one before it stored.
#include <algorithm>

#include "core/kernel/analysis/slope.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/render/statement_writer.h"

namespace tenon::kernel {
namespace {

// Finds the vectors among the values of a reduction.
class VectorFinder {
 public:
  VectorFinder(const Kernel& kernel, const Node& reduction, size_t inner)
      : kernel_(kernel),
        reduction_(reduction),
        type_(kernel.value(reduction.results[0]).type),
        slopes_(kernel, kernel.block(reduction.blocks[0]).arguments[inner]) {}

  // None if some value is not one of `type`, uniform, or a place.
  std::set<ValueId> find() {
    const bool is_of_type = std::ranges::all_of(
        reduction_.results, [&](ValueId result) { return kernel_.value(result).type == type_; });
    if (!is_of_type || (type_ != ElementType::kF32 && type_ != ElementType::kF64)) return {};
    const Block& leaf = kernel_.block(reduction_.blocks[0]);
    const Block& combination = kernel_.block(reduction_.blocks[1]);
    // A vector of each strip is written once more.
    constexpr size_t kMostNodes = 24;
    if (leaf.nodes.size() > kMostNodes || !are_vectors(leaf)) return {};
    vectors_.insert(combination.arguments.begin(), combination.arguments.end());
    return are_vectors(combination) ? vectors_ : std::set<ValueId>();
  }

 private:
  // Finds those of a block, whose yield gives vectors.
  bool are_vectors(const Block& block) {
    return std::ranges::all_of(block.nodes, [&](NodeId id) { return fits(kernel_.node(id)); });
  }

  bool fits(const Node& n) {
    const auto is_known = [&](ValueId x) { return vectors_.contains(x); };
    if (n.op == OpCode::kYield) return std::ranges::all_of(n.operands, is_known);
    if (is<OnLoad>(n.op)) {
      const auto slope = slopes_.of_place(n);
      if (slope == 0) return true;
      const Memory& memory = kernel_.memory(n.memories[0]);
      return slope == 1 && memory.space != Space::kPrivate && !memory.packed && add(n);
    }
    if (std::ranges::none_of(n.operands, is_known)) {
      // Uniform, or a place for loads.
      return slopes_.of(n.results[0]).has_value();
    }
    const bool are_of_type = std::ranges::all_of(n.operands, [&](ValueId x) {
      return kernel_.value(x).type == type_ && (is_known(x) || slopes_.of(x) == 0);
    });
    return has_vector_text(n.op) && are_of_type && add(n);
  }

  bool add(const Node& n) {
    vectors_.insert(n.results[0]);
    return n.type == type_;
  }

  const Kernel& kernel_;
  const Node& reduction_;
  const ElementType type_;
  Slopes slopes_;
  std::set<ValueId> vectors_;
};

}  // namespace

std::set<ValueId> SourceWriter::vectors_of(const Node& n, size_t inner, int64_t width) const {
  // The rest of each row would go to memory and back.
  const bool has_rests =
      n.extents[inner] % width != 0 && element_count(n.extents) != n.extents[inner];
  const ElementType type = kernel_.value(n.results[0]).type;
  if (has_rests || vector_width(type, width) == 1) return {};
  return VectorFinder(kernel_, n, inner).find();
}

std::string SourceWriter::vector_text() const {
  return fmt::format("{}{}", type_text(vector_type_), vector_width_);
}

SourceWriter::StripParts SourceWriter::parts_in_vectors(const Node& n, size_t inner,
                                                        std::set<ValueId> vectors, int64_t width,
                                                        const std::string& each) {
  vectors_ = std::move(vectors);
  vector_type_ = kernel_.value(n.results[0]).type;
  vector_width_ = vector_width(vector_type_, width);
  const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
  const ValueId index = indices[inner];
  std::vector<Names> sums(static_cast<size_t>(width / vector_width_));
  const auto for_each_vector = [&](const auto& body) {
    for (size_t v = 0; v < sums.size(); ++v) body(v, static_cast<int64_t>(v) * vector_width_);
  };
  for (const ValueId each_index : indices) names_[each_index] = "0";
  for_each_vector([&](size_t v, int64_t at) {
    names_[index] = std::to_string(at);
    for (const std::string& leaf : block(n.blocks[0])) {
      sums[v].push_back(fresh());
      line("{} {} = {};", vector_text(), sums[v].back(), leaf);
    }
  });
  StripParts parts{declare_strip(n.results, width), width};
  const auto keep = [&] {
    for_each_vector([&](size_t v, int64_t at) {
      if (at >= parts.width) return;
      for (size_t i = 0; i < parts.arrays.size(); ++i) {
        line("vstore{}({}, 0, {} + {});", vector_width_, sums[v][i], parts.arrays[i], at);
      }
    });
    vectors_.clear();
  };
  const auto combine_strip = [&](const std::string& place) {
    for_each_vector([&](size_t v, int64_t at) {
      names_[index] = fresh();
      line("const {} {} = {} + {};", index_text(), names_[index], place, at);
      combine_vectors(n, sums[v], block(n.blocks[0]));
    });
  };
  // Elements behind the whole strips of the one row go to the parts one by one.
  other_strips(n, width, combine_strip, [&](const std::string& place, int64_t rest) {
    keep();
    strip(each, rest, [&] {
      names_[index] = fresh();
      line("const {} {} = {} + {};", index_text(), names_[index], place, each);
      combine(n, elements(parts.arrays, each), block(n.blocks[0]));
    });
  });
  if (vectors_.empty()) return parts;
  for (size_t half = sums.size() / 2; half > 0; half /= 2) {
    for (size_t v = 0; v < half; ++v) combine_vectors(n, sums[v], sums[v + half]);
  }
  parts.width = vector_width_;
  keep();
  return parts;
}

void SourceWriter::combine_vectors(const Node& n, const Names& variables, const Names& values) {
  Names both = variables;
  both.insert(both.end(), values.begin(), values.end());
  set(kernel_.block(n.blocks[1]).arguments, both);
  Names results = block(n.blocks[1]);
  if (results.size() > 1) {  // One may be the variable of another.
    for (std::string& result : results) {
      const std::string aside = fresh();
      line("const {} {} = {};", vector_text(), aside, result);
      result = aside;
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (variables[i] != results[i]) line("{} = {};", variables[i], results[i]);
  }
}

void SourceWriter::vector_load(const Node& n) {
  const std::string element = element_text(n);
  names_[n.results[0]] = fresh();
  line("const {} {} = vload{}(0, &{});", vector_text(), names_[n.results[0]], vector_width_,
       element);
}

void SourceWriter::vector_scalar(const Node& n) {
  Names x;
  for (const ValueId operand : n.operands) {
    const std::string scalar = text(operand);
    x.push_back(vectors_.contains(operand) ? scalar
                                           : fmt::format("({})({})", vector_text(), scalar));
  }
  names_[n.results[0]] = fresh();
  line("const {} {} = {};", vector_text(), names_[n.results[0]],
       vector_operation_text(n.op, vector_type_, vector_width_, x));
}

}  // namespace tenon::kernel
