// The PJRT target, on a plug-in that misbehaves on demand (testing/fake_pjrt_plugin.cpp) and whose
// version is old.
#include "conformance/target/pjrt_target.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/target/pjrt_api.h"
#include "hlo/builder/builder.h"

namespace tenon::conformance {
namespace {

const std::string kPlugin = TENON_FAKE_PJRT;

int live_objects() {
  void* const library = dlopen(kPlugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<int (*)()>(dlsym(library, "fake_pjrt_live_objects"))();
}

Literal ordinary(ElementType type, Dims dims) {
  Literal literal{Shape(type, std::move(dims))};
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    literal.set_double(i, is_pred(type) ? i % 2 : i % 3);
  }
  return literal;
}

// The result of a program that returns its argument, or the error.
Result<Literal> returned(Target& target, const Literal& argument) {
  hlo::Module module;
  hlo::Computation& function = module.add_function("main");
  const hlo::Type type = hlo::Type::tensor(argument.element_type(), argument.shape().dims());
  const hlo::Value parameter = function.add_parameter(type);
  hlo::Builder builder(function);
  function.set_declared_result_types({type});
  TENON_TRY(builder.finish({parameter}));
  TENON_ASSIGN(TargetRun run, target.run(module, std::span(&argument, 1)));
  return run.results.at(0);
}

std::unique_ptr<Target> opened(const std::vector<PjrtOption>& options = {}) {
  auto target = make_pjrt_target(kPlugin, options);
  EXPECT_TRUE(target) << target.error().to_string();
  return target ? *std::move(target) : nullptr;
}

TEST(PjrtTarget, RunsOnAnOldPluginAndDestroysWhatItMade) {
  {
    const auto target = opened({{"number", int64_t{7}}});
    ASSERT_NE(target, nullptr);
    EXPECT_FALSE(target->counts_steps());
    EXPECT_EQ(target->description()[1], "PJRT C API 0.57");
    EXPECT_EQ(target->description()[2], "platform: fake");
    for (const ElementType type : {ElementType::kPred, ElementType::kS4, ElementType::kF32}) {
      for (const Dims& dims : {Dims{}, Dims{0}, Dims{2, 3}}) {
        const Literal argument = ordinary(type, dims);
        const auto result = returned(*target, argument);
        ASSERT_TRUE(result) << result.error().to_string();
        EXPECT_EQ(*result, argument) << result->to_string();
      }
    }
    EXPECT_EQ(live_objects(), 1);  // The client.
  }
  EXPECT_EQ(live_objects(), 0);
}

TEST(PjrtTarget, DoesNotSendTypesThatThePluginsVersionLacks) {
  const auto result = returned(*opened(), ordinary(ElementType::kF4E2M1FN, {2}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(result.error().message(), "f4e2m1fn came with version 0.63 of the PJRT C API");
}

TEST(PjrtTarget, ReportsWhatThePluginDoesWrong) {
  const struct {
    std::string fault;
    ErrorCode code;
    std::string message;
  } faults[] = {
      {"declines", ErrorCode::kUnimplemented, "compile: UNIMPLEMENTED: no such op"},
      {"count", ErrorCode::kInternal, "the executable has 3 results in place of 1"},
      {"execute", ErrorCode::kUnavailable, "execute: UNAVAILABLE: the device is gone"},
      {"event", ErrorCode::kInternal, "execute: INTERNAL: too late"},
      {"type", ErrorCode::kInternal,
       "a result of pred[2] has the element type 4 of the PJRT C API"},
      {"dims", ErrorCode::kInternal, "a result of pred[2] has the dimensions 2, 1"},
      {"pred", ErrorCode::kInternal, "a pred has the byte 2"},
  };
  for (const auto& [fault, code, message] : faults) {
    const auto target = opened({{"fault", fault}});
    const auto result = returned(*target, ordinary(ElementType::kPred, {2}));
    ASSERT_FALSE(result) << fault;
    EXPECT_EQ(result.error().code(), code) << fault;
    EXPECT_EQ(result.error().message(), message);
    EXPECT_EQ(live_objects(), 1) << fault;
  }
  const auto none = make_pjrt_target(kPlugin, {{"fault", "devices"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message(),
            kPlugin + ": the plug-in has no device that this process addresses");
  const auto failed = make_pjrt_target(kPlugin, {{"fault", "create"}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), kPlugin + ": INTERNAL: no such device");
  EXPECT_EQ(live_objects(), 0);
}

TEST(PjrtTarget, RefusesVersionsThatAreTooOld) {
  setenv("FAKE_PJRT_MINOR", "54", 1);
  const auto old = PjrtApi::load(kPlugin);
  setenv("FAKE_PJRT_MINOR", "999", 1);
  const auto newer = PjrtApi::load(kPlugin);
  unsetenv("FAKE_PJRT_MINOR");
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(old.error().message(),
            kPlugin + ": it has version 0.54 of the PJRT C API; 0.57 or newer is needed");
  ASSERT_TRUE(newer) << newer.error().to_string();
  EXPECT_TRUE(newer->has(&PJRT_Api::PJRT_Client_Compile));
  EXPECT_FALSE(newer->has(&PJRT_Api::PJRT_Client_DefaultDeviceAssignment));
  EXPECT_FALSE(newer->has(&PJRT_Api::PJRT_Client_CreateViewOfDeviceBuffer));
  EXPECT_FALSE(newer->has(&PJRT_Api::PJRT_Client_Load));
}

TEST(PjrtOptions, HaveTypes) {
  EXPECT_EQ(std::get<std::string>(parse_pjrt_option("a=b=c")->value), "b=c");
  EXPECT_EQ(std::get<std::string>(parse_pjrt_option("a:string=5")->value), "5");
  EXPECT_EQ(std::get<int64_t>(parse_pjrt_option("a:int=-5")->value), -5);
  EXPECT_EQ(std::get<float>(parse_pjrt_option("a:float=0.5")->value), 0.5F);
  EXPECT_TRUE(std::get<bool>(parse_pjrt_option("a:bool=true")->value));
  for (const char* wrong : {"a", "=a", "a:int=x", "a:float=", "a:bool=1", "a:list=1"}) {
    EXPECT_FALSE(parse_pjrt_option(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace tenon::conformance
