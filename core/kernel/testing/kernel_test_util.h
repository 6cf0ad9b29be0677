// Runs kernels from text in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"
#include "core/types/literal.h"

namespace tenon::kernel::testing {

/// Zeros for every buffer of the kernel, in its storage format.
inline std::vector<Literal> zero_buffers(const Kernel& kernel) {
  std::vector<Literal> buffers;
  for (size_t m = 0; m < kernel.buffer_count; ++m) {
    const Memory& memory = kernel.memories[m];
    buffers.emplace_back(Shape(memory.type, {memory.span()}));
  }
  return buffers;
}

inline Status run(const Kernel& kernel, std::vector<Literal>& buffers,
                  const std::vector<uint64_t>& scalars = {},
                  const InterpreterOptions& options = {}) {
  std::vector<BufferArgument> arguments;
  for (Literal& buffer : buffers) {
    const auto bytes = buffer.mutable_data();
    arguments.push_back({bytes.data(), bytes.size()});
  }
  return Interpreter(kernel).run(arguments, scalars, options);
}

/// Orders of execution that must not change a kernel's results.
inline std::vector<InterpreterOptions> orders() {
  std::vector<InterpreterOptions> all(5);
  all[1].order = Order::kBackward;
  for (size_t i = 2; i < 5; ++i) {
    all[i].order = Order::kShuffled;
    all[i].seed = i;
  }
  return all;
}

/// The error of verifying the kernel, or of running it forwards on zeros; "" without an error.
inline std::string violation(std::string_view text, const InterpreterOptions& options = {}) {
  const auto kernel = parse(text, "t");
  if (!kernel) return kernel.error().to_string();
  if (const auto found = find_violation(*kernel)) {
    // The rule is also returned as a value, not only in the text.
    EXPECT_TRUE(
        found->status.message().starts_with(fmt::format("K{}: ", static_cast<int>(found->rule))))
        << found->status.message();
    EXPECT_EQ(verify(*kernel), found->status);
    return found->status.to_string();
  }
  std::vector<Literal> buffers = zero_buffers(*kernel);
  const Status status =
      run(*kernel, buffers, std::vector<uint64_t>(kernel->scalars.size()), options);
  return status.ok() ? "" : status.to_string();
}

}  // namespace tenon::kernel::testing
