// Twenty programs on a device on which every call that can fail is made to fail.
//
// Each call of each kind fails once, by its number, until no call is left; then faults and delays
// are drawn at random; then the device's process (a child of this one, named … chip) is killed at
// random times. Every run ends with the planned error, or with the right result; afterwards the
// same client, or, if the device was lost, a new one, runs the program correctly. The layer
// `validate`, inside, checks the rules.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "conformance/generate/generator.h"
#include "conformance/generate/programs.h"
#include "conformance/suites/command_line.h"
#include "conformance/suites/devices.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/layers.h"
#include "core/base/random.h"
#include "core/runtime/client.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

using backend::FaultKind;
using backend::FaultPlan;
using std::chrono::steady_clock;
using Literals = std::vector<Literal>;

constexpr FaultKind kKinds[] = {FaultKind::kOpen, FaultKind::kCompile,  FaultKind::kPlan,
                                FaultKind::kLoad, FaultKind::kAllocate, FaultKind::kImport,
                                FaultKind::kCopy, FaultKind::kLaunch,   FaultKind::kRecord,
                                FaultKind::kWait, FaultKind::kEvent,    FaultKind::kLost};

struct Options {
  std::string device = "interp";
  int64_t programs = 20;
  int64_t schedules = 100;
  int64_t kills = 0;
  int64_t seed = 1;
};

struct Case {
  std::string name;
  std::unique_ptr<hlo::Module> module;
  Literals arguments;
  hlo::Compilation compilation;
  Literals expected;
};

/// Ends with an error that states where it occurred.
[[noreturn]] void fail(const std::string& where, const std::string& what) {
  fmt::print("FAIL {}: {}\n", where, what);
  std::exit(1);
}

// `steps`, if not null, receives the counts of steps.
Result<Literals> run(const std::shared_ptr<runtime::Client>& client, const Case& c,
                     bool compile_again, program::StepCounts* steps = nullptr) {
  const auto& device = client->devices()[0];
  hlo::CompileOptions options;
  options.strict = true;
  hlo::Compilation compilation = c.compilation;
  if (compile_again) {
    TENON_ASSIGN(compilation,
                 hlo::compile(*c.module, client->backend(), device->info().target, options));
  }
  TENON_ASSIGN(const auto executable,
               runtime::Executable::load(device, std::move(compilation.compiled), {}));
  std::vector<runtime::BufferPtr> buffers;
  for (const Literal& argument : c.arguments) {
    runtime::HostArray array;
    array.data = argument.data().data();
    array.shape = argument.shape();
    // The case outlives them. Every other array is imported if the device accepts it.
    if (buffers.size() % 2 == 0) array.lifetime = runtime::HostLifetime::kUntilDeleted;
    TENON_ASSIGN(const auto made,
                 runtime::buffer_from_host(device, runtime::MemoryKind::kDevice, array));
    buffers.push_back(made.buffer);
  }
  TENON_ASSIGN(const runtime::Execution execution, executable->execute(buffers));
  Literals results;
  for (const runtime::BufferPtr& buffer : execution.results) {
    TENON_ASSIGN(results.emplace_back(), buffer->to_literal());
  }
  TENON_TRY(execution.done.await());
  if (steps != nullptr) *steps = *execution.steps;
  return results;
}

Result<Literals> run_anew(const std::shared_ptr<backend::Backend>& backend, const Case& c,
                          bool compile_again, std::shared_ptr<runtime::Client>* opened = nullptr,
                          program::StepCounts* steps = nullptr) {
  runtime::ClientOptions options;
  options.devices = {0};
  TENON_ASSIGN(const auto client, runtime::Client::open(backend, options));
  if (opened != nullptr) *opened = client;
  return run(client, c, compile_again, steps);
}

class Faults {
 public:
  Faults(const Options& options, std::shared_ptr<backend::Backend> backend)
      : options_(options), backend_(std::move(backend)) {}

  void prepare() {
    const auto& programs = small_programs();
    for (size_t i = 0; i < std::min(programs.size(), static_cast<size_t>(options_.programs)); ++i) {
      Case c = prepared(std::string(programs[i].name), programs[i].text, i + 1);
      program::StepCounts steps;
      auto expected = run_anew(backend_, c, false, nullptr, &steps);
      if (!expected) fail(c.name, expected.error().to_string());
      if (programs[i].computes && steps.on_device() == 0) {
        fail(c.name, "the device ran nothing of it");
      }
      c.expected = *std::move(expected);
      cases_.push_back(std::move(c));
    }
  }

