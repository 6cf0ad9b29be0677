// Helpers for tests of the runtime.
#pragma once

#include <gtest/gtest.h>

#include "core/backend/interpreter/interpreter.h"
#include "core/program/program_test_util.h"
#include "core/runtime/client.h"

namespace tenon::runtime::testing {

inline std::shared_ptr<Client> client_of(const backend::InterpreterConfig& config = {},
                                         const ClientOptions& options = {}) {
  auto client = Client::open(backend::make_interpreter_backend(config), options);
  EXPECT_TRUE(client) << client.error().to_string();
  return *client;
}

// Compiles and loads a Program as hlo/driver does, without hlo.
inline std::shared_ptr<Executable> load(const Client& client, program::Program program,
                                        std::vector<KernelPlacement> homes = {},
                                        CustomCalls calls = {}) {
  EXPECT_EQ(validate(program).to_string(), "OK");
  homes.resize(program.kernels.size());
  std::vector<const kernel::Kernel*> kernels;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    if (homes[k] == KernelPlacement::kDevice) kernels.push_back(&program.kernels[k]);
  }
  const auto& device = client.devices()[0];
  auto compiled = client.backend().compile(device->info().target, kernels);
  EXPECT_TRUE(compiled);
  auto executable = Executable::load(
      device, {std::move(program), std::move(compiled->binary), std::move(homes), {}, {}},
      std::move(calls));
  EXPECT_TRUE(executable) << executable.error().to_string();
  return *executable;
}

inline BufferPtr put(const std::shared_ptr<Device>& device, const Literal& literal,
                     MemoryKind kind = MemoryKind::kDevice) {
  auto buffer = buffer_from_host(device, kind, {literal.data().data(), literal.shape(), {}, {}});
  EXPECT_TRUE(buffer) << buffer.error().to_string();
  return buffer->buffer;
}

inline Literal get(const BufferPtr& buffer) {
  auto literal = buffer->to_literal();
  EXPECT_TRUE(literal) << literal.error().to_string();
  return literal ? *literal : Literal();
}

constexpr int64_t kMillisecond = 1'000'000;

inline ClientOptions limit_of(int64_t milliseconds) {
  ClientOptions options;
  options.limits.time_limit = milliseconds * kMillisecond;
  options.limits.open_wait = 2000 * kMillisecond;
  return options;
}

// The error of work on an interp device that exceeds a limit of 100 ms.
constexpr auto kTooLong =
    "interp:0: work took longer than the time limit of 100 ms; the device counts as lost";

inline void expect_runs(const std::shared_ptr<Client>& client) {
  using program::testing::four;
  const auto run = load(*client, program::testing::twice())
                       ->execute(std::vector{put(client->devices()[0], four(1))});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(get(run->results[0]), four(3));
}

// A kernel that never ends, unless it is stopped.
inline program::Program endless() {
  program::Program p = program::testing::twice();
  p.kernels = {program::testing::kernel_of(
      "kernel @endless(%x: in f32[4], %z: in f32[4], %y: out f32[4]) index s32 grid() {\n"
      "%r = while(%a = true) : pred {\nyield %a\n} do(%b) {\nyield %b\n}\n"
      "lanes(%i: 4) {\nstore 0.0, %y[%i] : f32\n}\n}")};
  return p;
}

}  // namespace tenon::runtime::testing
