// Compiles a part of a program, with its loops and branches, to code for a GPU.
//
// Thread-safety: as compile.h.
#pragma once

#include "backends/gpu/codegen/compile.h"
#include "core/program/program.h"

namespace tenon::gpu {

/// Compiles the kernels of `program`, which are legal for gpu_features(), and its steps. A copy of
/// the program becomes a launch like the others, so that a graph consists of launches alone.
/// Library calls become the steps beside them. Declines the kernels that compile() declines. The
/// memories are those of program::memory_sizes(). Errors: kUnimplemented for steps of the host.
Result<CompiledKernels> compile_segment(const backend::TargetInfo& target,
                                        const program::Program& program, Assembler& assembler);

/// The same for several programs, whose kernels are in one image: `segments` gets one for each.
Result<CompiledKernels> compile_segments(const backend::TargetInfo& target,
                                         std::span<const program::Program* const> programs,
                                         Assembler& assembler, std::vector<GpuSegment>& segments);

}  // namespace tenon::gpu
