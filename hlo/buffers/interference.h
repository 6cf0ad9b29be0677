// The interference graph of buffers, and candidates for merging, as in register allocation.
//
// Steps are numbered from the last to the first. Each buffer records the numbers of the steps that
// define it and the ranges of steps after which it is live; whether two classes of buffers
// interfere is computed from these on demand. The data therefore does not grow with the number of
// pairs of buffers that are live at the same time.
#pragma once

#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/kernel/analysis/in_place.h"
#include "hlo/buffers/liveness.h"

namespace tenon::hlo {

/// The classes of merged buffers, each with a representative.
class UnionFind {
 public:
  explicit UnionFind(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), program::BufferId{0});
  }
  program::BufferId find(program::BufferId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  /// Makes `kept` the representative of both.
  void join(program::BufferId kept, program::BufferId other) { parents_[find(other)] = find(kept); }

 private:
  std::vector<program::BufferId> parents_;
};

/// Two buffers that may be worth merging: one is copied to the other, or a kernel may write one
/// over the other.
struct CoalesceCandidate {
  program::BufferId a = 0;
  program::BufferId b = 0;
  bool copy = false;
  int depth = 0;  ///< The number of enclosing loops.
};

/// The interference graph of those buffers of a Program that are temporaries or results; only
/// buffers of the same size are compared. Two buffers interfere if one is written while the other
/// holds a value that will be read, unless the written value is that value (a copy), or is written
/// in its place (K4).
class Interference {
 public:
  /// The program must outlive the object.
  explicit Interference(const program::Program& program);

  const std::vector<CoalesceCandidate>& candidates() const { return candidates_; }
  UnionFind& classes() { return classes_; }
  /// Whether the classes that `a` and `b` represent interfere.
  bool between(program::BufferId a, program::BufferId b);
  /// Merges two classes that do not interfere; `kept` becomes the representative.
  void join(program::BufferId kept, program::BufferId other);
  /// The number of entries visited and moved so far; tests compare it with the size of the Program.
  int64_t work() const { return work_; }

 private:
  class Walk;
  using Time = uint32_t;
  /// A range in which a class is live; `member` is kNone if several of its members are.
  struct LiveRange {
    Time last = 0;
    program::BufferId member = program::kNone;
  };
  using Ranges = std::map<Time, LiveRange>;  // By the first time; they do not overlap.
  struct Class {
    std::map<Time, program::BufferId> definitions;  // The buffer that a copy reads, or kNone.
    Ranges live;
    // The launches that use its members, with the kernel's buffers that they are used for.
    std::map<Time, std::vector<kernel::MemoryId>> uses;
    size_t size() const { return definitions.size() + live.size() + uses.size(); }
  };

  static void add(Ranges& live, Time first, LiveRange range);
  bool defines_within(const Class& defined, const Class& live);
  bool conflicts(const Class& x, const Class& y);
  bool may_share(Time launch, const std::vector<kernel::MemoryId>& x,
                 const std::vector<kernel::MemoryId>& y);
  const kernel::InPlacePairs& pairs_of(uint32_t kernel);

  const program::Program& program_;
  std::vector<Class> of_;  // By representative.
  UnionFind classes_;
  std::unordered_map<Time, uint32_t> kernels_;  // Of the launches.
  std::unordered_map<uint32_t, kernel::InPlacePairs> pairs_;
  std::vector<CoalesceCandidate> candidates_;
  std::unordered_set<uint64_t> refused_;  // Pairs of representatives: classes only grow.
  int64_t work_ = 0;
};

}  // namespace tenon::hlo
