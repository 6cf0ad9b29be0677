// The trace: complete JSON, with a slice for each piece of work and its arguments.
#include "core/backend/layers/trace/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/trace/trace_file.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/base/file.h"

namespace tenon::backend {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A device without event times.
class Timeless final : public ForwardingBackend {
 public:
  Timeless() : ForwardingBackend(make_interpreter_backend()) {}
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<TimelessDevice>(ForwardingBackend::open(index).value());
  }

 private:
  class TimelessDevice final : public ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    Result<EventTimes> event_times(EventHandle) override { return unimplemented("no clock"); }
  };
};

// A device whose work takes no time, and begins long after it was given.
class Instant final : public ForwardingBackend {
 public:
  Instant() : ForwardingBackend(make_interpreter_backend()) {}
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<InstantDevice>(ForwardingBackend::open(index).value());
  }

 private:
  class InstantDevice final : public ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    Result<EventTimes> event_times(EventHandle event) override {
      TENON_ASSIGN(EventTimes times, ForwardingDevice::event_times(event));
      times.start = times.end;
      return times;
    }
  };
};

class TraceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fs::path("tenon_trace_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    options.path = (folder_ / "run.json").string();
  }
  void TearDown() override {
    device.reset();
    backend.reset();
    fs::remove_all(folder_);
  }

  void open(std::shared_ptr<Backend> inner) {
    open_as_is(make_trace_layer(std::move(inner), options).value());
  }
  void open_as_is(std::shared_ptr<Backend> all) {
    backend = std::move(all);
    device = backend->open(0).value();
    const kernel::Kernel* kernels[] = {&kernel};
    const auto target = backend->devices().value()[0].target;
    module = device->load(backend->compile(target, kernels).value().binary, kernels).value();
    x = device->allocate(0, 64).value();
    y = device->allocate(0, 64).value();
  }

  Status launch(const char* label) {
    const std::array<MemoryAddress, 2> places = {MemoryAddress{x, 0, nullptr},
                                                 MemoryAddress{y, 0, nullptr}};
    KernelLaunch work;
    work.module = module;
    work.buffers = places;
    work.label = label;
    return device->launch(0, work);
  }
  Status done() { return finish(*device); }
  void run(const char* label) {
    const std::array<float, 4> from = {1, 2, 3, 4};
    std::array<float, 4> to = {};
    ASSERT_TRUE(device
                    ->copy(0, {x, 0, nullptr},
                           MemoryAddress::of_host(reinterpret_cast<const std::byte*>(from.data())),
                           16)
                    .ok());
    ASSERT_TRUE(launch(label).ok());
    ASSERT_TRUE(device
                    ->copy(0, MemoryAddress::of_host(reinterpret_cast<std::byte*>(to.data())),
                           {y, 0, nullptr}, 16)
                    .ok());
    ASSERT_TRUE(done().ok());
    EXPECT_EQ(to, (std::array<float, 4>{2, 3, 4, 5}));
  }
  // The events of the file in its current state, closed or not.
  Json events() { return Json::parse(read_file(options.path).value())["traceEvents"]; }
  Json closed() {
    device.reset();
    return events();
  }

  // Slices of the row of queue 0.
  static std::vector<Json> work(const Json& events) {
    std::vector<Json> found;
    for (const Json& each : events) {
      if (each["ph"] == "X" && each["pid"] == 1 && each["tid"] == 0) found.push_back(each);
    }
    return found;
  }
  // Calls of the host.
  static std::vector<std::string> calls(const Json& events) {
    std::vector<std::string> found;
    for (const Json& each : events) {
      if (each["ph"] == "X" && each["tid"] != 0) found.push_back(each["name"]);
    }
    return found;
  }
  static std::string row_name(const Json& events) {
    for (const Json& each : events) {
      if (each["name"] == "thread_name" && each["tid"] == 0) return each["args"]["name"];
    }
    return "";
  }

  TraceOptions options;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  const kernel::Kernel kernel = add_one("add_one");
  ModuleHandle module = 0;
  MemoryHandle x = 0;
  MemoryHandle y = 0;
  fs::path folder_;
};

// A device that counts something.
class Counting final : public ForwardingBackend {
 public:
  Counting() : ForwardingBackend(make_interpreter_backend()) {}
  Result<std::unique_ptr<Device>> open(size_t index) override {
    class CountingDevice final : public ForwardingDevice {
     public:
      using ForwardingDevice::ForwardingDevice;
      Result<std::vector<Statistic>> statistics() override {
        return std::vector<Statistic>{{"launches", 3}, {"seconds", 0.5}};
      }
    };
    return std::make_unique<CountingDevice>(ForwardingBackend::open(index).value());
  }
};

TEST_F(TraceTest, ShowsTheDevicesStatisticsWhenItIsClosed) {
  open(std::make_shared<Counting>());
  const Json all = closed();
  const Json& last = all.back();
  EXPECT_EQ(last["name"], "close");
  EXPECT_EQ(last["args"], Json::parse(R"({"launches": 3.0, "seconds": 0.5})"));
}

