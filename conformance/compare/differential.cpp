#include "conformance/compare/differential.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/compare/tolerance.h"
#include "conformance/compare/whole_result.h"
#include "conformance/generate/elementwise.h"
#include "conformance/generate/math_functions.h"
#include "core/types/float_convert.h"
#include "hlo/builder/builder.h"
#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

using hlo::Instruction;
using hlo::OpCode;
using hlo::Value;

using Known = std::map<std::pair<const Instruction*, uint32_t>, Literal>;

// `op` alone, as a function of its operands and of the values that its regions capture.
struct Alone {
  hlo::Module module;
  std::vector<Value> inputs;
};

std::unique_ptr<Alone> isolate(const Instruction& op) {
  auto alone = std::make_unique<Alone>();
  hlo::Computation& function = alone->module.add_function("main");
  alone->inputs = op.operands();
  for (const Value captured : hlo::captured_values(op)) alone->inputs.push_back(captured);
  hlo::Cloner cloner;
  for (const Value input : alone->inputs) cloner.map(input, function.add_parameter(input.type()));
  std::unique_ptr<Instruction> copy = cloner.clone(op);
  for (size_t i = 0; i < op.operand_count(); ++i) copy->set_operand(i, function.parameter(i));
  Instruction* placed = function.insert(std::move(copy));
  std::vector<Value> results;
  for (uint32_t r = 0; r < op.result_count(); ++r) results.push_back(placed->result(r));
  function.set_declared_result_types(op.result_types());
  hlo::Builder builder(function);
  static_cast<void>(builder.finish(results));
  return alone;
}

Mismatch evaluator_failed(const std::string& text) {
  Mismatch mismatch{"the evaluator: " + text, nullptr, 0};
  mismatch.is_of_suite = true;
  return mismatch;
}

// The results as the evaluator computes them: in wide mode not rounded to their types.
Result<std::vector<hlo::EvalValue>> evaluate(const Alone& alone, const std::vector<Literal>& inputs,
                                             bool wide) {
  hlo::EvaluatorOptions options;
  options.wide = wide;
  hlo::Evaluator evaluator(alone.module, options);
  std::vector<hlo::EvalValue> values;
  for (const Literal& input : inputs) {
    values.push_back(hlo::EvalValue::of(hlo::tensor_from_literal(input, wide)));
  }
  return evaluator.run(*alone.module.entry(), values);
}

Literal magnitudes(const Literal& x) {
  Literal result = x;
  const ElementType type = x.element_type();
  for (int64_t i = 0; i < x.element_count(); ++i) {
    if (is_complex(type)) {
      const auto z = x.get_complex(i);
      result.set_complex(i, {std::abs(z.real()) + std::abs(z.imag()), 0});
    } else if (is_float(type)) {
      result.set_double(i, std::abs(x.get_double(i)));
    } else if (is_signed_integer(type)) {
      // The least integer keeps its size but for one unit.
      const int64_t number = std::max(x.get_integer(i), integer_min(type) + 1);
      result.set_integer(i, std::abs(number));
    }
  }
  return result;
}

// The table's entry for an op that the evaluator computes by its decomposition, in the type; null
// for others.
const MathFunction* math_function_of(const Instruction& op) {
  if (!op.info().is_decomposable() || op.operand_count() != 1) return nullptr;
  const auto found = std::ranges::find(math_functions(), op.name(), &MathFunction::name);
  return found == math_functions().end() ? nullptr : &*found;
}

Float128 real_element(const hlo::Tensor& x, int64_t i) {
  const hlo::Scalar value = x.get(i);
  return x.storage() == hlo::ScalarStorage::kWide ? value.w : Float128(value.d);
}

std::complex<double> wide_element(const hlo::Tensor& x, int64_t i) {
  const hlo::Scalar value = x.get(i);
  switch (x.storage()) {
    case hlo::ScalarStorage::kComplex:
      return {value.c.re, value.c.im};
    case hlo::ScalarStorage::kComplexWide:
      return {static_cast<double>(value.cw.re), static_cast<double>(value.cw.im)};
    case hlo::ScalarStorage::kInteger:
      return static_cast<double>(value.i);
    case hlo::ScalarStorage::kReal:
      return value.d;
    case hlo::ScalarStorage::kWide:
      return static_cast<double>(value.w);
  }
  return {};
}

