#include "tools/aot/weights.h"

#include <algorithm>
#include <array>
#include <vector>

#include "hlo/builder/builder.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/pass.h"

namespace tenon::tools {
namespace {

Literal narrowed(const Literal& wide, ElementType type) {
  Literal narrow(Shape(type, wide.shape().dims()));
  for (int64_t i = 0; i < wide.element_count(); ++i) narrow.set_double(i, wide.get_double(i));
  return narrow;
}

bool is_product(const hlo::Use& use) { return use.user->code() == hlo::OpCode::kDotGeneral; }

bool is_of_products(const hlo::Instruction& constant) {
  return std::ranges::all_of(constant.uses(), is_product);
}

void find_constants(hlo::Computation& computation, std::vector<hlo::Instruction*>& found) {
  for (hlo::Instruction& op : computation) {
    for (size_t i = 0; i < op.region_count(); ++i) find_constants(op.region(i), found);
    if (op.code() != hlo::OpCode::kConstant || !hlo::is_plain(op.result_type())) continue;
    const Shape& shape = op.result_type().shape();
    const bool is_large =
        shape.element_type() == ElementType::kF32 &&
        element_count(shape.dims()) >= (is_of_products(op) ? kLeastNarrowed : kLeastConverted);
    // A splat becomes no array.
    if (is_large && hlo::splat_of(op.result(0)) == nullptr) found.push_back(&op);
  }
}

Status narrow(hlo::Instruction& op, ElementType type) {
  hlo::Builder builder(*op.parent(), op.next());
  builder.set_location(op.location());
  const hlo::Value small =
      builder.constant(narrowed(hlo::constant_of(op.result(0))->expanded(), type));
  hlo::Value wide;
  const std::vector<hlo::Use> uses = op.uses();
  for (const hlo::Use& use : uses) {
    const bool is_direct = is_product(use);
    if (!is_direct && wide.def == nullptr) wide = builder.convert(small, ElementType::kF32);
    if (!builder.ok()) return builder.status();
    use.user->set_operand(use.operand, is_direct ? small : wide);
  }
  return builder.status();
}

}  // namespace

Status narrow_weights(hlo::Module& module, const std::string& entry, ElementType type) {
  TENON_TRY(hlo::select_entry(module, entry));
  constexpr std::array<std::string_view, 3> kPasses = {"inline-calls", "decompose", "simplify"};
  TENON_TRY(hlo::run_passes(module, kPasses));
  std::vector<hlo::Instruction*> constants;
  for (const auto& function : module.functions()) find_constants(*function, constants);
  for (hlo::Instruction* const each : constants) TENON_TRY(narrow(*each, type));
  return {};
}

}  // namespace tenon::tools
