#include "hlo/passes/fusion/minimum_cut.h"

#include <algorithm>
#include <limits>

namespace tenon::hlo::fusion {
namespace {

// The edge by which a path comes to a node.
struct PathEdge {
  size_t from;
  size_t edge;
};

}  // namespace

size_t MinimumCut::add(int64_t weight) {
  const size_t node = (edges_.size() - kFirst) / 2;
  edges_.resize(edges_.size() + 2);
  connect(in(node), out(node), std::min(weight, kNever));
  return node;
}

void MinimumCut::add_edge(size_t from, size_t to) {
  connect(out(from), in(to), std::numeric_limits<int64_t>::max());
}

void MinimumCut::add_source(size_t node) {
  connect(kSource, in(node), std::numeric_limits<int64_t>::max());
}

void MinimumCut::add_sink(size_t node) {
  connect(out(node), kSink, std::numeric_limits<int64_t>::max());
}

void MinimumCut::connect(size_t from, size_t to, int64_t capacity) {
  edges_[from].push_back({to, capacity, edges_[to].size()});
  edges_[to].push_back({from, 0, edges_[from].size() - 1});
}

std::vector<size_t> MinimumCut::solve() {
  while (augment()) {
  }
  const std::vector<bool> reaches = reaching_sink();
  std::vector<size_t> cut;
  for (size_t node = 0; in(node) < edges_.size(); ++node) {
    if (!reaches[in(node)] && reaches[out(node)]) cut.push_back(node);
  }
  return cut;
}

// Sends what a shortest path to the sink lets through.
bool MinimumCut::augment() {
  // Nothing leads on from the sink: its number stands for no edge.
  std::vector<PathEdge> steps(edges_.size(), PathEdge{kSink, 0});
  std::vector<size_t> queue = {kSource};
  steps[kSource] = {kSource, 0};
  for (size_t next = 0; next < queue.size() && steps[kSink].from == kSink; ++next) {
    const size_t from = queue[next];
    for (size_t e = 0; e < edges_[from].size(); ++e) {
      const Edge& edge = edges_[from][e];
      if (edge.rest == 0 || steps[edge.to].from != kSink) continue;
      steps[edge.to] = {from, e};
      queue.push_back(edge.to);
    }
  }
  if (steps[kSink].from == kSink) return false;
  int64_t flow = kNever;
  for (size_t at = kSink; at != kSource; at = steps[at].from) {
    flow = std::min(flow, edges_[steps[at].from][steps[at].edge].rest);
  }
  for (size_t at = kSink; at != kSource; at = steps[at].from) {
    Edge& edge = edges_[steps[at].from][steps[at].edge];
    edge.rest -= flow;
    Edge& backward = edges_[at][edge.backward];
    backward.rest = std::min(backward.rest, std::numeric_limits<int64_t>::max() - flow) + flow;
  }
  return true;
}

// The halves of nodes from which more could flow to the sink.
std::vector<bool> MinimumCut::reaching_sink() const {
  std::vector<bool> reaches(edges_.size(), false);
  std::vector<size_t> queue = {kSink};
  reaches[kSink] = true;
  for (size_t next = 0; next < queue.size(); ++next) {
    for (const Edge& edge : edges_[queue[next]]) {
      const Edge& towards = edges_[edge.to][edge.backward];
      if (towards.rest == 0 || reaches[edge.to]) continue;
      reaches[edge.to] = true;
      queue.push_back(edge.to);
    }
  }
  return reaches;
}

}  // namespace tenon::hlo::fusion
