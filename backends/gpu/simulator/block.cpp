#include "backends/gpu/simulator/block.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::gpu {
namespace {

using State = BlockThread::ThreadState;

// Enough for the stack of generated code, without a thread's arrays.
constexpr int64_t kStackBytes = 256 << 10;
constexpr size_t kSharedAlignment = 256;

// The byte that fills shared memory initially, which no kernel may read.
constexpr int kUndefined = 0xFF;

BlockThread& thread_of(SimThread* thread) { return *static_cast<BlockThread*>(thread); }

Status stopped(const SimRun& run) {
  return Status(ErrorCode::kCancelled, prefix_of(run.kernel) + "it was stopped");
}

}  // namespace

SimRun::SimRun(const SimProgram& made, const SimLaunch& wanted)
    : program(made),
      launch(wanted),
      kernel(made.image().kernels[wanted.kernel]),
      entry(made.entry(wanted.kernel)),
      grid(grid_of(wanted.shape.blocks)),
      failed_block_(wanted.shape.blocks) {
  if (made.image().checks) memory.emplace(made.image(), kernel, launch);
}

void SimRun::fail(int64_t block, Status status) {
  const std::lock_guard lock(mutex_);
  if (block >= failed_block_) return;
  failed_block_ = block;
  status_ = std::move(status);
}

bool SimRun::is_over(int64_t block) {
  for (const volatile uint32_t* word : launch.stops) {
    if (word == nullptr || __atomic_load_n(word, __ATOMIC_RELAXED) == 0) continue;
    fail(block, stopped(*this));
  }
  return block >= failed_block_;
}

SimBlock::SimBlock(SimRun& run, HostThreadMemory& memory)
    : run_(run), memory_(memory), count_(run.launch.shape.threads) {
  const size_t fibers = run.kernel.synchronizes ? count_ : 1;
  const auto stack = static_cast<size_t>(kStackBytes + run.kernel.stack_bytes);
  if (!memory_.fibers.reserve(fibers, stack)) return;
  if (memory_.threads.size() < count_) memory_.threads.resize(count_);
  const auto bytes = static_cast<size_t>(run.kernel.shared_bytes) + kSharedAlignment;
  if (memory_.shared.size() < bytes) memory_.shared.resize(bytes);
  const auto at = reinterpret_cast<uintptr_t>(memory_.shared.data());
  shared_ = memory_.shared.data() + (kSharedAlignment - at % kSharedAlignment) % kSharedAlignment;
  ready_ = true;
}

void SimBlock::begin_block(int64_t number) {
  number_ = number;
  for (uint32_t t = 0; t < count_; ++t) {
    BlockThread& thread = memory_.threads[t];
    thread = BlockThread();
    thread.tid_x = t;
    thread.ntid_x = count_;
    thread.ctaid_x = static_cast<uint32_t>(number % run_.grid.x);
    thread.ctaid_y = static_cast<uint32_t>(number / run_.grid.x);
    thread.nctaid_x = run_.grid.x;
    thread.shared = shared_;
    thread.stops = run_.launch.stops;
    thread.block = this;
    thread.clocks[t % kWarpLanes] = 1;
  }
  if (run_.memory) {
    std::memset(shared_, kUndefined, static_cast<size_t>(run_.kernel.shared_bytes));
  }
}

void SimBlock::run_blocks(int64_t begin, int64_t end) {
  failed_ = false;
  if (!run_.kernel.synchronizes) {
    // Runs all blocks on one fiber, which is abandoned if one of them fails.
    number_ = begin;
    end_ = end;
    Fiber& fiber = memory_.fibers[0];
    fiber.start([](void* self) { static_cast<SimBlock*>(self)->run_in_row(); }, this);
    fiber.run();
    return;
  }
  for (int64_t number = begin; number < end && !failed_ && !run_.is_over(number); ++number) {
    begin_block(number);
    run_in_turns();
  }
}

