// Converts the computations of an HloModuleProto to regions of a RawModule. Part of proto.cpp.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/proto/message.h"
#include "hlo/proto/shapes.h"

namespace tenon::hlo {

/// Fields of HloInstructionProto (hlo.proto).
namespace instruction_field {
inline constexpr uint32_t kName = 1, kOpcode = 2, kShape = 3, kMetadata = 7, kLiteral = 8,
                          kParameterNumber = 9, kTupleIndex = 13, kDimensions = 14, kWindow = 15,
                          kConvolutionDims = 16, kSliceDims = 17, kExponentBits = 18,
                          kMantissaBits = 19, kDynamicSliceSizes = 20, kPadding = 21,
                          kDistribution = 23, kEpsilon = 24, kFeatureIndex = 25,
                          kCustomCallTarget = 28, kDotDims = 30, kFftType = 31, kFftLength = 32,
                          kGatherDims = 33, kGatherSliceSizes = 34, kId = 35, kOperands = 36,
                          kCalled = 38, kBackendConfig = 43, kScatterDims = 48, kFeatureGroups = 50,
                          kPrecision = 51, kBatchGroups = 58, kTriangularSolve = 59, kIsStable = 60,
                          kCholesky = 62, kDirection = 63, kHasSideEffect = 65,
                          kIndicesAreSorted = 67, kUniqueIndices = 69, kRngAlgorithm = 70,
                          kComparisonType = 72, kApiVersion = 77, kTopK = 81, kIsLargest = 85;
}  // namespace instruction_field

/// The values of an instruction: one, or those of a tuple's arrays, in order.
using HloValues = std::vector<RawValue>;

using HloOperands = std::vector<const HloValues*>;

/// An instruction and its operands.
struct HloInstruction {
  ProtoMessage proto;
  std::string_view opcode;
  ProtoShape shape;
  HloOperands operands;
  std::vector<const ProtoShape*> operand_shapes;

  int64_t integer(uint32_t field) const { return proto.integer(field); }
  I64s dimensions() const { return proto.integers(instruction_field::kDimensions); }
};

class HloProtoConverter {
 public:
  HloProtoConverter(const ProtoMessage& module, std::string file_name, const ImportLimits& limits)
      : module_(module), file_name_(std::move(file_name)), limits_(limits) {}

  Result<RawModule> convert();

 private:
  // Converts the instructions of a computation, whose parameters are `parameters`, into `into`;
  // returns the values of its root. A call adds them where it stands.
  Result<HloValues> convert_computation(int64_t id, const HloOperands& parameters, RawRegion& into);
  Result<HloValues> convert(const HloInstruction& op, RawRegion& into);
  // The op's region for its computation number `index`: with arguments of the computation's
  // parameters, or with values of the enclosing one.
  Result<RawRegion> region_of(const HloInstruction& op, size_t index);
  Result<RawRegion> region_with(const HloInstruction& op, size_t index,
                                const HloOperands& parameters, RawRegion region);
  Result<int64_t> called(const HloInstruction& op, size_t index) const;
  Location location_of(const HloInstruction& op) const;

  // Ops whose operands, regions or results differ in StableHLO.
  Result<HloValues> tuple_element(const HloInstruction& op) const;
  Result<HloValues> convert_while(const HloInstruction& op, RawRegion& into);
  Result<HloValues> convert_conditional(const HloInstruction& op, RawRegion& into);
  Result<HloValues> convert_rng(const HloInstruction& op, RawRegion& into);
  Result<HloValues> convert_constant(const HloInstruction& op, RawRegion& into);

  // Adds an op with this name and these attributes, all operands, and results of the shape.
  HloValues add(const HloInstruction& op, std::string name, Dict attributes, RawRegion& into,
                std::vector<RawRegion> regions = {});
  // Whether the values have the types that the shape states.
  bool fits(const ProtoShape& shape, const HloValues& values) const;
  HloValues new_values(const ProtoShape& shape);
  RawValue new_value(Type type);

  const ProtoMessage module_;
  const std::string file_name_;
  const ImportLimits limits_;
  RawModule raw_;
  struct StackFrames {
    std::vector<ProtoMessage> files, locations, frames;
  };
  std::map<int64_t, ProtoMessage> computations_;
  StackFrames frames_;
  std::unordered_map<const char*, DenseAttr> constants_;  // By the bytes of a literal.
  int depth_ = 0;
  int64_t converted_ = 0;
};

/// The attributes of an op that differs from StableHLO's by its attributes alone, and its name; an
/// empty name: there is no such op. In attributes.cpp.
struct NamedAttributes {
  std::string_view name;
  Dict attributes;
  size_t regions = 0;  ///< Computations that it applies.
};
Result<NamedAttributes> attributes_of(const HloInstruction& op);

}  // namespace tenon::hlo
