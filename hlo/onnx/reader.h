// Reads ONNX models (ModelProto) and tensors (TensorProto).
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "hlo/onnx/model.h"

namespace tenon::hlo {

struct OnnxLimits {
  int max_depth = 64;  ///< Graphs within attributes of nodes.
  int64_t max_tensor_bytes = int64_t{16} << 30;
  int64_t max_external_bytes = int64_t{64} << 30;  ///< All external data of a model.
};

/// Whether the bytes can be a ModelProto. The form has no magic number: all fields at the top are
/// looked at.
bool is_onnx(std::string_view bytes);

/// Reads a ModelProto. External data are read from `directory` and folders below it; with an empty
/// `directory` they are an error. Errors: kDataLoss for damaged bytes; kUnimplemented for tensors
/// of types that Tenon lacks.
Result<OnnxModel> read_onnx(std::string_view bytes, const std::string& directory,
                            const OnnxLimits& limits = {});

/// Reads a TensorProto without external data.
Result<Literal> read_onnx_tensor(std::string_view bytes, const OnnxLimits& limits = {});

}  // namespace tenon::hlo
