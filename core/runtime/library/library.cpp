// core/runtime/library/: the runtime as a small library with a C interface, that of runtime.h.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/backend/registry/registry.h"
#include "core/base/file.h"
#include "core/base/lines.h"
#include "core/runtime/client.h"
#include "core/runtime/library/runtime.h"
#include "core/runtime/serial.h"

using tenon::Error;
using tenon::failed_precondition;
using tenon::invalid_argument;
using tenon::Result;
using tenon::Shape;
using tenon::Status;
namespace runtime = tenon::runtime;
namespace backend = tenon::backend;

struct TenonRuntimeDevice {
  std::shared_ptr<runtime::Client> client;
  std::string name;
  std::string backend;
  std::string version;
  std::string target;

  const std::shared_ptr<runtime::Device>& device() const { return client->devices()[0]; }
};

struct TenonRuntimeProgram {
  std::shared_ptr<runtime::Executable> executable;
  std::deque<std::string> texts;  // To which `arguments` and `results` point.
  std::vector<TenonRuntimeArray> arguments;
  std::vector<TenonRuntimeArray> results;
};

struct TenonRuntimeBuffer {
  runtime::BufferPtr buffer;
};

namespace {

// Handles that the caller has. With the last one, all devices are closed.
std::atomic<int64_t> handles = 0;

template <class Handle>
Handle* given(Handle&& handle) {
  auto* made = new Handle(std::move(handle));
  ++handles;
  return made;
}

template <class Handle>
void take_back(Handle* handle) noexcept {
  if (handle == nullptr) return;
  delete handle;
  constexpr int64_t kLongest = 5'000'000'000;
  // A process may end now, and devices close on threads of their own.
  if (--handles == 0) static_cast<void>(runtime::await_all_closed(kLongest));
}

void write(TenonRuntimeError* error, std::string_view text) {
  constexpr size_t kText = offsetof(TenonRuntimeError, text);
  if (error == nullptr || error->size <= kText) return;
  const size_t room = error->size - kText - 1;
  constexpr std::string_view kCut = "...";
  const bool is_cut = text.size() > room && room >= kCut.size();
  const size_t count = tenon::whole_characters(text, is_cut ? room - kCut.size() : room);
  std::memcpy(error->text, text.data(), count);
  if (is_cut) std::memcpy(error->text + count, kCut.data(), kCut.size());
  error->text[count + (is_cut ? kCut.size() : 0)] = '\0';
}

// Runs what may allocate, and turns its error into a code and a text.
template <class Action>
TenonRuntimeCode guarded(TenonRuntimeError* error, const Action& action) noexcept {
  try {
    const Status status = action();
    if (status.ok()) return TENON_RUNTIME_OK;
    write(error, status.message());
    return static_cast<TenonRuntimeCode>(status.code());
  } catch (const std::bad_alloc&) {
    write(error, "the host has no memory left");
    return TENON_RUNTIME_RESOURCE_EXHAUSTED;
  } catch (const std::exception& e) {  // No exception crosses the interface.
    write(error, e.what());
    return TENON_RUNTIME_INTERNAL;
  }
}

Status null_argument(std::string_view what) { return invalid_argument("{} is null", what); }

// As much as both sides know of a struct that begins with its size.
template <class Struct>
void copy_known(const Struct& all, Struct* to) {
  const size_t size = to->size;
  std::memcpy(to, &all, std::min(size, sizeof all));
  to->size = size;
}

// Each plug-in is imported once, so that the runtime sees when one of its devices is open (B11).
Result<std::shared_ptr<backend::Backend>> backend_of(const char* plugin) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::shared_ptr<backend::Backend>>();
  std::error_code failure;
  const std::filesystem::path path = std::filesystem::canonical(plugin, failure);
  if (failure) return tenon::not_found("there is no plug-in {}", plugin);
  const std::lock_guard lock(mutex);
  std::shared_ptr<backend::Backend>& found = (*known)[path.string()];
  if (found == nullptr) {
    TENON_ASSIGN(found, backend::load_plugin(path.string()));
  }
  return found;
}

