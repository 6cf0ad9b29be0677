// hlo/ops/: the op set: one row for each op.
//
// The rows are declared in op_table.inc.
//
// The opcode, the parsers and printers of both text forms, the artifact reader, the builder, the
// structural half of the verifier and docs/ops.md are derived from a row. For the parts that cannot
// be data, the row names functions: shape rule, decomposition, evaluation, lowering, random sample.
// hlo/registry connects the rows to these functions, and does not compile if a row lacks one that
// its op needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "hlo/types/attribute.h"
#include "hlo/types/type.h"

namespace tenon::hlo {

class Builder;
class Instruction;
class Sampler;
struct EvalCall;
struct EvalValue;
struct ScalarFunctions;
struct Value;
namespace lower {
class TuningParameters;
struct ElementRule;
struct LibraryCallRule;
struct LowerLimits;
struct LoweredOp;
}  // namespace lower

enum class OpCode : uint8_t {
#define TENON_OP(id, ...) k##id,
#include "hlo/ops/op_table.inc"
#undef TENON_OP
};
inline constexpr size_t kOpCount = 0
#define TENON_OP(id, ...) +1
#include "hlo/ops/op_table.inc"
#undef TENON_OP
    ;

/// Names of declared attributes.
enum class AttrKey : uint8_t {
#define TENON_ATTR(name) name,
#include "hlo/ops/attr_keys.inc"
#undef TENON_ATTR
};
std::string_view attr_key_name(AttrKey key);
std::optional<AttrKey> attr_key_from_name(std::string_view name);

enum class Category : uint8_t {
  kElementwise,    ///< Result element i depends only on operand elements i (or rank-0 operands).
  kShape,          ///< Moves elements, computes nothing.
  kReduction,      ///< Combines elements with a region or a fixed rule.
  kContraction,    ///< Sums of products.
  kControl,        ///< Calls, branches, loops, structure.
  kCommunication,  ///< Between devices or with the host.
  kRandom,
  kLinearAlgebra,
  kQuantization,
  kDynamic,  ///< The result shape is an operand's value.
};
std::string_view category_name(Category category);

/// The form of the canonical attribute, which determines its text.
enum class AttrKind : uint8_t {
  kNone,  ///< Marks the end of a row's list.
  kBool,
  kUnit,  ///< Attribute bool; kUnit prints as a unit attribute in StableHLO text.
  kI64,
  kI32,  ///< IntegerAttr (type s64; the text's width follows the kind).
  kF32,  ///< FloatAttr of type f32.
  kString,
  kSymbol,
  kSymbols,
  kI64s,
  kI64Matrix,
  kBools,
  kDense,
  kI64sArray,   ///< ArrayAttr of I64s: layouts.
  kTilings,     ///< ArrayAttr of ArrayAttr of I64s.
  kEnum,        ///< EnumAttr of AttrSpec::enum_kind.
  kPrecisions,  ///< ArrayAttr of EnumAttr precision.
  kDotDims,
  kGatherDims,
  kScatterDims,
  kConvDims,
  kRaggedDotDims,
  kChannelHandle,  ///< ChannelHandle.
  kChannelId,      ///< IntegerAttr: a collective's channel (its handle's type is ignored).
  kDotAlgorithm,
  kResultAccuracy,
  kAliases,
  kDict,
  kReplicaGroups,  ///< I64Matrix, or OpaqueAttr for mesh axes.
  kAny,            ///< Kept as read.
};

/// The meaning of an absent attribute. An attribute that equals its default is dropped.
enum class AttrDefault : uint8_t {
  kRequired,
  kOptional,  ///< Absence has its own meaning.
  kFalse,
  kTrue,
  kZero,
  kMinusOne,
  kEmpty,  ///< Empty string, list or dictionary.
  kOnes,
  kZeros,
  kFalses,    ///< Lists (any length) of that value.
  kEnumZero,  ///< Value 0 of the enumeration, or a list of zeros.
  kOriginalApi,
};

struct AttrSpec {
  AttrKey key{};
  AttrKind kind = AttrKind::kNone;
  AttrDefault default_value = AttrDefault::kRequired;
  EnumKind enum_kind{};
};

/// How an op is written in StableHLO text. Every op can also be written in the generic form. The
/// items of OpInfo::format precede the types.
enum class Syntax : uint8_t {
  kGeneric,        ///< No pretty form.
  kSameType,       ///< `op %a, %b : S`; S is one type if all are equal, else a function type.
  kFunctionType,   ///< `op %a, %b, … : FT`
  kArrow,          ///< CHLO unary: `op %a : T -> T`
  kOperandsArrow,  ///< CHLO: `op %a, %b : T, T -> T`
  kResultType,     ///< `op %a, … : T`, only the result's type (or a function type).
  kCustom,         ///< A form of its own: hlo/text/parse_custom.cpp, hlo/text/printer.cpp.
};

/// The set of element types that tensors of an op may have.
enum TypeSet : uint8_t {
  kTypesNone = 0,
  kTypesPred = 1,
  kTypesInt = 2,
  kTypesFloat = 4,
  kTypesComplex = 8,
  kTypesQuantized = 16,
  kTypesToken = 32,
  kTypesNumber = kTypesInt | kTypesFloat | kTypesComplex,
  kTypesAny = kTypesPred | kTypesNumber | kTypesQuantized,
};

/// The set that contains arrays of `type`, unless they are quantized.
TypeSet type_set_of(ElementType type);

enum Effects : uint8_t {
  kPure = 0,
  kSideEffect = 1,     ///< Must run, in order, even if its results are unused.
  kBarrier = 2,        ///< No op moves across it.
  kMaySideEffect = 4,  ///< Depends on an attribute or on the called functions.
};

/// How fusion treats the op.
enum class FusionKind : uint8_t {
  kUnset,
  kNone,         ///< Never fused.
  kElementwise,  ///< Computes each element from those at the same index.
  kMoves,        ///< Selects elements of an operand: almost free to compute again.
  kRepeats,      ///< The same, and reads at most as many elements of its operand as it returns.
  kReduces,      ///< A reduction.
  kGathers,      ///< Selects elements of operand 0 by indices that the others hold.
  kScatters,     ///< Changes elements of its operands at such indices; nothing follows it.
};

/// The operand whose memory a result may take over, because the op changes only parts of it.
enum class Updates : uint8_t {
  kNothing,
  kFirst,      ///< Operand 0.
  kSameIndex,  ///< Result i changes operand i.
  kState,      ///< Result i is the last state of operand i.
};

/// The kind of steps that an instruction becomes in a Program
/// (hlo/lower/program/module_lowering.h).
enum class StepKind : uint8_t {
  kUnset,
  kNothing,       ///< No step: its value is a token, or becomes a buffer where it is used.
  kTuple,         ///< No step: its value is a list of buffers.
  kTupleElement,  ///< No step: one buffer of that list.
  kForward,       ///< No step: the buffers of its operands.
  kView,          ///< No step if the bytes stay where they are: a view of its operand's buffer.
  kCompute,       ///< A library call that the backend takes, or kernels.
  kFusion,        ///< Kernels, or the steps of its ops.
  kComposite,     ///< A library call that the backend takes, or the steps of its decomposition.
  kControl,       ///< One kernel, or a loop or branch of the Program.
  kCustomCall,    ///< A call of a function by name.
  kHost,          ///< Evaluated on the host by the evaluator.
};

/// How several fields of a VHLO op become one attribute of StableHLO.
enum class VhloGrouping : uint8_t {
  kNone,
  kChannel,
  kChannelHandle,
  kDot,
  kDotAlgorithm,
  kGather,
  kScatter,
  kConv,
  kFunc,
};

/// A form of the op in portable artifacts (VHLO). An op of an old version lacks newer fields and
/// needs no upgrade: StableHLO's defaults are the values that the format's own upgrades fill in.
struct VhloVersion {
  std::string_view name;  ///< "add_v1"; empty at the end of a row's list.
  /// "name:kind" separated by spaces, in the order of the properties, which are sorted by name. A
  /// kind with a trailing '?' may be absent. Kinds: hlo/artifact/vhlo_ops.cpp.
  std::string_view fields{};
  VhloGrouping grouping = VhloGrouping::kNone;
};

/// The accuracy of an op whose error depends on the order of combination.
inline constexpr int kOrderDependent = -1;
/// The accuracy of a row that states none; such a row does not compile.
inline constexpr int kAccuracyUnset = -2;

using InferFunction = Result<std::vector<Type>> (*)(const Instruction&);
using DecomposeFunction = Result<std::vector<Value>> (*)(Builder&, const Instruction&);
using EvaluateFunction = Result<std::vector<EvalValue>> (*)(const EvalCall&);
using KernelsFunction = Status (*)(lower::LoweredOp&, const Instruction&, lower::TuningParameters&,
                                   const lower::LowerLimits&);
using SampleFunction = Instruction* (*)(Sampler&, OpCode);
using TermsFunction = double (*)(const Instruction&);

/// One op. The name of an operand, region or result ends in '*' if there may be any number of it.
struct OpInfo {
  OpCode code{};
  std::string_view name;     ///< With the dialect: "stablehlo.add".
  std::string_view summary;  ///< One sentence for docs/ops.md.
  Category category{};
  std::string_view operands[6]{};
  AttrSpec attributes[14]{};
  std::string_view regions[3]{};
  std::string_view results[4]{};
  Syntax syntax = Syntax::kGeneric;
  /// Items of the pretty form, separated by spaces here and by commas in the text: "%" for all
  /// operands, "key=attribute", or "attribute" for its bare word; a trailing '?' means that it is
  /// absent if it is the default.
  std::string_view format = "%";
  uint8_t types = kTypesAny;
  uint8_t effects = kPure;
  bool commutative = false;
  /// Whether its quantized tensors may have a scale for each index of a dimension.
  bool takes_per_axis = false;
  /// The accuracy required of a backend, in units in the last place; 0 means exactly rounded (or no
  /// arithmetic), kOrderDependent means a bound that grows with the number of terms.
  int ulp_bound = kAccuracyUnset;
  /// The number of roundings in one element of a result, for an order-dependent op that kernels
  /// compute (hlo/evaluator/error_bound.h).
  TermsFunction terms = nullptr;
  /// Its forms in portable artifacts, oldest first; empty for an op of another dialect.
  VhloVersion vhlo[2]{};
  /// Computes result types from operands, attributes, regions (and stated result types if they are
  /// an input of the op); checks every constraint of the specification. Never null.
  InferFunction infer = nullptr;
  /// Decomposes the op into simpler ops; null for a primitive op.
  /// hlo/decomposition/needs_decomposition.h decides which instances need it.
  DecomposeFunction decompose = nullptr;