void SimBlock::run_in_row() {
  for (int64_t number = number_; number < end_ && !run_.is_over(number); ++number) {
    begin_block(number);
    for (BlockThread& thread : threads()) {
      thread.fiber = &memory_.fibers[0];
      run_.entry(&thread, run_.launch.arguments.data());
    }
  }
}

void SimBlock::run_in_turns() {
  for (BlockThread& thread : threads()) {
    thread.fiber = &memory_.fibers[thread.tid_x];
    thread.fiber->start(
        [](void* self) {
          auto& mine = *static_cast<BlockThread*>(self);
          const SimRun& run = mine.block->of();
          run.entry(&mine, run.launch.arguments.data());
          mine.state = State::kEnded;
        },
        &thread);
  }
  do {
    for (uint32_t first = 0; first < count_ && !failed_; first += kWarpLanes) run_warp(first);
  } while (!failed_ && pass_barrier());
  const bool ended =
      std::ranges::all_of(threads(), [](const BlockThread& t) { return t.state == State::kEnded; });
  if (ended || failed_) return;
  failed_ = true;
  run_.fail(number_, deadlock());
}

// Runs the warp until all of its lanes have ended or wait for other warps.
void SimBlock::run_warp(uint32_t first) {
  do {
    for (uint32_t lane = 0; lane < kWarpLanes && first + lane < count_ && !failed_; ++lane) {
      BlockThread& thread = memory_.threads[first + lane];
      if (thread.state == State::kReady) thread.fiber->run();
    }
  } while (!failed_ && pass_warp(first));
}

// All threads must be at the same barrier.
bool SimBlock::pass_barrier() {
  const BlockThread& one = memory_.threads[0];
  for (const BlockThread& each : threads()) {
    if (each.state != State::kAtBarrier || each.site != one.site) return false;
  }
  for (BlockThread& each : threads()) {
    each.state = State::kReady;
    ++each.epoch;
    each.clocks = {};
    each.clocks[each.tid_x % kWarpLanes] = 1;
  }
  return true;
}

bool SimBlock::waits_with(const BlockThread& a, const BlockThread& b) const {
  return a.state == b.state && a.site == b.site && a.mask == b.mask;
}

uint32_t SimBlock::lanes_of(uint32_t first) const {
  const uint32_t lanes = std::min(count_ - first, kWarpLanes);
  return lanes == kWarpLanes ? ~uint32_t{0} : (uint32_t{1} << lanes) - 1;
}

// Lets the lanes continue whose partners have all arrived; returns whether there are any.
bool SimBlock::pass_warp(uint32_t first) {
  bool passed = false;
  const uint32_t lanes = lanes_of(first);
  for (uint32_t lane = 0; lane < kWarpLanes && !failed_; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const BlockThread& one = memory_.threads[first + lane];
    if (one.state != State::kAtShuffle && one.state != State::kAtWarpBarrier) continue;
    const uint32_t group = one.mask & lanes;
    bool all = true;
    for (uint32_t other = 0; other < kWarpLanes && all; ++other) {
      if ((group >> other & 1) == 0) continue;
      all = waits_with(one, memory_.threads[first + other]);
    }
    if (!all) continue;
    pass_group(first, group);
    passed = true;
  }
  return passed;
}

void SimBlock::pass_group(uint32_t first, uint32_t group) {
  const auto one = static_cast<uint32_t>(std::countr_zero(group));
  if (memory_.threads[first + one].state == State::kAtWarpBarrier) {
    join_clocks(first, group);
  } else if (Status status = exchange(first, group); !status.ok()) {
    failed_ = true;
    run_.fail(number_, std::move(status));
    return;
  }
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((group >> lane & 1) != 0) memory_.threads[first + lane].state = State::kReady;
  }
}

