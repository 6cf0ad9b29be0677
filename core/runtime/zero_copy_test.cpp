// Memory that host and device share: arguments and results that are not copied.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::four;
using program::testing::twice;
using program::testing::twice_in_place;

FromHost import(const std::shared_ptr<Device>& device, const Literal& literal) {
  HostArray array;
  array.data = literal.data().data();
  array.shape = literal.shape();
  array.lifetime = HostLifetime::kUntilDeleted;
  auto made = buffer_from_host(device, MemoryKind::kDevice, array);
  EXPECT_TRUE(made) << made.error().to_string();
  return *made;
}

float first_of(const BufferPtr& buffer) {
  const auto data = buffer->host_data();
  EXPECT_TRUE(data) << data.error().to_string();
  float value = 0;
  if (data) std::memcpy(&value, *data, sizeof value);
  return value;
}

// --- Arguments

TEST(ZeroCopy, ArgumentsStayWhereTheyAre) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const Literal literal = four(2);
  FromHost x = import(device, literal);
  EXPECT_TRUE(x.buffer->defined().is_ready());
  EXPECT_EQ(x.buffer->host_data().value(), literal.data().data());
  EXPECT_EQ(device->memory().statistics().bytes_in_use, 0);
  const auto run = load(*client, twice())->execute(std::vector{x.buffer});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(get(run->results[0]), four(6));
  EXPECT_EQ(get(x.buffer), four(2));
  EXPECT_FALSE(x.host_done.is_ready());
  x.buffer = nullptr;
  EXPECT_TRUE(x.host_done.await().ok());
}

// The caller owns the memory again when no work reads it any more, and not before.
TEST(ZeroCopy, HostDoneComesBehindTheWork) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  std::atomic<bool> go = false;
  std::atomic<bool> was_done = false;
  auto literal = std::make_unique<Literal>(four(2));
  FromHost x = import(device, *literal);
  const auto executable = load(*client, twice());
  device->post(
      [&]() -> Status {
        while (!go) std::this_thread::yield();
        was_done = x.host_done.is_ready();
        return {};
      },
      [](const Status&) {});
  const auto run = executable->execute(std::vector{x.buffer});
  ASSERT_TRUE(run) << run.error().to_string();
  x.buffer->remove();
  EXPECT_TRUE(x.buffer->is_deleted());
  go = true;
  EXPECT_TRUE(x.host_done.await().ok());
  literal = nullptr;
  EXPECT_FALSE(was_done);
  EXPECT_EQ(get(run->results[0]), four(6));
}

TEST(ZeroCopy, HostDoneOutlivesTheClient) {
  auto client = client_of();
  const Literal literal = four(2);
  FromHost x = import(client->devices()[0], literal);
  client = nullptr;
  EXPECT_EQ(get(x.buffer), four(2));
  x.buffer = nullptr;
  EXPECT_TRUE(x.host_done.await().ok());
}

// A donated argument is deleted, but the caller's memory is never written.
TEST(ZeroCopy, DonatedArgumentsOfTheCallersAreNotWritten) {
  const auto client = client_of();
  const Literal literal = four(2);
  FromHost x = import(client->devices()[0], literal);
  const auto run = load(*client, twice_in_place())->execute(std::vector{x.buffer});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_TRUE(x.buffer->is_deleted());
  EXPECT_EQ(get(run->results[0]), four(4));
  EXPECT_TRUE(x.host_done.await().ok());  // While the result exists.
  EXPECT_EQ(literal, four(2));
}