  // --- Evaluation: by one of the two, or by the decomposition

  /// Evaluates an elementwise op on scalars (hlo/evaluator/scalars/element_functions.h).
  const ScalarFunctions* scalar = nullptr;
  /// Evaluates the op on arrays (hlo/evaluator/ops/rules.h).
  EvaluateFunction evaluate = nullptr;

  // --- Lowering, for ops that are not decomposed

  FusionKind fusion = FusionKind::kUnset;
  Updates updates = Updates::kNothing;
  /// Computes one element of a result (hlo/lower/elements/rules.h).
  const lower::ElementRule* element = nullptr;
  /// Makes all kernels of an op that has no element rule (hlo/lower/lower_op.h).
  KernelsFunction kernels = nullptr;
  /// The library call that a backend may take instead (hlo/lower/library_calls.h).
  const lower::LibraryCallRule* library_call = nullptr;
  /// The kind of steps that an instruction becomes in a Program.
  StepKind step = StepKind::kUnset;

  // --- Tests

  /// Draws a random instance (hlo/sample/sampler.h) …
  SampleFunction sample = nullptr;
  /// … or the reason why random programs never contain the op.
  std::string_view not_sampled{};

  constexpr std::string_view dialect() const { return name.substr(0, name.find('.')); }
  std::string_view short_name() const { return name.substr(name.find('.') + 1); }
  bool is_decomposable() const { return decompose != nullptr; }
  std::span<const std::string_view> operand_names() const { return used(operands); }
  std::span<const std::string_view> region_names() const { return used(regions); }
  std::span<const std::string_view> result_names() const { return used(results); }
  constexpr std::span<const VhloVersion> vhlo_versions() const {
    return {vhlo, static_cast<size_t>(!vhlo[0].name.empty()) + (vhlo[1].name.empty() ? 0 : 1)};
  }
  std::span<const AttrSpec> attribute_specs() const;
  const AttrSpec* find_attribute(AttrKey key) const;

 private:
  template <size_t N>
  static std::span<const std::string_view> used(const std::string_view (&names)[N]) {
    size_t count = 0;
    while (count < N && !names[count].empty()) ++count;
    return {names, count};
  }
};

const OpInfo& op_info(OpCode code);
std::span<const OpInfo> all_ops();
/// The op with the name `name` ("stablehlo.add"), or nothing.
std::optional<OpCode> op_from_name(std::string_view name);
inline std::string_view op_name(OpCode code) { return op_info(code).name; }

/// Whether `value` has the same meaning as the attribute's absence.
bool is_default(const AttrSpec& spec, const Attribute& value);

/// The text of docs/ops.md: every op with its row, by dialect and category.
std::string ops_documentation();

}  // namespace tenon::hlo
