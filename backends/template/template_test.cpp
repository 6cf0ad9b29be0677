// Tests specific to the template, in both languages: threads, events, lost devices and leaks.
#include "backends/template/template.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/backend/registry/registry.h"
#include "core/kernel/text/text.h"

namespace tenon::backend {
namespace {

namespace fs = std::filesystem;

kernel::Kernel parsed(const std::string& text) { return kernel::parse(text, "test").value(); }

kernel::Kernel add_one() {
  return parsed(
      "kernel @add_one(%x: in f32[4], %y: out f32[4]) index s32 grid(%i: 4) {\n"
      "%a = load %x[%i] : f32\n%b = add %a, 1.0 : f32\nstore %b, %y[%i] : f32\n}");
}

// Busy for a time that grows with `rounds`; the maximum would take years.
kernel::Kernel busy(int64_t rounds) {
  return parsed(
      fmt::format("kernel @busy(%x: in f32[1], %y: out f32[1]) index s64 grid(%g: 1) {{\n"
                  "%a = load %x[%g] : f32\n"
                  "%s = for %i = (0, {}, 1) carry(%t = %a) : f32 {{\n%m = mul %t, 0.5 : f32\n"
                  "%n = add %m, 1.0 : f32\nyield %n\n}}\n"
                  "store %s, %y[%g] : f32\n}}",
                  rounds));
}

// The chip's processes that are children of this one, including zombies.
std::set<pid_t> chips() {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    pid_t process = 0;
    pid_t parent = 0;
    std::string name;
    char state = 0;
    if (file >> process >> name >> state >> parent && parent == getpid()) found.insert(process);
  }
  return found;
}

size_t open_files() {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Ends this process, and chips that work forever, if a test hangs.
class TimeLimit {
 public:
  TimeLimit() : thread_([this] { watch(); }) {}
  ~TimeLimit() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(120), [&] { return over_; })) return;
    for (const pid_t chip : chips()) kill(chip, SIGKILL);
    fmt::print(stderr, "the test does not end\n");
    std::abort();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

struct Skin {
  const char* name;
  std::shared_ptr<Backend> (*make)();
};

class Template : public testing::TestWithParam<Skin> {
 protected:
  void SetUp() override {
    limit_.emplace();
    backend_ = GetParam().make();
    device_ = backend_->open(0).value();
    x_ = device_->allocate(0, 4096).value();
    y_ = device_->allocate(0, 4096).value();
  }
  void TearDown() override {
    device_.reset();
    limit_.reset();
  }

  ModuleHandle load(const kernel::Kernel& kernel) {
    const std::vector<const kernel::Kernel*> kernels = {&kernel};
    const auto compiled = backend_->compile(backend_->devices().value()[0].target, kernels);
    EXPECT_TRUE(compiled) << compiled.error().message();
    return device_->load(compiled->binary, kernels).value();
  }
  Status launch(ModuleHandle module, MemoryHandle from, MemoryHandle to) {
    const std::vector<MemoryAddress> buffers = {{from, 0}, {to, 0}};
    return device_->launch(0, {module, 0, buffers, {}, "test"});
  }
  Status write(MemoryHandle to, float value) {
    const std::vector<float> values(4, value);
    return device_->copy(
        0, {to, 0}, MemoryAddress::of_host(reinterpret_cast<const std::byte*>(values.data())), 16);
  }
  float read(MemoryHandle from) {
    std::vector<float> values(4);
    const Status copied = device_->copy(
        0, MemoryAddress::of_host(reinterpret_cast<std::byte*>(values.data())), {from, 0}, 16);
    const EventHandle event = device_->record(0).value();
    EXPECT_TRUE(copied.ok()) << copied.message();
    EXPECT_TRUE(device_->await(event, -1).value_or(false));
    device_->release(event);
    return values[0];
  }

