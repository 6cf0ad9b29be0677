// The rules of the interface (core/backend/plugin.h, B1 … B29), each by calls of its functions.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "conformance/cases/interface/seam_device.h"

namespace tenon::conformance {
namespace {

using backend::Box;
using backend::EventHandle;
using backend::MemoryAddress;
using backend::MemoryHandle;

constexpr const char* kAddOne =
    "kernel @add_one(%x: in s32[1000], %y: out s32[1000]) index s32 grid(%i: 10) {\n"
    "  lanes(%j: 100) {\n    %b = mul %i, 100 : s32\n    %k = add %b, %j : s32\n"
    "    %a = load %x[%k] : s32\n    %c = add %a, 1 : s32\n    store %c, %y[%k] : s32\n  }\n}\n";
constexpr const char* kDouble =
    "kernel @double(%x: in s32[1000], %y: out s32[1000]) index s32 grid(%i: 10) {\n"
    "  lanes(%j: 100) {\n    %b = mul %i, 100 : s32\n    %k = add %b, %j : s32\n"
    "    %a = load %x[%k] : s32\n    %c = add %a, %a : s32\n    store %c, %y[%k] : s32\n  }\n}\n";
// Some 10 ms of work on a simulator.
constexpr const char* kSlow =
    "kernel @slow(%x: in s32[1000], %y: out s32[1000]) index s32 grid(%i: 10) {\n"
    "  lanes(%j: 100) {\n    %b = mul %i, 100 : s32\n    %k = add %b, %j : s32\n"
    "    %a = load %x[%k] : s32\n"
    "    %r = for %t = (0, 200, 1) carry(%s = %a) : s32 {\n"
    "      %m = mul %s, 3 : s32\n      %n = add %m, 1 : s32\n      yield %n\n    }\n"
    "    store %r, %y[%k] : s32\n  }\n}\n";
constexpr int64_t kCount = 1000;
constexpr int64_t kBytes = 4 * kCount;

using Numbers = std::vector<int32_t>;

std::span<const std::byte> bytes_of(const Numbers& numbers) {
  return std::as_bytes(std::span(numbers));
}
Numbers counting(int32_t first = 0) {
  Numbers numbers(kCount);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + static_cast<int32_t>(i);
  return numbers;
}
Numbers mapped(Numbers numbers, int32_t (*f)(int32_t)) {
  for (int32_t& each : numbers) each = f(each);
  return numbers;
}
int32_t slow_function(int32_t x) {
  auto y = static_cast<uint32_t>(x);
  for (int t = 0; t < 200; ++t) y = 3 * y + 1;
  return static_cast<int32_t>(y);
}

// Two arrays of the device, the first of which has the numbers.
struct DeviceArrays {
  MemoryHandle x = 0;
  MemoryHandle y = 0;
};
Result<DeviceArrays> arrays(SeamDevice& d, const Numbers& numbers) {
  DeviceArrays made;
  TENON_ASSIGN(made.x, d.allocate(kBytes));
  TENON_ASSIGN(made.y, d.allocate(kBytes));
  TENON_TRY(d.upload({made.x}, bytes_of(numbers)));
  TENON_TRY(d.upload({made.y}, Bytes(kBytes, std::byte{0x5A})));
  return made;
}

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
       {8}},                        // Reversed: the destination begins at its end.
      {2, {4, 3}, {6, 2}, {0, 2}},  // One row, four times.
  };
  for (const Box& box : boxes) {
    Bytes expected(kSize, std::byte{1});
    TENON_TRY(d.upload({to}, expected));
    constexpr int64_t kStart = 256;
    Status status = d.device().copy_box(0, {to, kStart}, {from, 128}, box);
    if (status.code() == ErrorCode::kUnimplemented) return {};  // It is optional.
    TENON_TRY(status);
    backend::copy_box(expected.data() + kStart, sent.data() + 128, box);
    TENON_ASSIGN(const Bytes got, d.download({to}, kSize));
    TENON_TRY(
        expect_bytes(fmt::format("copy_box of {} dimensions", box.sizes.size()), got, expected));
  }
  return {};
}

// --- Compiling and loading

Status compiles_the_same(SeamDevice& d) {
  TENON_ASSIGN(const auto first, d.load_text({kAddOne, kDouble}));
  TENON_ASSIGN(const auto second, d.load_text({kAddOne, kDouble}));
  return expect(first.binary == second.binary, "B13", "compiling twice gives other bytes");
}

