// Interference of buffers, and candidates for merging: what register allocation does for registers.
//
// Steps are numbered in the order of a walk from the last to the first. A buffer has the numbers of
// the steps that define it and the ranges of those behind which it is live; whether two classes of
// buffers interfere is found from these when it is asked. So nothing grows with the pairs of
// buffers that are live at one time.
#pragma once

#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hlo/buffers/liveness.h"

namespace tenon::hlo {

/// Which buffers have become one, by their representatives.
class UnionFind {
 public:
  explicit UnionFind(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), program::BufferId{0});
  }
  program::BufferId find(program::BufferId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  /// `kept` represents both.
  void join(program::BufferId kept, program::BufferId other) { parents_[find(other)] = find(kept); }

 private:
  std::vector<program::BufferId> parents_;
};

/// Two buffers to merge, since a copy goes from one to the other, or a kernel may write one in the
/// place of the other.
struct CoalesceCandidate {
  program::BufferId a = 0;
  program::BufferId b = 0;
  bool copy = false;
  int depth = 0;  ///< Of loops around.
};

/// A result that may lie over any of these inputs, but over one of them alone: a kernel can say no
/// more.
struct ExclusiveAlias {
  program::BufferId result = 0;
  std::vector<program::BufferId> inputs;
};

/// Of the buffers of a Program that are of one size and lie in temporaries or results. Two
/// interfere where one is written while the other holds a value that will be read, unless it is
/// written with that value (a copy), or in its place (K4).
class Interference {
 public:
  explicit Interference(const program::Program& program);

  const std::vector<CoalesceCandidate>& candidates() const { return candidates_; }
  UnionFind& classes() { return classes_; }
  /// Whether the classes that `a` and `b` represent may not be one.
  bool between(program::BufferId a, program::BufferId b);
  /// Merges two classes that do not interfere; `kept` represents both.
  void join(program::BufferId kept, program::BufferId other);
  /// Entries looked at and moved so far: tests hold it against the size of the Program.
  int64_t work() const { return work_; }

 private:
  class Walk;
  using Time = uint32_t;
  /// Where a class is live; `member` is kNone where several of it are.
  struct LiveRange {
    Time last = 0;
    program::BufferId member = program::kNone;
  };
  using Ranges = std::map<Time, LiveRange>;  // By the first time; they do not overlap.
  struct Class {
    std::map<Time, program::BufferId> definitions;  // The buffer that a copy reads, or kNone.
    Ranges live;
    std::vector<std::pair<program::BufferId, program::BufferId>> conflicts;  // A member, another.
    std::vector<uint32_t> choices;
    size_t size() const {
      return definitions.size() + live.size() + conflicts.size() + choices.size();
    }
  };

  static void add(Ranges& live, Time first, LiveRange range);
  bool defines_within(const Class& defined, const Class& live);
  bool conflicts(const Class& from, program::BufferId with);
  bool excluded(const Class& from, program::BufferId a, program::BufferId b);

  std::vector<Class> of_;  // By representative.
  UnionFind classes_;
  std::vector<ExclusiveAlias> choices_;
  std::vector<CoalesceCandidate> candidates_;
  std::unordered_set<uint64_t> refused_;  // Pairs of representatives: classes only grow.
  int64_t work_ = 0;
};

}  // namespace tenon::hlo
