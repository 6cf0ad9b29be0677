// Shape rules on random input: each returns types or an error for any operands, attributes and
// regions.
#include <limits>
#include <random>

#include "hlo/inference/infer.h"
#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

class RandomDraft {
 public:
  explicit RandomDraft(uint32_t seed) : random_(seed) {}

  Draft make(const OpInfo& info) {
    Draft draft{info.code, {}, {}, {}, {}, {}};
    // Few distinct types per draft, so that some of its constraints hold.
    pool_.clear();
    for (int i = 0; i < 3; ++i) pool_.push_back(type(info.types));
    for (std::string_view name : info.operand_names()) add_types(draft.operands, name);
    for (const AttrSpec& spec : info.attribute_specs()) {
      if (spec.default_value == AttrDefault::kRequired || chance(2)) {
        draft.attributes[spec.key] = attribute(spec);
      }
    }
    for (std::string_view name : info.region_names()) {
      for (int64_t i = name.ends_with('*') ? up_to(3) : 1; i > 0; --i) {
        draft.regions.push_back(region(draft.operands));
      }
    }
    if (chance(2)) {
      for (std::string_view name : info.result_names()) add_types(draft.stated, name);
    }
    return draft;
  }

 private:
  int64_t up_to(int64_t limit) { return std::uniform_int_distribution<int64_t>(0, limit)(random_); }
  bool chance(int64_t of) { return up_to(of - 1) == 0; }

  int64_t number() {
    constexpr int64_t kNumbers[] = {std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::min() + 1,
                                    -1,
                                    int64_t{1} << 40,
                                    std::numeric_limits<int64_t>::max() - 1,
                                    std::numeric_limits<int64_t>::max()};
    return chance(6) ? kNumbers[up_to(5)] : up_to(4);
  }
  I64s numbers() {
    I64s list(static_cast<size_t>(up_to(4)));
    for (int64_t& value : list) value = number();
    return list;
  }
  // Mostly the dimensions 0, 1, … in order.
  I64s dimensions() {
    I64s list(static_cast<size_t>(up_to(3)));
    for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int64_t>(i);
    return chance(4) ? numbers() : list;
  }
  I64Matrix matrix() {
    I64Matrix result{up_to(3), chance(2) ? 2 : up_to(3), {}};
    for (int64_t i = 0; i < result.rows * result.columns; ++i) {
      result.values.push_back(chance(3) ? number() : i);
    }
    if (chance(10)) result.values.push_back(1);
    return result;
  }

  Type type(uint8_t types) {
    if ((types & kTypesToken) != 0 && chance(3)) {
      return chance(2) ? Type::token() : Type::tuple({type(kTypesFloat), Type::token()});
    }
    Dims dims;
    for (int64_t rank = up_to(3); rank > 0; --rank) {
      dims.push_back(chance(8)    ? kDynamic
                     : chance(20) ? std::numeric_limits<int64_t>::max()
                                  : up_to(3));
    }
    if (chance(8)) {
      QuantizedType q;
      if (!dims.empty() && dims[0] >= 0 && dims[0] < 10 && chance(2)) {
        q.axis = 0;
        q.scales.assign(static_cast<size_t>(dims[0]), 0.5);
        q.zero_points.assign(static_cast<size_t>(dims[0]), 0);
      }
      return Type::quantized_tensor(dims, q);
    }
    constexpr ElementType kElements[] = {ElementType::kPred, ElementType::kS32,
                                         ElementType::kF32,  ElementType::kU8,
                                         ElementType::kC64,  ElementType::kF6E2M3FN};
    return Type::tensor(kElements[up_to(5)], dims);
  }
  Type pooled() {
    Type chosen = pool_[static_cast<size_t>(up_to(2))];
    return chosen.is_tensor() && !chosen.is_quantized() && chance(4) ? chosen.with_dims({})
                                                                     : chosen;
  }

  void add_types(TypeArgs& to, std::string_view name) {
    const int64_t count = name.ends_with('*') ? up_to(3) : 1;
    for (int64_t i = 0; i < count; ++i) to.emplace_back(chance(8) ? type_of("s32[]") : pooled());
  }

  RegionDraft region(const TypeArgs& operands) {
    RegionDraft result;
    for (const TypeArg& operand : operands) {
      result.parameters.emplace_back(chance(2) ? operand.type.with_dims({}) : operand.type);
    }
    for (TypeArg& parameter : result.parameters) {
      if (parameter.type.is_quantized()) parameter = "f32[]";
    }
    for (int64_t i = up_to(2); i > 0; --i) {
      result.results.emplace_back(chance(3) ? type_of("pred[]") : pooled());
    }
    if (chance(4)) result.parameters.clear();
    result.ends_in_return = !chance(10);
    return result;
  }

