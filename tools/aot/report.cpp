#include "tools/aot/report.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/types/literal.h"
#include "tools/aot/tenon_aot.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/run/run_times.h"

namespace tenon::tools {
namespace {

std::string grouped(int64_t bytes) {
  std::string text = std::to_string(bytes);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

// The rows with the most bytes first, and a row for the rest.
void print_largest(std::string_view what, std::vector<std::pair<int64_t, std::string>> rows) {
  constexpr size_t kMost = 8;
  std::ranges::stable_sort(rows, std::greater(), &std::pair<int64_t, std::string>::first);
  if (rows.empty()) return;
  fmt::print("\n{}\n", what);
  for (size_t i = 0; i < std::min(rows.size(), kMost); ++i) {
    fmt::print("{:>14}  {}\n", grouped(rows[i].first), rows[i].second);
  }
  if (rows.size() <= kMost) return;
  int64_t rest = 0;
  for (size_t i = kMost; i < rows.size(); ++i) rest += rows[i].first;
  fmt::print("{:>14}  in {} more\n", grouped(rest), rows.size() - kMost);
}

// Memory of a multiple of the alignment.
class AlignedMemory {
 public:
  explicit AlignedMemory(int64_t bytes)
      : data_(::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kAlignment)) {}
  AlignedMemory(AlignedMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  AlignedMemory& operator=(AlignedMemory&&) = delete;
  ~AlignedMemory() { ::operator delete(data_, kAlignment); }
  void* data() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{cpu::kAotAlignment};
  void* data_;
};

AotTimes time_function(const tenon_aot_function& function, const AotSignature& signature,
                       const tenon_aot_context& context) {
  constexpr double kMostSeconds = 1;
  constexpr size_t kMostRuns = 10'000;
  std::vector<AlignedMemory> memory;
  std::vector<void*> arrays;
  const auto add = [&](const AotArray& array) {
    memory.emplace_back(array.shape.byte_size());
    arrays.push_back(memory.back().data());
  };
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    add(signature.arguments[i]);
    const Literal literal = random_literal(signature.arguments[i].shape, i);
    std::ranges::copy(literal.data(), static_cast<std::byte*>(arrays.back()));
  }
  for (const AotArray& each : signature.results) add(each);
  const AlignedMemory arena(signature.arena_bytes);
  std::vector<double> seconds;
  double all = 0;
  while (seconds.size() < 2 || (all < kMostSeconds && seconds.size() < kMostRuns)) {
    const auto begin = std::chrono::steady_clock::now();
    function.run(arrays.data(), arena.data(), &context);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    seconds.push_back(taken.count());
    all += taken.count();
  }
  std::ranges::sort(seconds);
  AotTimes times;
  times.executions = std::ssize(seconds);
  times.median = seconds[seconds.size() / 2];
  times.least = seconds[0];
  return times;
}

}  // namespace

int64_t AotReport::code_bytes() const {
  int64_t bytes = 0;
  for (const cpu::AotSymbol& each : symbols) bytes += each.is_code ? each.bytes : 0;
  return bytes;
}

int64_t AotReport::embedded_bytes() const {
  int64_t bytes = 0;
  for (const cpu::AotConstant& each : model.constants) bytes += each.offset < 0 ? each.bytes : 0;
  return bytes;
}

void print_report(const AotReport& report) {
  const AotProject& project = report.project;
  const auto functions = std::ranges::count_if(report.symbols, &cpu::AotSymbol::is_code);
  fmt::print("{} for {}\n", project.name, project.target);
  if (report.gpu) {
    for (const gpu::AheadImage& each : report.gpu->images) {
      fmt::print("{:>14}  {}, {}\n", grouped(std::ssize(each.bytes)), each.kind,
                 counted(project.kernels, "kernel"));
    }
  } else {
    fmt::print("{:>14}  object\n", grouped(std::ssize(report.model.object)));
    fmt::print("{:>14}  code, {}\n", grouped(report.code_bytes()), counted(functions, "function"));
  }
  fmt::print("{:>14}  constants in the {}\n", grouped(report.embedded_bytes()),
             report.gpu ? "library" : "object");
  if (project.weights_bytes > 0) {
    fmt::print("{:>14}  weights in {}\n", grouped(project.weights_bytes), project.weights_file());
  }
  for (const AotSignature& each : project.functions) {
    fmt::print("{:>14}  arena of {}\n", grouped(each.arena_bytes), each.symbol);
  }
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const cpu::AotSymbol& each : report.symbols) {
    if (each.is_code) rows.emplace_back(each.bytes, each.name);
  }
  print_largest("functions", std::move(rows));
  rows.clear();
  for (const cpu::AotConstant& each : report.model.constants) {
    rows.emplace_back(each.bytes, fmt::format("{} {}", each.name, each.shape.to_string()));
  }
  print_largest("constants", std::move(rows));
  fmt::print("\n");
  for (const std::string& each : report.files) fmt::print("wrote {}\n", each);
  for (size_t i = 0; i < report.times.size(); ++i) {
    const AotTimes& times = report.times[i];
    fmt::print("{}: {}, median {:.3g} us, least {:.3g} us\n", project.functions[i].symbol,
               counted(times.executions, "execution"), times.median * 1e6, times.least * 1e6);
  }
}

