// Devices whose copies, launches and events are wrong: `validate` says which, and where.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>
#include <thread>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/base/process/sanitizers.h"

namespace tenon::backend {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

struct CopyRequest {
  MemoryAddress to;
  MemoryAddress from;
  int64_t bytes = 0;
};

// How a device is wrong, as set by a test.
struct Wrongs {
  std::function<void(CopyRequest& copy)> copies;  // Changes a copy; one of 0 bytes is not made.
  std::pair<int64_t, int64_t> hole;  // These bytes of a copy of a megabyte are not copied.
  std::function<void(MemoryAddress& to, Box& box)> boxes;  // Changes a copy of a box.
  int64_t call_bytes = 16;                                 // So many bytes of 16 a call writes.
  bool launches_nothing = false;
  bool next_launch_fails = false;  // It does nothing, and its event tells an error.
  int64_t writes_at = 0;  // A launch writes 4 bytes more, so far from its result's begin; 0: none.
  bool is_early = false;  // Events are done before the work, which comes 30 ms later.
};

class WrongDevice final : public ForwardingDevice {
 public:
  WrongDevice(std::unique_ptr<Device> inner, Wrongs& wrongs)
      : ForwardingDevice(std::move(inner)), wrongs_(wrongs) {}
  ~WrongDevice() override {
    for (std::thread& each : late_) each.join();
  }

  Status copy(uint32_t queue, const MemoryAddress& to, const MemoryAddress& from,
              int64_t bytes) override {
    CopyRequest copy = {to, from, bytes};
    if (wrongs_.copies) wrongs_.copies(copy);
    if (copy.bytes == 0) return {};
    if (copy.bytes == kMegabyte) return copy_around_hole(queue, copy);
    return give([this, queue, copy] {
      return ForwardingDevice::copy(queue, copy.to, copy.from, copy.bytes);
    });
  }
  Status copy_box(uint32_t queue, const MemoryAddress& to, const MemoryAddress& from,
                  const Box& box) override {
    MemoryAddress place = to;
    Box changed = box;
    if (wrongs_.boxes) wrongs_.boxes(place, changed);
    return ForwardingDevice::copy_box(queue, place, from, changed);
  }
  Status call(uint32_t queue, const LibraryCallLaunch& call) override {
    static const std::array<std::byte, 16> result = {};
    if (wrongs_.call_bytes == 0) return {};
    TENON_TRY(ForwardingDevice::copy(queue, call.workspace, MemoryAddress::of_host(result.data()),
                                     std::ssize(result)));
    return ForwardingDevice::copy(queue, call.results[0], MemoryAddress::of_host(result.data()),
                                  wrongs_.call_bytes);
  }
  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    if (wrongs_.next_launch_fails) {
      wrongs_.next_launch_fails = false;
      has_failed_ = true;
      return {};
    }
    if (wrongs_.launches_nothing) return {};
    const std::vector<MemoryAddress> places(launch.buffers.begin(), launch.buffers.end());
    TENON_TRY(give([this, queue, launch, places] {
      KernelLaunch later = launch;
      later.buffers = places;
      return ForwardingDevice::launch(queue, later);
    }));
    if (wrongs_.writes_at == 0) return {};
    static const std::array<std::byte, 4> more = {};
    MemoryAddress place = launch.buffers[1];
    place.offset += wrongs_.writes_at;
    return ForwardingDevice::copy(queue, place, MemoryAddress::of_host(more.data()), 4);
  }
  Status fill(uint32_t queue, const MemoryAddress& to, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const std::vector<std::byte> own(pattern.begin(), pattern.end());
    return give(
        [this, queue, to, bytes, own] { return ForwardingDevice::fill(queue, to, bytes, own); });
  }
  Result<EventHandle> record(uint32_t queue) override {
    if (wrongs_.is_early) {
      late_.emplace_back([work = std::exchange(waiting_, {})] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        for (const auto& each : work) EXPECT_TRUE(each().ok());
      });
    }
    const Result<EventHandle> event = ForwardingDevice::record(queue);
    if (std::exchange(has_failed_, false) && event) failed_.insert(*event);
    return event;
  }
  Result<bool> await(EventHandle event, int64_t timeout) override {
    Result<bool> done = ForwardingDevice::await(event, timeout);
    if (done && *done && failed_.contains(event)) return internal_error("the launch failed");
    return done;
  }

 private:
  Status copy_around_hole(uint32_t queue, CopyRequest copy) {
    const auto [begin, end] = wrongs_.hole;
    if (begin > 0) TENON_TRY(ForwardingDevice::copy(queue, copy.to, copy.from, begin));
    if (end == copy.bytes) return {};
    copy.to.offset += end;
    copy.from.host += end;
    return ForwardingDevice::copy(queue, copy.to, copy.from, copy.bytes - end);
  }
  Status give(std::function<Status()> work) {
    if (!wrongs_.is_early) return work();
    waiting_.push_back(std::move(work));
    return {};
  }

  Wrongs& wrongs_;
  bool has_failed_ = false;  // Since the last record.
  std::set<EventHandle> failed_;
  std::vector<std::function<Status()>> waiting_;
  std::vector<std::thread> late_;
};

