// Tuning parameters and measured rates in a file next to a plug-in.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Rates of a device, as TargetInfo has them; 0: not stated.
struct DeviceRates {
  double flops = 0;
  double bytes_per_second = 0;
  double launch_seconds = 0;
};

struct TuningFile {
  DeviceRates rates;
  std::vector<TuningValue> tuning;
};

/// Reads lines "NAME = VALUE": a rate by the name of its member, else a parameter. Errors name the
/// line.
Result<TuningFile> parse_tuning_file(std::string_view text);
/// Writes the same lines.
std::string to_string(const TuningFile& file);

/// The parameter file of a plug-in: "libchip.tuning" for "libchip.so" or "libchip.so.1".
std::string tuning_file_of(const std::string& plugin);

/// `backend`, with devices that also state what the plug-in's file has, if it exists: its rates in
/// place of their own, its parameters after their own. Errors: the file cannot be read, or a line
/// has another form.
Result<std::shared_ptr<Backend>> with_tuning_file(std::shared_ptr<Backend> backend,
                                                  const std::string& plugin);

}  // namespace tenon::backend
