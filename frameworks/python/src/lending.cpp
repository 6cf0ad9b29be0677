#include "lending.h"

#include <mutex>

namespace tenon::python {
namespace {

// Objects of Python that a plug-in has used up. Its threads do not have Python's lock: they leave
// them here, and the next call of Python lets go of them.
class UsedObjects {
 public:
  void add(PyObject* object) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(object);
  }
  void let_go() {
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(mutex_);
      objects.swap(objects_);
    }
    for (PyObject* each : objects) Py_DECREF(each);
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> objects_;
};
UsedObjects& used_objects() {
  static auto* const used = new UsedObjects();  // Never destroyed: callbacks may come at exit.
  return *used;
}

struct Lent {
  PyObject* object = nullptr;
  std::shared_ptr<const Plugin> plugin;
  PJRT_Event* event = nullptr;
};

// Called by the plug-in, on a thread of its own, when it does not need the host's memory any more.
void give_back(PJRT_Error* error, void* data) {
  const std::unique_ptr<Lent> lent(static_cast<Lent*>(data));
  if (error != nullptr) {
    auto args = sized<PJRT_Error_Destroy_Args>();
    args.error = error;
    lent->plugin->destroy(args);
  }
  used_objects().add(lent->object);
  auto args = sized<PJRT_Event_Destroy_Args>();
  args.event = lent->event;
  lent->plugin->end(&PJRT_Api::PJRT_Event_Destroy, args);
}

bool has_come(const Plugin& plugin, PJRT_Event* event) {
  auto args = sized<PJRT_Event_IsReady_Args>();
  args.event = event;
  plugin.end(&PJRT_Api::PJRT_Event_IsReady, args);
  return args.is_ready;
}

}  // namespace

void let_go_of_lent_arrays() { used_objects().let_go(); }

SentBuffer send(const PluginClient& client, const HostView& view, PJRT_Device* device,
                PJRT_HostBufferSemantics semantics) {
  auto args = sized<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client.handle();
  args.data = view.data;
  args.type = view.info->type;
  args.dims = view.dims.data();
  args.num_dims = view.dims.size();
  args.host_buffer_semantics = semantics;
  args.device = device;
  client.plugin().call(&PJRT_Api::PJRT_Client_BufferFromHostBuffer, args);
  return {args.buffer, args.done_with_host_buffer};
}

// A plug-in that takes no callback keeps the object for good: it may still read the memory.
void keep_until(const PluginClient& client, PJRT_Event* event, nb::object& object) noexcept {
  const Plugin& plugin = client.plugin();
  if (has_come(plugin, event)) {
    auto args = sized<PJRT_Event_Destroy_Args>();
    args.event = event;
    plugin.end(&PJRT_Api::PJRT_Event_Destroy, args);
    return;
  }
  auto ready = sized<PJRT_Event_OnReady_Args>();
  ready.event = event;
  ready.callback = give_back;
  ready.user_arg = new Lent{object.release().ptr(), client.shared_plugin(), event};
  plugin.end(&PJRT_Api::PJRT_Event_OnReady, ready);
}

void LentArguments::send_to(std::vector<PJRT_Buffer*>& arguments) {
  for (One& each : all_) {
    each.sent = send(*client_, each.view, device_, PJRT_HostBufferSemantics_kImmutableZeroCopy);
    arguments[each.argument] = each.sent.buffer;
  }
}

void LentArguments::take_back() noexcept {
  const Plugin& plugin = client_->plugin();
  for (One& each : all_) {
    if (PJRT_Buffer* const buffer = std::exchange(each.sent.buffer, nullptr)) {
      auto args = sized<PJRT_Buffer_Destroy_Args>();
      args.buffer = buffer;
      plugin.end(&PJRT_Api::PJRT_Buffer_Destroy, args);
    }
    if (PJRT_Event* const done = std::exchange(each.sent.done, nullptr)) {
      keep_until(*client_, done, each.view.owner);
    }
  }
}

}  // namespace tenon::python
