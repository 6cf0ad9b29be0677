// Recordings: what is written reads back and replays to the same bytes, on the same target and on
// others; the first value that differs is found; damaged and cut files are answers.
#include "core/backend/layers/record.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <optional>

#include "core/backend/backend_test_util.h"
#include "core/backend/interp/interp.h"
#include "core/backend/layers/faults.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/replay.h"
#include "core/kernel/serial.h"
#include "core/kernel/text.h"
#include "core/types/file.h"

namespace tenon::backend {
namespace {

namespace fs = std::filesystem;

using Floats = std::array<float, 4>;

kernel::Kernel parsed(const std::string& text) {
  auto kernel = kernel::parse(text, "k");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  return *std::move(kernel);
}

kernel::Kernel map_kernel(const std::string& name, const std::string& operation,
                          const std::string& grid = "4", const std::string& access = "out") {
  return parsed("kernel @" + name + "(%x: in f32[4], %y: " + access +
                " f32[4]) index s32 grid(%i: " + grid + ") {\n%a = load %x[%i] : f32\n" +
                operation + "store %b, %y[%i] : f32\n}");
}

kernel::Kernel twice() { return map_kernel("twice", "%b = mul %a, 2.0 : f32\n"); }
// Writes two elements of four.
kernel::Kernel half() { return map_kernel("half", "%b = neg %a : f32\n", "2", "inout"); }

const std::byte* bytes_of(const Floats& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
std::byte* bytes_of(Floats& values) { return reinterpret_cast<std::byte*>(values.data()); }

// Compiles another kernel in the place of one, and says that it is another backend, so that a
// replay compiles.
class OtherBackend final : public ForwardingBackend {
 public:
  explicit OtherBackend(std::optional<kernel::Kernel> instead = {})
      : ForwardingBackend(make_interp_backend()), instead_(std::move(instead)) {}
  std::string_view name() const override { return "other"; }
  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    std::vector<const kernel::Kernel*> list(kernels.begin(), kernels.end());
    for (const kernel::Kernel*& each : list) {
      if (instead_ && each->name == instead_->name) each = &*instead_;
    }
    return ForwardingBackend::compile(target, list);
  }

 private:
  const std::optional<kernel::Kernel> instead_;
};

class RecordTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fs::path("tenon_record_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    options.path = (folder_ / "run.record").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Opens a device within the layer, with a module of some kernels and two buffers.
  void open(std::vector<kernel::Kernel> list, std::shared_ptr<Backend> inner = nullptr) {
    if (inner == nullptr) inner = make_interp_backend();
    backend = make_record_layer(std::move(inner), options).value();
    device = backend->open(0).value();
    kernels = std::move(list);
    std::vector<const kernel::Kernel*> each;
    for (const kernel::Kernel& kernel : kernels) each.push_back(&kernel);
    const auto target = backend->devices().value()[0].target;
    module = device->load(backend->compile(target, each).value().binary, each).value();
    x = device->allocate(0, 256).value();
    y = device->allocate(0, 256).value();
  }
  // The file, when all is closed.
  std::string closed() {
    device.reset();
    backend.reset();
    return read_file(options.path).value();
  }

  Status launch(uint32_t kernel, const Place& from, const Place& to, const char* label = "") {
    const std::array<Place, 2> places = {from, to};
    Launch work;
    work.module = module;
    work.kernel = kernel;
    work.buffers = places;
    work.label = label;
    return device->launch(0, work);
  }
  // x + 1 into y, twice of that into x, twice.
  void run_chain() {
    open({add_one("add_one"), twice()});
    const Floats from = {1, 2, 3, 4};
    ASSERT_TRUE(device->copy(0, at(x), Place::of_host(bytes_of(from)), 16).ok());
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(launch(0, at(x), at(y), "add at m.mlir:3").ok());
      ASSERT_TRUE(launch(1, at(y), at(x), "mul at m.mlir:4").ok());
    }
    ASSERT_TRUE(device->copy(0, Place::of_host(bytes_of(result)), at(x), 16).ok());
    ASSERT_EQ(finish(*device).message(), "");
    EXPECT_EQ(result, (Floats{10, 14, 18, 22}));
    device->free(x);
    device->free(y);
    device->unload(module);
  }

  static Place at(MemoryHandle memory, int64_t offset = 0) { return {memory, offset, nullptr}; }

