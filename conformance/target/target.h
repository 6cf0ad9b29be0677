// conformance/target/: what cases run on: a device of Tenon's, the evaluator, or a PJRT plug-in.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conformance/compare/kernel_listing.h"
#include "core/program/step_counts.h"
#include "core/runtime/client.h"
#include "hlo/driver/placement.h"
#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct TargetRun {
  std::vector<Literal> results;
  program::StepCounts steps;
  std::vector<hlo::Placement> placement;
  /// Checks that did not hold, of a test program that calls check.expect_eq and the like.
  std::vector<std::string> failed_checks;
};

/// A device that is not open.
struct BackendDevice {
  std::shared_ptr<backend::Backend> backend;
  size_t index = 0;
  std::string plugin{};  ///< The plug-in's file; empty for a backend of this process.
};

/// Runs programs. Thread-safety: one thread at a time.
class Target {
 public:
  virtual ~Target() = default;

  /// Name, version and properties, for reports: a line each.
  virtual std::vector<std::string> description() const = 0;
  /// Compiles @main of a static program and runs it on one argument for each parameter. Errors:
  /// kUnavailable if the device is lost; kUnimplemented if it declines the program; those of
  /// compilation and execution.
  virtual Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) = 0;
  /// The Program that the device runs for a module. kUnimplemented if another compiler than Tenon's
  /// makes it.
  virtual Result<DeviceProgram> program_of(const hlo::Module& module);
  /// Whether `run` counts the steps that the device ran: not if another compiler than Tenon's makes
  /// them.
  virtual bool counts_steps() const { return true; }
  /// The device's backend, for cases that call the interface themselves. The target closes its own
  /// device (B11), which the next `run` opens again. kUnimplemented for targets without one.
  virtual Result<BackendDevice> release_device();
};

/// Errors: those of opening the device.
Result<std::unique_ptr<Target>> make_device_target(BackendDevice device);

/// The reference evaluator; a program counts as one step.
std::unique_ptr<Target> make_evaluator_target();

}  // namespace tenon::conformance
