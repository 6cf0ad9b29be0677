// conformance/measure/: how fast a device is, by classes of ops.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/target/target.h"
#include "core/backend/registry/tuning_file.h"

namespace tenon::conformance {

struct MeasureOptions {
  /// A program's size grows until one run takes so long, or its arrays are this large.
  double run_seconds = 0.02;
  int64_t most_bytes = int64_t{256} << 20;
  /// Runs of the final size, of which the median counts.
  int runs = 7;
};

/// The rate of a class of ops.
struct ClassRate {
  std::string name;  ///< "dot f32"
  std::string size;  ///< "256x256 . 256x256"
  double seconds = 0;
  double flops = 0;             ///< Per second; 0 for classes that only move data.
  double bytes_per_second = 0;  ///< Arguments and results count once each.
  std::string error;            ///< Why there is no rate.
};

struct Measurement {
  std::string device;
  backend::DeviceRates declared;
  std::vector<ClassRate> classes;
  double launch_seconds = 0;
  double to_device_seconds = 0;  ///< A transfer of one element.
  double from_device_seconds = 0;
  double to_device_rate = 0;  ///< Bytes per second, of a large array.
  double from_device_rate = 0;
};

/// Runs every class. Calls `progress` with the name of each. Errors: the device does not open, or
/// does not do what every device does; a class that it cannot run has an error of its own.
Result<Measurement> measure(const BackendDevice& device, const MeasureOptions& options,
                            const std::function<void(const std::string& name)>& progress);

/// The rates by which the host chooses schedules (TargetInfo): the best that were reached.
backend::DeviceRates rates_of(const Measurement& measured);

/// A table for the terminal.
std::string table_of(const Measurement& measured);
nlohmann::json to_json(const Measurement& measured);

// --- For the files of the folder

/// A program whose size `n` states.
struct MeasuredClass {
  std::string_view name;
  int64_t first;   ///< The least size.
  int64_t growth;  ///< How the run grows with the size: its exponent.
  /// The text of the program.
  std::string (*program)(int64_t n);
  std::string (*size)(int64_t n);
  double (*flops)(double n);
};
const std::vector<MeasuredClass>& measured_classes();

}  // namespace tenon::conformance
