#include "backends/gpu/loaded_segment.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tenon::gpu {
namespace {

// A graph of fewer launches saves nothing.
constexpr size_t kLeastLaunches = 3;
// Making a graph of more launches would take too much time and memory.
constexpr size_t kMostLaunches = 4096;

Status stopped() { return Status(ErrorCode::kCancelled, "the execution was stopped"); }

bool is_stopped(const volatile uint32_t* stop) { return stop != nullptr && *stop != 0; }

}  // namespace

GpuLoadedSegment::GpuLoadedSegment(Context& context, GpuCode code, std::vector<Function> functions,
                                   bool graphs)
    : context_(context), code_(std::move(code)), functions_(std::move(functions)) {
  size_t launches = 0;
  for (const auto& sequence : code_.segment.sequences) {
    for (const SegmentStep& step : sequence) {
      const bool is_launch = std::holds_alternative<SegmentLaunch>(step);
      launches += is_launch ? 1 : 0;
      pays_at_once_ |= !is_launch;
    }
  }
  has_graphs_ =
      graphs && launches <= kMostLaunches && (pays_at_once_ || launches >= kLeastLaunches);
}

GpuLoadedSegment::~GpuLoadedSegment() { free_graphs(); }

void GpuLoadedSegment::free_graphs() {
  for (const Known& each : known_) context_.free_graph(each.graph);
  known_.clear();
}

int64_t GpuLoadedSegment::graph_launches() const {
  const std::lock_guard lock(mutex_);
  return graph_launches_;
}
int64_t GpuLoadedSegment::kernel_launches() const {
  const std::lock_guard lock(mutex_);
  return kernel_launches_;
}

Status GpuLoadedSegment::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

Status GpuLoadedSegment::launch(Stream stream, const std::vector<Address>& memories,
                                const volatile uint32_t* stop) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  if (has_graphs_ && (pays_at_once_ || calls_ > 1)) {
    const Result<Graph> graph = graph_for(memories);
    Status given = graph ? context_.launch_graph(stream, *graph, stop) : graph.error();
    if (given.ok()) ++graph_launches_;
    if (given.ok() || given.code() == ErrorCode::kUnavailable) return given;
    has_graphs_ = false;  // What fails once is not tried again: no work has been given.
    free_graphs();
    refusal_ = std::move(given);
  }
  return run(stream, work_on(memories), 0, stop);
}

Result<Graph> GpuLoadedSegment::graph_for(const std::vector<Address>& memories) {
  const auto known = std::ranges::find(known_, memories, &Known::memories);
  if (known != known_.end()) {
    known_.splice(known_.begin(), known_, known);
    return known->graph;
  }
  const GpuWork work = work_on(memories);
  if (known_.size() < most_graphs_) {
    const Result<Graph> made = context_.make_graph(work);
    if (made) known_.push_front({memories, *made});
    // Without room for another graph those that are there take turns.
    if (made || made.error().code() != ErrorCode::kResourceExhausted || known_.empty()) return made;
    most_graphs_ = known_.size();
  }
  Known oldest = std::move(known_.back());
  known_.pop_back();
  const Status updated = context_.update_graph(oldest.graph, work);
  if (updated.ok()) {
    oldest.memories = memories;
  } else {
    context_.free_graph(oldest.graph);
    if (updated.code() == ErrorCode::kUnavailable) return tl::make_unexpected(updated);
    TENON_ASSIGN(const Graph made, context_.make_graph(work));
    oldest = {memories, made};
  }
  known_.push_front(std::move(oldest));
  return known_.front().graph;
}

GpuWork GpuLoadedSegment::work_on(const std::vector<Address>& memories) const {
  const auto address = [&](const SegmentPlace& place) -> Address {
    if (place.memory >= memories.size()) return 0;
    return memories[place.memory] + static_cast<uint64_t>(place.offset);
  };
  GpuWork work;
  for (const auto& sequence : code_.segment.sequences) {
    std::vector<WorkStep>& steps = work.sequences.emplace_back();
    for (const SegmentStep& step : sequence) {
      if (const auto* launch = std::get_if<SegmentLaunch>(&step)) {
        const GpuKernelCode& kernel = code_.kernels[launch->kernel];
        if (kernel.blocks == 0) continue;
        WorkLaunch made = {
            functions_[launch->kernel], kernel.blocks, kernel.threads, {}, kernel.buffers};
        for (const SegmentPlace& each : launch->buffers) made.arguments.push_back(address(each));
        made.arguments.insert(made.arguments.end(), launch->scalars.begin(), launch->scalars.end());
        steps.emplace_back(std::move(made));
      } else if (const auto* loop = std::get_if<SegmentLoop>(&step)) {
        steps.emplace_back(WorkLoop{loop->condition, loop->body, address(loop->predicate)});
      } else if (const auto* choice = std::get_if<SegmentChoice>(&step)) {
        steps.emplace_back(WorkChoice{address(choice->index), choice->is_pred, choice->branches});
      }
    }
  }
  return work;
}

// --- Launch by launch

Status GpuLoadedSegment::run(Stream stream, const GpuWork& work, uint32_t sequence,
                             const volatile uint32_t* stop) {
  for (const WorkStep& each : work.sequences[sequence]) {
    TENON_TRY(std::visit([&](const auto& it) { return step(stream, work, it, stop); }, each));
  }
  return {};
}

Status GpuLoadedSegment::step(Stream stream, const GpuWork& /*work*/, const WorkLaunch& launch,
                              const volatile uint32_t* stop) {
  std::vector<const void*> arguments;
  arguments.reserve(launch.arguments.size());
  for (const uint64_t& each : launch.arguments) arguments.push_back(&each);
  ++kernel_launches_;
  return context_.launch(stream, launch.function,
                         {launch.blocks, launch.threads, launch.buffer_bytes}, arguments, stop);
}

Status GpuLoadedSegment::step(Stream stream, const GpuWork& work, const WorkLoop& loop,
                              const volatile uint32_t* stop) {
  while (true) {
    if (is_stopped(stop)) return stopped();
    TENON_TRY(run(stream, work, loop.condition, stop));
    std::byte go{};
    TENON_TRY(read(stream, loop.predicate, std::span(&go, 1)));
    if ((go & std::byte{1}) == std::byte{0}) return {};
    TENON_TRY(run(stream, work, loop.body, stop));
  }
}

Status GpuLoadedSegment::step(Stream stream, const GpuWork& work, const WorkChoice& choice,
                              const volatile uint32_t* stop) {
  std::array<std::byte, sizeof(int32_t)> bytes{};
  TENON_TRY(read(stream, choice.index, std::span(bytes).first(choice.is_pred ? 1 : bytes.size())));
  int32_t index = 0;
  std::memcpy(&index, bytes.data(), sizeof index);
  const uint32_t chosen = chosen_branch(choice.is_pred, index, choice.branches.size());
  return run(stream, work, choice.branches[chosen], stop);
}

Status GpuLoadedSegment::read(Stream stream, Address from, std::span<std::byte> to) {
  TENON_TRY(context_.copy_to_host(stream, to.data(), from, static_cast<int64_t>(to.size())));
  TENON_ASSIGN(const Event event, context_.record(stream));
  const Status done = context_.synchronize(event);
  context_.release(event);
  return done;
}

}  // namespace tenon::gpu
