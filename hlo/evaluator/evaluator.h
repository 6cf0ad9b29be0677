// hlo/evaluator/: the reference evaluator: what every op means.
//
// The reference evaluator defines every op, in code meant to be read together with the
// specification.
//
// It favours obviousness over speed. It is the oracle of all other tests: in wide mode it evaluates
// floats of at most 32 bits in f64, and f64 in binary128, without intermediate rounding.
//
// Order and determinism: reductions combine in row-major order of the reduced elements; the same
// program with the same arguments gives the same bits. Thread-safety: an Evaluator is used by one
// thread; several may share a Module, which they only read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/evaluator/scalars/element_functions.h"
#include "hlo/evaluator/scalars/scalar.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// A value at run time: an array, a token, or a tuple of values (also the tuple of a future).
struct EvalValue {
  std::shared_ptr<const Tensor> tensor;  ///< Null for tokens and tuples.
  std::vector<EvalValue> elements;       ///< Elements of a tuple or future.

  static EvalValue of(Tensor tensor) {
    return {std::make_shared<const Tensor>(std::move(tensor)), {}};
  }
  const Tensor& operator*() const { return *tensor; }
  const Tensor* operator->() const { return tensor.get(); }
};

class Process;  // hlo/evaluator/processes/process.h: this process among simulated replicas and
                // partitions

struct EvaluatorOptions {
  bool wide = false;
  /// Seed of the state for the op `rng`; the state continues from run to run.
  uint64_t rng_seed = 0;
  /// Nesting of calls and regions.
  int max_depth = 512;
  /// The maximum size of one array in bytes; a program that needs more gets an error.
  int64_t max_array_bytes = int64_t{16} << 30;
  /// The maximum work of all evaluations together (hlo/evaluator/work.h); zero is no limit.
  double max_work = 0;
  /// Called from time to time with the number of evaluated instructions; returning false cancels.
  std::function<bool(int64_t)> progress;
};

/// The values of one activation of a computation; looks up captured values in enclosing
/// activations.
class EvalFrame {
 public:
  explicit EvalFrame(const EvalFrame* outer) : outer_(outer) {}
  void set(const Instruction* op, std::vector<EvalValue> results) {
    values_[op] = {std::move(results), op->uses().size()};
  }
  const EvalValue* find(Value value) const;
  /// Like `find`, for an operand of an instruction of this computation: the last use releases the
  /// value.
  std::optional<EvalValue> take(Value value);

 private:
  const EvalFrame* outer_;
  struct FrameSlot {
    std::vector<EvalValue> results;
    size_t uses_left = 0;  // uses in nested regions are never counted down
  };
  std::unordered_map<const Instruction*, FrameSlot> values_;
};

class Evaluator;
/// A custom call by target name.
using CustomCallHandler = std::function<Result<std::vector<EvalValue>>(
    Evaluator&, const Instruction&, const std::vector<EvalValue>&)>;

class Evaluator {
 public:
  explicit Evaluator(const Module& module, EvaluatorOptions options = {});
  ~Evaluator();

  /// Runs `function` on `arguments`, one per parameter, with the parameters' types.
  Result<std::vector<EvalValue>> run(const Computation& function,
                                     const std::vector<EvalValue>& arguments);
  /// The same on Literals; tokens and tuples are not supported as arguments. Results of token type
  /// are omitted.
  Result<std::vector<Literal>> run(const Computation& function,
                                   const std::vector<Literal>& arguments);

  void set_custom_call(std::string target, CustomCallHandler handler) {
    custom_calls_[std::move(target)] = std::move(handler);
  }
  /// Copies all handlers, for an Evaluator that works on behalf of another.
  void set_custom_calls(const Evaluator& other) {
    custom_calls_ = other.custom_calls_;
    process_runner_ = other.process_runner_;
  }
  /// How the function of a process is run (interpreter.run_parallel); if unset, by the process's
  /// Evaluator.
  using ProcessRunner = std::function<Result<std::vector<EvalValue>>(
      Evaluator&, const Computation& function, const std::vector<EvalValue>& arguments)>;
  void set_process_runner(ProcessRunner runner) { process_runner_ = std::move(runner); }
  Result<std::vector<EvalValue>> run_process(const Computation& function,
                                             const std::vector<EvalValue>& arguments) {
    return process_runner_ ? process_runner_(*this, function, arguments) : run(function, arguments);
  }
  /// The process on whose behalf collectives communicate; null: a single process.
  void set_process(Process* process) { process_ = process; }
  Process* process() const { return process_; }
  /// The values that `outfeed` ops have written, in order, one element per op.
  const std::vector<std::vector<EvalValue>>& outfeed() const { return outfeed_; }
  void write_outfeed(std::vector<EvalValue> values) { outfeed_.push_back(std::move(values)); }

