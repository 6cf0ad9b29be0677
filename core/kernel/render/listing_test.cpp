#include "core/kernel/render/listing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"
#include "core/types/literal.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

constexpr std::string_view kScaled = R"(
kernel @scaled(%x: in f32[4], %y: out f32[4]) index s32 grid(%0: 1) {
  lanes(%1: 4) {
    %2 = load %x[%1] : f32
    %3 = mul %2, %2 : f32
    %4 = sub %3, 0.5 : f32
    store %4, %y[%1] : f32
  }
}
)";

constexpr std::string_view kBranches = R"(
kernel @branches(%x: in f32[2], %y: out f32[2]) index s32 grid(%0: 2) {
  %1 = load %x[%0] : f32
  %2 = lt %1, 0.0 : f32
  %3 = if %2 : f32 {
    %4 = neg %1 : f32
    yield %4
  } else {
    %5 = add %1, 1.0 : f32
    yield %5
  }
  store %3, %y[%0] : f32
}
)";

constexpr std::string_view kSum = R"(
kernel @sum(%x: in f32[3,2], %y: out f32[3]) index s32 grid(%0: 3) {
  %1 = reduce serial(%2: 2) init(0.0) : f32 commutative {
    %3 = load %x[%0, %2] : f32
    yield %3
  } combine(%4, %5) {
    %6 = add %4, %5 : f32
    yield %6
  }
  store %1, %y[%0] : f32
}
)";

Kernel kernel_of(std::string_view text) {
  auto kernel = parse(text, "test");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  const Status valid = verify(*kernel);
  EXPECT_TRUE(valid.ok()) << valid.to_string();
  return *std::move(kernel);
}

// The values that a run on `x` computes for an element of the second buffer.
Watch watched(const Kernel& kernel, std::vector<float> x, int64_t element,
              Order order = Order::kForward) {
  std::vector<float> y(static_cast<size_t>(kernel.memory(1).span()));
  const BufferArgument buffers[] = {
      {reinterpret_cast<std::byte*>(x.data()), x.size() * sizeof(float)},
      {reinterpret_cast<std::byte*>(y.data()), y.size() * sizeof(float)}};
  Watch watch;
  watch.buffer = 1;
  watch.element = element;
  InterpreterOptions options;
  options.watch = &watch;
  options.order = order;
  const Status status = Interpreter(kernel).run(buffers, {}, options);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return watch;
}

TEST(Listing, ShowsTheSourceWithTheValuesOfTheWatchedElement) {
  const auto listing = list_source(kernel_of(kScaled));
  ASSERT_TRUE(listing) << listing.error().to_string();
  constexpr std::string_view kExpected =
      R"(void scaled(const float *restrict x, float *restrict y) {
  for (int32_t v0 = 0; v0 < 1; ++v0) {   | v0 = 0
    for (int32_t v1 = 0; v1 < 4; ++v1) { | v1 = 2
      const float v2 = x[v1];            | v2 = 3.0
      const float v3 = v2 * v2;          | v3 = 9.0
      const float v4 = v3 - 0x1p-1f;     | v4 = 8.5
      y[v1] = v4;                        | y[v1] = 8.5, the device: 9.5
    }
  }
}
)";
  // The order of iterations changes nothing: each lane's values are its own.
  for (const Order order : {Order::kForward, Order::kBackward, Order::kShuffled}) {
    const Watch watch = watched(listing->kernel, {1, 2, 3, 4}, 2, order);
    EXPECT_EQ(annotate(*listing, watch, "9.5"), kExpected);
  }
}

TEST(Listing, ShowsLanguagesWithLanes) {
  RenderOptions options;
  options.language = Language::kOpenCl;
  const auto listing = list_source(kernel_of(kScaled), options);
  ASSERT_TRUE(listing) << listing.error().to_string();
  const std::string text = annotate(*listing, watched(listing->kernel, {1, 2, 3, 4}, 3));
  EXPECT_TRUE(text.starts_with("__kernel ") && text.find(" void scaled(") != std::string::npos)
      << text;
  EXPECT_NE(text.find("v4 - 0x1p-1f;"), std::string::npos) << text;
  EXPECT_NE(text.find("| y[v2] = 15.5\n"), std::string::npos) << text;
}

