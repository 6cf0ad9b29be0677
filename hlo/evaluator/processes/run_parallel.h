// Runs programs on a grid of processes, and implements the interpreter.* calls of test programs
// that request it.
#pragma once

#include <ostream>
#include <vector>

#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

struct ProcessProgram {
  const Computation* function = nullptr;
  std::vector<EvalValue> arguments;
};

struct ProcessOutcome {
  std::vector<EvalValue> results;
  std::vector<std::vector<EvalValue>> outfeed;  ///< One element for each outfeed op, in order.
};

/// The maximum number of processes in a grid: each takes a thread.
inline constexpr int64_t kMaxProcesses = 1024;

/// Runs programs[replica][partition], rows of equal length, at the same time. Each runs with the
/// options and custom calls of `model` (whose handlers may be called from several threads at once)
/// over its Module. Every process can read `infeed` from its beginning. Blocks until all have
/// ended; the outcomes are in the order of the programs. An error names the process that failed.
Result<std::vector<ProcessOutcome>> run_processes(
    const Evaluator& model, const std::vector<std::vector<ProcessProgram>>& programs,
    std::vector<std::vector<EvalValue>> infeed = {});

/// Registers these targets with `evaluator`:
///
/// interpreter.run_parallel {programs = [[@f, …], …], infeed = [@data, …]} runs functions of the
/// Module on a grid. Its operands are the arguments, and its results the results, of all processes
/// in [replica][partition] order. Each function of `infeed` returns one element of the infeed. The
/// outfeeds of the processes are appended to the evaluator's, process by process.
///
/// interpreter.print writes its operand to `out`, one call at a time. `out` must outlive the
/// evaluator.
void install_run_parallel(Evaluator& evaluator, std::ostream& out);
void install_run_parallel(Evaluator& evaluator);  ///< Prints to standard output.

}  // namespace tenon::hlo
