// Checks of devices, their memory, copies, and memory that host and device share (B9, B11, B16 to
// B19, B28, B29).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "conformance/cases/interface/seam_checks.h"
#include "conformance/cases/interface/seam_numbers.h"

namespace tenon::conformance::seam_checks {

using backend::Box;
using backend::EventHandle;
using backend::MemoryHandle;

// --- Devices

Status devices_are_stable(SeamDevice& d) {
  TENON_ASSIGN(const auto first, d.backend().devices());
  TENON_ASSIGN(const auto second, d.backend().devices());
  TENON_TRY(expect(first.size() == second.size(), "B9", "the number of devices changes"));
  for (size_t i = 0; i < first.size(); ++i) {
    TENON_TRY(expect(first[i].name == second[i].name, "B9", "a device's name changes"));
    TENON_TRY(expect(to_string(first[i].target) == to_string(second[i].target), "B9",
                     "a device's TargetInfo changes"));
  }
  return {};
}

Status target_is_possible(SeamDevice& d) {
  TENON_TRY(check(d.target()));
  TENON_TRY(expect(!d.target().name.empty(), "B9", "the target has no name"));
  return expect(!d.backend().name().empty(), "B9", "the backend has no name");
}

Status devices_from_threads(SeamDevice& d) {
  std::atomic<int> failed = 0;
  TENON_ASSIGN(const auto expected, d.backend().devices());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto got = d.backend().devices();
        if (!got || got->size() != expected.size()) ++failed;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return expect(failed == 0, "B7", "devices fails when several threads call it");
}

Status opens_again(SeamDevice& d) {
  for (int i = 0; i < 5; ++i) {
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(1024));
    const Bytes bytes = test_bytes(1024, static_cast<uint64_t>(i));
    TENON_TRY(d.upload({memory}, bytes));
    d.close();  // Frees the memory too (B11).
    TENON_TRY(d.reopen());
  }
  return {};
}

Status closes_with_work(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  for (int i = 0; i < 20; ++i) TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
  d.close();
  TENON_TRY(d.reopen());
  TENON_ASSIGN(const auto again, d.load_text({kAddOne}));
  TENON_ASSIGN(const DeviceArrays b, arrays(d, counting()));
  TENON_TRY(d.launch(again.module, {{b.x}, {b.y}}));
  TENON_ASSIGN(const Bytes got, d.download({b.y}, kBytes));
  return expect_bytes("B11", got, bytes_of(counting(1)));
}

// --- Memory

Status allocates_each_size(SeamDevice& d) {
  const int64_t unit = d.alignment();
  for (const int64_t bytes : {int64_t{1}, int64_t{3}, unit - 1, unit, unit + 1, int64_t{4096},
                              int64_t{4097}, int64_t{1} << 20, (int64_t{1} << 20) + 1}) {
    if (bytes <= 0) continue;
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(bytes));
    TENON_TRY(expect(memory != 0, "B10", "allocate returns the handle 0"));
    const Bytes sent = test_bytes(bytes, static_cast<uint64_t>(bytes));
    TENON_TRY(d.upload({memory}, sent));
    TENON_ASSIGN(const Bytes got, d.download({memory}, bytes));
    TENON_TRY(expect_bytes(fmt::format("B16, {} bytes", bytes), got, sent));
    d.device().free(memory);
  }
  return {};
}

Status allocations_are_apart(SeamDevice& d) {
  constexpr int kBlocks = 40;
  std::vector<MemoryHandle> blocks;
  std::vector<Bytes> sent;
  for (int i = 0; i < kBlocks; ++i) {
    const int64_t bytes = 100 + 37 * i;
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(bytes));
    for (const MemoryHandle other : blocks)
      TENON_TRY(expect(memory != other, "B10", "two allocations have one handle"));
    blocks.push_back(memory);
    sent.push_back(test_bytes(bytes, static_cast<uint64_t>(i)));
    TENON_TRY(d.upload({memory}, sent.back()));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    TENON_ASSIGN(const Bytes got, d.download({blocks[i]}, static_cast<int64_t>(sent[i].size())));
    TENON_TRY(expect_bytes("B16, contents of one of 40 blocks", got, sent[i]));
  }
  for (const MemoryHandle each : blocks) d.device().free(each);
  return {};
}

