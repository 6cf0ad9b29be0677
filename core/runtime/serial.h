// The serial form of compiled Programs, which another process can load and run without compiling.
#pragma once

#include <string>
#include <string_view>

#include "core/base/archive.h"
#include "core/program/serial.h"
#include "core/runtime/executable.h"

namespace tenon::runtime {

/// A new version of a Program's serial form requires a new version of this one.
inline constexpr serial::Format kCompiledProgramFormat = {"TNCP", "compiled program", 1, 4};
static_assert(program::kProgramFormat.newest == 3);

/// Identifies the compiler and the target of a compiled Program (B13, B14): the name and version of
/// the backend, and its TargetInfo with the compiler_id, as text.
std::string compiled_for(const backend::Backend& backend, const backend::TargetInfo& target);

/// A compiled Program, including plans and binaries, with the text of `compiled_for`: what PJRT
/// caches within its own form, and the file of `tenon compile`.
std::string save(const CompiledProgram& compiled, std::string_view compiled_for);

/// Whether what was compiled for `was` may run where compiled_for() says `is`. The error,
/// kFailedPrecondition, names what differs: the backend, its version, or a member of the target.
Status check_compiled_for(std::string_view was, std::string_view is);

/// Reads a compiled Program from bytes that may be damaged: its Program is validated, and so are
/// all references in the rest. Only the backend understands the binaries; they are code, so load
/// only bytes from a trusted source. Errors: kFailedPrecondition for bytes of another version, or
/// compiled for another `compiled_for`; those of serial::unseal and validate.
Result<CompiledProgram> load_compiled_program(std::string_view bytes, std::string_view compiled_for,
                                              bool damaged_too = false);

/// OK if placements, segments and plans fit the Program, which must be valid.
Status validate_compiled(const CompiledProgram& compiled);

}  // namespace tenon::runtime
