#include "hlo/passes/fusion/minimum_cut.h"

#include <gtest/gtest.h>

#include "core/base/random.h"

namespace tenon::hlo::fusion {
namespace {

using Nodes = std::vector<size_t>;

struct Edge {
  size_t from, to;
};

Nodes cut_of(const std::vector<int64_t>& weights, const std::vector<Edge>& edges,
             const Nodes& sources, const Nodes& sinks) {
  MinimumCut graph;
  for (const int64_t weight : weights) graph.add(weight);
  for (const Edge& edge : edges) graph.add_edge(edge.from, edge.to);
  for (const size_t node : sources) graph.add_source(node);
  for (const size_t node : sinks) graph.add_sink(node);
  return graph.solve();
}

TEST(MinimumCut, IsTheLightestNodeOfAChain) {
  EXPECT_EQ(cut_of({5, 2, 3}, {{0, 1}, {1, 2}}, {0}, {2}), Nodes{1});
}

TEST(MinimumCut, OfSeveralIsNearestToTheSinks) {
  EXPECT_EQ(cut_of({4, 4, 4}, {{0, 1}, {1, 2}}, {0}, {2}), Nodes{2});
}

TEST(MinimumCut, TakesOneValueForSeveralThatFollowFromIt) {
  // 0 makes 1, 2 and 3, which are all needed.
  EXPECT_EQ(cut_of({5, 5, 5, 5}, {{0, 1}, {0, 2}, {0, 3}}, {0}, {1, 2, 3}), Nodes{0});
}

TEST(MinimumCut, TakesTheResultOfTwo) {
  EXPECT_EQ(cut_of({5, 5, 6}, {{0, 2}, {1, 2}}, {0, 1}, {2}), Nodes{2});
}

TEST(MinimumCut, AvoidsNodesThatNeverAreInOne) {
  EXPECT_EQ(cut_of({1, MinimumCut::kNever, 9}, {{0, 1}, {1, 2}}, {1}, {2}), Nodes{2});
}

TEST(MinimumCut, IsEmptyWithoutAPath) {
  EXPECT_EQ(cut_of({1, 1}, {}, {0}, {1}), Nodes{});
  EXPECT_EQ(cut_of({}, {}, {}, {}), Nodes{});
}

// Whether sources reach sinks by nodes that are not in the set.
bool is_cut(uint32_t set, size_t count, const std::vector<Edge>& edges) {
  std::vector<bool> reached(count, false);
  reached[0] = (set & 1) == 0;
  for (const Edge& edge : edges) {  // In the order of their ends.
    if (reached[edge.from] && (set >> edge.to & 1) == 0) reached[edge.to] = true;
  }
  return !reached[count - 1];
}

TEST(MinimumCut, IsAsLightAsTheBestOfAllSets) {
  constexpr size_t kCount = 9;
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> weights;
    for (size_t n = 0; n < kCount; ++n)
      weights.push_back(1 + static_cast<int64_t>(random.below(6)));
    std::vector<Edge> edges;
    for (size_t to = 1; to < kCount; ++to) {
      for (size_t from = 0; from < to; ++from) {
        if (random.below(3) == 0) edges.push_back({from, to});
      }
    }
    int64_t best = MinimumCut::kNever;
    const auto weight_of = [&](uint32_t set) {
      int64_t sum = 0;
      for (size_t n = 0; n < kCount; ++n) sum += (set >> n & 1) != 0 ? weights[n] : 0;
      return sum;
    };
    for (uint32_t set = 0; set < 1U << kCount; ++set) {
      if (is_cut(set, kCount, edges)) best = std::min(best, weight_of(set));
    }
    uint32_t found = 0;
    for (const size_t node : cut_of(weights, edges, {0}, {kCount - 1})) found |= 1U << node;
    EXPECT_TRUE(is_cut(found, kCount, edges)) << round;
    EXPECT_EQ(weight_of(found), best) << round;
  }
}

}  // namespace
}  // namespace tenon::hlo::fusion
