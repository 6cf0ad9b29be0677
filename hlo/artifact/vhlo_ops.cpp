#include "hlo/artifact/vhlo_ops.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace tenon::hlo::bytecode {
namespace {

// Artifacts contain functions in addition to the ops of the op table.
constexpr VhloVersion kFunc = {
    "func_v1",
    "arg_attrs:dicts function_type:function res_attrs:dicts sym_name:str sym_visibility:str",
    VhloGrouping::kFunc};

// Ops of other dialects that occur in mixed artifacts.
constexpr VhloVersion kForeignOps[] = {
    {"builtin.module", "sym_name:str? sym_visibility:str?"},
    {"builtin.unrealized_conversion_cast"},
    {"sdy.all_gather", "gathering_axes:any out_sharding:any"},
    {"sdy.all_slice", "out_sharding:any slicing_axes:any"},
    {"sdy.all_to_all", "out_sharding:any params:any"},
    {"sdy.collective_permute", "out_sharding:any"},
    {"sdy.manual_computation", "in_shardings:any manual_axes:any out_shardings:any"},
    {"sdy.mesh", "mesh:any sym_name:str"},
    {"sdy.named_computation", "in_shardings:any? name:str out_shardings:any?"},
    {"sdy.reshard", "sharding:any"},
    {"sdy.return"},
    {"sdy.sharding_constraint", "sharding:any"},
    {"sdy.sharding_group", "group_id:i64"},
};

constexpr bool by_name(const VhloVersion& a, const VhloVersion& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kForeignOps), std::end(kForeignOps), by_name));

const VhloVersion* find_foreign(std::string_view name) {
  const auto* const row =
      std::lower_bound(std::begin(kForeignOps), std::end(kForeignOps), VhloVersion{name}, by_name);
  return row != std::end(kForeignOps) && row->name == name ? row : nullptr;
}

// A version of an op, with the op's name in the RawModule.
struct VersionedOp {
  const VhloVersion* version = nullptr;
  std::string_view name;
};

// The versions in the op table, by name.
const std::unordered_map<std::string_view, VersionedOp>& versions() {
  static const auto* const all = [] {
    auto* map = new std::unordered_map<std::string_view, VersionedOp>;
    for (const OpInfo& info : all_ops()) {
      for (const VhloVersion& version : info.vhlo_versions()) {
        map->emplace(version.name, VersionedOp{&version, info.name});
      }
    }
    map->emplace(kFunc.name, VersionedOp{&kFunc, "func.func"});
    return map;
  }();
  return *all;
}

constexpr std::pair<std::string_view, FieldKind> kFieldKinds[] = {
    {"i64", FieldKind::kI64},
    {"i32", FieldKind::kI32},
    {"int", FieldKind::kInteger},
    {"f32", FieldKind::kF32},
    {"bool", FieldKind::kBool},
    {"str", FieldKind::kString},
    {"symbol", FieldKind::kSymbol},
    {"symbols", FieldKind::kSymbols},
    {"function", FieldKind::kFunctionType},
    {"dict", FieldKind::kDict},
    {"dicts", FieldKind::kDicts},
    {"str_or_dict", FieldKind::kStringOrDict},
    {"i64s", FieldKind::kI64s},
    {"matrix", FieldKind::kI64Matrix},
    {"bools", FieldKind::kBools},
    {"layouts", FieldKind::kLayouts},
    {"tilings", FieldKind::kTilings},
    {"dense", FieldKind::kDense},
    {"groups", FieldKind::kReplicaGroups},
    {"aliases", FieldKind::kAliases},
    {"precisions", FieldKind::kPrecisions},
    {"accuracy", FieldKind::kAccuracy},
    {"direction", FieldKind::kDirection},
    {"comparison", FieldKind::kComparison},
    {"api", FieldKind::kApiVersion},
    {"fft", FieldKind::kFft},
    {"algorithm", FieldKind::kAlgorithm},
    {"distribution", FieldKind::kDistribution},
    {"transpose", FieldKind::kTranspose},
    {"array", FieldKind::kArray},
    {"any", FieldKind::kAny},
};

std::vector<Field> parse_fields(std::string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t colon = word.find(':');
    Field field{word.substr(0, colon)};
    std::string_view kind = word.substr(colon + 1);
    if (kind.ends_with('?')) {
      field.optional = true;
      kind.remove_suffix(1);
    }
    for (const auto& [name, value] : kFieldKinds) {
      if (name == kind) field.kind = value;
    }
    fields.push_back(field);
  }
  return fields;
}

OpPlan plan_of(const VhloVersion& row, std::string name) {
  OpPlan plan;
  plan.name = std::move(name);
  plan.fields = parse_fields(row.fields);
  plan.grouping = row.grouping;
  plan.resolved = true;
  return plan;
}

}  // namespace

Result<OpPlan> plan_op(const BytecodeReader& reader, std::string_view dialect,
                       std::string_view name) {
  if (dialect == "vhlo") {
    const auto found = versions().find(name);
    if (found == versions().end()) return reader.unknown(fmt::format("op vhlo.{}", name));
    const VersionedOp& op = found->second;
    OpPlan plan = plan_of(*op.version, std::string(op.name));
    plan.is_function = op.version == &kFunc;
    plan.is_return = op.name == "stablehlo.return";
    return plan;
  }
  std::string full = fmt::format("{}.{}", dialect, name);
  if (const VhloVersion* row = find_foreign(full)) return plan_of(*row, std::move(full));
  if (dialect == "stablehlo" || dialect == "func") {
    return unimplemented(
        "artifact of {}: op {} is bytecode of StableHLO itself, which no version keeps readable; "
        "serialize a portable artifact (VHLO) or give the text",
        reader.container().producer, full);
  }
  OpPlan plan;
  plan.name = std::move(full);
  plan.resolved = true;
  plan.has_known_properties = false;
  return plan;
}

}  // namespace tenon::hlo::bytecode