// Merges the clocks of the lanes of a warp barrier: each then knows all accesses of the others.
void SimBlock::join_clocks(uint32_t first, uint32_t group) {
  std::array<uint16_t, kWarpLanes> joined{};
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((group >> lane & 1) == 0) continue;
    const auto& clocks = memory_.threads[first + lane].clocks;
    for (uint32_t i = 0; i < kWarpLanes; ++i) joined[i] = std::max(joined[i], clocks[i]);
  }
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((group >> lane & 1) == 0) continue;
    auto& clocks = memory_.threads[first + lane].clocks;
    clocks = joined;
    if (clocks[lane] < UINT16_MAX) ++clocks[lane];
  }
}

namespace {

// The lane that a shuffle reads from, as the instruction defines it.
uint32_t source_of(const BlockThread& thread) {
  const auto lane = static_cast<int32_t>(thread.tid_x % kWarpLanes);
  const auto clamp = static_cast<int32_t>(thread.bounds & 31);
  const auto segments = static_cast<int32_t>(thread.bounds >> 8 & 31);
  const int32_t most = (lane & segments) | (clamp & ~segments);
  const int32_t least = lane & segments;
  const auto b = static_cast<int32_t>(thread.lane & 31);
  int32_t source = lane;
  switch (thread.mode) {
    case ShuffleMode::kIdx:
      source = least | (b & ~segments);
      break;
    case ShuffleMode::kUp:
      source = lane - b;
      break;
    case ShuffleMode::kDown:
      source = lane + b;
      break;
    case ShuffleMode::kBfly:
      source = lane ^ b;
      break;
  }
  const bool within = thread.mode == ShuffleMode::kUp ? source >= most : source <= most;
  return static_cast<uint32_t>(within ? source : lane);
}

}  // namespace

Status SimBlock::exchange(uint32_t first, uint32_t group) {
  std::array<uint32_t, kWarpLanes> values{};
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((group >> lane & 1) == 0) continue;
    const BlockThread& thread = memory_.threads[first + lane];
    uint32_t source = source_of(thread);
    if ((group >> source & 1) == 0) {
      // On a GPU it gets any value.
      if (run_.memory) {
        return internal_error(
            "{}thread {} of block {} reads in {} from lane {}, which takes no part",
            prefix_of(run_.kernel), thread.tid_x, number_, place_of(thread), source);
      }
      source = lane;
    }
    values[lane] = memory_.threads[first + source].value;
  }
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((group >> lane & 1) != 0) memory_.threads[first + lane].value = values[lane];
  }
  return {};
}

std::string SimBlock::place_of(const BlockThread& thread) const {
  return run_.program.image().sites[thread.site];
}

// The error of a deadlock: the first waiting thread, and one for which it waits in vain.
Status SimBlock::deadlock() const {
  const auto all = std::span<const BlockThread>(memory_.threads.data(), count_);
  const auto& one =
      *std::ranges::find_if(all, [](const BlockThread& t) { return t.state != State::kEnded; });
  const bool in_warp = one.state != State::kAtBarrier;
  const auto other = std::ranges::find_if(all, [&](const BlockThread& t) {
    if (!in_warp) return t.state != one.state || t.site != one.site;
    const bool is_partner = t.tid_x / kWarpLanes == one.tid_x / kWarpLanes &&
                            (one.mask >> t.tid_x % kWarpLanes & 1) != 0;
    return is_partner && !waits_with(one, t);
  });
  const std::string why = other == all.end()              ? "with another mask"
                          : other->state == State::kEnded ? "which has ended"
                          : other->site == one.site
                              ? "which waits there with another mask"
                              : fmt::format("which waits at {}", place_of(*other));
  return internal_error("{}block {} cannot go on: thread {} waits at {} for thread {}, {}",
                        prefix_of(run_.kernel), number_, one.tid_x, place_of(one),
                        other == all.end() ? one.tid_x : other->tid_x, why);
}

void SimBlock::wait(BlockThread& thread, State state, uint32_t site) {
  thread.state = state;
  thread.site = site;
  thread.fiber->give_way();
}

