// Kernel text through parser, verifier, printer, simplifier and tile expansion.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/kernel/legalize/tiles.h"
#include "core/kernel/simplify.h"
#include "core/kernel/text.h"
#include "core/kernel/verifier.h"

namespace tenon::kernel {
namespace {

// That a kernel stores twice to one place (K3) or out of range (K7) may show only once it is
// folded.
void require(const Kernel& kernel, const Status& status, const char* what) {
  if (status.ok() || status.message().starts_with("K3:") || status.message().starts_with("K7:")) {
    return;
  }
  std::fprintf(stderr, "%s: %s\n%s", what, status.to_string().c_str(), print(kernel).c_str());
  std::abort();
}

void check(const Kernel& kernel) {
  const std::string text = print(kernel);
  const auto again = parse(text, "printed");
  if (!again) require(kernel, again.error(), "what was printed does not parse");
  if (!equal(kernel, *again)) std::abort();
  // What has been verified stays sound whatever is done to it.
  if (!verify(kernel).ok()) return;
  const Kernel simple = simplify(kernel);
  require(simple, verify(simple), "simplified");
  const Kernel expanded = expand_tiles(kernel);
  require(expanded, verify(expanded), "expanded");
}

}  // namespace
}  // namespace tenon::kernel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto kernels = tenon::kernel::parse_all(text, "fuzz");
  if (!kernels) return 0;
  for (const tenon::kernel::Kernel& kernel : *kernels) tenon::kernel::check(kernel);
  return 0;
}
