// The compatibility artifacts of StableHLO, one per version. They are in StableHLO's source tree
// (stablehlo/tests/vhlo); TENON_STABLEHLO_DATA names the folder that contains it as "vhlo".

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "hlo/artifact/artifact.h"

namespace tenon::hlo {
namespace {

namespace fs = std::filesystem;

class Fixtures : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("TENON_STABLEHLO_DATA");
    if (folder == nullptr) GTEST_SKIP() << "TENON_STABLEHLO_DATA is not set";
    folder_ = fs::path(folder) / "vhlo";
  }
  Result<RawModule> parse(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    return parse_artifact(bytes.str(), name);
  }
  // The module of StableHLO version `version`, "1_19_0".
  RawModule of_version(const std::string& version) const {
    auto module = parse("stablehlo_legalize_to_vhlo." + version + ".mlir.bc");
    if (module) return std::move(*module);
    ADD_FAILURE() << module.error().to_string();
    return {};
  }
  fs::path folder_;
};

using Functions = std::map<std::string, const RawOp*>;

Functions functions_of(const RawModule& module) {
  Functions functions;
  for (const RawOp& op : module.module.regions.at(0).ops) {
    functions[*find(op.attributes, "sym_name")->get<std::string>()] = &op;
  }
  return functions;
}

// Attributes without those that newer versions write with their default value.
Dict comparable(const Dict& attributes) {
  Dict kept;
  for (const auto& [name, value] : attributes) {
    const auto* accuracy = value.get<ResultAccuracy>();
    const auto* array = value.get<ArrayAttr>();
    if (accuracy != nullptr && *accuracy == ResultAccuracy{}) continue;
    if (name == "result_tilings" && array != nullptr && array->empty()) continue;
    kept.emplace_back(name, value);
  }
  return kept;
}

struct Version {
  const RawModule& module;
  // The first value of the function, so that values are compared relative to it.
  uint32_t first = 0;
};

bool same_values(const Version& a, const std::vector<RawValue>& x, const Version& b,
                 const std::vector<RawValue>& y) {
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] - a.first != y[i] - b.first) return false;
    if (!(a.module.value_types[x[i]] == b.module.value_types[y[i]])) return false;
  }
  return true;
}

bool same_op(const Version& a, const RawOp& x, const Version& b, const RawOp& y) {
  if (x.name != y.name || comparable(x.attributes) != comparable(y.attributes)) return false;
  if (!same_values(a, x.operands, b, y.operands) || !same_values(a, x.results, b, y.results))
    return false;
  if (x.regions.size() != y.regions.size()) return false;
  for (size_t r = 0; r < x.regions.size(); ++r) {
    const RawRegion& p = x.regions[r];
    const RawRegion& q = y.regions[r];
    if (!same_values(a, p.arguments, b, q.arguments) || p.ops.size() != q.ops.size()) return false;
    for (size_t i = 0; i < p.ops.size(); ++i) {
      if (!same_op(a, p.ops[i], b, q.ops[i])) return false;
    }
  }
  return true;
}

uint32_t first_value(const RawOp& function) {
  if (function.regions.empty()) return 0;
  const RawRegion& body = function.regions[0];
  if (!body.arguments.empty()) return body.arguments[0];
  for (const RawOp& op : body.ops) {
    if (!op.results.empty()) return op.results[0];
  }
  return 0;
}

TEST_F(Fixtures, AreRead) {
  int read = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".bc" || name.starts_with("invalid")) continue;
    const auto module = parse(name);
    EXPECT_TRUE(module) << module.error().to_string();
    ++read;
  }
  EXPECT_GE(read, 10);
}

TEST_F(Fixtures, TheFutureIsRefused) {
  const auto module = parse("invalid_vhlo_future.mlir.bc");
  ASSERT_FALSE(module);
  EXPECT_EQ(
      module.error().to_string(),
      "invalid_vhlo_future.mlir.bc: error: artifact of StableHLO_v2.0.0: op vhlo.constant_v99 is "
      "unknown; newest StableHLO version known is 1.20.0");
}

