#include "backends/gpu/simulator/fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/base/process/sanitizers.h"

#if !defined(TENON_FIBERS_BY_UCONTEXT) && (defined(__x86_64__) || defined(__aarch64__))
#define TENON_FIBERS_BY_HAND 1
#else
#include <ucontext.h>
#endif

#if TENON_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if TENON_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(TENON_FIBERS_BY_HAND)
// tenon_fiber_switch(void** from, void* to): saves callee-saved registers on the stack and the
// stack pointer in *from, and continues where `to` was saved. tenon_fiber_begin: the start of a
// fiber, with its function and argument in registers.
extern "C" void tenon_fiber_switch(void** from, void* to);
extern "C" void tenon_fiber_begin();
#if defined(__x86_64__)
asm(R"(
.pushsection .text
.globl tenon_fiber_switch
.hidden tenon_fiber_switch
.type tenon_fiber_switch, @function
tenon_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_fiber_switch, .-tenon_fiber_switch
.globl tenon_fiber_begin
.hidden tenon_fiber_begin
.type tenon_fiber_begin, @function
tenon_fiber_begin:
  movq %r12, %rdi
  callq *%r13
  ud2
.size tenon_fiber_begin, .-tenon_fiber_begin
.popsection
)");
#else
asm(R"(
.pushsection .text
.globl tenon_fiber_switch
.hidden tenon_fiber_switch
.type tenon_fiber_switch, %function
tenon_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tenon_fiber_switch, .-tenon_fiber_switch
.globl tenon_fiber_begin
.hidden tenon_fiber_begin
.type tenon_fiber_begin, %function
tenon_fiber_begin:
  mov x0, x19
  blr x20
  brk #1
.size tenon_fiber_begin, .-tenon_fiber_begin
.popsection
)");
#endif
#endif

namespace tenon::gpu {

// The saved registers of the fiber, and of the host while the fiber runs, and the state that
// sanitizers need.
struct Fiber::Registers {
#if defined(TENON_FIBERS_BY_HAND)
  void* fiber = nullptr;
  void* host = nullptr;
#else
  ucontext_t fiber{};
  ucontext_t host{};
#endif
#if TENON_ASAN
  void* fake_stack = nullptr;       // The fiber's.
  void* host_fake_stack = nullptr;  // The host's.
  const void* host_stack = nullptr;
  size_t host_bytes = 0;
#endif
#if TENON_TSAN
  void* fiber_id = nullptr;
  void* host_id = nullptr;
#endif
};

Fiber::Fiber(std::byte* stack, size_t bytes)
    : stack_(stack), bytes_(bytes), registers_(std::make_unique<Registers>()) {
#if TENON_TSAN
  registers_->fiber_id = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if TENON_TSAN
  __tsan_destroy_fiber(registers_->fiber_id);
#endif
}

void Fiber::begin(void* fiber) {
  auto* const self = static_cast<Fiber*>(fiber);
#if TENON_ASAN
  Registers& r = *self->registers_;
  __sanitizer_finish_switch_fiber(nullptr, &r.host_stack, &r.host_bytes);
#endif
  self->entry_(self->argument_);
  self->ended_ = true;
  self->switch_to_host(/*for_good=*/true);
}

#if defined(TENON_FIBERS_BY_HAND)
namespace {

// Makes the frame that tenon_fiber_switch pops off the stack of a fiber that has not run yet.
void* first_frame(std::byte* top, void (*function)(void*), void* argument) {
  auto* const word = reinterpret_cast<void**>(top);
  const auto begin = reinterpret_cast<void*>(tenon_fiber_begin);
#if defined(__x86_64__)
  // r15, r14, r13, r12, rbx, rbp, the address to return to; then the stack is aligned for a call.
  void** const frame = word - 7;
  std::fill(frame, word, nullptr);
  frame[2] = reinterpret_cast<void*>(function);
  frame[3] = argument;
  frame[6] = begin;
#else
  // x19 … x30, d8 … d15.
  void** const frame = word - 20;
  std::fill(frame, word, nullptr);
  frame[0] = argument;
  frame[1] = reinterpret_cast<void*>(function);
  frame[11] = begin;
#endif
  return static_cast<void*>(frame);
}

}  // namespace
#endif

void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  ended_ = false;
#if TENON_ASAN
  // An abandoned fiber has left its frames on the stack.
  __asan_unpoison_memory_region(stack_, bytes_);
  registers_->fake_stack = nullptr;
#endif
#if defined(TENON_FIBERS_BY_HAND)
  registers_->fiber = first_frame(stack_ + bytes_, begin, this);
#else
  getcontext(&registers_->fiber);
  registers_->fiber.uc_stack.ss_sp = stack_;
  registers_->fiber.uc_stack.ss_size = bytes_;
  // makecontext passes only ints.
  const auto self = reinterpret_cast<uintptr_t>(this);
  void (*const enter)(unsigned, unsigned) = [](unsigned low, unsigned high) {
    begin(reinterpret_cast<void*>(static_cast<uintptr_t>(uint64_t{high} << 32 | low)));
  };
  makecontext(&registers_->fiber, reinterpret_cast<void (*)()>(enter), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(uint64_t{self} >> 32));
#endif
}

void Fiber::run() {
  Registers& r = *registers_;
#if TENON_ASAN
  __sanitizer_start_switch_fiber(&r.host_fake_stack, stack_, bytes_);
#endif
#if TENON_TSAN
  r.host_id = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(r.fiber_id, 0);
#endif
#if defined(TENON_FIBERS_BY_HAND)
  tenon_fiber_switch(&r.host, r.fiber);
#else
  swapcontext(&r.host, &r.fiber);
#endif
#if TENON_ASAN
  __sanitizer_finish_switch_fiber(r.host_fake_stack, nullptr, nullptr);
#endif
}

void Fiber::switch_to_host([[maybe_unused]] bool for_good) {
  Registers& r = *registers_;
#if TENON_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &r.fake_stack, r.host_stack, r.host_bytes);
#endif
#if TENON_TSAN
  __tsan_switch_to_fiber(r.host_id, 0);
#endif
#if defined(TENON_FIBERS_BY_HAND)
  tenon_fiber_switch(&r.fiber, r.host);
#else
  swapcontext(&r.fiber, &r.host);
#endif
#if TENON_ASAN
  __sanitizer_finish_switch_fiber(r.fake_stack, &r.host_stack, &r.host_bytes);
#endif
}

void Fiber::give_way() { switch_to_host(/*for_good=*/false); }

void Fiber::leave() {
  switch_to_host(/*for_good=*/true);
  std::abort();  // Never reached.
}

bool FiberPool::reserve(size_t count, size_t stack_bytes) {
  if (count <= fibers_.size() && stack_bytes <= stack_bytes_) return true;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t stack = (std::max(stack_bytes, stack_bytes_) + page - 1) / page * page;
  count = std::max(count, fibers_.size());
  release();
  if (stack < stack_bytes || stack > SIZE_MAX / count - page) return false;
  const size_t bytes = count * (stack + page);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(memory);
  mapped_ = bytes;
  for (size_t i = 0; i < count; ++i) {
    std::byte* const guard = memory_ + i * (stack + page);
    if (mprotect(guard, page, PROT_NONE) != 0) {
      release();
      return false;
    }
    fibers_.push_back(std::make_unique<Fiber>(guard + page, stack));
  }
  stack_bytes_ = stack;
  return true;
}

void FiberPool::release() {
  fibers_.clear();
  if (memory_ != nullptr) munmap(memory_, mapped_);
  memory_ = nullptr;
  mapped_ = stack_bytes_ = 0;
}

}  // namespace tenon::gpu
