// .npy files: an array that was read must be written so that it reads back equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/types/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 16)) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto literal = tenon::parse_npy(bytes);
  if (!literal) return 0;
  const auto again = tenon::parse_npy(tenon::npy_bytes(*literal), literal->element_type());
  if (!again || !(*again == *literal)) std::abort();
  return 0;
}