std::string index_text(Dims dims, int64_t linear) {
  Dims index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = linear % dims[d];
    linear /= dims[d];
  }
  return dims_to_string(index, ", ");
}

// The relaxed bound of an op's result in ULP; 0 if there is none.
double relaxed_of(const Instruction& op, ElementType type, const Tolerance& rule,
                  const Relaxation* relaxation) {
  if (relaxation == nullptr) return 0;
  const OpCode judged = judged_as(op.code());
  if (hlo::op_info(judged).category != hlo::Category::kElementwise) return 0;
  const bool is_exact = rule.kind == Tolerance::ToleranceKind::kExact;
  if (!is_exact && rule.kind != Tolerance::ToleranceKind::kUlps) return 0;
  if (is_exact && judged == OpCode::kAbs) return 0;  // The ledger has abs of complex numbers.
  if (!is_float(type) && !is_complex(type)) return 0;
  const double ulps = relaxed_ulp(relaxation->bounds, op.name(), type);
  return ulps > rule.ulps ? ulps : 0;
}

// "f32[3] {1, 2, 3}; s32[] {7}", with the first elements of each array.
std::string text_of_arrays(const std::vector<Literal>& arrays) {
  constexpr int64_t kShown = 8;
  std::string text;
  for (const Literal& each : arrays) {
    text += fmt::format("{}{}[{}] {{", text.empty() ? "" : "; ", name_of(each.element_type()),
                        dims_to_string(each.shape().dims(), ","));
    for (int64_t i = 0; i < std::min(kShown, each.element_count()); ++i) {
      text += (i == 0 ? "" : ", ") + each.element_to_string(i);
    }
    text += each.element_count() > kShown ? ", …}" : "}";
  }
  return text;
}

