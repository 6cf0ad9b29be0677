#include "core/runtime/submission/device_session.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <thread>

#include "core/runtime/submission/forked.h"

namespace tenon::runtime {
namespace {

// The devices that are open in this process, by any client and within any layers.
class OpenDevices {
 public:
  static OpenDevices& all() {
    static auto* devices = new OpenDevices();  // Never destroyed: a device may close at exit.
    return *devices;
  }

  /// Takes the device; false if it is still open after the time. Errors: the process that this one
  /// was forked from has it open.
  Result<bool> take(const backend::Backend* backend, size_t index, std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    const std::pair<const backend::Backend*, size_t> key(backend, index);
    if (const auto found = open_.find(key); found != open_.end()) TENON_TRY(found->second.check());
    if (!changed_.wait_for(lock, time, [&] { return !open_.contains(key); })) return false;
    open_.emplace(key, Birth());
    return true;
  }

  bool await_none(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] {
      return std::ranges::all_of(open_,
                                 [](const auto& each) { return each.second.is_elsewhere(); });
    });
  }

  void give(const backend::Backend* backend, size_t index) {
    {
      const std::lock_guard lock(mutex_);
      open_.erase({backend, index});
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<const backend::Backend*, size_t>, Birth> open_;
};

// A backend of this process may find no threads or memory.
Result<std::unique_ptr<backend::Device>> open_guarded(backend::Backend& backend, size_t index) {
  try {
    return backend.open(index);
  } catch (const std::exception& e) {
    return resource_exhausted("the host cannot open the device: {}", e.what());
  }
}

}  // namespace

Result<std::shared_ptr<DeviceSession>> DeviceSession::open(
    std::shared_ptr<backend::Backend> backend, size_t index, const std::string& name,
    int64_t wait) {
  TENON_ASSIGN(const bool taken_in_time,
               OpenDevices::all().take(&backend->root(), index, std::chrono::nanoseconds(wait)));
  if (!taken_in_time) {
    return make_error(ErrorCode::kAlreadyExists,
                      "{} is open already, by another client of this process (B11)", name);
  }
  // After any failure from here on the device may be opened again.
  struct Taken {
    const backend::Backend* root;
    size_t index;
    ~Taken() {
      if (root != nullptr) OpenDevices::all().give(root, index);
    }
  } taken{&backend->root(), index};
  auto opening = std::shared_ptr<DeviceSession>(new DeviceSession());
  opening->backend_ = std::move(backend);
  opening->index_ = index;
  TENON_ASSIGN(opening->device_, open_guarded(*opening->backend_, index));
  taken.root = nullptr;
  return opening;
}

bool DeviceSession::await_all_closed(int64_t wait) {
  return OpenDevices::all().await_none(std::chrono::nanoseconds(wait));
}

std::shared_ptr<backend::Device> DeviceSession::device() {
  backend::Device* const device = device_.get();
  return {device, [self = shared_from_this()](backend::Device*) {
            if (!self->lost_) return self->close();
            try {
              std::thread([self] { self->close(); }).detach();
            } catch (const std::exception&) {
              self->close();
            }
          }};
}

void DeviceSession::keep_until_closed(std::shared_ptr<const void> thing) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) kept_.push_back(std::move(thing));
}

void DeviceSession::close() {
  device_.reset();
  OpenDevices::all().give(&backend_->root(), index_);
  std::vector<std::shared_ptr<const void>> parked;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    parked.swap(kept_);
  }
  closing_.set_value();
}

}  // namespace tenon::runtime
