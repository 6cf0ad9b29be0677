// Programs that become objects, loaded into this process and called.
#include "backends/cpu/aot/aot.h"

#include <gtest/gtest.h>

#include <array>

#include "core/program/program_test_util.h"

namespace tenon::cpu {
namespace {

using program::Program;
namespace programs = program::testing;

AotFunction function_of(const Program& program, const std::string& name) {
  AotFunction function;
  function.name = name;
  function.program = &program;
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    function.parameters.push_back(fmt::format("x{}", i));
  }
  for (size_t i = 0; i < program.results.size(); ++i) {
    function.results.push_back(fmt::format("y{}", i));
  }
  return function;
}

AotOptions options_of_test() {
  AotOptions options;
  options.target.cpu = "native";
  options.name = "model";
  options.version = "test";
  return options;
}

using RunArrays = int32_t (*)(void* const* arrays, void* arena, const void* context);

// A compiled model, ready to call.
class TestModel {
 public:
  TestModel(std::vector<AotFunction> functions, const AotOptions& options)
      : model(compile_ahead(functions, options)) {
    EXPECT_TRUE(model) << model.error().to_string();
    if (!model) return;
    auto objects = load_ahead(*model);
    EXPECT_TRUE(objects) << objects.error().to_string();
    if (objects) loaded_ = *std::move(objects);
  }
  RunArrays run(const std::string& function) {
    return reinterpret_cast<RunArrays>(loaded_->address("model_" + function + "_run"));
  }
  void* address(const std::string& symbol) { return loaded_->address(symbol); }

  Result<AotModel> model;