TEST(Listing, ShowsTheTextOfKernels) {
  const Listing listing = list_text(kernel_of(kSum));
  constexpr std::string_view kExpected =
      R"(kernel @sum(%x: in f32[3,2], %y: out f32[3]) index s32 grid(%0: 3) { | %0 = 1
  %1 = reduce serial(%2: 2) init(0.0) : f32 commutative {            | %1 = 7.0, %2 = 1
    %3 = load %x[%0, %2] : f32                                       | %3 = 4.0
    yield %3
  } combine(%4, %5) {
    %6 = add %4, %5 : f32                                            | %6 = 7.0
    yield %6
  }
  store %1, %y[%0] : f32                                             | %y[%0] = 7.0
}
)";
  EXPECT_EQ(annotate(listing, watched(listing.kernel, {1, 2, 3, 4, 5, 6}, 1)), kExpected);
}

TEST(Listing, HasNoValuesOfABranchThatWasNotTaken) {
  const auto source = list_source(kernel_of(kBranches));
  ASSERT_TRUE(source);
  // Element 0 takes the first branch, before that or after it element 1 takes the second.
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const Listing& listing : {*source, list_text(source->kernel)}) {
      const std::string text = annotate(listing, watched(listing.kernel, {-3, 5}, 0, order));
      EXPECT_EQ(text.find("6.0"), std::string::npos) << text;
      EXPECT_NE(text.find("= 3.0\n"), std::string::npos) << text;
      EXPECT_NE(text.find("= -3.0\n"), std::string::npos) << text;
    }
  }
}

TEST(Listing, OfALongKernelHasTheLinesOnWhichTheElementDepends) {
  std::string text =
      "kernel @long(%x: in f32[2], %y: out f32[2], %z: out f32[2]) index s32 "
      "grid(%0: 2) {\n  %1 = load %x[%0] : f32\n";
  for (int i = 2; i < 300; ++i) text += "  %" + std::to_string(i) + " = add %1, 1.5 : f32\n";
  text += "  store %299, %z[%0] : f32\n  %300 = neg %1 : f32\n  store %300, %y[%0] : f32\n}\n";
  const Listing listing = list_text(kernel_of(text));
  Watch watch;
  watch.buffer = 1;
  watch.element = 1;
  std::vector<float> x = {1, 2};
  std::vector<float> y(2);
  std::vector<float> z(2);
  std::vector<BufferArgument> buffers;
  for (std::vector<float>* each : {&x, &y, &z})
    buffers.push_back({reinterpret_cast<std::byte*>(each->data()), 8});
  InterpreterOptions options;
  options.watch = &watch;
  ASSERT_TRUE(Interpreter(listing.kernel).run(buffers, {}, options).ok());
  const std::string shown = annotate(listing, watch);
  EXPECT_EQ(std::ranges::count(shown, '\n'), 6) << shown;
  EXPECT_NE(shown.find("%300 = neg %1 : f32"), std::string::npos) << shown;
  EXPECT_NE(shown.find("| %300 = -2.0\n"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("add"), std::string::npos) << shown;
  // Too long even so: the first and the last lines.
  const std::string ends = annotate(listing, watch, "", 3);
  EXPECT_EQ(std::ranges::count(ends, '\n'), 4) << ends;
  EXPECT_TRUE(ends.starts_with("kernel @long(")) << ends;
  EXPECT_NE(ends.find("\n…\n  store %300"), std::string::npos) << ends;
}

TEST(Listing, WithoutAStoreHasNoValues) {
  const Listing listing = list_text(kernel_of(kScaled));
  Watch watch = watched(listing.kernel, {1, 2, 3, 4}, 7);
  EXPECT_FALSE(watch.was_stored);
  EXPECT_EQ(annotate(listing, watch).find('|'), std::string::npos);
}

}  // namespace
}  // namespace tenon::kernel
