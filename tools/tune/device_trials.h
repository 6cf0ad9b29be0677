// A device as the target of the search of `tenon tune`.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/runtime/client.h"
#include "hlo/ir/instruction.h"
#include "tools/tune/trials.h"

namespace tenon::tools {

/// A program that is tuned for, with its arguments.
struct TunedProgram {
  std::string name;
  std::unique_ptr<hlo::Module> module;
  std::string entry;
  std::vector<Literal> arguments;
  std::string digest;  ///< The digest of its text: trials of another version are not used.
};

/// Compiles, runs and times programs on one device, and keeps each trial. A device that is lost is
/// opened again. Results with parameters are compared with the results without.
class DeviceTrials : public TuningTarget {
 public:
  using Clock = std::chrono::steady_clock;

  /// `own` are the parameters that the device states: trials are kept by all that were in effect,
  /// so that they stay known when the device states what was found. Errors: the device cannot be
  /// opened.
  static Result<std::unique_ptr<DeviceTrials>> open(std::shared_ptr<backend::Backend> backend,
                                                    size_t device, Tuning own,
                                                    std::vector<TunedProgram> programs,
                                                    Trials trials, Clock::time_point end);

  size_t program_count() const override { return programs_.size(); }
  Result<double> seconds(size_t program, const Tuning& tuning, bool again) override;
  const std::set<std::string>& asked(size_t program) const override { return asked_[program]; }
  bool is_over() const override { return Clock::now() >= end_; }

  const std::vector<TunedProgram>& programs() const { return programs_; }
  /// The reason why a program did not run when it was last measured; empty if it ran.
  const std::string& why_not(size_t program) const { return why_not_[program]; }
  /// Trials whose results differed from those with the device's own values, a sentence each.
  const std::vector<std::string>& wrong() const { return wrong_; }
  /// Trials that ran on the device.
  int64_t measured() const { return measured_; }

 private:
  DeviceTrials(std::shared_ptr<backend::Backend> backend, size_t device, Tuning own,
               std::vector<TunedProgram> programs, Trials trials, Clock::time_point end);
  Status open_client();
  Trial run(size_t program, const Tuning& tuning);

  const std::shared_ptr<backend::Backend> backend_;
  const size_t device_;
  const Tuning own_;
  const std::vector<TunedProgram> programs_;
  Trials trials_;
  const Clock::time_point end_;
  std::shared_ptr<runtime::Client> client_;
  std::vector<std::set<std::string>> asked_;
  std::vector<std::vector<Literal>> expected_;  // Results with the device's own values.
  std::vector<std::string> why_not_;
  std::vector<std::string> wrong_;
  int64_t measured_ = 0;
};

/// "each_m=8 tile_k=64", or "the device's own values".
std::string to_string(const Tuning& tuning);

}  // namespace tenon::tools
