// Buffers whose memory is the host's: arguments that are not copied, results that are read in
// place.
#include <array>

#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

using Floats = std::vector<float>;

constexpr const char* kDouble = R"(
module @double {
  func.func public @main(%x: tensor<2048xf32> {jax.buffer_donor = true}) -> tensor<2048xf32> {
    %0 = stablehlo.add %x, %x : tensor<2048xf32>
    return %0 : tensor<2048xf32>
  }
})";

// Smaller arrays are copied (SmallArraysAreCopied).
constexpr size_t kCount = 2048;
constexpr auto numbers() {
  std::array<float, kCount + 4> values = {};
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}
alignas(64) constexpr std::array<float, kCount + 4> kValues = numbers();

// The numbers from `first` on, times a factor.
Floats numbers_from(size_t first, float factor = 1) {
  Floats values(kValues.begin() + static_cast<std::ptrdiff_t>(first),
                kValues.begin() + static_cast<std::ptrdiff_t>(first + kCount));
  for (float& value : values) value *= factor;
  return values;
}

struct ZeroCopied {
  PJRT_Buffer* buffer = nullptr;
  PJRT_Event* done = nullptr;
};
ZeroCopied zero_copy(const Client& client, const void* data,
                     PJRT_Buffer_Type type = PJRT_Buffer_Type_F32, int64_t count = kCount) {
  const std::vector<int64_t> dims = {count};
  auto args = client.host_args(data, type, dims);
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  call(api().PJRT_Client_BufferFromHostBuffer, args);
  return {args.buffer, args.done_with_host_buffer};
}

bool is_ready(PJRT_Event* event) {
  return get(api().PJRT_Event_IsReady, event, &PJRT_Event_IsReady_Args::event,
             &PJRT_Event_IsReady_Args::is_ready);
}

uintptr_t unsafe_pointer(PJRT_Buffer* buffer) {
  return get(api().PJRT_Buffer_UnsafePointer, buffer, &PJRT_Buffer_UnsafePointer_Args::buffer,
             &PJRT_Buffer_UnsafePointer_Args::buffer_pointer);
}

// On a device whose memory is the host's.
class ZeroCopy : public ::testing::TestWithParam<const char*> {
 protected:
  Client client_{GetParam(), "", "1"};
};

TEST_P(ZeroCopy, ArgumentsAreTheCallers) {
  PJRT_LoadedExecutable* executable = client_.compiled(kDouble);
  const ZeroCopied x = zero_copy(client_, kValues.data());
  EXPECT_TRUE(is_on_cpu(x.buffer));
  EXPECT_EQ(data_of(x.buffer), kValues.data());
  EXPECT_EQ(unsafe_pointer(x.buffer), reinterpret_cast<uintptr_t>(kValues.data()));
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(executable, {x.buffer}, results, {0}), "");
  EXPECT_EQ(values<float>(results[0]), numbers_from(0, 2));
  destroy(results[0]);
  EXPECT_FALSE(is_ready(x.done));
  // After donation it is deleted, and the memory belongs to the caller again: nothing is written to
  // it.
  ASSERT_EQ(execute(executable, {x.buffer}, results), "");
  EXPECT_TRUE(is_deleted(x.buffer));
  EXPECT_EQ(outcome(x.done), "");
  EXPECT_EQ(values<float>(results[0]), numbers_from(0, 2));
  EXPECT_EQ(kValues[0], 1);
  destroy(x.buffer);
  destroy(results[0]);
  destroy(executable);
}

TEST_P(ZeroCopy, DestroyedBuffersGiveTheMemoryBack) {
  const ZeroCopied x = zero_copy(client_, kValues.data());
  EXPECT_EQ(values<float>(x.buffer), numbers_from(0));
  EXPECT_FALSE(is_ready(x.done));
  hold(x.buffer);
  PJRT_Buffer_Delete_Args deletion = {sizeof deletion, nullptr, x.buffer};
  call(api().PJRT_Buffer_Delete, deletion);
  EXPECT_EQ(data_of(x.buffer)[3], 4);
  EXPECT_FALSE(is_ready(x.done));
  release(x.buffer);
  EXPECT_EQ(outcome(x.done), "");
  destroy(x.buffer);
}

