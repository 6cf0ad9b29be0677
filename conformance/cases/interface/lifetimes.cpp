// Rules of the interface about what ends when: memory that is freed or closed, arguments that the
// host takes back, work that the host ends, errors of events.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/cases/interface/seam_device.h"

namespace tenon::conformance {
namespace {

using backend::EventHandle;
using backend::MemoryAddress;
using backend::MemoryHandle;

Status free_ends_one_handle(SeamDevice& d) {
  constexpr int64_t kSize = 3000;
  std::vector<MemoryHandle> blocks;
  for (uint64_t i = 0; i < 6; ++i) {
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(kSize));
    blocks.push_back(memory);
    TENON_TRY(d.upload({memory}, test_bytes(kSize, i)));
  }
  for (const size_t i : {1, 4, 0}) d.device().free(blocks[i]);
  TENON_ASSIGN(const MemoryHandle another, d.allocate(kSize));
  TENON_TRY(d.upload({another}, test_bytes(kSize, 77)));
  for (const size_t i : {2, 3, 5}) {
    TENON_ASSIGN(const Bytes got, d.download({blocks[i]}, kSize));
    TENON_TRY(expect_bytes(fmt::format("B10, block {} after others were freed", i), got,
                           test_bytes(kSize, i)));
  }
  return {};
}

Status close_frees_memory(SeamDevice& d) {
  const int64_t room = d.target().spaces[0].bytes;
  const int64_t bytes = room > 0 ? std::min(room / 5, int64_t{64} << 20) : int64_t{64} << 20;
  const int64_t rounds = room > 0 ? std::min<int64_t>(room / (4 * bytes) + 2, 20) : 6;
  for (int64_t i = 0; i < rounds; ++i) {
    for (int k = 0; k < 4; ++k) {
      const auto memory = d.allocate(bytes);
      if (!memory)
        return internal_error("B11: {} bytes after {} times the device was closed with memory: {}",
                              bytes, i, memory.error().to_string());
    }
    d.close();
    TENON_TRY(d.reopen());
  }
  return {};
}

constexpr const char* kAddScalar =
    "kernel @add(%x: in s32[64], %y: out s32[64], %a: scalar s32, %b: scalar s32) index s32 "
    "grid() {\n  lanes(%j: 64) {\n    %v = load %x[%j] : s32\n    %w = mul %v, %b : s32\n"
    "    %u = sub %w, %a : s32\n    store %u, %y[%j] : s32\n  }\n}\n";

// Scalars, buffers and their arrays belong to the host again when launch returns.
Status arguments_end_with_the_call(SeamDevice& d) {
  constexpr int kLaunches = 12;
  TENON_ASSIGN(const auto loaded, d.load_text({kAddScalar}));
  TENON_ASSIGN(const MemoryHandle x, d.allocate(256));
  std::vector<int32_t> numbers(64);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(3 * i);
  TENON_TRY(d.upload({x}, std::as_bytes(std::span(numbers))));
  std::vector<MemoryHandle> results;
  for (int32_t i = 0; i < kLaunches; ++i) {
    TENON_ASSIGN(const MemoryHandle y, d.allocate(256));
    results.push_back(y);
    std::vector<MemoryAddress> buffers = {{x}, {y}};
    std::vector<uint64_t> scalars = {static_cast<uint64_t>(100000 * i), static_cast<uint64_t>(i)};
    backend::KernelLaunch work;
    work.module = loaded.module;
    work.buffers = buffers;
    work.scalars = scalars;
    TENON_TRY(d.device().launch(0, work));
    std::ranges::fill(buffers, MemoryAddress{});
    std::ranges::fill(scalars, ~uint64_t{0});
  }
  for (int32_t i = 0; i < kLaunches; ++i) {
    std::vector<int32_t> expected = numbers;
    for (int32_t& each : expected) each = each * i - 100000 * i;
    TENON_ASSIGN(const Bytes got, d.download({results[static_cast<size_t>(i)]}, 256));
    TENON_TRY(expect_bytes(fmt::format("B21, launch {} of {}", i, kLaunches), got,
                           std::as_bytes(std::span(expected))));
  }
  return {};
}

// Some 10^5 turns, which `stop` may end.
constexpr const char* kTurns =
    "kernel @turns(%y: out s32[4]) index s32 grid() {\n  lanes(%j: 4) {\n"
    "    %n = while(%s = 0) : s32 {\n      %go = lt %s, 30000 : s32\n      yield %go\n"
    "    } do(%s) {\n      %t = add %s, 1 : s32\n      yield %t\n    }\n"
    "    store %n, %y[%j] : s32\n  }\n}\n";

// Work that is stopped ends with an error, or with its whole result; later work has neither.
Status stopped_work_is_an_error(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kTurns}));
  const std::vector<int32_t> whole(4, 30000);
  TENON_ASSIGN(const MemoryHandle y, d.allocate(16));
  TENON_TRY(d.upload({y}, Bytes(16, std::byte{0})));
  const std::vector<MemoryAddress> buffers = {{y}};
  const volatile uint32_t stop = 1;
  backend::KernelLaunch work;
  work.module = loaded.module;
  work.buffers = buffers;
  work.stop = &stop;
  TENON_TRY(d.device().launch(0, work));
  TENON_ASSIGN(const EventHandle event, d.device().record(0));
  const auto done = d.device().await(event, -1);
  const auto again = d.device().await(event, 0);
  d.device().release(event);
  TENON_TRY(
      expect(done.has_value() == again.has_value(), "B25", "the answer for an event changes"));
  if (done) {
    TENON_ASSIGN(const Bytes got, d.download({y}, 16));
    TENON_TRY(expect_bytes("B27, work that was not stopped", got, std::as_bytes(std::span(whole))));
  } else {
    TENON_TRY(expect(done.error().code() == ErrorCode::kCancelled, "B27",
                     "stopped work has another code than TENON_CANCELLED"));
  }
  TENON_TRY(d.finish());  // B6: the error belongs to one event.
  TENON_TRY(d.launch(loaded.module, {{y}}));
  TENON_ASSIGN(const Bytes got, d.download({y}, 16));
  return expect_bytes("B6, work after stopped work", got, std::as_bytes(std::span(whole)));
}

struct LifetimeCase {
  const char* name;
  Status (*check)(SeamDevice& device);
  bool launches = true;
};
constexpr LifetimeCase kLifetimeCases[] = {
    {"B10/free_ends_one_handle", free_ends_one_handle, false},
    {"B11/close_frees_memory", close_frees_memory, false},
    {"B21/arguments_end_with_the_call", arguments_end_with_the_call, false},
    {"B27/stopped_work_is_an_error", stopped_work_is_an_error},
};

}  // namespace

void add_lifetime_cases(CaseList& list) {
  for (const LifetimeCase& each : kLifetimeCases) {
    ConformanceCase one = seam_case(
        fmt::format("seam/{}", each.name),
        [check = each.check](SeamDevice& device, uint64_t) { return check(device); },
        each.launches);
    one.tier = Tier::kQuick;
    one.alone = each.check == close_frees_memory;  // It leaves other processes no memory.
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
