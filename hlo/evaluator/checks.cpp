#include "hlo/evaluator/checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "hlo/evaluator/index.h"

namespace tenon::hlo {
namespace {

// The number of representable values between zero and |x|.
int64_t steps_from_zero(ElementType type, double x) {
  return static_cast<int64_t>(encode_float(type, std::fabs(x)));
}

struct Rule {
  bool exact = false;
  double tolerance = -1;  // absolute
  int64_t max_ulps = -1;
  int64_t min_ulps = 0;
};

int64_t config_integer(const Dict& config, std::string_view key, int64_t fallback) {
  const Attribute* found = find(config, key);
  const auto* value = found ? found->get<IntegerAttr>() : nullptr;
  return value ? value->value : fallback;
}

Rule rule_of(std::string_view target, const Dict& config) {
  Rule rule;
  if (target == "check.expect_eq" || target == "check.expect_serialized_eq") {
    rule.exact = true;
  } else if (target == "check.expect_close") {
    rule.max_ulps = config_integer(config, "max_ulp_difference", 3);
    rule.min_ulps = config_integer(config, "min_ulp_difference", 0);
  } else {
    // testdata's almost_eq is 0.001, the dialect's 0.0001 unless given.
    rule.tolerance = target == "check.eq" ? 1e-4 : 1e-3;
    if (const Attribute* given = find(config, "tolerance")) {
      if (const auto* value = given->get<FloatAttr>()) rule.tolerance = value->value();
    }
  }
  return rule;
}

bool real_holds(const Rule& rule, ElementType type, double actual, double expected,
                int64_t* distance) {
  if (rule.exact) return actual == expected;
  if (std::isnan(actual) || std::isnan(expected)) {
    return std::isnan(actual) && std::isnan(expected);
  }
  if (std::isinf(actual) || std::isinf(expected)) return actual == expected;
  if (rule.max_ulps >= 0) {
    *distance = ulp_distance(type, actual, expected);
    return *distance <= rule.max_ulps;
  }
  return std::fabs(actual - expected) <= rule.tolerance;
}

// What the handlers share, also when they are copied to the Evaluators of several processes.
struct CheckState {
  std::mutex mutex;  // guards all below and what the pointers point to
  std::vector<CheckFailure>* failures = nullptr;
  int64_t* checks = nullptr;
  std::map<std::string, std::vector<Literal>> probes;

  void count(bool holds, const std::string& why, const Instruction& op) {
    const std::lock_guard lock(mutex);
    ++*checks;
    if (!holds) failures->push_back({why, position_of(op.location())});
  }
};

std::string probe_id(const Dict& config) {
  const Attribute* found = find(config, "probe_id");
  const auto* id = found ? found->get<std::string>() : nullptr;
  return id ? *id : "";
}

Evaluator::Values keep_probe(CheckState& state, const Instruction& op, Operands operands) {
  const auto* config = op.attr<Dict>(AttrKey::backend_config);
  if (operands.size() != 1 || operands[0].tensor == nullptr) {
    return invalid_argument("custom_call @interpreter.probe: expected one array");
  }
  Literal value = literal_from_tensor(*operands[0]);
  const std::lock_guard lock(state.mutex);
  state.probes[probe_id(config ? *config : Dict{})].push_back(std::move(value));
  return std::vector<EvalValue>{operands[0]};
}

Evaluator::Values check_probe(CheckState& state, const Instruction& op, Operands operands) {
  const auto* given = op.attr<Dict>(AttrKey::backend_config);
  const Dict config = given ? *given : Dict{};
  const std::string target = "check.expect_serialized_eq";
  if (operands.size() != 1 || operands[0].tensor == nullptr) {
    return invalid_argument("custom_call @{}: expected one array", target);
  }
  const std::string id = probe_id(config);
  const int64_t iteration = config_integer(config, "iter", 0);
  std::string why;
  std::optional<Literal> kept;
  {
    const std::lock_guard lock(state.mutex);
    const std::vector<Literal>& values = state.probes[id];
    if (iteration >= 0 && iteration < std::ssize(values)) {
      kept = values[static_cast<size_t>(iteration)];
    } else {
      why = fmt::format("{}: probe \"{}\" has kept {} values, none for iter {}", target, id,
                        values.size(), iteration);
    }
  }
  const bool holds =
      kept && check_holds(target, config, literal_from_tensor(*operands[0]), *kept, &why);
  state.count(holds, why, op);
  return std::vector<EvalValue>{};
}

std::string index_text(const Literal& literal, int64_t linear) {
  Dims index(literal.shape().dims().size());
  const Dims strides = row_major_strides(literal.shape().dims());
  for (size_t d = 0; d < index.size(); ++d) {
    index[d] = linear / strides[d];
    linear %= strides[d];
  }
  return dims_to_string(index, ", ");
}

}  // namespace

int64_t ulp_distance(ElementType type, double a, double b) {
  if (std::isnan(a) || std::isnan(b) || std::isinf(a) != std::isinf(b)) return -1;
  const int64_t x = steps_from_zero(type, a);
  const int64_t y = steps_from_zero(type, b);
  return std::signbit(a) == std::signbit(b) ? std::abs(x - y) : x + y;
}

bool check_holds(std::string_view target, const Dict& config, const Literal& actual,
                 const Literal& expected, std::string* why) {
  if (!(actual.shape() == expected.shape())) {
    *why = fmt::format("{}: shape {}, expected {}", target, actual.shape().to_string(),
                       expected.shape().to_string());
    return false;
  }
  const Rule rule = rule_of(target, config);
  const ElementType part = complex_part(actual.element_type());
  int64_t largest = 0;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    bool holds = true;
    int64_t distance = 0;
    if (is_float(part)) {
      const std::complex<double> a = actual.get_complex(i);
      const std::complex<double> b = expected.get_complex(i);
      holds = real_holds(rule, part, a.real(), b.real(), &distance);
      int64_t imaginary = 0;
      if (holds) {
        holds = real_holds(rule, part, a.imag(), b.imag(), &imaginary);
        distance = std::max(distance, imaginary);
      }
      largest = std::max(largest, distance);
    } else {
      holds = actual.get_integer(i) == expected.get_integer(i);
    }
    if (!holds) {
      *why = fmt::format(
          "{}: element [{}] is {}, expected {}{}", target, index_text(actual, i),
          actual.element_to_string(i), expected.element_to_string(i),
          distance > 0 ? fmt::format(" ({} ULP apart, {} allowed)", distance, rule.max_ulps) : "");
      return false;
    }
  }
  if (largest < rule.min_ulps) {
    *why = fmt::format("{}: values are at most {} ULP apart, at least {} expected", target, largest,
                       rule.min_ulps);
    return false;
  }
  return true;
}