  // The 1st, the 2nd, … call of each kind.
  void one_by_one() {
    for (const FaultKind kind : kKinds) {
      int64_t right = 0;
      int64_t errors = 0;
      for (const Case& c : cases_) {
        for (int64_t n = 1;; ++n) {
          FaultPlan plan;
          plan.nth[static_cast<size_t>(kind)] = n;
          const auto outcome =
              planned_run(fmt::format("{}, {}@{}", c.name, name_of(kind), n), c, plan,
                          kind == FaultKind::kCompile || kind == FaultKind::kPlan);
          if (!outcome) break;
          ++(*outcome ? right : errors);
        }
      }
      fmt::print("PASS {}, the n-th {} fails: {} runs right, {} with the error, all right after\n",
                 options_.device, name_of(kind), right, errors);
    }
  }

  void at_random() {
    if (options_.schedules == 0) return;
    int64_t right = 0;
    int64_t errors = 0;
    int64_t only_delays = 0;
    for (int64_t i = 0; i < options_.schedules; ++i) {
      const uint64_t seed = static_cast<uint64_t>(options_.seed + i);
      Random random(seed);
      FaultPlan plan;
      plan.seed = seed;
      plan.one_in[static_cast<size_t>(FaultKind::kDelay)] = 8;
      const bool delays = i % 4 == 0;
      for (const FaultKind kind : kKinds) {
        const bool drawn = random.one_in(2);
        const int64_t one_in = random.between(2, 60);
        if (!delays && drawn) plan.one_in[static_cast<size_t>(kind)] = one_in;
      }
      const Case& c =
          cases_[static_cast<size_t>(random.below(static_cast<int64_t>(cases_.size())))];
      const std::string where = fmt::format("{}, --seed={} --schedules=1", c.name, seed);
      const auto layer = make_faults_layer(backend::make_validate_layer(backend_), plan);
      const bool right_now = check(where, c, run_anew(layer.backend, c, seed % 16 == 1));
      if (delays && !right_now) fail(where, "delays alone made it fail");
      only_delays += delays ? 1 : 0;
      ++(right_now ? right : errors);
      const auto after = run_anew(backend_, c, false);
      if (!after) fail(where, "afterwards: " + after.error().to_string());
    }
    fmt::print(
        "PASS {}, {} random schedules ({} of delays alone): {} runs right, {} with an error\n",
        options_.device, options_.schedules, only_delays, right, errors);
  }

