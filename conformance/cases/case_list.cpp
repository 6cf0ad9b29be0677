#include "conformance/cases/case_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {
namespace {

// The type that represents an op in the smoke tier, if the op has it.
constexpr ElementType kTypical[] = {ElementType::kF32, ElementType::kS32, ElementType::kPred,
                                    ElementType::kC64};

ElementType typical_type(const std::vector<ElementType>& types) {
  for (const ElementType each : kTypical) {
    if (std::ranges::count(types, each) > 0) return each;
  }
  return types.front();
}

}  // namespace

std::string case_name_of(hlo::OpCode op) {
  const hlo::OpInfo& info = hlo::op_info(op);
  const std::string name(info.short_name());
  return info.dialect() == "stablehlo" ? name : fmt::format("{}_{}", info.dialect(), name);
}

bool admits(hlo::OpCode op, ElementType type) {
  return (hlo::op_info(op).types & hlo::type_set_of(type)) != 0;
}

bool is_valid(const MakeProgram& make) {
  return make_program(make, ValueClass::kOrdinary, 0).has_value();
}

void add(std::vector<ConformanceCase>& cases, const ProgramCases& added) {
  bool is_first = true;
  for (const ValueClass values : added.values) {
    if (!has_values(added.type, values)) continue;
    ConformanceCase one;
    one.name = fmt::format("{}/{}", added.prefix, name_of(values));
    one.run = [make = added.make, values](CaseContext& context) {
      return run_program_case(make, values, context);
    };
    if (added.is_typical && is_first) {
      const bool stands_for_op = std::ranges::count(kTypical, added.type) > 0;
      one.tier = stands_for_op ? Tier::kSmoke : Tier::kQuick;
    }
    is_first = false;
    cases.push_back(std::move(one));
  }
}

void add_variants(std::vector<ConformanceCase>& cases, hlo::OpCode op,
                  std::span<const Variant> variants, std::span<const ValueClass> values) {
  for (const Variant& variant : variants) {
    std::vector<ElementType> types;
    for (const ElementTypeInfo& info : element_types()) {
      const auto make = [&](ProgramMaker& maker) { variant.make(maker, info.type); };
      if (admits(op, info.type) && is_valid(make)) types.push_back(info.type);
    }
    if (types.empty()) continue;
    const ElementType typical = typical_type(types);
    for (const ElementType type : types) {
      ProgramCases added;
      added.prefix = fmt::format("op/{}/{}/{}", case_name_of(op), name_of(type), variant.name);
      added.make = [make = variant.make, type](ProgramMaker& maker) { make(maker, type); };
      added.values = values;
      added.type = type;
      const size_t first = cases.size();
      added.is_typical = &variant == variants.data();
      add(cases, added);
      if (added.is_typical && type != typical && first < cases.size()) {
        cases[first].tier = Tier::kQuick;
      }
    }
  }
}

}  // namespace tenon::conformance
