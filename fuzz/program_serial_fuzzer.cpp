// The serial form of Programs: bytes through reader, validator, writer and printer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/program/serial.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::program;
  // The checksum is skipped, because a fuzzer cannot guess it.
  const auto program = load_program({reinterpret_cast<const char*>(data), size}, true);
  if (!program) return 0;
  const auto again = load_program(save(*program));
  if (!again || print(*again) != print(*program)) std::abort();
  return 0;
}
