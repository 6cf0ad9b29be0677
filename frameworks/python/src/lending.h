// Arrays of the host that devices read in place: who keeps them, and until when.
#pragma once

#include "client.h"

namespace tenon::python {

/// A buffer of a device, and the event that comes when it does not need the host's memory any more.
struct SentBuffer {
  PJRT_Buffer* buffer = nullptr;
  PJRT_Event* done = nullptr;
};
/// Throws PluginError. Python's lock is not needed.
SentBuffer send(const PluginClient& client, const HostView& view, PJRT_Device* device,
                PJRT_HostBufferSemantics semantics);

/// Takes the object and keeps it until the event has come, unless it has already; destroys the
/// event. Python's lock is not needed.
void keep_until(const PluginClient& client, PJRT_Event* event, nb::object& object) noexcept;

/// Lets go of the host's arrays that devices have read. Needs Python's lock.
void let_go_of_lent_arrays();

/// The arrays of the host that one call lends to a device. They are kept until they have been read.
class LentArguments {
 public:
  LentArguments(const Shared& client, PJRT_Device* device) : client_(client), device_(device) {}
  ~LentArguments() { take_back(); }
  LentArguments(const LentArguments&) = delete;
  LentArguments& operator=(const LentArguments&) = delete;

  bool empty() const { return all_.empty(); }
  void reserve(size_t count) { all_.reserve(count); }
  void add(HostView view, size_t argument) { all_.push_back({std::move(view), argument}); }
  /// Makes a buffer for each, at its argument's place. Throws PluginError. Python's lock is not
  /// needed, nor by `take_back`, which ends the buffers.
  void send_to(std::vector<PJRT_Buffer*>& arguments);
  void take_back() noexcept;

 private:
  struct One {
    HostView view;
    size_t argument = 0;
    SentBuffer sent;
  };

  const Shared& client_;
  PJRT_Device* device_;
  std::vector<One> all_;
};

}  // namespace tenon::python