namespace {

// The parts that a model for a GPU has in place of code and symbols.
void add_gpu(const gpu::AheadModel& model, nlohmann::json& document) {
  document["images"] = nlohmann::json::array();
  document["kernels"] = nlohmann::json::array();
  for (const gpu::AheadImage& each : model.images) {
    document["images"].push_back({{"kind", each.kind}, {"bytes", each.bytes.size()}});
  }
  for (const gpu::GpuKernelCode& each : model.kernels) {
    document["kernels"].push_back(
        {{"name", each.symbol}, {"blocks", each.blocks}, {"threads", each.threads}});
  }
}

}  // namespace

nlohmann::json json_of(const AotReport& report) {
  nlohmann::json document = {{"name", report.project.name},
                             {"target", report.project.target},
                             {"hash", report.project.hash},
                             {"object_bytes", report.model.object.size()},
                             {"code_bytes", report.code_bytes()},
                             {"constant_bytes", report.embedded_bytes()},
                             {"weights_bytes", report.project.weights_bytes},
                             {"files", report.files},
                             {"functions", nlohmann::json::array()},
                             {"symbols", nlohmann::json::array()},
                             {"constants", nlohmann::json::array()}};
  for (size_t i = 0; i < report.project.functions.size(); ++i) {
    const AotSignature& each = report.project.functions[i];
    nlohmann::json row = {{"name", each.name},
                          {"symbol", each.symbol},
                          {"arena_bytes", each.arena_bytes},
                          {"temporary_bytes", report.model.entries[i].temporary_bytes}};
    if (report.gpu) row["waits"] = each.waits;
    if (i < report.times.size()) {
      const AotTimes& times = report.times[i];
      row["times"] = {
          {"executions", times.executions}, {"median", times.median}, {"least", times.least}};
    }
    document["functions"].push_back(std::move(row));
  }
  for (const cpu::AotSymbol& each : report.symbols) {
    document["symbols"].push_back({{"name", each.name},
                                   {"section", each.section},
                                   {"bytes", each.bytes},
                                   {"code", each.is_code}});
  }
  for (const cpu::AotConstant& each : report.model.constants) {
    document["constants"].push_back({{"name", each.name},
                                     {"shape", each.shape.to_string()},
                                     {"bytes", each.bytes},
                                     {"in_file", each.offset >= 0}});
  }
  if (report.gpu) add_gpu(*report.gpu, document);
  return document;
}

Result<std::vector<AotTimes>> time_ahead(const AotReport& report) {
  TENON_ASSIGN(const auto loaded, cpu::load_ahead(report.model));
  const auto* const model =
      static_cast<const tenon_aot_model*>(loaded->address(report.project.name + "_model"));
  if (model == nullptr || model->function_count != std::ssize(report.project.functions)) {
    return internal_error("the object has no descriptor");
  }
  const AlignedMemory weights(std::ssize(report.model.weights));
  std::ranges::copy(report.model.weights, static_cast<char*>(weights.data()));
  tenon_aot_context context = {};
  context.weights = weights.data();
  std::vector<AotTimes> times;
  for (size_t i = 0; i < report.project.functions.size(); ++i) {
    times.push_back(time_function(model->functions[i], report.project.functions[i], context));
  }
  return times;
}

}  // namespace tenon::tools
