#include "core/runtime/execution/step_runner.h"

#include <algorithm>

#include "core/runtime/foreign/host_call_arrays.h"

namespace tenon::runtime {

using program::BufferId;
using program::Step;

Status with_label(const Status& status, const std::string& label) {
  if (status.ok() || label.empty()) return status;
  return Status(status.code(), fmt::format("{} (in {})", status.message(), label))
      .at(status.position());
}

namespace {

using MemoryAddresses = InlineVector<backend::MemoryAddress, 8>;

Status with_label(const Status& status, const Step& step) {
  return runtime::with_label(status, step.label);
}

}  // namespace

backend::MemoryAddress StepRunner::place(BufferId id) const {
  const program::Buffer& b = program_.buffer(program_.root(id));
  if (b.kind == program::BufferKind::kTemporary) return memory_.temporaries.place(b.offset);
  return memory({b.kind, b.index});
}

const BufferStorage& StepRunner::storage_of(const program::MemoryRef& ref) const {
  switch (ref.kind) {
    case program::BufferKind::kParameter:
      return (*memory_.parameters)[ref.index];
    case program::BufferKind::kResult:
      return (*memory_.results)[ref.index];
    case program::BufferKind::kConstant:
      return loaded_.constants[ref.index];
    case program::BufferKind::kTemporary:
      break;
  }
  return memory_.temporaries;
}

backend::MemoryAddress StepRunner::memory(const program::MemoryRef& ref) const {
  return storage_of(ref).place();
}

Status StepRunner::sequence(program::SequenceId id) {
  const std::vector<Step>& steps = program_.sequences[id].steps;
  for (uint32_t i = 0; i < steps.size();) {
    const auto whole = loaded_.segments.find({id, i});
    if (whole != loaded_.segments.end()) {
      TENON_TRY(segment(whole->second));
      i = whole->second.range.end;
    } else {
      TENON_TRY(step(steps[i++]));
    }
  }
  return {};
}

Status StepRunner::segment(const LoadedProgram::LoadedSegment& segment) {
  MemoryAddresses buffers(segment.memories.size());
  for (const program::MemoryRef& each : segment.memories) buffers->push_back(memory(each));
  backend::KernelLaunch work;
  work.module = segment.module;
  work.buffers = *buffers;
  work.label = segment.label.c_str();
  steps_ += segment.steps;
  work.stop = stop_word();
  return with_label(loaded_.device->launch(work), segment.label);
}

// A word that is read while the work runs; it belongs to the execution.
const volatile uint32_t* StepRunner::stop_word() const {
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  return reinterpret_cast<const volatile uint32_t*>(stop_);
}

Status StepRunner::step(const Step& step) {
  if (stop_ != nullptr && stop_->load() != 0) {
    return Status(ErrorCode::kCancelled, "the execution was stopped");
  }
  if (observer_ != nullptr) observer_->begin(step);
  Status status = std::visit([&](const auto& action) { return act(step, action); }, step.action);
  if (observer_ != nullptr) observer_->end(step);
  return status;
}

Status StepRunner::act(const Step& step, const program::Launch& launch) {
  if (loaded_.compiled.kernel_placements[launch.kernel] == KernelPlacement::kHost)
    return on_host(step, launch);
  MemoryAddresses buffers(launch.buffers.size());
  for (const BufferId id : launch.buffers) buffers->push_back(place(id));
  backend::KernelLaunch work;
  work.module = loaded_.module;
  work.kernel = loaded_.module_index[launch.kernel];
  ++steps_.kernels;
  work.buffers = *buffers;
  work.scalars = launch.scalars;
  work.label = step.label.c_str();
  work.stop = stop_word();
  return with_label(loaded_.device->launch(work), step);
}

Status StepRunner::act(const Step& step, const program::Copy& copy) {
  const int64_t bytes = program_.buffer(copy.destination).bytes();
  if (bytes == 0) return {};
  const backend::MemoryAddress to = place(copy.destination);
  const backend::MemoryAddress from = place(copy.source);
  // The result has taken over its argument's memory.
  const bool same = to.memory == from.memory && to.offset == from.offset && to.host == from.host;
  if (same) return {};
  return with_label(loaded_.device->copy(to, from, bytes), step);
}

Status StepRunner::fetch(BufferId id, std::span<std::byte> to) {
  return to.empty() ? Status() : loaded_.device->fetch(to, place(id));
}

Status StepRunner::put(BufferId id, std::span<const std::byte> from) {
  return from.empty() ? Status() : loaded_.device->put(place(id), from);
}

Result<Literal> StepRunner::read(BufferId id) {
  const program::Buffer& b = program_.buffer(id);
  Literal literal(Shape(b.type, b.dims));
  TENON_TRY(fetch(id, literal.mutable_data()));
  return literal;
}

Status StepRunner::act(const Step&, const program::While& loop) {
  std::byte go{};
  while (true) {
    TENON_TRY(sequence(loop.condition));
    TENON_TRY(fetch(loop.predicate, std::span(&go, 1)));
    if ((go & std::byte{1}) == std::byte{0}) return {};
    TENON_TRY(sequence(loop.body));
  }
}

Status StepRunner::act(const Step&, const program::Conditional& conditional) {
  TENON_ASSIGN(const Literal index, read(conditional.index));
  const int64_t number = index.get_integer(0);
  const auto count = static_cast<int64_t>(conditional.branches.size());
  int64_t chosen = number < 0 || number >= count ? count - 1 : number;
  if (index.element_type() == ElementType::kPred) chosen = number != 0 ? 0 : 1;
  return sequence(conditional.branches[static_cast<size_t>(chosen)]);
}

Status StepRunner::act(const Step& step, const program::LibraryCallStep& call) {
  const auto plan = loaded_.compiled.plans.find(call.lowered);
  if (plan == loaded_.compiled.plans.end()) return sequence(call.lowered);
  return with_label(on_device(step, call, plan->second), step);
}

Status StepRunner::on_device(const Step& step, const program::LibraryCallStep& call,
                             const backend::LibraryCallPlan& plan) {
  std::vector<backend::MemoryAddress> operands;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const auto packed = loaded_.packed.find({call.lowered, i});
    operands.push_back(packed != loaded_.packed.end() ? packed->second.place()
                                                      : place(call.operands[i]));
  }
  std::vector<backend::MemoryAddress> results;
  for (const BufferId id : call.results) results.push_back(place(id));
  backend::LibraryCallLaunch launch;
  launch.plan = plan.plan;
  launch.operands = operands;
  launch.results = results;
  if (plan.workspace_bytes > 0) {
    launch.workspace = memory_.temporaries.place(loaded_.workspace_offset);
  }
  launch.label = step.label.c_str();
  launch.stop = stop_word();
  ++steps_.calls;
  return loaded_.device->call(launch);
}

