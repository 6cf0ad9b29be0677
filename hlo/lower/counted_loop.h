// Loops that count: a while whose number of turns is known becomes a `for`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/kernel/ir/builder.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// How a while counts: its condition compares one integer of the state with a constant, and each
/// turn adds a constant to it.
struct CountedLoop {
  size_t counter = 0;  ///< The number of the integer within the state.
  int64_t first = 0;   ///< Its initial value, a constant.
  int64_t step = 0;    ///< Not 0.
  int64_t turns = 0;   ///< May be 0.
  int64_t last = 0;    ///< first + turns * step, the value behind the loop.
  bool operator==(const CountedLoop&) const = default;
};

/// How `op`, a while, counts; nothing if its number of turns is unknown, or if its turns, with
/// those of the loops that count within it, are so much work that only a `while`, which polls the
/// stop flag (B27), can be stopped in time.
std::optional<CountedLoop> counted_loop(const Instruction& op);

/// The number of turns of a while that counts, however much work they are; nothing if it is
/// unknown.
std::optional<int64_t> known_turns(const Instruction& op);

/// Emits `op`, a while, as a `for` if it counts, else as a `while`. `inits` and what the functions
/// get and return are the numbers of the state that are carried in registers; `position` is the
/// place of the state's part `counter` among them.
kernel::Values emit_loop(kernel::Builder& b, const Instruction& op, const kernel::Values& inits,
                         const std::function<size_t(size_t counter)>& position,
                         const kernel::Builder::ValueBody& condition,
                         const kernel::Builder::ValueBody& body);

}  // namespace tenon::hlo::lower
