// tests/gpu/nvrtc/: a CUDA driver and NVRTC for tests, on the host.
//
// For samples/opencl/nvrtc. This file is the driver; compiler.cpp has NVRTC's functions.
//
// It has one GPU, of the architecture TENON_FAKE_SM (90). A module of machine code for the host,
// which compiler.cpp makes, is run: the lanes of a workgroup are coroutines, so that barriers are
// those of a GPU. Machine code for GPUs is loaded, but its launches do nothing. Each module that is
// loaded adds a line to the file TENON_FAKE_LOG: "host" or "gpu".
//
// A stream is a thread: work is done after the call that gives it has returned.
#include <dlfcn.h>
#include <ucontext.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Address = unsigned long long;
using Clock = std::chrono::steady_clock;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoContext = 201, kNotFound = 500,
              kNotReady = 600;
constexpr size_t kMemoryBytes = size_t{1} << 32;

struct Index {
  unsigned x, y, z;
};
struct FakeModule {
  void* library = nullptr;  // Null: code for GPUs.
  Index* lane = nullptr;
  Index* group = nullptr;
};
struct FakeFunction {
  FakeModule* module = nullptr;
  unsigned (*call)(void** arguments) = nullptr;  // Null arguments: says how many there are.
};

thread_local std::vector<void*> contexts;
int is_current() { return contexts.empty() ? kNoContext : 0; }

// --- Streams and events

// It guards all of them, and is never destroyed, as the threads of streams wait until the process
// ends.
std::mutex& mutex = *new std::mutex;
std::condition_variable& changed = *new std::condition_variable;

class FakeStream {
 public:
  FakeStream() {
    std::thread([this] { run(); }).detach();  // Until the process ends.
  }
  int push(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    ++given_;
    work_.push_back(std::move(work));
    changed.notify_all();
    return is_current();
  }
  void finish() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [wanted = given_, this] { return done_ >= wanted; });
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [this] { return !work_.empty(); });
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      next();
      lock.lock();
      ++done_;
      changed.notify_all();
    }
  }

  std::deque<std::function<void()>> work_;
  size_t given_ = 0, done_ = 0;
};

// An event may be recorded again. A wait is for the last record before it.
struct FakeEvent {
  size_t recorded = 0, reached = 0;
  Clock::time_point time;
};

// --- Workgroups

constexpr size_t kStackBytes = 256 << 10;

class Workgroup {
 public:
  void run(const FakeFunction& function, void** arguments, unsigned lanes) {
    running_ = this;
    function_ = &function;
    arguments_ = arguments;
    while (stacks_.size() < lanes) stacks_.emplace_back(kStackBytes);
    contexts_.resize(lanes);
    done_.assign(lanes, false);
    for (unsigned i = 0; i < lanes; ++i) {
      getcontext(&contexts_[i]);
      contexts_[i].uc_stack.ss_sp = stacks_[i].data();
      contexts_[i].uc_stack.ss_size = kStackBytes;
      contexts_[i].uc_link = &main_;
      makecontext(&contexts_[i], lane_body, 0);
    }
    // Each round takes every lane to its next barrier, or its end.
    for (unsigned left = lanes; left > 0;) {
      for (lane_ = 0; lane_ < lanes; ++lane_) {
        if (done_[lane_]) continue;
        function.module->lane->x = lane_;
        swapcontext(&main_, &contexts_[lane_]);
        left -= done_[lane_] ? 1 : 0;
      }
    }
  }
  static void barrier() { swapcontext(&running_->contexts_[running_->lane_], &running_->main_); }

 private:
  static void lane_body() {
    running_->function_->call(running_->arguments_);
    running_->done_[running_->lane_] = true;
  }

  static inline Workgroup* running_ = nullptr;
  const FakeFunction* function_ = nullptr;
  void** arguments_ = nullptr;
  unsigned lane_ = 0;
  ucontext_t main_{};
  std::vector<ucontext_t> contexts_;
  std::vector<std::vector<char>> stacks_;
  std::vector<bool> done_;
};

std::mutex launching;  // Workgroup memory is static, and there is one running workgroup.

// --- Modules

size_t size_of_elf(const char* image) {
  size_t sections = 0;
  unsigned short size = 0, count = 0;
  std::memcpy(&sections, image + 40, sizeof sections);  // The sections' headers are at the end.
  std::memcpy(&size, image + 58, sizeof size);
  std::memcpy(&count, image + 60, sizeof count);
  return sections + size_t{size} * count;
}

void log_line(const std::string& line) {
  const char* const path = std::getenv("TENON_FAKE_LOG");
  FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fputs((line + "\n").c_str(), file);
  std::fclose(file);
}

int load_host_code(FakeModule& module, const char* image) {
  // A name of its own: what is loaded already is found by its name.
  std::string path = "/tmp/tenon_fake_XXXXXX";
  const int file = mkstemp(path.data());
  const size_t size = size_of_elf(image);
  if (write(file, image, size) != static_cast<ssize_t>(size)) return kOutOfMemory;
  close(file);
  module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  if (module.library == nullptr) return kInvalidValue;
  module.lane = static_cast<Index*>(dlsym(module.library, "threadIdx"));
  module.group = static_cast<Index*>(dlsym(module.library, "blockIdx"));
  *static_cast<void (**)()>(dlsym(module.library, "tenon_barrier")) = Workgroup::barrier;
  return 0;
}

template <class T>
void fill(Address to, T value, size_t count, size_t stride) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(reinterpret_cast<char*>(to) + i * stride, &value, sizeof value);
  }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

