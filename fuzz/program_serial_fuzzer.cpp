// The serial form of Programs: bytes through reader, validator, writer and printer; and the
// interfaces of their custom calls, which are read when a Program is loaded.
#include <cstdlib>
#include <string_view>

#include "core/program/foreign_call.h"
#include "core/program/serial.h"
#include "fuzz/targets.h"

namespace {

// Writes the interface of a call again, and reads the same.
void read_interface(const tenon::program::Program& program, tenon::program::CustomCall call) {
  const auto foreign = foreign_of(program, call);
  if (!foreign) return;
  call.config = {};
  add_foreign(call.config, *foreign);
  const auto again = foreign_of(program, call);
  if (!again || *again != *foreign) std::abort();
}

}  // namespace

bool tenon::fuzz::fuzz_program_serial(std::string_view bytes) {
  using namespace tenon::program;
  // The checksum is skipped, because a fuzzer cannot guess it.
  const auto program = load_program(bytes, true);
  if (!program) return false;
  const auto again = load_program(save(*program));
  if (!again || print(*again) != print(*program)) std::abort();
  for (const Sequence& sequence : program->sequences) {
    for (const Step& step : sequence.steps) {
      if (const auto* call = std::get_if<CustomCall>(&step.action)) read_interface(*program, *call);
    }
  }
  return true;
}
