// bench/peers/: benchmarks beside XLA, PyTorch, OpenBLAS and oneDNN.
//
// Times the contractions of contractions.txt on Tenon's CPU backend, OpenBLAS and oneDNN, in turn
// in one process, and prints medians and the ratio of the best library's time to Tenon's.
//
// OpenBLAS is called through sgemm (sgemv for vectors), oneDNN through a matmul primitive made in
// advance. Tenon is called in two ways: through the backend's interface (`tenon`: launch, record,
// await; like the libraries into existing memory), and through the runtime (`execute`: a new array
// for each product).
#include <cblas.h>
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "backends/cpu/cpu.h"
#include "core/runtime/client.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

// The function of the OpenMP library that oneDNN uses; Clang does not find GCC's <omp.h>.
extern "C" void omp_set_num_threads(int threads);

namespace {

namespace backend = tenon::backend;
namespace runtime = tenon::runtime;
using tenon::Result;
using tenon::Status;

struct ContractionShape {
  int64_t m = 0, n = 0, k = 0;
  bool lhs_transposed = false;
  bool rhs_transposed = false;
  int64_t batch = 1;
  std::string name;
};

struct Arrays {
  std::vector<float> a, b, c;
};

using Function = std::function<void()>;

// --- Peers

Function openblas(const ContractionShape& s, Arrays& x) {
  return [&s, &x] {
    for (int64_t i = 0; i < s.batch; ++i) {
      const float* a = x.a.data() + i * s.m * s.k;
      const float* b = x.b.data() + i * s.k * s.n;
      float* c = x.c.data() + i * s.m * s.n;
      const auto at = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
      const auto m = static_cast<blasint>(s.m);
      const auto n = static_cast<blasint>(s.n);
      const auto k = static_cast<blasint>(s.k);
      if (n == 1 && !s.lhs_transposed) {
        cblas_sgemv(CblasRowMajor, CblasNoTrans, m, k, 1, a, k, b, 1, 0, c, 1);
      } else if (m == 1 && !s.rhs_transposed) {
        cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, b, n, a, 1, 0, c, 1);
      } else {
        cblas_sgemm(CblasRowMajor, at(s.lhs_transposed), at(s.rhs_transposed), m, n, k, 1, a,
                    s.lhs_transposed ? m : k, b, s.rhs_transposed ? k : n, 0, c, n);
      }
    }
  };
}

Function onednn(const ContractionShape& s, Arrays& x) {
  using dnnl::memory;
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  const auto described = [&](int64_t rows, int64_t columns, bool transposed) {
    const memory::dims strides = transposed ? memory::dims{rows * columns, 1, rows}
                                            : memory::dims{rows * columns, columns, 1};
    return memory::desc({s.batch, rows, columns}, memory::data_type::f32, strides);
  };
  const memory::desc a = described(s.m, s.k, s.lhs_transposed);
  const memory::desc b = described(s.k, s.n, s.rhs_transposed);
  const memory::desc c = described(s.m, s.n, false);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul matmul(dnnl::matmul::primitive_desc(engine, a, b, c));
#else
  const dnnl::matmul matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine));
#endif
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(a, engine, x.a.data())},
      {DNNL_ARG_WEIGHTS, memory(b, engine, x.b.data())},
      {DNNL_ARG_DST, memory(c, engine, x.c.data())}};
  return [matmul, arguments] {
    matmul.execute(stream, arguments);
    stream.wait();
  };
}

std::string text_of(const ContractionShape& s) {
  const auto type = [&](int64_t rows, int64_t columns, bool transposed) {
    if (transposed) std::swap(rows, columns);
    return fmt::format("tensor<{}x{}x{}xf32>", s.batch, rows, columns);
  };
  const std::string a = type(s.m, s.k, s.lhs_transposed);
  const std::string b = type(s.k, s.n, s.rhs_transposed);
  const std::string c = type(s.m, s.n, false);
  return fmt::format(
      "func.func @main(%a: {0}, %b: {1}) -> {2} {{\n  %c = stablehlo.dot_general %a, %b, "
      "batching_dims = [0] x [0], contracting_dims = [{3}] x [{4}] : ({0}, {1}) -> {2}\n  return "
      "%c : {2}\n}}\n",
      a, b, c, s.lhs_transposed ? 1 : 2, s.rhs_transposed ? 2 : 1);
}

// Prints an error of Tenon and ends the program.
[[noreturn]] void fail(const std::string& text) {
  fmt::print(stderr, "contractions: {}\n", text);
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result) fail(result.error().to_string());
  return *std::move(result);
}
void must(const Status& status) {
  if (!status.ok()) fail(status.to_string());
}