TEST(ZeroCopy, WhatIsNotDenseOrAlignedIsCopied) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  alignas(16) std::array<float, 8> data = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  const Shape shape(ElementType::kF32, {4});
  const auto is_copied = [&](const std::byte* from, const std::optional<Dims>& strides,
                             HostLifetime lifetime = HostLifetime::kUntilDeleted) {
    auto made = buffer_from_host(device, MemoryKind::kDevice, {from, shape, strides, lifetime});
    EXPECT_TRUE(made) << made.error().to_string();
    const bool copied = made->buffer->host_data().value() != from;
    // After a copy `host_done` happens soon, whether or not the buffer exists.
    if (copied) {
      EXPECT_TRUE(made->host_done.await().ok());
    }
    return copied;
  };
  EXPECT_FALSE(is_copied(bytes, {}));
  EXPECT_FALSE(is_copied(bytes, Dims{4}));
  EXPECT_FALSE(is_copied(bytes + 16, {}));
  EXPECT_TRUE(is_copied(bytes + 4, {}));
  EXPECT_TRUE(is_copied(bytes, Dims{8}));
  EXPECT_TRUE(is_copied(bytes, {}, HostLifetime::kUntilCopied));
  EXPECT_TRUE(is_copied(bytes, {}, HostLifetime::kDuringCall));
  const Literal nothing(Shape(ElementType::kF32, {0}));
  EXPECT_EQ(get(import(device, nothing).buffer), nothing);
}

// With a time limit the device gets no memory of the caller.
TEST(ZeroCopy, NotWithATimeLimit) {
  const auto client = client_of({}, limit_of(60'000));
  const Literal literal = four(2);
  const FromHost x = import(client->devices()[0], literal);
  EXPECT_NE(x.buffer->host_data().value(), literal.data().data());
  EXPECT_TRUE(x.host_done.await().ok());
}

// A device's answer to an import, with the number of requests.
struct Answer {
  Status import;
  std::atomic<int> asked = 0;
};
class AnsweringDevice final : public backend::ForwardingDevice {
 public:
  AnsweringDevice(std::unique_ptr<backend::Device> inner, Answer& answer)
      : ForwardingDevice(std::move(inner)), answer_(answer) {}
  Result<backend::MemoryHandle> import_memory(uint32_t, std::span<const std::byte>) override {
    ++answer_.asked;
    return tl::make_unexpected(answer_.import);
  }

 private:
  Answer& answer_;
};
class AnsweringBackend final : public backend::ForwardingBackend {
 public:
  explicit AnsweringBackend(Answer& answer)
      : ForwardingBackend(backend::make_interpreter_backend()), answer_(answer) {}
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(auto inner, ForwardingBackend::open(index));
    return std::make_unique<AnsweringDevice>(std::move(inner), answer_);
  }

 private:
  Answer& answer_;
};

TEST(ZeroCopy, WhatADeviceDeclinesIsCopied) {
  const Literal literal = four(2);
  for (const auto& [code, asked] : {std::pair{ErrorCode::kUnimplemented, 1},
                                    {ErrorCode::kInvalidArgument, 2},
                                    {ErrorCode::kResourceExhausted, 2}}) {
    Answer answer;
    answer.import = Status(code, "not that");
    const auto client = Client::open(std::make_shared<AnsweringBackend>(answer)).value();
    for (int i = 0; i < 2; ++i) {
      const FromHost x = import(client->devices()[0], literal);
      EXPECT_TRUE(x.host_done.await().ok());
      EXPECT_EQ(get(x.buffer), literal);
      EXPECT_NE(x.buffer->host_data().value(), literal.data().data());
    }
    EXPECT_EQ(answer.asked, asked);  // A device without the function is not asked again.
  }
}

TEST(ZeroCopy, OtherErrorsAreErrors) {
  const Literal literal = four(2);
  HostArray array;
  array.data = literal.data().data();
  array.shape = literal.shape();
  array.lifetime = HostLifetime::kUntilDeleted;
  for (const ErrorCode code : {ErrorCode::kInternal, ErrorCode::kUnavailable}) {
    Answer answer;
    answer.import = Status(code, "something broke");
    const auto client = Client::open(std::make_shared<AnsweringBackend>(answer)).value();
    const auto& device = client->devices()[0];
    const auto made = buffer_from_host(device, MemoryKind::kDevice, array);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message(), "something broke");
    EXPECT_EQ(device->lost().ok(), code == ErrorCode::kInternal);
  }
}

