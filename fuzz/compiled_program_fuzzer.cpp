// The serial form of compiled Programs: bytes through reader, validators and writer.
#include <cstdlib>
#include <string_view>

#include "core/runtime/serial.h"
#include "fuzz/targets.h"

bool tenon::fuzz::fuzz_compiled_program(std::string_view bytes) {
  using namespace tenon::runtime;
  // The checksum is skipped, because a fuzzer cannot guess it. The corpus is compiled for "here".
  const auto compiled = load_compiled_program(bytes, "here", true);
  if (!compiled) return false;
  const std::string again = save(*compiled, "here");
  const auto read = load_compiled_program(again, "here");
  if (!read || save(*read, "here") != again) std::abort();
  return true;
}
