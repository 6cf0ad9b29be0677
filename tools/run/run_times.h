// tools/run/: `tenon run` and `tenon compile`: compile a program for a device, run it, time its
// executions and each of its steps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/backend/layers/trace/trace.h"
#include "hlo/driver/run.h"

namespace tenon::tools {

/// "1 step", "2 steps"
std::string counted(int64_t count, std::string_view noun);

/// On standard error, since standard output has only the results.
void print_times(const hlo::RunTimes& times);
nlohmann::json times_json(const hlo::RunTimes& times);

/// Measures the steps of executions: which ones ran, and how long their work took on the device, by
/// the events that the layer `trace` records after each piece of work. Steps of segments are given
/// one by one meanwhile.
///
/// Thread-safety: the functions of StepObserver and those that the layer calls, from any thread;
/// the others once the run has ended and its device is closed.
class StepTimes final : public runtime::StepObserver,
                        public std::enable_shared_from_this<StepTimes> {
 public:
  /// `inner` within a layer that tells this object of its work. The layer owns a share of the
  /// object, which a shared_ptr must own: a lost device may close on its own thread after the run.
  Result<std::shared_ptr<backend::Backend>> around(std::shared_ptr<backend::Backend> inner);

  void begin(const program::Step& step) override;
  void end(const program::Step& step) override;

  /// On standard error: a line for each step that ran, in the order in which they first began, then
  /// the copies between host and device.
  void print(const hlo::RunTimes& times) const;
  nlohmann::json to_json(const hlo::RunTimes& times) const;

 private:
  struct StepRow {
    std::string_view kind;
    std::string name;   // Of the kernel or the call.
    std::string label;  // The ops, with their locations.
    int64_t runs = 0;
    double host = 0;              // Seconds from its begins to its ends.
    std::vector<double> seconds;  // On the device, of each piece of work.
  };
  struct Running {
    size_t row = 0;
    std::thread::id thread;
    double begin = 0;
  };
  struct Transfers {
    int64_t copies = 0;
    int64_t bytes = 0;
    double seconds = 0;
  };

  uint64_t tag();
  void see(const backend::TracedSlice& slice);
  static bool is_on_host(const StepRow& row);
  static bool has_parts(const StepRow& row);
  /// The times of each run of the step itself.
  static std::vector<double> times_of(const StepRow& row);
  double sum() const;

  mutable std::mutex mutex_;
  std::map<const program::Step*, size_t> numbers_;
  std::vector<StepRow> rows_;
  std::vector<Running> running_;
  std::map<std::string, Transfers, std::less<>> transfers_;
};

}  // namespace tenon::tools
