// A libcuda.so.1 that runs the images of `tenon aot --cpu simulator` on the simulated GPU: the
// functions of the driver that models and their tests call.
//
// TENON_TEST_CUDA_LOG: a file that gets the name of each function that is called, a line each.
// TENON_TEST_CUDA_EMPTY: graphs do nothing.
// TENON_TEST_CUDA_FAIL: "cuMemAlloc_v2=2": what a function returns instead of doing its work.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/simulator/driver.h"
#include "backends/gpu/simulator/image.h"

namespace {

using tenon::ErrorCode;
using tenon::Status;
using tenon::gpu::Address;
using tenon::gpu::Context;
using tenon::gpu::Stream;

// Some of CUresult.
enum Outcome : int {
  kDone = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
};

int outcome_of(const Status& status) {
  if (status.ok()) return kDone;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  switch (status.code()) {
    case ErrorCode::kInvalidArgument:
      return kInvalidHandle;
    case ErrorCode::kResourceExhausted:
      return kOutOfMemory;
    case ErrorCode::kNotFound:
      return kNotFound;
    default:
      return kLaunchFailed;
  }
}

struct SimulatedFunction {
  tenon::gpu::Function function = 0;
  size_t parameters = 0;
};
struct SimulatedModule {
  tenon::gpu::Module module = 0;
  tenon::gpu::SimImage image;
  std::map<std::string, SimulatedFunction> functions;
};

struct SimulatedLaunch {
  tenon::gpu::Function function = 0;
  tenon::gpu::LaunchShape shape;
  std::vector<uint64_t> values;
};
using SimulatedGraph = std::vector<SimulatedLaunch>;

// Never freed: the threads of its streams outlive static objects.
struct SimulatedDriver {
  std::mutex mutex;
  bool started = false;
  std::unique_ptr<tenon::gpu::Driver> driver;
  std::unique_ptr<Context> context;
  int users = 0;
  std::map<void*, Stream> streams;  // The default one is that of null.
  std::set<Address> memories;
  std::map<void*, SimulatedGraph> captures;  // By the stream.
};
SimulatedDriver& driver() {
  static auto* const made = new SimulatedDriver;
  return *made;
}

thread_local bool is_current = false;

// The outcome that the test wants, or kDone.
int begin(const char* name) {
  if (const char* const log = std::getenv("TENON_TEST_CUDA_LOG")) {
    if (FILE* const file = std::fopen(log, "a")) {
      std::fprintf(file, "%s\n", name);
      std::fclose(file);
    }
  }
  const char* const fail = std::getenv("TENON_TEST_CUDA_FAIL");
  const size_t length = std::strlen(name);
  if (fail == nullptr || std::strncmp(fail, name, length) != 0 || fail[length] != '=') return kDone;
  return std::atoi(fail + length + 1);
}

// The same for functions that need a context.
int begin_in_context(const char* name) {
  const int wanted = begin(name);
  if (wanted != kDone) return wanted;
  if (!driver().started) return kNotInitialized;
  return is_current && driver().context != nullptr ? kDone : kInvalidContext;
}

// Does the work with the stream, if there is one.
template <class F>
int on_stream(void* stream, const F& work) {
  const auto found = driver().streams.find(stream);
  if (found == driver().streams.end()) return kInvalidHandle;
  return outcome_of(work(*driver().context, found->second));
}

bool is_capturing(void* stream) { return driver().captures.contains(stream); }

int launch_on(void* stream, const SimulatedLaunch& launch) {
  std::vector<const void*> parameters;
  for (const uint64_t& each : launch.values) parameters.push_back(&each);
  return on_stream(stream, [&](Context& context, Stream on) {
    return context.launch(on, launch.function, launch.shape, parameters, nullptr);
  });
}

Status synchronize(Context& context, Stream stream) {
  TENON_ASSIGN(const tenon::gpu::Event event, context.record(stream));
  Status done = context.synchronize(event);
  context.release(event);
  return done;
}

}  // namespace

#define BEGIN(begin_it)                       \
  const std::lock_guard lock(driver().mutex); \
  if (const int wanted = begin_it(__func__); wanted != kDone) return wanted

extern "C" {

int cuInit(unsigned) {
  BEGIN(begin);
  driver().started = true;
  return kDone;
}

int cuDeviceGet(int* device, int number) {
  BEGIN(begin);
  *device = number;
  return number == 0 ? kDone : kInvalidValue;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  BEGIN(begin);
  SimulatedDriver& it = driver();
  if (!it.started) return kNotInitialized;
  if (it.context == nullptr) {
    it.driver = tenon::gpu::make_sim_driver();
    auto opened = it.driver->open(0);
    if (!opened) return outcome_of(opened.error());
    it.context = *std::move(opened);
    const auto stream = it.context->create_stream();
    if (!stream) return outcome_of(stream.error());
    it.streams[nullptr] = *stream;
  }
  ++it.users;
  *context = it.context.get();
  return kDone;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  BEGIN(begin);
  SimulatedDriver& it = driver();
  if (it.context == nullptr) return kInvalidContext;
  if (--it.users > 0) return kDone;
  it.context = nullptr;
  it.streams.clear();
  it.memories.clear();
  return kDone;
}

int cuCtxSetCurrent(void* context) {
  BEGIN(begin);
  is_current = context != nullptr;
  return kDone;
}

int cuMemAlloc_v2(Address* memory, size_t bytes) {
  BEGIN(begin_in_context);
  if (bytes == 0) return kInvalidValue;
  const auto made = driver().context->allocate(static_cast<int64_t>(bytes));
  if (!made) return outcome_of(made.error());
  // Memory is not zero at first.
  std::memset(reinterpret_cast<void*>(*made), 0xa5, bytes);
  driver().memories.insert(*made);
  *memory = *made;
  return kDone;
}

int cuMemFree_v2(Address memory) {
  BEGIN(begin_in_context);
  if (driver().memories.erase(memory) == 0) return kInvalidValue;
  return outcome_of(driver().context->free(memory));
}

int cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  BEGIN(begin_in_context);
  return on_stream(nullptr, [&](Context& context, Stream stream) -> Status {
    TENON_TRY(context.copy_to_device(stream, to, static_cast<const std::byte*>(from),
                                     static_cast<int64_t>(bytes)));
    return synchronize(context, stream);
  });
}

int cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
  BEGIN(begin_in_context);
  return on_stream(nullptr, [&](Context& context, Stream stream) -> Status {
    TENON_TRY(context.copy_to_host(stream, static_cast<std::byte*>(to), from,
                                   static_cast<int64_t>(bytes)));
    return synchronize(context, stream);
  });
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  BEGIN(begin_in_context);
  if (is_capturing(stream)) return kCaptureUnsupported;
  return on_stream(stream, [&](Context& context, Stream on) {
    return context.copy_to_host(on, static_cast<std::byte*>(to), from, static_cast<int64_t>(bytes));
  });
}

int cuModuleLoadData(void** module, const void* image) {
  BEGIN(begin_in_context);
  constexpr std::string_view kLetters = "TENONSIM";
  const char* const bytes = static_cast<const char*>(image);
  if (std::strncmp(bytes, kLetters.data(), kLetters.size()) != 0) return kNoBinary;
  uint64_t size = 0;
  std::memcpy(&size, bytes + kLetters.size(), sizeof size);
  const std::string_view text(bytes + kLetters.size() + sizeof size, size);
  auto loaded = driver().context->load(text);
  auto read = tenon::gpu::load_sim_image(text);
  if (!loaded || !read) return kInvalidImage;
  *module = new SimulatedModule{*loaded, *std::move(read), {}};
  return kDone;
}

int cuModuleUnload(void* module) {
  BEGIN(begin_in_context);
  const std::unique_ptr<SimulatedModule> taken(static_cast<SimulatedModule*>(module));
  return outcome_of(driver().context->unload(taken->module));
}

int cuModuleGetFunction(void** function, void* module, const char* symbol) {
  BEGIN(begin_in_context);
  auto& in = *static_cast<SimulatedModule*>(module);
  const auto found = driver().context->function(in.module, symbol);
  if (!found) return outcome_of(found.error());
  SimulatedFunction& made = in.functions[symbol];
  made.function = *found;
  for (const tenon::gpu::SimKernel& each : in.image.kernels) {
    if (each.symbol == symbol) made.parameters = each.parameters.size();
  }
  *function = &made;
  return kDone;
}

int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void* stream,
                   void** parameters, void** extra) {
  BEGIN(begin_in_context);
  if (x == 0 || y == 0 || z != 1 || threads == 0 || threads_y != 1 || threads_z != 1 ||
      shared != 0 || extra != nullptr) {
    return kInvalidValue;
  }
  const auto& launched = *static_cast<const SimulatedFunction*>(function);
  SimulatedLaunch launch = {launched.function, {int64_t{x} * y, threads, {}}, {}};
  // Models have a word for each parameter.
  for (size_t i = 0; i < launched.parameters; ++i) {
    std::memcpy(&launch.values.emplace_back(), parameters[i], sizeof(uint64_t));
  }
  if (!is_capturing(stream)) return launch_on(stream, launch);
  driver().captures[stream].push_back(std::move(launch));
  return kDone;
}

int cuStreamCreate(void** stream, unsigned) {
  BEGIN(begin_in_context);
  const auto made = driver().context->create_stream();
  if (!made) return outcome_of(made.error());
  *stream = reinterpret_cast<void*>(*made);
  driver().streams[*stream] = *made;
  return kDone;
}

int cuStreamSynchronize(void* stream) {
  BEGIN(begin_in_context);
  if (is_capturing(stream)) return kCaptureUnsupported;
  return on_stream(stream, synchronize);
}

int cuStreamBeginCapture_v2(void* stream, int) {
  BEGIN(begin_in_context);
  return driver().captures.try_emplace(stream).second ? kDone : kCaptureUnsupported;
}

int cuStreamEndCapture(void* stream, void** graph) {
  BEGIN(begin_in_context);
  if (!is_capturing(stream)) return kInvalidValue;
  *graph = new SimulatedGraph(std::move(driver().captures[stream]));
  driver().captures.erase(stream);
  return kDone;
}

int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  BEGIN(begin_in_context);
  const bool is_empty = std::getenv("TENON_TEST_CUDA_EMPTY") != nullptr;
  *executable = is_empty ? new SimulatedGraph
                         : new SimulatedGraph(*static_cast<const SimulatedGraph*>(graph));
  return kDone;
}

int cuGraphLaunch(void* executable, void* stream) {
  BEGIN(begin_in_context);
  for (const SimulatedLaunch& each : *static_cast<const SimulatedGraph*>(executable)) {
    if (const int error = launch_on(stream, each); error != kDone) return error;
  }
  return kDone;
}

}  // extern "C"
