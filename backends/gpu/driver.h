// The interface to a GPU: the CUDA driver or the simulator implements it, device.h uses it.
//
// Each function corresponds to the function of the CUDA driver API with the same purpose. Device
// memory is an address that only the driver may dereference; streams are in order. Functions other
// than synchronize() and those whose names say that they block return before the work is done;
// copies to and from the host may return only after it, because CUDA may wait for the stream if
// memory is pageable.
//
// Thread-safety: a Driver from any thread; a Context as rule B7 says of a device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"

namespace tenon::gpu {

using Address = uint64_t;  ///< In device memory; 0: null.
using Stream = uint64_t;
using Event = uint64_t;
using Module = uint64_t;
using Function = uint64_t;
using Graph = uint64_t;

struct GpuChip {
  std::string name;                ///< "NVIDIA H200"
  int32_t compute_capability = 0;  ///< 90: sm_90
  int64_t memory_bytes = 0;
  int64_t multiprocessors = 1;
  int64_t shared_bytes = 48 << 10;  ///< Per block, without a special request.
  int64_t most_threads = 1024;      ///< Per block.
};

/// A launch of one-dimensional blocks; more than 2^31 - 1 blocks go along y.
struct LaunchShape {
  int64_t blocks = 1;
  uint32_t threads = 32;
  /// The accessible bytes from each argument that is an address, for drivers that check accesses;
  /// empty: unknown.
  std::span<const int64_t> buffer_bytes;
};

/// How the blocks of a launch are numbered: block y * x + x in a grid of `x` columns and `y` rows,
/// whose last row may be longer than needed.
struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
};
constexpr Grid grid_of(int64_t blocks) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const int64_t rows = (blocks + kMost - 1) / kMost;
  if (rows <= 1) return {static_cast<uint32_t>(blocks), 1};
  return {static_cast<uint32_t>((blocks + rows - 1) / rows), static_cast<uint32_t>(rows)};
}

// --- Work of several launches, with loops and branches

/// A launch with its arguments, each in the low bytes of a value.
struct WorkLaunch {
  Function function = 0;
  int64_t blocks = 1;
  uint32_t threads = 32;
  std::vector<uint64_t> arguments;
  /// As in LaunchShape; the list outlives the GpuWork.
  std::span<const int64_t> buffer_bytes;
};

/// Runs sequence `condition`; while that leaves an odd byte at `predicate`, runs `body` and
/// `condition` again.
struct WorkLoop {
  uint32_t condition = 0;
  uint32_t body = 0;
  Address predicate = 0;
};

/// Runs one of the branches. A pred, one byte, chooses branch 0 if it is true, else branch 1; an
/// s32 chooses the branch of that number, and the last one if there is none.
struct WorkChoice {
  Address index = 0;
  bool is_pred = false;
  std::vector<uint32_t> branches;
};

using WorkStep = std::variant<WorkLaunch, WorkLoop, WorkChoice>;
struct GpuWork {
  std::vector<std::vector<WorkStep>> sequences;  ///< The first is the entry.
};

/// The branch that a WorkChoice of `count` branches runs.
constexpr uint32_t chosen_branch(bool is_pred, int32_t index, size_t count) {
  const auto last = static_cast<uint32_t>(count - 1);
  if (is_pred) return index != 0 ? 0 : 1;
  return index < 0 || static_cast<uint32_t>(index) > last ? last : static_cast<uint32_t>(index);
}

/// An open GPU. The destructor waits for running work and releases everything.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  virtual ~Context() = default;

  virtual Result<Address> allocate(int64_t bytes) = 0;
  virtual Status free(Address memory) = 0;
  virtual Result<Stream> create_stream() = 0;
  virtual Status copy_to_device(Stream stream, Address to, const std::byte* from,
                                int64_t bytes) = 0;
  virtual Status copy_to_host(Stream stream, std::byte* to, Address from, int64_t bytes) = 0;
  virtual Status copy_on_device(Stream stream, Address to, Address from, int64_t bytes) = 0;
  /// `pattern` has 1, 2, 4 or 8 bytes; `to` and `bytes` are multiples of that.
  virtual Status fill(Stream stream, Address to, int64_t bytes,
                      std::span<const std::byte> pattern) = 0;
  virtual Result<Module> load(std::string_view image) = 0;
  virtual Status unload(Module module) = 0;
  virtual Result<Function> function(Module module, const std::string& symbol) = 0;
  /// `arguments`: a pointer to each parameter's value, read before this returns. `stop`: when it is
  /// not 0, the driver ends the work early if it can (B27).
  virtual Status launch(Stream stream, Function function, const LaunchShape& shape,
                        std::span<const void* const> arguments, const volatile uint32_t* stop) = 0;
  /// Work that the GPU runs by itself, loops included, each time that the graph is launched.
  /// Errors: kUnimplemented: this driver has no such graphs; the caller gives the launches itself.
  virtual Result<Graph> make_graph(const GpuWork& work);
  /// Gives the launches that follow other arguments and addresses; everything else of `work` is
  /// that of the graph. After an error the graph is only fit to be freed.
  virtual Status update_graph(Graph graph, const GpuWork& work);
  /// `stop` as for launch().
  virtual Status launch_graph(Stream stream, Graph graph, const volatile uint32_t* stop);
  /// The graph may still be running.
  virtual void free_graph(Graph graph);
  virtual Result<Event> record(Stream stream) = 0;
  virtual Status wait(Stream stream, Event event) = 0;
  /// Whether the work before the event is done; returns an error of that work.
  virtual Result<bool> query(Event event) = 0;
  /// Blocks until the work before the event is done.
  virtual Status synchronize(Event event) = 0;
  /// Seconds from the opening of the context until `event` was reached.
  virtual Result<double> seconds(Event event) = 0;
  virtual void release(Event event) = 0;
};

inline Result<Graph> Context::make_graph(const GpuWork& /*work*/) {
  return unimplemented("this driver has no graphs");
}
inline Status Context::update_graph(Graph graph, const GpuWork& /*work*/) {
  return invalid_argument("there is no graph {}", graph);
}
inline Status Context::launch_graph(Stream /*stream*/, Graph graph,
                                    const volatile uint32_t* /*stop*/) {
  return invalid_argument("there is no graph {}", graph);
}
inline void Context::free_graph(Graph /*graph*/) {}

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  /// Errors: kUnavailable, with the reason: no driver, no GPU.
  virtual Result<std::vector<GpuChip>> chips() = 0;
  virtual Result<std::unique_ptr<Context>> open(size_t chip) = 0;
};

}  // namespace tenon::gpu
