#include "conformance/cases/case_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {
namespace {

// The type that represents an op in the smoke tier, if the op has it.
constexpr ElementType kTypical[] = {ElementType::kF32, ElementType::kS32, ElementType::kPred,
                                    ElementType::kC64};

}  // namespace

ElementType typical_type(const std::vector<ElementType>& types) {
  for (const ElementType each : kTypical) {
    if (std::ranges::count(types, each) > 0) return each;
  }
  return types.front();
}

std::string case_name_of(hlo::OpCode op) {
  const hlo::OpInfo& info = hlo::op_info(op);
  const std::string name(info.short_name());
  return info.dialect() == "stablehlo" ? name : fmt::format("{}_{}", info.dialect(), name);
}

bool admits(hlo::OpCode op, ElementType type) {
  return (hlo::op_info(op).types & hlo::type_set_of(type)) != 0;
}

std::string cell_of(hlo::OpCode op, ElementType type) {
  return fmt::format("op/{}/{}", case_name_of(op), name_of(type));
}

bool is_valid(CaseList& list, const std::string& cell, const MakeProgram& make) {
  const WithoutValues unneeded;
  const auto program = make(ValueClass::kOrdinary, 0);
  if (!program) list.left_out.push_back({cell, program.error().message()});
  return program.has_value();
}

void add(CaseList& list, const ProgramCases& added) {
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
    list.cases.push_back(std::move(one));
  }
}

void add_if_valid(CaseList& list, const ProgramCases& added) {
  if (is_valid(list, added.prefix, added.make)) add(list, added);
}

std::vector<ElementType> types_of(hlo::OpCode op) {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& info : element_types()) {
    if (admits(op, info.type)) types.push_back(info.type);
  }
  return types;
}

namespace {

std::string name_of(const VariantCases& added, ElementType type, const TypedVariant& variant) {
  return fmt::format("{}/{}/{}", added.prefix, name_of(type), variant.name);
}

// The types of each variant on which it verifies. A type on which none does is left out as a whole.
std::vector<std::vector<ElementType>> valid_types(CaseList& list, const VariantCases& added) {
  std::vector<std::vector<ElementType>> valid(added.variants.size());
  for (const ElementType type : added.types) {
    CaseList refused;
    for (size_t v = 0; v < added.variants.size(); ++v) {
      const TypedVariant& variant = added.variants[v];
      if (is_valid(refused, name_of(added, type, variant), variant.make(type)))
        valid[v].push_back(type);
    }
    if (refused.left_out.size() == added.variants.size()) {
      refused.left_out.resize(1);
      refused.left_out[0].cell = fmt::format("{}/{}", added.prefix, name_of(type));
    }
    for (LeftOut& each : refused.left_out) list.left_out.push_back(std::move(each));
  }
  return valid;
}

}  // namespace

void add_variants(CaseList& list, const VariantCases& added) {
  const auto valid = valid_types(list, added);
  for (size_t v = 0; v < added.variants.size(); ++v) {
    const TypedVariant& variant = added.variants[v];
    for (const ElementType type : valid[v]) {
      ProgramCases one;
      one.prefix = name_of(added, type, variant);
      one.make = variant.make(type);
      one.values = added.values;
      one.type = type;
      one.is_typical = v == 0;
      const size_t first = list.cases.size();
      add(list, one);
      if (v == 0 && type != typical_type(valid[v]) && first < list.cases.size())
        list.cases[first].tier = Tier::kQuick;
    }
  }
}

void add_variants(CaseList& list, hlo::OpCode op, std::span<const Variant> variants,
                  std::span<const ValueClass> values) {
  VariantCases added{"op/" + case_name_of(op), {}, types_of(op), values};
  for (const Variant& variant : variants) {
    added.variants.push_back({std::string(variant.name), [make = variant.make](ElementType type) {
                                return built_by([=](ProgramMaker& maker) { make(maker, type); });
                              }});
  }
  add_variants(list, added);
}

}  // namespace tenon::conformance