class WrongBackend final : public ForwardingBackend {
 public:
  explicit WrongBackend(Wrongs& wrongs)
      : ForwardingBackend(make_interpreter_backend()), wrongs_(wrongs) {}
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<WrongDevice>(ForwardingBackend::open(index).value(), wrongs_);
  }
  Result<LibraryCallPlan> plan(const TargetInfo&, const LibraryCallSite& site) override {
    return LibraryCallPlan{site.operands[0].to_string(), 16, {0}, 0};
  }

 private:
  Wrongs& wrongs_;
};

class FaultyWork : public OnDevice {
 protected:
  FaultyWork() {
    open(make_validate_layer(std::make_shared<WrongBackend>(wrongs)), 64, 128);
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::byte>(i + 1);
  }
  ~FaultyWork() override { device = nullptr; }  // Before what it refers to.

  MemoryAddress of_host() { return MemoryAddress::of_host(host.data()); }
  // The words of the layer for a copy to the device, of a copy to the host, of a launch.
  std::string upload() {
    EXPECT_EQ(device->copy(0, {x, 16, nullptr}, of_host(), 16).message(), "");
    return finish(*device).message();
  }
  std::string download() {
    EXPECT_EQ(device->copy(0, of_host(), {x, 16, nullptr}, 16).message(), "");
    return finish(*device).message();
  }
  std::string work() {
    EXPECT_EQ(launch({{x, 0, nullptr}, {y, 64, nullptr}}).message(), "");
    return finish(*device).message();
  }
  // Changes copies of the host only, not those of the layer.
  void wrong_copies_of_host(const std::function<void(CopyRequest&)>& change) {
    wrongs.copies = [this, change](CopyRequest& copy) {
      const auto is_mine = [&](const MemoryAddress& place) { return place.host == host.data(); };
      if (is_mine(copy.to) || is_mine(copy.from)) change(copy);
    };
  }
  std::string to_device() const {
    return fmt::format("validate: B20: a copy of 16 bytes from the host to 16 of memory {} ", x);
  }
  std::string to_host() const {
    return fmt::format("validate: B20: a copy of 16 bytes from 16 of memory {} to the host ", x);
  }

  Wrongs wrongs;
  std::array<std::byte, 64> host = {};
};

TEST_F(FaultyWork, ARightDevice) {
  EXPECT_EQ(upload(), "");
  EXPECT_EQ(work(), "");
  EXPECT_EQ(download(), "");
  EXPECT_EQ(host[15], std::byte{16});
}

