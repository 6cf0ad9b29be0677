// The layer `validate`: the numbered rules, checked at each call, on both sides of the seam.
// validate_device.cpp has the rules for an open device.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/validate/validate_device.h"

namespace tenon::backend {
namespace {

class ValidateBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Result<std::vector<DeviceInfo>> devices() override {
    TENON_ASSIGN(std::vector<DeviceInfo> devices, ForwardingBackend::devices());
    std::string text;
    for (const DeviceInfo& each : devices) text += each.name + "\n" + to_string(each.target);
    const std::lock_guard lock(mutex_);
    if (!seen_.empty() && text != seen_) {
      return tl::make_unexpected(rule_violation("B9", "the devices are others than before"));
    }
    seen_ = std::move(text);
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, this->devices());
    if (index >= devices.size()) {
      return tl::make_unexpected(
          rule_violation("B9", "open of device {} of {}", index, devices.size()));
    }
    {
      const std::lock_guard lock(open_->mutex);
      if (!open_->devices.insert(index).second) {
        return tl::make_unexpected(rule_violation("B11", "device {} is open already", index));
      }
    }
    const auto closed = [open = open_, index] {
      const std::lock_guard lock(open->mutex);
      open->devices.erase(index);
    };
    auto device = ForwardingBackend::open(index);
    if (!device) {
      closed();
      return device;
    }
    return make_validate_device(*std::move(device), devices[index].target, planned_, closed);
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    TENON_ASSIGN(Compiled compiled, ForwardingBackend::compile(target, kernels));
    if (!compiled.declined.empty() && !compiled.binary.empty()) {
      return tl::make_unexpected(rule_violation("B13", "compile gave bytes and declined kernels"));
    }
    if (compiled.declined.empty() && !compiled_before_.exchange(true)) {
      // Checked once: compiling again doubles the time.
      TENON_ASSIGN(const Compiled again, ForwardingBackend::compile(target, kernels));
      if (again.binary != compiled.binary) {
        return tl::make_unexpected(
            rule_violation("B13", "the same kernels compile to other bytes"));
      }
    }
    for (const Declined& each : compiled.declined) {
      if (each.kernel < kernels.size()) continue;
      return tl::make_unexpected(
          rule_violation("B13", "compile declined kernel {} of {}", each.kernel, kernels.size()));
    }
    return compiled;
  }

  Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site) override {
    TENON_ASSIGN(LibraryCallPlan plan, ForwardingBackend::plan(target, site));
    planned_->add(site, plan);
    return plan;
  }

  // Segments are declined, so that every launch is seen.
  bool takes_segments() const override { return false; }

 private:
  // Devices may outlive the layer.
  struct OpenDeviceSet {
    std::mutex mutex;
    std::set<size_t> devices;
  };

  const std::shared_ptr<OpenDeviceSet> open_ = std::make_shared<OpenDeviceSet>();
  const std::shared_ptr<PlannedCalls> planned_ = std::make_shared<PlannedCalls>();
  std::atomic<bool> compiled_before_ = false;
  std::mutex mutex_;
  std::string seen_;
};

}  // namespace

void PlannedCalls::add(const LibraryCallSite& site, const LibraryCallPlan& plan) {
  PlannedCall call;
  for (size_t i = 0; i < site.operands.size(); ++i) {
    const bool packed =
        site.constant[i] && i < plan.packed_bytes.size() && plan.packed_bytes[i] > 0;
    call.operands.push_back(packed ? plan.packed_bytes[i] : site.operands[i].byte_size());
  }
  for (const Shape& each : site.results) call.results.push_back(each.byte_size());
  call.workspace = plan.workspace_bytes;
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = calls_.emplace(plan.plan, call);
  if (fresh) return;
  const auto least = [](std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    a.resize(std::min(a.size(), b.size()));
    for (size_t i = 0; i < a.size(); ++i) a[i] = std::min(a[i], b[i]);
  };
  least(at->second.operands, call.operands);
  least(at->second.results, call.results);
  at->second.workspace = std::min(at->second.workspace, call.workspace);
}

PlannedCall PlannedCalls::find(std::string_view plan) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(plan);
  return found == calls_.end() ? PlannedCall() : found->second;
}

std::shared_ptr<Backend> make_validate_layer(std::shared_ptr<Backend> inner) {
  return std::make_shared<ValidateBackend>(std::move(inner));
}

}  // namespace tenon::backend