class ResultComparison {
 public:
  ResultComparison(const hlo::Module& module, const std::vector<Literal>& arguments,
                   const std::vector<Literal>& results, Ledger* ledger, Relaxation* relaxation)
      : function_(*module.entry()), ledger_(ledger), relaxation_(relaxation) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      known_.insert({{function_.parameter(i).def, 0}, arguments[i]});
    }
    const Instruction& end = *function_.return_instruction();
    for (size_t i = 0; i < end.operand_count(); ++i) {
      known_.insert({{end.operand(i).def, end.operand(i).index}, results[i]});
    }
  }

  std::optional<Mismatch> run() {
    for (const Instruction& op : function_) {
      if (op.code() == OpCode::kReturn) break;
      if (auto found = check(op)) return found;
    }
    return std::nullopt;
  }

 private:
  // One result of an op, and what it is compared with.
  struct OneResult {
    const Instruction& op;
    uint32_t index = 0;
    Tolerance rule;
    const std::vector<Literal>& inputs;
    const hlo::Tensor& exact;     // Not rounded, if the rule is not kExact.
    const Literal& expected;      // Rounded.
    std::vector<double> sizes{};  // Sums of the terms' magnitudes, not rounded.
    double relaxed = 0;           // The relaxed bound in ULP; 0 if there is none.
  };

  std::optional<Mismatch> check(const Instruction& op) {
    const std::unique_ptr<Alone> alone = isolate(op);
    std::vector<Literal> inputs;
    for (const Value input : alone->inputs) {
      const auto found = known_.find({input.def, input.index});
      if (found == known_.end()) return std::nullopt;  // A tuple, whose elements are judged.
      inputs.push_back(found->second);
    }
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      if (!op.result_type(r).is_tensor()) continue;
      const Tolerance rule = tolerance_of(op, r);
      const auto exact = evaluate(*alone, inputs, rule.kind != Tolerance::ToleranceKind::kExact);
      if (!exact) {
        return evaluator_failed(fmt::format("{}: {}", op.name(), exact.error().to_string()));
      }
      const Literal expected = hlo::literal_from_tensor(*(*exact)[r]);
      const double relaxed = relaxed_of(op, op.result_type(r).element_type(), rule, relaxation_);
      OneResult result{op, r, rule, inputs, *(*exact)[r], expected, {}, relaxed};
      if (rule.kind == Tolerance::ToleranceKind::kSum) {
        std::vector<Literal> absolute;
        for (const Literal& input : inputs) absolute.push_back(magnitudes(input));
        const auto summed = evaluate(*alone, absolute, true);
        for (int64_t i = 0; summed && i < expected.element_count(); ++i)
          result.sizes.push_back(wide_element(*(*summed)[r], i).real());
      }
      if (auto found = check(result)) return found;
    }
    return std::nullopt;
  }

  std::optional<Mismatch> check(const OneResult& result) {
    const Literal& actual = known_.at({&result.op, result.index});
    if (result.rule.kind == Tolerance::ToleranceKind::kWhole) return check_whole(result, actual);
    for (int64_t i = 0; i < actual.element_count(); ++i) {
      if (is_right(result, actual, i)) continue;
      if (!is_within_relaxed(result, actual, i)) return mismatch_at(result, actual, i);
      if (!relaxation_->warning) relaxation_->warning = mismatch_at(result, actual, i);
    }
    return std::nullopt;
  }

  std::optional<Mismatch> check_whole(const OneResult& result, const Literal& actual) {
    WholeResult whole{result.op, result.index, result.inputs, actual, {}, {}};
    for (int64_t i = 0; i < actual.element_count(); ++i)
      whole.exact.push_back(wide_element(result.exact, i));
    const auto wrong = check_whole_result(whole);
    if (whole.worst.element >= 0)
      record(result, whole.worst.share, ErrorUnit::kBound, actual, whole.worst.element);
    if (!wrong) return std::nullopt;
    return Mismatch{fmt::format("{} result {} element [{}]: {}, expected {}: {}", result.op.name(),
                                result.index, index_text(actual.shape().dims(), wrong->element),
                                actual.element_to_string(wrong->element),
                                result.expected.element_to_string(wrong->element), wrong->reason),
                    &result.op, result.index, wrong->element, text_of_arrays(result.inputs)};
  }

  static Mismatch mismatch_at(const OneResult& result, const Literal& actual, int64_t i) {
    const std::string relaxed =
        result.relaxed > 0 ? fmt::format(", relaxed to {:g} ULP", result.relaxed) : "";
    return {fmt::format("{} result {} element [{}]: {}, expected {} (bound: {}{}{})",
                        result.op.name(), result.index, index_text(actual.shape().dims(), i),
                        actual.element_to_string(i), result.expected.element_to_string(i),
                        to_string(result.rule), relaxed, operands_text(result, i)),
            &result.op, result.index, i, text_of_arrays(result.inputs)};
  }

  bool is_right(const OneResult& result, const Literal& actual, int64_t i) {
    const ElementType type = actual.element_type();
    const Tolerance& rule = result.rule;
    if (!is_float(type) && !is_complex(type)) {
      const int64_t got = actual.get_integer(i);
      const int64_t expected = result.expected.get_integer(i);
      if (got == expected) return true;
      // The difference of two numbers of 64 bits may overflow.
      const double steps = std::abs(static_cast<double>(got) - static_cast<double>(expected));
      return rule.kind == Tolerance::ToleranceKind::kStored && steps <= rule.ulps;
    }
    const ElementType part = complex_part(type);
    const auto a = actual.get_complex(i);
    const auto b = result.expected.get_complex(i);
    switch (rule.kind) {
      case Tolerance::ToleranceKind::kExact:
        if (result.relaxed > 0 && is_float(type))
          record(result, measure(result, type, a.real(), i), i);
        return same_bits(a.real(), b.real()) &&
               (!is_complex(type) || same_bits(a.imag(), b.imag()));
      case Tolerance::ToleranceKind::kStored:
      case Tolerance::ToleranceKind::kWhole:
        return false;
      case Tolerance::ToleranceKind::kUlps:
        return is_complex(type) ? is_within_complex(result, actual, i)
                                : is_within_ulps(result, type, a.real(), i);
      case Tolerance::ToleranceKind::kSum: {
        const double size = result.sizes.empty() ? 0 : result.sizes[static_cast<size_t>(i)];
        if (!is_complex(type) && !std::isfinite(size) && !std::isfinite(b.real()))
          return is_sum_of_special_terms(a.real(), b.real());
        double share = sum_error(rule, part, a.real(), b.real(), size);
        if (is_complex(type))
          share = std::max(share, sum_error(rule, part, a.imag(), b.imag(), size));
        record(result, share, ErrorUnit::kBound, actual, i);
        return share <= 1;
      }
    }
    return false;
  }

  struct MeasuredError {
    double ulp = 0;
    double got = 0;
    Float128 exact = 0;
    // Whether a zero has the wrong sign, which no number of units says.
    bool has_other_zero() const {
      return got == 0 && exact == 0 &&
             std::signbit(got) != std::signbit(static_cast<double>(exact));
    }
  };

  static MeasuredError measure(const OneResult& result, ElementType type, double got, int64_t i) {
    Float128 exact = real_element(result.exact, i);
    double size = 0;
    if (const MathFunction* const function = math_function_of(result.op); function != nullptr) {
      const double x = result.inputs[0].get_double(i);
      exact = function->exact == nullptr || type == ElementType::kF64
                  ? function->exact128(x, 0)
                  : Float128(function->exact(x, 0));
      if (function->size_of_terms != nullptr) size = function->size_of_terms(x);
    }
    return {ulp_error(type, got, exact, size), got, exact};
  }

  void record(const OneResult& result, const MeasuredError& error, int64_t i) {
    if (ledger_ == nullptr) return;
    const ElementType type = result.expected.element_type();
    const auto describe = [&](LedgerEntry& entry) {
      entry.relaxed = result.relaxed;
      entry.operands = operands_of(result, i);
      entry.got = float_to_string(type, error.got);
      entry.exact = fmt::format("{:.17g}", static_cast<double>(error.exact));
    };
    ledger_->add(result.op.code(), type, error.ulp, ErrorUnit::kUlp, result.rule.ulps, describe);
  }

  // An error of a complex number, or one as a share of a bound that depends on all operands.
  void record(const OneResult& result, double error, ErrorUnit unit, const Literal& actual,
              int64_t i) {
    if (ledger_ == nullptr) return;
    const bool is_share = unit == ErrorUnit::kBound;
    const auto describe = [&](LedgerEntry& entry) {
      entry.relaxed = result.relaxed;
      entry.operands = is_share
                           ? fmt::format("element [{}] of {}", index_text(actual.shape().dims(), i),
                                         text_of_arrays(result.inputs))
                           : operands_of(result, i);
      entry.got = actual.element_to_string(i);
      entry.exact = result.expected.element_to_string(i);
    };
    const double bound = is_share ? 1 : result.rule.ulps;
    ledger_->add(result.op.code(), actual.element_type(), error, unit, bound, describe);
  }

  bool is_within_complex(const OneResult& result, const Literal& actual, int64_t i) {
    const double error = complex_error(complex_part(actual.element_type()), actual.get_complex(i),
                                       result.expected.get_complex(i));
    record(result, error, ErrorUnit::kUlp, actual, i);
    return error <= result.rule.ulps;
  }

  bool is_within_ulps(const OneResult& result, ElementType type, double got, int64_t i) {
    const MeasuredError error = measure(result, type, got, i);
    record(result, error, i);
    return !error.has_other_zero() && error.ulp <= result.rule.ulps;
  }

  static bool is_within_relaxed(const OneResult& result, const Literal& actual, int64_t i) {
    if (result.relaxed == 0) return false;
    const ElementType type = actual.element_type();
    const auto a = actual.get_complex(i);
    if (is_complex(type))
      return complex_error(complex_part(type), a, result.expected.get_complex(i)) <= result.relaxed;
    const MeasuredError error = measure(result, type, a.real(), i);
    return !error.has_other_zero() && error.ulp <= result.relaxed;
  }

  // The operands' elements at the index of element `i` of an elementwise op's result.
  static std::string operands_of(const OneResult& result, int64_t i) {
    std::string text;
    if (result.op.info().category != hlo::Category::kElementwise) return text;
    for (const Literal& input : result.inputs) {
      const bool is_scalar = input.element_count() == 1;
      if (!is_scalar && input.element_count() <= i) return {};
      text += (text.empty() ? "" : ", ") + input.element_to_string(is_scalar ? 0 : i);
    }
    return text;
  }
  static std::string operands_text(const OneResult& result, int64_t i) {
    const std::string operands = operands_of(result, i);
    return operands.empty() ? "" : "; operands: " + operands;
  }

  const hlo::Computation& function_;
  Ledger* const ledger_;
  Relaxation* const relaxation_;
  Known known_;
};

}  // namespace