TEST_F(Fixtures, OldVersionsGiveWhatNewOnesGive) {
  // Functions that upstream changed in the source of the fixtures.
  const std::vector<std::string> changed = {"default_send", "default_dynamic_conv",
                                            "op_dynamic_conv"};
  const RawModule newest = of_version("1_19_0");
  const Functions expected = functions_of(newest);
  for (const char* version : {"0_9_0", "0_13_0", "0_15_0", "0_19_0", "1_2_0", "1_8_0", "1_14_0"}) {
    const RawModule old = of_version(version);
    int same = 0;
    for (const auto& [name, function] : functions_of(old)) {
      const auto match = expected.find(name);
      if (match == expected.end() || std::count(changed.begin(), changed.end(), name) != 0)
        continue;
      EXPECT_TRUE(same_op({old, first_value(*function)}, *function,
                          {newest, first_value(*match->second)}, *match->second))
          << version << " " << name;
      ++same;
    }
    EXPECT_GE(same, 180) << version;
  }
}

TEST_F(Fixtures, FieldsAreGathered) {
  const RawModule module = of_version("1_19_0");
  const Functions functions = functions_of(module);
  const auto attribute = [&](const char* function, const char* name) -> Attribute {
    const Attribute* found = find(functions.at(function)->regions.at(0).ops.at(0).attributes, name);
    return found ? *found : Attribute("absent");
  };
  EXPECT_EQ(attribute("op_dot_general", "dot_dimension_numbers"),
            Attribute(DotDims{{0}, {0}, {2}, {1}}));
  EXPECT_EQ(attribute("op_dot_general", "algorithm"), Attribute("absent"));
  DotAlgorithm algorithm;
  algorithm.lhs_precision.is_tf32 = algorithm.rhs_precision.is_tf32 = true;
  EXPECT_EQ(attribute("dot_general_algorithm", "algorithm"), Attribute(algorithm));
  EXPECT_EQ(attribute("op_gather_with_batching_dims", "dimension_numbers"),
            Attribute(GatherDims{{2}, {1, 2}, {0}, {1}, {1, 2}, 2}));
  EXPECT_EQ(attribute("op_scatter_with_batching_dims", "scatter_dimension_numbers"),
            Attribute(ScatterDims{{1}, {1, 2}, {0}, {0}, {1, 2}, 1}));
  EXPECT_EQ(attribute("op_convolution", "dimension_numbers"),
            Attribute(ConvDims{0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2}}));
  EXPECT_EQ(attribute("op_convolution", "padding"), Attribute(I64Matrix{2, 2, {1, 1, 1, 1}}));
  EXPECT_EQ(attribute("op_reduce_scatter", "channel_handle"), Attribute(ChannelHandle{1, 0}));
  EXPECT_EQ(attribute("op_custom_call", "called_computations"),
            Attribute(ArrayAttr{SymbolAttr{"foo"}}));
  EXPECT_EQ(attribute("op_custom_call_with_result_tilings", "result_tilings"),
            Attribute(ArrayAttr{Attribute(ArrayAttr{I64s{8, 128}})}));
  EXPECT_EQ(attribute("attr_replica_group_mesh_axes", "replica_groups"),
            Attribute(OpaqueAttr{"#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = "
                                 "[#stablehlo.axis_ref<name = \"x\", sub_axis_info = (1)2>, "
                                 "#stablehlo.axis_ref<name = \"y\">]>"}));
  EXPECT_EQ(*find(functions.at("op_func")->attributes, "arg_attrs"),
            Attribute(ArrayAttr{Dict{{"stablehlo.arg", "0"}}}));
  EXPECT_TRUE(functions.at("mesh")->regions.empty());
}

TEST_F(Fixtures, LocationsAreKept) {
  const auto module = parse("vhlo_emit_version_api.1_1_0.mlir.bc");
  ASSERT_TRUE(module) << module.error().to_string();
  const RawOp& add = module->module.regions.at(0).ops.at(0).regions.at(0).ops.at(0);
  EXPECT_EQ(add.name, "stablehlo.add");
  EXPECT_EQ(location_to_string(add.location),
            "\"third_party/stablehlo/stablehlo/tests/vhlo/vhlo_emit_version_api.mlir\":12:8");
}

}  // namespace
}  // namespace tenon::hlo
