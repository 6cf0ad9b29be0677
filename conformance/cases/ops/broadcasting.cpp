// CHLO's ops with numpy-style broadcasting: each as the op that it broadcasts for.
#include <fmt/format.h>

#include "conformance/cases/case_list.h"
#include "conformance/cases/ops/elementwise.h"

namespace tenon::conformance {
namespace {

using hlo::AttrKey;
using hlo::I64s;
using hlo::OpCode;
using hlo::OpInfo;
using hlo::Value;
using enum ElementType;

constexpr std::string_view kPrefix = "broadcast_";

bool broadcasts(const OpInfo& op) {
  return op.dialect() == "chlo" && op.short_name().starts_with(kPrefix);
}

struct Arrangement {
  std::string_view name;
  Dims lhs;
  Dims rhs;
  I64s broadcast_dimensions;  ///< Empty: those of numpy.
};
const std::vector<Arrangement>& arrangements() {
  static const std::vector<Arrangement> all = {
      {"same", {3, 5}, {3, 5}, {}},    {"scalar_lhs", {}, {3, 5}, {}},
      {"scalar_rhs", {3, 5}, {}, {}},  {"vector_rhs", {3, 5}, {5}, {}},
      {"columns", {3, 1}, {1, 5}, {}}, {"rank3", {2, 3, 5}, {3, 1}, {}},
      {"to_major", {3, 5}, {3}, {0}},  {"empty", {0, 5}, {5}, {}},
  };
  return all;
}

Value operand(ProgramMaker& m, OpCode base, ElementType type, const Dims& dims) {
  const Value x = m.data(type, dims);
  // Between its poles on the negative axis polygamma has zeros, near which no bound holds.
  return base == OpCode::kChloPolygamma ? m.b().abs(x) : x;
}

void make(ProgramMaker& m, OpCode op, OpCode base, ElementType type, const Arrangement& how) {
  const Value x = operand(m, base, type, how.lhs);
  const Value y = operand(m, base, type, how.rhs);
  Value z;
  if (base == OpCode::kSelect) {
    z = m.b().make(op, {m.integers(kPred, how.rhs, 0, 1), x, y});
  } else if (base == OpCode::kCompare) {
    const hlo::EnumAttr least{hlo::EnumKind::kComparisonDirection,
                              static_cast<uint8_t>(hlo::ComparisonDirection::kLe)};
    z = m.b().make(op, {x, y}, {{AttrKey::comparison_direction, least}});
  } else if (how.broadcast_dimensions.empty()) {
    z = m.b().make(op, {x, y});
  } else {
    z = m.b().make(op, {x, y}, {{AttrKey::broadcast_dimensions, how.broadcast_dimensions}});
  }
  if (z && element_count(z.type().dims()) == 0) m.consume(z);
}

}  // namespace

void add_broadcasting_cases(CaseList& list) {
  for (const OpInfo& op : hlo::all_ops()) {
    if (!broadcasts(op)) continue;
    const auto base =
        hlo::op_from_name(fmt::format("stablehlo.{}", op.short_name().substr(kPrefix.size())));
    const auto chlo =
        hlo::op_from_name(fmt::format("chlo.{}", op.short_name().substr(kPrefix.size())));
    const OpCode code = base ? *base : *chlo;
    VariantCases added{"op/" + case_name_of(op.code), {}, {}};
    if (!takes_any_value(code)) added.values = kOrdinaryValues;
    for (const ElementTypeInfo& info : element_types()) {
      if (!admits(op.code, info.type)) continue;
      if (!admits(code, info.type)) {
        list.left_out.push_back(
            {cell_of(op.code, info.type), "the op without broadcasting does not take the type"});
      } else if (is_ill_conditioned(code, info.type) || !is_defined(code, info.type)) {
        list.left_out.push_back({cell_of(op.code, info.type), "as the op without broadcasting"});
      } else {
        added.types.push_back(info.type);
      }
    }
    for (const Arrangement& how : arrangements()) {
      const bool takes_dimensions =
          hlo::op_info(op.code).find_attribute(AttrKey::broadcast_dimensions) != nullptr &&
          code != OpCode::kCompare;
      if (!how.broadcast_dimensions.empty() && !takes_dimensions) continue;
      added.variants.push_back(
          {std::string(how.name), [code, op = op.code, &how](ElementType type) {
             return built_by([=, &how](ProgramMaker& m) { make(m, op, code, type, how); });
           }});
    }
    add_variants(list, added);
  }
}

}  // namespace tenon::conformance
