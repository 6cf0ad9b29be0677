// State shared by the parts of the verifier: the violation found, the context of a statement, and
// the iterations between which a value differs. memory_rules.h derives from it, verifier.cpp from
// that. Private to core/kernel.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {

/// The induction variables of the grid and of lanes loops on which a value depends, as bits; kAll
/// if unknown.
using Dependence = uint64_t;
inline constexpr Dependence kAll = ~Dependence{0};

/// The dependence of each value, 0 until it is set.
class Dependences {
 public:
  explicit Dependences(const Kernel& kernel) : dependences_(kernel.values.size()) {}

  /// The union of the dependences of `values`.
  Dependence of(std::span<const ValueId> values) const {
    Dependence all = 0;
    for (const ValueId value : values) all |= dependences_[value];
    return all;
  }
  void set(ValueId value, Dependence dependence) { dependences_[value] = dependence; }
  void set_unknown(std::span<const ValueId> values) {
    for (const ValueId value : values) set(value, kAll);
  }
  /// Assigns bits to the variables of the grid or of a lanes loop; returns those that take more
  /// than one value.
  Dependence vary(std::span<const ValueId> variables, const Dims& extents);

 private:
  std::vector<Dependence> dependences_;
  int next_bit_ = 0;
};

/// The context of a block.
struct BlockContext {
  const Node* lanes = nullptr;  ///< The enclosing lanes loop.
  bool pure = false;            ///< In a leaf or combination.
  bool conditional = false;     ///< May be skipped in some iteration of the enclosing loop.
  Dependence varying = 0;       ///< Enclosing grid and lanes variables with more than one value.
  Dependence grid = 0;          ///< Those of `varying` that belong to the grid.
};

/// The violation of a rule by a statement, or by the head if `at` is kNone.
Violation violation_of(const Kernel& kernel, NodeId at, KernelRule rule, ErrorCode code,
                       std::string_view message);

/// The maximum number of iterations of a loop, and of workgroups: they are counted in 32 bits.
inline constexpr int64_t kMostIterations = (int64_t{1} << 32) - 2;

/// A check is a function that returns whether its rule holds; the first violation is recorded.
class Verification {
 protected:
  explicit Verification(const Kernel& kernel) : kernel_(kernel), dependences_(kernel) {}

  /// Records a violation at statement at_; always returns false.
  template <class... Args>
  bool fail(KernelRule rule, fmt::format_string<Args...> format, Args&&... args) {
    return fail_as(rule, ErrorCode::kInvalidArgument,
                   fmt::format(format, std::forward<Args>(args)...));
  }
  bool fail_as(KernelRule rule, ErrorCode code, std::string_view message);
  std::optional<Violation> take_violation() { return std::move(violation_); }

  ElementType type_of(ValueId value) const { return kernel_.value(value).type; }
  /// K0: `what` has at most `most` iterations.
  bool countable(const Dims& extents, int64_t most, std::string_view what);

  const Kernel& kernel_;
  NodeId at_ = kNone;  ///< The statement that is being checked; kNone in the head.
  Dependences dependences_;

 private:
  std::optional<Violation> violation_;
};

}  // namespace tenon::kernel