int cuInit(unsigned) { return 0; }
int cuGetErrorName(int code, const char** name) {
  *name = code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "as the test wants";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = kMemoryBytes;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const char* const set = std::getenv("TENON_FAKE_SM");
  const int capability = set == nullptr ? 90 : std::atoi(set);
  switch (attribute) {
    case 1:  // Threads of a block.
      *value = 1024;
      return 0;
    case 8:  // Shared memory of a block.
      *value = 48 << 10;
      return 0;
    case 16:  // Multiprocessors.
      *value = 7;
      return 0;
    case 75:
      *value = capability / 10;
      return 0;
    case 76:
      *value = capability % 10;
      return 0;
    default:
      return kInvalidValue;
  }
}

int cuCtxCreate_v2(void** context, unsigned, int) {
  *context = contexts.emplace_back(new char);
  return 0;
}
int cuCtxDestroy_v2(void* context) {
  delete static_cast<char*>(context);
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kNoContext;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}

int cuMemAlloc_v2(Address* memory, size_t bytes) {
  if (bytes > kMemoryBytes) return kOutOfMemory;
  *memory = reinterpret_cast<Address>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return is_current();
}
int cuMemFree_v2(Address memory) {
  std::free(reinterpret_cast<void*>(memory));
  return is_current();
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::calloc(1, bytes);
  return is_current();
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, FakeStream* stream) {
  return stream->push([=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}
int cuMemsetD8Async(Address to, unsigned char value, size_t count, FakeStream* stream) {
  return stream->push([=] { fill(to, value, count, 1); });
}
int cuMemsetD16Async(Address to, unsigned short value, size_t count, FakeStream* stream) {
  return stream->push([=] { fill(to, value, count, 2); });
}
int cuMemsetD32Async(Address to, unsigned value, size_t count, FakeStream* stream) {
  return stream->push([=] { fill(to, value, count, 4); });
}
int cuMemsetD2D32Async(Address to, size_t pitch, unsigned value, size_t width, size_t height,
                       FakeStream* stream) {
  if (width != 1) return kInvalidValue;
  return stream->push([=] { fill(to, value, height, pitch); });
}

int cuModuleLoadData(FakeModule** module, const char* image) {
  constexpr unsigned short kGpuMachine = 190;
  unsigned short machine = 0;
  std::memcpy(&machine, image + 18, sizeof machine);
  if (std::memcmp(image, "\177ELF", 4) != 0) return kInvalidValue;
  *module = new FakeModule;
  log_line(machine == kGpuMachine ? "gpu" : "host");
  return machine == kGpuMachine ? is_current() : load_host_code(**module, image);
}
int cuModuleUnload(FakeModule* module) {
  if (module->library != nullptr) dlclose(module->library);
  delete module;
  return is_current();
}
int cuModuleGetFunction(FakeFunction** function, FakeModule* module, const char* name) {
  void* call = nullptr;
  if (module->library != nullptr) {
    call = dlsym(module->library, (std::string("tenon_call_") + name).c_str());
    if (call == nullptr) return kNotFound;
  }
  *function = new FakeFunction{module, reinterpret_cast<unsigned (*)(void**)>(call)};
  return is_current();
}
int cuLaunchKernel(FakeFunction* function, unsigned groups, unsigned, unsigned, unsigned lanes,
                   unsigned, unsigned, unsigned, FakeStream* stream, void** arguments, void**) {
  if (function->call == nullptr) return is_current();
  std::vector<unsigned long long> values;  // Each has eight bytes.
  for (unsigned i = 0; i < function->call(nullptr); ++i) {
    std::memcpy(&values.emplace_back(), arguments[i], sizeof values[i]);
  }
  return stream->push([=, values = std::move(values)]() mutable {
    static Workgroup& workgroup = *new Workgroup;
    std::vector<void*> places;
    for (auto& each : values) places.push_back(&each);
    const std::lock_guard lock(launching);
    for (unsigned i = 0; i < groups; ++i) {
      function->module->group->x = i;
      workgroup.run(*function, places.data(), lanes);
    }
  });
}

int cuStreamCreate(FakeStream** stream, unsigned) {
  *stream = new FakeStream;
  return is_current();
}
int cuStreamWaitEvent(FakeStream* stream, FakeEvent* event, unsigned) {
  size_t wanted = 0;
  {
    const std::lock_guard lock(mutex);
    wanted = event->recorded;
  }
  return stream->push([=] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [=] { return event->reached >= wanted; });
  });
}
int cuStreamSynchronize(FakeStream* stream) {
  stream->finish();
  return is_current();
}
int cuEventCreate(FakeEvent** event, unsigned) {
  *event = new FakeEvent;
  return is_current();
}
int cuEventRecord(FakeEvent* event, FakeStream* stream) {
  size_t number = 0;
  {
    const std::lock_guard lock(mutex);
    number = ++event->recorded;
  }
  return stream->push([=] {
    const std::lock_guard lock(mutex);
    event->reached = number;
    event->time = Clock::now();
    changed.notify_all();
  });
}
int cuEventQuery(FakeEvent* event) {
  const std::lock_guard lock(mutex);
  return event->reached < event->recorded ? kNotReady : is_current();
}
int cuEventElapsedTime(float* milliseconds, const FakeEvent* begin, const FakeEvent* end) {
  const std::lock_guard lock(mutex);
  for (const FakeEvent* each : {begin, end}) {
    if (each->reached == 0 || each->reached < each->recorded) return kNotReady;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return is_current();
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
