// The cases of large arrays with small ones, on a device that is right, and on wrong ones.
#include "conformance/cases/programs/large.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/registry/registry.h"

namespace tenon::conformance {
namespace {

constexpr LargeSizes kSmall = {.past = 2048, .count = 2048 + 4099};

Status check_on(std::shared_ptr<backend::Backend> backend, const std::string& name,
                LargeSizes sizes = kSmall) {
  TENON_ASSIGN(RuntimeDevice device, RuntimeDevice::open({std::move(backend), 0}));
  return check_large_case(name, device, sizes);
}

TEST(LargeArrays, PassOnADeviceThatIsRight) {
  for (const std::string& name : large_case_names()) {
    const Status status = check_on(backend::make_interpreter_backend(), name);
    EXPECT_TRUE(status.ok()) << name << ": " << status.to_string();
  }
}

TEST(LargeArrays, FailOnADeviceThatIsWrong) {
  for (const char* const mutant : {"kernel/load/index_off_by_one", "kernel/lanes/one_short"}) {
    ASSERT_EQ(setenv("TENON_MUTANT", mutant, 1), 0);
    const auto backend = backend::load_plugin(TENON_MUTANT_PLUGIN);
    ASSERT_TRUE(backend) << backend.error().to_string();
    for (const std::string& name : large_case_names()) {
      EXPECT_FALSE(check_on(*backend, name).ok()) << mutant << " " << name;
    }
  }
  unsetenv("TENON_MUTANT");
}

TEST(LargeArrays, AreNotSupportedWhereThereIsNoRoom) {
  backend::InterpreterConfig config;
  config.memory_bytes = 1 << 20;
  const auto small = std::shared_ptr<backend::Backend>(backend::make_interpreter_backend(config));
  for (const std::string& name : large_case_names()) {
    const Status status = check_on(small, name, LargeSizes());
    EXPECT_EQ(status.code(), ErrorCode::kUnimplemented) << name << ": " << status.to_string();
  }
}

}  // namespace
}  // namespace tenon::conformance
