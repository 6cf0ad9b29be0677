// Calls of the plug-in while the host has no memory: an error each time, never an exception or an
// abort. The plug-in allocates by this executable's `operator new`.
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

void* operator new(size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace tenon::pjrt::testing {
namespace {

constexpr const char* kNoMemory = "8: the host has no memory left";

// The call with no memory from its n-th allocation on, for every n up to the first that gives
// `expected`; it must need some.
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
  without_memory(api().PJRT_Client_DmaMap, uninitialized<PJRT_Client_DmaMap_Args>(),
                 "12: Client_DmaMap: host memory is not mapped");
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

}  // namespace
}  // namespace tenon::pjrt::testing
