#include "conformance/generate/random_fusions.h"

#include <algorithm>

#include "core/base/random.h"
#include "hlo/lower/elements/emitter.h"
#include "hlo/passes/fusion/fuse.h"

namespace tenon::conformance {
namespace {

using hlo::Instruction;

bool is_fusible(const Instruction& op) {
  const bool arrays = std::ranges::all_of(op.result_types(),
                                          [](const hlo::Type& type) { return type.is_tensor(); });
  return arrays && hlo::lower::is_elemental(op);
}

}  // namespace

int fuse_at_random(hlo::Module& module, uint64_t seed) {
  Random random(seed);
  int made = 0;
  hlo::Computation& entry = *module.entry();
  for (auto tries = random.below(6); tries >= 0; --tries) {
    std::vector<Instruction*> fusible;
    for (Instruction& op : entry) {
      if (is_fusible(op)) fusible.push_back(&op);
    }
    if (fusible.empty()) break;
    // If the chosen ops cannot be fused, removes the last ones, one after the other.
    std::vector<Instruction*> chosen;
    const auto first = static_cast<size_t>(random.below(static_cast<int64_t>(fusible.size())));
    const auto keep_one_in = 1 + random.below(3);
    for (size_t i = first; i < fusible.size() && chosen.size() < 8; ++i) {
      if (random.below(keep_one_in) == 0) chosen.push_back(fusible[i]);
    }
    while (!chosen.empty() && !hlo::fuse(chosen, "random")) chosen.pop_back();
    if (!chosen.empty()) ++made;
  }
  return made;
}

}  // namespace tenon::conformance
