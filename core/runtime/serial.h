// The serial form of compiled Programs: what another process loads and runs without compiling.
#pragma once

#include <string>
#include <string_view>

#include "core/base/archive.h"
#include "core/program/serial.h"
#include "core/runtime/executable.h"

namespace tenon::runtime {

/// A new version of a Program's serial form is a new version of this too.
inline constexpr serial::Format kCompiledProgramFormat = {"TNCP", "compiled program", 1, 2};
static_assert(program::kProgramFormat.newest == 2);

/// The compiler and the target that a Program was compiled by and for (B13, B14): the name and
/// version of the backend, and its TargetInfo with the compiler_id, as text.
std::string compiled_for(const backend::Backend& backend, const backend::TargetInfo& target);

/// A compiled Program, plans and binaries included, with what it was compiled for.
std::string save(const CompiledProgram& compiled, std::string_view compiled_for);

/// The compiled Program of bytes that may be damaged: its Program is validated, and the rest refers
/// to nothing that is not there. The binaries are code that only the backend understands: who loads
/// them trusts whom they come from. Errors: kFailedPrecondition for bytes of another version and
/// for what was compiled for something else than `compiled_for`; those of serial::unseal and
/// validate.
Result<CompiledProgram> load_compiled_program(std::string_view bytes, std::string_view compiled_for,
                                              bool damaged_too = false);

/// OK if placements, segments and plans fit the Program, which is valid.
Status validate_compiled(const CompiledProgram& compiled);

}  // namespace tenon::runtime