void SimBlock::fail(BlockThread& thread, Status status) {
  run_.fail(number_, std::move(status));
  failed_ = true;
  thread.fiber->leave();
}

void SimBlock::look(BlockThread& thread, const SimAccess& access) {
  if (access.object == kUnknownObject && thread.fiber->owns(access.address)) return;
  const Toucher by = {number_, thread.tid_x, thread.epoch, thread.clocks};
  Status status = run_.memory->look(access, shared_, by);
  if (!status.ok()) fail(thread, std::move(status));
}

// --- Functions that simulated code calls

namespace {

void barrier(SimThread* thread, uint32_t site) {
  thread_of(thread).block->wait(thread_of(thread), State::kAtBarrier, site);
}

// A fiber is abandoned where it fails, and nothing on its stack is destroyed; error texts are
// therefore made in separate functions.
Status not_in_mask(const BlockThread& thread, uint32_t site, uint32_t mask) {
  const SimRun& run = thread.block->of();
  return internal_error("{}thread {} of block {} is not in the mask {:#x} of {}",
                        prefix_of(run.kernel), thread.tid_x, thread.block->number(), mask,
                        run.program.image().sites[site]);
}

void check_mask(BlockThread& thread, uint32_t site, uint32_t mask) {
  if ((mask >> thread.tid_x % kWarpLanes & 1) != 0) return;
  Status status = not_in_mask(thread, site, mask);
  thread.block->fail(thread, std::move(status));
}

void warp_barrier(SimThread* thread, uint32_t site, uint32_t mask) {
  BlockThread& mine = thread_of(thread);
  check_mask(mine, site, mask);
  mine.mask = mask;
  mine.block->wait(mine, State::kAtWarpBarrier, site);
}

uint32_t shuffle(SimThread* thread, uint32_t site, uint32_t mode, uint32_t mask, uint32_t value,
                 uint32_t lane, uint32_t bounds) {
  BlockThread& mine = thread_of(thread);
  check_mask(mine, site, mask);
  mine.mask = mask;
  mine.mode = static_cast<ShuffleMode>(mode);
  mine.value = value;
  mine.lane = lane;
  mine.bounds = bounds;
  mine.block->wait(mine, State::kAtShuffle, site);
  return mine.value;
}

void access(SimThread* thread, const std::byte* address, int64_t bytes, uint32_t alignment,
            uint32_t kind, int32_t object) {
  BlockThread& mine = thread_of(thread);
  mine.block->look(mine, {address, bytes, alignment, static_cast<AccessKind>(kind), object});
}

Status outside_of_array(const BlockThread& thread, int64_t offset, int64_t bytes, int64_t size) {
  return internal_error(
      "{}thread {} of block {} touches {} bytes at {} of an array of its own, which has {} bytes",
      prefix_of(thread.block->of().kernel), thread.tid_x, thread.block->number(), bytes, offset,
      size);
}

void access_private(SimThread* thread, const std::byte* address, int64_t bytes,
                    const std::byte* array, int64_t size) {
  if (address >= array && bytes <= size - (address - array)) return;
  BlockThread& mine = thread_of(thread);
  Status status = outside_of_array(mine, address - array, bytes, size);
  mine.block->fail(mine, std::move(status));
}

void stop(SimThread* thread) {
  BlockThread& mine = thread_of(thread);
  Status status = stopped(mine.block->of());
  mine.block->fail(mine, std::move(status));
}

template <class F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::span<const codegen::HostFunction> sim_functions() {
  static const codegen::HostFunction functions[] = {
      {kSimFunctionNames[0], address_of(barrier)},
      {kSimFunctionNames[1], address_of(warp_barrier)},
      {kSimFunctionNames[2], address_of(shuffle)},
      {kSimFunctionNames[3], address_of(access)},
      {kSimFunctionNames[4], address_of(access_private)},
      {kSimFunctionNames[5], address_of(stop)}};
  return functions;
}

}  // namespace tenon::gpu