  static ReplayReport replayed(const std::string& file, Backend& backend, size_t most = 1) {
    const auto recording = read_recording(file);
    EXPECT_TRUE(recording) << recording.error().to_string();
    ReplayOptions how;
    how.most_differences = most;
    auto report = replay(*recording, backend, 0, how);
    EXPECT_TRUE(report) << report.error().to_string();
    return *std::move(report);
  }
  static std::string listing(const std::string& file) {
    const auto recording = read_recording(file).value();
    std::string text;
    for (const recorded::Entry& entry : recording.entries) {
      if (!std::holds_alternative<recorded::Bytes>(entry)) {
        text += to_string(recording, entry) + "\n";
      }
    }
    return text;
  }

  RecordOptions options;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  std::vector<kernel::Kernel> kernels;
  ModuleHandle module = 0;
  MemoryHandle x = 0;
  MemoryHandle y = 0;
  Floats result = {};
  fs::path folder_;
};

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
  const auto same = make_interp_backend();
  ReplayReport report = replayed(file, *same);
  EXPECT_EQ(report.launches, 4);
  EXPECT_EQ(report.copies, 2);
  EXPECT_EQ(report.modules_loaded, 1);
  EXPECT_EQ(report.modules_compiled, 0);
  EXPECT_EQ(report.compared, 5);
  EXPECT_EQ(report.compared_bytes, 80);
  EXPECT_TRUE(report.differences.empty());
  // Another target: kernels are legalised for it. The rules hold in a replay too.
  InterpConfig config;
  config.form = kernel::LegalForm::least();
  report = replayed(file, *make_validate_layer(make_interp_backend(config)));
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
  ASSERT_TRUE(device->copy(0, Place::of_host(bytes_of(result)), at(y), 16).ok());
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

// What a kernel leaves alone was never written: it is the same everywhere all the same.
TEST_F(RecordTest, MemoryBeginsTheSame) {
  open({half()});
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  ASSERT_EQ(finish(*device).message(), "");
  const std::string file = closed();
  const auto recording = read_recording(file).value();
  std::string_view written;
  for (const recorded::Entry& entry : recording.entries) {
    if (const auto* values = std::get_if<recorded::Values>(&entry)) {
      written = recording.bytes[values->written[0].data];
    }
  }
  EXPECT_EQ(written.substr(8), "\xA5\xA5\xA5\xA5\xA5\xA5\xA5\xA5");
  OtherBackend others;
  for (Backend* each : std::initializer_list<Backend*>{make_interp_backend().release(), &others}) {
    EXPECT_TRUE(replayed(file, *each).differences.empty());
    if (each != &others) delete each;
  }
}

TEST_F(RecordTest, BuffersThatAreNotAlignedThereAreMoved) {
  open({add_one("add_one"), half()});
  const Floats from = {1, 2, 3, 4};
  ASSERT_TRUE(device->copy(0, at(x, 16), Place::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(launch(0, at(x, 16), at(y, 32)).ok());
  ASSERT_TRUE(launch(1, at(y, 32), at(y, 4)).ok());
  ASSERT_EQ(finish(*device).message(), "");
  const std::string file = closed();
  const ReplayReport report = replayed(file, *make_validate_layer(make_interp_backend()));
  EXPECT_EQ(report.compared, 2);
  EXPECT_TRUE(report.differences.empty());
}

TEST_F(RecordTest, FailuresAreWrittenAndLeftOut) {
  const auto plan = FaultPlan::parse("launch@2 event@2").value();
  open({add_one("add_one"), twice()}, make_faults_layer(make_interp_backend(), plan).backend);
  const Floats from = {1, 2, 3, 4};
  ASSERT_TRUE(device->copy(0, at(x), Place::of_host(bytes_of(from)), 16).ok());
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
  const ReplayReport report = replayed(file, *make_interp_backend());
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(report.launches, 3);
  EXPECT_EQ(report.compared, 2);
  EXPECT_TRUE(report.differences.empty());
}

// Two queues, of a device that does the work of both in order.
class TwoQueues final : public ForwardingBackend {
 public:
  TwoQueues() : ForwardingBackend(make_interp_backend()) {}
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
    Status copy(uint32_t, const Place& to, const Place& from, int64_t bytes) override {
      return ForwardingDevice::copy(0, to, from, bytes);
    }
    Status launch(uint32_t, const Launch& launch) override {
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
  ASSERT_TRUE(device->copy(1, at(x), Place::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(device->copy(1, Place::of_host(bytes_of(result)), at(x), 16).ok());
  const EventHandle copied = device->record(1).value();
  ASSERT_TRUE(device->wait(0, copied).ok());
  ASSERT_TRUE(finish(*device, 0).ok());
  result = {};
  device->release(copied);
  const std::string file = closed();
  const ReplayReport report = replayed(file, *make_interp_backend());
  EXPECT_EQ(report.compared, 1);
  EXPECT_TRUE(report.differences.empty());
}

TEST_F(RecordTest, WhatNobodyAwaitedIsWrittenOnClose) {
  open({add_one("add_one")});
  ASSERT_TRUE(launch(0, at(x), at(y)).ok());
  const std::string file = closed();
  EXPECT_EQ(replayed(file, *make_interp_backend()).compared, 1);
}

TEST_F(RecordTest, SameBytesAreWrittenOnce) {
  open({add_one("add_one")});
  const std::vector<std::byte> block(200, std::byte{7});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(device->copy(0, at(x), Place::of_host(block.data()), 200).ok());
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
  const auto interp = make_interp_backend();
  EXPECT_EQ(error(*interp, 7), "backend interp has 1 devices, there is no number 7");
  InterpConfig config;
  config.memory_bytes = 300;
  EXPECT_EQ(error(*make_interp_backend(config), 0),
            "entry 7: interp: 256 bytes are asked for, 256 of 300 are in use");
  class Declining final : public ForwardingBackend {
   public:
    Declining() : ForwardingBackend(make_interp_backend()) {}
    std::string_view name() const override { return "declining"; }
    Result<Compiled> compile(const TargetInfo&, Kernels) override {
      return Compiled{"", {{1, Reason::kTooMuchCode, "far too long"}}};
    }
  };
  Declining declining;
  EXPECT_EQ(error(declining, 0), "entry 5: interp declines @twice: far too long (too much code)");
}

// --- Files

TEST_F(RecordTest, ACutFileEndsWithItsLastWholeEntry) {
  run_chain();
  const std::string file = closed();
  const size_t whole = read_recording(file)->entries.size();
  size_t last = 0;
  for (size_t size = 0; size < file.size(); ++size) {
    const auto read = read_recording(std::string_view(file).substr(0, size));
    if (!read) {
      EXPECT_LT(size, 13u) << read.error().to_string();
      continue;
    }
    EXPECT_GE(read->entries.size(), last);
    EXPECT_LT(read->entries.size(), whole);
    last = read->entries.size();
    EXPECT_LT(read->cut, size);
  }
  EXPECT_EQ(last, whole - 1);
}

TEST_F(RecordTest, NoChangeOfABitBreaksTheReader) {
  run_chain();
  const std::string file = closed();
  size_t taken = 0;
  for (size_t i = 13; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = file;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const auto read = read_recording(bytes, true);
      if (!read) {
        EXPECT_TRUE(read.error().message().starts_with("entry ")) << read.error().to_string();
        continue;
      }
      ++taken;
      for (const recorded::Entry& entry : read->entries) {
        EXPECT_FALSE(to_string(*read, entry).empty());
      }
    }
  }
  EXPECT_GT(taken, 100u);
}

TEST_F(RecordTest, ReadsFilesOfEveryVersion) {
  const std::string folder = std::string(TENON_SOURCE) + "/core/backend/layers/testdata/";
  for (uint32_t v = kRecordingFormat.oldest; v <= kRecordingFormat.newest; ++v) {
    const auto file = read_file(folder + fmt::format("chain.v{}.tnrc", v));
    ASSERT_TRUE(file) << file.error().to_string();
    OtherBackend others;
    const ReplayReport report = replayed(*file, others);
    EXPECT_EQ(report.compared, 5);
    EXPECT_TRUE(report.differences.empty());
  }
}

std::string error_of(std::vector<recorded::Entry> entries) {
  const auto read = read_recording(save_entries(entries));
  return read ? "" : read.error().message();
}

TEST(Recording, EntriesAreChecked) {
  const std::string kernel = kernel::save(add_one("add_one"));
  const std::vector<recorded::Entry> begin = {
      recorded::Open{1, "interp", "1", "interp:0", "interp-1", "t"},
      recorded::Bytes{kernel},
      recorded::Load{1, 2, 0, {0}},
      recorded::Allocate{1, 3, 0, 64},
  };
  const auto after = [&](recorded::Entry entry) {
    std::vector<recorded::Entry> all = begin;
    all.push_back(std::move(entry));
    return error_of(all);
  };
  EXPECT_EQ(error_of(begin), "");
  EXPECT_EQ(after(recorded::Open{1, "", "", "", "", ""}), "entry 4: device 1 is open already");
  EXPECT_EQ(after(recorded::Close{2}), "entry 4: there is no device 2");
  EXPECT_EQ(after(recorded::Load{1, 3, 0, {0}}), "entry 4: the number 3 again");
  EXPECT_EQ(after(recorded::Load{1, 4, 0, {1}}), "entry 4: there are no bytes 1");
  EXPECT_EQ(after(recorded::Compile{"t", {0}, 0, {{1, 1, ""}}}),
            "entry 4: kernel 1 of 1 is declined for reason 1");
  EXPECT_EQ(after(recorded::Unload{3}), "entry 4: there is no module 3");
  EXPECT_EQ(after(recorded::Allocate{1, 4, 0, 0}), "entry 4: 0 bytes are allocated");
  EXPECT_EQ(after(recorded::Free{2}), "entry 4: there is no memory 2");
  EXPECT_EQ(after(recorded::Copy{1, 0, {}, {}, 4, 0}), "entry 4: a copy from host to host");
  EXPECT_EQ(after(recorded::Copy{1, 0, {3, 0}, {}, 4, 0}),
            fmt::format("entry 4: bytes 0 are {}, not 4", kernel.size()));
  EXPECT_EQ(after(recorded::Copy{1, 0, {}, {3, 62}, 4, 0}), "entry 4: 4 bytes at 62 of 64");
  EXPECT_EQ(after(recorded::Copy{1, 0, {}, {3, -1}, 4, 0}), "entry 4: 4 bytes at -1 of 64");
  EXPECT_EQ(after(recorded::Copy{1, 0, {}, {9, 0}, 4, 0}), "entry 4: device 1 has no memory 9");
  EXPECT_EQ(after(recorded::Fill{1, 0, {3, 0}, 4, 0}),
            fmt::format("entry 4: 4 bytes are filled with {}", kernel.size()));
  EXPECT_EQ(after(recorded::Launch{1, 0, 2, 1, {}, {}, ""}), "entry 4: kernel 1 of 1");
  EXPECT_EQ(after(recorded::Launch{1, 0, 3, 0, {}, {}, ""}), "entry 4: device 1 has no module 3");
  EXPECT_EQ(after(recorded::Launch{1, 0, 2, 0, {{3, 0}}, {}, ""}),
            "entry 4: @add_one takes 2 buffers and 0 scalars, not 1 and 0");
  EXPECT_EQ(after(recorded::Launch{1, 0, 2, 0, {{3, 0}, {3, 52}}, {}, ""}),
            "entry 4: 16 bytes at 52 of 64");
  EXPECT_EQ(after(recorded::Wait{1, 0, 3}), "entry 4: there is no event 3");
  EXPECT_EQ(after(recorded::Values{9, {}}), "entry 4: there is no entry 9 yet");
  EXPECT_EQ(after(recorded::Values{3, {{0, 0}}}), "entry 4: entry 3 writes no buffer 0");
  EXPECT_EQ(after(recorded::Failed{3, false, 0, ""}), "entry 4: 0 is no code of an error");
  EXPECT_EQ(read_recording("TNKN").error().message(),
            "this is no recording: it does not begin with 'TNRC'");
  std::string damaged = save_entries(begin);
  damaged.back() ^= 1;
  EXPECT_EQ(read_recording(damaged).error().message(),
            "entry 3: the entry of a recording is damaged: its checksum differs");
}

TEST(Recording, APathThatCannotBeWritten) {
  const auto layer = make_record_layer(make_interp_backend(), {"/nowhere/at/all", true});
  ASSERT_FALSE(layer);
  EXPECT_EQ(layer.error().message(), "cannot write /nowhere/at/all: No such file or directory");
}

}  // namespace
}  // namespace tenon::backend