std::optional<Mismatch> compare(const hlo::Module& module, const std::vector<Literal>& arguments,
                                const Device& device) {
  const auto results = device(module, arguments);
  if (!results) return Mismatch{"the device failed: " + results.error().to_string(), nullptr, 0};
  return compare_results(module, arguments, *results);
}

std::optional<Mismatch> compare_results(const hlo::Module& module,
                                        const std::vector<Literal>& arguments,
                                        const std::vector<Literal>& results, Ledger* ledger,
                                        Relaxation* relaxation) {
  return ResultComparison(module, arguments, results, ledger, relaxation).run();
}

namespace {

Result<std::vector<Literal>> evaluated(const hlo::Module& module,
                                       const std::vector<Literal>& arguments, bool wide) {
  hlo::EvaluatorOptions options;
  options.wide = wide;
  std::vector<hlo::EvalValue> values;
  for (const Literal& argument : arguments)
    values.push_back(hlo::EvalValue::of(hlo::tensor_from_literal(argument, wide)));
  // A program may call checks of its own, as of its sizes.
  hlo::Evaluator evaluator(module, options);
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  hlo::install_checks(evaluator, &failures, &checks);
  TENON_ASSIGN(const auto found, evaluator.run(*module.entry(), values));
  std::vector<Literal> literals;
  for (const hlo::EvalValue& value : found) literals.push_back(hlo::literal_from_tensor(*value));
  return literals;
}

Mismatch result_mismatch(size_t r, const WrongElement& wrong, const Literal& actual,
                         const Literal& expected) {
  return {fmt::format("result {} element [{}]: {}, expected {}: {}", r,
                      index_text(actual.shape().dims(), wrong.element),
                      actual.element_to_string(wrong.element),
                      expected.element_to_string(wrong.element), wrong.reason),
          nullptr, 0};
}

}  // namespace

