// The extension Profiler: a framework's profiler records what the plug-in's devices do.
#include "frameworks/pjrt/c_api/profiler_extension.h"

#include <cstring>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <string>

#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"
#include "frameworks/pjrt/profile/profile_recorder.h"
#include "frameworks/pjrt/profile/xspace.h"

struct PLUGIN_Profiler {
  bool is_wanted = true;  ///< Whether the options ask for devices.
  std::shared_ptr<tenon::pjrt::ProfileRecording> recording;
  std::string data;

  ~PLUGIN_Profiler() {
    if (recording != nullptr) tenon::pjrt::ProfileRecorder::instance().end(recording);
  }
};

struct PLUGIN_Profiler_Error {
  tenon::Status status;
};

namespace tenon::pjrt {
namespace {

// The table has functions of its own for errors.
template <auto function>
struct ProfilerEntry;

template <class Args, Status (*function)(Args&)>
struct ProfilerEntry<function> {
  static PLUGIN_Profiler_Error* call(Args* args) noexcept {
    static PLUGIN_Profiler_Error no_memory = {Status(ErrorCode::kResourceExhausted, "")};
    try {
      Status status = function(*args);
      return status.ok() ? nullptr : new PLUGIN_Profiler_Error{std::move(status)};
    } catch (...) {
      return &no_memory;
    }
  }
};

void destroy_error(PLUGIN_Profiler_Error_Destroy_Args* args) {
  if (args->error == nullptr || args->error->status.message().empty()) return;
  delete args->error;
}

void message(PLUGIN_Profiler_Error_Message_Args* args) {
  const std::string_view text = args->error->status.message();
  args->message = text.data();
  args->message_size = text.size();
}

PLUGIN_Profiler_Error* get_code(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = static_cast<int>(args->error->status.code());
  return nullptr;
}

// Fields of tensorflow.ProfileOptions: a level of 0, which the message omits, records nothing of
// devices. Options without a version are none at all.
bool asks_for_devices(std::string_view options) {
  constexpr protozero::pbf_tag_type kDeviceTracerLevel = 3;
  constexpr protozero::pbf_tag_type kVersion = 5;
  uint32_t version = 0;
  uint32_t level = 0;
  try {
    protozero::pbf_reader reader(options.data(), options.size());
    while (reader.next()) {
      if (reader.tag() == kVersion && reader.wire_type() == protozero::pbf_wire_type::varint) {
        version = reader.get_uint32();
      } else if (reader.tag() == kDeviceTracerLevel &&
                 reader.wire_type() == protozero::pbf_wire_type::varint) {
        level = reader.get_uint32();
      } else {
        reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    return true;
  }
  return version == 0 || level > 0;
}

// jaxlib goes on as if a profiler had been created, even if it got an error.
Status create(PLUGIN_Profiler_Create_Args& args) {
  args.profiler = nullptr;
  auto profiler = std::make_unique<PLUGIN_Profiler>();
  profiler->is_wanted = asks_for_devices(view_of(args.options, args.options_size));
  args.profiler = profiler.release();
  return {};
}

Status destroy(PLUGIN_Profiler_Destroy_Args& args) {
  delete args.profiler;
  return {};
}

Status start(PLUGIN_Profiler_Start_Args& args) {
  if (args.profiler == nullptr || !args.profiler->is_wanted) return {};
  if (args.profiler->recording != nullptr) {
    ProfileRecorder::instance().end(args.profiler->recording);
  }
  args.profiler->data.clear();
  args.profiler->recording = ProfileRecorder::instance().begin();
  return {};
}

Status stop(PLUGIN_Profiler_Stop_Args& args) {
  if (args.profiler == nullptr || args.profiler->recording == nullptr) return {};
  ProfileRecorder::instance().end(args.profiler->recording);
  return {};
}

// Some callers take the data from the first call, which has no buffer for it; some copy it.
Status collect_data(PLUGIN_Profiler_CollectData_Args& args) {
  args.buffer_size_in_bytes = 0;
  PLUGIN_Profiler* const profiler = args.profiler;
  if (profiler == nullptr || profiler->recording == nullptr) return {};
  ProfileRecorder::instance().end(profiler->recording);
  if (profiler->data.empty()) profiler->data = xspace_of(std::move(*profiler->recording));
  args.buffer_size_in_bytes = profiler->data.size();
  auto* const data = reinterpret_cast<uint8_t*>(profiler->data.data());
  if (args.buffer == nullptr) {
    args.buffer = data;
  } else if (args.buffer != data) {
    std::memcpy(args.buffer, data, profiler->data.size());
  }
  return {};
}

}  // namespace

PJRT_Extension_Base* profiler_extension(PJRT_Extension_Base* next) {
  static PLUGIN_Profiler_Api table = {sizeof(PLUGIN_Profiler_Api),
                                      nullptr,
                                      destroy_error,
                                      message,
                                      get_code,
                                      &ProfilerEntry<create>::call,
                                      &ProfilerEntry<destroy>::call,
                                      &ProfilerEntry<start>::call,
                                      &ProfilerEntry<stop>::call,
                                      &ProfilerEntry<collect_data>::call};
  static PJRT_Profiler_Extension extension = {
      {sizeof(PJRT_Profiler_Extension), PJRT_Extension_Type_Profiler, next}, &table, 0};
  return &extension.base;
}

}  // namespace tenon::pjrt
