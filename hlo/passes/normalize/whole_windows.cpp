#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

bool mark(Computation& computation) {
  bool changed = false;
  for (Instruction& op : computation) {
    for (size_t i = 0; i < op.region_count(); ++i) changed |= mark(op.region(i));
    if (op.code() != OpCode::kScatter || op.flag(AttrKey::whole_windows)) continue;
    op.mutable_attributes().set(AttrKey::whole_windows, true);
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> drop_whole_windows(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= mark(*function);
  return changed;
}

}  // namespace tenon::hlo
