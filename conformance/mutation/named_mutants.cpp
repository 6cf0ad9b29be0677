// The mutants that the suite must catch, one of each kind of mistake.
#include "conformance/mutation/mutants.h"

namespace tenon::conformance {

const std::vector<NamedMutant>& named_mutants() {
  static const std::vector<NamedMutant> all = {
      {"operands swapped", "kernel/sub/f32/swaps_operands"},
      {"another operation", "kernel/floor/f64/becomes_other"},
      {"NaN dropped", "kernel/max/f32/drops_nan"},
      {"sign of zero lost", "kernel/mul/f32/loses_sign_of_zero"},
      {"last bit wrong", "kernel/add/f32/rounds_down"},
      {"denormals flushed", "kernel/add/f32/flushes_results"},
      {"function inaccurate", "kernel/exp/f32/is_inaccurate"},
      {"wrong at infinity", "kernel/tanh/f32/fails_at_infinity"},
      {"range reduction missing", "kernel/sin/f32/fails_when_large"},
      {"product rounded before the sum", "kernel/fma/f32/rounds_twice"},
      {"division by zero", "kernel/div/s32/gives_zero_for_zero_divisor"},
      {"shift modulo the width", "kernel/shl/s32/shifts_modulo_width"},
      {"off by one", "kernel/popcount/s32/is_one_off"},
      {"conversion wraps", "kernel/convert/f32_to_s32/wraps"},
      {"conversion truncates", "kernel/convert/f32_to_bf16/truncates"},
      {"lanes one short", "kernel/lanes/one_short"},
      {"grid one short", "kernel/grid/one_short"},
      {"init of a reduction lost", "kernel/reduce/ignores_init"},
      {"order of a reduction wrong", "kernel/reduce/swaps_sides"},
      {"pad lost", "kernel/copy/loses_pad"},
      {"products overwritten", "kernel/contract/overwrites"},
      {"index off by one", "kernel/load/index_off_by_one"},
      {"a copy short", "seam/copy/is_short"},
      {"a copy long", "seam/copy/is_long"},
      {"offset lost", "seam/copy/ignores_offset"},
      {"host pointer kept", "seam/copy/keeps_host_pointer"},
      {"a launch lost", "seam/launch/every_third_is_skipped"},
      {"a launch out of order", "seam/launch/is_late"},
      {"buffers swapped", "seam/launch/swaps_buffers"},
      {"scalars truncated", "seam/launch/truncates_scalars"},
      {"stale event", "seam/record/is_stale"},
      {"event done early", "seam/await/is_early"},
      {"event pending again", "seam/await/is_pending_again"},
      {"a wait skipped", "seam/wait/is_skipped"},
      {"error swallowed", "seam/event/swallows_errors"},
      {"memory shared", "seam/allocate/is_shared"},
      {"memory leaked", "seam/free/does_nothing"},
      {"wrong code of an error", "seam/allocate/no_room_is_internal"},
      {"binary read late", "seam/load/reads_binary_late"},
      {"binaries differ", "seam/compile/is_not_reproducible"},
  };
  return all;
}

}  // namespace tenon::conformance
