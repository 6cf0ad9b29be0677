// Values that a backend makes once and keeps.
//
// Thread-safety: KeptValues from any thread; one value is made at a time.
#pragma once

#include <limits>
#include <map>
#include <mutex>

#include "core/base/status.h"

namespace tenon::backend {

/// Values that are made when they are first wanted: a driver's context for each device, the binary
/// of each source (B13 wants equal bytes, and not every compiler gives them), the module of each
/// plan.
template <class Key, class Value>
class KeptValues {
 public:
  /// Beyond `most` values, all are forgotten.
  explicit KeptValues(size_t most = std::numeric_limits<size_t>::max()) : most_(most) {}

  /// The value of `key`, by `make`, which returns a Result<Value>, if it is not kept. Errors are
  /// not kept.
  template <class Make>
  Result<Value> get(const Key& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    TENON_ASSIGN(Value made, make());
    if (values_.size() >= most_) values_.clear();
    values_.emplace(key, made);
    return made;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::map<Key, Value> values_;
};

}  // namespace tenon::backend
