// core/kernel/serial/: the serial form of kernels.
//
// Bytes that another process, machine or release can read.
//
// A kernel is written in its nesting order: values are numbered in the order of their definitions,
// so that each refers only to earlier values. Version 1; `testdata/` keeps a file of each version,
// which a test loads.
#pragma once

#include <string>
#include <string_view>

#include "core/base/archive.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

inline constexpr serial::Format kKernelFormat = {"TNKN", "kernel", 1, 1};

/// The serial form of a verified kernel.
std::string save(const Kernel& kernel);
/// A verified kernel. Errors: those of serial::unseal, of the reader (with the byte), of verify.
Result<Kernel> load_kernel(std::string_view bytes, bool damaged_too = false);

/// The same for bytes to which the host of this process has just saved a verified kernel. The
/// kernel is not verified again, unless another version than this release's wrote the bytes.
Result<Kernel> load_verified_kernel(std::string_view bytes);

/// For use within other files. A kernel that is read is well nested, but not verified.
void serialize(serial::ArchiveWriter& a, const Kernel& kernel);
void serialize(serial::ArchiveReader& a, Kernel& kernel);

}  // namespace tenon::kernel
