#include "core/backend/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tenon::backend {
namespace {

std::string form_of(const Box& box) {
  const auto form = pitched(box);
  if (!form) return "none";
  return fmt::format("{} x {} x {}, {} {} from {} {}", form->row_bytes, form->rows, form->slices,
                     form->destination.row, form->destination.slice, form->source.row,
                     form->source.slice);
}

TEST(Pitched, BoxesOfRowsWithinSlices) {
  EXPECT_EQ(form_of({4, {}, {}, {}}), "4 x 1 x 1, 4 4 from 4 4");
  EXPECT_EQ(form_of({4, {5, 7}, {28, 4}, {28, 4}}), "140 x 1 x 1, 140 140 from 140 140");
  EXPECT_EQ(form_of({4, {5, 7}, {28, 4}, {64, 4}}), "28 x 5 x 1, 28 140 from 64 320");
  EXPECT_EQ(form_of({4, {3, 2, 5}, {80, 20, 4}, {96, 32, 4}}), "20 x 2 x 3, 20 80 from 32 96");
  // Dimensions of one element do not count, and every second element is a row of its own.
  EXPECT_EQ(form_of({4, {1, 5, 1, 6}, {0, 24, 9, 4}, {7, 96, 1, 8}}), "4 x 6 x 5, 4 24 from 8 96");
}

TEST(Pitched, OtherBoxesAreNone) {
  EXPECT_EQ(form_of({4, {0}, {4}, {4}}), "none");
  EXPECT_EQ(form_of({4, {5, 7}, {4, 20}, {28, 4}}), "none");             // Transposed.
  EXPECT_EQ(form_of({8, {6}, {-8}, {8}}), "none");                       // Reversed.
  EXPECT_EQ(form_of({2, {4, 3}, {6, 2}, {0, 2}}), "none");               // Repeated.
  EXPECT_EQ(form_of({4, {3, 2, 5}, {64, 20, 4}, {96, 32, 4}}), "none");  // 64 is not k * 20.
  EXPECT_EQ(form_of({1, {2, 2, 2, 2}, {64, 16, 4, 1}, {64, 16, 4, 1}}), "none");
}

// A copy by rows and slices writes what copy_box writes.
TEST(Pitched, CopiesTheSame) {
  const Box box = {2, {3, 4, 5}, {48, 12, 2}, {80, 20, 2}};
  std::vector<std::byte> from(400);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  std::vector<std::byte> expected(200);
  std::vector<std::byte> got(200);
  copy_box(expected.data(), from.data(), box);
  const PitchedBox form = pitched(box).value();
  for (size_t slice = 0; slice < form.slices; ++slice) {
    for (size_t row = 0; row < form.rows; ++row) {
      std::copy_n(from.data() + slice * form.source.slice + row * form.source.row, form.row_bytes,
                  got.data() + slice * form.destination.slice + row * form.destination.row);
    }
  }
  EXPECT_EQ(got, expected);
}

// Each member differs from its default.
TargetInfo unusual() {
  TargetInfo target;
  target.name = "a chip";
  target.compiler_id = "cc 1.2 (x)";
  target.features = kernel::TargetFeatures::parse("f64,s64,convert_bf16,scans,atomics").value();
  target.features.fma = false;
  target.features.dimensions = false;
  target.features.scratch = false;
  target.features.math = true;
  target.flushed.insert(ElementType::kF32);
  target.math = {{"exp", ElementType::kF32, 2.5}, {"tanh", ElementType::kF64, 0}};
  target.compute_units = 2;
  target.preferred_lanes = 3;
  target.most_lanes = 4;
  target.vector_bytes = 16;
  target.scratch_bytes = 0;
  target.private_bytes = 7;
  target.most_parameters = 8;
  target.largest_buffer = int64_t{1} << 40;
  target.spaces = {{SpaceKind::kDevice, true, true, 1 << 20, 256, true},
                   {SpaceKind::kPinnedHost, false, false, 0, 64, false}};
  target.queues = 3;
  target.flops = 1.0 / 3e-12;
  target.bytes_per_second = 1e9;
  target.launch_seconds = 5e-6;
  target.tuning = {{"tile_k", 64}, {"other", -1}};
  target.narrow_products = 9;
  target.byte_products = true;
  return target;
}

TEST(TargetText, IsReadAsItWasWritten) {
  TargetInfo plain;
  plain.name = "chip";
  plain.compiler_id = "cc";
  TargetInfo as_written = plain;
  as_written.accepts_all = true;
  for (const TargetInfo& target : {plain, as_written, unusual()}) {
    const std::string text = to_string(target);
    const auto read = parse_target(text);
    ASSERT_TRUE(read) << read.error().to_string() << "\n" << text;
    EXPECT_EQ(to_string(*read), text);
    EXPECT_EQ(read->features.scratch, target.features.scratch);
    EXPECT_EQ(read->features.tiles, target.features.tiles);
    EXPECT_EQ(read->flops, target.flops);
    EXPECT_EQ(read->narrow_products, target.narrow_products);
    EXPECT_EQ(read->byte_products, target.byte_products);
    EXPECT_EQ(read->spaces[0].host_writable, target.spaces[0].host_writable);
  }
  EXPECT_EQ(to_string(*parse_target("# a comment\n\n  name chip \r\ncompiler cc\n")),
            to_string(plain));
}

TEST(TargetText, ErrorsNameTheLine) {
  const auto error = [](std::string_view text) { return parse_target(text).error().message(); };
  const auto line = [](std::string_view text) {
    return fmt::format("line 2: '{}' is no member of a target as 'tenon devices' writes it", text);
  };
  for (const char* const wrong :
       {"vector_bytes", "vector_bytes x", "vector_bytes 16 17", "vector_bytes 99999999999999999999",
        "unknown 3", "types f32 f33", "forms fma wings", "math exp", "math exp f32 2", "queues -1",
        "space", "space disk 0 bytes, aligned to 64", "space device 0 bytes", "tuning tile_k",
        "flops fast", "byte_products 2"}) {
    EXPECT_EQ(error(fmt::format("name chip\n{}\n", wrong)), line(wrong));
  }
  EXPECT_EQ(error("name chip\nqueues 1\nqueues 2\n"), "line 3: 'queues' is stated twice");
  EXPECT_EQ(error(""), "the target '' is invalid: it has no name");
  EXPECT_EQ(error("name chip\ncompiler cc\nspace device 0 bytes, aligned to 3"),
            "the target 'chip' is invalid: an alignment of 3 is not a power of two");
  EXPECT_EQ(error("name chip\ncompiler cc\nvector_bytes -1"),
            "the target 'chip' is invalid: -1 is negative");
  EXPECT_EQ(error("name chip\ncompiler cc\nmath fly f32 0 ulp"),
            "the target 'chip' is invalid: there is no math function 'fly'");
}

// Any text is an error or a target.
TEST(TargetText, TakesDamagedText) {
  const std::string text = to_string(unusual());
  for (size_t i = 0; i < text.size(); ++i) {
    static_cast<void>(parse_target(text.substr(0, i)));
    for (const char change : {'\n', ' ', '-', '\x80'}) {
      std::string damaged = text;
      damaged[i] = change;
      const auto read = parse_target(damaged);
      if (!read) continue;
      const std::string again = to_string(*read);
      EXPECT_EQ(to_string(parse_target(again).value()), again);
    }
  }
}

}  // namespace
}  // namespace tenon::backend