Status too_large_is_exhausted(SeamDevice& d) {
  const auto memory = d.allocate(int64_t{1} << 60);
  TENON_TRY(expect(!memory.has_value(), "B16", "2^60 bytes were allocated"));
  TENON_TRY(expect(memory.error().code() == ErrorCode::kResourceExhausted, "B16",
                   "no room has another code than TENON_RESOURCE_EXHAUSTED"));
  // B4: it has changed nothing.
  TENON_ASSIGN(const MemoryHandle small, d.allocate(64));
  d.device().free(small);
  return {};
}

Status frees_what_it_allocates(SeamDevice& d) {
  const int64_t room = d.target().spaces[0].bytes;
  const int64_t bytes = room > 0 ? std::min(room / 4, int64_t{64} << 20) : int64_t{64} << 20;
  // Far more than the device has, were it not freed; at most 4 GiB where the size is not stated.
  const int64_t times = std::min<int64_t>(room > 0 ? 3 * (room / bytes) + 3 : 64, 200);
  for (int64_t i = 0; i < times; ++i) {
    const auto memory = d.allocate(bytes);
    if (!memory)
      return internal_error("B16: after {} times {} bytes, each freed: {}", i, bytes,
                            memory.error().to_string());
    d.device().free(*memory);
  }
  return {};
}

Status spaces_allocate(SeamDevice& d) {
  for (uint32_t space = 0; space < d.target().spaces.size(); ++space) {
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(5000, space));
    const Bytes sent = test_bytes(5000, space);
    TENON_TRY(d.upload({memory}, sent));
    TENON_ASSIGN(const Bytes got, d.download({memory}, 5000));
    TENON_TRY(expect_bytes(fmt::format("B16, space {}", space), got, sent));
    d.device().free(memory);
  }
  return {};
}

// --- Copies

Status copies_at_offsets(SeamDevice& d) {
  constexpr int64_t kSize = 9000;
  TENON_ASSIGN(const MemoryHandle memory, d.allocate(kSize));
  Bytes expected = test_bytes(kSize, 1);
  TENON_TRY(d.upload({memory}, expected));
  for (const int64_t offset : {1, 3, 64, 100, 4095}) {
    for (const int64_t bytes : {1, 2, 3, 63, 64, 65, 4097}) {
      const Bytes part = test_bytes(bytes, static_cast<uint64_t>(offset * 10000 + bytes));
      TENON_TRY(d.upload({memory, offset}, part));
      std::ranges::copy(part, expected.begin() + offset);
      TENON_ASSIGN(const Bytes back, d.download({memory, offset}, bytes));
      TENON_TRY(expect_bytes(fmt::format("B17, {} bytes at {}", bytes, offset), back, part));
    }
  }
  TENON_ASSIGN(const Bytes got, d.download({memory}, kSize));
  return expect_bytes("B17, bytes around a copy", got, expected);
}

Status copies_on_the_device(SeamDevice& d) {
  constexpr int64_t kSize = 70001;
  TENON_ASSIGN(const MemoryHandle from, d.allocate(kSize));
  TENON_ASSIGN(const MemoryHandle to, d.allocate(kSize));
  const Bytes sent = test_bytes(kSize, 5);
  TENON_TRY(d.upload({from}, sent));
  Bytes expected(kSize, std::byte{7});
  TENON_TRY(d.upload({to}, expected));
  TENON_TRY(d.device().copy(0, {to, 33}, {from, 5}, 60001));
  std::copy_n(sent.begin() + 5, 60001, expected.begin() + 33);
  TENON_ASSIGN(const Bytes got, d.download({to}, kSize));
  TENON_TRY(expect_bytes("B19, a copy on the device", got, expected));
  // Within one allocation, two ends that do not overlap.
  TENON_TRY(d.device().copy(0, {to, 0}, {to, 40000}, 20000));
  std::copy_n(expected.begin() + 40000, 20000, expected.begin());
  TENON_ASSIGN(const Bytes moved, d.download({to}, kSize));
  return expect_bytes("B19, a copy within one allocation", moved, expected);
}