// --- Host steps

Status StepRunner::on_host(const Step& step, const program::Launch& launch) {
  const kernel::Kernel& kernel = program_.kernels[launch.kernel];
  std::vector<std::vector<std::byte>> memory;
  std::vector<kernel::BufferArgument> arguments;
  for (const BufferId id : launch.buffers) {
    memory.emplace_back(static_cast<size_t>(program_.buffer(id).bytes()));
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    // A result that is over an argument uses that argument's memory (K4).
    const uint32_t over = kernel.memories[i].over;
    const bool in_place = over != kernel::kNone &&
                          program_.root(launch.buffers[i]) == program_.root(launch.buffers[over]);
    auto& bytes = in_place ? memory[over] : memory[i];
    if (kernel.memories[i].access != kernel::Access::kOut) {
      TENON_TRY(fetch(launch.buffers[i], bytes));
    }
    arguments.push_back({bytes.data(), bytes.size()});
  }
  kernel::InterpreterOptions options;
  options.check = false;
  options.cancelled = [this] { return stop_ != nullptr && stop_->load() != 0; };
  ++steps_.host;
  TENON_TRY(with_label(kernel::Interpreter(kernel).run(arguments, launch.scalars, options), step));
  for (size_t i = 0; i < memory.size(); ++i) {
    if (kernel.memories[i].access == kernel::Access::kIn) continue;
    TENON_TRY(put(launch.buffers[i], std::span(arguments[i].data, arguments[i].bytes)));
  }
  return {};
}

Status StepRunner::act(const Step& step, const program::CustomCall& call) {
  ++steps_.host;
  if (const auto prepared = loaded_.host_calls.find(&call); prepared != loaded_.host_calls.end()) {
    return with_label(by_function(call, prepared->second), step);
  }
  const auto handler = loaded_.calls.find(call.target);
  if (handler != loaded_.calls.end()) return by_handler(step, call, handler->second);
  return with_label(unimplemented("custom call @{}: no function is registered for it", call.target),
                    step);
}

