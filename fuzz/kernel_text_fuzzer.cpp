// Kernel text through parser, verifier, printer, simplifier, legaliser and renderer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/kernel/legalize/legalize.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/render/render.h"
#include "core/kernel/simplify.h"
#include "core/kernel/text.h"
#include "core/kernel/verifier.h"

namespace tenon::kernel {
namespace {

// Legal forms of large kernels take long, and long ones reach nothing that short ones do not.
constexpr size_t kMostNodes = 40;

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
  if (kernel.nodes.size() > kMostNodes) return;
  for (const std::string_view target :
       {"least", "fma,s64,u64,f64,private_memory,scans,dimensions"}) {
    const auto legal = legalize(kernel, LegalForm::parse(target).value());
    if (!legal && legal.error().code() != ErrorCode::kUnimplemented) {
      require(kernel, legal.error(), "legalised");
    }
  }
  for (const Language language : {Language::kC, Language::kOpenCl}) {
    const auto source = render(std::span(&kernel, 1), {language, 32});
    if (!source && source.error().code() != ErrorCode::kUnimplemented) {
      require(kernel, source.error(), "rendered");
    }
  }
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
