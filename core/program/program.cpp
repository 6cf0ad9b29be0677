#include "core/program/program.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tenon::program {

const ConfigValue* find(const Config& config, std::string_view key) {
  for (const auto& [name, value] : config) {
    if (name == key) return &value;
  }
  return nullptr;
}

namespace {

void unique(std::vector<BufferId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// Tracks the last steps that accessed each piece of memory.
class Tracker {
 public:
  explicit Tracker(const Program& program) : program_(program) {}

  std::vector<uint32_t> enter(uint32_t step, const Accesses& accesses) {
    std::vector<uint32_t> depends;
    for (const BufferId id : accesses.reads) {
      for_each_piece(range_of(program_, id), [&](Piece& piece) {
        if (piece.writer != kNone) depends.push_back(piece.writer);
      });
    }
    for (const BufferId id : accesses.writes) {
      for_each_piece(range_of(program_, id), [&](Piece& piece) {
        if (piece.writer != kNone) depends.push_back(piece.writer);
        depends.insert(depends.end(), piece.readers.begin(), piece.readers.end());
      });
    }
    // A step that both reads and writes a buffer counts as its writer.
    for (const BufferId id : accesses.reads) {
      for_each_piece(range_of(program_, id), [&](Piece& piece) { piece.readers.push_back(step); });
    }
    for (const BufferId id : accesses.writes) write(range_of(program_, id), step);
    std::sort(depends.begin(), depends.end());
    depends.erase(std::unique(depends.begin(), depends.end()), depends.end());
    return depends;
  }

 private:
  // Bytes written by one step, if any, and the steps that have read some of them since.
  struct Piece {
    int64_t end = 0;
    uint32_t writer = kNone;
    std::vector<uint32_t> readers;
  };
  using Pieces = std::map<int64_t, Piece>;  // By first byte; they do not overlap.

  Pieces& pieces_of(const ByteRange& range) {
    return memories_[(uint64_t{range.index} << 2) | static_cast<uint64_t>(range.kind)];
  }

  // Splits pieces at the ends of the range; the pieces within it then cover it.
  template <class Visit>
  void for_each_piece(const ByteRange& range, const Visit& visit) {
    if (range.begin == range.end) return;
    Pieces& pieces = pieces_of(range);
    cut(pieces, range.begin);
    cut(pieces, range.end);
    int64_t at = range.begin;
    for (auto piece = pieces.lower_bound(at); at < range.end; ++piece) {
      if (piece == pieces.end() || piece->first > at) {
        const int64_t end = piece == pieces.end() ? range.end : std::min(piece->first, range.end);
        piece = pieces.emplace_hint(piece, at, Piece{end, kNone, {}});
      }
      visit(piece->second);
      at = piece->second.end;
    }
  }

  static void cut(Pieces& pieces, int64_t at) {
    auto behind = pieces.upper_bound(at);
    if (behind == pieces.begin()) return;
    auto& [begin, piece] = *std::prev(behind);
    if (begin == at || piece.end <= at) return;
    Piece rest = piece;
    piece.end = at;
    pieces.emplace_hint(behind, at, std::move(rest));
  }

  // Replaces the range by one piece written by `step`: later steps depend on it, and through it on
  // the earlier steps.
  void write(const ByteRange& range, uint32_t step) {
    if (range.begin == range.end) return;
    Pieces& pieces = pieces_of(range);
    cut(pieces, range.begin);
    cut(pieces, range.end);
    pieces.erase(pieces.lower_bound(range.begin), pieces.lower_bound(range.end));
    pieces.emplace(range.begin, Piece{range.end, step, {}});
  }

  const Program& program_;
  std::unordered_map<uint64_t, Pieces> memories_;
};

// Whether the step, or a step within it, runs on the host: such steps may have effects.
bool calls(const Program& program, const Step& step) {
  if (is_on_host(step)) return true;
  return std::ranges::any_of(sequences_within(step), [&](SequenceId id) {
    return std::ranges::any_of(program.sequences[id].steps,
                               [&](const Step& inner) { return calls(program, inner); });
  });
}

void add_accesses(const Program& program, const Step& step, Accesses& to) {
  const Accesses own = own_accesses_of(program, step);
  to.reads.insert(to.reads.end(), own.reads.begin(), own.reads.end());
  to.writes.insert(to.writes.end(), own.writes.begin(), own.writes.end());
  for (const SequenceId id : sequences_within(step)) {
    for (const Step& inner : program.sequences[id].steps) add_accesses(program, inner, to);
  }
}

}  // namespace

std::vector<SequenceId> sequences_within(const Step& step) {
  std::vector<SequenceId> found;
  for_each_sequence(step, [&](SequenceId id) { found.push_back(id); });
  return found;
}

namespace {

// A kernel declares how it accesses its buffers.
void add_launched(const Program& program, const Launch& launch, Accesses& to) {
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const kernel::Access access = kernel.memories[i].access;
    if (access != kernel::Access::kOut) to.reads.push_back(launch.buffers[i]);
    if (access != kernel::Access::kIn) to.writes.push_back(launch.buffers[i]);
  }
}

template <class Action>
void add_own(const Action& action, Accesses& to) {
  action.members(action, [&](auto role, const auto& member) {
    if constexpr (std::is_same_v<decltype(role), role::Reads>) {
      detail::each(member, [&](BufferId id) { to.reads.push_back(id); });
    } else if constexpr (std::is_same_v<decltype(role), role::Writes>) {
      detail::each(member, [&](BufferId id) { to.writes.push_back(id); });
    }
  });
}

}  // namespace

