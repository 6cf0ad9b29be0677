// How far executions run ahead of the device.
#include <atomic>
#include <chrono>
#include <thread>

#include "core/backend/layers/forward.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::four;
using program::testing::twice;

// An interp device whose memory the host cannot read.
class Unseen final : public backend::ForwardingBackend {
 public:
  Unseen() : ForwardingBackend(backend::make_interpreter_backend()) {}
  Result<std::vector<backend::DeviceInfo>> devices() override {
    auto devices = ForwardingBackend::devices();
    for (backend::DeviceInfo& each : *devices) each.target.spaces[0].host_visible = false;
    return devices;
  }
};

// Executions that run ahead of the device wait in execute(): two are in flight if memory and cores
// are the host's, else 32.
TEST(Throttle, HowFarExecutionsRunAhead) {
  program::Program p = twice();
  p.sequences[0].steps = {{program::CustomCall{"wait", {}, {0}, {2}}, {}, "the call"}};
  find_dependencies(p);
  const std::shared_ptr<backend::Backend> backends[] = {backend::make_interpreter_backend(),
                                                        std::make_shared<Unseen>()};
  for (const auto& backend : backends) {
    const auto client = Client::open(backend).value();
    const auto& device = client->devices()[0];
    const int most = device->info().target.spaces[0].host_visible ? 2 : 32;
    std::atomic<bool> open = false;
    const CustomCalls calls = {
        {"wait", [&](const auto&, const auto&, const auto& operands, const auto&) {
           open.wait(false);
           return Result<std::vector<Literal>>(operands);
         }}};
    const auto executable = load(*client, p, {}, calls);
    const std::vector arguments = {put(device, four(3))};
    std::atomic<int> given = 0;
    Event last = Event::ready();
    std::thread caller([&] {
      for (int i = 0; i < 40; ++i) {
        const auto run = executable->execute(arguments);
        ASSERT_TRUE(run) << run.error().to_string();
        last = run->done;
        ++given;
      }
      EXPECT_TRUE(last.await().ok());  // They end in order, and use variables of this scope.
    });
    while (given < most) std::this_thread::yield();
    // More would follow soon if nothing delayed them.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(given, most);
    open = true;
    open.notify_all();
    caller.join();
    EXPECT_EQ(given, 40);
  }
}

}  // namespace
}  // namespace tenon::runtime