void install_checks(Evaluator& evaluator, std::vector<CheckFailure>* failures, int64_t* checks) {
  const auto state = std::make_shared<CheckState>();
  state->failures = failures;
  state->checks = checks;
  const auto check = [state](Evaluator&, const Instruction& op,
                             const std::vector<EvalValue>& operands) -> Evaluator::Values {
    const std::string_view target = op.text(AttrKey::call_target_name);
    if (operands.size() != 2 || operands[0].tensor == nullptr || operands[1].tensor == nullptr) {
      return invalid_argument("custom_call @{}: expected two arrays", target);
    }
    const auto* config = op.attr<Dict>(AttrKey::backend_config);
    std::string why;
    // check.eq has the expected value first.
    const bool swapped = target == "check.eq";
    const bool holds = check_holds(target, config ? *config : Dict{},
                                   literal_from_tensor(*operands[swapped ? 1 : 0]),
                                   literal_from_tensor(*operands[swapped ? 0 : 1]), &why);
    state->count(holds, why, op);
    if (op.result_count() == 0) return std::vector<EvalValue>{};
    Tensor result(ElementType::kPred, op.result_type().dims(), false);
    for (int64_t i = 0; i < result.count(); ++i) result.set(i, Scalar(int64_t{holds}));
    return one(std::move(result));
  };
  for (const std::string_view target :
       {"check.expect_eq", "check.expect_close", "check.expect_almost_eq", "check.eq"}) {
    evaluator.set_custom_call(std::string(target), check);
  }
  evaluator.set_custom_call("interpreter.probe", [state](Evaluator&, const Instruction& op,
                                                         const std::vector<EvalValue>& operands) {
    return keep_probe(*state, op, operands);
  });
  evaluator.set_custom_call(
      "check.expect_serialized_eq",
      [state](Evaluator&, const Instruction& op, const std::vector<EvalValue>& operands) {
        return check_probe(*state, op, operands);
      });
  // JAX states what a symbolic size must satisfy; the message may name operands as {0}, {1} ….
  evaluator.set_custom_call(
      "shape_assertion",
      [](Evaluator&, const Instruction& op,
         const std::vector<EvalValue>& operands) -> Evaluator::Values {
        if (operands.empty() || operands[0].tensor == nullptr || operands[0]->integer(0) != 0) {
          return std::vector<EvalValue>{};
        }
        const Attribute* message = find(op.discardable(), "error_message");
        const auto* text = message ? message->get<std::string>() : nullptr;
        std::string filled = text ? *text : "a shape assertion does not hold";
        for (size_t i = 1; i < operands.size(); ++i) {
          const std::string hole = fmt::format("{{{}}}", i - 1);
          for (size_t at = filled.find(hole); at != std::string::npos; at = filled.find(hole)) {
            filled.replace(at, hole.size(), fmt::format("{}", operands[i]->integer(0)));
          }
        }
        return invalid_argument("{}", filled);
      });
}

}  // namespace tenon::hlo
