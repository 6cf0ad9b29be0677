// The runtime on `interp`.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/backend/in_process/host_queue.h"
#include "core/backend/layers/forward.h"
#include "core/runtime/memory/donations.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::control_flow;
using program::testing::four;
using program::testing::kernel_of;
using program::testing::twice;
using program::testing::twice_in_place;

std::string error_of(const Status& status) { return status.message(); }

// A kernel that reads beyond its buffer, which is detected only when it runs.
program::Program out_of_range() {
  program::Program p = twice();
  p.kernels = {kernel_of(
      "kernel @behind(%x: in f32[4], %z: in f32[4], %y: out f32[4]) index s32 grid(%i: 4) {\n"
      "%a = load %x[%i] : f32\n%k = convert %a : f32 -> s32\n%b = load %z[%k] : f32\n"
      "store %b, %y[%i] : f32\n}")};
  return p;
}

TEST(Runtime, RunsAProgram) {
  const auto client = client_of();
  const auto executable = load(*client, twice());
  const auto x = put(client->devices()[0], four(2));
  const auto run = executable->execute(std::vector{x});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(get(run->results[0]), four(6));
  EXPECT_TRUE(run->done.await().ok());
  EXPECT_FALSE(x->is_deleted());
  EXPECT_EQ(executable->parameters(), std::vector{four(0).shape()});
  EXPECT_EQ(executable->results(), std::vector{four(0).shape()});
}

TEST(Runtime, RunsLoopsAndBranches) {
  const auto client = client_of();
  const auto executable = load(*client, control_flow());
  for (const auto& [from, to] : {std::pair{3.0, 12.0}, std::pair{11.0, 11.0}}) {
    const auto run = executable->execute(std::vector{put(client->devices()[0], four(from))});
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(get(run->results[0]), four(to));
  }
}

TEST(Runtime, KernelsOfTheHost) {
  const auto client = client_of();
  constexpr auto kHost = KernelPlacement::kHost;
  constexpr auto kDevice = KernelPlacement::kDevice;
  for (const auto& homes :
       {std::vector{kHost, kDevice, kDevice}, std::vector{kDevice, kHost, kDevice},
        std::vector{kHost, kHost, kHost}}) {
    const auto executable = load(*client, control_flow(), homes);
    const auto run = executable->execute(std::vector{put(client->devices()[0], four(3))});
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(get(run->results[0]), four(12));
  }
}

TEST(Runtime, CustomCalls) {
  const auto client = client_of();
  program::Program p = twice();
  p.sequences[0].steps = {{program::CustomCall{"mine", {}, {0}, {2}}, {}, "the call"}};
  find_dependencies(p);
  const CustomCalls calls = {
      {"mine",
       [](const program::Step&, const program::CustomCall&, const std::vector<Literal>& operands,
          const std::vector<Shape>&) -> Result<std::vector<Literal>> {
         if (operands[0].get_double(0) < 0) return invalid_argument("it is negative");
         return std::vector{four(operands[0].get_double(0) + 1)};
       }}};
  const auto executable = load(*client, p, {}, calls);
  auto run = executable->execute(std::vector{put(client->devices()[0], four(3))});
  EXPECT_EQ(get(run->results[0]), four(4));
  run = executable->execute(std::vector{put(client->devices()[0], four(-3))});
  EXPECT_EQ(error_of(run->done.await()), "it is negative (in the call)");
  EXPECT_EQ(error_of(run->results[0]->defined().await()), "it is negative (in the call)");
  EXPECT_EQ(run->results[0]->to_literal().error().message(), "it is negative (in the call)");
  const auto unknown = load(*client, p);
  run = unknown->execute(std::vector{put(client->devices()[0], four(3))});
  EXPECT_EQ(error_of(run->done.await()),
            "custom call @mine: no function is registered for it (in the call)");
}

// --- Arguments

