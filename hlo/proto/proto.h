// hlo/proto/: reads HLO protos (HloModuleProto of XLA) into a RawModule.
//
// TensorFlow and PyTorch/XLA send programs in this form. Tuples become lists of values, calls and
// fusions are inlined, and each computation that an op applies becomes a region. Layouts are not
// read: the arrays of a program are the same in each.
#pragma once

#include <string>
#include <string_view>

#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// Whether the bytes can be an HloModuleProto. The form has no magic number: all fields at the top
/// are looked at.
bool is_hlo_proto(std::string_view bytes);

/// Reads an HloModuleProto. `file_name` is used in errors. Errors: kDataLoss for damaged bytes;
/// kUnimplemented for ops that have no counterpart, by name.
Result<RawModule> parse_hlo_proto(std::string_view bytes, const std::string& file_name,
                                  const ImportLimits& limits = {});

}  // namespace tenon::hlo