  // Endless loops, run by the device and by the host: the time limit ends them.
  void endless() {
    constexpr std::string_view kLoop = R"(func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{
  %0 = stablehlo.while(%a = %x) : tensor<{0}xf32>
  cond {{
    %1 = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %1 = stablehlo.add %a, %a : tensor<{0}xf32>
    stablehlo.return %1 : tensor<{0}xf32>
  }}
  return %0 : tensor<{0}xf32>
}})";
    for (const int64_t size : {4, 100'000}) {
      const Case c = prepared(fmt::format("a loop over {}", size), fmt::format(kLoop, size), 1);
      runtime::ClientOptions options;
      options.devices = {0};
      options.limits.time_limit = 200'000'000;
      auto client = runtime::Client::open(backend_, options);
      if (!client) fail(c.name, client.error().to_string());
      const auto result = run(*client, c, false);
      if (result || result.error().code() != ErrorCode::kUnavailable) {
        fail(c.name, result ? "it ended" : result.error().to_string());
      }
      const auto after = run_anew(backend_, cases_[0], false);  // The first client stays.
      if (!after) fail(c.name, "a new client: " + after.error().to_string());
      if (*after != cases_[0].expected) fail(c.name, "a new client: a wrong result");
    }
    fmt::print("PASS {}, loops without an end stop at the time limit\n", options_.device);
  }

  void killed() {
    if (options_.kills == 0) return;
    int64_t right = 0;
    int64_t errors = 0;
    double slowest = 0;
    for (int64_t i = 0; i < options_.kills; ++i) {
      Random random(static_cast<uint64_t>(options_.seed + i));
      const Case& c = cases_[static_cast<size_t>(i) % cases_.size()];
      std::shared_ptr<runtime::Client> client;
      const auto started = steady_clock::now();
      static_cast<void>(run_anew(backend_, c, false));
      const std::chrono::duration<double, std::micro> whole = steady_clock::now() - started;
      const int64_t microseconds = random.below(static_cast<int64_t>(whole.count()));
      std::thread killer([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        kill_chips();
      });
      const Result<Literals> result = run_anew(backend_, c, false, &client);
      killer.join();
      const std::string where = fmt::format("{}, killed after {} us", c.name, microseconds);
      if (result && *result != c.expected) fail(where, "a wrong result");
      if (!result && result.error().code() != ErrorCode::kUnavailable) {
        fail(where, result.error().to_string());
      }
      ++(result ? right : errors);
      kill_chips();  // It may not have been running before.
      // A client that was told of the loss may stay; one that was not still has the device open.
      if (result) client = nullptr;
      const auto begin = steady_clock::now();
      const auto again = run_anew(backend_, c, false);
      slowest =
          std::max(slowest, std::chrono::duration<double>(steady_clock::now() - begin).count());
      if (!again) fail(where, "a new client: " + again.error().to_string());
      if (*again != c.expected) fail(where, "a new client: a wrong result");
    }
    fmt::print(
        "PASS {}, killed at {} random moments: {} runs right, {} with an error; a new client ran "
        "within {:.2f} s\n",
        options_.device, options_.kills, right, errors, slowest);
  }

 private:
  Case prepared(std::string name, std::string_view text, uint64_t seed) {
    Case c;
    c.name = std::move(name);
    auto module = hlo::import_module(text, c.name + ".mlir");
    if (!module) fail(c.name, module.error().to_string());
    c.module = *std::move(module);
    c.arguments = generate_arguments(*c.module, seed);
    const auto devices = backend_->devices();
    if (!devices) fail(c.name, devices.error().to_string());
    hlo::CompileOptions strict;
    strict.strict = true;
    // Within the layer, which declines segments, so that more calls can fail.
    auto compilation = hlo::compile(*c.module, *backend::make_validate_layer(backend_),
                                    devices->front().target, strict);
    if (!compilation) fail(c.name, compilation.error().to_string());
    c.compilation = *std::move(compilation);
    return c;
  }

  // Whether it ran correctly although a call failed; nothing if no call failed.
  std::optional<bool> planned_run(const std::string& where, const Case& c, const FaultPlan& plan,
                                  bool compile_again) {
    const auto layer = make_faults_layer(backend::make_validate_layer(backend_), plan);
    std::shared_ptr<runtime::Client> client;
    const bool right = check(where, c, run_anew(layer.backend, c, compile_again, &client));
    int64_t faults = 0;
    for (const FaultKind kind : kKinds) faults += layer.counts->faults(kind);
    if (faults == 0) {
      if (!right) fail(where, "it failed without a fault");
      return {};
    }
    // The fault is over, unless it is the loss, which the client may not have noticed yet.
    const bool anew = client == nullptr || !client->devices()[0]->lost().ok() ||
                      layer.counts->faults(FaultKind::kLost) > 0;
    // A client that was told of the loss may stay; one that was not still has the device open.
    if (anew && right) client = nullptr;
    const auto after =
        anew ? run_anew(layer.backend, c, compile_again) : run(client, c, compile_again);
    if (!after) fail(where, "afterwards: " + after.error().to_string());
    if (*after != c.expected) fail(where, "afterwards: a wrong result");
    return right;
  }

  static bool check(const std::string& where, const Case& c, const Result<Literals>& result) {
    if (result && *result != c.expected) fail(where, "a wrong result");
    if (!result && result.error().message().find("a planned fault") == std::string::npos) {
      fail(where, result.error().to_string());
    }
    return result.has_value();
  }

  // The children of this process that are named chip.
  static void kill_chips() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "stat");
      int64_t pid = 0;
      int64_t parent = 0;
      std::string name;
      char state = 0;
      if (!(file >> pid >> name >> state >> parent)) continue;
      if (parent == getpid() && name.ends_with("chip)")) kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }

  const Options options_;
  const std::shared_ptr<backend::Backend> backend_;
  std::vector<Case> cases_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Twenty programs on a device on which everything fails that can fail.");
  app.add_option("--device", options.device, "name of a device or path of a plug-in")
      ->capture_default_str();
  app.add_option("--programs", options.programs, "of the twenty")
      ->check(CLI::Range(1, 20))
      ->capture_default_str();
  app.add_option("--schedules", options.schedules, "of faults and delays at random")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--kills", options.kills, "of the device's process")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of what is random")->capture_default_str();
  if (const auto status = parse(app, argc, argv)) return *status;
  auto backend = backend_named(options.device);
  if (!backend) {
    fmt::print("FAIL {}: {}\n", options.device, backend.error().to_string());
    return 1;
  }
  Faults faults(options, *backend);
  faults.prepare();
  faults.one_by_one();
  faults.at_random();
  faults.endless();
  faults.killed();
  return 0;
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  return tenon::conformance::guarded([&] { return tenon::conformance::run(argc, argv); });
}
