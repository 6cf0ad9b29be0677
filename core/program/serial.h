// The serial form of Programs: one file with kernels, constants, buffer plan and steps, which
// another process, machine or release can load.
//
// Version 3 (2: without arrays in the configurations of custom calls; 1: and without composites
// among library calls); `testdata/` keeps a file of each version, which a test loads. A Program is
// written as the oldest version that holds it.
#pragma once

#include <string>
#include <string_view>

#include "core/base/archive.h"
#include "core/kernel/serial/serial.h"
#include "core/program/program.h"
#include "core/program/segment.h"

namespace tenon::program {

/// A new version of the serial form of kernels requires a new version of this one.
inline constexpr serial::Format kProgramFormat = {"TNPR", "program", 1, 3};
static_assert(kernel::kKernelFormat.newest == 1);

/// The serial form of a single library call, for plug-ins.
inline constexpr serial::Format kCallFormat = {"TNCL", "library call", 1, 2};
std::string save_call(const LibraryCall& call);
/// Errors: those of serial::unseal.
Result<LibraryCall> load_call(std::string_view bytes);

/// The serial form of a valid Program.
std::string save(const Program& program);
/// The Program, validated. Errors: those of serial::unseal and validate; they name the fault and
/// its byte.
Result<Program> load_program(std::string_view bytes, bool damaged_too = false);

/// The same for bytes to which the host of this process has just saved a validated Program. The
/// Program is not validated again, unless another version than this release's wrote the bytes.
Result<Program> load_validated_program(std::string_view bytes);

/// For use within other files. A Program that is read is not validated, and its kernels are not
/// verified.
void serialize(serial::ArchiveWriter& a, const Program& program);
void serialize(serial::ArchiveReader& a, Program& program);
void serialize(serial::ArchiveWriter& a, const StepRange& range);
void serialize(serial::ArchiveReader& a, StepRange& range);
void serialize(serial::ArchiveWriter& a, const MemoryRef& ref);
void serialize(serial::ArchiveReader& a, MemoryRef& ref);

}  // namespace tenon::program
