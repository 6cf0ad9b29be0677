// Running executables.
#include <exception>
#include <vector>

#include "core/base/inline_vector.h"
#include "core/runtime/memory/donations.h"
#include "frameworks/pjrt/entries/buffers.h"
#include "frameworks/pjrt/entries/executables.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/ffi/execution_data.h"
#include "frameworks/pjrt/profile/profiled.h"
#include "frameworks/pjrt/types.h"

namespace tenon::pjrt {
namespace {

// The arguments of an execution, all in device memory.
struct ExecutionArguments {
  explicit ExecutionArguments(size_t count) : buffers(count) {}

  InlineVector<runtime::BufferPtr, 8> buffers;
  /// Donated buffers in other memory, which the runtime does not see: it gets copies instead.
  std::vector<runtime::BufferPtr> replaced;
  runtime::ExecuteOptions options;
};

// The same elements as an array of that shape, with the buffer's memory.
Result<runtime::BufferPtr> reshaped(const runtime::Buffer& buffer, const Shape& shape) {
  TENON_ASSIGN(runtime::BufferStorage storage, buffer.storage());
  return std::make_shared<runtime::Buffer>(buffer.device(), buffer.memory_kind(), shape,
                                           std::move(storage), buffer.defined(), buffer.definer());
}

bool has_other_sizes(const Shape& given, const Shape& expected) {
  return given != expected && given.element_type() == expected.element_type() &&
         given.byte_size() == expected.byte_size();
}

// Adds the program's arguments, as many as it has parameters. Kernels read only device memory:
// arguments in other memory are copied first.
Status add_arguments(const PJRT_LoadedExecutable_Execute_Args& args,
                     const runtime::Executable& executable, bool takes_reshaped,
                     ExecutionArguments& arguments) {
  const PJRT_ExecuteOptions* options = args.options;
  for (size_t i = 0; options != nullptr && i < options->num_non_donatable_input_indices; ++i) {
    arguments.options.keep.push_back(
        static_cast<uint32_t>(options->non_donatable_input_indices[i]));
  }
  const std::span<PJRT_Buffer* const> handles(args.argument_lists[0], args.num_args);
  const bool donates = !executable.program().donated.empty();
  const std::vector<bool> is_given =
      donates ? executable.donated_parameters(arguments.options) : std::vector<bool>();
  // The runtime sees copies of arguments in other memory, so a buffer that is donated twice is
  // detected here.
  const size_t twice =
      donates ? runtime::first_donated_twice<PJRT_Buffer*>(handles, is_given) : args.num_args;
  for (size_t i = 0; i < args.num_args; ++i) {
    const PJRT_Buffer* given = handles[i];
    if (given == nullptr) return invalid_argument("argument {} is null", i);
    if (given->given) TENON_TRY(given->given->await());
    runtime::BufferPtr buffer = given->buffer;
    const bool reshapes =
        takes_reshaped && has_other_sizes(buffer->shape(), executable.parameters()[i]);
    const bool is_donated = donates && is_given[i];
    if (buffer->memory_kind() != runtime::MemoryKind::kDevice || (reshapes && is_donated)) {
      if (is_donated) {
        if (i == twice) {
          return invalid_argument("{}: argument {} is donated and passed twice",
                                  executable.program().name, i);
        }
        arguments.replaced.push_back(buffer);
      }
      TENON_ASSIGN(buffer, buffer->copy_to(buffer->device(), runtime::MemoryKind::kDevice));
    }
    if (reshapes) {
      TENON_ASSIGN(buffer, reshaped(*buffer, executable.parameters()[i]));
    }
    arguments.buffers->push_back(std::move(buffer));
  }
  return {};
}

// A result that the program requires in other memory than device memory.
struct MovedResult {
  size_t number = 0;
  runtime::MemoryKind kind = {};
  runtime::BufferStorage memory;
  /// The error of `never_there`, which the caller gets if the move cannot even begin: the execution
  /// has already taken its arguments, so the error belongs to the result, like an error of the move
  /// itself.
  runtime::Promise failed;
  runtime::BufferPtr never_there;
};

// The results to move, with their memory allocated: no allocation may fail after the arguments are
// taken.
Result<std::vector<MovedResult>> moved_results(const Signature& results,
                                               const runtime::Executable& executable) {
  std::vector<MovedResult> moved;
  const std::vector<Shape>& shapes = executable.results();
  const std::shared_ptr<runtime::Device>& device = executable.device();
  for (size_t r = 0; r < shapes.size(); ++r) {
    const runtime::MemoryKind kind = results.memory[r];
    if (kind == runtime::MemoryKind::kDevice) continue;
    MovedResult each = {r, kind, {}, runtime::Promise(device->pool()), nullptr};
    TENON_ASSIGN(each.memory,
                 runtime::allocate(*device, kind, shapes[r].byte_size(),
                                   fmt::format("result {} of {}", r, executable.program().name)));
    each.never_there = std::make_shared<runtime::Buffer>(
        device, kind, shapes[r], runtime::BufferStorage(), each.failed.event());
    moved.push_back(std::move(each));
  }
  return moved;
}

runtime::BufferPtr move_result(const runtime::BufferPtr& result, MovedResult& to) {
  Status status;
  try {
    auto copy = result->copy_to(result->device(), to.kind, std::move(to.memory));
    if (copy) return *std::move(copy);
    status = std::move(copy.error());
  } catch (const std::exception&) {
    status = Status(ErrorCode::kResourceExhausted, "");  // There is no memory for a text.
  }
  to.failed.set(std::move(status));
  return to.never_there;
}

Status check_devices(const PJRT_LoadedExecutable_Execute_Args& args, const ExecutableState& state) {
  if (args.num_devices != 1) {
    return invalid_argument("an execution on {} devices of a program for one", args.num_devices);
  }
  if (args.execute_device != nullptr && args.execute_device != state.device) {
    return invalid_argument("the program was compiled for {}, not for {}",
                            state.device->description.text, args.execute_device->description.text);
  }
  return {};
}

// Returns what the caller gives to the functions of the host; null if that is nothing.
std::shared_ptr<const ExecutionData> data_of(const PJRT_ExecuteOptions* options) {
  if (options == nullptr) return nullptr;
  std::shared_ptr<const ExecutionData> data;
  if (has(*options, &PJRT_ExecuteOptions::context) && options->context != nullptr) {
    const std::lock_guard lock(options->context->mutex);
    data = options->context->data;
  }
  if (options->num_send_ops == 0 && options->num_recv_ops == 0) return data;
  auto with_callbacks =
      data == nullptr ? std::make_shared<ExecutionData>() : std::make_shared<ExecutionData>(*data);
  for (size_t i = 0; i < options->num_send_ops; ++i) {
    const PJRT_SendCallbackInfo& info = options->send_callbacks[0][i];
    with_callbacks->sends.emplace(info.channel_id, info);
  }
  for (size_t i = 0; i < options->num_recv_ops; ++i) {
    const PJRT_RecvCallbackInfo& info = options->recv_callbacks[0][i];
    with_callbacks->receives.emplace(info.channel_id, info);
  }
  return with_callbacks;
}

// The executable on its device; if that was lost, it is loaded again where the device has come
// back.
Result<std::shared_ptr<const runtime::Executable>> live_executable(PJRT_LoadedExecutable& loaded) {
  std::shared_ptr<const runtime::Executable> replaced;  // Destroyed outside the lock.
  const std::lock_guard lock(loaded.mutex);
  if (loaded.executable == nullptr) {
    return failed_precondition("{} has been deleted", loaded.state->name);
  }
  if (loaded.executable->device()->lost().code() != ErrorCode::kUnavailable) {
    return loaded.executable;
  }
  TENON_ASSIGN(const auto device, loaded.state->device->live());
  TENON_ASSIGN(auto again, loaded.executable->reload(device));
  replaced = std::exchange(loaded.executable, std::move(again));
  return loaded.executable;
}

Status execute(PJRT_LoadedExecutable_Execute_Args& args) {
  const ProfiledWork work;
  const ExecutableState& state = *args.executable->state;
  TENON_TRY(check_devices(args, state));
  TENON_ASSIGN(const std::shared_ptr<const runtime::Executable> executable,
               live_executable(*args.executable));
  if (args.num_args != executable->parameters().size()) {
    return invalid_argument("{} arguments, the program takes {}", args.num_args,
                            executable->parameters().size());
  }
  ExecutionArguments arguments(args.num_args);
  TENON_TRY(add_arguments(args, *executable, state.takes_reshaped, arguments));
  arguments.options.context = data_of(args.options);
  // Handles and memory are allocated first: after the arguments are taken, no allocation may fail.
  InlineVector<std::unique_ptr<PJRT_Buffer>, 4> outputs(state.results.memory.size());
  for (const runtime::MemoryKind kind : state.results.memory) {
    PJRT_Memory* const memory = state.device->memories[static_cast<size_t>(kind)];
    outputs->push_back(
        std::make_unique<PJRT_Buffer>(PJRT_Buffer{state.client, memory, {}, nullptr}));
    outputs->back()->set_rank(state.results.ranks[outputs->size() - 1]);
  }
  std::unique_ptr<PJRT_Event> event;
  if (args.device_complete_events != nullptr) {
    event = std::make_unique<PJRT_Event>(PJRT_Event{runtime::Event::ready()});
  }
  TENON_ASSIGN(std::vector<MovedResult> moved, moved_results(state.results, *executable));
  runtime::Donations donations;
  for (const runtime::BufferPtr& buffer : arguments.replaced) {
    if (auto taken = donations.take(buffer); !taken) return taken.error();
  }
  TENON_ASSIGN(runtime::Execution execution,
               executable->execute(*arguments.buffers, arguments.options));
  donations.keep();
  work.until(execution.done, *state.device, ProfileRow::kPrograms, state.name);
  for (MovedResult& each : moved) {
    runtime::BufferPtr& result = execution.results[each.number];
    result = move_result(result, each);
  }
  for (size_t r = 0; r < outputs->size(); ++r) {
    (*outputs)[r]->buffer = std::move(execution.results[r]);
    args.output_lists[0][r] = (*outputs)[r].release();
  }
  if (event != nullptr) {
    event->event = execution.done;
    args.device_complete_events[0] = event.release();
  }
  return {};
}

Status create_context(PJRT_ExecuteContext_Create_Args& args) {
  args.context = new PJRT_ExecuteContext();
  return {};
}

Status destroy_context(PJRT_ExecuteContext_Destroy_Args& args) {
  delete args.context;
  return {};
}

}  // namespace

void add_execution(PJRT_Api& api) {
  api.PJRT_LoadedExecutable_Execute = entry<execute>;
  api.PJRT_ExecuteContext_Create = entry<create_context>;
  api.PJRT_ExecuteContext_Destroy = entry<destroy_context>;
}

}  // namespace tenon::pjrt