TEST_F(TraceTest, ShowsLaunchesCopiesAndCalls) {
  open(make_interpreter_backend());
  EXPECT_EQ(calls(events()),
            (std::vector<std::string>{"open", "compile", "load", "allocate", "allocate"}));
  run("add at \"m.mlir\":3\n\\ \xC3\xA9 \xFF");
  EXPECT_EQ(work(events()).size(), 3u);  // The device is still open.
  device->free(x);
  const Json all = closed();
  const std::vector<Json> slices = work(all);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["name"], "copy host to device");
  EXPECT_EQ(slices[0]["args"], Json::parse(R"({"bytes": 16, "direction": "host to device"})"));
  EXPECT_EQ(slices[1]["name"], "add at \"m.mlir\":3\n\\ \xC3\xA9 \xEF\xBF\xBD");
  EXPECT_EQ(slices[1]["args"],
            Json::parse(R"({"kernel": "add_one", "bytes_read": 16, "bytes_written": 16,
                            "flops": 4, "transcendentals": 0, "counted": "exactly"})"));
  EXPECT_EQ(slices[2]["name"], "copy device to host");
  // One after the other.
  for (size_t i = 0; i < slices.size(); ++i) {
    EXPECT_GE(slices[i]["dur"], 0.0);
    if (i > 0) {
      const double end = slices[i - 1]["ts"].get<double>() + slices[i - 1]["dur"].get<double>();
      EXPECT_GE(slices[i]["ts"].get<double>(), end - 0.01);
    }
  }
  EXPECT_EQ(row_name(all), "queue 0");
  EXPECT_EQ(calls(all), (std::vector<std::string>{"open", "compile", "load", "allocate", "allocate",
                                                  "give copy", "give launch", "give copy", "record",
                                                  "await", "free", "close"}));
  std::vector<int64_t> allocated;
  for (const Json& each : all) {
    if (each["ph"] == "C") allocated.push_back(each["args"]["bytes"]);
  }
  EXPECT_EQ(allocated, (std::vector<int64_t>{64, 128, 64}));
}

TEST_F(TraceTest, SaysWhoseClockItIs) {
  open(std::make_shared<Timeless>());
  run("add");
  const Json all = closed();
  EXPECT_EQ(row_name(all), "queue 0 (host clock)");
  EXPECT_EQ(work(all).size(), 3u);
}

// The time before the work (a compilation on first use, say) is not counted as its time.
TEST_F(TraceTest, WorkBeginsWhenTheDeviceSays) {
  open(std::make_shared<Instant>());
  run("add");
  const std::vector<Json> slices = work(closed());
  ASSERT_EQ(slices.size(), 3u);
  for (const Json& each : slices) EXPECT_LE(each["dur"].get<double>(), 0.001);
}

TEST_F(TraceTest, WithoutEventsTheRowsOfQueuesAreLeftOut) {
  options.events = false;
  open(make_interpreter_backend());
  run("add");
  const Json all = closed();
  EXPECT_EQ(row_name(all), "");
  EXPECT_TRUE(work(all).empty());
  EXPECT_FALSE(calls(all).empty());
}

// If work fails, the layer's event gets the error; the host's event still gets it, once.
TEST_F(TraceTest, ErrorsReachTheHostsEvents) {
  const auto plan = FaultPlan::parse("event@2").value();
  open(make_faults_layer(make_interpreter_backend(), plan).backend);
  ASSERT_TRUE(launch("first").ok());
  ASSERT_TRUE(launch("second").ok());
  const EventHandle event = device->record(0).value();
  for (int i = 0; i < 2; ++i) {
    const auto outcome = device->await(event, -1);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().message(), "a planned fault: event");
  }
  device->release(event);
  ASSERT_TRUE(launch("third").ok());
  EXPECT_EQ(done().message(), "");
  EXPECT_EQ(work(closed()).size(), 3u);
}

TEST_F(TraceTest, RulesHoldWithinAndAround) {
  open(make_validate_layer(make_interpreter_backend()));
  run("add");
  device.reset();
  open_as_is(make_validate_layer(make_trace_layer(make_interpreter_backend(), options).value()));
  run("add");
  const auto event = device->record(0).value();
  // Pending at first or done, but done in the end.
  Result<bool> outcome = device->await(event, 0);
  while (outcome && !*outcome) outcome = device->await(event, 1'000'000);
  EXPECT_TRUE(outcome);
}

TEST(TraceFile, APathThatCannotBeWritten) {
  const auto layer = make_trace_layer(make_interpreter_backend(), {"/nowhere/at/all", true});
  ASSERT_FALSE(layer);
  EXPECT_TRUE(layer.error().message().starts_with("cannot write /nowhere/at/all"));
}

// The name in a file that was written and read again.
std::string written_and_read(const std::string& name) {
  const fs::path path =
      fs::temp_directory_path() / fs::path("tenon_trace_names_" + std::to_string(getpid()));
  TraceFile::create(path.string()).value()->name_track({1, 2}, name);
  const Json events = Json::parse(read_file(path.string()).value())["traceEvents"];
  fs::remove(path);
  return events.back()["args"]["name"];
}

TEST(TraceFile, Names) {
  for (const char* name : {"a\tb\x01", "\"\\", "\xF0\x9F\x99\x82 \xE2\x82\xAC"}) {
    EXPECT_EQ(written_and_read(name), name);
  }
  // Truncated, overlong, a surrogate, above the maximum, a lone continuation byte.
  for (const char* wrong : {"\xE2\x82", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    EXPECT_EQ(written_and_read(wrong).substr(0, 3), "\xEF\xBF\xBD") << wrong;
  }
}

}  // namespace
}  // namespace tenon::backend
