// In-place pairs: proved pairs run in place, and other pairs would break K4.
#include "core/kernel/analysis/in_place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/kernel/ir/builder.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {
namespace {

using Pairs = std::vector<std::pair<MemoryId, MemoryId>>;

// The pairs of a kernel with buffers %x and %z before %y.
Pairs pairs_of(std::string_view body, std::string_view grid = "grid()",
               std::string_view out = "out f32[8]") {
  const auto kernel =
      parse(fmt::format("kernel @k(%x: in f32[8], %z: in f32[8], %y: {}) index s32 {} {{\n{}\n}}",
                        out, grid, body),
            "k");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  const Status status = verify(*kernel);
  EXPECT_TRUE(status.ok()) << status.to_string();
  const InPlacePairs analysis(*kernel);
  Pairs pairs;
  for (MemoryId m = 0; m < kernel->buffer_count; ++m) {
    Pairs of_m;
    for (MemoryId in = 0; in < kernel->buffer_count; ++in) {
      if (analysis.contains(m, in)) of_m.emplace_back(m, in);
    }
    // The list must agree with inputs_of().
    Pairs listed;
    for (const MemoryId in : analysis.inputs_of(m)) listed.emplace_back(m, in);
    EXPECT_EQ(listed, of_m);
    pairs.insert(pairs.end(), of_m.begin(), of_m.end());
  }
  return pairs;
}

// `count` outputs, each the sum of two of `count` inputs. All have one element, so any output may
// be over any input that is loaded before.
Kernel sums_of_scalars(size_t count) {
  Builder b("sums");
  Values elements;
  std::vector<MemoryId> inputs;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(b.buffer(fmt::format("x{}", i), ElementType::kF32, {}, Access::kIn));
  }
  std::vector<MemoryId> outputs;
  for (size_t i = 0; i < count; ++i) {
    outputs.push_back(b.buffer(fmt::format("y{}", i), ElementType::kF32, {}, Access::kOut));
  }
  b.grid({});
  for (size_t i = 0; i < count; ++i) elements.push_back(b.load(inputs[i], {}));
  for (size_t i = 0; i < count; ++i) {
    b.store(b.add(elements[i], elements[(i + 1) % count]), outputs[i], {});
  }
  return b.finish();
}

int64_t work_on(size_t count) {
  const Kernel kernel = sums_of_scalars(count);
  const InPlacePairs pairs(kernel);
  for (size_t i = 0; i < count; ++i) {
    const auto out = static_cast<MemoryId>(count + i);
    // A part of all the inputs.
    EXPECT_EQ(pairs.inputs_of(out).size(), std::min(count, InPlacePairs::kMostInputs));
    EXPECT_TRUE(pairs.contains(out, static_cast<MemoryId>(i)));
  }
  return pairs.work();
}

TEST(InPlace, WorkGrowsAsTheKernelDoes) {
  const int64_t some = work_on(1000);
  EXPECT_GT(some, 1000);
  EXPECT_LE(work_on(4000), 4 * some + 1000);
}

constexpr std::string_view kLoadX = "%v = load %x[%i] : f32\n";
constexpr std::string_view kLoadZ = "%w = load %z[%i] : f32\n";

TEST(InPlace, ElementsAtTheirOwnIndex) {
  const Pairs both = {{2, 0}, {2, 1}};
  EXPECT_EQ(pairs_of(fmt::format("lanes(%i: 8) {{\n{}{}%s = add %v, %w : f32\n"
                                 "store %s, %y[%i] : f32\n}}",
                                 kLoadX, kLoadZ)),
            both);
  EXPECT_EQ(
      pairs_of(fmt::format("{}{}%s = add %v, %w : f32\nstore %s, %y[%i] : f32", kLoadX, kLoadZ),
               "grid(%i: 8)"),
      both);
}

TEST(InPlace, NotWhatOthersRead) {
  // The element of another iteration; %z is never read.
  EXPECT_EQ(pairs_of("lanes(%i: 8) {\n%r = sub 7, %i : s32\n%v = load %x[%r] : f32\n"
                     "store %v, %y[%i] : f32\n}"),
            (Pairs{{2, 1}}));
  // One element for all.
  EXPECT_EQ(pairs_of("lanes(%i: 8) {\n%v = load %x[0] : f32\nstore %v, %y[%i] : f32\n}"),
            (Pairs{{2, 1}}));
  // Other lanes may be ahead.
  EXPECT_EQ(
      pairs_of("%v = reduce lanes(%k: 8) init(0.0) : f32 {\n%a = load %x[%k] : f32\nyield %a\n"
               "} combine(%a, %b) {\n%c = add %a, %b : f32\nyield %c\n}\n"
               "lanes(%i: 8) {\nstore %v, %y[%i] : f32\n}"),
      (Pairs{{2, 1}}));
}

TEST(InPlace, NotBehindTheStore) {
  EXPECT_EQ(
      pairs_of(fmt::format("lanes(%i: 8) {{\n{}store %v, %y[%i] : f32\n{}\n}}", kLoadX, kLoadZ)),
      (Pairs{{2, 0}}));
}

TEST(InPlace, NotWhereSomeReadWithoutStoring) {
  EXPECT_EQ(
      pairs_of(fmt::format("lanes(%i: 8) {{\n{}%p = gt %v, 0.0 : f32\nif %p {{\n{}"
                           "store %w, %y[%i] : f32\n}} else {{\nstore 0.0, %y[%i] : f32\n}}\n}}",
                           kLoadX, kLoadZ)),
      Pairs{});
}

TEST(InPlace, OnlyOutOverInOfOneType) {
  const std::string body = fmt::format("lanes(%i: 8) {{\n{}store %v, %y[%i] : f32\n}}", kLoadX);
  EXPECT_EQ(pairs_of(body, "grid()", "inout f32[8]"), Pairs{});
  EXPECT_EQ(pairs_of("lanes(%i: 8) {\n%v = load %x[%i] : f32\n%b = bitcast %v : f32 -> s32\n"
                     "store %b, %y[%i] : s32\n}",
                     "grid()", "out s32[8]"),
            Pairs{});
}

}  // namespace
}  // namespace tenon::kernel