Status StepRunner::by_handler(const Step& step, const program::CustomCall& call,
                              const program::CustomCallHandler& handler) {
  std::vector<Literal> operands;
  for (const BufferId id : call.operands) {
    TENON_ASSIGN(operands.emplace_back(), read(id));
  }
  std::vector<Shape> shapes;
  for (const BufferId id : call.results) {
    shapes.emplace_back(program_.buffer(id).type, program_.buffer(id).dims);
  }
  auto results = handler(step, call, operands, shapes);
  if (!results) return with_label(results.error(), step);
  if (results->size() != call.results.size()) {
    return with_label(internal_error("custom call @{} gave {} results, expected {}", call.target,
                                     results->size(), call.results.size()),
                      step);
  }
  for (size_t i = 0; i < results->size(); ++i) {
    if ((*results)[i].shape().byte_size() != shapes[i].byte_size()) {
      return with_label(internal_error("custom call @{}: result {} is {}, expected {}", call.target,
                                       i, (*results)[i].shape().to_string(), shapes[i].to_string()),
                        step);
    }
    TENON_TRY(put(call.results[i], (*results)[i].data()));
  }
  return {};
}

// The buffer as the host sees it, where it sees the device's memory.
const std::byte* StepRunner::host_view(BufferId id) const {
  const program::Buffer& b = program_.buffer(program_.root(id));
  const BufferStorage& storage = storage_of({b.kind, b.index});
  const std::byte* const data = storage.empty() ? nullptr : storage.host_data();
  const int64_t offset = b.kind == program::BufferKind::kTemporary ? b.offset : 0;
  return data == nullptr ? nullptr : data + offset;
}

// The same where it may write, and where the address suits any function.
std::byte* StepRunner::writable_host_view(BufferId id) const {
  constexpr uintptr_t kAlignment = 64;
  const program::Buffer& b = program_.buffer(program_.root(id));
  const auto& suballocation = storage_of({b.kind, b.index}).suballocation;
  std::byte* const data = suballocation == nullptr ? nullptr : suballocation->writable_host();
  const int64_t offset = b.kind == program::BufferKind::kTemporary ? b.offset : 0;
  if (data == nullptr || reinterpret_cast<uintptr_t>(data + offset) % kAlignment != 0)
    return nullptr;
  return data + offset;
}

// Calls a function of the host. Its results are computed in memory of the device where the host may
// write that (B29), else in memory of the host, and copied.
Status StepRunner::by_function(const program::CustomCall& call, const PreparedCall& prepared) {
  TENON_TRY(loaded_.device->await_given());
  HostCallArrays arrays(prepared.foreign);
  std::vector<std::span<const std::byte>> read;
  for (const BufferId id : call.operands) {
    const program::Buffer& buffer = program_.buffer(id);
    const Shape shape(buffer.type, buffer.dims);
    if (const std::byte* const view = host_view(id)) {
      read.emplace_back(view, static_cast<size_t>(buffer.bytes()));
      arrays.add_operand(shape, read.back());
    } else {
      TENON_TRY(fetch(id, arrays.add_operand(shape)));
    }
  }
  std::vector<bool> is_in_place;
  for (const BufferId id : call.results) {
    const program::Buffer& buffer = program_.buffer(id);
    std::byte* const data = writable_host_view(id);
    const std::span<std::byte> place(data,
                                     data == nullptr ? 0 : static_cast<size_t>(buffer.bytes()));
    // A Program that was read may have a result over an operand.
    const bool is_apart = std::ranges::none_of(read, [&](std::span<const std::byte> operand) {
      return operand.data() < place.data() + place.size() &&
             place.data() < operand.data() + operand.size();
    });
    is_in_place.push_back(data != nullptr && is_apart);
    if (is_in_place.back()) {
      arrays.add_result(Shape(buffer.type, buffer.dims), place);
    } else {
      arrays.add_result(Shape(buffer.type, buffer.dims));
    }
  }
  TENON_TRY(prepared.run(arrays.frame(static_cast<int64_t>(loaded_.device->number()), origin_)));
  for (size_t r = 0; r < call.results.size(); ++r) {
    if (!is_in_place[r]) TENON_TRY(put(call.results[r], arrays.results()[r].bytes));
  }
  return {};
}

}  // namespace tenon::runtime
