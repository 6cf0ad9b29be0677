// Drafts of instructions for the tests of the shape rules: a valid one, and one change for each
// constraint.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/verify/verify.h"

namespace tenon::hlo::testing {

/// A type from its text: "f32[2,?]", "f32[?<=4]", "token". For quantized types and tuples see
/// below.
inline Type type_of(std::string_view text) {
  if (text == "token") return Type::token();
  const size_t open = text.find('[');
  Dims dims;
  Dims bounds;
  bool has_bound = false;
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    dims.push_back(word[0] == '?' ? kDynamic : std::stoll(std::string(word)));
    const bool is_bounded = word.size() > 3;
    bounds.push_back(is_bounded && word[0] == '?' ? std::stoll(std::string(word.substr(3)))
                                                  : kDynamic);
    has_bound = has_bound || bounds.back() != kDynamic;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  const ElementType element = *element_type_from_name(text.substr(0, open));
  return has_bound ? Type(Shape(element, dims, bounds)) : Type(Shape(element, dims));
}

/// A type or its text.
struct TypeArg {
  TypeArg(const char* text) : type(type_of(text)) {}
  TypeArg(Type value) : type(std::move(value)) {}
  Type type;
};
using TypeArgs = std::vector<TypeArg>;

inline std::vector<Type> types_of(const TypeArgs& args) {
  std::vector<Type> types;
  for (const TypeArg& arg : args) types.push_back(arg.type);
  return types;
}

/// s8 that represents f32, one scale per tensor.
inline Type quantized(Dims dims, double scale = 0.5, int64_t zero_point = 0) {
  QuantizedType q;
  q.scales = {scale};
  q.zero_points = {zero_point};
  return Type::quantized_tensor(std::move(dims), q);
}
/// One scale for each index of dimension `axis`.
inline Type quantized_per_axis(Dims dims, int64_t axis, std::vector<double> scales) {
  QuantizedType q;
  q.axis = axis;
  q.zero_points.assign(scales.size(), 0);
  q.scales = std::move(scales);
  return Type::quantized_tensor(std::move(dims), q);
}

inline Attribute word(EnumKind kind, auto value) {
  return EnumAttr{kind, static_cast<uint8_t>(value)};
}

/// A region that takes and returns these types; shape rules do not depend on its computation.
struct RegionDraft {
  TypeArgs parameters;
  TypeArgs results;
  bool ends_in_return = true;
};

struct Draft {
  OpCode code;
  TypeArgs operands;
  std::map<AttrKey, Attribute> attributes;
  std::vector<RegionDraft> regions;
  TypeArgs stated;
  /// Operands that are constant 64-bit integers rather than parameters.
  std::map<size_t, I64s> constants;
};

/// A change of a draft: the attribute set to that value.
inline auto set(AttrKey key, const auto& value) {
  return [=](Draft& d) { d.attributes[key] = value; };
}

inline constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

inline void fill_region(const RegionDraft& draft, Computation& region) {
  for (const TypeArg& parameter : draft.parameters) region.add_parameter(parameter.type);
  std::vector<Value> results;
  for (const TypeArg& result : draft.results) {
    Instruction* made = region.insert(std::make_unique<Instruction>(
        OpCode::kCustomCall, std::vector<Value>{}, std::vector<Type>{result.type}));
    made->mutable_attributes().set(AttrKey::call_target_name, "make");
    results.push_back(made->result());
  }
  if (!draft.ends_in_return) return;
  region.insert(std::make_unique<Instruction>(OpCode::kReturn, results, std::vector<Type>{}));
}

/// Adds the instruction at the end of `function`.
inline Instruction* add_draft(const Draft& draft, Computation& function) {
  std::vector<Value> operands;
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const auto constant = draft.constants.find(i);
    if (constant == draft.constants.end()) {
      operands.push_back(function.add_parameter(draft.operands[i].type));
      continue;
    }
    const Literal values =
        Literal::from_i64s(constant->second).reshaped(draft.operands[i].type.dims());
    Instruction* made = function.insert(std::make_unique<Instruction>(
        OpCode::kConstant, std::vector<Value>{}, std::vector<Type>{Type(values.shape())}));
    made->mutable_attributes().set(AttrKey::value, DenseAttr::of(values));
    operands.push_back(made->result());
  }
  auto op = std::make_unique<Instruction>(draft.code, operands, types_of(draft.stated));
  for (const auto& [key, value] : draft.attributes) op->mutable_attributes().set(key, value);
  for (const RegionDraft& region : draft.regions) fill_region(region, op->add_region());
  return function.insert(std::move(op));
}

/// The result types as text, or the message of the error.
inline std::string outcome(const Draft& draft) {
  Module module;
  const Instruction* op = add_draft(draft, module.add_function("main"));
  const Result<std::vector<Type>> types = infer_types(*op);
  if (!types) return types.error().message();
  if (!draft.stated.empty()) {
    const Status status = verify(*op);
    if (!status.ok()) return status.message();
  }
  return types_to_string(*types);
}

/// One change to a valid draft, and the expected error.
struct Clause {
  std::string_view what;
  std::function<void(Draft&)> change;
  std::string_view expected;
};

inline void check_clauses(const Draft& sound, std::string_view expected,
                          const std::vector<Clause>& clauses) {
  EXPECT_EQ(outcome(sound), expected);
  for (const Clause& clause : clauses) {
    SCOPED_TRACE(clause.what);
    Draft draft = sound;
    clause.change(draft);
    EXPECT_EQ(outcome(draft), clause.expected);
  }
}

}  // namespace tenon::hlo::testing
