// The custom calls that test programs make: check.expect_eq, check.expect_close,
// check.expect_almost_eq, check.eq, interpreter.probe with check.expect_serialized_eq, and JAX's
// shape_assertion.
#pragma once

#include <span>

#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

/// A failed check.
struct CheckFailure {
  std::string text;  ///< "check.expect_close: element [3, 1] is 1.5, expected 2.5 (…)"
  SourcePosition position;
};

/// How far two values are apart in representable steps of `type`; across zero the sum of both
/// distances to zero. -1 when one is NaN or only one is infinite.
int64_t ulp_distance(ElementType type, double a, double b);

/// Whether each element of `actual` matches `expected` by the rule of `target`; `*why` describes
/// the first that does not.
bool check_holds(std::string_view target, const Dict& config, const Literal& actual,
                 const Literal& expected, std::string* why);

/// The handlers of the check targets, with the state that they share. Copies share it too, and may
/// be called from several threads.
class Checks {
 public:
  /// Failures are appended to `*failures`, `*checks` counts the checks made; both outlive this.
  Checks(std::vector<CheckFailure>* failures, int64_t* checks);

  /// The same, with the same probes, but for where failures and the count go.
  Checks reporting_to(std::vector<CheckFailure>* failures, int64_t* checks) const;

  static std::span<const std::string_view> targets();
  /// Answers a call of one of the targets: its configuration (a shape assertion's error_message
  /// too), its operands, the shapes of its results. A check that fails is no error.
  Result<std::vector<Literal>> call(std::string_view target, const Dict& config,
                                    const std::vector<Literal>& operands,
                                    const std::vector<Shape>& results,
                                    const SourcePosition& position) const;

 private:
  struct Probes;
  struct Impl;
  void count(bool holds, std::string why, const SourcePosition& position) const;
  void keep(const Dict& config, const Literal& value) const;
  void compare_probe(const Dict& config, const Literal& value,
                     const SourcePosition& position) const;

  std::shared_ptr<Impl> state_;
};

/// Makes `evaluator` answer the check targets; failures are appended to `*failures`, execution goes
/// on. `*checks` counts the checks made. Processes that share the handlers take turns to write to
/// the two, which may be read once the evaluator's run has returned.
///
/// interpreter.probe gives its operand and keeps it under its probe_id; check.expect_serialized_eq
/// compares with the value that the iter-th call of that probe kept (iter 0 unless given).
void install_checks(Evaluator& evaluator, std::vector<CheckFailure>* failures, int64_t* checks);
/// The same with handlers that others may share.
void install_checks(Evaluator& evaluator, const Checks& handlers);

}  // namespace tenon::hlo
