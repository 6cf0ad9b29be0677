// ONNX models through the reader and the importer: what is imported is valid.
//
// Inputs of unknown size get sizes, and small inputs of integers values, so that shapes are
// computed; external data lie in a folder.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "core/base/file.h"
#include "fuzz/targets.h"
#include "hlo/onnx/importer.h"
#include "hlo/onnx/reader.h"
#include "hlo/verify/verify.h"

namespace {

// A folder with a file `data`, for the time of the process.
class FuzzedFolder {
 public:
  FuzzedFolder() {
    std::filesystem::create_directories(path_);
    if (!tenon::write_file(path_ + "/data", std::string(4096, '\1')).ok()) std::abort();
  }
  ~FuzzedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("tenon-fuzzed-onnx-" + std::to_string(getpid())))
          .string();
};

// The inputs that are given follow from the bytes of the model.
tenon::hlo::OnnxKnowledge knowledge_of(const tenon::hlo::Module& signature, uint64_t seed) {
  constexpr int64_t kMostElements = 64;
  tenon::hlo::OnnxKnowledge known;
  const tenon::hlo::Computation& main = *signature.entry();
  for (size_t i = 0; i < main.parameter_count(); ++i) {
    const tenon::hlo::Type& type = main.parameter(i).type();
    tenon::Dims dims = type.dims();
    for (int64_t& size : dims) {
      if (size != tenon::kDynamic) continue;
      size = static_cast<int64_t>(seed % 5);
      seed = seed * 6364136223846793005 + 1442695040888963407;
    }
    if (!type.shape().is_static()) known.shapes.emplace(i, dims);
    const auto count = tenon::checked_element_count(dims, 1);
    if (is_float(type.element_type()) || is_complex(type.element_type()) || !count ||
        *count > kMostElements || seed % 3 == 0)
      continue;
    tenon::Literal value(tenon::Shape(type.element_type(), dims));
    for (int64_t n = 0; n < *count; ++n)
      value.set_integer(n, (static_cast<int64_t>(seed >> 32) + n) % 4);
    known.values.emplace(i, std::move(value));
  }
  return known;
}

}  // namespace

bool tenon::fuzz::fuzz_onnx(std::string_view bytes) {
  static const FuzzedFolder folder;
  static_cast<void>(tenon::hlo::is_onnx(bytes));
  tenon::hlo::OnnxLimits limits;
  limits.max_tensor_bytes = 1 << 20;
  limits.max_external_bytes = 1 << 22;
  const auto model = tenon::hlo::read_onnx(bytes, folder.path(), limits);
  if (!model) return false;
  const auto signature = tenon::hlo::onnx_signature(*model);
  if (!signature) return false;
  uint64_t seed = bytes.size();
  for (const char c : bytes.substr(0, 4096)) seed = seed * 31 + static_cast<uint8_t>(c);
  const auto imported = tenon::hlo::import_onnx(*model, knowledge_of(**signature, seed));
  if (imported && !tenon::hlo::verify(*imported->module).ok()) std::abort();
  return true;
}
