// The kernel that a device ran for a wrong element: its source, with the values of the kernel
// interpreter beside it (core/kernel/render/listing.h).
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/kernel/render/render.h"
#include "core/program/program.h"
#include "core/types/literal.h"

namespace tenon::conformance {

/// The Program that a device runs for a module.
struct DeviceProgram {
  program::Program program;  ///< Its kernels are those that the device gets.
  /// How the device has them rendered, if it asks for source.
  std::optional<kernel::RenderOptions> source;
};

/// A result of a device, and its first element that is wrong.
struct WrongResult {
  size_t result = 0;
  int64_t element = 0;
  const Literal& got;
};

/// The listing of the last kernel that stores to the element. The interpreter computes all of the
/// program, so the kernel's operands are right. Empty if no kernel stores to it, or if the program
/// cannot be interpreted (a custom call).
std::string kernel_listing(const DeviceProgram& device, const std::vector<Literal>& arguments,
                           const WrongResult& wrong);

/// A launch, with the bytes of its buffers as they were before it.
struct LaunchedKernel {
  const kernel::Kernel& kernel;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<uint64_t> scalars;
  /// For each buffer, the first buffer with the same memory: buffers may be in place (K4).
  std::vector<size_t> same_as;
};

/// The listing of one launch, after which the device's bytes of a buffer are `got`: of the first
/// element that differs from the interpreter's in the bytes [begin, end). Empty if none does.
std::string launch_listing(const LaunchedKernel& launched,
                           const std::optional<kernel::RenderOptions>& source, size_t buffer,
                           std::span<const std::byte> got, size_t begin, size_t end);

}  // namespace tenon::conformance