TEST_F(FaultyWork, CopiesThatDoNothing) {
  const auto nothing = [](CopyRequest& copy) { copy.bytes = 0; };
  const std::string counts = "(of 16 bytes 16 are as they were, the first at offset 0)";
  wrong_copies_of_host(nothing);
  EXPECT_EQ(upload(), to_device() + "wrote nothing " + counts);
  EXPECT_EQ(download(), to_host() + "wrote nothing " + counts);
}

TEST_F(FaultyWork, CopiesToTheDeviceThatAllDoNothing) {
  wrongs.copies = [](CopyRequest& copy) { copy.bytes = copy.from.on_host() ? 0 : copy.bytes; };
  EXPECT_EQ(upload(),
            to_device() + "wrote nothing (of 16 bytes 16 are as they were, the first at offset 0)");
}

TEST_F(FaultyWork, CopiesToTheHostThatAllDoNothing) {
  wrongs.copies = [](CopyRequest& copy) { copy.bytes = copy.to.on_host() ? 0 : copy.bytes; };
  EXPECT_EQ(download(), to_host() + "and another one of the same bytes wrote nothing");
  EXPECT_EQ(upload(),
            fmt::format("validate: B20: copies to the host, of the bytes around a copy of "
                        "16 bytes from the host to 16 of memory {}, wrote nothing",
                        x));
}

TEST_F(FaultyWork, CopiesThatDoHalf) {
  wrong_copies_of_host([](CopyRequest& copy) { copy.bytes /= 2; });
  const std::string part =
      "wrote only a part (of 16 bytes 8 are as they were, the first at offset 8)";
  EXPECT_EQ(upload(), to_device() + part);
  EXPECT_EQ(download(), to_host() + part);
}

TEST_F(FaultyWork, CopiesToAWrongPlace) {
  wrong_copies_of_host([](CopyRequest& copy) { copy.to.offset += copy.to.on_host() ? 0 : 20; });
  EXPECT_EQ(upload(),
            to_device() +
                "went to a wrong place: 16 bytes were written out of bounds, the first at "
                "20 of its destination, which has 16 bytes: 4 bytes behind its end; it "
                "wrote nothing (of 16 bytes 16 are as they were, the first at offset 0)");
}

TEST_F(FaultyWork, CopiesFromAWrongPlace) {
  ASSERT_EQ(upload(), "");
  ASSERT_EQ(work(), "");
  wrong_copies_of_host([](CopyRequest& copy) { copy.from.offset += copy.from.on_host() ? 0 : 4; });
  const std::string text = download();
  EXPECT_TRUE(text.starts_with(to_host() + "wrote other bytes (of 16 bytes 16 are wrong, "))
      << text;
}

