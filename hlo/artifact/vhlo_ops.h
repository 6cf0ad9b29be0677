// The ops that an artifact may contain, and the conversion of their fields to StableHLO attributes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/artifact/bytecode_reader.h"
#include "hlo/ops/ops.h"

namespace tenon::hlo::bytecode {

/// The kind of value that a field of an op must hold.
enum class FieldKind : uint8_t {
  kI64,
  kI32,
  kInteger,
  kF32,
  kBool,
  kString,
  kSymbol,
  kSymbols,
  kFunctionType,
  kDict,
  kStringOrDict,
  kI64s,
  kI64Matrix,
  kBools,
  kLayouts,
  kTilings,
  kDense,
  kReplicaGroups,
  kAliases,
  kPrecisions,
  kAccuracy,
  kDirection,
  kComparison,
  kApiVersion,
  kFft,
  kAlgorithm,
  kDistribution,
  kTranspose,
  kArray,
  kDicts,
  kAny,
};

/// One inherent attribute of an op, in the order of its properties.
struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::kAny;
  bool optional = false;
};

/// An op of the file: its name in the RawModule and its fields.
struct OpPlan {
  std::string name;
  std::vector<Field> fields;
  VhloGrouping grouping = VhloGrouping::kNone;
  bool resolved = false;
  bool has_known_properties = true;
  bool is_function = false;
  bool is_return = false;  ///< A func.return directly within a function.
};

/// The plan for op `name` of `dialect`; an error for an op that an artifact cannot contain.
Result<OpPlan> plan_op(const BytecodeReader& reader, std::string_view dialect,
                       std::string_view name);

/// An attribute of the table with its index in the op's list of fields.
struct FieldValue {
  const Field* field = nullptr;
  uint64_t attribute = 0;
  bool present = false;
};

/// The StableHLO attributes of an op, sorted, computed from the values of all fields of `plan`.
Result<Dict> gather_attributes(BytecodeReader& reader, const OpPlan& plan,
                               std::span<const FieldValue> values);

}  // namespace tenon::hlo::bytecode
