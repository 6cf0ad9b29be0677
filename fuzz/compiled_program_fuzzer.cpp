// The serial form of compiled Programs: bytes through reader, validators and writer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/runtime/serial.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::runtime;
  // The checksum is skipped, because a fuzzer cannot guess it. The corpus is compiled for "here".
  const auto compiled =
      load_compiled_program({reinterpret_cast<const char*>(data), size}, "here", true);
  if (!compiled) return 0;
  const std::string again = save(*compiled, "here");
  const auto read = load_compiled_program(again, "here");
  if (!read || save(*read, "here") != again) std::abort();
  return 0;
}
