// Control flow: If, Loop, Scan.
#include <algorithm>

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Lc = OnnxLowering;
using Region = std::unique_ptr<Computation>;

constexpr int64_t kMostUnrolled = 1024;

// A region that is being made; it is forgotten where it fails.
template <class Fill>
Region fill_region(Lc& n, const Fill& fill) {
  auto region = std::make_unique<Computation>();
  Builder inner(*region);
  try {
    const Status built = inner.finish(fill(*region, inner));
    if (!built.ok()) throw OnnxFailure{built};
  } catch (const OnnxFailure&) {
    n.scope().forget();
    throw;
  }
  return region;
}

Values results_of(Instruction* op) { return op == nullptr ? Values{} : op->results(); }

Value rank_zero(Lc& n, Value x) {
  if (n.count_of(x) != 1) bad_onnx("a condition or count has {} elements", n.count_of(x));
  return n.reshape(x, {});
}

Values lower_if(Lc& n) {
  const OnnxGraph& on_true = n.graph("then_branch");
  const OnnxGraph& on_false = n.graph("else_branch");
  const Value condition = rank_zero(n, n.in(0));
  if (const auto known = n.known_flag(0)) {
    return n.scope().import_graph(*known ? on_true : on_false, {}, n.builder());
  }
  std::vector<Region> regions;
  for (const OnnxGraph* each : {&on_true, &on_false}) {
    regions.push_back(fill_region(
        n, [&](Computation&, Builder& inner) { return n.scope().import_graph(*each, {}, inner); }));
  }
  Instruction* op = n.builder().create(OpCode::kIf, {condition}, {}, {}, std::move(regions));
  n.checked({});
  return results_of(op);
}

// Results that a loop collects: in iteration i, slice i of a buffer along an axis.
struct LoopResult {
  int64_t axis = 0;
  bool backward = false;
};

Value place_of(const OnnxEmitter& e, Value iteration, int64_t count, bool backward) {
  return backward ? e.sub(e.number(ElementType::kS64, static_cast<double>(count - 1)), iteration)
                  : iteration;
}

std::vector<Value> starts_at(const OnnxEmitter& e, Value place, int64_t axis, int64_t rank) {
  std::vector<Value> starts(static_cast<size_t>(rank), e.number(ElementType::kS64, 0));
  starts[static_cast<size_t>(axis)] = place;
  return starts;
}

// Adds a buffer of `count` slices as parameter of a body, and returns it with one of them written.
Value collect(const OnnxEmitter& e, Computation& body, Value slice, Value iteration, int64_t count,
              LoopResult how) {
  const int64_t axis = normal_axis(how.axis, e.rank_of(slice) + 1);
  const Value row = e.unsqueeze(slice, {axis});
  Dims dims = e.dims_of(row);
  dims[static_cast<size_t>(axis)] = count;
  const Value buffer = body.add_parameter(Type::tensor(e.type_of(slice), dims));
  const Value place = place_of(e, iteration, count, how.backward);
  return e.checked(
      e.builder().dynamic_update_slice(buffer, row, starts_at(e, place, axis, e.rank_of(row))));
}

// The loop whose body is made: its state are the parameters of the body, whose buffers begin empty.
Values run_loop(Lc& n, Values initial, Region body,
                const std::function<Value(OnnxEmitter&, const Computation&)>& goes_on) {
  for (size_t i = initial.size(); i < body->parameter_count(); ++i) {
    const Type type = body->parameter(i).type();
    initial.push_back(n.splat(type.element_type(), type.dims(), 0));
  }
  Region condition = fill_region(n, [&](Computation& region, Builder& inner) {
    for (const Value each : initial) region.add_parameter(each.type());
    OnnxEmitter e(inner);
    return Values{goes_on(e, region)};
  });
  std::vector<Region> regions;
  regions.push_back(std::move(condition));
  regions.push_back(std::move(body));
  Instruction* op = n.builder().create(OpCode::kWhile, initial, {}, {}, std::move(regions));
  n.checked({});
  return results_of(op);
}

// --- Loop

struct LoopParts {
  std::optional<Value> count;  // At most so many iterations.
  std::optional<int64_t> known_count;
  std::optional<Value> condition;  // Of the first iteration.
  std::optional<bool> known_condition;
  Values carried;
  size_t collected = 0;
};

