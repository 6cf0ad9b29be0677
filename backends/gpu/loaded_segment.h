// A segment on a GPU: given to it as one graph where that saves time, else launch by launch.
#pragma once

#include <list>
#include <mutex>
#include <vector>

#include "backends/gpu/codegen/code.h"
#include "backends/gpu/driver.h"

namespace tenon::gpu {

/// Thread-safety: all functions may be called from any thread.
class GpuLoadedSegment {
 public:
  /// `functions` are those of the kernels of `code`, a segment. Without `graphs`, its launches are
  /// given one by one. The context must outlive this.
  GpuLoadedSegment(Context& context, GpuCode code, std::vector<Function> functions,
                   bool graphs = true);
  ~GpuLoadedSegment();
  GpuLoadedSegment(const GpuLoadedSegment&) = delete;
  GpuLoadedSegment& operator=(const GpuLoadedSegment&) = delete;

  /// The required bytes of each memory.
  const std::vector<int64_t>& memories() const { return code_.segment.memories; }

  /// Gives the work to the stream, on memories at these addresses.
  ///
  /// A graph has the addresses in it: those of the last calls are kept with the graphs made for
  /// them, and another call gives the oldest graph its own. A segment without loops and branches
  /// becomes a graph at its second call, because making one takes longer than a few launches. If
  /// the driver has no graphs, or makes none of this segment, the launches are given one by one;
  /// then this waits for the values on which loops and branches depend, and `stop` ends a loop.
  Status launch(Stream stream, const std::vector<Address>& memories, const volatile uint32_t* stop);

  /// Launches of graphs and of single kernels so far.
  int64_t graph_launches() const;
  int64_t kernel_launches() const;
  /// The error for which launches are given one by one since; OK if there was none.
  Status refusal() const;

 private:
  struct Known {
    std::vector<Address> memories;
    Graph graph = 0;
  };

  GpuWork work_on(const std::vector<Address>& memories) const;
  Result<Graph> graph_for(const std::vector<Address>& memories);
  void free_graphs();
  Status run(Stream stream, const GpuWork& work, uint32_t sequence, const volatile uint32_t* stop);
  Status step(Stream stream, const GpuWork& work, const WorkLaunch& launch,
              const volatile uint32_t* stop);
  Status step(Stream stream, const GpuWork& work, const WorkLoop& loop,
              const volatile uint32_t* stop);
  Status step(Stream stream, const GpuWork& work, const WorkChoice& choice,
              const volatile uint32_t* stop);
  Status read(Stream stream, Address from, std::span<std::byte> to);

  Context& context_;
  const GpuCode code_;
  const std::vector<Function> functions_;
  bool pays_at_once_ = false;  // Whether a graph pays at the first call.
  bool has_graphs_ = true;     // Whether graphs pay at all, and the driver makes them.
  mutable std::mutex mutex_;
  Status refusal_;
  std::list<Known> known_;  // The last used first.
  // Calls that are given without an await between them often have some sets of addresses in turn.
  size_t most_graphs_ = 4;
  int64_t calls_ = 0;
  int64_t graph_launches_ = 0;
  int64_t kernel_launches_ = 0;
};

}  // namespace tenon::gpu
