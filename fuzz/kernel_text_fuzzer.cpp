// Kernel text through parser and verifier, then through all code that takes a kernel.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/kernel/testing/exercise.h"

namespace {

void check(const tenon::kernel::Kernel& kernel) {
  using namespace tenon::kernel;
  const auto again = parse(print(kernel), "printed");
  if (!again || !equal(kernel, *again)) std::abort();
  // A verified kernel must stay valid under every transformation.
  if (!verify(kernel).ok()) return;
  if (const std::string wrong = exercise(kernel); !wrong.empty()) {
    std::fprintf(stderr, "%s\n%s", wrong.c_str(), print(kernel).c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto kernels = tenon::kernel::parse_all(text, "fuzz");
  if (!kernels) return 0;
  for (const tenon::kernel::Kernel& kernel : *kernels) check(kernel);
  return 0;
}