Result<TenonRuntimeDevice> open_device(const TenonRuntimeOptions& options) {
  if (options.major != TENON_RUNTIME_MAJOR || options.minor > TENON_RUNTIME_MINOR) {
    return failed_precondition(
        "the caller was built for version {}.{} of tenon/runtime.h, the library has {}.{}",
        options.major, options.minor, TENON_RUNTIME_MAJOR, TENON_RUNTIME_MINOR);
  }
  if (options.plugin == nullptr) return Error(null_argument("the plug-in"));
  constexpr uint64_t kMillisecond = 1'000'000;
  constexpr uint64_t kLongest = 1'000'000'000;
  if (options.time_limit > kLongest) {
    return invalid_argument("a time limit of {} ms; {} at most", options.time_limit, kLongest);
  }
  TenonRuntimeDevice device;
  TENON_ASSIGN(std::shared_ptr<backend::Backend> plugin, backend_of(options.plugin));
  runtime::ClientOptions client;
  client.devices = {options.device};
  client.limits.time_limit = static_cast<int64_t>(options.time_limit * kMillisecond);
  TENON_ASSIGN(device.client, runtime::Client::open(std::move(plugin), client));
  const backend::DeviceInfo& info = device.device()->info();
  device.name = info.name;
  device.backend = device.client->backend().name();
  device.version = device.client->backend().version();
  device.target = backend::to_string(info.target);
  return device;
}

TenonRuntimeArray array_of(TenonRuntimeProgram& program, std::string name, const Shape& shape) {
  TenonRuntimeArray array{};
  array.size = sizeof array;
  array.name = program.texts.emplace_back(std::move(name)).c_str();
  array.type = program.texts.emplace_back(tenon::name_of(shape.element_type())).c_str();
  array.dims = shape.dims().data();
  array.rank = shape.dims().size();
  array.bytes = static_cast<size_t>(shape.byte_size());
  return array;
}

Result<TenonRuntimeProgram> load_program(const TenonRuntimeDevice& device, std::string_view bytes) {
  const backend::TargetInfo& target = device.device()->info().target;
  TENON_ASSIGN(runtime::CompiledProgram compiled,
               runtime::load_compiled_program(
                   bytes, runtime::compiled_for(device.client->backend(), target)));
  if (const tenon::program::Step* step = runtime::unanswered_call(compiled, {}, {})) {
    return tenon::unimplemented("{} needs @{}, a function of the host, which this library has not",
                                step->label,
                                std::get<tenon::program::CustomCall>(step->action).target);
  }
  TenonRuntimeProgram program;
  TENON_ASSIGN(program.executable,
               runtime::Executable::load(device.device(), std::move(compiled), {}));
  const runtime::Executable& loaded = *program.executable;
  const auto name = [](const std::vector<std::string>& names, char letter, size_t i) {
    return i < names.size() ? names[i] : fmt::format("{}{}", letter, i);
  };
  const std::vector<bool> donated = loaded.donated_parameters({});
  for (size_t i = 0; i < loaded.parameters().size(); ++i) {
    program.arguments.push_back(
        array_of(program, name(loaded.compiled().parameter_names, 'x', i), loaded.parameters()[i]));
    program.arguments.back().donated = donated[i] ? 1 : 0;
  }
  for (size_t i = 0; i < loaded.results().size(); ++i) {
    program.results.push_back(
        array_of(program, name(loaded.compiled().result_names, 'y', i), loaded.results()[i]));
  }
  return program;
}

// --- Runs

// Waits for pending work when the scope is left.
struct PendingWork {
  std::vector<runtime::Event> events;
  ~PendingWork() {
    for (const runtime::Event& event : events) static_cast<void>(event.await());
  }
};

Status check_count(const TenonRuntimeProgram& program, std::string_view what, size_t given,
                   size_t expected, const void* list) {
  if (given != expected) {
    return invalid_argument("@{} has {} {}, {} given", program.executable->program().name, expected,
                            what, given);
  }
  if (given > 0 && list == nullptr) return null_argument(what);
  return {};
}

Status check_array(std::string_view what, size_t index, const void* data, size_t given,
                   const Shape& shape) {
  const auto expected = static_cast<size_t>(shape.byte_size());
  if (given != expected) {
    return invalid_argument("{} {} is {}, {} bytes: {} given", what, index, shape.to_string(),
                            expected, given);
  }
  if (data == nullptr && expected > 0) return null_argument(fmt::format("{} {}", what, index));
  return {};
}