// --- Constants

// y = c + x for a constant of `count` elements.
program::Program plus_constant(int64_t count) {
  program::Program p = twice();
  p.kernels = {program::testing::kernel_of(fmt::format(
      "kernel @add(%x: in f32[{0}], %z: in f32[{0}], %y: out f32[{0}]) index s32 grid(%i: {0}) {{\n"
      "%a = load %x[%i] : f32\n%b = load %z[%i] : f32\n%c = add %a, %b : f32\n"
      "store %c, %y[%i] : f32\n}}",
      count))};
  const Shape shape(ElementType::kF32, {count});
  p.constants = {Literal::scalar(ElementType::kF32, 3).splat_to(shape)};
  p.buffers[1].kind = program::BufferKind::kConstant;
  for (program::Buffer& buffer : p.buffers) buffer.dims = {count};
  p.temporary_bytes = 0;
  p.sequences[0].steps = {{program::Launch{0, {0, 1, 2}, {}}, {}, "add"}};
  program::find_dependencies(p);
  return p;
}

TEST(ZeroCopy, LargeConstantsStayWhereTheyAre) {
  for (const int64_t count : {16, 1 << 16}) {
    const auto client = client_of();
    const auto device = client->devices()[0];
    const Literal x =
        Literal::scalar(ElementType::kF32, 2).splat_to(Shape(ElementType::kF32, {count}));
    FromHost argument = import(device, x);
    auto executable = load(*client, plus_constant(count));
    EXPECT_EQ(device->memory().statistics().bytes_in_use, count == 16 ? 64 : 0);
    auto run = executable->execute(std::vector{argument.buffer});
    ASSERT_TRUE(run) << run.error().to_string();
    executable = nullptr;  // The running execution keeps the bytes.
    EXPECT_EQ(get(run->results[0]), Literal::scalar(ElementType::kF32, 5).splat_to(x.shape()));
  }
}

// --- Results

TEST(ZeroCopy, ResultsAreLookedAtWhereTheyLie) {
  for (const std::string layers : {"", "validate"}) {
    const std::shared_ptr<backend::Backend> inner = backend::make_interpreter_backend();
    const auto client = Client::open(backend::with_layers(inner, layers).value()).value();
    const auto run =
        load(*client, twice())->execute(std::vector{put(client->devices()[0], four(2))});
    ASSERT_TRUE(run) << run.error().to_string();
    const BufferPtr& y = run->results[0];
    EXPECT_TRUE(y->is_host_visible());
    ASSERT_TRUE(y->hold().ok());
    EXPECT_EQ(first_of(y), 6);
    y->remove();
    EXPECT_EQ(first_of(y), 6);  // As long as it is held.
    y->release();
    EXPECT_FALSE(y->is_host_visible());
    EXPECT_EQ(y->host_data().error().message(), "the buffer of f32[4] has been deleted or donated");
  }
}

// A kernel's result, an array without elements, memory of the host: each has an address.
TEST(ZeroCopy, OfEveryKind) {
  const auto client = client_of();
  const auto& device = client->devices()[0];
  const Literal nothing(Shape(ElementType::kF32, {0}));
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kPinnedHost}) {
    EXPECT_EQ(first_of(put(device, four(3), kind)), 3);
    EXPECT_NE(put(device, nothing, kind)->host_data().value(), nullptr);
  }
}

