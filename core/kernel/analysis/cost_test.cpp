// The cost of launches, compared with known costs.
#include "core/kernel/analysis/cost.h"

#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {
namespace {

Cost of(const std::string& text) {
  const auto kernel = parse(text, "k");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  const Status status = verify(*kernel);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return cost_of(*kernel);
}

Cost of_example(const std::string& name) {
  return of(
      read_file(std::string(TENON_SOURCE) + "/core/kernel/examples/" + name + ".kernel").value());
}

Cost of_body(const std::string& body, const std::string& more = "") {
  return of("kernel @k(%x: in f32[8], %y: inout f32[8]" + more +
            ") index s32 grid(%i: 8) {\n%v = load %x[%i] : f32\n" + body + "\n}");
}

TEST(Cost, Examples) {
  // 64 x 96 x 48, by tiles.
  const Cost dot = of_example("dot");
  EXPECT_EQ(dot.flops, 2.0 * 64 * 96 * 48);
  EXPECT_EQ(dot.bytes_read, 4 * (64 * 48 + 48 * 96));
  EXPECT_EQ(dot.bytes_written, 4 * 64 * 96);
  EXPECT_TRUE(dot.exact);
  // Per element: a maximum, a difference, a sum, a quotient; and an exponential.
  const Cost softmax = of_example("softmax");
  EXPECT_EQ(softmax.flops, 4.0 * 4000);
  EXPECT_EQ(softmax.transcendentals, 4000);
  EXPECT_EQ(softmax.bytes_read, 16000);
  EXPECT_EQ(softmax.bytes_written, 16000);
  EXPECT_TRUE(softmax.exact);
  EXPECT_EQ(of_example("transpose").flops, 0);
  EXPECT_EQ(of_example("cumsum").flops, 0);  // Additions of integers are not flops.
}

TEST(Cost, ReadsOfALargeTableAreCounted) {
  // Eight rows of four numbers; a loop of unknown length may read all.
  const std::string head =
      "kernel @k(%x: in f32[1000000,4], %i: in s32[8], %y: inout f32[1000000]) index s32 "
      "grid(%g: 8) {\n%r = load %i[%g] : s32\n";
  const Cost rows = of(head +
                       "for %c = (0, 4, 1) {\n%v = load %x[%r, %c] : f32\n"
                       "store %v, %y[%r] : f32\n}\n}");
  EXPECT_EQ(rows.bytes_read, 4 * (8 * 4 + 8 + 8 * 4));
  EXPECT_EQ(rows.bytes_written, 4 * 8 * 4);
  const Cost unknown = of(head +
                          "for %c = (0, %r, 1) {\n%v = load %x[%c, 0] : f32\n"
                          "store %v, %y[%r] : f32\n}\n}");
  EXPECT_EQ(unknown.bytes_read, 4 * (4000000 + 8 + 1000000));
}

TEST(Cost, Operations) {
  EXPECT_EQ(of_body("%a = fma %v, %v, %v : f32\nstore %a, %y[%i] : f32").flops, 16);
  EXPECT_EQ(of_body("%a = exp %v : f32\nstore %a, %y[%i] : f32").flops, 0);
  EXPECT_EQ(of_body("%a = exp %v : f32\nstore %a, %y[%i] : f32").transcendentals, 8);
  // Neither integers, comparisons nor conversions.
  EXPECT_EQ(of_body("%a = mul %i, 3 : s32\n%b = convert %a : s32 -> f32\n%c = lt %b, %v : f32\n"
                    "%d = select %c, %b, %v : f32\nstore %d, %y[%i] : f32")
                .flops,
            0);
}

TEST(Cost, Loops) {
  const std::string loop =
      " {\n%s = load %y[%i] : f32\n%t = add %s, %v : f32\nstore %t, %y[%i] : f32\n}";
  Cost cost = of_body("for %k = (2, 11, 4)" + loop);
  EXPECT_EQ(cost.flops, 8 * 3);
  EXPECT_TRUE(cost.exact);
  // From the grid's index on: at most eight iterations.
  cost = of_body("for %k = (%i, 8, 1)" + loop);
  EXPECT_EQ(cost.flops, 8 * 8);
  EXPECT_FALSE(cost.exact);
  EXPECT_TRUE(cost.bounded);
  cost = of_body("for %k = (0, %n, 1)" + loop, ", %n: scalar s32");
  EXPECT_EQ(cost.flops, 8 * 1);
  EXPECT_FALSE(cost.exact);
  EXPECT_FALSE(cost.bounded);
  EXPECT_EQ(of_body("for %k = (5, 3, 1)" + loop).flops, 0);
}

TEST(Cost, Branches) {
  const std::string one = "%a = add %v, %v : f32\nstore %a, %y[%i] : f32\n";
  const std::string two = "%b = mul %v, %v : f32\n%a = add %b, %v : f32\nstore %a, %y[%i] : f32\n";
  const std::string test = "%c = lt %i, 4 : s32\nif %c {\n";
  Cost cost = of_body(test + one + "} else {\n" + two + "}");
  EXPECT_EQ(cost.flops, 16);
  EXPECT_FALSE(cost.exact);
  cost = of_body(test + one + "} else {\n" + one + "}");
  EXPECT_EQ(cost.flops, 8);
  EXPECT_TRUE(cost.exact);
}

TEST(Cost, AWhileCountsOnce) {
  const Cost cost = of_body(
      "%r = while(%s = %v) : f32 {\n%c = lt %s, 100.0 : f32\nyield %c\n} do(%u) {\n"
      "%t = add %u, 1.0 : f32\nyield %t\n}\nstore %r, %y[%i] : f32");
  EXPECT_EQ(cost.flops, 8);
  EXPECT_FALSE(cost.exact);
  EXPECT_FALSE(cost.bounded);
}

}  // namespace
}  // namespace tenon::kernel