std::optional<Mismatch> compare_whole(const hlo::Module& module,
                                      const std::vector<Literal>& arguments,
                                      const std::vector<Literal>& results) {
  const auto exact = evaluated(module, arguments, true);
  const auto narrow = evaluated(module, arguments, false);
  if (!exact || !narrow) {
    const Status& error = exact ? narrow.error() : exact.error();
    return evaluator_failed(error.to_string());
  }
  for (size_t r = 0; r < results.size(); ++r) {
    if (const auto wrong = check_program_result((*exact)[r], (*narrow)[r], results[r]))
      return result_mismatch(r, *wrong, results[r], (*exact)[r]);
  }
  return std::nullopt;
}

std::optional<Mismatch> compare_bits(const hlo::Module& module,
                                     const std::vector<Literal>& arguments,
                                     const std::vector<Literal>& results) {
  const auto expected = evaluated(module, arguments, false);
  if (!expected) return evaluator_failed(expected.error().to_string());
  for (size_t r = 0; r < results.size(); ++r) {
    const int64_t at = first_difference((*expected)[r], results[r]);
    if (at >= 0) return result_mismatch(r, {at, "bits differ"}, results[r], (*expected)[r]);
  }
  return std::nullopt;
}

namespace {

void add_results(Instruction& op, std::vector<Value>& values, std::vector<hlo::Type>& types) {
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    if (!op.result_type(r).is_tensor()) continue;
    values.push_back(op.result(r));
    types.push_back(op.result_type(r));
  }
}

}  // namespace

Result<std::unique_ptr<hlo::Module>> with_all_values_returned(const hlo::Module& module) {
  std::unique_ptr<hlo::Module> copy = module.clone();
  TENON_TRY(hlo::inline_all_calls(*copy));
  hlo::Computation* entry = copy->entry();
  if (entry == nullptr) return invalid_argument("there is no function to compare");
  std::vector<Value> values;
  std::vector<hlo::Type> types;
  Instruction* end = entry->return_instruction();
  for (Instruction* op = entry->first(); op != end;) {
    Instruction* next = op->next();
    if (op->code() == OpCode::kCustomCall && op->result_count() == 0) {
      entry->erase(op);
    } else {
      add_results(*op, values, types);
    }
    op = next;
  }
  end->set_operands(values);
  entry->set_declared_result_types(std::move(types));
  entry->result_attributes().clear();
  return copy;
}

}  // namespace tenon::conformance
