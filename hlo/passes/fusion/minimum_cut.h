// A minimum cut of a graph whose nodes have weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::hlo::fusion {

/// The nodes of least weight together that part sources from sinks: each path from a source to a
/// sink passes one of them. By augmenting paths (Edmonds and Karp, 1972): the cost is linear in the
/// edges and in the paths, of which small graphs of few different weights have few.
class MinimumCut {
 public:
  /// A weight that no cut has a node of, unless there is no other cut.
  static constexpr int64_t kNever = int64_t{1} << 50;

  /// Adds a node, which may be in the cut at its weight, and returns its number.
  size_t add(int64_t weight);
  /// Flow goes from `from` to `to`: what is at the one is needed at the other.
  void add_edge(size_t from, size_t to);
  void add_source(size_t node);
  void add_sink(size_t node);

  /// The nodes of the cut; of several minimum cuts the one nearest to the sinks.
  std::vector<size_t> solve();

 private:
  struct Edge {
    size_t to;
    int64_t rest;     // What may still flow.
    size_t backward;  // The number of the edge in the other direction, among those of `to`.
  };
  // A node is two, the way in and the way out, with an edge of its weight between them.
  static size_t in(size_t node) { return kFirst + 2 * node; }
  static size_t out(size_t node) { return in(node) + 1; }
  void connect(size_t from, size_t to, int64_t capacity);
  bool augment();
  std::vector<bool> reaching_sink() const;

  static constexpr size_t kSource = 0, kSink = 1, kFirst = 2;
  std::vector<std::vector<Edge>> edges_{2};
};

}  // namespace tenon::hlo::fusion
