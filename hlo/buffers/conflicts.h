// What keeps two buffers from being one, and what speaks for it.
#pragma once

#include <numeric>
#include <vector>

#include "hlo/buffers/liveness.h"

namespace tenon::hlo {

/// Which buffers have become one, by their roots.
class Classes {
 public:
  explicit Classes(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), program::BufferId{0});
  }
  program::BufferId find(program::BufferId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  /// `kept` stands for both.
  void join(program::BufferId kept, program::BufferId other) { parents_[find(other)] = find(kept); }

 private:
  std::vector<program::BufferId> parents_;
};

/// That two buffers be one, since a copy goes from one to the other, or a kernel may write one in
/// the place of the other.
struct Wish {
  program::BufferId a = 0;
  program::BufferId b = 0;
  bool copy = false;
  int depth = 0;  ///< Of loops around.
};

/// A result that may lie over any of these inputs, but over one of them alone: a kernel can say no
/// more.
struct OneOf {
  program::BufferId result = 0;
  std::vector<program::BufferId> inputs;
};

/// Of the buffers of a Program that are of one size and lie in temporaries or results. Two conflict
/// where one is written while the other holds a value that will be read, unless it is written with
/// that value (a copy), or in its place (K4).
class Conflicts {
 public:
  explicit Conflicts(const program::Program& program);

  std::vector<Wish>& wishes() { return wishes_; }
  /// Whether the classes that `a` and `b` stand for may not be one.
  bool between(program::BufferId a, program::BufferId b, Classes& classes) const;
  /// `a` stands for `b` too.
  void join(program::BufferId a, program::BufferId b);
  size_t count(program::BufferId a) const { return of_[a].size(); }

 private:
  class Search;
  void add(program::BufferId a, program::BufferId b);
  void add(OneOf choice);

  std::vector<BufferSet> of_;
  std::vector<OneOf> choices_;
  std::vector<std::vector<uint32_t>> choices_of_;  // By buffer, numbers of choices.
  std::vector<Wish> wishes_;
};

}  // namespace tenon::hlo
