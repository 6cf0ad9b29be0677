#include "core/backend/adapter/rendering.h"

#include <gtest/gtest.h>

#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/c_types.h"
#include "core/kernel/render/rendered_binary.h"
#include "core/kernel/testing/case_test_util.h"

namespace tenon::backend {
namespace {

kernel::Kernel negation(std::string name) {
  kernel::Kernel kernel = kernel::testing::of_op(kernel::OpCode::kNeg, ElementType::kF32, {}, 4);
  kernel.name = std::move(name);
  return kernel;
}

TEST(Rendering, KernelsOfOneNameGetTheirOwn) {
  const kernel::Kernel first = negation("neg");
  const kernel::Kernel second = negation("neg");
  const kernel::Kernel* const kernels[] = {&first, &second};
  const RenderedKernels rendered =
      render_kernels({}, kernels, {.language = kernel::Language::kOpenCl, .lanes = 4});
  EXPECT_TRUE(rendered.declined.empty());
  ASSERT_EQ(rendered.source.kernels.size(), 2U);
  EXPECT_NE(rendered.source.kernels[0].function, rendered.source.kernels[1].function);
}

TEST(Rendering, KernelsWithTooManyParametersAreDeclined) {
  const kernel::Kernel first = negation("neg");
  const kernel::Kernel* const kernels[] = {&first};
  TargetInfo target;
  target.most_parameters = 1;
  const RenderedKernels rendered = render_kernels(target, kernels, {});
  ASSERT_EQ(rendered.declined.size(), 1U);
  EXPECT_EQ(rendered.declined[0].kernel, 0U);
  EXPECT_EQ(rendered.declined[0].reason, Reason::kTooManyParameters);
}

TEST(Rendering, KernelsThatTheLanguageLacksAreDeclinedAlone) {
  const kernel::Kernel small = negation("small");
  kernel::Kernel large = negation("large");
  large.grid = {int64_t{1} << 31};
  const kernel::Kernel* const kernels[] = {&small, &large};
  const RenderedKernels rendered =
      render_kernels({}, kernels, {.language = kernel::Language::kOpenCl, .lanes = 4});
  ASSERT_EQ(rendered.declined.size(), 1U);
  EXPECT_EQ(rendered.declined[0].kernel, 1U);
  EXPECT_NE(rendered.declined[0].text.find("@large"), std::string::npos);
}

TEST(Rendering, ATargetLeavesRoomForReductions) {
  TargetInfo target;
  target.preferred_lanes = 128;
  target.scratch_bytes = 4096;
  target.vector_bytes = 64;
  declare_rendering(target);
  EXPECT_EQ(target.scratch_bytes, 2048);
  EXPECT_TRUE(target.features.tiles && target.features.private_memory);
  const kernel::RenderOptions options = render_options(target, kernel::Language::kCuda);
  EXPECT_EQ(options.language, kernel::Language::kCuda);
  EXPECT_EQ(options.lanes, 128);
  EXPECT_EQ(options.vector_bytes, 64);
  target.scratch_bytes = 100;
  declare_rendering(target);
  EXPECT_EQ(target.scratch_bytes, 0);
}

TEST(Rendering, ABinaryIsTheCompilersWithTheLaunches) {
  const kernel::Kernel kernel = negation("neg");
  const kernel::Kernel* const kernels[] = {&kernel};
  TargetInfo target;
  target.preferred_lanes = 4;
  const kernel::RenderOptions options = render_options(target, kernel::Language::kOpenCl);
  std::string seen;
  const auto compiler = [&](const std::string& source) -> Result<std::string> {
    seen = source;
    return "code";
  };
  const Compiled compiled = compile_rendered(target, kernels, options, compiler).value();
  const auto binary = kernel::RenderedBinary::load(compiled.binary).value();
  EXPECT_EQ(seen, render_kernels(target, kernels, options).source.text);
  EXPECT_EQ(binary.program, "code");
  ASSERT_EQ(binary.kernels.size(), 1U);
  EXPECT_EQ(binary.kernels[0].function, "neg");

  const auto refuses = [](const std::string&) -> Result<std::string> {
    return internal_error("no");
  };
  EXPECT_EQ(compile_rendered(target, kernels, options, refuses).error().message(), "no");
  target.most_parameters = 1;
  EXPECT_EQ(compile_rendered(target, kernels, options, refuses).value().declined.size(), 1U);
}

TEST(Rendering, ScalarsHaveTheBytesOfTheirTypes) {
  kernel::Kernel kernel = negation("neg");
  for (const ElementType type : {ElementType::kPred, ElementType::kS16, ElementType::kF64}) {
    kernel.scalars.push_back(static_cast<kernel::ValueId>(kernel.values.size()));
    kernel.values.emplace_back().type = type;
  }
  EXPECT_EQ(scalar_bytes(kernel), (std::vector<size_t>{1, 2, 8}));
}

// A plug-in in C states what its compiler wants, and learns how each kernel is launched.
TEST(Rendering, ATableInCHasTheOptionsToo) {
  const kernel::Kernel kernel = negation("neg");
  TenonKernel handle;
  handle.kernel = &kernel;
  const TenonKernel* const kernels[] = {&handle, &handle};
  TenonRenderOptions options{};
  options.size = sizeof options;
  options.language = TENON_OPENCL;
  options.lanes = 64;
  options.offset_bits = 64;
  options.fit_lanes = 1;
  options.stop = 1;
  const auto render = [&](SinkText& source, std::vector<kernel::RenderedKernel>& launches,
                          SinkText& error) {
    return host_services()->render_as(
        kernels, 2, &options, source.sink(), &launches,
        [](void* context, size_t, const TenonRenderedKernel* how) {
          static_cast<std::vector<kernel::RenderedKernel>*>(context)->push_back(
              {how->function, how->workgroups, how->lanes});
        },
        error.sink());
  };
  SinkText source;
  SinkText error;
  std::vector<kernel::RenderedKernel> launches;
  EXPECT_EQ(render(source, launches, error), TENON_INVALID_ARGUMENT);  // Two of one name.
  EXPECT_NE(error.take().find("neg"), std::string::npos);
  options.rename = 1;
  ASSERT_EQ(render(source, launches, error), TENON_OK) << error.take();
  const auto expected =
      kernel::render(std::vector{kernel, kernel}, {.language = kernel::Language::kOpenCl,
                                                   .lanes = 64,
                                                   .fit_lanes = true,
                                                   .offset_bits = 64,
                                                   .stop = true,
                                                   .rename = true});
  ASSERT_TRUE(expected) << expected.error().to_string();
  EXPECT_EQ(source.take(), expected->text);
  ASSERT_EQ(launches.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(launches[i].function, expected->kernels[i].function);
    EXPECT_EQ(launches[i].workgroups, expected->kernels[i].workgroups);
    EXPECT_EQ(launches[i].lanes, expected->kernels[i].lanes);
  }
  // Options of the size of a caller that knows the language alone (B1).
  options.size = offsetof(TenonRenderOptions, lanes);
  EXPECT_EQ(render(source, launches, error), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.take().find("neg"), std::string::npos);
  options.size = sizeof options;
  options.offset_bits = 16;
  EXPECT_EQ(render(source, launches, error), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(error.take().substr(0, 7), "render:");
}

TEST(Rendering, MessagesOfACompilerNameTheLineAndTheOp) {
  const std::string source =
      "#define X\n// stablehlo.add at m.mlir:3:8\nvoid add() {\n  int x = y;\n}\n"
      "// stablehlo.tanh at m.mlir:4:8\nvoid tanh_() {}\n";
  for (const std::string log :
       {"kernels.cl:4:11: error: no y\n1 error", "kernels.cu(4): error: no y"}) {
    EXPECT_EQ(explain_messages(log, source),
              "no y (line 4: \"  int x = y;\", of stablehlo.add at m.mlir:3:8)\n" + log);
  }
  EXPECT_EQ(explain_messages("a:1:1: error: no X", source),
            "no X (line 1: \"#define X\", of no op)\na:1:1: error: no X");
  for (const std::string log : {"out of memory", "a:0:1: error: x", "a:99:1: error: x",
                                "a:99999999999999999999999:1: error: x", ""}) {
    EXPECT_EQ(explain_messages(log, source), log);
  }
}

}  // namespace
}  // namespace tenon::backend