TEST_P(ZeroCopy, WhatIsNotAlignedIsCopied) {
  const ZeroCopied x = zero_copy(client_, kValues.data() + 1);
  EXPECT_EQ(outcome(x.done), "");  // While the buffer exists.
  EXPECT_NE(data_of(x.buffer), kValues.data() + 1);
  EXPECT_EQ(values<float>(x.buffer), numbers_from(1));
  destroy(x.buffer);
}

// To tell the caller that its memory is used no more takes longer.
TEST_P(ZeroCopy, SmallArraysAreCopied) {
  for (const size_t shift : {0, 1}) {
    std::array<float, 5> mine = {1, 2, 3, 4, 5};
    const ZeroCopied x = zero_copy(client_, mine.data() + shift, PJRT_Buffer_Type_F32, 4);
    EXPECT_TRUE(is_ready(x.done));
    EXPECT_EQ(outcome(x.done), "");  // While the buffer exists.
    EXPECT_TRUE(is_on_cpu(x.buffer));
    EXPECT_NE(data_of(x.buffer), mine.data() + shift);
    EXPECT_EQ(unsafe_pointer(x.buffer) % 64, 0);
    mine.fill(0);
    const float first = shift == 0 ? 1.F : 2.F;
    EXPECT_EQ(values<float>(x.buffer), (Floats{first, first + 1, first + 2, first + 3}));
    destroy(x.buffer);
  }
}

TEST_P(ZeroCopy, ResultsAreReadInPlace) {
  PJRT_LoadedExecutable* executable = client_.compiled(kDouble);
  PJRT_Buffer* x = client_.floats(numbers_from(0), {kCount});
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(executable, {x}, results), "");
  EXPECT_TRUE(is_on_cpu(results[0]));
  hold(results[0]);
  const float* const data = data_of(results[0]);  // The contents may not be defined yet.
  EXPECT_EQ(unsafe_pointer(results[0]), reinterpret_cast<uintptr_t>(data));  // Waits for them.
  EXPECT_EQ(Floats(data, data + 4), (Floats{2, 4, 6, 8}));
  PJRT_Buffer_Delete_Args deletion = {sizeof deletion, nullptr, results[0]};
  call(api().PJRT_Buffer_Delete, deletion);
  EXPECT_EQ(data[3], 8);
  release(results[0]);
  EXPECT_FALSE(is_on_cpu(results[0]));
  for (PJRT_Buffer* buffer : {x, results[0]}) destroy(buffer);
  destroy(executable);
}

// Callers pack four-bit integers; here each takes a byte. Types of whole bytes have the same
// format.
TEST_P(ZeroCopy, TypesOfOtherLayoutsAreNot) {
  const std::array<uint8_t, 4> bytes = {0, 1, 1, 0};
  for (const auto& [type, same] : {std::pair{PJRT_Buffer_Type_S4, false},
                                   {PJRT_Buffer_Type_U2, false},
                                   {PJRT_Buffer_Type_PRED, true},
                                   {PJRT_Buffer_Type_U8, true}}) {
    const ZeroCopied x = zero_copy(client_, bytes.data(), type, 4);
    EXPECT_EQ(is_on_cpu(x.buffer), same) << type;
    destroy(x.buffer);
    EXPECT_EQ(outcome(x.done), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ZeroCopy, ::testing::Values("interp", "cpu", "reference"),
                         [](const auto& given) { return std::string(given.param); });

// The chip's memory has no addresses.
TEST(NoZeroCopy, Refuses) {
  const Client client("template");
  const ZeroCopied x = zero_copy(client, kValues.data());
  EXPECT_EQ(outcome(x.done), "");
  EXPECT_FALSE(is_on_cpu(x.buffer));
  auto pointer = uninitialized<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
  pointer.buffer = x.buffer;
  const std::string text = take(api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer));
  EXPECT_TRUE(text.starts_with("12: the memory of f32[2048] on ")) << text;
  EXPECT_TRUE(text.ends_with(" has no address on the host")) << text;
  auto address = uninitialized<PJRT_Buffer_UnsafePointer_Args>();
  address.buffer = x.buffer;
  EXPECT_EQ(take(api().PJRT_Buffer_UnsafePointer(&address)), text);
  destroy(x.buffer);
}

}  // namespace
}  // namespace tenon::pjrt::testing