runtime::CompiledProgram compiled(const ContractionShape& s, backend::Backend& backend,
                                  const backend::TargetInfo& target) {
  const auto module = must(tenon::hlo::import_module(text_of(s), s.name));
  return must(tenon::hlo::compile(*module, backend, target)).compiled;
}

// The backend's own interface, as a runtime calls it: a launch into existing memory, an event after
// it, and a wait for the event.
class OnDevice {
 public:
  OnDevice() : backend_(backend::make_cpu_backend(1)) {
    target_ = must(backend_->devices())[0].target;
    device_ = must(backend_->open(0));
  }

  Function prepare(const ContractionShape& s, const Arrays& x) {
    const auto made = compiled(s, *backend_, target_);
    if (made.segments.size() != 1) {
      fail(fmt::format("{}: {} segments", s.name, made.segments.size()));
    }
    const auto module = must(device_->load(made.segments[0].binary, {}));
    std::vector<Place> places;
    for (const std::vector<float>* each : {&x.a, &x.b, &x.c}) {
      const auto bytes = static_cast<int64_t>(each->size() * sizeof(float));
      places.push_back({must(device_->allocate(0, bytes)), 0, nullptr});
      copy(places.back(), Place::of_host(bytes_of(const_cast<std::vector<float>&>(*each))), bytes);
    }
    result_ = places.back();
    if (made.program.temporary_bytes > 0) {
      places.push_back({must(device_->allocate(0, made.program.temporary_bytes)), 0, nullptr});
    }
    return [this, module, places] {
      backend::KernelLaunch launch;
      launch.module = module;
      launch.buffers = places;
      must(device_->launch(0, launch));
      finish();
    };
  }

  // Copies the result of the last prepared product.
  void copy_result(std::vector<float>& to) {
    copy(Place::of_host(bytes_of(to)), result_, static_cast<int64_t>(to.size() * sizeof(float)));
  }

 private:
  using Place = backend::MemoryAddress;
  static std::byte* bytes_of(std::vector<float>& numbers) {
    return reinterpret_cast<std::byte*>(numbers.data());
  }
  void copy(const Place& to, const Place& from, int64_t bytes) {
    must(device_->copy(0, to, from, bytes));
    finish();
  }
  void finish() {
    const backend::EventHandle done = must(device_->record(0));
    must(device_->await(done, -1));
    device_->release(done);
  }

  const std::unique_ptr<backend::Backend> backend_;
  backend::TargetInfo target_;
  std::unique_ptr<backend::Device> device_;
  Place result_;
};

// Tenon's runtime, as a framework calls it: arguments read in place, a new array for each product,
// and a wait for it.
class OnRuntime {
 public:
  OnRuntime() : client_(must(runtime::Client::open(backend::make_cpu_backend(1)))) {}

  Function prepare(const ContractionShape& s, const Arrays& x) {
    const auto& device = client_->devices()[0];
    const auto executable = must(runtime::Executable::load(
        device, compiled(s, client_->backend(), device->info().target), runtime::CustomCalls()));
    std::vector<runtime::BufferPtr> arguments;
    for (const std::vector<float>* each : {&x.a, &x.b}) {
      runtime::HostArray array;
      array.data = reinterpret_cast<const std::byte*>(each->data());
      array.shape = executable->parameters()[arguments.size()];
      array.lifetime = runtime::HostLifetime::kUntilDeleted;
      arguments.push_back(
          must(buffer_from_host(device, runtime::MemoryKind::kDevice, array)).buffer);
    }
    return [this, executable, arguments] {
      last_ = must(executable->execute(arguments)).results[0];
      must(last_->host_data());  // Waits.
    };
  }

  void copy_result(std::vector<float>& to) {
    const auto* const data = reinterpret_cast<const float*>(must(last_->host_data()));
    std::copy_n(data, to.size(), to.begin());
  }

 private:
  const std::shared_ptr<runtime::Client> client_;
  runtime::BufferPtr last_;
};

struct Tenon {
  OnDevice device;
  OnRuntime runtime;
};

// --- Measuring

double seconds_of(const Function& function, int64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(count);
}

double median(std::vector<double> list) {
  std::ranges::sort(list);
  return list[list.size() / 2];
}

struct ContractionOptions {
  std::string list = TENON_CONTRACTIONS;
  int threads = 1;
  int rounds = 5;
  double seconds = 0.03;
  std::string only;
  std::string json;
};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

std::vector<ContractionShape> read_shapes(const ContractionOptions& options) {
  std::vector<ContractionShape> shapes;
  std::ifstream file(options.list);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    ContractionShape s;
    s.name = line;
    std::istringstream words(line);
    words >> s.m >> s.n >> s.k;
    for (std::string word; words >> word;) {
      s.lhs_transposed |= word == "tn";
      s.rhs_transposed |= word == "nt";
      if (word[0] == 'x') s.batch = std::stoll(word.substr(1));
    }
    if (line.find(options.only) != std::string::npos) shapes.push_back(s);
  }
  return shapes;
}