  std::optional<TimeLimit> limit_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  MemoryHandle x_ = 0;
  MemoryHandle y_ = 0;
};

TEST_P(Template, AnyThreadAwaitsWhileAnotherGivesWork) {
  constexpr int kRounds = 2000;
  const ModuleHandle module = load(add_one());
  ASSERT_TRUE(write(x_, 0).ok());
  std::vector<std::atomic<EventHandle>> events(kRounds);
  std::atomic<int> done = 0;
  const auto await_every = [&](int first, int step, int64_t timeout) {
    for (int i = first; i < kRounds; i += step) {
      while (events[i] == 0) std::this_thread::yield();
      Result<bool> is_done = false;
      while (is_done && !*is_done) is_done = device_->await(events[i], timeout);
      EXPECT_TRUE(is_done) << is_done.error().message();
      device_->release(events[i]);
      ++done;
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(await_every, 0, 3, -1);
  threads.emplace_back(await_every, 1, 3, 0);
  threads.emplace_back(await_every, 2, 3, 300'000);
  threads.emplace_back([&] {  // Memory is allocated and freed at the same time.
    while (done < kRounds) {
      const auto memory = device_->allocate(0, 100);
      ASSERT_TRUE(memory) << memory.error().message();
      device_->free(*memory);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(launch(module, i % 2 == 0 ? x_ : y_, i % 2 == 0 ? y_ : x_).ok());
    events[i] = device_->record(0).value();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read(x_), kRounds);
}

TEST_P(Template, LoadsWhileItCopies) {
  const kernel::Kernel kernel = add_one();
  const std::vector<const kernel::Kernel*> kernels = {&kernel};
  const auto compiled = backend_->compile(backend_->devices().value()[0].target, kernels).value();
  std::atomic<bool> stop = false;
  std::thread loader([&] {
    while (!stop) {
      const auto module = device_->load(compiled.binary, kernels);
      ASSERT_TRUE(module) << module.error().message();
      device_->unload(*module);
    }
  });
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(write(x_, static_cast<float>(i)).ok());
    ASSERT_EQ(read(x_), static_cast<float>(i));
  }
  stop = true;
  loader.join();
}

TEST_P(Template, EventsReleasedBeforeTheyAreDoneAreForgotten) {
  const ModuleHandle module = load(busy(10'000'000));
  ASSERT_TRUE(write(x_, 0).ok());
  ASSERT_TRUE(launch(module, x_, y_).ok());
  for (int i = 0; i < 300; ++i) device_->release(device_->record(0).value());
  const EventHandle last = device_->record(0).value();
  EXPECT_TRUE(device_->await(last, -1).value());
  EXPECT_TRUE(device_->await(last, 0).value());  // The same answer again (B25).
  EXPECT_EQ(read(y_), 2);                        // The limit of x / 2 + 1.
  // Events that are never released end with the device.
  static_cast<void>(device_->record(0).value());
}

TEST_P(Template, AnEventIsPendingUntilItsWorkIsDone) {
  const ModuleHandle module = load(busy(100'000'000));
  ASSERT_TRUE(launch(module, x_, y_).ok());
  const EventHandle event = device_->record(0).value();
  EXPECT_FALSE(device_->await(event, 0).value());
  EXPECT_FALSE(device_->await(event, 1000).value());
  EXPECT_TRUE(device_->await(event, INT64_MAX).value());
  device_->release(event);
}

TEST_P(Template, FailedWorkFailsTheNextEventAlone) {
  const EventHandle before = device_->record(0).value();
  ASSERT_TRUE(launch(4000, x_, y_).ok());  // No such module: the chip detects it.
  const EventHandle next = device_->record(0).value();
  const EventHandle after = device_->record(0).value();
  EXPECT_TRUE(device_->await(before, -1).value());
  const auto failed = device_->await(next, -1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kInternal);
  // The host names the work of a plug-in.
  EXPECT_TRUE(failed.error().message().starts_with("chip: there is no such module"))
      << failed.error().message();
  EXPECT_TRUE(device_->await(after, -1).value());
  EXPECT_FALSE(device_->await(next, 0));
}

TEST_P(Template, NoRoomIsAnErrorThatPasses) {
  const auto all = device_->allocate(0, int64_t{1} << 40);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(device_->allocate(0, 64));
}

TEST_P(Template, DeclinesKernelsOfTooManyParameters) {
  std::string text = "kernel @many(";
  for (int i = 0; i < 112; ++i) text += fmt::format("%p{}: in f32[1], ", i);
  const kernel::Kernel many = parsed(text +
                                     "%y: out f32[1]) index s32 grid(%i: 1) {\n"
                                     "%a = load %p111[%i] : f32\nstore %a, %y[%i] : f32\n}");
  const kernel::Kernel few = add_one();
  const std::vector<const kernel::Kernel*> kernels = {&few, &many};
  const auto compiled = backend_->compile(backend_->devices().value()[0].target, kernels).value();
  EXPECT_TRUE(compiled.binary.empty());
  ASSERT_EQ(compiled.declined.size(), 1U);
  EXPECT_EQ(compiled.declined[0].kernel, 1U);
  EXPECT_EQ(compiled.declined[0].reason, Reason::kTooManyParameters);
}

TEST_P(Template, TheSameKernelsCompileToTheSameBytesOnAnyThread) {
  const kernel::Kernel kernel = add_one();
  const std::vector<const kernel::Kernel*> kernels = {&kernel};
  const TargetInfo target = backend_->devices().value()[0].target;
  std::vector<std::string> binaries(4);
  std::vector<std::thread> threads;
  for (std::string& binary : binaries) {
    threads.emplace_back([&] { binary = backend_->compile(target, kernels).value().binary; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& binary : binaries) {
    EXPECT_FALSE(binary.empty());
    EXPECT_EQ(binary.size(), binaries[0].size());
  }
}

template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result ? ErrorCode::kOk : result.error().code();
}

// Rule B12, for a chip that dies while it works.
TEST_P(Template, ALostDeviceAnswersAtOnce) {
  const ModuleHandle module = load(busy(int64_t{1} << 60));
  ASSERT_TRUE(write(x_, 1).ok());
  const EventHandle done = device_->record(0).value();
  ASSERT_TRUE(device_->await(done, -1).value());
  ASSERT_TRUE(launch(module, x_, y_).ok());
  const EventHandle never = device_->record(0).value();
  device_->release(device_->record(0).value());
  std::thread killer([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const pid_t chip : chips()) kill(chip, SIGKILL);
  });
  EXPECT_EQ(code_of(device_->await(never, -1)), ErrorCode::kUnavailable);
  killer.join();
  EXPECT_TRUE(device_->await(done, 0).value());
  EXPECT_EQ(code_of(device_->await(never, 0)), ErrorCode::kUnavailable);
  EXPECT_EQ(write(x_, 1).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(launch(module, x_, y_).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of(device_->record(0)), ErrorCode::kUnavailable);
  EXPECT_EQ(device_->wait(0, never).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of(device_->allocate(0, 64)), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of(device_->load("code", {})), ErrorCode::kUnavailable);
  device_->release(never);
  device_->unload(module);
  device_->free(x_);
  device_.reset();
  device_ = backend_->open(0).value();
  x_ = device_->allocate(0, 4096).value();
  ASSERT_TRUE(write(x_, 7).ok());
  EXPECT_EQ(read(x_), 7);
}

// Repeated polling without waiting also detects it.
TEST_P(Template, ADeadChipIsSeenWithoutWaiting) {
  const ModuleHandle module = load(busy(int64_t{1} << 60));
  ASSERT_TRUE(launch(module, x_, y_).ok());
  const EventHandle never = device_->record(0).value();
  for (const pid_t chip : chips()) kill(chip, SIGKILL);
  Result<bool> done = false;
  while (done && !*done) done = device_->await(never, 0);
  EXPECT_EQ(code_of(done), ErrorCode::kUnavailable);
}

// Opens a chip with some of the lowest descriptors closed, and exits: with 0 if it works and no
// descriptor has the number of a standard stream, to which others write.
[[noreturn]] void open_without(Backend& backend, int closed) {
  for (int file = 0; file < 5; ++file) {
    if ((closed >> file & 1) != 0) close(file);
  }
  const auto device = backend.open(1);
  bool right = device && (*device)->allocate(0, 64);
  for (int file = 0; file < 3; ++file) {
    if ((closed >> file & 1) != 0) right &= fcntl(file, F_GETFD) < 0;
  }
  _exit(right ? 0 : 1);
}

TEST_P(Template, StartsWhateverDescriptorsAreClosed) {
  limit_.reset();  // A copy of this process would not have its thread.
  for (int closed = 0; closed < 32; ++closed) {
    EXPECT_EXIT(open_without(*backend_, closed), testing::ExitedWithCode(0), "") << closed;
  }
}

TEST_P(Template, CloseEndsWorkThatWouldNeverEnd) {
  const ModuleHandle module = load(busy(int64_t{1} << 60));
  ASSERT_TRUE(launch(module, x_, y_).ok());
  static_cast<void>(device_->record(0).value());
  device_.reset();
  EXPECT_TRUE(chips().empty());
}

// An optional function that the template has: it ends an endless kernel.
TEST_P(Template, AbortEndsWhatOthersWaitFor) {
  const ModuleHandle module = load(busy(int64_t{1} << 60));
  ASSERT_TRUE(launch(module, x_, y_).ok());
  const EventHandle event = device_->record(0).value();
  std::thread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Status aborted = device_->abort();
    EXPECT_TRUE(aborted.ok()) << aborted.message();
  });
  float value = 0;
  auto* host = reinterpret_cast<std::byte*>(&value);
  EXPECT_EQ(device_->copy(0, MemoryAddress::of_host(host), {y_, 0}, 4).code(),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of(device_->await(event, -1)), ErrorCode::kUnavailable);
  aborter.join();
}

TEST_P(Template, NothingIsLeftOpen) {
  device_.reset();
  const size_t files = open_files();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(backend_->open(1));
  for (const char* no_chip : {"/nowhere/chip", "/bin/false"}) {
    setenv("TENON_CHIP", no_chip, 1);
    const auto device = backend_->open(1);
    unsetenv("TENON_CHIP");
    EXPECT_EQ(code_of(device), ErrorCode::kUnavailable) << no_chip;
    EXPECT_NE(device.error().message().find("chip"), std::string::npos);
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_TRUE(chips().empty());
}

// The C version reads its settings once per process.
TEST(TemplateSettings, AreReadOnceAndChecked) {
  for (const auto& [name, range] :
       {std::pair("TENON_CHIPS", "of 1 to 1024"), std::pair("TENON_CHIP_MEMORY", "from 1 on")}) {
    for (const char* wrong : {"many", "0", "-1", "4 chips", "99999999999999999999"}) {
      setenv(name, wrong, 1);
      const auto devices = make_template_backend()->devices();
      unsetenv(name);
      ASSERT_FALSE(devices) << wrong;
      EXPECT_EQ(devices.error().message(),
                fmt::format("{} is '{}', expected a number {}", name, wrong, range));
    }
  }
  const auto backend = make_template_backend();
  setenv("TENON_CHIPS", "7", 1);
  EXPECT_EQ(backend->devices().value().size(), 4U);
  EXPECT_EQ(make_template_backend()->devices().value().size(), 7U);
  unsetenv("TENON_CHIPS");
}

INSTANTIATE_TEST_SUITE_P(
    , Template,
    testing::Values(Skin{"Cpp", [] { return make_template_backend(); }},
                    Skin{"C", [] { return load_plugin(TENON_TEMPLATE_C_PLUGIN).value(); }}),
    [](const auto& skin) { return skin.param.name; });

}  // namespace
}  // namespace tenon::backend
