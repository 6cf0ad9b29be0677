// core/kernel/interpreter/: runs kernels: their reference meaning.
//
// The interpreter defines the reference meaning of kernels. It checks the rules that the verifier
// cannot: races (K3), undefined elements (K2), aliases (K4), atomics (K6), ranges of indices (K7).
// It can run iterations in any order (K5).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// The order of the iterations of grid and lanes loops, and the shape of reductions.
enum class Order : uint8_t {
  kForward,   ///< As written; reductions from the left.
  kBackward,  ///< Last first; reductions from the right.
  kShuffled,  ///< By `seed`; reductions in a tree by the seed, of shuffled leaves if commutative.
};

/// An element of a buffer whose value a run explains: what the iteration that stored it computed.
///
/// The iteration is that of the grid, and of the innermost lanes loop, around the last store to the
/// element. Statements outside lanes loops count as every lane's.
struct Watch {
  MemoryId buffer = 0;
  int64_t element = 0;  ///< In the buffer's storage, as span() counts.

  bool was_stored = false;  ///< If false, the members below are empty.
  NodeId store = kNone;     ///< The last store or atomic.
  /// The values at this store, by ValueId. In loops within the iteration: those of the last round.
  std::vector<uint64_t> values;
  /// By NodeId: whether the iteration had run the node before this store, so that `values` has its
  /// operands and results.
  std::vector<bool> ran;
};

struct InterpreterOptions {
  Order order = Order::kForward;
  uint64_t seed = 0;
  /// Whether to record accesses to memory; if false, K2, K3, K4 and K6 are not checked.
  bool check = true;
  /// If not null, an element to explain, of a kernel without tile statements (expand_tiles).
  Watch* watch = nullptr;
  /// Called from time to time; if it returns true, the run ends with kCancelled.
  std::function<bool()> cancelled;
};

/// The memory of one buffer: span() elements in the buffer's storage format, row-major or strided.
struct BufferArgument {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

/// A kernel prepared to run. It owns a copy of the kernel, so it may be kept and moved.
///
/// Thread-safety: one run at a time.
class Interpreter {
 public:
  /// The kernel must be verified.
  explicit Interpreter(const Kernel& kernel);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  /// Runs the kernel with one argument per buffer and the bits of each scalar. Errors name the rule
  /// and the line, as verify() does; the buffers then contain the values stored so far.
  Status run(std::span<const BufferArgument> buffers, std::span<const uint64_t> scalars = {},
             const InterpreterOptions& options = {});

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace tenon::kernel
