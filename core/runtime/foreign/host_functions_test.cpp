// Functions of the host that Programs call by name.
#include "core/runtime/foreign/host_functions.h"

#include <atomic>
#include <cstring>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/program/serial.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::ForeignCall;
using program::testing::four;
using program::testing::twice;

// An interp device whose memory the host does not see, or only reads.
class GuardedMemory final : public backend::ForwardingBackend {
 public:
  explicit GuardedMemory(bool is_visible)
      : ForwardingBackend(backend::make_interpreter_backend()), is_visible_(is_visible) {}
  Result<std::vector<backend::DeviceInfo>> devices() override {
    auto devices = ForwardingBackend::devices();
    for (backend::DeviceInfo& each : *devices) {
      each.target.spaces[0].host_visible = is_visible_;
      each.target.spaces[0].host_writable = false;
    }
    return devices;
  }

 private:
  const bool is_visible_;
};

// y = mine(x), both f32[4] in memory.
program::Program calling(const ForeignCall& foreign, Dims dims = {4}) {
  program::Program p = twice();
  p.buffers[0].dims = dims;
  p.buffers[2].dims = std::move(dims);
  program::CustomCall call{"mine", {}, {0}, {2}};
  program::add_foreign(call.config, foreign);
  p.sequences[0].steps = {{std::move(call), {}, "the call"}};
  find_dependencies(p);
  return p;
}

Result<std::shared_ptr<Executable>> loaded(const Client& client, program::Program program,
                                           HostFunction function) {
  const std::vector<KernelPlacement> placements(program.kernels.size(), KernelPlacement::kInlined);
  return Executable::load(client.devices()[0], {std::move(program), "", placements, {}, {}}, {},
                          {{"mine", std::move(function)}});
}

HostFunction prepared(HostCall call) {
  return [call = std::move(call)](const program::CustomCall&, const ForeignCall&) {
    return Result<HostCall>(call);
  };
}

Status negate(const HostCallFrame& frame) {
  for (size_t i = 0; i < frame.results[0].bytes.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, frame.operands[0].bytes.data() + i, sizeof value);
    value = -value;
    std::memcpy(frame.results[0].bytes.data() + i, &value, sizeof value);
  }
  return {};
}

Literal counting(const Dims& dims) {
  Literal literal(Shape(ElementType::kF32, dims));
  for (int64_t i = 0; i < literal.element_count(); ++i)
    literal.set_double(i, static_cast<double>(i));
  return literal;
}

TEST(HostFunctions, GetTheDevicesMemoryWhereTheHostSeesIt) {
  const std::shared_ptr<backend::Backend> backends[] = {backend::make_interpreter_backend(),
                                                        std::make_shared<GuardedMemory>(true),
                                                        std::make_shared<GuardedMemory>(false)};
  for (const auto& backend : backends) {
    const auto client = Client::open(backend).value();
    const backend::SpaceInfo& space = client->devices()[0]->info().target.spaces[0];
    const bool is_seen = space.host_visible, is_written = space.host_writable;
    const std::byte* given = nullptr;
    const std::byte* result = nullptr;
    const auto executable = loaded(*client, calling({}), prepared([&](const HostCallFrame& frame) {
      given = frame.operands[0].bytes.data();
      result = frame.results[0].bytes.data();
      EXPECT_EQ(frame.operands[0].shape, four(0).shape());
      EXPECT_EQ(frame.device, 0);
      return negate(frame);
    }));
    ASSERT_TRUE(executable) << executable.error().to_string();
    const BufferPtr x = put(client->devices()[0], four(3));
    const auto run = (*executable)->execute(std::vector{x});
    EXPECT_EQ(get(run->results[0]), four(-3));
    EXPECT_EQ(run->steps->host, 1);
    EXPECT_EQ(run->steps->kernels, 0);
    if (is_seen) {
      EXPECT_EQ(given, *x->host_data());
      EXPECT_EQ(result == *run->results[0]->host_data(), is_written);
    } else {
      EXPECT_FALSE(x->is_host_visible());
    }
  }
}

TEST(HostFunctions, SeeTheirOwnOrderOfDimensionsTokensAndAliases) {
  ForeignCall foreign;
  foreign.operands = {{.is_token = true, .minor_to_major = {}},
                      {.is_token = false, .minor_to_major = {0, 2, 1}}};
  foreign.results = {{.is_token = false, .minor_to_major = {}},
                     {.is_token = true, .minor_to_major = {}}};
  foreign.aliases = {{0, 0}};
  const auto client = client_of();
  const auto executable =
      loaded(*client, calling(foreign, {2, 3, 4}), prepared([](const HostCallFrame& frame) {
        EXPECT_TRUE(frame.operands[0].is_token);
        EXPECT_TRUE(frame.results[1].is_token);
        // In memory, the slowest first: dimensions 1, 2 and 0 of the function's array.
        EXPECT_EQ(frame.operands[1].shape, Shape(ElementType::kF32, {4, 2, 3}));
        EXPECT_EQ(frame.results[0].shape, Shape(ElementType::kF32, {2, 3, 4}));
        EXPECT_EQ(frame.operands[1].bytes.data(), frame.results[0].bytes.data());
        return Status();  // The result holds the operand.
      }));
  ASSERT_TRUE(executable) << executable.error().to_string();
  const Literal x = counting({2, 3, 4});
  const auto run = (*executable)->execute(std::vector{put(client->devices()[0], x)});
  EXPECT_EQ(get(run->results[0]), x);
}

