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

}  // namespace
}  // namespace tenon::backend