Status source_may_change_after_event(SeamDevice& d) {
  TENON_ASSIGN(const MemoryHandle memory, d.allocate(100000));
  for (int i = 0; i < 10; ++i) {
    Bytes source = test_bytes(100000, static_cast<uint64_t>(i));
    const Bytes sent = source;
    TENON_TRY(d.upload({memory}, source));
    std::ranges::fill(source, std::byte{0xEE});
    TENON_ASSIGN(const Bytes got, d.download({memory}, 100000));
    TENON_TRY(expect_bytes("B19, a source that changes after its event", got, sent));
  }
  return {};
}

Status fills(SeamDevice& d) {
  constexpr int64_t kSize = 5000;
  TENON_ASSIGN(const MemoryHandle memory, d.allocate(kSize));
  for (const int64_t width : {1, 2, 4, 8}) {
    for (const int64_t count : {1, 3, 100, 500}) {
      Bytes expected(kSize, std::byte{9});
      TENON_TRY(d.upload({memory}, expected));
      const Bytes pattern = test_bytes(width, static_cast<uint64_t>(width));
      Status status = d.device().fill(0, {memory, 64}, width * count, pattern);
      if (status.code() == ErrorCode::kUnimplemented) return {};  // It is optional.
      TENON_TRY(status);
      for (int64_t i = 0; i < count; ++i)
        std::ranges::copy(pattern, expected.begin() + 64 + i * width);
      TENON_ASSIGN(const Bytes got, d.download({memory}, kSize));
      TENON_TRY(expect_bytes(fmt::format("fill, {} times {} bytes", count, width), got, expected));
    }
  }
  return {};
}

Status copies_boxes(SeamDevice& d) {
  constexpr int64_t kSize = 4096;
  TENON_ASSIGN(const MemoryHandle from, d.allocate(kSize));
  TENON_ASSIGN(const MemoryHandle to, d.allocate(kSize));
  const Bytes sent = test_bytes(kSize, 3);
  TENON_TRY(d.upload({from}, sent));
  const std::vector<Box> boxes = {
      {4, {5, 7}, {28, 4}, {64, 4}},  // Rows out of a wider array.
      {4, {5, 7}, {4, 20}, {28, 4}},  // A transpose.
      {1, {3, 4, 5}, {20, 5, 1}, {1, 3, 12}},
      {8,
       {6},
       {
           -8,
       },
       {8}},                                     // Reversed: the destination begins at its end.
      {2, {4, 3}, {6, 2}, {0, 2}},               // One row, four times.
      {4, {3, 2, 5}, {80, 20, 4}, {96, 32, 4}},  // Slices of rows, with gaps between both.
  };
  for (const Box& box : boxes) {
    Bytes expected(kSize, std::byte{1});
    TENON_TRY(d.upload({to}, expected));
    constexpr int64_t kStart = 256;
    Status status = d.device().copy_box(0, {to, kStart}, {from, 128}, box);
    if (status.code() == ErrorCode::kUnimplemented) continue;  // The host arranges such arrays.
    TENON_TRY(status);
    backend::copy_box(expected.data() + kStart, sent.data() + 128, box);
    TENON_ASSIGN(const Bytes got, d.download({to}, kSize));
    TENON_TRY(
        expect_bytes(fmt::format("copy_box of {} dimensions", box.sizes.size()), got, expected));
  }
  return {};
}

