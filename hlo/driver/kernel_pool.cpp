#include "hlo/driver/kernel_pool.h"

#include <algorithm>

#include "core/kernel/serial/serial.h"

namespace tenon::hlo {
namespace {

std::string key_of(const kernel::Kernel& kernel) {
  kernel::Kernel nameless = kernel;
  nameless.name.clear();
  nameless.label.clear();
  return kernel::save(nameless);
}

}  // namespace

Status KernelPool::legalize(const kernel::Kernel& kernel, Entry& entry) const {
  entry.legal = kernel;
  if (target_.accepts_all) return {};
  auto legal = kernel::legalize(kernel, features_);
  if (legal) {
    entry.legal = *std::move(legal);
  } else if (legal.error().code() == ErrorCode::kUnimplemented) {
    entry.declined = {0, backend::Reason::kOther, legal.error().message()};
  } else {
    return legal.error();
  }
  return {};
}

Result<std::vector<KernelPool::Id>> KernelPool::add(const std::vector<kernel::Kernel>& kernels) {
  binary_.reset();  // Its kernels may have had different names.
  std::vector<Id> ids;
  std::unordered_map<std::string, int> copies;
  for (const kernel::Kernel& kernel : kernels) {
    std::string key = key_of(kernel);
    if (const int copy = copies[key]++; copy > 0) key += std::to_string(copy);
    const auto [known, added] = ids_.try_emplace(std::move(key), size());
    ids.push_back(known->second);
    if (added) {
      TENON_TRY(legalize(kernel, entries_.emplace_back()));
    } else {
      entries_[ids.back()].legal.name = kernel.name;
      entries_[ids.back()].legal.label = kernel.label;
    }
  }
  return ids;
}

Status KernelPool::offer(const std::vector<Id>& ids) {
  std::vector<Id> unknown;
  std::ranges::copy_if(ids, std::back_inserter(unknown),
                       [&](Id id) { return !entries_[id].offered && !entries_[id].declined; });
  return unknown.empty() ? Status() : compile(unknown);
}

Result<std::optional<std::string>> KernelPool::binary(const std::vector<Id>& ids) {
  if (ids.empty()) return std::string();
  if (!binary_ || compiled_ != ids) TENON_TRY(compile(ids));
  return binary_;
}

Status KernelPool::compile(const std::vector<Id>& ids) {
  std::vector<const kernel::Kernel*> kernels;
  for (const Id id : ids) {
    kernels.push_back(&entries_[id].legal);
    entries_[id].offered = true;
  }
  binary_.reset();
  compiled_ = ids;
  TENON_ASSIGN(backend::Compiled compiled, backend_.compile(target_, kernels));
  for (backend::Declined& each : compiled.declined) {
    if (each.kernel >= ids.size()) {
      return Status(internal_error("B13: {} declines kernel {} of {}", backend_.name(), each.kernel,
                                   ids.size()));
    }
    Entry& entry = entries_[ids[each.kernel]];
    if (!entry.declined) entry.declined = std::move(each);
  }
  if (!compiled.declined.empty()) return {};
  binary_ = std::move(compiled.binary);
  return {};
}

}  // namespace tenon::hlo
