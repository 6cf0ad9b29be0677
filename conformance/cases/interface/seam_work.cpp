// Checks of compiling, of work and its order, of events and queues (B7, B13, B14, B20 to B26).
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "conformance/cases/interface/seam_checks.h"
#include "conformance/cases/interface/seam_numbers.h"

namespace tenon::conformance::seam_checks {

using backend::EventHandle;
using backend::MemoryAddress;
using backend::MemoryHandle;

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

}  // namespace tenon::conformance::seam_checks