// --- Memory that host and device share

Status imports_host_memory(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kAddOne}));
  constexpr size_t kPage = 4096;
  Bytes room(kBytes + 2 * kPage);
  auto* const address = room.data() + (kPage - reinterpret_cast<uintptr_t>(room.data()) % kPage);
  const Numbers numbers = counting(17);
  std::memcpy(address, numbers.data(), kBytes);
  const auto memory = d.device().import_memory(0, {address, kBytes});
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  MemoryHandle x = a.x;
  if (memory) {
    x = *memory;
  } else {
    TENON_TRY(expect(memory.error().code() == ErrorCode::kUnimplemented ||
                         memory.error().code() == ErrorCode::kInvalidArgument ||
                         memory.error().code() == ErrorCode::kResourceExhausted,
                     "B28", "import_memory declines with another code"));
    TENON_TRY(d.upload({x}, bytes_of(numbers)));
  }
  TENON_TRY(d.launch(loaded.module, {{x}, {a.y}}));
  TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
  TENON_TRY(expect_bytes("B28, work on imported memory", got, bytes_of(counting(18))));
  if (memory) d.device().free(*memory);
  return expect_bytes("B28, the host's bytes", {address, kBytes}, bytes_of(numbers));
}

Status maps_memory(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kAddOne}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting(2)));
  for (uint32_t space = 0; space < d.target().spaces.size(); ++space) {
    if (!d.target().spaces[space].host_visible) continue;
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(kBytes, space));
    TENON_ASSIGN(std::byte* const seen, d.device().map(memory));
    TENON_TRY(d.upload({memory}, bytes_of(counting(space))));
    TENON_TRY(expect_bytes("B29, a copy through the pointer", {seen, kBytes},
                           bytes_of(counting(static_cast<int32_t>(space)))));
    if (!d.target().spaces[space].reachable) continue;
    TENON_TRY(d.launch(loaded.module, {{a.x}, {memory}}));
    TENON_TRY(d.finish());
    TENON_TRY(expect_bytes("B29, a kernel's result through the pointer", {seen, kBytes},
                           bytes_of(counting(3))));
    if (!d.target().spaces[space].host_writable) continue;
    std::ranges::copy(bytes_of(counting(7)), seen);
    TENON_TRY(d.launch(loaded.module, {{memory}, {a.y}}));
    TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
    TENON_TRY(expect_bytes("B29, a kernel on what the host wrote", got, bytes_of(counting(8))));
  }
  TENON_TRY(d.launch(loaded.module, {{a.x}, {a.y}}));
  return d.finish();
}

Status times_events(SeamDevice& d) {
  TENON_ASSIGN(const EventHandle first, d.device().record(0));
  TENON_ASSIGN(const EventHandle second, d.device().record(0));
  TENON_TRY(d.finish());
  const auto a = d.device().event_times(first);
  const auto b = d.device().event_times(second);
  d.device().release(first);
  d.device().release(second);
  if (!a && a.error().code() == ErrorCode::kUnimplemented) return {};  // It is optional.
  if (!a) return a.error();
  if (!b) return b.error();
  TENON_TRY(expect(b->end >= a->end, "event_time", "a later event has an earlier time"));
  return expect(b->start.value_or(b->end) <= b->end, "event_start",
                "the work of an event begins behind its end");
}

Status states_statistics(SeamDevice& d) {
  const auto statistics = d.device().statistics();
  if (!statistics) {
    return expect(statistics.error().code() == ErrorCode::kUnimplemented, "statistics",
                  "it fails with another code than TENON_UNIMPLEMENTED");
  }
  for (const backend::Statistic& each : *statistics)
    TENON_TRY(expect(!each.name.empty(), "statistics", "a statistic has no name"));
  return {};
}

}  // namespace tenon::conformance::seam_checks