Status kernels_by_index(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kAddOne, kDouble, kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  const std::array<Numbers, 3> expected = {counting(1),
                                           mapped(counting(), [](int32_t x) { return 2 * x; }),
                                           mapped(counting(), slow_function)};
  for (const uint32_t kernel : {2U, 0U, 1U}) {
    TENON_TRY(d.launch(loaded.module, {{a.x}, {a.y}}, {}, 0, kernel));
    TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
    TENON_TRY(expect_bytes(fmt::format("B14, kernel {}", kernel), got, bytes_of(expected[kernel])));
  }
  return {};
}

Status loads_in_another_session(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kAddOne}));
  d.close();
  TENON_TRY(d.reopen());
  const kernel::Kernel* kernels[] = {&loaded.kernels[0]};
  std::string binary = loaded.binary;
  TENON_ASSIGN(const auto module, d.device().load(binary, kernels));
  std::ranges::fill(binary, '\0');  // B15: it is valid until the call returns.
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  TENON_TRY(d.launch(module, {{a.x}, {a.y}}));
  TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
  return expect_bytes("B14, a binary loaded again", got, bytes_of(counting(1)));
}

Status many_modules(SeamDevice& d) {
  constexpr int kModules = 50;
  std::vector<backend::ModuleHandle> modules;
  TENON_ASSIGN(const auto one, d.load_text({kAddOne}));
  TENON_ASSIGN(const auto two, d.load_text({kDouble}));
  const kernel::Kernel* add[] = {one.kernels.data()};
  const kernel::Kernel* twice[] = {two.kernels.data()};
  for (int i = 0; i < kModules; ++i) {
    const bool even = i % 2 == 0;
    TENON_ASSIGN(const auto module, d.device().load(even ? one.binary : two.binary,
                                                    even ? backend::Kernels(add) : twice));
    for (const auto other : modules)
      TENON_TRY(expect(module != other, "B10", "two modules have one handle"));
    modules.push_back(module);
  }
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  for (size_t i = 0; i < modules.size(); i += 7) {
    TENON_TRY(d.launch(modules[i], {{a.x}, {a.y}}));
    TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
    const Numbers expected =
        i % 2 == 0 ? counting(1) : mapped(counting(), [](int32_t x) { return 2 * x; });
    TENON_TRY(expect_bytes(fmt::format("B14, module {}", i), got, bytes_of(expected)));
    d.device().unload(modules[i]);
  }
  return {};
}

Status compiles_from_threads(SeamDevice& d) {
  TENON_ASSIGN(const auto expected, d.load_text({kSlow}));
  const kernel::Kernel* kernels[] = {expected.kernels.data()};
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const auto compiled = d.backend().compile(d.target(), kernels);
      if (!compiled || compiled->binary != expected.binary) ++failed;
    });
  }
  for (std::thread& each : threads) each.join();
  return expect(failed == 0, "B7", "compile gives other bytes when several threads call it");
}

// --- Work and its order

Status work_is_in_order(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kAddOne, kDouble}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  for (int i = 0; i < 60; ++i) {
    const uint32_t kernel = i % 7 == 3 ? 1 : 0;
    const bool back = i % 2 == 1;
    TENON_TRY(d.launch(loaded.module, {{back ? a.y : a.x}, {back ? a.x : a.y}}, {}, 0, kernel));
  }
  TENON_ASSIGN(const Bytes got, d.download({a.x}, kBytes));
  Numbers expected = counting();
  for (int i = 0; i < 60; ++i) {
    for (int32_t& x : expected) {
      const auto wide = static_cast<uint32_t>(x);
      x = static_cast<int32_t>(i % 7 == 3 ? wide + wide : wide + 1);
    }
  }
  return expect_bytes("B20, sixty launches in a row", got, bytes_of(expected));
}

Status copies_are_in_order_with_launches(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  const Numbers first = counting(100);
  const Numbers second = counting(-7);
  Bytes got_first(kBytes);
  Bytes got_second(kBytes);
  TENON_TRY(d.device().copy(0, {a.x}, MemoryAddress::of_host(bytes_of(first).data()), kBytes));
  TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
  TENON_TRY(d.device().copy(0, MemoryAddress::of_host(got_first.data()), {a.y}, kBytes));
  TENON_TRY(d.device().copy(0, {a.x}, MemoryAddress::of_host(bytes_of(second).data()), kBytes));
  TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
  TENON_TRY(d.device().copy(0, MemoryAddress::of_host(got_second.data()), {a.y}, kBytes));
  TENON_TRY(d.finish());
  TENON_TRY(expect_bytes("B20, the first of two results", got_first,
                         bytes_of(mapped(first, slow_function))));
  return expect_bytes("B20, the second of two results", got_second,
                      bytes_of(mapped(second, slow_function)));
}

