// The serial form of kernels: bytes through reader and verifier, then through all code that takes a
// kernel.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/kernel/serial/serial.h"
#include "core/kernel/testing/exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::kernel;
  // The checksum is skipped, because a fuzzer cannot guess it.
  const auto kernel = load_kernel({reinterpret_cast<const char*>(data), size}, true);
  if (!kernel) return 0;
  const auto again = load_kernel(save(*kernel));
  if (!again || print(*again) != print(*kernel)) std::abort();
  if (const std::string wrong = exercise(*kernel); !wrong.empty()) {
    std::fprintf(stderr, "%s\n%s", wrong.c_str(), print(*kernel).c_str());
    std::abort();
  }
  run_on_zeros(*kernel);
  return 0;
}
