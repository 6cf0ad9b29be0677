// The serial form of kernels: bytes through reader and verifier, then through all code that takes a
// kernel.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/kernel/serial/serial.h"
#include "core/kernel/testing/exercise.h"
#include "fuzz/targets.h"

bool tenon::fuzz::fuzz_kernel_serial(std::string_view bytes) {
  using namespace tenon::kernel;
  // The checksum is skipped, because a fuzzer cannot guess it.
  const auto kernel = load_kernel(bytes, true);
  if (!kernel) return false;
  const auto again = load_kernel(save(*kernel));
  if (!again || print(*again) != print(*kernel)) std::abort();
  if (const std::string wrong = exercise(*kernel); !wrong.empty()) {
    std::fprintf(stderr, "%s\n%s", wrong.c_str(), print(*kernel).c_str());
    std::abort();
  }
  run_on_zeros(*kernel);
  return true;
}