TEST(HostFunctions, ArePreparedOnceForEachStep) {
  ForeignCall foreign;
  foreign.attributes = {{"a", std::string("text")},
                        {"b", Literal::from_i64s(std::vector<int64_t>{7})}};
  int prepared_calls = 0;
  const HostFunction function = [&](const program::CustomCall& call,
                                    const ForeignCall& given) -> Result<HostCall> {
    ++prepared_calls;
    EXPECT_EQ(call.target, "mine");
    EXPECT_EQ(given.attributes, foreign.attributes);
    return HostCall(negate);
  };
  const auto client = client_of();
  const auto executable = loaded(*client, calling(foreign), function).value();
  for (int i = 1; i < 4; ++i) {
    const auto run = executable->execute(std::vector{put(client->devices()[0], four(i))});
    EXPECT_EQ(get(run->results[0]), four(-i));
  }
  EXPECT_EQ(prepared_calls, 1);
  const auto again = executable->reload(client->devices()[0]);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(prepared_calls, 2);
}

TEST(HostFunctions, TheirErrorsNameTheStep) {
  const auto client = client_of();
  const HostFunction refuses = [](const program::CustomCall&,
                                  const ForeignCall&) -> Result<HostCall> {
    return invalid_argument("no such attribute");
  };
  const auto refused = loaded(*client, calling({}), refuses);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "no such attribute (in the call)");
  const auto fails = prepared(
      [](const HostCallFrame&) { return Status(invalid_argument("it does not converge")); });
  const auto executable = loaded(*client, calling({}), fails).value();
  const auto run = executable->execute(std::vector{put(client->devices()[0], four(3))});
  const Status outcome = run->done.await();
  EXPECT_EQ(outcome.message(), "it does not converge (in the call)");
  EXPECT_EQ(run->results[0]->to_literal().error().message(), outcome.message());
}

// An execution on the results of one that failed must not call anything: they are undefined.
TEST(HostFunctions, AreNotCalledOnUndefinedArguments) {
  const auto client = client_of();
  std::atomic<int> calls = 0;
  const auto executable = loaded(*client, calling({}), prepared([&](const HostCallFrame&) {
                            ++calls;
                            return Status(invalid_argument("first"));
                          })).value();
  const auto first = executable->execute(std::vector{put(client->devices()[0], four(3))});
  const auto second = executable->execute(std::vector{first->results[0]});
  EXPECT_EQ(second->done.await().message(), "first (in the call)");
  EXPECT_EQ(calls, 1);
}

TEST(HostFunctions, ARegistryHasOneFunctionForANameOnAPlatform) {
  HostFunctions functions;
  EXPECT_TRUE(functions.add("a", "f", prepared(negate)).ok());
  EXPECT_TRUE(functions.add("b", "f", prepared(negate)).ok());
  EXPECT_EQ(functions.add("a", "f", prepared(negate)).message(),
            "platform a has a function @f already");
  EXPECT_EQ(functions.of("a").size(), 1U);
  EXPECT_TRUE(functions.of("c").empty());
}

// A Program that was read may say anything of its calls.
TEST(HostFunctions, AnInterfaceThatDoesNotFitIsAnError) {
  const auto error = [](ForeignCall foreign, const Dims& dims = {4}) {
    const program::Program p = calling(foreign, dims);
    const auto& call = std::get<program::CustomCall>(p.sequences[0].steps[0].action);
    const auto read = program::foreign_of(p, call);
    return read ? std::string() : std::string(read.error().message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(
      error({.operands = {{false, {1, 0}}}, .results = {{}}, .aliases = {}, .attributes = {}}),
      "custom call @mine: an order of 2 dimensions for an array of 1");
  EXPECT_EQ(error({.operands = {{false, {3}}}, .results = {{}}, .aliases = {}, .attributes = {}}),
            "custom call @mine: dimensions that are no order");
  EXPECT_EQ(error({.operands = {{true, {}}}, .results = {{}}, .aliases = {}, .attributes = {}}),
            "custom call @mine: 0 arrays for 1 buffers");
  EXPECT_EQ(error({.operands = {{}}, .results = {{}}, .aliases = {{1, 0}}, .attributes = {}}),
            "custom call @mine: an alias of 1 and 0");
}

}  // namespace
}  // namespace tenon::runtime
