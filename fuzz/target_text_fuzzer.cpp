// The text of targets, as `tenon devices --target` writes it: text through reader and writer.
#include <cstdlib>
#include <string_view>

#include "core/backend/target.h"
#include "fuzz/targets.h"

bool tenon::fuzz::fuzz_target_text(std::string_view bytes) {
  using namespace tenon::backend;
  const auto target = parse_target(bytes);
  if (!target) return false;
  const std::string text = to_string(*target);
  const auto again = parse_target(text);
  if (!again || to_string(*again) != text) std::abort();
  return true;
}
