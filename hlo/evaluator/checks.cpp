#include "hlo/evaluator/checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "hlo/evaluator/ops/index.h"

namespace tenon::hlo {
namespace {

// The number of representable values between zero and |x|.
int64_t steps_from_zero(ElementType type, double x) {
  return static_cast<int64_t>(encode_float(type, std::fabs(x)));
}

struct CheckRule {
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

CheckRule rule_of(std::string_view target, const Dict& config) {
  CheckRule rule;
  if (target == "check.expect_eq" || target == "check.expect_serialized_eq") {
    rule.exact = true;
  } else if (target == "check.expect_close") {
    rule.max_ulps = config_integer(config, "max_ulp_difference", 3);
    rule.min_ulps = config_integer(config, "min_ulp_difference", 0);
  } else {
    // testdata's almost_eq is 0.001, the dialect's default 0.0001.
    rule.tolerance = target == "check.eq" ? 1e-4 : 1e-3;
    if (const Attribute* given = find(config, "tolerance")) {
      if (const auto* value = given->get<FloatAttr>()) rule.tolerance = value->value();
    }
  }
  return rule;
}

bool real_holds(const CheckRule& rule, ElementType type, double actual, double expected,
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

std::string text_of(const Dict& config, std::string_view key, std::string_view fallback) {
  const Attribute* found = find(config, key);
  const auto* text = found ? found->get<std::string>() : nullptr;
  return text ? *text : std::string(fallback);
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

// The message of a shape assertion, with the sizes in place of {0}, {1} ….
std::string assertion_text(const Dict& config, const std::vector<Literal>& operands) {
  std::string filled = text_of(config, "error_message", "a shape assertion does not hold");
  for (size_t i = 1; i < operands.size(); ++i) {
    const std::string hole = fmt::format("{{{}}}", i - 1);
    for (size_t at = filled.find(hole); at != std::string::npos; at = filled.find(hole)) {
      filled.replace(at, hole.size(), fmt::format("{}", operands[i].get_integer(0)));
    }
  }
  return filled;
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
  const CheckRule rule = rule_of(target, config);
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

struct Checks::Probes {
  std::mutex mutex;
  std::map<std::string, std::vector<Literal>> values;
};

struct Checks::Impl {
  std::mutex mutex;  // guards what the pointers point to
  std::vector<CheckFailure>* failures = nullptr;
  int64_t* checks = nullptr;
  std::shared_ptr<Probes> probes = std::make_shared<Probes>();
};

Checks::Checks(std::vector<CheckFailure>* failures, int64_t* checks)
    : state_(std::make_shared<Impl>()) {
  state_->failures = failures;
  state_->checks = checks;
}

Checks Checks::reporting_to(std::vector<CheckFailure>* failures, int64_t* checks) const {
  Checks others(failures, checks);
  others.state_->probes = state_->probes;
  return others;
}

std::span<const std::string_view> Checks::targets() {
  static constexpr std::string_view kTargets[] = {
      "check.expect_eq",   "check.expect_close",         "check.expect_almost_eq", "check.eq",
      "interpreter.probe", "check.expect_serialized_eq", "shape_assertion"};
  return kTargets;
}

void Checks::count(bool holds, std::string why, const SourcePosition& position) const {
  const std::lock_guard lock(state_->mutex);
  ++*state_->checks;
  if (!holds) state_->failures->push_back({std::move(why), position});
}

void Checks::keep(const Dict& config, const Literal& value) const {
  const std::lock_guard lock(state_->probes->mutex);
  state_->probes->values[text_of(config, "probe_id", "")].push_back(value);
}

void Checks::compare_probe(const Dict& config, const Literal& value,
                           const SourcePosition& position) const {
  const std::string target = "check.expect_serialized_eq";
  const std::string id = text_of(config, "probe_id", "");
  const int64_t iteration = config_integer(config, "iter", 0);
  std::string why;
  std::optional<Literal> kept;
  {
    const std::lock_guard lock(state_->probes->mutex);
    const std::vector<Literal>& values = state_->probes->values[id];
    if (iteration >= 0 && iteration < std::ssize(values)) {
      kept = values[static_cast<size_t>(iteration)];
    } else {
      why = fmt::format("{}: probe \"{}\" has kept {} values, none for iter {}", target, id,
                        values.size(), iteration);
    }
  }
  const bool holds = kept && check_holds(target, config, value, *kept, &why);
  count(holds, std::move(why), position);
}

Result<std::vector<Literal>> Checks::call(std::string_view target, const Dict& config,
                                          const std::vector<Literal>& operands,
                                          const std::vector<Shape>& results,
                                          const SourcePosition& position) const {
  if (target == "interpreter.probe" || target == "check.expect_serialized_eq") {
    if (operands.size() != 1) {
      return invalid_argument("custom_call @{}: expected one array", target);
    }
    if (target != "interpreter.probe") {
      compare_probe(config, operands[0], position);
      return std::vector<Literal>{};
    }
    keep(config, operands[0]);
    return operands;
  }
  if (target == "shape_assertion") {
    for (const Literal& operand : operands) {
      const ElementType type = operand.element_type();
      if (!operand.shape().dims().empty() || (!is_integer(type) && !is_pred(type))) {
        return invalid_argument("custom_call @{}: operands are a pred and integers of rank 0",
                                target);
      }
    }
    const bool holds = operands.empty() || operands[0].get_integer(0) != 0;
    if (holds) return std::vector<Literal>{};
    return invalid_argument("{}", assertion_text(config, operands));
  }
  if (operands.size() != 2) {
    return invalid_argument("custom_call @{}: expected two arrays", target);
  }
  std::string why;
  // The expected value is the first operand of check.eq.
  const bool swapped = target == "check.eq";
  const bool holds =
      check_holds(target, config, operands[swapped ? 1 : 0], operands[swapped ? 0 : 1], &why);
  count(holds, std::move(why), position);
  std::vector<Literal> answers;
  for (const Shape& shape : results) {
    answers.push_back(Literal::scalar_integer(ElementType::kPred, holds ? 1 : 0).splat_to(shape));
  }
  return answers;
}

void install_checks(Evaluator& evaluator, std::vector<CheckFailure>* failures, int64_t* checks) {
  install_checks(evaluator, Checks(failures, checks));
}

void install_checks(Evaluator& evaluator, const Checks& handlers) {
  for (const std::string_view target : Checks::targets()) {
    evaluator.set_custom_call(
        std::string(target),
        [handlers](Evaluator&, const Instruction& op,
                   const std::vector<EvalValue>& operands) -> Evaluator::Values {
          const std::string_view name = op.text(AttrKey::call_target_name);
          std::vector<Literal> literals;
          for (const EvalValue& operand : operands) {
            if (operand.tensor != nullptr) literals.push_back(literal_from_tensor(*operand));
          }
          const auto* given = op.attr<Dict>(AttrKey::backend_config);
          Dict config = given ? *given : Dict{};
          if (const Attribute* message = find(op.discardable(), "error_message")) {
            insert(config, "error_message", *message);
          }
          std::vector<Shape> shapes;
          for (const Type& type : op.result_types()) {
            shapes.emplace_back(ElementType::kPred, type.dims());
          }
          TENON_ASSIGN(const std::vector<Literal> results,
                       handlers.call(name, config, literals, shapes, position_of(op.location())));
          // A probe returns its operand.
          if (name == "interpreter.probe") return operands;
          std::vector<EvalValue> values;
          for (const Literal& result : results) {
            values.push_back(EvalValue::of(tensor_from_literal(result, false)));
          }
          return values;
        });
  }
}

}  // namespace tenon::hlo