LoopParts parts_of(Lc& n, const OnnxGraph& body) {
  LoopParts parts;
  if (n.has(0)) {
    parts.count = n.convert(rank_zero(n, n.in(0)), ElementType::kS64);
    if (n.try_known(0)) parts.known_count = std::max<int64_t>(n.known_integer(0), 0);
  }
  if (n.has(1)) {
    parts.condition = n.convert(rank_zero(n, n.in(1)), ElementType::kPred);
    parts.known_condition = n.known_flag(1);
  } else {
    parts.known_condition = true;
  }
  for (size_t i = 2; i < n.input_count(); ++i) parts.carried.push_back(n.in(i));
  if (body.inputs.size() != parts.carried.size() + 2 ||
      body.outputs.size() < parts.carried.size() + 1)
    bad_onnx("its body takes {} values and returns {}, for {} carried ones", body.inputs.size(),
             body.outputs.size(), parts.carried.size());
  parts.collected = body.outputs.size() - parts.carried.size() - 1;
  return parts;
}

// As a while loop: carried values keep their types, and results are collected only if all
// iterations are made.
Values loop_as_while(Lc& n, const OnnxGraph& graph, const LoopParts& parts) {
  const Value always = n.number(ElementType::kPred, 1);
  Values initial = {n.number(ElementType::kS64, 0), parts.condition.value_or(always)};
  initial.insert(initial.end(), parts.carried.begin(), parts.carried.end());
  Region body = fill_region(n, [&](Computation& region, Builder& inner) {
    OnnxEmitter e(inner);
    Values arguments;
    for (const Value each : initial) arguments.push_back(region.add_parameter(each.type()));
    Values outputs = n.scope().import_graph(graph, arguments, inner);
    for (size_t i = 0; i < parts.carried.size(); ++i) {
      if (!(outputs[i + 1].type() == parts.carried[i].type()))
        refuse_onnx("the type of a carried value changes from {} to {}",
                    parts.carried[i].type().to_string(), outputs[i + 1].type().to_string());
    }
    outputs[0] = e.convert(e.reshape(outputs[0], {}), ElementType::kPred);
    if (parts.collected > 0) {
      const auto known = n.scope().known(outputs[0]);
      const bool stays = (known && known->get_integer(0) != 0) || outputs[0] == arguments[1];
      const bool goes_on = stays && parts.known_condition == true;
      if (!goes_on || !parts.known_count)
        refuse_onnx("its results have a size for each iteration, whose number is not known");
    }
    Values state = {e.add(arguments[0], 1)};
    state.insert(state.end(), outputs.begin(),
                 outputs.begin() + static_cast<std::ptrdiff_t>(parts.carried.size()) + 1);
    for (size_t i = parts.carried.size() + 1; i < outputs.size(); ++i) {
      state.push_back(collect(e, region, outputs[i], arguments[0], *parts.known_count, {}));
    }
    return state;
  });
  Values results =
      run_loop(n, initial, std::move(body), [&](OnnxEmitter& e, const Computation& region) {
        if (!parts.count) return region.parameter(1);
        return e.logical_and(region.parameter(1),
                             e.compare(Direction::kLt, region.parameter(0), *parts.count));
      });
  results.erase(results.begin(), results.begin() + 2);
  return results;
}

Values loop_unrolled(Lc& n, const OnnxGraph& graph, const LoopParts& parts) {
  Value condition = parts.condition.value_or(n.number(ElementType::kPred, 1));
  Values carried = parts.carried;
  std::vector<Values> collected(parts.collected);
  for (int64_t i = 0; !parts.known_count || i < *parts.known_count; ++i) {
    const auto known = n.scope().known(condition);
    if (!known) refuse_onnx("the number of its iterations is not known");
    if (known->get_integer(0) == 0) break;
    if (i >= kMostUnrolled)
      exceed_onnx("more than {} iterations with values of changing types", kMostUnrolled);
    Values arguments = {n.constant(Literal::scalar_integer(ElementType::kS64, i)), condition};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const Values outputs = n.scope().import_graph(graph, arguments, n.builder());
    condition = n.convert(n.reshape(outputs[0], {}), ElementType::kPred);
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    for (size_t c = 0; c < collected.size(); ++c) {
      collected[c].push_back(n.unsqueeze(outputs[c + 1 + carried.size()], {0}));
    }
  }
  for (const Values& each : collected) {
    if (each.empty()) refuse_onnx("it collects results, and makes no iteration");
    carried.push_back(n.concatenate(each, 0));
  }
  return carried;
}

Values lower_loop(Lc& n) {
  const OnnxGraph& body = n.graph("body");
  const LoopParts parts = parts_of(n, body);
  if ((parts.known_count == 0 || parts.known_condition == false) && parts.collected == 0)
    return parts.carried;
  Status why;
  try {
    if (parts.known_count != 0) return loop_as_while(n, body, parts);
  } catch (const OnnxFailure& failure) {
    why = failure.status;
    const bool bounded =
        parts.known_count ? *parts.known_count <= kMostUnrolled : parts.known_condition.has_value();
    if (!bounded) throw;
  }
  try {
    return loop_unrolled(n, body, parts);
  } catch (const OnnxFailure& failure) {
    throw OnnxFailure{why.ok() ? failure.status : why};
  }
}

