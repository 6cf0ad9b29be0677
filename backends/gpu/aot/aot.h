// backends/gpu/aot/: a model compiled ahead of time for a GPU: images, constants, tables of work.
//
// Programs that were compiled for the backend of make_ahead_backend() become one image, by the code
// of compile_segment, and a list of launches, loops and branches each. tools/aot/ writes them as C.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/codegen/code.h"
#include "core/program/program.h"

namespace tenon::gpu {

/// The triple of GPUs.
inline constexpr std::string_view kAheadTriple = "nvptx64-nvidia-cuda";

struct AheadTarget {
  std::string cpu;  ///< "sm_90"; "simulator": images that the tests' libcuda.so.1 runs.
  /// Kernels are chosen for so many; 0: those of a common card.
  int64_t multiprocessors = 0;
};

struct AheadOptions {
  AheadTarget target;
  std::string version;  ///< The compiler's, for the hash.
  bool weights_in_file = false;
};

/// The work of a function. Places are an array's (arguments, then results), of `constants()`, of
/// `arena()`, or have no address.
struct AheadEntry {
  uint32_t arrays = 0;
  GpuSegment segment;
  int64_t arena_bytes = 0;
  bool waits = false;             ///< It has loops or branches.
  std::vector<uint32_t> aliases;  ///< program::parameters_of_results.

  uint32_t constants() const { return arrays; }
  uint32_t arena() const { return arrays + 1; }
};

struct AheadConstant {
  Shape shape;
  int64_t bytes = 0;
  int64_t offset = 0;  ///< In `constants` or `weights` of the model.
  bool in_file = false;
};

struct AheadImage {
  std::string kind;  ///< "cubin", "ptx"; "simulator".
  std::string bytes;
};

struct AheadModel {
  std::vector<AheadImage> images;  ///< A driver takes the first one that it accepts; at most two.
  std::vector<GpuKernelCode> kernels;
  std::vector<AheadEntry> entries;
  std::vector<AheadConstant> list;
  std::string constants;  ///< The embedded ones. In the GPU's memory the weights lie behind them.
  std::string weights;    ///< The file's bytes.
  std::string hash;       ///< Identifies the sources.
  std::string no_cubin;   ///< Why there is none for a GPU that has one; else empty.
};

/// The newest processor with a name in AheadTarget whose code a GPU runs: "sm_86" for "sm_87". The
/// name as it is, if there is none.
std::string newest_known(std::string_view gpu);

/// A backend with one device, which no process can open: Programs compiled for it are what
/// compile_ahead() takes. Errors: kInvalidArgument, with the names of processors.
Result<std::shared_ptr<backend::Backend>> make_ahead_backend(const AheadTarget& target);

/// Errors: kUnimplemented for a step that needs a host, by its label; more constants than an object
/// can hold; kFailedPrecondition for a TENON_PTXAS that cannot be run.
Result<AheadModel> compile_ahead(std::span<const program::Program* const> programs,
                                 const AheadOptions& options);

}  // namespace tenon::gpu