Status buffers_at_offsets(SeamDevice& d) {
  TENON_ASSIGN(const auto loaded, d.load_text({kAddOne}));
  const int64_t step = (kBytes / d.alignment() + 1) * d.alignment();
  TENON_ASSIGN(const MemoryHandle memory, d.allocate(5 * step));
  Bytes expected(static_cast<size_t>(5 * step), std::byte{0x33});
  const Numbers x = counting(5);
  std::ranges::copy(bytes_of(x), expected.begin() + 3 * step);
  TENON_TRY(d.upload({memory}, expected));
  TENON_TRY(d.launch(loaded.module, {{memory, 3 * step}, {memory, step}}));
  std::ranges::copy(bytes_of(counting(6)), expected.begin() + step);
  TENON_ASSIGN(const Bytes got, d.download({memory}, 5 * step));
  return expect_bytes("B17, buffers within one allocation", got, expected);
}

Status passes_scalars(SeamDevice& d) {
  constexpr const char* kScalars =
      "kernel @scalars(%y: out s32[6], %a: scalar s32, %b: scalar u32, %c: scalar f32, "
      "%d: scalar s32) index s32 grid() {\n"
      "  lanes(%j: 1) {\n    store %a, %y[%j] : s32\n"
      "    %b1 = bitcast %b : u32 -> s32\n    store %b1, %y[1] : s32\n"
      "    %c1 = bitcast %c : f32 -> s32\n    store %c1, %y[2] : s32\n"
      "    store %d, %y[3] : s32\n    %n = sub %a, %d : s32\n    store %n, %y[4] : s32\n"
      "    %m = mul %c, 2.0 : f32\n    %m1 = bitcast %m : f32 -> s32\n"
      "    store %m1, %y[5] : s32\n  }\n}\n";
  TENON_ASSIGN(const auto loaded, d.load_text({kScalars}));
  TENON_ASSIGN(const MemoryHandle y, d.allocate(24));
  const float c = -1.5F;
  uint32_t c_bits = 0;
  std::memcpy(&c_bits, &c, sizeof c);
  TENON_TRY(d.launch(loaded.module, {{y}},
                     {static_cast<uint64_t>(int64_t{-7}), 0xFFFFFFF0U, c_bits, 11}));
  TENON_ASSIGN(const Bytes got, d.download({y}, 24));
  const float twice = -3.0F;
  int32_t twice_bits = 0;
  std::memcpy(&twice_bits, &twice, sizeof twice);
  const Numbers expected = {-7, -16, static_cast<int32_t>(c_bits), 11, -18, twice_bits};
  return expect_bytes("B21, scalars of a launch", got, bytes_of(expected));
}

Status passes_many_buffers(SeamDevice& d) {
  std::string text = "kernel @sum(";
  constexpr int kInputs = 12;
  for (int i = 0; i < kInputs; ++i) text += fmt::format("%x{}: in s32[4], ", i);
  text += "%y: out s32[4]) index s32 grid() {\n  lanes(%j: 4) {\n    %s0 = load %x0[%j] : s32\n";
  for (int i = 1; i < kInputs; ++i) {
    text += fmt::format(
        "    %m{0} = mul %s{1}, 3 : s32\n    %v{0} = load %x{0}[%j] : s32\n"
        "    %s{0} = add %m{0}, %v{0} : s32\n",
        i, i - 1);
  }
  text += fmt::format("    store %s{}, %y[%j] : s32\n  }}\n}}\n", kInputs - 1);
  TENON_ASSIGN(const auto loaded, d.load_text({text}));
  std::vector<MemoryAddress> buffers;
  Numbers expected(4, 0);
  for (int32_t i = 0; i < kInputs; ++i) {
    TENON_ASSIGN(const MemoryHandle memory, d.allocate(16));
    const Numbers numbers = {i, 10 + i, 20 * i, -i};
    TENON_TRY(d.upload({memory}, bytes_of(numbers)));
    for (size_t k = 0; k < 4; ++k) expected[k] = 3 * expected[k] + numbers[k];
    buffers.push_back({memory});
  }
  TENON_ASSIGN(const MemoryHandle y, d.allocate(16));
  buffers.push_back({y});
  TENON_TRY(d.launch(loaded.module, buffers));
  TENON_ASSIGN(const Bytes got, d.download({y}, 16));
  return expect_bytes("B21, thirteen buffers", got, bytes_of(expected));
}

