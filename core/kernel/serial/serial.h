// core/kernel/serial/: the serial form of kernels.
//
// Bytes that another process, machine or release reads.
//
// A kernel is written as it is nested: values are numbered in the order in which they are defined,
// so that each one refers to earlier values only. Version 1; `testdata/` keeps a file of each
// version, which a test loads.
#pragma once

#include <string>
#include <string_view>

#include "core/base/archive.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

inline constexpr serial::Format kKernelFormat = {"TNKN", "kernel", 1, 1};

/// The serial form of a verified kernel.
std::string save(const Kernel& kernel);
/// The kernel, verified. Errors: those of serial::unseal, of the reader (with the byte), of verify.
Result<Kernel> load_kernel(std::string_view bytes, bool damaged_too = false);

/// The same of bytes that the host of this process has just saved a verified kernel to: they are
/// not verified again, unless another version wrote them than this release does.
Result<Kernel> load_verified_kernel(std::string_view bytes);

/// A kernel as a part of another file: a kernel that is read is well nested, but not verified.
void serialize(serial::ArchiveWriter& a, const Kernel& kernel);
void serialize(serial::ArchiveReader& a, Kernel& kernel);

}  // namespace tenon::kernel
