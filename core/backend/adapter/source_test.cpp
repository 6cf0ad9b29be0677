// The source that a backend renders, shown to people: of backends in C++, and of tables in C of any
// release.
#include <gtest/gtest.h>

#include <cstddef>

#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/backend/testing/table_in_c.h"
#include "core/kernel/render/render.h"
#include "core/kernel/text/text.h"

namespace tenon::backend {
namespace {

using kernel::Language;

// Renders kernels in a language for a compiler that refuses everything.
class Rendering final : public ForwardingBackend {
 public:
  explicit Rendering(Language language)
      : ForwardingBackend(make_interpreter_backend()), language_(language) {}
  Result<Compiled> compile(const TargetInfo&, Kernels kernels) override {
    for (const kernel::Kernel* each : kernels) {
      kernel::RenderOptions options;
      options.language = language_;
      options.lanes = 4;
      TENON_TRY(kernel::render(std::span(each, 1), options));
    }
    return internal_error("line 7: the compiler refuses it");
  }
  Result<std::string> source(const TargetInfo& target, Kernels kernels) override {
    return Backend::source(target, kernels);
  }

 private:
  const Language language_;
};

TEST(Source, IsWhatABackendRenders) {
  const kernel::Kernel first = add_one("first");
  const kernel::Kernel second = add_one("second");
  const kernel::Kernel* kernels[] = {&first, &second};
  const std::pair<Language, const char*> languages[] = {{Language::kC, "#include <math.h>"},
                                                        {Language::kOpenCl, "__kernel "},
                                                        {Language::kCuda, "__global__ "}};
  for (const auto& [language, word] : languages) {
    const auto backend =
        make_validate_layer(std::make_shared<Rendering>(language));  // Layers pass it on.
    const auto source = backend->source(backend->devices().value()[0].target, kernels);
    ASSERT_TRUE(source) << source.error().to_string();
    EXPECT_NE(source->find(word), std::string::npos) << *source;
    EXPECT_NE(source->find(" first("), std::string::npos) << *source;
    EXPECT_NE(source->find(" second("), std::string::npos) << *source;
  }
}

TEST(Source, IsAbsentWhereNothingIsRendered) {
  const auto backend = make_interpreter_backend();
  const kernel::Kernel kernel = add_one();
  const kernel::Kernel* kernels[] = {&kernel};
  EXPECT_EQ(
      backend->source(backend->devices().value()[0].target, kernels).error(),
      Status(ErrorCode::kUnimplemented, "interp renders no source: it compiles kernels itself"));
}

TEST(Source, EndsWithTheCapture) {
  const kernel::Kernel kernel = add_one();
  const kernel::RenderCapture outer;
  {
    const kernel::RenderCapture inner;
    ASSERT_TRUE(kernel::render(std::span(&kernel, 1)));
    ASSERT_TRUE(kernel::render(std::span(&kernel, 1)));
    EXPECT_EQ(inner.texts().size(), 1U);
  }
  EXPECT_TRUE(outer.texts().empty());
  ASSERT_TRUE(kernel::render(std::span(&kernel, 1)));
  EXPECT_EQ(outer.texts().size(), 1U);
}

// The host renders for a table in C, so it sees the source of plug-ins of older releases too.
TEST_F(TableInC, HasTheSourceThatTheHostRenders) {
  for (const bool is_old : {false, true}) {
    if (is_old) {
      table_.size = offsetof(TenonBackend, source);
      table_.abi_minor = 3;
    }
    const auto source = import_backend(&table_).value()->source(target_, kernels_);
    ASSERT_TRUE(source) << source.error().to_string();
    EXPECT_NE(source->find("void k(__global const float"), std::string::npos) << *source;
  }
}

// A plug-in of version 1.5 does not know erf: a kernel with it has the operations of its expansion.
TEST_F(TableInC, HasNoFunctionOfALaterRelease) {
  const kernel::Kernel kernel =
      kernel::parse(R"(kernel @k(%x: in f32[4], %h: inout f16[4]) index s32 grid() {
  lanes(%i: 4) {
    %v = load %x[%i] : f32
    %w = erf %v : f32
    %t = tanh %w : f32
    %n = convert %t : f32 -> f16
    %e = erfc %n : f16
    store %e, %h[%i] : f16
  }
}
)",
                    "k")
          .value();
  const kernel::Kernel* kernels[] = {&kernel};
  table_.source = [](const TenonCompileArgs* args) {
    host_services()->print(args->kernels[0], args->binary);
    return TENON_OK;
  };
  for (const uint32_t minor : {5U, uint32_t{TENON_ABI_MINOR}}) {
    table_.abi_minor = minor;
    const std::string text = import_backend(&table_).value()->source(target_, kernels).value();
    EXPECT_EQ(text.find("= erf ") != std::string::npos, minor > 5) << text;
    EXPECT_EQ(text.find("= erfc ") != std::string::npos, minor > 5) << text;
    EXPECT_NE(text.find("= tanh "), std::string::npos) << text;
    EXPECT_TRUE(kernel::parse(text, "k")) << text;
  }
}

TEST_F(TableInC, OrSaysItItself) {
  table_.source = [](const TenonCompileArgs* args) {
    write(args->binary, "the source");
    return TENON_OK;
  };
  EXPECT_EQ(import_backend(&table_).value()->source(target_, kernels_).value(), "the source");
  table_.source = nullptr;
  table_.compile = [](const TenonCompileArgs*) { return TENON_OK; };
  EXPECT_EQ(import_backend(&table_).value()->source(target_, kernels_).error(),
            Status(ErrorCode::kUnimplemented, "chip had the host render no source"));
  table_.compile = [](const TenonCompileArgs* args) {
    write(args->error, "not for this chip");
    return TENON_UNIMPLEMENTED;
  };
  EXPECT_EQ(import_backend(&table_).value()->source(target_, kernels_).error(),
            Status(ErrorCode::kUnimplemented, "not for this chip"));
}

// Declining is an error of source() with its reason, whether the host renders or the plug-in.
TEST_F(TableInC, OrTheReasonOfADeclinedKernel) {
  const auto declines = [](const TenonCompileArgs* args) {
    args->declined(args->declined_context, 0, TENON_TOO_MUCH_SCRATCH, "9 KiB");
    return TENON_OK;
  };
  const Status expected(ErrorCode::kUnimplemented,
                        "chip declines @k: too much scratch memory: 9 KiB");
  table_.source = declines;
  EXPECT_EQ(import_backend(&table_).value()->source(target_, kernels_).error(), expected);
  table_.source = nullptr;
  table_.compile = declines;
  EXPECT_EQ(import_backend(&table_).value()->source(target_, kernels_).error(), expected);
}

}  // namespace
}  // namespace tenon::backend