TEST(ZeroCopy, MemoryThatTheHostDoesNotSee) {
  class Hidden final : public backend::ForwardingBackend {
   public:
    Hidden() : ForwardingBackend(backend::make_interpreter_backend()) {}
    Result<std::vector<backend::DeviceInfo>> devices() override {
      auto devices = ForwardingBackend::devices();
      devices->front().target.spaces[0].host_visible = false;
      return devices;
    }
  };
  const auto client = Client::open(std::make_shared<Hidden>()).value();
  const BufferPtr x = put(client->devices()[0], four(1));
  EXPECT_FALSE(x->is_host_visible());
  EXPECT_EQ(x->host_data().error(),
            Status(ErrorCode::kUnimplemented,
                   "the memory of f32[4] on interp:0 has no address on the host"));
}

TEST(ZeroCopy, ErrorsOfTheContents) {
  const auto client = client_of();
  program::Program p = twice();
  p.sequences[0].steps = {{program::CustomCall{"nobody", {}, {0}, {2}}, {}, "the call"}};
  find_dependencies(p);
  const auto run =
      load(*client, p)->execute(std::vector{put(client->devices()[0], four(2))}).value();
  EXPECT_EQ(run.results[0]->host_data().error().code(), ErrorCode::kUnimplemented);
}

// Somebody holds a donated argument: the program computes in other memory.
TEST(ZeroCopy, HeldBuffersAreDonatedAndStay) {
  const auto client = client_of();
  const auto executable = load(*client, twice_in_place());
  const auto x = put(client->devices()[0], four(2));
  ASSERT_TRUE(x->hold().ok());
  const std::byte* const seen = x->host_data().value();
  const auto run = executable->execute(std::vector{x});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_TRUE(x->is_deleted());
  EXPECT_EQ(get(run->results[0]), four(4));
  EXPECT_NE(run->results[0]->host_data().value(), seen);
  EXPECT_EQ(x->host_data().value(), seen);
  EXPECT_EQ(first_of(x), 2);
  const auto used = [&] { return client->devices()[0]->memory().statistics().bytes_in_use; };
  const int64_t before = used();
  x->release();
  EXPECT_EQ(used(), before - 64);
  // It continues in the same memory if nobody holds it.
  const std::byte* const first = run->results[0]->host_data().value();
  const auto again = executable->execute(std::vector{run->results[0]});
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->results[0]->host_data().value(), first);
}

// A failed call does not change memory that is held or that belongs to the caller.
TEST(ZeroCopy, FailedCallsTakeNothing) {
  backend::InterpreterConfig small;
  small.memory_bytes = 64;
  const auto client = client_of(small);
  const Literal literal = four(2);
  const FromHost x = import(client->devices()[0], literal);
  const BufferPtr y = put(client->devices()[0], four(1));  // All the memory of the device.
  const auto executable = load(*client, twice_in_place());
  EXPECT_EQ(executable->execute(std::vector{x.buffer}).error().code(),
            ErrorCode::kResourceExhausted);
  EXPECT_FALSE(x.buffer->is_deleted());
  ASSERT_TRUE(y->hold().ok());
  EXPECT_EQ(executable->execute(std::vector{y}).error().code(), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(y->is_deleted());
  y->release();
  EXPECT_EQ(get(y), four(1));
  EXPECT_EQ(get(x.buffer), four(2));
}

// Memory that somebody holds stays when the device is lost; the device is closed only after the
// release.
TEST(ZeroCopy, ALostDeviceKeepsWhatIsLookedAt) {
  const auto layer = make_faults_layer(backend::make_interpreter_backend(),
                                       backend::FaultPlan::parse("lost@40").value());
  auto client = Client::open(layer.backend).value();
  const auto device = client->devices()[0];
  const BufferPtr x = put(device, four(2));
  ASSERT_TRUE(x->hold().ok());
  EXPECT_EQ(first_of(x), 2);
  for (int i = 0; i < 40 && device->lost().ok(); ++i) static_cast<void>(device->drain());
  ASSERT_FALSE(device->lost().ok());
  EXPECT_EQ(first_of(x), 2);
  x->release();
  EXPECT_EQ(x->host_data().error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(Client::open(layer.backend));  // It can be opened again.
}

}  // namespace
}  // namespace tenon::runtime
