// .npy files: an array that was read must be written so that it reads back equal.
#include <cstdlib>

#include "core/types/npy.h"
#include "fuzz/targets.h"

bool tenon::fuzz::fuzz_npy(std::string_view bytes) {
  const auto literal = tenon::parse_npy(bytes);
  if (!literal) return false;
  const auto again = tenon::parse_npy(tenon::npy_bytes(*literal), literal->element_type());
  if (!again || !(*again == *literal)) std::abort();
  return true;
}