Result<runtime::FromHost> put(const TenonRuntimeProgram& program, size_t argument,
                              const TenonRuntimeInput& array, runtime::HostLifetime lifetime) {
  const Shape& shape = program.executable->parameters()[argument];
  TENON_TRY(check_array("argument", argument, array.data, array.bytes, shape));
  runtime::HostArray from;
  from.data = static_cast<const std::byte*>(array.data);
  from.shape = shape;
  from.lifetime = lifetime;
  return runtime::buffer_from_host(program.executable->device(), runtime::MemoryKind::kDevice,
                                   from);
}

Status fetch(const runtime::Buffer& buffer, const TenonRuntimeOutput& to) {
  return buffer.copy_to_host({static_cast<std::byte*>(to.data), to.bytes}).await();
}

Status run_on_host(const TenonRuntimeProgram& program, const TenonRuntimeInput* arguments,
                   const TenonRuntimeOutput* results) {
  const runtime::Executable& executable = *program.executable;
  for (size_t i = 0; i < program.results.size(); ++i) {
    TENON_TRY(check_array("result", i, results[i].data, results[i].bytes, executable.results()[i]));
  }
  PendingWork uses;  // The caller's arrays are used no more when the call returns.
  std::vector<runtime::BufferPtr> buffers;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    TENON_ASSIGN(const runtime::FromHost made,
                 put(program, i, arguments[i], runtime::HostLifetime::kUntilDeleted));
    buffers.push_back(made.buffer);
    uses.events.push_back(made.host_done);
  }
  TENON_ASSIGN(const runtime::Execution execution, executable.execute(buffers));
  TENON_TRY(execution.done.await());
  for (size_t i = 0; i < program.results.size(); ++i) {
    TENON_TRY(fetch(*execution.results[i], results[i]));
  }
  return {};
}

Status run_on_buffers(const TenonRuntimeProgram& program, TenonRuntimeBuffer* const* arguments,
                      TenonRuntimeBuffer** results, uint32_t flags) {
  if ((flags & ~TENON_RUNTIME_DONATE) != 0) return invalid_argument("unknown flags {:#x}", flags);
  std::vector<runtime::BufferPtr> buffers;
  runtime::ExecuteOptions options;
  for (uint32_t i = 0; i < program.arguments.size(); ++i) {
    if (arguments[i] == nullptr) return null_argument(fmt::format("argument {}", i));
    buffers.push_back(arguments[i]->buffer);
    if ((flags & TENON_RUNTIME_DONATE) == 0) options.keep.push_back(i);
  }
  TENON_ASSIGN(const runtime::Execution execution, program.executable->execute(buffers, options));
  TENON_TRY(execution.done.await());
  std::vector<std::unique_ptr<TenonRuntimeBuffer>> made;
  for (const runtime::BufferPtr& each : execution.results) {
    made.push_back(std::make_unique<TenonRuntimeBuffer>(TenonRuntimeBuffer{each}));
  }
  handles += static_cast<int64_t>(made.size());
  for (size_t i = 0; i < made.size(); ++i) results[i] = made[i].release();
  return {};
}

}  // namespace

uint32_t tenon_runtime_version(void) { return TENON_RUNTIME_MAJOR << 16 | TENON_RUNTIME_MINOR; }

TenonRuntimeCode tenon_runtime_open(const TenonRuntimeOptions* options, TenonRuntimeDevice** device,
                                    TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (options == nullptr) return null_argument("`options`");
    if (device == nullptr) return null_argument("`device`");
    TenonRuntimeOptions known{};
    std::memcpy(&known, options, std::min(options->size, sizeof known));
    TENON_ASSIGN(TenonRuntimeDevice opened, open_device(known));
    *device = given(std::move(opened));
    return {};
  });
}

void tenon_runtime_close(TenonRuntimeDevice* device) { take_back(device); }

TenonRuntimeCode tenon_runtime_device_info(const TenonRuntimeDevice* device,
                                           TenonRuntimeDeviceInfo* info, TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (device == nullptr) return null_argument("the device");
    if (info == nullptr) return null_argument("`info`");
    copy_known({0, device->name.c_str(), device->backend.c_str(), device->version.c_str(),
                device->target.c_str()},
               info);
    return {};
  });
}

