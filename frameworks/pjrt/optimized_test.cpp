// The description of an executable's program: the optimized text, and how its arrays are split.
#include "frameworks/pjrt/c_api/layouts_extension.h"
#include "frameworks/pjrt/c_api/shardings_extension.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

constexpr const char* kTwice = R"(
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  %2 = stablehlo.tanh %1 : tensor<4xf32>
  %3 = stablehlo.cosine %x : tensor<4xf32>
  return %2, %2 : tensor<4xf32>, tensor<4xf32>
})";

// As callers do it: the size first, then the text. With less memory than that, the error.
std::string optimized(PJRT_Executable* executable, size_t less = 0) {
  PJRT_Program program = {};
  program.struct_size = sizeof program;
  PJRT_Executable_OptimizedProgram_Args args = {sizeof args, nullptr, executable, &program};
  EXPECT_EQ(take(api().PJRT_Executable_OptimizedProgram(&args)), "");
  EXPECT_EQ(std::string(program.format, program.format_size), "mlir");
  std::string text(program.code_size, '?');
  program.code = text.data();
  program.code_size -= less;
  const std::string error = take(api().PJRT_Executable_OptimizedProgram(&args));
  return error.empty() ? text : error;
}

class OptimizedProgram : public ::testing::TestWithParam<const char*> {};

TEST_P(OptimizedProgram, IsWhatTheRulesLeave) {
  const Client client(GetParam(), "", "1");
  PJRT_LoadedExecutable* const loaded = client.compiled(kTwice);
  PJRT_Executable* const executable = executable_of(loaded);
  const std::string text = optimized(executable);
  EXPECT_EQ(text.find("negate"), std::string::npos) << text;
  EXPECT_EQ(text.find("cosine"), std::string::npos) << text;
  EXPECT_NE(text.find("%0 = stablehlo.tanh %arg0"), std::string::npos) << text;
  EXPECT_NE(text.find("loc("), std::string::npos) << text;
  PJRT_LoadedExecutable* again = nullptr;
  EXPECT_EQ(client.compile(text, "", &again), "") << "the text is a program";
  EXPECT_EQ(optimized(executable, 1).substr(0, 3), "3: ");
  destroy(executable);
  destroy(loaded);
  destroy(again);
}
INSTANTIATE_TEST_SUITE_P(Devices, OptimizedProgram, ::testing::Values("interp", "cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

// A caller that learns no layouts here would read the optimized program, too.
TEST(Layouts, AreRowMajor) {
  const PJRT_Extension_Base* node = api().extension_start;
  while (node != nullptr && node->type != PJRT_Extension_Type_Layouts) node = node->next;
  ASSERT_NE(node, nullptr);
  const auto& extension = *reinterpret_cast<const PJRT_Layouts_Extension*>(node);
  const auto text = [&](PJRT_Layouts_MemoryLayout* layout) {
    auto args = uninitialized<PJRT_Layouts_MemoryLayout_Serialize_Args>();
    args.layout = layout;
    call(extension.memory_layout_serialize, args);
    const std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
    args.serialized_layout_deleter(args.serialized_layout);
    return bytes;
  };
  const Client client("reference", "", "1");
  PJRT_LoadedExecutable* const loaded = client.compiled(R"(
func.func @main(%x: tensor<4x3x2xf32>, %y: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})");
  PJRT_Executable* const executable = executable_of(loaded);
  auto parameters = uninitialized<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args>();
  parameters.executable = executable;
  call(extension.executable_parameter_layouts, parameters);
  ASSERT_EQ(parameters.num_parameters, 2);
  EXPECT_EQ(text(parameters.layouts[0]), "{2,1,0}");
  EXPECT_EQ(text(parameters.layouts[1]), "{}");
  auto outputs = uninitialized<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args>();
  outputs.executable = executable;
  call(extension.executable_output_layouts, outputs);
  ASSERT_EQ(outputs.num_outputs, 1);
  EXPECT_EQ(text(outputs.layouts[0]), "{0}");
  PJRT_Buffer* const buffer = client.floats({1, 2, 3, 4, 5, 6}, {2, 3});
  auto of_buffer = uninitialized<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>();
  of_buffer.buffer = buffer;
  call(extension.buffer_memory_layout, of_buffer);
  EXPECT_EQ(text(of_buffer.layout), "{1,0}");
  auto by_default = uninitialized<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>();
  by_default.client = client.get();
  by_default.type = PJRT_Buffer_Type_F32;
  constexpr int64_t kDims[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  by_default.dims = kDims;
  by_default.num_dims = std::size(kDims);
  call(extension.client_default_layout, by_default);
  EXPECT_EQ(text(by_default.layout), "{10,9,8,7,6,5,4,3,2,1,0}");
  auto destruction = uninitialized<PJRT_Layouts_MemoryLayout_Destroy_Args>();
  destruction.layout = of_buffer.layout;
  call(extension.memory_layout_destroy, destruction);
  destroy(buffer);
  destroy(executable);
  destroy(loaded);
}

// HLO has no ops of CHLO: jaxlib, which converts the text, takes XLA's calls.
TEST(OptimizedText, HasCallsInPlaceOfChlo) {
  constexpr const char* kErf = R"(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  %1 = chlo.sinh %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = chlo.erfc %1 : tensor<4xf32> -> tensor<4xf32>
  return %2 : tensor<4xf32>
})";
  const Client client("reference", "", "1");
  PJRT_LoadedExecutable* const loaded = client.compiled(kErf);
  PJRT_Executable* const executable = executable_of(loaded);
  const std::string text = optimized(executable);
  EXPECT_NE(text.find("@mhlo.erf(%arg0)"), std::string::npos) << text;
  EXPECT_NE(text.find("@mhlo.sinh(%0)"), std::string::npos) << text;
  EXPECT_NE(text.find("@chlo.erfc(%1)"), std::string::npos) << text;
  PJRT_LoadedExecutable* again = nullptr;
  EXPECT_EQ(client.compile(text, "", &again), "") << "the text is a program";
  PJRT_Executable* const second = executable_of(again);
  EXPECT_EQ(optimized(second), text);
  destroy(executable);
  destroy(second);
  destroy(loaded);
  destroy(again);
}

// A caller that learns nothing here would read the optimized program instead.
TEST(Shardings, AreNone) {
  const PJRT_Extension_Base* node = api().extension_start;
  while (node != nullptr && node->type != PJRT_Extension_Type_Shardings) node = node->next;
  ASSERT_NE(node, nullptr);
  const auto& extension = *reinterpret_cast<const PJRT_Shardings_Extension*>(node);
  const Client client;
  PJRT_LoadedExecutable* const loaded = client.compiled(kTwice);
  PJRT_Executable* const executable = executable_of(loaded);
  auto of_parameters = uninitialized<PJRT_Shardings_PJRT_Executable_ParameterShardings_Args>();
  of_parameters.executable = executable;
  call(extension.parameter_shardings, of_parameters);
  EXPECT_EQ(of_parameters.num_parameters, 1);
  EXPECT_EQ(of_parameters.shardings, nullptr);
  auto of_outputs = uninitialized<PJRT_Shardings_PJRT_Executable_OutputShardings_Args>();
  of_outputs.executable = executable;
  call(extension.output_shardings, of_outputs);
  EXPECT_EQ(of_outputs.num_outputs, 2);
  EXPECT_EQ(of_outputs.shardings, nullptr);
  destroy(executable);
  destroy(loaded);
}

}  // namespace
}  // namespace tenon::pjrt::testing