Status same_bits_each_run(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  for (int i = 0; i < 5; ++i) {
    TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
    TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
    TENON_TRY(expect_bytes("B22, the same launch again", got,
                           bytes_of(mapped(counting(), slow_function))));
  }
  return {};
}

// --- Events

Status event_of_no_work(SeamDevice& d) {
  TENON_ASSIGN(const EventHandle event, d.device().record(0));
  TENON_TRY(expect(event != 0, "B10", "record returns the handle 0"));
  TENON_ASSIGN(const bool done, d.device().await(event, -1));
  d.device().release(event);
  return expect(done, "B23", "an event after no work is not done");
}

Status done_event_stays_done(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
  TENON_ASSIGN(const EventHandle event, d.device().record(0));
  TENON_ASSIGN(const bool done, d.device().await(event, -1));
  TENON_TRY(expect(done, "B25", "await without limit says pending"));
  TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));  // Later work.
  for (const int64_t timeout : {int64_t{0}, int64_t{1000}, int64_t{-1}}) {
    TENON_ASSIGN(const bool again, d.device().await(event, timeout));
    TENON_TRY(expect(again, "B25", "a done event is pending again"));
  }
  d.device().release(event);
  return d.finish();
}

Status event_means_done(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  const Numbers expected = mapped(counting(), slow_function);
  for (int round = 0; round < 5; ++round) {
    Bytes got(kBytes);
    for (int i = 0; i < 10; ++i) TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
    TENON_TRY(d.device().copy(0, MemoryAddress::of_host(got.data()), {a.y}, kBytes));
    TENON_ASSIGN(const EventHandle event, d.device().record(0));
    bool done = false;
    while (!done) {  // Asks without waiting, too.
      TENON_ASSIGN(done, d.device().await(event, round % 2 == 0 ? 0 : 100'000));
    }
    d.device().release(event);
    TENON_TRY(expect_bytes("B23, the result behind a done event", got, bytes_of(expected)));
  }
  return {};
}

Status release_before_done(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  for (int i = 0; i < 20; ++i) {
    TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
    TENON_ASSIGN(const EventHandle event, d.device().record(0));
    d.device().release(event);
  }
  TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes));
  return expect_bytes("B26, work behind released events", got,
                      bytes_of(mapped(counting(), slow_function)));
}

Status awaits_from_threads(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  TENON_ASSIGN(const DeviceArrays a, arrays(d, counting()));
  for (int i = 0; i < 10; ++i) TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
  TENON_ASSIGN(const EventHandle event, d.device().record(0));
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto done = d.device().await(event, -1);
      if (!done || !*done) ++failed;
    });
  }
  for (std::thread& each : threads) each.join();
  d.device().release(event);
  return expect(failed == 0, "B7", "await fails when several threads call it");
}

// --- Queues

Status queues_wait(SeamDevice& d) {
  const uint32_t other = d.target().queues > 1 ? 1 : 0;
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  for (int round = 0; round < 10; ++round) {
    TENON_ASSIGN(const DeviceArrays a, arrays(d, counting(round)));
    for (int i = 0; i < 5; ++i) TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}));
    TENON_ASSIGN(const EventHandle event, d.device().record(0));
    TENON_TRY(d.device().wait(other, event));
    d.device().release(event);  // B26: the wait keeps it.
    TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes, other));
    TENON_TRY(expect_bytes("B24, a copy behind a wait", got,
                           bytes_of(mapped(counting(round), slow_function))));
    d.device().free(a.x);
    d.device().free(a.y);
  }
  return {};
}

Status waits_for_done_event(SeamDevice& d) {
  const uint32_t other = d.target().queues > 1 ? 1 : 0;
  TENON_ASSIGN(const EventHandle event, d.device().record(0));
  TENON_ASSIGN(const bool done, d.device().await(event, -1));
  TENON_TRY(expect(done, "B25", "await without limit says pending"));
  TENON_TRY(d.device().wait(other, event));
  TENON_TRY(d.device().wait(0, event));
  d.device().release(event);
  TENON_TRY(d.finish(other));
  return d.finish(0);
}