// --- Scan

struct ScanParts {
  size_t states = 0, inputs = 0;
  std::vector<LoopResult> input_how, output_how;
  int64_t length = 0;
};

ScanParts scan_parts(Lc& n, const OnnxGraph& body) {
  ScanParts parts;
  const int64_t inputs = n.integer("num_scan_inputs", 0);
  if (inputs < 1 || inputs > static_cast<int64_t>(n.input_count()) ||
      body.inputs.size() != n.input_count())
    bad_onnx("{} scanned inputs of {}", inputs, n.input_count());
  parts.inputs = static_cast<size_t>(inputs);
  parts.states = n.input_count() - parts.inputs;
  if (body.outputs.size() < parts.states)
    bad_onnx("its body returns {} values", body.outputs.size());
  const size_t outputs = body.outputs.size() - parts.states;
  const auto read = [&](const char* axes, const char* directions, size_t count) {
    const I64s a = n.integers(axes, count, 0), d = n.integers(directions, count, 0);
    std::vector<LoopResult> how;
    for (size_t i = 0; i < count; ++i) how.push_back({a[i], d[i] == 1});
    return how;
  };
  parts.input_how = read("scan_input_axes", "scan_input_directions", parts.inputs);
  parts.output_how = read("scan_output_axes", "scan_output_directions", outputs);
  for (size_t i = 0; i < parts.inputs; ++i) {
    const Value x = n.in(parts.states + i);
    LoopResult& how = parts.input_how[i];
    how.axis = normal_axis(how.axis, n.rank_of(x));
    const int64_t length = n.dims_of(x)[static_cast<size_t>(how.axis)];
    if (i > 0 && length != parts.length)
      bad_onnx("scanned inputs of {} and {} elements", parts.length, length);
    parts.length = length;
  }
  return parts;
}

Values lower_scan(Lc& n) {
  const OnnxGraph& graph = n.graph("body");
  const ScanParts parts = scan_parts(n, graph);
  if (parts.length == 0) refuse_onnx("a scan of no elements");
  Values initial = {n.number(ElementType::kS64, 0)};
  for (size_t i = 0; i < parts.states; ++i) initial.push_back(n.in(i));
  Region body = fill_region(n, [&](Computation& region, Builder& inner) {
    OnnxEmitter e(inner);
    for (const Value each : initial) region.add_parameter(each.type());
    const Value iteration = region.parameter(0);
    Values arguments;
    for (size_t i = 0; i < parts.states; ++i) arguments.push_back(region.parameter(i + 1));
    for (size_t i = 0; i < parts.inputs; ++i) {
      const Value x = n.in(parts.states + i);
      const LoopResult how = parts.input_how[i];
      I64s sizes = e.dims_of(x);
      sizes[static_cast<size_t>(how.axis)] = 1;
      const Value place = place_of(e, iteration, parts.length, how.backward);
      const Value slice =
          e.checked(inner.dynamic_slice(x, starts_at(e, place, how.axis, e.rank_of(x)), sizes));
      arguments.push_back(e.squeeze(slice, {how.axis}));
    }
    const Values outputs = n.scope().import_graph(graph, arguments, inner);
    Values state = {e.add(iteration, 1)};
    state.insert(state.end(), outputs.begin(),
                 outputs.begin() + static_cast<std::ptrdiff_t>(parts.states));
    for (size_t i = parts.states; i < outputs.size(); ++i) {
      state.push_back(collect(e, region, outputs[i], iteration, parts.length,
                              parts.output_how[i - parts.states]));
    }
    return state;
  });
  Values results =
      run_loop(n, initial, std::move(body), [&](OnnxEmitter& e, const Computation& region) {
        return e.compare(Direction::kLt, region.parameter(0), static_cast<double>(parts.length));
      });
  results.erase(results.begin());
  return results;
}

// Optional values are not supported, but a tensor may stand where one is taken.
Values lower_has_element(Lc& n) { return {n.number(ElementType::kPred, n.has(0) ? 1 : 0)}; }
Values lower_get_element(Lc& n) { return {n.in(0)}; }

constexpr OnnxRow kControlRows[] = {
    {"If", 1, lower_if},
    {"Loop", 1, lower_loop},
    {"OptionalGetElement", 15, lower_get_element},
    {"OptionalHasElement", 15, lower_has_element},
    {"Scan", 9, lower_scan},
};

}  // namespace

std::span<const OnnxRow> onnx_control_rows() { return kControlRows; }

}  // namespace tenon::hlo