Accesses own_accesses_of(const Program& program, const Step& step) {
  Accesses a;
  std::visit([&](const auto& action) { add_own(action, a); }, step.action);
  if (const auto* launch = std::get_if<Launch>(&step.action)) add_launched(program, *launch, a);
  for (BufferId& id : a.reads) id = program.root(id);
  for (BufferId& id : a.writes) id = program.root(id);
  unique(a.reads);
  unique(a.writes);
  return a;
}

Accesses accesses_of(const Program& program, const Step& step) {
  Accesses a;
  add_accesses(program, step, a);
  unique(a.reads);
  unique(a.writes);
  return a;
}

ByteRange range_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffer(program.root(id));
  if (buffer.kind == BufferKind::kTemporary) {
    return {buffer.kind, 0, buffer.offset, buffer.offset + buffer.bytes()};
  }
  return {buffer.kind, buffer.index, 0, std::max<int64_t>(buffer.bytes(), 1)};
}

bool overlap(const Program& program, BufferId a, BufferId b) {
  return range_of(program, a).overlaps(range_of(program, b));
}

std::vector<std::vector<uint32_t>> dependencies_of(const Program& program,
                                                   const Sequence& sequence) {
  std::vector<std::vector<uint32_t>> all;
  Tracker tracker(program);
  uint32_t last_call = kNone;  // custom calls stay in order: they may have effects
  for (uint32_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    std::vector<uint32_t>& depends = all.emplace_back(tracker.enter(i, accesses_of(program, step)));
    if (!calls(program, step)) continue;
    if (last_call != kNone && !std::binary_search(depends.begin(), depends.end(), last_call)) {
      depends.insert(std::lower_bound(depends.begin(), depends.end(), last_call), last_call);
    }
    last_call = i;
  }
  return all;
}

void find_dependencies(Program& program) {
  for (Sequence& sequence : program.sequences) {
    std::vector<std::vector<uint32_t>> all = dependencies_of(program, sequence);
    for (size_t i = 0; i < all.size(); ++i) sequence.steps[i].depends = std::move(all[i]);
  }
}

std::vector<uint32_t> parameters_of_results(const Program& program) {
  std::vector<uint32_t> taken(program.results.size(), kNone);
  std::vector<bool> donated(program.parameters.size());
  for (const uint32_t index : program.donated) donated[index] = true;
  std::vector<int> touched(program.parameters.size());
  const std::vector<Step>& steps = program.sequences[0].steps;
  for (const Step& step : steps) {
    for (const BufferId id : accesses_of(program, step).reads) {
      const Buffer& buffer = program.buffer(id);
      if (buffer.kind == BufferKind::kParameter) ++touched[buffer.index];
    }
  }
  for (const Step& step : steps) {
    const auto* copy = std::get_if<Copy>(&step.action);
    if (copy == nullptr) break;
    const Buffer& to = program.buffer(program.root(copy->destination));
    const Buffer& from = program.buffer(program.root(copy->source));
    const bool takes = to.kind == BufferKind::kResult && from.kind == BufferKind::kParameter &&
                       touched[from.index] == 1 && donated[from.index];
    if (takes) taken[to.index] = from.index;
  }
  return taken;
}

}  // namespace tenon::program
