// Reductions: in order by one lane, or in parts by the lanes of a workgroup.
#include <algorithm>

#include "core/kernel/render/statement_writer.h"

namespace tenon::kernel {

void SourceWriter::combine(const Node& n, const Names& variables, const Names& values) {
  Names both = variables;
  both.insert(both.end(), values.begin(), values.end());
  set(kernel_.block(n.blocks[1]).arguments, both);
  assign_from(n.blocks[1], n.results, variables);
}

void SourceWriter::reduce(const Node& n) {
  if (n.over_lanes && by_one_lane()) return reduce_over_lanes(n);
  if (const int64_t parts = parts_of(n); parts > 1) return reduce_in_parts(n, parts);
  const Names variables = declare(n.results, texts(n.operands));
  nest(id_of(n), kernel_.block(n.blocks[0]).arguments, n.extents,
       [&] { combine(n, variables, block(n.blocks[0])); });
  set(n.results, variables);
}

void SourceWriter::reduce_over_lanes(const Node& n) {
  const int64_t count = element_count(n.extents);
  const int64_t run = std::max<int64_t>((count + lanes_ - 1) / lanes_, 1);
  const int64_t parts = n.commutative ? std::min(lanes_, count) : (count + run - 1) / run;
  const Names variables = declare(n.results, texts(n.operands));
  if (count > 0) {
    const Names partials = partials_of(n);
    if (loaded_) barrier();
    reduce_part(n, partials, count, run);
    barrier();
    combine_parts(n, partials, parts);
    combine(n, variables, elements_of(n, partials, "0"));
    barrier();
  }
  set(n.results, variables);
}

Names SourceWriter::partials_of(const Node& n) {
  std::map<std::string_view, size_t> used;
  Names partials;
  for (const ValueId result : n.results) {
    const std::string_view type = stored(kernel_.value(result).type);
    Names& list = partials_[type];
    if (used[type] == list.size()) {
      list.push_back(name_new("partial"));
      declare_scratch(type, list.back(), lanes_);
    }
    partials.push_back(list[used[type]++]);
  }
  return partials;
}

Names SourceWriter::elements_of(const Node& n, const Names& partials, const std::string& index) {
  Names values;
  for (size_t i = 0; i < partials.size(); ++i) {
    values.push_back(fresh());
    line("const {} {} = {}[{}];", type_of(n.results[i]), values.back(), partials[i], index);
  }
  return values;
}

void SourceWriter::reduce_part(const Node& n, const Names& partials, int64_t count, int64_t run) {
  const std::vector<ValueId>& indices = kernel_.block(n.blocks[0]).arguments;
  const std::string_view counter = counter_text(std::max(run * (lanes_ + 1), count + lanes_));
  const std::string place = fresh();
  const std::string first = n.commutative ? "lane" : fmt::format("({})lane * {}", counter, run);
  line("{} {} = {};", counter, place, first);
  line("if ({} < {}) {{", place, count);
  ++depth_;
  is_partial_ = true;  // The values of the whole reduction are not those of a lane.
  decompose(id_of(n), indices, n.extents, place);
  const Names mine = declare(n.results, block(n.blocks[0]));
  if (n.commutative) {
    line("for ({0} += {1}; {0} < {2}; {0} += {1}) {{", place, lanes_, count);
  } else {
    line("for (++{0}; {0} < {1} && {0} < (({2})lane + 1) * {3}; ++{0}) {{", place, count, counter,
         run);
  }
  ++depth_;
  decompose(id_of(n), indices, n.extents, place);
  combine(n, mine, block(n.blocks[0]));
  is_partial_ = false;
  --depth_;
  line("}}");
  for (size_t i = 0; i < mine.size(); ++i) line("{}[lane] = {};", partials[i], mine[i]);
  --depth_;
  line("}}");
}

void SourceWriter::combine_parts(const Node& n, const Names& partials, int64_t parts) {
  if (parts < 2) return;
  const std::string step = fresh();
  line("for (int32_t {0} = 1; {0} < {1}; {0} *= 2) {{", step, parts);
  ++depth_;
  const std::string at = fresh();
  line("const int32_t {} = lane * 2 * {};", at, step);
  line("if ({} + {} < {}) {{", at, step, parts);
  ++depth_;
  is_partial_ = true;
  const Names mine = declare(n.results, elements_of(n, partials, at));
  combine(n, mine, elements_of(n, partials, fmt::format("{} + {}", at, step)));
  is_partial_ = false;
  for (size_t i = 0; i < mine.size(); ++i) line("{}[{}] = {};", partials[i], at, mine[i]);
  --depth_;
  line("}}");
  barrier();
  --depth_;
  line("}}");
}

}  // namespace tenon::kernel