TEST(Runtime, WrongArgumentsLeaveEverythingAsItWas) {
  backend::InterpreterConfig two;
  two.devices = 2;
  const auto client = client_of(two);
  program::Program p = twice();
  p.donated = {0};
  const auto executable = load(*client, p);
  const auto x = put(client->devices()[0], four(1));
  const auto error = [&](const std::vector<BufferPtr>& arguments) {
    const auto run = executable->execute(arguments);
    return run ? "OK" : run.error().message();
  };
  EXPECT_EQ(error({}), "p: 0 arguments, expected 1");
  EXPECT_EQ(error({nullptr}), "p: argument 0 is null");
  EXPECT_EQ(error({put(client->devices()[0], Literal::scalar(ElementType::kF32, 1))}),
            "p: argument 0 is f32[], expected f32[4]");
  EXPECT_EQ(error({put(client->devices()[1], four(1))}),
            "p: argument 0 is on interp:1, expected interp:0");
  EXPECT_EQ(error({put(client->devices()[0], four(1), MemoryKind::kPinnedHost)}),
            "p: argument 0 is in pinned_host memory, expected device memory");
  EXPECT_EQ(get(x), four(1));
  EXPECT_EQ(error({x}), "OK");
  EXPECT_EQ(error({x}), "the buffer of f32[4] has been deleted or donated");
}

TEST(Runtime, ResultsTakeOverDonatedMemory) {
  const auto client = client_of();
  const auto executable = load(*client, twice_in_place());
  const auto place_of = [](const BufferPtr& buffer) { return buffer->storage()->place(); };
  const auto x = put(client->devices()[0], four(2));
  const backend::MemoryAddress before = place_of(x);
  // Not if the caller keeps the argument.
  ExecuteOptions keep;
  keep.keep = {0};
  auto run = executable->execute(std::vector{x}, keep);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(get(run->results[0]), four(4));
  EXPECT_EQ(get(x), four(2));
  const auto same = [](const backend::MemoryAddress& a, const backend::MemoryAddress& b) {
    return a.memory == b.memory && a.offset == b.offset && a.host == b.host;
  };
  EXPECT_FALSE(same(place_of(run->results[0]), before));

  run = executable->execute(std::vector{x});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_TRUE(x->is_deleted());
  EXPECT_TRUE(same(place_of(run->results[0]), before));
  EXPECT_EQ(get(run->results[0]), four(4));
  // And so on, in the same memory.
  run = executable->execute(std::vector{run->results[0]});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_TRUE(same(place_of(run->results[0]), before));
  EXPECT_EQ(get(run->results[0]), four(8));
}

TEST(Runtime, DonationTakesTheBuffer) {
  const auto client = client_of();
  program::Program p = twice();
  p.donated = {0};
  const auto executable = load(*client, p);
  const auto x = put(client->devices()[0], four(2));
  ExecuteOptions keep;
  keep.keep = {0};
  EXPECT_EQ(get(executable->execute(std::vector{x}, keep)->results[0]), four(6));
  EXPECT_FALSE(x->is_deleted());
  EXPECT_EQ(get(executable->execute(std::vector{x})->results[0]), four(6));
  EXPECT_TRUE(x->is_deleted());
  EXPECT_EQ(x->shape(), four(0).shape());
  EXPECT_FALSE(x->to_literal());
}

TEST(Runtime, HeldBuffersKeepTheirMemory) {
  const auto client = client_of();
  const auto x = put(client->devices()[0], four(2));
  EXPECT_EQ(get(x), four(2));
  const auto used = [&] { return client->devices()[0]->memory().statistics().bytes_in_use; };
  ASSERT_TRUE(x->hold().ok());
  x->remove();
  EXPECT_TRUE(x->is_deleted());
  EXPECT_EQ(used(), 64);
  EXPECT_FALSE(x->hold().ok());
  x->release();
  EXPECT_TRUE(client->devices()[0]->drain().ok());
  EXPECT_EQ(used(), 0);
}

