// Kernel text through parser and verifier, then through all code that takes a kernel.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/kernel/testing/exercise.h"
#include "fuzz/targets.h"

namespace {

void check_kernel(const tenon::kernel::Kernel& kernel) {
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

bool tenon::fuzz::fuzz_kernel_text(std::string_view bytes) {
  const auto kernels = tenon::kernel::parse_all(bytes, "fuzz");
  if (!kernels) return false;
  for (const tenon::kernel::Kernel& kernel : *kernels) check_kernel(kernel);
  return true;
}
