// The text of targets, as `tenon devices --target` writes it: text through reader and writer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/backend/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::backend;
  const auto target = parse_target({reinterpret_cast<const char*>(data), size});
  if (!target) return 0;
  const std::string text = to_string(*target);
  const auto again = parse_target(text);
  if (!again || to_string(*again) != text) std::abort();
  return 0;
}
