#include "conformance/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "conformance/cases/interface/seam_device.h"
#include "conformance/measure/timed_program.h"

namespace tenon::conformance {
namespace {

using backend::MemoryHandle;

// --- By the interface

constexpr const char* kNothingMuch =
    "kernel @least(%x: in s32[1], %y: out s32[1]) index s32 grid() {\n  lanes(%j: 1) {\n"
    "    %a = load %x[%j] : s32\n    store %a, %y[%j] : s32\n  }\n}\n";

// The cost of a further launch where many are queued.
Status measure_launches(SeamDevice& d, const MeasureOptions& options, Measurement& measured) {
  constexpr int kLaunches = 100;
  TENON_ASSIGN(const auto loaded, d.load_text({kNothingMuch}));
  TENON_ASSIGN(const MemoryHandle x, d.allocate(4));
  TENON_ASSIGN(const MemoryHandle y, d.allocate(4));
  TENON_TRY(d.upload({x}, Bytes(4)));
  const auto launches = [&](int count) {
    return median_seconds(options.runs, [&]() -> Status {
      for (int i = 0; i < count; ++i) TENON_TRY(d.launch(loaded.module, {{x}, {y}}));
      return d.finish();
    });
  };
  TENON_ASSIGN(const double warm, launches(1));
  TENON_ASSIGN(const double one, launches(1));
  TENON_ASSIGN(const double many, launches(1 + kLaunches));
  measured.launch_seconds = std::max(many - std::min(one, warm), 1e-9) / kLaunches;
  return {};
}

Status measure_transfers(SeamDevice& d, const MeasureOptions& options, Measurement& measured) {
  const int64_t room = d.target().spaces[0].bytes;
  const int64_t large = room > 0 ? std::min(room / 8, int64_t{16} << 20) : int64_t{16} << 20;
  TENON_ASSIGN(const MemoryHandle memory, d.allocate(large));
  const auto both = [&](int64_t bytes, double& up, double& down) -> Status {
    const Bytes sent = test_bytes(bytes, 1);
    TENON_TRY(d.upload({memory}, sent));
    Bytes got(sent.size());
    const auto fetch = [&]() -> Status {
      TENON_TRY(d.device().copy(0, backend::MemoryAddress::of_host(got.data()), {memory}, bytes));
      return d.finish();
    };
    TENON_TRY(fetch());
    TENON_TRY(expect_bytes("B19", got, sent));
    TENON_ASSIGN(up, median_seconds(options.runs, [&] { return d.upload({memory}, sent); }));
    TENON_ASSIGN(down, median_seconds(options.runs, fetch));
    return {};
  };
  TENON_TRY(both(4, measured.to_device_seconds, measured.from_device_seconds));
  double up = 0;
  double down = 0;
  TENON_TRY(both(large, up, down));
  measured.to_device_rate = static_cast<double>(large) / up;
  measured.from_device_rate = static_cast<double>(large) / down;
  return {};
}

// --- Programs

// The size at which a run takes `factor` times as long.
int64_t grown(const MeasuredClass& one, int64_t n, double factor) {
  const double by = std::pow(factor, 1.0 / static_cast<double>(one.growth));
  int64_t size = n;
  while (static_cast<double>(size) < static_cast<double>(n) * by) size *= 2;
  return size;
}

Status measure_class(const std::shared_ptr<runtime::Client>& client, const MeasuredClass& one,
                     const MeasureOptions& options, ClassRate& rate) {
  for (int64_t n = one.first;;) {
    TENON_ASSIGN(const TimedProgram program, TimedProgram::load(client, one.program(n)));
    TENON_TRY(program.run());
    TENON_ASSIGN(const double once, median_seconds(1, [&] { return program.run(); }));
    const double room = static_cast<double>(options.most_bytes) / program.bytes;
    // A first guess may be far off, since a launch takes time too.
    const double factor = std::min({options.run_seconds / once, room, 64.0});
    const int64_t next = factor > 1.5 ? grown(one, n, factor / 2) : n;
    if (next > n) {
      n = next;
      continue;
    }
    TENON_ASSIGN(rate.seconds, median_seconds(options.runs, [&] { return program.run(); }));
    rate.size = one.size(n);
    rate.flops = one.flops(static_cast<double>(n)) / rate.seconds;
    rate.bytes_per_second = program.bytes / rate.seconds;
    return {};
  }
}

std::string rate_text(double rate, double declared) {
  if (rate == 0) return "-";
  const std::string text = fmt::format("{:.3g}", rate / 1e9);
  return declared == 0 ? text : fmt::format("{} ({:.0f} %)", text, 100 * rate / declared);
}

}  // namespace

Result<Measurement> measure(const BackendDevice& device, const MeasureOptions& options,
                            const std::function<void(const std::string& name)>& progress) {
  Measurement measured;
  {
    progress("launches and transfers");
    TENON_ASSIGN(const auto opened, SeamDevice::open(device));
    const backend::TargetInfo& target = opened->target();
    measured.device = target.name;
    measured.declared = {target.flops, target.bytes_per_second, target.launch_seconds};
    TENON_TRY(measure_launches(*opened, options, measured));
    TENON_TRY(measure_transfers(*opened, options, measured));
  }
  runtime::ClientOptions first;
  first.devices = {device.index};
  TENON_ASSIGN(const auto client, runtime::Client::open(device.backend, first));
  MeasureOptions bounded = options;
  const int64_t room = client->devices()[0]->info().target.spaces[0].bytes;
  if (room > 0) bounded.most_bytes = std::min(options.most_bytes, room / 8);
  for (const MeasuredClass& each : measured_classes()) {
    progress(std::string(each.name));
    ClassRate rate;
    rate.name = each.name;
    const Status status = measure_class(client, each, bounded, rate);
    if (!status.ok()) rate.error = status.to_string();
    measured.classes.push_back(std::move(rate));
  }
  return measured;
}

backend::DeviceRates rates_of(const Measurement& measured) {
  backend::DeviceRates rates;
  rates.launch_seconds = measured.launch_seconds;
  for (const ClassRate& each : measured.classes) {
    if (each.name.ends_with("f32")) rates.flops = std::max(rates.flops, each.flops);
    rates.bytes_per_second = std::max(rates.bytes_per_second, each.bytes_per_second);
  }
  return rates;
}

std::string table_of(const Measurement& measured) {
  const backend::DeviceRates& declared = measured.declared;
  std::string text = fmt::format("{:<22} {:<22} {:>10}  {:<18} {:<18}\n", "class", "size", "ms",
                                 declared.flops > 0 ? "Gflop/s (declared)" : "Gflop/s",
                                 declared.bytes_per_second > 0 ? "GB/s (declared)" : "GB/s");
  for (const ClassRate& each : measured.classes) {
    if (!each.error.empty()) {
      text += fmt::format("{:<22} {}\n", each.name, each.error);
      continue;
    }
    text += fmt::format("{:<22} {:<22} {:>10.3f}  {:<18} {:<18}\n", each.name, each.size,
                        1e3 * each.seconds, rate_text(each.flops, declared.flops),
                        rate_text(each.bytes_per_second, declared.bytes_per_second));
  }
  const auto transfer = [](double seconds, double rate) {
    return fmt::format("{:.2f} us, {:.3g} GB/s", 1e6 * seconds, rate / 1e9);
  };
  text += fmt::format("{:<22} {:.2f} us{}\n", "launch", 1e6 * measured.launch_seconds,
                      declared.launch_seconds > 0
                          ? fmt::format(" (declared: {:.2f} us)", 1e6 * declared.launch_seconds)
                          : "");
  text += fmt::format("{:<22} {}\n", "transfer to device",
                      transfer(measured.to_device_seconds, measured.to_device_rate));
  text += fmt::format("{:<22} {}\n", "transfer from device",
                      transfer(measured.from_device_seconds, measured.from_device_rate));
  return text;
}

nlohmann::json to_json(const Measurement& measured) {
  const auto rates = [](const backend::DeviceRates& each) {
    return nlohmann::json{{"flops", each.flops},
                          {"bytes_per_second", each.bytes_per_second},
                          {"launch_seconds", each.launch_seconds}};
  };
  nlohmann::json classes = nlohmann::json::array();
  for (const ClassRate& each : measured.classes) {
    nlohmann::json one = {{"class", each.name}};
    if (!each.error.empty()) {
      one["error"] = each.error;
    } else {
      one.update({{"size", each.size},
                  {"seconds", each.seconds},
                  {"flops", each.flops},
                  {"bytes_per_second", each.bytes_per_second}});
    }
    classes.push_back(std::move(one));
  }
  return {
      {"device", measured.device},
      {"declared", rates(measured.declared)},
      {"measured", rates(rates_of(measured))},
      {"classes", classes},
      {"launch_seconds", measured.launch_seconds},
      {"to_device",
       {{"seconds", measured.to_device_seconds}, {"bytes_per_second", measured.to_device_rate}}},
      {"from_device",
       {{"seconds", measured.from_device_seconds},
        {"bytes_per_second", measured.from_device_rate}}}};
}

}  // namespace tenon::conformance
