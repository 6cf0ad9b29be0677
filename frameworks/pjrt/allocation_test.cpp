// Calls of the plug-in while the host has no memory: an error each time, never an exception or an
// abort. The plug-in allocates with this executable's `operator new`.
#include <cstdlib>
#include <new>

#include "frameworks/pjrt/plugin_test_util.h"

namespace {

constexpr int64_t kNoLimit = -1;
thread_local int64_t allocations_left = kNoLimit;

void* allocate(size_t size) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

// If they were inlined, the compiler would see a `free` of memory from `new`.
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace tenon::pjrt::testing {
namespace {

constexpr const char* kNoMemory = "8: the host has no memory left";

// Makes the call without memory from its n-th allocation on, for every n up to the first that gives
// `expected`; the call must need some memory.
template <class Args>
void without_memory(PJRT_Error* (*function)(Args*), const Args& args, const std::string& expected) {
  for (int64_t n = 0;; ++n) {
    Args given = args;
    allocations_left = n;
    PJRT_Error* error = function(&given);
    allocations_left = kNoLimit;
    const std::string text = take(error);
    if (text == expected) {
      EXPECT_GT(n, 0);
      return;
    }
    ASSERT_EQ(text, kNoMemory) << "allocation " << n;
  }
}

TEST(WithoutMemory, ErrorsAreErrors) {
  const Client client;
  auto look_up = uninitialized<PJRT_Client_LookupDevice_Args>();
  look_up.client = client.get();
  look_up.id = 7;
  without_memory(api().PJRT_Client_LookupDevice, look_up, "5: there is no device 7; there are 2");
  without_memory(api().PJRT_Device_PoisonExecution,
                 uninitialized<PJRT_Device_PoisonExecution_Args>(),
                 "12: Device_PoisonExecution: executions are not poisoned");
}

TEST(WithoutMemory, ProgramsAreNotCompiled) {
  const Client client;
  std::string code = "func.func @main(";
  PJRT_Program program = {sizeof program, nullptr, code.data(), code.size(), "mlir", 4};
  auto args = uninitialized<PJRT_Client_Compile_Args>();
  args.client = client.get();
  args.program = &program;
  args.compile_options = nullptr;
  args.compile_options_size = 0;
  without_memory(api().PJRT_Client_Compile, args, take(api().PJRT_Client_Compile(&args)));
}

TEST(WithoutMemory, ErrorsOfEventsAreErrors) {
  const Client client;
  auto args = uninitialized<PJRT_Client_CreateErrorBuffer_Args>();
  const std::string message = "a text that is too long for a string without memory of its own";
  args.client = client.get();
  args.error_code = PJRT_Error_Code_ABORTED;
  args.error_message = message.data();
  args.error_message_size = message.size();
  args.shape_dims = nullptr;
  args.shape_num_dims = 0;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.shape_layout = nullptr;
  args.memory = client.memories()[0];
  call(api().PJRT_Client_CreateErrorBuffer, args);
  PJRT_Event* event =
      get(api().PJRT_Buffer_ReadyEvent, args.buffer, &PJRT_Buffer_ReadyEvent_Args::buffer,
          &PJRT_Buffer_ReadyEvent_Args::event);
  without_memory(api().PJRT_Event_Await, {sizeof(PJRT_Event_Await_Args), nullptr, event},
                 "10: " + message);
  destroy(event);
  destroy(args.buffer);
}

TEST(WithoutMemory, WhatCannotBeKeptIsDestroyed) {
  const Client client;
  PJRT_Memory* memory = client.memories()[0];
  int destroyed = 0;
  allocations_left = 0;
  memory->vtable->set_user_data(memory, &client, &destroyed,
                                [](void* data) { ++*static_cast<int*>(data); });
  allocations_left = kNoLimit;
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(memory->vtable->get_user_data(memory, &client), nullptr);
}

// Whichever allocation fails, an execution either takes its donated arguments and returns results,
// or does neither; a result that cannot be moved to host memory has an error of its own.
TEST(WithoutMemory, ExecutionsTakeArgumentsOrFail) {
  const Client client;
  PJRT_LoadedExecutable* executable = client.compiled(R"(
    func.func public @main(%x: tensor<2xf32> {jax.buffer_donor = true})
        -> (tensor<2xf32> {mhlo.memory_kind = "pinned_host"}) {
      %0 = stablehlo.negate %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    })");
  std::vector<PJRT_Buffer*> results(1);
  int moves_failed = 0;
  for (int64_t n = 0;; ++n) {
    PJRT_Buffer* x = client.floats({1, -2}, {2});
    results[0] = nullptr;
    auto args = uninitialized<PJRT_LoadedExecutable_Execute_Args>();
    PJRT_ExecuteOptions options = {};
    options.struct_size = offsetof(PJRT_ExecuteOptions, context);
    PJRT_Buffer* const arguments[] = {x};
    PJRT_Buffer* const* lists[] = {arguments};
    PJRT_Buffer** outputs[] = {results.data()};
    args.executable = executable;
    args.options = &options;
    args.argument_lists = lists;
    args.num_devices = 1;
    args.num_args = 1;
    args.output_lists = outputs;
    args.device_complete_events = nullptr;
    args.execute_device = nullptr;
    allocations_left = n;
    PJRT_Error* error = api().PJRT_LoadedExecutable_Execute(&args);
    const bool whole = allocations_left > 0;
    allocations_left = kNoLimit;
    const std::string text = take(error);
    EXPECT_EQ(is_deleted(x), text.empty()) << "allocation " << n << ": " << text;
    EXPECT_EQ(results[0] != nullptr, text.empty()) << "allocation " << n;
    if (text.empty()) {
      PJRT_Event* ready =
          get(api().PJRT_Buffer_ReadyEvent, results[0], &PJRT_Buffer_ReadyEvent_Args::buffer,
              &PJRT_Buffer_ReadyEvent_Args::event);
      const std::string result = outcome(ready);
      if (result.empty()) {
        EXPECT_EQ(values<float>(results[0]), (std::vector<float>{-1, 2}));
      } else {
        ++moves_failed;
      }
      destroy(results[0]);
    }
    destroy(x);
    if (whole) break;
  }
  EXPECT_GT(moves_failed, 0);
  destroy(executable);
}

TEST(WithoutMemory, ExecutablesAreDestroyed) {
  const Client client;
  PJRT_LoadedExecutable* executable = client.compiled(R"(
    func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.negate %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    })");
  auto args = uninitialized<PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = executable;
  allocations_left = 0;
  PJRT_Error* error = api().PJRT_LoadedExecutable_Destroy(&args);
  allocations_left = kNoLimit;
  EXPECT_EQ(take(error), "");
}

}  // namespace
}  // namespace tenon::pjrt::testing
