#include "core/runtime/submission/forked.h"

#include <pthread.h>

#include <atomic>

namespace tenon::runtime {
namespace {

std::atomic<int> forks = 0;  // From the first process to this one.

int count_forks() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return forks;
}

}  // namespace

Birth::Birth() : forks_(count_forks()) {}

bool Birth::is_elsewhere() const { return forks_ != forks; }

Status Birth::check() const {
  if (!is_elsewhere()) return {};
  return Status(failed_precondition(
      "this process was forked from one that had opened the device, whose threads it does not "
      "have; "
      "start it by 'spawn' (multiprocessing.set_start_method) or open the device after the fork"));
}

}  // namespace tenon::runtime
