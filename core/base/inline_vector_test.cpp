#include "core/base/inline_vector.h"

#include <gtest/gtest.h>

#include <memory>

namespace tenon {
namespace {

template <class Vector>
bool lies_within(const Vector& vector) {
  const auto* const element = reinterpret_cast<const std::byte*>(vector->data());
  const auto* const object = reinterpret_cast<const std::byte*>(&vector);
  return element >= object && element < object + sizeof vector;
}

TEST(InlineVector, KeepsTheFirstElementsWithinItself) {
  InlineVector<int, 4> list;
  for (int i = 0; i < 4; ++i) list->push_back(i);
  EXPECT_TRUE(lies_within(list));
  list->clear();
  for (int i = 0; i < 4; ++i) list->push_back(i);
  EXPECT_TRUE(lies_within(list));
  EXPECT_EQ((*list)[3], 3);
}

TEST(InlineVector, TakesMemoryForMore) {
  InlineVector<std::shared_ptr<int>, 2> list(5);
  const auto shared = std::make_shared<int>(7);
  for (int i = 0; i < 100; ++i) list->push_back(shared);
  EXPECT_FALSE(lies_within(list));
  EXPECT_EQ(list->size(), 100);
  EXPECT_EQ(*(*list)[99], 7);
  EXPECT_EQ(shared.use_count(), 101);
  list->clear();
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(InlineVector, MayBeEmpty) {
  InlineVector<int, 2> list(0);
  EXPECT_TRUE(list->empty());
  list->push_back(1);
  EXPECT_EQ((*list)[0], 1);
}

}  // namespace
}  // namespace tenon