// --- Between host and devices

TEST(Runtime, HostArraysOfAnyStrides) {
  const auto client = client_of();
  std::vector<int32_t> data(12);
  std::iota(data.begin(), data.end(), 0);
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  const Shape shape(ElementType::kS32, {2, 3});
  const auto read = [&](const std::byte* from, Dims strides, HostLifetime lifetime) {
    auto made = buffer_from_host(client->devices()[0], MemoryKind::kDevice,
                                 {from, shape, std::move(strides), lifetime});
    EXPECT_TRUE(made) << made.error().to_string();
    const std::string text = get(made->buffer).to_string();
    made->buffer = nullptr;
    EXPECT_TRUE(made->host_done.await().ok());
    return text;
  };
  for (const auto lifetime :
       {HostLifetime::kDuringCall, HostLifetime::kUntilCopied, HostLifetime::kUntilDeleted}) {
    EXPECT_EQ(read(bytes, {12, 4}, lifetime), "[[0, 1, 2], [3, 4, 5]]");
    EXPECT_EQ(read(bytes, {4, 8}, lifetime), "[[0, 2, 4], [1, 3, 5]]");
    EXPECT_EQ(read(bytes + 20, {-12, -4}, lifetime), "[[5, 4, 3], [2, 1, 0]]");
    EXPECT_EQ(read(bytes + 4, {0, 0}, lifetime), "[[1, 1, 1], [1, 1, 1]]");
  }
  EXPECT_EQ(buffer_from_host(client->devices()[0], MemoryKind::kDevice,
                             {bytes, shape, Dims{4}, HostLifetime::kDuringCall})
                .error()
                .message(),
            "1 strides of s32[2,3]");
}

TEST(Runtime, ToTheHostInAnyStrides) {
  const auto client = client_of();
  Literal elements(Shape(ElementType::kS32, {2, 3}));
  for (int64_t i = 0; i < 6; ++i) elements.set_double(i, static_cast<double>(i));
  const BufferPtr buffer = put(client->devices()[0], elements);
  std::vector<int32_t> to(9, -1);
  const auto read = [&](const Dims& strides) {
    to.assign(to.size(), -1);
    return buffer->copy_to_host(std::as_writable_bytes(std::span(to)), strides).await().to_string();
  };
  EXPECT_EQ(read({12, 4}), "OK");
  EXPECT_EQ(to, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, -1, -1, -1}));
  EXPECT_EQ(read({16, 4}), "OK");  // The bytes between the rows do not change.
  EXPECT_EQ(to, (std::vector<int32_t>{0, 1, 2, -1, 3, 4, 5, -1, -1}));
  EXPECT_EQ(read({4, 8}), "OK");
  EXPECT_EQ(to, (std::vector<int32_t>{0, 3, 1, 4, 2, 5, -1, -1, -1}));
  EXPECT_EQ(read({-4, 4}),
            "error: elements of s32[2,3], -4 and 4 bytes apart, do not all lie within "
            "36 bytes");
  EXPECT_EQ(read({28, 4}),
            "error: elements of s32[2,3], 28 and 4 bytes apart, do not all lie within "
            "36 bytes");
  EXPECT_EQ(read({INT64_MAX, INT64_MAX}),
            "error: elements of s32[2,3], 9223372036854775807 and 9223372036854775807 "
            "bytes apart, do not all lie within 36 bytes");
  EXPECT_EQ(read({4}), "error: 1 strides of s32[2,3]");
  // A callback may wait for the buffer although such callbacks fill the pool.
  std::atomic<int> right = 0;
  std::vector<Event> done;
  Promise start(client->devices()[0]->pool());
  for (int i = 0; i < 32; ++i) {
    auto promise = std::make_shared<Promise>(client->devices()[0]->pool());
    done.push_back(promise->event());
    start.event().on_ready([&, promise](const Status&) {
      std::vector<int32_t> mine(6);
      promise->set(
          buffer->copy_to_host(std::as_writable_bytes(std::span(mine)), Dims{4, 8}).await());
      right += static_cast<int>(mine == std::vector<int32_t>{0, 3, 1, 4, 2, 5});
    });
  }
  start.set({});
  for (const Event& event : done) EXPECT_TRUE(event.await().ok());
  while (right < 32) std::this_thread::yield();
}