TEST_F(FaultyWork, LongCopiesAreLookedAtInParts) {
  const MemoryHandle large = device->allocate(0, kMegabyte).value();
  const std::vector<std::byte> from(kMegabyte, std::byte{1});
  const auto copy_without = [&](int64_t begin, int64_t end) {
    wrongs.hole = {begin, end};
    const MemoryAddress source = MemoryAddress::of_host(from.data());
    EXPECT_EQ(device->copy(0, {large, 0, nullptr}, source, kMegabyte).message(), "");
    return finish(*device).message();
  };
  const std::string part = fmt::format(
      "validate: B20: a copy of 1000000 bytes from the host to 0 of memory {} wrote only a part "
      "(of ",
      large);
  EXPECT_EQ(copy_without(500'000, 500'000), "");
  // Nine of the other bytes are equal to what the layer paints.
  EXPECT_EQ(copy_without(96, 2'096),
            part + "its first 4096 bytes 2009 are as they were, the first at offset 96)");
  EXPECT_EQ(copy_without(400'000, 500'000),
            part + "the 1024 bytes looked at 1024 are as they were, the first at offset 464063)");
  EXPECT_EQ(copy_without(999'990, kMegabyte),
            part + "its last 4096 bytes 10 are as they were, the first at offset 999990)");
}

TEST_F(FaultyWork, Boxes) {
  // The diagonal halves of two rows change places.
  const Box box = {4, {2, 2}, {16, 4}, {4, 8}};
  std::array<std::byte, 64> seen = {};
  const auto to_device = [&] {
    EXPECT_EQ(device->copy_box(0, {y, 32, nullptr}, {x, 16, nullptr}, box).message(), "");
    return finish(*device).message();
  };
  const auto to_host = [&] {
    const MemoryAddress to = MemoryAddress::of_host(seen.data());
    EXPECT_EQ(device->copy_box(0, to, {x, 16, nullptr}, box).message(), "");
    return finish(*device).message();
  };
  ASSERT_EQ(upload(), "");
  EXPECT_EQ(to_device(), "");
  EXPECT_EQ(to_host(), "");
  EXPECT_EQ(seen[16], host[4]);
  EXPECT_EQ(seen[8], std::byte{0});  // What lies between is as it was.
  const std::string words =
      fmt::format("validate: B20: a copy of a box of 2x2 from 16 of memory {} ", x);
  wrongs.boxes = [](MemoryAddress&, Box& given) { given.sizes[1] = 1; };
  EXPECT_EQ(to_host(), words +
                           "to the host wrote only a part (of 16 bytes 8 are as they were, the "
                           "first at offset 4)");
  wrongs.boxes = [](MemoryAddress& to, Box&) { to.offset += to.on_host() ? 0 : 8; };
  EXPECT_EQ(to_device(),
            words + fmt::format("to 32 of memory {} wrote other bytes (of 24 bytes 8 are "
                                "wrong, the first at offset 8)",
                                y));
}

TEST_F(FaultyWork, CallsThatWriteNothingOrHalf) {
  const Shape four(ElementType::kF32, {4});
  const program::LibraryCall sort = program::Sort{};
  const LibraryCallPlan plan =
      backend->plan(target, {sort, {&four, 1}, {&four, 1}, {false}}).value();
  const MemoryAddress operand = {x, 0, nullptr};
  const MemoryAddress result = {y, 64, nullptr};
  const auto call = [&] {
    LibraryCallLaunch work;
    work.plan = plan.plan;
    work.operands = {&operand, 1};
    work.results = {&result, 1};
    work.workspace = {y, 0, nullptr};  // Beside the result.
    work.label = "sort at a.mlir:3";
    EXPECT_EQ(device->call(0, work).message(), "");
    return finish(*device).message();
  };
  const std::string to_result = fmt::format(" to result 0 at 64 of memory {} (of 16 bytes ", y);
  EXPECT_EQ(call(), "");
  wrongs.call_bytes = 8;
  EXPECT_EQ(call(), "");
  wrongs.call_bytes = 0;
  EXPECT_EQ(call(), "validate: B21: the call sort at a.mlir:3 wrote nothing" + to_result +
                        "16 are as they were, the first at offset 0)");
  wrongs.call_bytes = 16;
}

TEST_F(FaultyWork, LaunchesThatWriteNothing) {
  ASSERT_EQ(upload(), "");
  ASSERT_EQ(work(), "");
  ASSERT_EQ(work(), "");  // The same numbers again are not nothing.
  wrongs.launches_nothing = true;
  EXPECT_EQ(work(),
            fmt::format("validate: B21: @k wrote nothing to buffer 1 at 64 of memory {} (of "
                        "16 bytes 16 are as they were, the first at offset 0)",
                        y));
}

TEST_F(FaultyWork, LaunchesThatWriteOutOfBounds) {
  ASSERT_EQ(upload(), "");
  const std::string buffer = fmt::format("of buffer 1 at 64 of memory {}, which has 16 bytes: ", y);
  wrongs.writes_at = 24;
  EXPECT_EQ(work(), "validate: B21: @k: 4 bytes were written out of bounds, the first at 24 " +
                        buffer + "8 bytes behind its end");
  wrongs.writes_at = -8;
  EXPECT_EQ(work(), "validate: B21: @k: 4 bytes were written out of bounds, the first at -8 " +
                        buffer + "8 bytes before its begin");
}

// Work in a queue is done in order (B20), so the host's bytes may be used again at once.
TEST_F(FaultyWork, HostBytesThatQueuedWorkReadsAreNotPainted) {
  if (TENON_TSAN == 1) GTEST_SKIP() << "the device is wrong on purpose: its work races";
  wrongs.is_early = true;  // Copies come late: the device must find the bytes as they were.
  const MemoryAddress on_device = {x, 16, nullptr};
  EXPECT_EQ(device->copy(0, on_device, of_host(), 16).message(), "");
  const std::array<std::byte, 64> as_given = host;
  EXPECT_EQ(device->copy(0, of_host(), {x, 32, nullptr}, 16).message(), "");
  EXPECT_EQ(host, as_given);
  (void)finish(*device);
  device = nullptr;  // Ends the late copies.
  EXPECT_NE(host, as_given);
}

TEST_F(FaultyWork, HostBytesThatQueuedWorkWritesAreNotKnown) {
  ASSERT_EQ(upload(), "");
  host = {};
  const std::array<std::byte, 64> none = host;
  int uploads = 0;
  wrongs.copies = [&](CopyRequest& copy) { uploads += copy.from.host == host.data() ? 1 : 0; };
  EXPECT_EQ(device->copy(0, of_host(), {x, 16, nullptr}, 16).message(), "");
  EXPECT_EQ(device->copy(0, {x, 32, nullptr}, of_host(), 16).message(), "");
  EXPECT_EQ(finish(*device).message(), "");
  EXPECT_EQ(uploads, 1);
  EXPECT_NE(host, none);
  host = {};
  EXPECT_EQ(device->copy(0, of_host(), {x, 32, nullptr}, 16).message(), "");
  EXPECT_EQ(finish(*device).message(), "");
  EXPECT_EQ(host[15], std::byte{16});
}

// The host awaits events in any order; an error is told by its own event alone.
TEST_F(FaultyWork, EventsAwaitedInReverseOrder) {
  ASSERT_EQ(upload(), "");
  const auto event_of_launch = [&] {
    EXPECT_EQ(launch({{x, 0, nullptr}, {y, 64, nullptr}}).message(), "");
    return device->record(0).value();
  };
  wrongs.next_launch_fails = true;
  const EventHandle first = event_of_launch();
  EXPECT_FALSE(wrongs.next_launch_fails);
  const EventHandle second = event_of_launch();
  EXPECT_EQ(device->await(second, -1), Result<bool>(true));
  EXPECT_EQ(device->await(first, -1).error().message(), "the launch failed");
  // Work of an event that is OK is judged before the host awaits that event.
  wrongs.launches_nothing = true;
  const EventHandle third = event_of_launch();
  wrongs.launches_nothing = false;
  const EventHandle fourth = event_of_launch();
  EXPECT_TRUE(
      device->await(fourth, -1).error().message().starts_with("validate: B21: @k wrote nothing"));
  EXPECT_EQ(device->await(third, -1), Result<bool>(true));
  for (const EventHandle each : {first, second, third, fourth}) device->release(each);
}

// Late bytes are written to memory that the layer keeps for it.
TEST_F(FaultyWork, EventsThatAreEarly) {
  if (TENON_TSAN == 1) GTEST_SKIP() << "the device is wrong on purpose: its work races";
  ASSERT_EQ(upload(), "");
  wrongs.is_early = true;
  const std::string text = upload();
  EXPECT_TRUE(
      text.starts_with("validate: B23: an event was done before the work: a copy of 16 "
                       "bytes from the host to 16 of memory "))
      << text;
  EXPECT_TRUE(text.ends_with(" ms later")) << text;
  EXPECT_NE(work(), "");
}

}  // namespace
}  // namespace tenon::backend