 private:
  std::unique_ptr<AotLoaded> loaded_;
};

using Four = std::array<float, 4>;
struct alignas(64) Arena {
  std::array<std::byte, 4096> bytes;
};

TEST(Aot, CallsWithArraysOneByOneAndTogether) {
  const Program program = programs::twice();
  TestModel model({function_of(program, "main")}, options_of_test());
  EXPECT_EQ(model.model->entries[0].arena_bytes, 64);
  EXPECT_EQ(model.model->entries[0].symbol, "model_main");
  Four x = {1, 2, 3, 4};
  Four y = {};
  Arena arena;
  void* const arrays[] = {x.data(), y.data()};
  EXPECT_EQ(model.run("main")(arrays, &arena, nullptr), 0);
  EXPECT_EQ(y, (Four{3, 6, 9, 12}));
  x[0] = 7;
  using Main = void (*)(const float*, float*, void*);
  reinterpret_cast<Main>(model.address("model_main"))(x.data(), y.data(), &arena);
  EXPECT_EQ(y, (Four{21, 6, 9, 12}));
}

TEST(Aot, LoopsAndBranches) {
  const Program program = programs::control_flow();
  AotOptions options = options_of_test();
  for (const bool small : {false, true}) {
    options.is_small = small;
    options.stack_arena = small;
    TestModel model({function_of(program, "main")}, options);
    EXPECT_EQ(model.model->entries[0].arena_bytes, small ? 0 : 64);
    Four x = {3, 1, 0, -1};
    Four y = {};
    Arena arena;
    void* const arrays[] = {x.data(), y.data()};
    EXPECT_EQ(model.run("main")(arrays, small ? nullptr : &arena, nullptr), 0);
    EXPECT_EQ(y, (Four{12, 4, 0, -4}));
  }
}

TEST(Aot, ADonatedArgumentMayBeTheResult) {
  const Program program = programs::twice_in_place();
  TestModel model({function_of(program, "main")}, options_of_test());
  EXPECT_EQ(model.model->entries[0].aliases, std::vector<uint32_t>{0});
  Four x = {1, 2, 3, 4};
  Four y = {};
  Arena arena;
  void* const apart[] = {x.data(), y.data()};
  EXPECT_EQ(model.run("main")(apart, &arena, nullptr), 0);
  EXPECT_EQ(x, (Four{1, 2, 3, 4}));
  void* const one[] = {x.data(), x.data()};
  EXPECT_EQ(model.run("main")(one, &arena, nullptr), 0);
  EXPECT_EQ(x, y);
  EXPECT_EQ(x, (Four{2, 4, 6, 8}));
}

// y = c + x, with a constant of 1024 floats.
Program with_constant() {
  Program p;
  p.name = "p";
  p.kernels.push_back(programs::kernel_of(
      "kernel @add(%x: in f32[1024], %z: in f32[1024], %y: out f32[1024]) index s32 grid(%i: 1024) "
      "{\n%a = load %x[%i] : f32\n%b = load %z[%i] : f32\n%c = add %a, %b : f32\n"
      "store %c, %y[%i] : f32\n}"));
  p.buffers = {programs::buffer(program::BufferKind::kParameter, 0),
               programs::buffer(program::BufferKind::kConstant, 0),
               programs::buffer(program::BufferKind::kResult, 0)};
  for (program::Buffer& each : p.buffers) each.dims = {1024};
  p.constants = {
      Literal::scalar(ElementType::kF32, 2.5).splat_to(Shape(ElementType::kF32, {1024}))};
  p.parameters = {0};
  p.results = {2};
  p.sequences.resize(1);
  p.sequences[0].steps = {{program::Launch{0, {0, 1, 2}, {}}, {}, "add"}};
  program::find_dependencies(p);
  return p;
}

TEST(Aot, FunctionsShareConstants) {
  const Program program = with_constant();
  TestModel model({function_of(program, "one"), function_of(program, "two")}, options_of_test());
  ASSERT_EQ(model.model->constants.size(), 1);
  EXPECT_EQ(model.model->constants[0].bytes, 4096);
  std::vector<float> x(1024, 1);
  std::vector<float> y(1024);
  void* const arrays[] = {x.data(), y.data()};
  Arena arena;
  for (const char* name : {"one", "two"}) {
    y.assign(1024, 0);
    EXPECT_EQ(model.run(name)(arrays, &arena, nullptr), 0);
    EXPECT_EQ(y, std::vector<float>(1024, 3.5));
  }
}

TEST(Aot, WeightsInAFile) {
  const Program program = with_constant();
  AotOptions options = options_of_test();
  options.weights_in_file = true;
  TestModel model({function_of(program, "main")}, options);
  ASSERT_EQ(model.model->weights.size(), 4096);
  EXPECT_EQ(model.model->constants[0].offset, 0);
  EXPECT_LT(model.model->object.size(), 4096);
  std::vector<float> x(1024, 1);
  std::vector<float> y(1024);
  void* const arrays[] = {x.data(), y.data()};
  const void* const context[] = {model.model->weights.data(), nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(model.run("main")(arrays, nullptr, static_cast<const void*>(context)), 0);
  EXPECT_EQ(y, std::vector<float>(1024, 3.5));
}

TEST(Aot, CustomCallsAreGivenOrRefused) {
  Program program = programs::twice();
  program.sequences[0].steps[0] = {program::CustomCall{"acme.copy", {}, {0}, {1}}, {}, "the call"};
  program::find_dependencies(program);
  AotOptions options = options_of_test();
  const std::vector<AotFunction> functions = {function_of(program, "main")};
  const auto refused = compile_ahead(functions, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(refused.error().message().find("the call: the custom call @acme.copy"),
            std::string::npos);
  options.calls = {"acme.copy"};
  TestModel model(functions, options);
  using Call = int (*)(void* user, const void* const* operands, void* const* results);
  const Call copy = [](void* user, const void* const* operands, void* const* results) {
    std::memcpy(results[0], operands[0], sizeof(Four));
    return *static_cast<int*>(user);
  };
  int outcome = 0;
  const void* const calls[] = {reinterpret_cast<const void*>(copy)};
  const void* const context[] = {nullptr, static_cast<const void*>(calls), &outcome, nullptr,
                                 nullptr};
  Four x = {1, 2, 3, 4};
  Four y = {};
  Arena arena;
  void* const arrays[] = {x.data(), y.data()};
  EXPECT_EQ(model.run("main")(arrays, &arena, static_cast<const void*>(context)), 0);
  EXPECT_EQ(y, (Four{2, 4, 6, 8}));
  outcome = 5;
  EXPECT_EQ(model.run("main")(arrays, &arena, static_cast<const void*>(context)), 5);
}

TEST(Aot, SymbolsAndArchives) {
  const Program program = with_constant();
  const TestModel model({function_of(program, "main")}, options_of_test());
  const auto symbols = symbols_of(model.model->object);
  ASSERT_TRUE(symbols);
  int64_t code = 0;
  bool constant = false;
  for (const AotSymbol& each : *symbols) {
    code += each.is_code ? each.bytes : 0;
    constant |= !each.is_code && each.bytes == 4096 && each.section.starts_with(".rodata");
  }
  EXPECT_GT(code, 0);
  EXPECT_TRUE(constant);
  const auto archive = archive_of(model.model->object, "model.o");
  ASSERT_TRUE(archive);
  EXPECT_TRUE(archive->starts_with("!<arch>\n/               "));
  EXPECT_TRUE(archive->find("model_main_run") != std::string::npos);
  EXPECT_TRUE(archive->ends_with(model.model->object) ||
              archive->ends_with(model.model->object + "\n"));
  EXPECT_EQ(symbols_of("not ELF").error().code(), ErrorCode::kUnimplemented);
  EXPECT_FALSE(symbols_of(std::string_view(model.model->object).substr(0, 200)));
}

TEST(Aot, TargetsThatLlvmDoesNotHave) {
  const auto code = [](const AotTarget& target) {
    const auto made = make_aot_backend(target);
    return made ? ErrorCode::kOk : made.error().code();
  };
  EXPECT_EQ(code({"", "native", ""}), ErrorCode::kOk);
  EXPECT_EQ(code({"abacus-unknown-none", "", ""}), ErrorCode::kUnimplemented);
  EXPECT_EQ(code({"", "abacus", ""}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({"", "native", "+beads"}), ErrorCode::kInvalidArgument);
#ifdef __x86_64__
  const auto bytes = [](const AotTarget& target) {
    return make_aot_backend(target).value()->devices().value()[0].target.vector_bytes;
  };
  EXPECT_EQ(bytes({"", "x86-64", ""}), 16);
  EXPECT_EQ(bytes({"", "x86-64-v3", ""}), 32);
  EXPECT_EQ(bytes({"", "x86-64-v4", ""}), 64);
  EXPECT_EQ(bytes({"", "x86-64", "+avx2"}), 32);
  EXPECT_FALSE(
      make_aot_backend({"", "x86-64", ""}).value()->devices().value()[0].target.features.fma);
#endif
}

}  // namespace
}  // namespace tenon::cpu
