// The template: a backend for the simulated chip (chip/chip.h), and the starting point of a new
// backend.
//
// It is complete: every op runs, by the fifteen functions of the seam, rules B1 … B29 of
// core/backend/plugin.h. Replace the parts marked PORT. `tenon new-backend` copies this file.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "backends/template/chip/chip.h"
#include "backends/template/template.h"
#include "core/base/process/environment.h"
#include "core/kernel/render/c_library.h"
#include "core/kernel/render/render.h"

namespace tenon::backend {
namespace {

// --- PORT: your driver. A chip: its process, its registers, and the line on which it signals.

Status lost() { return Status(ErrorCode::kUnavailable, "the chip is gone"); }

// Moves a descriptor above the numbers that the chip uses, and those that a host may have closed.
int moved_up(int file) {
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, CHIP_LINE_FD + 1);
  close(file);
  return moved;
}

class Chip {
 public:
  static Result<std::unique_ptr<Chip>> start(std::string memory_option) {
    auto chip = std::make_unique<Chip>();
    const int memory = moved_up(memfd_create("chip", MFD_CLOEXEC));
    int ends[2] = {-1, -1};
    void* mapped = MAP_FAILED;
    if (memory >= 0 && ftruncate(memory, sizeof(ChipRegisters)) == 0 &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
      mapped = mmap(nullptr, sizeof(ChipRegisters), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    }
    for (int& end : ends) end = moved_up(end);
    chip->line_ = ends[0];
    if (mapped != MAP_FAILED) chip->registers_ = static_cast<ChipRegisters*>(mapped);
    const std::string path = environment_or("TENON_CHIP", TENON_CHIP_PATH);
    char* argv[] = {const_cast<char*>(path.c_str()), memory_option.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, memory, CHIP_REGISTERS_FD);
    posix_spawn_file_actions_adddup2(&files, ends[1], CHIP_LINE_FD);
    const bool started =
        chip->registers_ != nullptr &&
        posix_spawn(&chip->process_, path.c_str(), &files, nullptr, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&files);
    close(memory);
    close(ends[1]);
    char ready = 0;
    if (!started) chip->process_ = 0;
    if (!started || recv(chip->line_, &ready, 1, 0) != 1) {
      return make_error(ErrorCode::kUnavailable, "the chip {} does not start", path);
    }
    if (chip->registers_->version == CHIP_VERSION) return chip;
    return failed_precondition("the chip is of version {}", chip->registers_->version);
  }

  ~Chip() {
    if (process_ > 0) kill(process_, SIGKILL);
    if (process_ > 0) waitpid(process_, nullptr, 0);
    if (registers_ != nullptr) munmap(registers_, sizeof(ChipRegisters));
    close(line_);
  }

  // Puts a command into the ring; returns its number. Waits for room.
  Result<uint64_t> give(const ChipCommand& command) {
    std::unique_lock lock(mutex_);
    while (!lost_ && given_ - harvest() == CHIP_SLOTS) listen(lock, 10);
    if (lost_) return tl::make_unexpected(lost());
    registers_->ring[given_ % CHIP_SLOTS] = command;
    __atomic_store_n(&registers_->given, ++given_, __ATOMIC_RELEASE);
    // A full line has already been signalled.
    lost_ = send(line_, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 && errno != EAGAIN;
    if (lost_) return tl::make_unexpected(lost());
    return given_ - 1;
  }

  // Whether the command is done, after at most `timeout` nanoseconds; returns its error.
  Result<bool> done(uint64_t number, int64_t timeout, uint64_t* result = nullptr) {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    for (bool over = false; harvest() <= number;) {
      if (lost_) return tl::make_unexpected(lost());
      if (over) return false;
      const int64_t waited = (std::chrono::steady_clock::now() - start).count();
      // It checks the line once even so: the chip may be gone.
      over = timeout >= 0 && waited >= timeout;
      listen(lock, over ? 0 : timeout < 0 ? 10 : (timeout - waited) / 1'000'000 + 1);
    }
    const ChipReply& outcome = outcomes_.at(number);
    if (result != nullptr) *result = outcome.result;
    if (outcome.status == CHIP_OK) return true;
    return make_error(
        outcome.status == CHIP_NO_MEMORY ? ErrorCode::kResourceExhausted : ErrorCode::kInternal,
        "chip: {}", outcome.text);
  }

  // Runs a command to its end and forgets it.
  Result<uint64_t> finish(const ChipCommand& command) {
    TENON_ASSIGN(const uint64_t number, give(command));
    uint64_t result = 0;
    const Result<bool> ended = done(number, -1, &result);
    forget(number);
    if (!ended) return tl::make_unexpected(ended.error());
    return result;
  }

  void end() { kill(process_, SIGKILL); }

  Status state() {
    const std::lock_guard lock(mutex_);
    return lost_ ? lost() : Status();
  }

  void forget(uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (number < harvested_)
      outcomes_.erase(number);
    else
      ignored_.insert({number, true});
  }

  // Copies bytes through the window, a piece at a time.
  Status transfer(uint32_t opcode, uint64_t address, std::byte* host, int64_t bytes) {
    const std::lock_guard lock(window_);
    for (int64_t at = 0; at < bytes; at += CHIP_WINDOW_BYTES) {
      const auto piece = static_cast<size_t>(std::min<int64_t>(bytes - at, CHIP_WINDOW_BYTES));
      if (opcode == CHIP_WRITE) std::memcpy(registers_->window, host + at, piece);
      ChipCommand command{};
      command.opcode = opcode;
      command.address = address + static_cast<uint64_t>(at);
      command.bytes = piece;
      TENON_TRY(finish(command));
      if (opcode == CHIP_READ) std::memcpy(host + at, registers_->window, piece);
    }
    return {};
  }

 private:
  struct ChipReply {
    uint32_t status = CHIP_OK;
    uint64_t result = 0;
    std::string text;
  };

  // Waits without the lock for a signal of the chip, so that other threads can give commands. Only
  // one of the waiting threads gets a signal, so each checks again after at most ten milliseconds.
  void listen(std::unique_lock<std::mutex>& lock, int64_t milliseconds) {
    lock.unlock();
    pollfd line = {line_, POLLIN, 0};
    char bytes[256];
    const bool called = poll(&line, 1, static_cast<int>(std::min<int64_t>(milliseconds, 10))) > 0;
    const ssize_t heard = called ? recv(line_, bytes, sizeof bytes, MSG_DONTWAIT) : 1;
    const bool gone = heard == 0 || (heard < 0 && errno != EAGAIN);
    lock.lock();
    lost_ |= gone;
  }

  // Records the results of ended commands before their slots are reused; returns how many have
  // ended.
  uint64_t harvest() {
    const uint64_t done = __atomic_load_n(&registers_->done, __ATOMIC_ACQUIRE);
    for (; harvested_ < done; ++harvested_) {
      const ChipCommand& c = registers_->ring[harvested_ % CHIP_SLOTS];
      if (ignored_.erase(harvested_) == 0 && c.opcode != CHIP_LAUNCH && c.opcode != CHIP_COPY) {
        outcomes_[harvested_] = {c.status, c.result, c.text};
      }
    }
    return harvested_;
  }

  pid_t process_ = 0;
  int line_ = -1;
  ChipRegisters* registers_ = nullptr;
  std::mutex mutex_;
  std::mutex window_;
  bool lost_ = false;
  uint64_t given_ = 0;
  uint64_t harvested_ = 0;
  std::map<uint64_t, ChipReply> outcomes_;
  std::map<uint64_t, bool> ignored_;
};

// --- The device: each function is one or two commands.

ChipCommand command(ChipOpcode opcode, uint64_t address = 0, uint64_t other = 0,
                    int64_t bytes = 0) {
  ChipCommand c{};
  c.opcode = opcode;
  c.address = address;
  c.other = other;
  c.bytes = static_cast<uint64_t>(bytes);
  return c;
}

uint64_t address_of(const MemoryAddress& place) {
  return place.memory + static_cast<uint64_t>(place.offset);
}

class TemplateDevice final : public Device {
 public:
  explicit TemplateDevice(std::unique_ptr<Chip> chip) : chip_(std::move(chip)) {}

  // PORT: loading code onto the chip.
  Result<ModuleHandle> load(std::string_view binary, Kernels) override {
    const auto bytes = static_cast<int64_t>(binary.size());
    TENON_ASSIGN(const uint64_t at, chip_->finish(command(CHIP_ALLOCATE, 0, 0, bytes)));
    auto* host = reinterpret_cast<std::byte*>(const_cast<char*>(binary.data()));
    const Status written = chip_->transfer(CHIP_WRITE, at, host, bytes);
    auto module = written.ok() ? chip_->finish(command(CHIP_LOAD, at, 0, bytes))
                               : Result<uint64_t>(tl::make_unexpected(written));
    free(at);
    return module;
  }
  void unload(ModuleHandle module) override {
    static_cast<void>(chip_->finish(command(CHIP_UNLOAD, 0, module)));
  }

  Result<MemoryHandle> allocate(uint32_t, int64_t bytes) override {
    return chip_->finish(command(CHIP_ALLOCATE, 0, 0, bytes));
  }
  void free(MemoryHandle memory) override {
    static_cast<void>(chip_->finish(command(CHIP_FREE, memory)));
  }

  Status copy(uint32_t, const MemoryAddress& to, const MemoryAddress& from,
              int64_t bytes) override {
    if (from.on_host()) return chip_->transfer(CHIP_WRITE, address_of(to), from.host, bytes);
    if (to.on_host()) return chip_->transfer(CHIP_READ, address_of(from), to.host, bytes);
    const ChipCommand c = command(CHIP_COPY, address_of(to), address_of(from), bytes);
    TENON_TRY(chip_->give(c));
    return {};
  }

  Status launch(uint32_t, const KernelLaunch& launch) override {
    ChipCommand c = command(CHIP_LAUNCH, 0, launch.module);
    c.kernel = launch.kernel;
    for (const MemoryAddress& place : launch.buffers)
      c.arguments[c.address_count++] = address_of(place);
    for (const uint64_t scalar : launch.scalars) {
      c.arguments[c.address_count + c.scalar_count++] = scalar;
    }
    TENON_TRY(chip_->give(c));
    return {};
  }

  // An event is the number of a fence, counted from 1.
  Result<EventHandle> record(uint32_t) override {
    TENON_ASSIGN(const uint64_t number, chip_->give(command(CHIP_FENCE)));
    return number + 1;
  }
  // There is only one queue.
  Status wait(uint32_t, EventHandle) override { return chip_->state(); }
  Result<bool> await(EventHandle event, int64_t timeout) override {
    return chip_->done(event - 1, timeout);
  }
  void release(EventHandle event) override { chip_->forget(event - 1); }
  Status abort() override {
    chip_->end();
    return {};
  }

 private:
  const std::unique_ptr<Chip> chip_;
};

class TemplateBackend final : public Backend {
 public:
  std::string_view name() const override { return "template"; }
  std::string_view version() const override { return "1"; }

  // PORT: the description of your devices.
  Result<std::vector<DeviceInfo>> devices() override {
    TargetInfo target;
    target.name = "chip";
    target.compiler_id = "template-1 " + compiler_;
    target.features = kernel::TargetFeatures::parse("s8,u8,s16,u16,s64,u64,fma,dimensions").value();
    target.most_parameters = CHIP_ARGUMENTS;
    TENON_ASSIGN(target.spaces[0].bytes, memory_);
    target.spaces[0].alignment = CHIP_ALIGNMENT;
    TENON_ASSIGN(const int64_t count, chips_);
    std::vector<DeviceInfo> devices;
    for (int64_t i = 0; i < count; ++i) devices.push_back({fmt::format("template:{}", i), target});
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t) override {
    TENON_ASSIGN(const int64_t memory, memory_);
    TENON_ASSIGN(std::unique_ptr<Chip> chip, Chip::start(fmt::format("--memory={}", memory)));
    return std::make_unique<TemplateDevice>(std::move(chip));
  }

  // PORT: your compiler. This one takes source in C.
  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    Compiled compiled;
    std::vector<kernel::Kernel> copies;
    for (uint32_t k = 0; k < kernels.size(); ++k) {
      copies.push_back(*kernels[k]);
      const auto parameters =
          static_cast<int64_t>(copies[k].buffer_count + copies[k].scalars.size());
      if (parameters <= target.most_parameters) continue;
      compiled.declined.push_back({k, Reason::kTooManyParameters, std::to_string(parameters)});
    }
    if (!compiled.declined.empty()) return compiled;
    TENON_ASSIGN(const kernel::RenderedSource source,
                 kernel::render(copies, {kernel::Language::kC, 1, CHIP_KERNEL_TABLE}));
    TENON_ASSIGN(compiled.binary, kernel::compile_c(source.text, compiler_ + " -O1"));
    return compiled;
  }

 private:
  // Read once, so that every call reports the same devices (B9).
  const Result<int64_t> chips_ = environment_number("TENON_CHIPS", 4, {1, 1024});
  const Result<int64_t> memory_ = environment_number("TENON_CHIP_MEMORY", int64_t{256} << 20);
  const std::string compiler_ = environment_or("TENON_TEMPLATE_CC", "cc");
};

}  // namespace

std::shared_ptr<Backend> make_template_backend() { return std::make_shared<TemplateBackend>(); }

}  // namespace tenon::backend
