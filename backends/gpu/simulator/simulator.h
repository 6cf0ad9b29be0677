// backends/gpu/simulator/: a GPU simulated on the host: blocks of threads, checked memory.
//
// Runs launches of GPU code on the host: blocks on oneTBB threads, a block's threads as fibers that
// switch at barriers and shuffles.
//
// With checks (SimImage::checks), each access is checked first. An access outside of the buffers
// and variables of the launch, or one that races with another thread's (shadow.h), is an error of
// the launch, which names kernel, memory and threads. Blocks then run one after the other.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "backends/gpu/driver.h"
#include "backends/gpu/simulator/image.h"
#include "backends/llvm/jit.h"

namespace tenon::gpu {

/// The thread state that simulated code reads; pass.cpp knows the offset of each member.
struct SimThread {
  uint32_t tid_x = 0;
  uint32_t ntid_x = 0;
  uint32_t ctaid_x = 0;
  uint32_t ctaid_y = 0;
  uint32_t nctaid_x = 0;
  std::byte* shared = nullptr;
  /// Stop flags: execution stops when either becomes nonzero (B27).
  std::array<const volatile uint32_t*, 2> stops{};
};

/// A kernel as host code: `arguments` are pointers to the parameters' values.
using SimEntry = void (*)(SimThread* thread, const void* const* arguments);

/// The runtime functions that simulated code calls; the names are below, the types in pass.cpp.
enum class SimFunction : uint8_t { kBarrier, kWarpBarrier, kShuffle, kAccess, kPrivate, kStop };
constexpr const char* kSimFunctionNames[] = {"tenon_sim_barrier", "tenon_sim_warp_barrier",
                                             "tenon_sim_shuffle", "tenon_sim_access",
                                             "tenon_sim_private", "tenon_sim_stop"};
enum class ShuffleMode : uint8_t { kIdx, kUp, kDown, kBfly };

/// A loaded image.
class SimProgram {
 public:
  /// Errors: bytes that are not an image; an image that does not link.
  static Result<std::shared_ptr<const SimProgram>> load(std::string_view image);

  const SimImage& image() const { return image_; }
  SimEntry entry(size_t kernel) const { return entries_[kernel]; }

 private:
  SimImage image_;  // Without its object.
  std::unique_ptr<codegen::LoadedObjects> objects_;
  std::vector<SimEntry> entries_;
};

struct SimLaunch {
  size_t kernel = 0;
  LaunchShape shape;
  std::span<const void* const> arguments;           ///< A pointer to each parameter's value.
  std::array<const volatile uint32_t*, 2> stops{};  ///< Both are polled.
};

/// Returns when all blocks are done. Errors: kCancelled if it was stopped; kInternal for errors of
/// the kernel: a barrier or shuffle that some threads do not reach, and the errors that the checks
/// detect.
Status simulate(const SimProgram& program, const SimLaunch& launch);

}  // namespace tenon::gpu