Arrays arrays_of(const ContractionShape& s) {
  Arrays x;
  std::mt19937 random(1);
  std::normal_distribution<float> numbers;
  x.a.resize(static_cast<size_t>(s.batch * s.m * s.k));
  x.b.resize(static_cast<size_t>(s.batch * s.k * s.n));
  x.c.resize(static_cast<size_t>(s.batch * s.m * s.n));
  for (float& each : x.a) each = numbers(random);
  for (float& each : x.b) each = numbers(random);
  return x;
}

// The previous library's threads spin for a while, on the cores that this one may use; this one's
// threads must first be scheduled on cores.
void wake(const Function& function) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
  while (std::chrono::steady_clock::now() < end) function();
}

nlohmann::json measure(const ContractionShape& s, const ContractionOptions& options, Tenon& tenon) {
  Arrays x = arrays_of(s);
  std::map<std::string, Function> peers = {{"openblas", openblas(s, x)},
                                           {"onednn", onednn(s, x)},
                                           {"tenon", tenon.device.prepare(s, x)},
                                           {"execute", tenon.runtime.prepare(s, x)}};
  peers["openblas"]();
  const std::vector<float> expected = x.c;
  std::map<std::string, std::vector<double>> rounds;
  nlohmann::json figure = {{"group", "contractions"}, {"name", s.name}};
  for (const auto& [name, function] : peers) {
    std::ranges::fill(x.c, 0.F);
    function();
    if (name == "tenon") tenon.device.copy_result(x.c);
    if (name == "execute") tenon.runtime.copy_result(x.c);
    if (difference(x.c, expected) > 1e-3 * std::sqrt(static_cast<double>(s.k))) {
      figure["wrong"] = name;
      fmt::print(stderr, "contractions: {}: {} gives another result\n", s.name, name);
    }
  }
  const double once = seconds_of(peers["openblas"], 3);
  const auto count = std::max<int64_t>(1, static_cast<int64_t>(options.seconds / once));
  for (int r = 0; r < options.rounds; ++r) {
    for (const auto& [name, function] : peers) {
      if (options.threads > 1) wake(function);
      rounds[name].push_back(seconds_of(function, count));
    }
  }
  for (const auto& [name, seconds] : rounds) figure[name] = median(seconds);
  // The spread of the rounds, relative to the median.
  const auto [least, most] = std::ranges::minmax(rounds["tenon"]);
  figure["spread"] = (most - least) / median(rounds["tenon"]);
  return figure;
}

}  // namespace

int main(int argc, char** argv) {
  ContractionOptions options;
  CLI::App app("Times contractions on Tenon's CPU backend, OpenBLAS and oneDNN.");
  app.add_option("--list", options.list, "file of shapes")->check(CLI::ExistingFile);
  app.add_option("--threads", options.threads, "cores that each may use");
  app.add_option("--rounds", options.rounds, "times that each is measured");
  app.add_option("--seconds", options.seconds, "of a measurement");
  app.add_option("--only", options.only, "shapes whose line contains this");
  app.add_option("--json", options.json, "also write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int i = 0; i < options.threads; ++i) CPU_SET(i, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  openblas_set_num_threads(options.threads);
  omp_set_num_threads(options.threads);
  Tenon tenon;
  nlohmann::json figures = nlohmann::json::array();
  double logarithms = 0;
  fmt::print("{:24} {:>10} {:>10} {:>10} {:>10} {:>9}  {}\n", "shape", "Tenon", "execute",
             "OpenBLAS", "oneDNN", "GFLOP/s", "best / Tenon");
  for (const ContractionShape& s : read_shapes(options)) {
    const nlohmann::json figure = measure(s, options, tenon);
    const double mine = figure["tenon"];
    const double best = std::min(figure["openblas"].get<double>(), figure["onednn"].get<double>());
    logarithms += std::log(best / mine);
    fmt::print("{:24} {:8.2f}us {:8.2f}us {:8.2f}us {:8.2f}us {:9.1f}  {:.2f}\n", s.name,
               mine * 1e6, figure["execute"].get<double>() * 1e6,
               figure["openblas"].get<double>() * 1e6, figure["onednn"].get<double>() * 1e6,
               2e-9 * static_cast<double>(s.batch * s.m * s.n * s.k) / mine, best / mine);
    std::fflush(stdout);
    figures.push_back(figure);
  }
  fmt::print("{:24} {:>63.2f}\n", fmt::format("geometric mean of {}", figures.size()),
             std::exp(logarithms / static_cast<double>(std::max<size_t>(figures.size(), 1))));
  if (!options.json.empty()) std::ofstream(options.json) << figures.dump(1) << "\n";
  return 0;
}