TEST(Runtime, WhatChangesAfterTheCallWasCopied) {
  const auto client = client_of();
  Literal x = four(3);
  const auto buffer = put(client->devices()[0], x);
  for (int64_t i = 0; i < 4; ++i) x.set_double(i, 0);
  EXPECT_EQ(get(buffer), four(3));
}

TEST(Runtime, CopiesBetweenDevicesAndMemories) {
  backend::InterpreterConfig two;
  two.devices = 2;
  const auto one = client_of(two);
  const auto other = client_of();
  const std::vector<std::pair<std::shared_ptr<Device>, MemoryKind>> places = {
      {one->devices()[0], MemoryKind::kDevice},     {one->devices()[1], MemoryKind::kDevice},
      {other->devices()[0], MemoryKind::kDevice},   {one->devices()[1], MemoryKind::kPinnedHost},
      {one->devices()[1], MemoryKind::kPinnedHost}, {one->devices()[0], MemoryKind::kPinnedHost}};
  BufferPtr x = put(one->devices()[0], four(7));
  for (const auto& [device, kind] : places) {
    auto copy = x->copy_to(device, kind);
    ASSERT_TRUE(copy) << copy.error().to_string();
    x->remove();  // The copy keeps the parts that it needs.
    x = *copy;
    EXPECT_EQ(x->memory_kind(), kind);
  }
  EXPECT_EQ(get(x), four(7));
}

// They have no storage of their own, and a program may have no temporaries at all.
TEST(Runtime, EmptyArrays) {
  const auto client = client_of();
  program::Program p = twice();
  for (program::Buffer& b : p.buffers) b.dims = {0};
  p.kernels.clear();
  p.temporary_bytes = 0;
  p.sequences[0].steps = {{program::Copy{1, 0}, {}, ""},
                          {program::CustomCall{"mine", {}, {1}, {2}}, {}, ""}};
  find_dependencies(p);
  const Literal nothing(Shape(ElementType::kF32, {0}));
  const auto call = [&](const program::Step&, const program::CustomCall&,
                        const std::vector<Literal>& operands, const std::vector<Shape>&) {
    return Result<std::vector<Literal>>(operands);
  };
  const auto run = load(*client, p, {}, {{"mine", call}})
                       ->execute(std::vector{put(client->devices()[0], nothing)});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(get(run->results[0]), nothing);
  const Literal none(Shape(ElementType::kF32, {0, 3}));
  EXPECT_EQ(get(put(client->devices()[0], none)), none);
  EXPECT_EQ(get(put(client->devices()[0], none, MemoryKind::kPinnedHost)), none);
}

// --- Memory

