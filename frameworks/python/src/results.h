// The results of a call, as arrays of this package or as objects of another one.
#pragma once

#include "client.h"
#include "exchange.h"

namespace tenon::python {

/// Buffers of a device. Those that nobody takes are destroyed.
class ResultBuffers {
 public:
  ResultBuffers(const Plugin& plugin, size_t count) : plugin_(plugin), all_(count) {}
  ~ResultBuffers();
  ResultBuffers(const ResultBuffers&) = delete;
  ResultBuffers& operator=(const ResultBuffers&) = delete;

  size_t size() const { return all_.size(); }
  PJRT_Buffer** data() { return all_.data(); }
  PJRT_Buffer* take(size_t result) { return std::exchange(all_[result], nullptr); }

 private:
  const Plugin& plugin_;
  std::vector<PJRT_Buffer*> all_;
};

struct MadeTensor;

/// Results with memory that the host sees, and that belongs to nobody else: the device's own, or a
/// copy.
class HostResults {
 public:
  HostResults(const Shared& client, const ExchangeTable& table);
  ~HostResults();
  HostResults(const HostResults&) = delete;
  HostResults& operator=(const HostResults&) = delete;

  /// Takes the buffers and waits for their contents. All copies begin before it waits for the
  /// first. Throws the error of the work that makes a result. Python's lock is not needed.
  void fetch(ResultBuffers& buffers, const std::vector<std::shared_ptr<const ArrayType>>& types);
  /// The objects, which own the memory.
  nb::list objects();

 private:
  const Shared& client_;
  const ExchangeTable& table_;
  std::vector<std::unique_ptr<MadeTensor>> all_;
};

}  // namespace tenon::python
