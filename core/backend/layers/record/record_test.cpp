// The layer `record`: a recording reads back and replays to the same bytes, on the same target and
// on others; the first value that differs is found.
#include <functional>

#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/record/record_test_util.h"

namespace tenon::backend {
namespace {

TEST_F(RecordTest, WritesWhatWasAsked) {
  run_chain();
  const std::string file = closed();
  EXPECT_EQ(listing(file),
            "open interp:0, a interp 1, compiler interp-1, as device 1\n"
            "compile @add_one @twice for interp: 265 bytes\n"
            "load module 2: @add_one @twice, binary of 265 bytes\n"
            "allocate memory 3: 256 bytes in space 0\n"
            "allocate memory 4: 256 bytes in space 0\n"
            "copy 16 bytes to 3+0 from the host\n"
            "launch @add_one(%x 3+0, %y 4+0) 'add at m.mlir:3'\n"
            "launch @twice(%x 4+0, %y 3+0) 'mul at m.mlir:4'\n"
            "launch @add_one(%x 3+0, %y 4+0) 'add at m.mlir:3'\n"
            "launch @twice(%x 4+0, %y 3+0) 'mul at m.mlir:4'\n"
            "copy 16 bytes to the host from 3+0\n"
            "record event 5\n"
            "values of 10: 16 bytes\n"
            "values of 11: 16 bytes\n"
            "values of 12: 16 bytes\n"
            "values of 13: 16 bytes\n"
            "values of 14: 16 bytes\n"
            "free memory 3\n"
            "free memory 4\n"
            "unload module 2\n"
            "close device 1\n");
  EXPECT_EQ(save_entries(read_recording(file)->entries), file);
}

TEST_F(RecordTest, ReplaysToTheSameBits) {
  run_chain();
  const std::string file = closed();
  const auto same = make_interpreter_backend();
  ReplayReport report = replayed(file, *same);
  EXPECT_EQ(report.launches, 4);
  EXPECT_EQ(report.copies, 2);
  EXPECT_EQ(report.modules_loaded, 1);
  EXPECT_EQ(report.modules_compiled, 0);
  EXPECT_EQ(report.compared, 5);
  EXPECT_EQ(report.compared_bytes, 80);
  EXPECT_TRUE(report.differences.empty());
  // Another target: kernels are legalised for it. The rules hold in a replay too.
  InterpreterConfig config;
  config.features = kernel::TargetFeatures::least();
  report = replayed(file, *make_validate_layer(make_interpreter_backend(config)));
  EXPECT_EQ(report.modules_loaded, 0);
  EXPECT_EQ(report.modules_compiled, 1);
  EXPECT_EQ(report.compared, 5);
  EXPECT_TRUE(report.differences.empty());
}

TEST_F(RecordTest, StopsAtTheFirstValueThatDiffers) {
  run_chain();
  const std::string file = closed();
  OtherBackend broken(map_kernel("add_one",
                                 "%c = ge %i, 2 : s32\n%d = select %c, 1.5, 1.0 : f32\n"
                                 "%b = add %a, %d : f32\n"));
  ReplayReport report = replayed(file, broken);
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(report.launches, 1);
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_EQ(report.differences[0].to_string(),
            "entry 10: launch 'add at m.mlir:3' of @add_one: %y, f32[4], element 2 is 4.5, "
            "recorded 4 (2 of 4 differ)");
  // Going on, only the launches of the broken kernel differ: what follows has the recorded values.
  report = replayed(file, broken, 10);
  EXPECT_FALSE(report.stopped);
  EXPECT_EQ(report.launches, 4);
  ASSERT_EQ(report.differences.size(), 2u);
  EXPECT_EQ(report.differences[1].entry, 12u);
  EXPECT_EQ(report.differences[1].kernel, "add_one");
}

TEST_F(RecordTest, WithoutValuesTheCopyToTheHostDiffers) {
  options.values = false;
  run_chain();
  const std::string file = closed();
  OtherBackend broken(map_kernel("twice", "%b = mul %a, 3.0 : f32\n"));
  const ReplayReport report = replayed(file, broken);
  EXPECT_EQ(report.compared, 1);
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_EQ(report.differences[0].to_string(),
            "entry 14: the copy to the host, f32[4], element 0 is 21, recorded 10 (4 of 4 differ)");
}

TEST_F(RecordTest, NansAreEqual) {
  open({map_kernel("nan",
                   "%c = bitcast 2143289345 : u32 -> f32\n%b = select true, %c, %a : f32\n")});
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  ASSERT_TRUE(device->copy(0, MemoryAddress::of_host(bytes_of(result)), at(y), 16).ok());
  ASSERT_EQ(finish(*device).message(), "");
  const std::string file = closed();
  OtherBackend others(
      map_kernel("nan", "%c = bitcast 4290772992 : u32 -> f32\n%b = select true, %c, %a : f32\n"));
  EXPECT_TRUE(replayed(file, others).differences.empty());
  OtherBackend numbers(map_kernel("nan", "%b = select true, 1.0, %a : f32\n"));
  const ReplayReport report = replayed(file, numbers);
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_EQ(report.differences[0].recorded, "nan");
  EXPECT_EQ(report.differences[0].replayed, "1");
}

// Memory that a kernel leaves unwritten has the same contents on every device.
TEST_F(RecordTest, MemoryBeginsTheSame) {
  open({half()});
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  ASSERT_EQ(finish(*device).message(), "");
  const std::string file = closed();
  const auto recording = read_recording(file).value();
  std::string_view written;
  for (const recorded::Entry& entry : recording.entries) {
    if (const auto* values = std::get_if<recorded::RecordedValues>(&entry)) {
      written = recording.bytes[values->written[0].data];
    }
  }
  EXPECT_EQ(written.substr(8), "\xA5\xA5\xA5\xA5\xA5\xA5\xA5\xA5");
  OtherBackend others;
  for (Backend* each :
       std::initializer_list<Backend*>{make_interpreter_backend().release(), &others}) {
    EXPECT_TRUE(replayed(file, *each).differences.empty());
    if (each != &others) delete each;
  }
}

TEST_F(RecordTest, BuffersThatAreNotAlignedThereAreMoved) {
  open({add_one("add_one"), half()});
  const Floats from = {1, 2, 3, 4};
  ASSERT_TRUE(device->copy(0, at(x, 16), MemoryAddress::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(launch(0, at(x, 16), at(y, 32)).ok());
  ASSERT_TRUE(launch(1, at(y, 32), at(y, 4)).ok());
  ASSERT_EQ(finish(*device).message(), "");
  const std::string file = closed();
  const ReplayReport report = replayed(file, *make_validate_layer(make_interpreter_backend()));
  EXPECT_EQ(report.compared, 2);
  EXPECT_TRUE(report.differences.empty());
}

TEST_F(RecordTest, FailuresAreWrittenAndLeftOut) {
  const auto plan = FaultPlan::parse("launch@2 event@2").value();
  open({add_one("add_one"), twice()}, make_faults_layer(make_interpreter_backend(), plan).backend);
  const Floats from = {1, 2, 3, 4};
  ASSERT_TRUE(device->copy(0, at(x), MemoryAddress::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  EXPECT_FALSE(launch(1, at(y), at(x)).ok());
  ASSERT_EQ(finish(*device).message(), "");
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  EXPECT_EQ(finish(*device).message(), "a planned fault: event");
  ASSERT_TRUE(launch(1, at(y), at(x)).ok());
  ASSERT_EQ(finish(*device).message(), "");
  const std::string file = closed();
  const std::string text = listing(file);
  EXPECT_NE(text.find("call 11 failed: a planned fault: launch (INTERNAL)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("work up to the event after 16 failed: a planned fault: event (INTERNAL)"),
            std::string::npos)
      << text;
  const ReplayReport report = replayed(file, *make_interpreter_backend());
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(report.launches, 3);
  EXPECT_EQ(report.compared, 2);
  EXPECT_TRUE(report.differences.empty());
}

// Two queues, of a device that does the work of both in order.
class TwoQueues final : public ForwardingBackend {
 public:
  TwoQueues() : ForwardingBackend(make_interpreter_backend()) {}
  Result<std::vector<DeviceInfo>> devices() override {
    auto devices = ForwardingBackend::devices();
    devices->front().target.queues = 2;
    return devices;
  }
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<Both>(ForwardingBackend::open(index).value());
  }

 private:
  class Both final : public ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    Status copy(uint32_t, const MemoryAddress& to, const MemoryAddress& from,
                int64_t bytes) override {
      return ForwardingDevice::copy(0, to, from, bytes);
    }
    Status fill(uint32_t, const MemoryAddress& to, int64_t bytes,
                std::span<const std::byte> pattern) override {
      return ForwardingDevice::fill(0, to, bytes, pattern);
    }
    Status launch(uint32_t, const KernelLaunch& launch) override {
      return ForwardingDevice::launch(0, launch);
    }
    Result<EventHandle> record(uint32_t) override { return ForwardingDevice::record(0); }
    Status wait(uint32_t, EventHandle event) override { return ForwardingDevice::wait(0, event); }
  };
};

// The host's memory is his own as soon as an event says so that comes behind another queue's.
TEST_F(RecordTest, EventsCoverWhatTheyWaitedFor) {
  open({add_one("add_one")}, std::make_shared<TwoQueues>());
  const Floats from = {1, 2, 3, 4};
  ASSERT_TRUE(device->copy(1, at(x), MemoryAddress::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(device->copy(1, MemoryAddress::of_host(bytes_of(result)), at(x), 16).ok());
  const EventHandle copied = device->record(1).value();
  ASSERT_TRUE(device->wait(0, copied).ok());
  ASSERT_TRUE(finish(*device, 0).ok());
  result = {};
  device->release(copied);
  const std::string file = closed();
  const ReplayReport report = replayed(file, *make_interpreter_backend());
  EXPECT_EQ(report.compared, 1);
  EXPECT_TRUE(report.differences.empty());
}

// A device whose second queue does nothing until somebody waits for it.
class LateQueue final : public ForwardingBackend {
 public:
  LateQueue() : ForwardingBackend(make_interpreter_backend()) {}
  Result<std::vector<DeviceInfo>> devices() override {
    auto devices = ForwardingBackend::devices();
    devices->front().target.queues = 2;
    return devices;
  }
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<Late>(ForwardingBackend::open(index).value());
  }

 private:
  class Late final : public ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    Status copy(uint32_t queue, const MemoryAddress& to, const MemoryAddress& from,
                int64_t bytes) override {
      if (queue == 0) return ForwardingDevice::copy(0, to, from, bytes);
      late_.emplace_back([=, this] { return ForwardingDevice::copy(0, to, from, bytes); });
      return {};
    }
    Status fill(uint32_t queue, const MemoryAddress& to, int64_t bytes,
                std::span<const std::byte> pattern) override {
      if (queue == 0) return ForwardingDevice::fill(0, to, bytes, pattern);
      late_.emplace_back([=, this, kept = std::vector<std::byte>(pattern.begin(), pattern.end())] {
        return ForwardingDevice::fill(0, to, bytes, kept);
      });
      return {};
    }
    Result<EventHandle> record(uint32_t queue) override {
      if (queue == 0) return ForwardingDevice::record(0);
      return kLate;
    }
    Result<bool> await(EventHandle event, int64_t timeout) override {
      if (event != kLate) return ForwardingDevice::await(event, timeout);
      for (const auto& work : std::exchange(late_, {})) TENON_TRY(work());
      return true;
    }
    void release(EventHandle event) override {
      if (event != kLate) ForwardingDevice::release(event);
    }

   private:
    static constexpr EventHandle kLate = uint64_t{1} << 40;
    std::vector<std::function<Status()>> late_;
  };
};

// Memory is painted before any queue uses it: painting by one queue never destroys what another has
// written.
TEST_F(RecordTest, QueuesThatShareMemoryKeepWhatEachWrites) {
  open({add_one("add_one")}, std::make_shared<LateQueue>());
  const Floats from = {1, 2, 3, 4};
  ASSERT_TRUE(device->copy(1, at(x), MemoryAddress::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(device->copy(0, at(x, 64), MemoryAddress::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(finish(*device, 1).ok());
  ASSERT_TRUE(device->copy(0, MemoryAddress::of_host(bytes_of(result)), at(x, 64), 16).ok());
  ASSERT_TRUE(finish(*device).ok());
  EXPECT_EQ(result, from);
}

// Values do not wait for the host's next event when they are many.
TEST_F(RecordTest, HoldsNoMoreThanItMay) {
  options.most_held_bytes = 40;
  run_chain();
  const std::string file = closed();
  const std::string text = listing(file);
  EXPECT_LT(text.find("values of 11"), text.find("launch @add_one", text.find("@twice(%x 4")))
      << text;
  const ReplayReport report = replayed(file, *make_interpreter_backend());
  EXPECT_EQ(report.compared, 5);
  EXPECT_TRUE(report.differences.empty());
}

// The host still gets errors of work that the layer itself waited for (B23).
TEST_F(RecordTest, ErrorsOfWhatItWaitedForAreTheNextEvents) {
  options.most_held_bytes = 16;
  const auto plan = FaultPlan::parse("event@1").value();
  open({add_one("add_one"), twice()}, make_faults_layer(make_interpreter_backend(), plan).backend);
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  ASSERT_TRUE(launch(1, at(y), at(x)).ok());
  const EventHandle event = device->record(0).value();
  for (int i = 0; i < 2; ++i) {  // It says the same again (B25).
    const Result<bool> done = device->await(event, -1);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message(), "a planned fault: event");
  }
  device->release(event);
  EXPECT_EQ(finish(*device).message(), "");
  const ReplayReport report = replayed(closed(), *make_interpreter_backend());
  EXPECT_EQ(report.compared, 1);
}

TEST_F(RecordTest, WhatNobodyAwaitedIsWrittenOnClose) {
  open({add_one("add_one")});
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  const std::string file = closed();
  EXPECT_EQ(replayed(file, *make_interpreter_backend()).compared, 1);
}

TEST_F(RecordTest, SameBytesAreWrittenOnce) {
  open({add_one("add_one")});
  const std::vector<std::byte> block(200, std::byte{7});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(device->copy(0, at(x), MemoryAddress::of_host(block.data()), 200).ok());
  }
  ASSERT_EQ(finish(*device).message(), "");
  EXPECT_LT(closed().size(), 100u * 60 + 2000);
}

TEST_F(RecordTest, WhatCannotBeReplayedSaysWhy) {
  run_chain();
  const std::string file = closed();
  const auto recording = read_recording(file).value();
  const auto error = [&](Backend& where, size_t number) {
    return replay(recording, where, number).error().message();
  };
  const auto interp = make_interpreter_backend();
  EXPECT_EQ(error(*interp, 7), "backend interp has 1 devices, there is no number 7");
  InterpreterConfig config;
  config.memory_bytes = 300;
  EXPECT_EQ(error(*make_interpreter_backend(config), 0),
            "entry 7: interp: 256 bytes are asked for, 256 of 300 are in use");
  class Declining final : public ForwardingBackend {
   public:
    Declining() : ForwardingBackend(make_interpreter_backend()) {}
    std::string_view name() const override { return "declining"; }
    Result<Compiled> compile(const TargetInfo&, Kernels) override {
      return Compiled{"", {{1, Reason::kTooMuchCode, "far too long"}}};
    }
  };
  Declining declining;
  EXPECT_EQ(error(declining, 0), "entry 5: interp declines @twice: far too long (too much code)");
}

}  // namespace
}  // namespace tenon::backend
