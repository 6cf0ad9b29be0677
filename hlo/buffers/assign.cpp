#include "hlo/buffers/assign.h"

#include <algorithm>
#include <limits>

namespace tenon::hlo {
namespace {

using program::BufferId;
using program::Program;
using program::Step;

struct Life {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
};

class Liveness {
 public:
  explicit Liveness(const Program& program) : program_(program), lives_(program.buffers.size()) {
    sequence(0);
  }
  const std::vector<Life>& lives() const { return lives_; }

 private:
  void touch(BufferId id, int64_t at) {
    Life& life = lives_[program_.root(id)];
    life.first = std::min(life.first, at);
    life.last = std::max(life.last, at);
  }

  void sequence(program::SequenceId id) {
    for (const Step& s : program_.sequences[id].steps) step(s);
  }

  void step(const Step& s) {
    const int64_t begin = clock_++;
    const program::Accesses accesses = program::accesses_of(program_, s);
    if (const auto* loop = std::get_if<program::While>(&s.action)) {
      sequence(loop->condition);
      sequence(loop->body);
    } else if (const auto* branch = std::get_if<program::Conditional>(&s.action)) {
      for (const program::SequenceId id : branch->branches) sequence(id);
    } else if (const auto* call = std::get_if<program::Call>(&s.action)) {
      sequence(call->lowered);
    }
    const int64_t end = clock_++;
    // A loop comes back to what it touched: all of that lives as long as the loop.
    for (const std::vector<BufferId>* list : {&accesses.reads, &accesses.writes}) {
      for (const BufferId id : *list) {
        touch(id, begin);
        touch(id, end);
      }
    }
  }

  const Program& program_;
  std::vector<Life> lives_;
  int64_t clock_ = 0;
};

int64_t rounded(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

// First fit, the largest first: each goes to the lowest place that nothing alive at the same time
// has.
void assign_buffers(Program& program, int64_t alignment) {
  const auto aligned = [&](int64_t bytes) { return rounded(bytes, alignment); };
  const std::vector<Life> lives = Liveness(program).lives();
  std::vector<BufferId> order;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& b = program.buffers[id];
    if (b.kind == program::MemoryKind::kTemporary && b.view_of == program::kNone)
      order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
    return program.buffers[a].bytes() > program.buffers[b].bytes();
  });
  std::vector<BufferId> placed;  // by offset
  program.temporary_bytes = 0;
  for (const BufferId id : order) {
    program::Buffer& buffer = program.buffers[id];
    const int64_t bytes = aligned(buffer.bytes());
    int64_t offset = 0;
    for (const BufferId other : placed) {
      const program::Buffer& o = program.buffers[other];
      const bool together =
          lives[other].first <= lives[id].last && lives[id].first <= lives[other].last;
      if (!together || o.offset + aligned(o.bytes()) <= offset) continue;
      if (o.offset >= offset + bytes) break;
      offset = o.offset + aligned(o.bytes());
    }
    buffer.offset = offset;
    placed.insert(
        std::lower_bound(placed.begin(), placed.end(), offset,
                         [&](BufferId a, int64_t at) { return program.buffers[a].offset < at; }),
        id);
    program.temporary_bytes = std::max(program.temporary_bytes, offset + bytes);
  }
}

}  // namespace tenon::hlo
