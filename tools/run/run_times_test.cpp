// The layer that measures steps, and how long it needs what it tells of them.
#include "tools/run/run_times.h"

#include <gtest/gtest.h>

#include <array>

#include "core/backend/interpreter/interpreter.h"

namespace tenon::tools {
namespace {

// A lost device closes on its own thread, perhaps after the run that measured has ended.
TEST(StepTimesTest, LiveAsLongAsTheirLayer) {
  auto times = std::make_shared<StepTimes>();
  const std::weak_ptr<StepTimes> seen = times;
  auto layer = times->around(backend::make_interpreter_backend());
  ASSERT_TRUE(layer) << layer.error().to_string();
  std::unique_ptr<backend::Device> device = (*layer)->open(0).value();
  times = nullptr;
  *layer = nullptr;
  EXPECT_FALSE(seen.expired());
  const backend::MemoryHandle memory = device->allocate(0, 4).value();
  ASSERT_TRUE(device->fill(0, {memory, 0, nullptr}, 4, std::array<std::byte, 1>()).ok());
  const backend::EventHandle event = device->record(0).value();
  EXPECT_TRUE(device->await(event, -1));
  device->release(event);
  device->free(memory);
  device = nullptr;
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace tenon::tools