TenonRuntimeCode tenon_runtime_load(TenonRuntimeDevice* device, const void* bytes, size_t size,
                                    TenonRuntimeProgram** program, TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (device == nullptr) return null_argument("the device");
    if (bytes == nullptr) return null_argument("`bytes`");
    if (program == nullptr) return null_argument("`program`");
    TENON_ASSIGN(TenonRuntimeProgram loaded,
                 load_program(*device, {static_cast<const char*>(bytes), size}));
    *program = given(std::move(loaded));
    return {};
  });
}

TenonRuntimeCode tenon_runtime_load_file(TenonRuntimeDevice* device, const char* path,
                                         TenonRuntimeProgram** program, TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (device == nullptr) return null_argument("the device");
    if (path == nullptr) return null_argument("`path`");
    if (program == nullptr) return null_argument("`program`");
    TENON_ASSIGN(const tenon::MappedFile file, tenon::MappedFile::open(path));
    auto loaded = load_program(*device, file.bytes());
    if (!loaded) return Status(loaded.error()).with_context(path);
    *program = given(*std::move(loaded));
    return {};
  });
}

void tenon_runtime_unload(TenonRuntimeProgram* program) { take_back(program); }

TenonRuntimeCode tenon_runtime_program_info(const TenonRuntimeProgram* program,
                                            TenonRuntimeProgramInfo* info,
                                            TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (program == nullptr) return null_argument("the program");
    if (info == nullptr) return null_argument("`info`");
    const runtime::CompiledProgram& compiled = program->executable->compiled();
    copy_known({0, compiled.program.name.c_str(), compiled.made_by.c_str(),
                sizeof(TenonRuntimeArray), program->arguments.data(), program->arguments.size(),
                program->results.data(), program->results.size()},
               info);
    return {};
  });
}

TenonRuntimeCode tenon_runtime_run(TenonRuntimeProgram* program, const TenonRuntimeInput* arguments,
                                   size_t argument_count, const TenonRuntimeOutput* results,
                                   size_t result_count, TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (program == nullptr) return null_argument("the program");
    TENON_TRY(
        check_count(*program, "arguments", argument_count, program->arguments.size(), arguments));
    TENON_TRY(check_count(*program, "results", result_count, program->results.size(), results));
    return run_on_host(*program, arguments, results);
  });
}

TenonRuntimeCode tenon_runtime_upload(TenonRuntimeProgram* program, size_t argument,
                                      TenonRuntimeInput array, TenonRuntimeBuffer** buffer,
                                      TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (program == nullptr) return null_argument("the program");
    if (buffer == nullptr) return null_argument("`buffer`");
    if (argument >= program->arguments.size()) {
      return invalid_argument("@{} has {} arguments, there is no number {}",
                              program->executable->program().name, program->arguments.size(),
                              argument);
    }
    TENON_ASSIGN(const runtime::FromHost made,
                 put(*program, argument, array, runtime::HostLifetime::kDuringCall));
    TENON_TRY(made.buffer->defined().await());
    *buffer = given(TenonRuntimeBuffer{made.buffer});
    return {};
  });
}

TenonRuntimeCode tenon_runtime_download(const TenonRuntimeBuffer* buffer, TenonRuntimeOutput array,
                                        TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (buffer == nullptr) return null_argument("the buffer");
    TENON_TRY(check_array("buffer", 0, array.data, array.bytes, buffer->buffer->shape()));
    return fetch(*buffer->buffer, array);
  });
}

void tenon_runtime_free(TenonRuntimeBuffer* buffer) { take_back(buffer); }

TenonRuntimeCode tenon_runtime_run_on_device(TenonRuntimeProgram* program,
                                             TenonRuntimeBuffer* const* arguments,
                                             size_t argument_count, TenonRuntimeBuffer** results,
                                             size_t result_count, uint32_t flags,
                                             TenonRuntimeError* error) {
  return guarded(error, [&]() -> Status {
    if (program == nullptr) return null_argument("the program");
    TENON_TRY(
        check_count(*program, "arguments", argument_count, program->arguments.size(), arguments));
    TENON_TRY(check_count(*program, "results", result_count, program->results.size(), results));
    return run_on_buffers(*program, arguments, results, flags);
  });
}