TEST(Runtime, OutOfMemoryNamesTheLargestBuffers) {
  backend::InterpreterConfig small;
  small.memory_bytes = 4096;
  const auto client = client_of(small);
  const auto device = client->devices()[0];
  const auto array = [](int64_t floats) { return Literal(Shape(ElementType::kF32, {floats})); };
  const auto x = put(device, array(500));
  auto y = put(device, array(300));
  const Literal more = array(400);
  const auto failed =
      buffer_from_host(device, MemoryKind::kDevice, {more.data().data(), more.shape(), {}, {}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(failed.error().message(),
            "there is no room for 1600 bytes of an argument f32[400]: interp: 1600 bytes are asked "
            "for, 3264 of 4096 are in use; 3264 bytes are in use, the largest: 2048 bytes of an "
            "argument f32[500], 1216 bytes of an argument f32[300]");
  y->remove();
  EXPECT_EQ(get(put(device, more)), more);  // After freeing unused blocks.
  EXPECT_EQ(get(x), array(500));
}

TEST(Runtime, MemoryIsUsedAgain) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto executable = load(*client, twice());
  BufferPtr x = put(device, four(1));
  for (int i = 0; i < 100; ++i) {
    auto run = executable->execute(std::vector{x});
    ASSERT_TRUE(run) << run.error().to_string();
    x = run->results[0];
  }
  ASSERT_TRUE(x->defined().await().ok());
  EXPECT_EQ(get(x), four(INFINITY));
  const MemoryStatistics statistics = device->memory().statistics();
  EXPECT_EQ(statistics.bytes_reserved, int64_t{1} << 20);
  EXPECT_EQ(statistics.bytes_in_use, 64);
  EXPECT_GT(statistics.allocations, 200);
  x = nullptr;
  EXPECT_TRUE(device->memory().trim().ok());
  EXPECT_EQ(device->memory().statistics().bytes_reserved, 0);
}

// --- Errors that come later

TEST(Runtime, AnErrorReachesWhateverNeedsTheResult) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto wrong = load(*client, out_of_range());
  const auto right = load(*client, twice());
  const auto x = put(device, four(1e6));
  const auto first = wrong->execute(std::vector{x});
  ASSERT_TRUE(first) << first.error().to_string();
  const auto second = right->execute(std::vector{first->results[0]});
  ASSERT_TRUE(second) << second.error().to_string();
  const std::string text = error_of(first->done.await());
  EXPECT_NE(text.find("K7"), std::string::npos) << text;
  EXPECT_EQ(error_of(second->done.await()), text);
  EXPECT_EQ(second->results[0]->to_literal().error().message(), text);
  EXPECT_FALSE(first->results[0]->copy_to(device, MemoryKind::kPinnedHost).value()->to_literal());
  // No other buffer is affected.
  EXPECT_EQ(get(right->execute(std::vector{x})->results[0]), four(3e6));
}

// --- Threads

TEST(Runtime, CallbacksMayUseTheClient) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto executable = load(*client, twice());
  const auto x = put(device, four(1));
  std::atomic<int> right = 0;
  std::vector<Promise> promises;
  std::vector<Event> events;
  for (int i = 0; i < 8; ++i) events.push_back(promises.emplace_back(device->pool()).event());
  for (int i = 0; i < 8; ++i) {
    const auto run = executable->execute(std::vector{x});
    run->done.on_ready([&, i](const Status& status) {
      EXPECT_TRUE(status.ok());
      const auto again = executable->execute(std::vector{x});
      if (get(again->results[0]) == four(3)) ++right;
      promises[static_cast<size_t>(i)].set({});
    });
  }
  for (const Event& event : events) EXPECT_TRUE(event.await().ok());
  EXPECT_EQ(right, 8);
}

