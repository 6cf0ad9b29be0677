#include "core/backend/registry/tuning_file.h"

#include <filesystem>

#include "core/backend/layers/forward.h"
#include "core/base/file.h"

namespace tenon::backend {
namespace {

class TunedBackend : public ForwardingBackend {
 public:
  TunedBackend(std::shared_ptr<Backend> inner, std::vector<TuningValue> tuning)
      : ForwardingBackend(std::move(inner)), tuning_(std::move(tuning)) {}

  Result<std::vector<DeviceInfo>> devices() override {
    TENON_ASSIGN(std::vector<DeviceInfo> devices, inner().devices());
    for (DeviceInfo& device : devices) {
      std::vector<TuningValue>& all = device.target.tuning;
      all.insert(all.end(), tuning_.begin(), tuning_.end());
    }
    return devices;
  }

 private:
  const std::vector<TuningValue> tuning_;
};

}  // namespace

std::string tuning_file_of(const std::string& plugin) {
  const std::filesystem::path path(plugin);
  const std::string name = path.filename().string();
  return (path.parent_path() / (name.substr(0, name.find(".so")) + ".tuning")).string();
}

Result<std::shared_ptr<Backend>> with_tuning_file(std::shared_ptr<Backend> backend,
                                                  const std::string& plugin) {
  const std::string file = tuning_file_of(plugin);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return backend;
  TENON_ASSIGN(const std::string text, read_file(file));
  auto tuning = parse_tuning(text);
  if (!tuning) return tl::make_unexpected(Status(tuning.error()).with_context(file));
  return std::make_shared<TunedBackend>(std::move(backend), *std::move(tuning));
}

}  // namespace tenon::backend