Status every_queue_works(SeamDevice& d) {
  TENON_ASSIGN(const auto slow, d.load_text({kSlow}));
  for (uint32_t queue = 0; queue < d.target().queues; ++queue) {
    const Numbers numbers = counting(static_cast<int32_t>(queue));
    TENON_ASSIGN(const DeviceArrays a, arrays(d, numbers));
    for (int i = 0; i < 5; ++i) TENON_TRY(d.launch(slow.module, {{a.x}, {a.y}}, {}, queue));
    TENON_ASSIGN(const Bytes got, d.download({a.y}, kBytes, queue));
    TENON_TRY(expect_bytes(fmt::format("B20, queue {}", queue), got,
                           bytes_of(mapped(numbers, slow_function))));
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
    TENON_ASSIGN(const std::byte* const seen, d.device().map(memory));
    TENON_TRY(d.upload({memory}, bytes_of(counting(space))));
    TENON_TRY(expect_bytes("B29, a copy through the pointer", {seen, kBytes},
                           bytes_of(counting(static_cast<int32_t>(space)))));
    if (!d.target().spaces[space].reachable) continue;
    TENON_TRY(d.launch(loaded.module, {{a.x}, {memory}}));
    TENON_TRY(d.finish());
    TENON_TRY(expect_bytes("B29, a kernel's result through the pointer", {seen, kBytes},
                           bytes_of(counting(3))));
  }
  TENON_TRY(d.launch(loaded.module, {{a.x}, {a.y}}));
  return d.finish();
}

Status times_events(SeamDevice& d) {
  TENON_ASSIGN(const EventHandle first, d.device().record(0));
  TENON_ASSIGN(const EventHandle second, d.device().record(0));
  TENON_TRY(d.finish());
  const auto a = d.device().event_time(first);
  const auto b = d.device().event_time(second);
  d.device().release(first);
  d.device().release(second);
  if (!a && a.error().code() == ErrorCode::kUnimplemented) return {};  // It is optional.
  if (!a) return a.error();
  if (!b) return b.error();
  return expect(*b >= *a, "event_time", "a later event has an earlier time");
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

struct SeamCase {
  const char* name;
  Status (*check)(SeamDevice& device);
  bool launches = true;
};
constexpr SeamCase kCases[] = {
    {"B7/awaits_from_threads", awaits_from_threads},
    {"B7/compiles_from_threads", compiles_from_threads, false},
    {"B7/devices_from_threads", devices_from_threads, false},
    {"B9/devices_are_stable", devices_are_stable, false},
    {"B9/target_is_possible", target_is_possible, false},
    {"B11/opens_again", opens_again, false},
    {"B11/closes_with_work", closes_with_work},
    {"B13/compiles_the_same", compiles_the_same, false},
    {"B14/kernels_by_index", kernels_by_index},
    {"B14/loads_in_another_session", loads_in_another_session},
    {"B14/many_modules", many_modules},
    {"B16/allocates_each_size", allocates_each_size, false},
    {"B16/allocations_are_apart", allocations_are_apart, false},
    {"B16/frees_what_it_allocates", frees_what_it_allocates, false},
    {"B16/spaces_allocate", spaces_allocate, false},
    {"B16/too_large_is_exhausted", too_large_is_exhausted, false},
    {"B17/buffers_at_offsets", buffers_at_offsets},
    {"B17/copies_at_offsets", copies_at_offsets, false},
    {"B19/copies_on_the_device", copies_on_the_device, false},
    {"B19/source_may_change_after_event", source_may_change_after_event, false},
    {"B20/copies_are_in_order_with_launches", copies_are_in_order_with_launches},
    {"B20/every_queue_works", every_queue_works},
    {"B20/work_is_in_order", work_is_in_order},
    {"B21/passes_many_buffers", passes_many_buffers},
    {"B21/passes_scalars", passes_scalars},
    {"B22/same_bits_each_run", same_bits_each_run},
    {"B23/event_means_done", event_means_done},
    {"B23/event_of_no_work", event_of_no_work, false},
    {"B24/queues_wait", queues_wait},
    {"B24/waits_for_done_event", waits_for_done_event, false},
    {"B25/done_event_stays_done", done_event_stays_done},
    {"B26/release_before_done", release_before_done},
    {"B28/imports_host_memory", imports_host_memory},
    {"B29/maps_memory", maps_memory},
    {"optional/copies_boxes", copies_boxes, false},
    {"optional/fills", fills, false},
    {"optional/states_statistics", states_statistics, false},
    {"optional/times_events", times_events, false},
};

}  // namespace

void add_seam_cases(CaseList& list) {
  for (const SeamCase& each : kCases) {
    ConformanceCase one = seam_case(
        fmt::format("seam/{}", each.name),
        [check = each.check](SeamDevice& device, uint64_t) { return check(device); },
        each.launches);
    one.tier = &each == kCases ? Tier::kSmoke : Tier::kQuick;
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