TEST(Runtime, SeveralThreads) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto executable = load(*client, twice());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const auto x = put(device, four(t + i));
        const auto run = executable->execute(std::vector{x});
        ASSERT_TRUE(run);
        x->remove();
        EXPECT_EQ(get(run->results[0]), four(3 * (t + i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Objects that outlive the client keep the parts that they need.
TEST(Runtime, NothingHasToOutliveAnything) {
  auto client = client_of();
  auto executable = load(*client, twice());
  BufferPtr result;
  {
    const auto run = executable->execute(std::vector{put(client->devices()[0], four(2))});
    result = run->results[0];
  }
  client = nullptr;
  executable = nullptr;
  EXPECT_EQ(get(result), four(6));
  auto other = client_of();
  auto run = load(*other, twice())->execute(std::vector{put(other->devices()[0], four(2))});
  other = nullptr;
  const Event done = run->done;
  run = tl::make_unexpected(Status());
  EXPECT_TRUE(done.await().ok());
}

TEST(Runtime, ABufferThatWasRemovedIsNotRestored) {
  const auto client = client_of();
  const auto x = put(client->devices()[0], four(1));
  BufferStorage storage = x->donate().value().storage;
  x->restore(std::move(storage));
  EXPECT_EQ(get(x), four(1));
  storage = x->donate().value().storage;
  x->remove();
  x->restore(std::move(storage));
  EXPECT_TRUE(x->is_deleted());
  EXPECT_FALSE(x->to_literal());
}

// Executions check thousands of donated arguments for duplicates by sorting, in about n log n
// comparisons.
TEST(Donations, AreComparedLessThanQuadratically) {
  constexpr size_t kCount = 3000;
  std::vector<int> things(kCount);
  std::vector<const int*> list;
  for (const int& thing : things) list.push_back(&thing);
  int64_t comparisons = 0;
  const auto less = [&](const int* a, const int* b) {
    ++comparisons;
    return std::less<>()(a, b);
  };
  std::vector<bool> given(kCount, true);
  const auto first = [&] { return first_donated_twice<const int*>(list, given, less); };
  EXPECT_EQ(first(), kCount);
  EXPECT_GT(comparisons, 0);
  EXPECT_LT(comparisons, 100'000);
  list[7] = list[2999];
  EXPECT_EQ(first(), 7u);
  given[7] = false;  // The other one is donated.
  EXPECT_EQ(first(), 2999u);
  given[2999] = false;
  EXPECT_EQ(first(), kCount);
}

TEST(Donations, OfThousandsOfArguments) {
  constexpr uint32_t kCount = 3000;
  program::Program p;
  p.name = "many";
  for (uint32_t i = 0; i < kCount; ++i) {
    program::Buffer from;
    from.type = ElementType::kF32;
    from.dims = {4};
    from.kind = program::BufferKind::kParameter;
    from.index = i;
    program::Buffer to = from;
    to.kind = program::BufferKind::kResult;
    p.parameters.push_back(static_cast<program::BufferId>(p.buffers.size()));
    p.buffers.push_back(from);
    p.results.push_back(static_cast<program::BufferId>(p.buffers.size()));
    p.buffers.push_back(to);
    p.donated.push_back(i);
  }
  p.sequences.emplace_back();
  for (uint32_t i = 0; i < kCount; ++i) {
    p.sequences[0].steps.emplace_back().action = program::Copy{p.results[i], p.parameters[i]};
  }
  program::find_dependencies(p);
  const auto client = client_of();
  const auto executable = load(*client, std::move(p));
  EXPECT_EQ(executable->aliased_bytes(), kCount * 16);
  std::vector<BufferPtr> arguments;
  for (uint32_t i = 0; i < kCount; ++i) {
    arguments.push_back(put(client->devices()[0], four(static_cast<float>(i))));
  }
  std::vector<BufferPtr> twice = arguments;
  twice[kCount - 1] = twice[1500];
  EXPECT_EQ(executable->execute(twice).error().message(),
            "many: argument 1500 is donated and passed twice");
  ExecuteOptions keep;
  keep.keep = {1500, 2999};
  EXPECT_EQ(executable->donated_parameters(keep)[1499], true);
  EXPECT_EQ(executable->donated_parameters(keep)[1500], false);
  EXPECT_TRUE(executable->execute(arguments));
  EXPECT_TRUE(arguments[2999]->is_deleted());
}

// Blocks that cannot be returned, because the device cannot be awaited, still belong to the pool.
TEST(Allocator, ATrimThatFailsKeepsWhatThereIs) {
  const auto backend = backend::make_interpreter_backend();
  const std::shared_ptr<backend::Device> device = backend->open(0).value();
  std::mutex one_at_a_time;
  int drains = 0;
  Allocator::AllocatorDevice of;
  of.use = [&]() -> Result<std::shared_ptr<backend::Device>> { return device; };
  of.one_at_a_time = &one_at_a_time;
  of.drain = [&]() -> Status {
    return ++drains == 2 ? internal_error("the second one fails") : Status();
  };
  of.note_loss = [](Status status) { return status; };
  const auto allocator =
      std::make_shared<Allocator>(of, 0, backend->devices().value()[0].target.spaces[0]);
  auto suballocation = allocator->allocate(100, "something").value();
  const backend::MemoryHandle memory = suballocation->place().memory;
  suballocation = nullptr;
  const int64_t reserved = allocator->statistics().bytes_reserved;
  EXPECT_GT(reserved, 0);
  EXPECT_EQ(allocator->trim().message(), "the second one fails");
  EXPECT_EQ(allocator->statistics().bytes_reserved, reserved);
  EXPECT_EQ(allocator->allocate(100, "again").value()->place().memory, memory);
  EXPECT_EQ(allocator->trim().message(), "");
  EXPECT_EQ(allocator->statistics().bytes_reserved, 0);
}

// Each array is larger than all before it: the memory of the earlier ones is not kept.
TEST(Allocator, SizesThatGrowLeaveLittle) {
  const auto backend = backend::make_interpreter_backend();
  const std::shared_ptr<backend::Device> device = std::move(*backend->open(0));
  std::mutex one_at_a_time;
  Allocator::AllocatorDevice of;
  of.use = [&]() -> Result<std::shared_ptr<backend::Device>> { return device; };
  of.one_at_a_time = &one_at_a_time;
  of.drain = [] { return Status(); };
  of.note_loss = [](Status status) { return status; };
  const auto allocator =
      std::make_shared<Allocator>(of, 0, backend->devices().value()[0].target.spaces[0]);
  constexpr int64_t kMiB = int64_t{1} << 20;
  std::shared_ptr<Suballocation> last;
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t bytes = (40 + 2 * i) * kMiB;
    auto next = allocator->allocate(bytes, "a cache that grows");
    ASSERT_TRUE(next) << next.error().to_string();
    last = *std::move(next);
    // The array, the one before it, and as much again or a little more.
    EXPECT_LE(allocator->statistics().bytes_reserved, 4 * bytes) << i;
  }
  last = nullptr;
  EXPECT_EQ(allocator->statistics().bytes_in_use, 0);
}

// Its first event is not done at once, so that another thread waits for it.
class FirstIsLater final : public backend::ForwardingBackend {
 public:
  FirstIsLater() : ForwardingBackend(backend::make_interpreter_backend()) {}
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<OfIt>(std::move(device));
  }

 private:
  class OfIt final : public backend::ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    Result<backend::EventHandle> record(uint32_t queue) override {
      TENON_ASSIGN(const backend::EventHandle event, ForwardingDevice::record(queue));
      if (first_ == 0) first_ = event;
      return event;
    }
    Result<bool> await(backend::EventHandle event, int64_t timeout) override {
      if (event == first_ && timeout == 0) return false;
      return ForwardingDevice::await(event, timeout);
    }

   private:
    std::atomic<backend::EventHandle> first_ = 0;
  };
};

// Compared with a list of all free bytes: suballocations never overlap, the smallest free piece
// that fits is taken, adjacent free pieces are merged.
TEST(Allocator, TakesTheSmallestPieceThatFits) {
  const auto backend = backend::make_interpreter_backend();
  const std::shared_ptr<backend::Device> device = backend->open(0).value();
  std::mutex one_at_a_time;
  Allocator::AllocatorDevice of;
  of.use = [&] { return Result<std::shared_ptr<backend::Device>>(device); };
  of.one_at_a_time = &one_at_a_time;
  of.drain = [] { return Status(); };
  of.note_loss = [](Status status) { return status; };
  const auto info = backend->devices().value()[0].target.spaces[0];
  const auto allocator = std::make_shared<Allocator>(of, 0, info);
  constexpr int64_t kBlock = int64_t{1} << 20;
  const int64_t unit = info.alignment;
  std::vector<std::shared_ptr<Suballocation>> all;
  const auto take = [&](int64_t units) { return allocator->allocate(units * unit, "x").value(); };
  std::vector<std::shared_ptr<Suballocation>> whole;
  for (int64_t i = 0; i < kBlock / unit / 8; ++i) whole.push_back(take(8));
  EXPECT_EQ(allocator->statistics().bytes_reserved, kBlock);
  const auto offset = [&](size_t i) { return whole[i]->place().offset; };
  // Holes of 8, 24 and 16 units.
  const int64_t holes[] = {offset(2), offset(5), offset(20)};
  for (const size_t i : {2, 5, 6, 7, 20, 21}) whole[i] = nullptr;
  EXPECT_EQ(take(9)->place().offset, holes[2]);
  EXPECT_EQ(take(17)->place().offset, holes[1]);
  EXPECT_EQ(take(24)->place().offset, holes[1]);
  EXPECT_EQ(take(1)->place().offset, holes[0]);
  const auto first = take(16);
  const auto second = take(16);  // The remainder of the largest piece, since the best fit is taken.
  EXPECT_EQ(first->place().offset, holes[2]);
  EXPECT_EQ(second->place().offset, holes[1]);
  EXPECT_EQ(take(8)->place().offset, holes[0]);
  whole.clear();
  EXPECT_EQ(allocator->statistics().bytes_in_use, 32 * unit);
}

// A failure is reported before the work that depends on it, on all threads.
TEST(Runtime, WorkIsHeardOfInOrder) {
  auto opened = Client::open(std::make_shared<FirstIsLater>(), ClientOptions());
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto device = (*opened)->devices()[0];
  std::atomic<bool> begun = false;
  std::atomic<bool> given = false;
  std::atomic<bool> go = false;
  std::mutex mutex;
  std::vector<int> heard;
  Promise ended(device->pool());
  const Event end = ended.event();
  const auto hears = [&](int work) {
    const std::lock_guard lock(mutex);
    heard.push_back(work);
  };
  device->post([] { return Status(internal_error("the first one fails")); },
               [&](const Status&) {
                 begun = true;
                 while (!go) std::this_thread::yield();
                 hears(1);
               });
  while (!begun) std::this_thread::yield();
  device->post([] { return Status(); }, [&](const Status&) { hears(2); });
  device->post(
      [&] {
        given = true;
        return Status();
      },
      [&](const Status&) {
        hears(3);
        ended.set({});
      });
  while (!given) std::this_thread::yield();
  go = true;
  EXPECT_TRUE(end.await().ok());
  EXPECT_EQ(heard, (std::vector<int>{1, 2, 3}));
}

TEST(Event, CallbacksRunAtOnceWhenItHasHappened) {
  int called = 0;
  Event::ready().on_ready([&](const Status& status) { called += status.ok() ? 1 : 0; });
  EXPECT_EQ(called, 1);
  Event dropped = Event::ready();
  {
    Promise promise{CallbackPool(1)};
    dropped = promise.event();
    EXPECT_FALSE(dropped.is_ready());
    EXPECT_FALSE(dropped.await_for(1000));
  }
  EXPECT_EQ(dropped.await().code(), ErrorCode::kInternal);
}

// Longer than the clock can represent.
TEST(Event, WaitsForEverIfItMust) {
  Promise promise{CallbackPool(1)};
  const Event event = promise.event();
  backend::HostEvent host;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    promise.set({});
    host.finish({});
  });
  EXPECT_TRUE(event.await_for(INT64_MAX));
  EXPECT_TRUE(host.await(INT64_MAX));
  later.join();
}

}  // namespace
}  // namespace tenon::runtime
