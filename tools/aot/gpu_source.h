// The host part of a model for a GPU: tables in C that tenon_aot_cuda.c reads.
#pragma once

#include "backends/gpu/aot/aot.h"
#include "tools/aot/project.h"

namespace tenon::tools {

/// The symbol of a blob: no function and no other model has it.
std::string blob_symbol(const AotProject& project, std::string_view kind);
/// NAME.c, for which the files of gpu_blobs() lie beside it.
std::string gpu_source(const AotProject& project, const gpu::AheadModel& model);

/// The images and embedded constants: NAME.c.cubin, NAME.c.ptx …, NAME.c.constants.
std::vector<std::pair<std::string, std::string_view>> gpu_blobs(const AotProject& project,
                                                                const gpu::AheadModel& model);

}  // namespace tenon::tools
