// ONNX models through the reader and the importer: what is imported is valid.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "hlo/onnx/importer.h"
#include "hlo/onnx/reader.h"
#include "hlo/verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 20)) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(tenon::hlo::is_onnx(bytes));
  tenon::hlo::OnnxLimits limits;
  limits.max_tensor_bytes = 1 << 20;
  const auto model = tenon::hlo::read_onnx(bytes, "", limits);
  if (!model) return 0;
  const auto imported = tenon::hlo::import_onnx(*model);
  if (imported && !tenon::hlo::verify(*imported->module).ok()) std::abort();
  return 0;
}