  const Module& module() const { return module_; }
  const EvaluatorOptions& options() const { return options_; }
  bool wide() const { return options_.wide; }

  // --- For the files of the evaluator

  using Values = Result<std::vector<EvalValue>>;
  Values run_computation(const Computation& computation, const std::vector<EvalValue>& arguments,
                         const EvalFrame* outer);
  Values evaluate(const Instruction& op, const std::vector<EvalValue>& operands,
                  const EvalFrame& frame);
  /// Forgets the data kept for `op`, an instruction that will be destroyed.
  void forget(const Instruction& op);
  /// A zero tensor of `type`, or an error if its size is out of bounds.
  Result<Tensor> make_tensor(const Type& type) const;
  Tensor tensor(ElementType type, Dims dims) const { return Tensor(type, std::move(dims), wide()); }

  /// Evaluates `op` by its decomposition.
  Values decomposed(const Instruction& op, const std::vector<EvalValue>& operands,
                    const EvalFrame& frame);
  /// Calls the handler of a custom call's target.
  Values custom_call(const Instruction& op, const std::vector<EvalValue>& operands);
  /// Counts an instruction or an iteration; an error if `progress` cancels.
  Status tick();
  /// Counts the work of an instruction; an error if it exceeds the limit.
  Status spend(const Instruction& op);

 private:
  const Module& module_;
  EvaluatorOptions options_;
  std::unordered_map<std::string, CustomCallHandler> custom_calls_;
  ProcessRunner process_runner_;
  Process* process_ = nullptr;
  std::vector<std::vector<EvalValue>> outfeed_;
  int depth_ = 0;
  int64_t executed_ = 0;
  double work_ = 0;
  EvalValue random_state_;  // u64[2], of the op `rng`
  struct Decomposition;
  std::unordered_map<const Instruction*, std::unique_ptr<Decomposition>> decompositions_;
};

/// Calls a region on scalars, which reductions, sorts and scatters do millions of times. A region
/// of elementwise ops is flattened once into a list of functions on registers; any other region is
/// evaluated.
class RegionFunction {
 public:
  RegionFunction(Evaluator& evaluator, const Computation& region, const EvalFrame& frame);
  size_t result_count() const { return result_count_; }
  /// `arguments`: one per parameter; `results`: result_count(). The two may overlap.
  Status operator()(const Scalar* arguments, Scalar* results);

 private:
  struct ElementStep {
    ElementFunction function = nullptr;
    ElementContext context;
    uint32_t operands[3] = {0, 0, 0};
    uint32_t operand_count = 0;
    uint32_t result = 0;
  };
  bool flatten(const Computation& region, const EvalFrame& frame);
  bool flatten_op(const Instruction& op);

  Evaluator& evaluator_;
  const Computation& region_;
  const EvalFrame& frame_;
  bool flat_ = false;
  size_t result_count_ = 0;
  std::vector<Scalar> registers_;
  std::vector<ElementStep> steps_;
  std::vector<uint32_t> result_registers_;
  std::unordered_map<const Instruction*, uint32_t> register_of_;
};

using Operands = const std::vector<EvalValue>&;
Evaluator::Values evaluate_elementwise(Evaluator& e, const Instruction& op, Operands operands);
Evaluator::Values evaluate_quantized(Evaluator& e, const Instruction& op, Operands operands,
                                     const EvalFrame& frame);

/// One tensor as a list of results.
inline Evaluator::Values one(Tensor tensor) {
  std::vector<EvalValue> values;
  values.push_back(EvalValue::of(std::move(tensor)));
  return values;
}

}  // namespace tenon::hlo