  Attribute attribute(const AttrSpec& spec) {
    switch (spec.kind) {
      case AttrKind::kBool:
      case AttrKind::kUnit:
        return chance(2);
      case AttrKind::kI64:
      case AttrKind::kI32:
      case AttrKind::kChannelId:
        return number();
      case AttrKind::kF32:
        return FloatAttr::of(ElementType::kF32, 1);
      case AttrKind::kString:
        return std::string(chance(2) ? "ab,bc->ac" : chance(2) ? "a.b" : ",->,");
      case AttrKind::kSymbol:
        return SymbolAttr{"main"};
      case AttrKind::kSymbols:
        return ArrayAttr{SymbolAttr{"main"}};
      case AttrKind::kI64s:
        return dimensions();
      case AttrKind::kI64Matrix:
      case AttrKind::kReplicaGroups:
        return matrix();
      case AttrKind::kBools:
        return BoolsAttr{{1, 0}};
      case AttrKind::kDense:
        return DenseAttr::of(Literal(Shape(ElementType::kS8, {up_to(3)})));
      case AttrKind::kI64sArray:
        return ArrayAttr{dimensions(), numbers()};
      case AttrKind::kTilings:
        return ArrayAttr{Attribute(ArrayAttr{dimensions(), numbers()})};
      case AttrKind::kEnum:
        return EnumAttr{spec.enum_kind, static_cast<uint8_t>(up_to(5))};
      case AttrKind::kPrecisions:
        return ArrayAttr{word(EnumKind::kPrecision, Precision::kHigh)};
      case AttrKind::kDotDims:
        return dot_dims();
      case AttrKind::kRaggedDotDims:
        return RaggedDotDims{dot_dims(), dimensions(), dimensions()};
      case AttrKind::kGatherDims: {
        GatherDims dims{dimensions(), dimensions(), {}, {}, dimensions(), number()};
        if (chance(2)) dims.operand_batching_dims = dims.start_indices_batching_dims = dimensions();
        return dims;
      }
      case AttrKind::kScatterDims: {
        ScatterDims dims{dimensions(), dimensions(), {}, {}, dimensions(), number()};
        if (chance(2)) dims.input_batching_dims = dims.scatter_indices_batching_dims = dimensions();
        return dims;
      }
      case AttrKind::kConvDims: {
        if (chance(3))
          return ConvDims{number(),  number(), numbers(), number(), number(),
                          numbers(), number(), number(),  numbers()};
        return ConvDims{0, 1, {2}, 0, 1, {2}, 0, 1, {2}};
      }
      case AttrKind::kChannelHandle:
        return ChannelHandle{number(), up_to(4)};
      case AttrKind::kDotAlgorithm:
        return DotAlgorithm{};
      case AttrKind::kResultAccuracy:
        return ResultAccuracy{1, -1, number(), ResultAccuracyMode::kTolerance};
      case AttrKind::kAliases:
        return ArrayAttr{OutputOperandAlias{numbers(), number(), numbers()}};
      case AttrKind::kDict:
        return Dict{};
      case AttrKind::kNone:
      case AttrKind::kAny:
        break;
    }
    return Attribute(std::string("anything"));
  }
  DotDims dot_dims() {
    if (chance(3)) return {dimensions(), dimensions(), dimensions(), dimensions()};
    const I64s batching = chance(2) ? I64s{} : I64s{0};
    const int64_t contracted = static_cast<int64_t>(batching.size());
    return {batching, batching, {contracted}, {contracted}};
  }

  std::mt19937 random_;
  std::vector<Type> pool_;
};

TEST(InferRandom, gives_types_or_an_error) {
  size_t accepted = 0;
  for (const OpInfo& info : all_ops()) {
    SCOPED_TRACE(info.name);
    RandomDraft random(static_cast<uint32_t>(info.code));
    for (int i = 0; i < 400; ++i) {
      const Draft draft = random.make(info);
      Module module;
      const Instruction* op = add_draft(draft, module.add_function("main"));
      const Result<std::vector<Type>> types = infer_types(*op);
      if (!types) {
        EXPECT_TRUE(types.error().message().starts_with(info.name)) << types.error().message();
        continue;
      }
      ++accepted;
      // The types that a rule returns are valid operand types of another op.
      Instruction barrier(OpCode::kOptimizationBarrier, {}, *types);
      EXPECT_TRUE(verify_structure(barrier).ok()) << verify_structure(barrier).message();
    }
  }
  EXPECT_GT(accepted, 10000u);
}

}  // namespace
}  // namespace tenon::hlo::testing
