// The custom calls of test programs: check.expect_eq, check.expect_close, check.expect_almost_eq,
// check.eq, interpreter.probe with check.expect_serialized_eq, and JAX's shape_assertion.
#pragma once

#include <span>

#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

/// A failed check.
struct CheckFailure {
  std::string text;  ///< "check.expect_close: element [3, 1] is 1.5, expected 2.5 (…)"
  SourcePosition position;
};

/// The distance of two values in representable steps of `type`; across zero, the sum of both
/// distances to zero. -1 if one is NaN or exactly one is infinite.
int64_t ulp_distance(ElementType type, double a, double b);

/// Whether each element of `actual` matches `expected` by the rule of `target`; `*why` describes
/// the first one that does not.
bool check_holds(std::string_view target, const Dict& config, const Literal& actual,
                 const Literal& expected, std::string* why);

/// The handlers of the check targets, with the state that they share. Copies share the state too,
/// and may be called from several threads.
class Checks {
 public:
  /// Failures are appended to `*failures`, `*checks` counts the checks; both must outlive this
  /// object.
  Checks(std::vector<CheckFailure>* failures, int64_t* checks);

  /// The same handlers with the same probes, but with other destinations for failures and the
  /// count.
  Checks reporting_to(std::vector<CheckFailure>* failures, int64_t* checks) const;

  static std::span<const std::string_view> targets();
  /// Handles a call of one of the targets, given its configuration (including a shape assertion's
  /// error_message), its operands and the shapes of its results. A failed check is not an error of
  /// the call.
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

/// Registers the check targets with `evaluator`. Failures are appended to `*failures`, and
/// execution continues; `*checks` counts the checks. Processes that share the handlers write to the
/// two one at a time; read them only after the evaluator's run has returned.
///
/// interpreter.probe returns its operand and stores it under its probe_id;
/// check.expect_serialized_eq compares with the value that the iter-th call of that probe stored
/// (iter 0 by default).
void install_checks(Evaluator& evaluator, std::vector<CheckFailure>* failures, int64_t* checks);
/// The same with handlers that may be shared.
void install_checks(Evaluator& evaluator, const Checks& handlers);

}  // namespace tenon::hlo
