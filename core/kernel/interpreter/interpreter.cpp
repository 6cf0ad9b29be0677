#include "core/kernel/interpreter/interpreter.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/base/random.h"
#include "core/kernel/interpreter/interpreter_memory.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {
namespace {

/// A permutation of 0 … count - 1: i -> a i + b mod count.
class Permutation {
 public:
  Permutation(Order order, int64_t count, uint64_t random) : order_(order), count_(count) {
    if (order != Order::kShuffled || count < 2) return;
    const auto n = static_cast<uint64_t>(count);
    factor_ = 1 + random % n;
    while (std::gcd(factor_, n) != 1) ++factor_;
    shift_ = mix_bits(random) % n;
  }
  int64_t operator()(int64_t i) const {
    if (order_ == Order::kForward || count_ < 2) return i;
    if (order_ == Order::kBackward) return count_ - 1 - i;
    const auto n = static_cast<unsigned __int128>(count_);
    return static_cast<int64_t>((static_cast<unsigned __int128>(i) * factor_ + shift_) % n);
  }

 private:
  Order order_;
  int64_t count_;
  uint64_t factor_ = 1;
  uint64_t shift_ = 0;
};

}  // namespace

class Interpreter::Machine {
 public:
  explicit Machine(const Kernel& kernel)
      : kernel_(has_tiles(kernel) ? expand_tiles(kernel) : kernel),
        registers_(kernel_.values.size()),
        views_(kernel_.memories.size()),
        nodes_(kernel_.blocks.size()) {
    for (ValueId v = 0; v < kernel_.values.size(); ++v) registers_[v] = kernel_.value(v).bits;
    for (BlockId b = 0; b < kernel_.blocks.size(); ++b) {
      for (const NodeId n : kernel_.block(b).nodes) nodes_[b].push_back(short_node(n));
    }
  }

  Status run(std::span<const BufferArgument> buffers, std::span<const uint64_t> scalars,
             const InterpreterOptions& options) {
    options_ = options;
    random_ = mix_bits(options.seed);
    status_ = Status();
    lanes_instance_ = 0;
    lane_ = 0;
    if (options_.watch != nullptr) begin_watch(*options_.watch);
    TENON_TRY(bind(buffers, scalars));
    const int64_t workgroups = element_count(kernel_.grid);
    const Permutation order(options_.order, workgroups, next_random());
    for (int64_t w = 0; w < workgroups; ++w) {
      const int64_t place = order(w);
      workgroup_ = static_cast<uint32_t>(place + 1);
      set_indices(kernel_.block(kernel_.body).arguments, kernel_.grid, place);
      if (!block(kernel_.body) || !keep_going()) return status_;
    }
    if (options_.check && !everything_stored()) return status_;
    return {};
  }

 private:
  // --- Arguments

  Status bind(std::span<const BufferArgument> buffers, std::span<const uint64_t> scalars) {
    if (buffers.size() != kernel_.buffer_count || scalars.size() != kernel_.scalars.size()) {
      return invalid_argument("@{} takes {} buffers and {} scalars, {} and {} given", kernel_.name,
                              kernel_.buffer_count, kernel_.scalars.size(), buffers.size(),
                              scalars.size());
    }
    for (size_t i = 0; i < scalars.size(); ++i) {
      const ValueId scalar = kernel_.scalars[i];
      registers_[scalar] = from_pattern(kernel_.value(scalar).type, scalars[i]);
    }
    storages_.clear();
    for (MemoryId m = 0; m < kernel_.memories.size(); ++m) describe(m);
    for (MemoryId m = 0; m < kernel_.buffer_count; ++m) TENON_TRY(bind_buffer(m, buffers));
    for (auto m = static_cast<MemoryId>(kernel_.buffer_count); m < kernel_.memories.size(); ++m) {
      MemoryBytes& storage = new_storage(m);
      storage.own.resize(static_cast<size_t>(kernel_.memory(m).span()) * views_[m].width);
      storage.data = storage.own.data();
    }
    return {};
  }

  void describe(MemoryId id) {
    const Memory& m = kernel_.memory(id);
    View& view = views_[id];
    view = View();
    view.type = m.type;
    view.width = storage_bytes(m.type);
    view.bits = bit_width(m.type);
    view.packed = m.packed;
    view.dims = m.dims;
    view.strides = m.resolved_strides();
  }

  MemoryBytes& new_storage(MemoryId id) {
    MemoryBytes& storage = *storages_.emplace_back(std::make_unique<MemoryBytes>());
    views_[id].storage = &storage;
    if (!options_.check) return storage;
    const auto count = static_cast<size_t>(kernel_.memory(id).span());
    if (id < kernel_.buffer_count) storage.by_grid.resize(count);
    storage.by_lanes.resize(count);
    storage.stored.resize(count);
    return storage;
  }

  Status bind_buffer(MemoryId id, std::span<const BufferArgument> buffers) {
    const Memory& m = kernel_.memory(id);
    const BufferArgument& given = buffers[id];
    const auto elements = static_cast<size_t>(m.span());
    const size_t needed = m.packed ? (elements * static_cast<size_t>(bit_width(m.type)) + 7) / 8
                                   : elements * storage_bytes(m.type);
    if (given.bytes < needed) {
      return invalid_argument("@{}: %{} needs {} bytes, {} given", kernel_.name, m.name, needed,
                              given.bytes);
    }
    const auto in_place = [&](MemoryId other) {
      return kernel_.memory(other).over == id || m.over == other;
    };
    for (MemoryId other = 0; other < id; ++other) {
      const BufferArgument& before = buffers[other];
      const bool apart = given.data + given.bytes <= before.data ||
                         before.data + before.bytes <= given.data || needed == 0 ||
                         before.bytes == 0;
      const bool reads = m.access == Access::kIn && kernel_.memory(other).access == Access::kIn;
      if (apart || reads) continue;
      if (!in_place(other) || given.data != before.data) {
        return invalid_argument("@{}: K4: %{} and %{} overlap, and are not in place", kernel_.name,
                                kernel_.memory(other).name, m.name);
      }
      views_[id].storage = views_[other].storage;
      views_[id].storage->shared = true;
    }
    if (views_[id].storage == nullptr) new_storage(id).data = given.data;
    return {};
  }

  // --- Errors

  template <class... Args>
  bool fail(NodeId node, fmt::format_string<Args...> format, Args&&... args) {
    if (!status_.ok()) return false;
    status_ = Status(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
    status_ = std::move(status_).at(position_of(kernel_, node));
    status_ = std::move(status_).in_stage("interpret");
    return false;
  }

  std::string element_text(MemoryId m, const ValueId* indices) const {
    std::vector<int64_t> at;
    for (size_t d = 0; d < kernel_.memory(m).dims.size(); ++d) {
      at.push_back(static_cast<int64_t>(registers_[indices[d]]));
    }
    return fmt::format("%{}[{}]", kernel_.memory(m).name, fmt::join(at, ", "));
  }

  bool everything_stored() {
    for (MemoryId m = 0; m < kernel_.buffer_count; ++m) {
      if (kernel_.memory(m).access != Access::kOut) continue;
      const View& view = views_[m];
      Dims at(view.dims.size(), 0);
      const int64_t count = element_count(view.dims);
      for (int64_t i = 0; i < count; ++i) {
        int64_t place = 0;
        for (size_t d = 0; d < at.size(); ++d) place += at[d] * view.strides[d];
        if (view.storage->stored[static_cast<size_t>(place)] == 0) {
          status_ =
              invalid_argument("K2: nothing was stored to %{}[{}], an element of an 'out' buffer",
                               kernel_.memory(m).name, fmt::join(at, ", "))
                  .at({kernel_.name, 1, 0});
          return false;
        }
        for (size_t d = at.size(); d-- > 0;) {
          if (++at[d] < view.dims[d]) break;
          at[d] = 0;
        }
      }
    }
    return true;
  }

  // --- Running

  /// A node in short: long kernels are mostly scalar ops, whose Nodes would not fit the caches.
  struct ShortNode {
    ScalarFunction function = nullptr;  // Null for other nodes.
    std::array<ValueId, 3> operands = {};
    ValueId result = 0;
    NodeId node = 0;
    ElementType type = {};
    ElementType from = {};
  };

  ShortNode short_node(NodeId id) const {
    const Node& node = kernel_.node(id);
    ShortNode made;
    made.node = id;
    if (!is_scalar_op(node.op)) return made;
    const bool stated = scalar_op(node.op).result == ResultType::kStated;
    made.function = scalar_function(node.op, stated ? node.type : node.from);
    made.operands.fill(node.operands[0]);  // A function ignores those that its op does not have.
    std::ranges::copy(node.operands, made.operands.begin());
    made.result = node.results[0];
    made.type = node.type;
    made.from = node.from;
    return made;
  }

  uint64_t next_random() { return random_ = mix_bits(random_); }

  void set_indices(const std::vector<ValueId>& variables, const Dims& extents, int64_t linear) {
    for (size_t d = extents.size(); d-- > 0;) {
      registers_[variables[d]] = static_cast<uint64_t>(linear % extents[d]);
      linear /= extents[d];
    }
  }

  bool block(BlockId id) {
    for (const ShortNode& each : nodes_[id]) {
      if (options_.watch != nullptr) [[unlikely]] {
        last_runs_[each.node] = {workgroup_, lane_, lane_ == 0 ? 0 : lanes_instance_};
      }
      if (each.function != nullptr) {
        const auto& [x, y, z] = each.operands;
        registers_[each.result] =
            each.function(each.type, each.from, registers_[x], registers_[y], registers_[z]);
      } else if (!node(each.node, kernel_.node(each.node))) {
        return false;
      }
    }
    return true;
  }

  /// The operands of the block's yield.
  const std::vector<ValueId>& yielded(BlockId id) const {
    return kernel_.node(kernel_.block(id).nodes.back()).operands;
  }
  using State = std::vector<uint64_t>;

  void assign(const std::vector<ValueId>& to, size_t first, const State& values) {
    for (size_t i = 0; i < values.size(); ++i) registers_[to[first + i]] = values[i];
  }
  // Into memory that is there: a loop allocates once.
  void read(const std::vector<ValueId>& from, size_t first, State& values) const {
    values.resize(from.size() - first);
    for (size_t i = first; i < from.size(); ++i) values[i - first] = registers_[from[i]];
  }
  State read(const std::vector<ValueId>& from, size_t first = 0) const {
    State values;
    read(from, first, values);
    return values;
  }

  bool node(NodeId id, const Node& n) {
    return visit(n, Overloads{
                        [](OnScalar) { return true; },  // Run by block().
                        [&](OnLoad) { return load(id, n); }, [&](OnAccess) { return store(id, n); },
                        [&](OnDeclaration) {
                          ++views_[n.memories[0]].storage->epoch;
                          return true;
                        },
                        [&](OnLanes) { return lanes(n); }, [&](OnFor) { return for_loop(n); },
                        [&](OnWhile) { return while_loop(n); }, [&](OnIf) { return if_else(n); },
                        [&](OnReduce) { return reduce(n); }, [&](OnScan) { return scan(n); },
                        [](OnTile) { return true; },   // Expanded by the constructor.
                        [](OnYield) { return true; },  // Read by its statement.
                    });
  }

  bool if_else(const Node& n) {
    const BlockId taken = n.blocks[registers_[n.operands[0]] != 0 ? 0 : 1];
    if (!block(taken)) return false;
    // One by one: no value of a branch is a result of its `if`.
    for (size_t i = 0; i < n.results.size(); ++i) {
      registers_[n.results[i]] = registers_[yielded(taken)[i]];
    }
    return true;
  }

  // The linear index of the element, or -1 after an error.
  int64_t place_of(NodeId id, const View& view, MemoryId m, const ValueId* indices) {
    int64_t place = 0;
    for (size_t d = 0; d < view.dims.size(); ++d) {
      const auto index = static_cast<int64_t>(registers_[indices[d]]);
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(view.dims[d])) {
        fail(id, "K7: {} is out of range: dimension {} has {} elements", element_text(m, indices),
             d, view.dims[d]);
        return -1;
      }
      place += index * view.strides[d];
    }
    return place;
  }

  bool load(NodeId id, const Node& n) {
    const MemoryId m = n.memories[0];
    const View& view = views_[m];
    const int64_t place = place_of(id, view, m, n.operands.data());
    if (place < 0) return false;
    if (options_.check) {
      const MemoryBytes& storage = *view.storage;
      if (m >= kernel_.buffer_count &&
          storage.stored[static_cast<size_t>(place)] != storage.epoch) {
        return fail(id,
                    "K2: {} is loaded, but nothing has been stored to it in this execution of "
                    "its body",
                    element_text(m, n.operands.data()));
      }
      if (storage.shared && storage.stored[static_cast<size_t>(place)] != 0) {
        return fail(id, "K4: {} is loaded after the buffer in its place was stored to",
                    element_text(m, n.operands.data()));
      }
      if (!touch(id, view, m, place, n.operands.data(), TouchKind::kLoad, 0)) return false;
    }
    registers_[n.results[0]] = view.get(place);
    return true;
  }

  bool store(NodeId id, const Node& n) {
    const MemoryId m = n.memories[0];
    const View& view = views_[m];
    const int64_t place = place_of(id, view, m, n.operands.data() + 1);
    if (place < 0) return false;
    uint64_t value = registers_[n.operands[0]];
    const bool atomic = n.op == OpCode::kAtomic;
    if (options_.check) {
      MemoryBytes& storage = *view.storage;
      if (atomic && m >= kernel_.buffer_count &&
          storage.stored[static_cast<size_t>(place)] != storage.epoch) {
        return fail(id, "K2: an atomic on {}, to which nothing has been stored",
                    element_text(m, n.operands.data() + 1));
      }
      const auto kind = static_cast<uint8_t>(1 + static_cast<int>(n.atomic));
      if (!touch(id, view, m, place, n.operands.data() + 1,
                 atomic ? TouchKind::kAtomic : TouchKind::kStore, kind)) {
        return false;
      }
      storage.stored[static_cast<size_t>(place)] = storage.epoch;
    }
    if (atomic) value = evaluate(combination_of(n.atomic), n.type, n.type, view.get(place), value);
    view.put(place, value);
    if (options_.watch != nullptr) [[unlikely]]
      see_store(id, m, place);
    return true;
  }

  // --- What a watched element was computed from

  // The iteration in which a node ran last. Outside lanes loops, `lane` and `instance` are 0.
  struct NodeRun {
    uint32_t workgroup = 0;
    uint32_t lane = 0;
    uint32_t instance = 0;
  };

  void begin_watch(Watch& watch) {
    watch.was_stored = false;
    watch.store = kNone;
    watch.values.clear();
    watch.ran.clear();
    last_runs_.assign(kernel_.nodes.size(), {});
  }

  void see_store(NodeId id, MemoryId m, int64_t place) {
    Watch& watch = *options_.watch;
    const bool is_it =
        m < kernel_.buffer_count && views_[m].storage == views_[watch.buffer].storage;
    if (!is_it || place != watch.element) return;
    watch.was_stored = true;
    watch.store = id;
    watch.values = registers_;
    watch.ran.assign(kernel_.nodes.size(), false);
    for (NodeId n = 0; n < kernel_.nodes.size(); ++n) {
      const NodeRun& run = last_runs_[n];
      const bool is_ours = run.lane == 0 || (run.lane == lane_ && run.instance == lanes_instance_);
      watch.ran[n] = run.workgroup == workgroup_ && is_ours;
    }
  }

  bool touch(NodeId id, const View& view, MemoryId m, int64_t place, const ValueId* indices,
             TouchKind kind, uint8_t atomic) {
    MemoryBytes& storage = *view.storage;
    AccessConflict conflict = AccessConflict::kNoConflict;
    std::string_view loop = "the lanes loop";
    if (lane_ != 0) {
      conflict = record(storage.by_lanes[static_cast<size_t>(place)], lanes_instance_, lane_, kind,
                        atomic);
    }
    if (conflict == AccessConflict::kNoConflict && m < kernel_.buffer_count) {
      loop = "the grid";
      conflict = record(storage.by_grid[static_cast<size_t>(place)], 1, workgroup_, kind, atomic);
    }
    if (conflict == AccessConflict::kNoConflict) return true;
    if (conflict == AccessConflict::kAtomicMix) {
      return fail(id, "K6: {} is touched both by one kind of atomic and otherwise within {}",
                  element_text(m, indices), loop);
    }
    return fail(id, "{}: {} is {} by one iteration of {} and touched by another",
                storage.shared ? "K4" : "K3", element_text(m, indices),
                kind == TouchKind::kLoad ? "stored to" : "stored to here", loop);
  }

  // --- Loops

  bool keep_going() {
    if ((++ticks_ & 0xFFFF) != 0 || !options_.cancelled || !options_.cancelled()) return true;
    status_ = Status(ErrorCode::kCancelled, "cancelled");
    return false;
  }

  bool lanes(const Node& n) {
    const int64_t count = element_count(n.extents);
    const Permutation order(options_.order, count, next_random());
    ++lanes_instance_;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = order(i);
      lane_ = static_cast<uint32_t>(place + 1);
      set_indices(kernel_.block(n.blocks[0]).arguments, n.extents, place);
      if (!block(n.blocks[0]) || !keep_going()) return false;
    }
    lane_ = 0;
    return true;
  }

  bool for_loop(const Node& n) {
    const auto low = static_cast<int64_t>(registers_[n.operands[0]]);
    const auto high = static_cast<int64_t>(registers_[n.operands[1]]);
    const std::vector<ValueId>& arguments = kernel_.block(n.blocks[0]).arguments;
    std::vector<uint64_t> state = read(n.operands, 2);
    for (int64_t k = low; k < high; k += n.extents[0]) {
      registers_[arguments[0]] = static_cast<uint64_t>(k);
      assign(arguments, 1, state);
      if (!block(n.blocks[0]) || !keep_going()) return false;
      read(yielded(n.blocks[0]), 0, state);
      if (k > high - n.extents[0]) break;  // k + step may wrap
    }
    assign(n.results, 0, state);
    return true;
  }

  bool while_loop(const Node& n) {
    std::vector<uint64_t> state = read(n.operands);
    while (true) {
      assign(kernel_.block(n.blocks[0]).arguments, 0, state);
      if (!block(n.blocks[0]) || !keep_going()) return false;
      if (registers_[yielded(n.blocks[0])[0]] == 0) break;
      assign(kernel_.block(n.blocks[1]).arguments, 0, state);
      if (!block(n.blocks[1])) return false;
      read(yielded(n.blocks[1]), 0, state);
    }
    assign(n.results, 0, state);
    return true;
  }

  // --- Reductions

  bool leaf(const Node& n, int64_t linear, State& out) {
    set_indices(kernel_.block(n.blocks[0]).arguments, n.extents, linear);
    if (!block(n.blocks[0]) || !keep_going()) return false;
    read(yielded(n.blocks[0]), 0, out);
    return true;
  }
  bool combine(const Node& n, const State& left, const State& right, State& out) {
    const std::vector<ValueId>& arguments = kernel_.block(n.blocks[1]).arguments;
    assign(arguments, 0, left);
    assign(arguments, left.size(), right);
    if (!block(n.blocks[1])) return false;
    read(yielded(n.blocks[1]), 0, out);
    return true;
  }

  bool reduce(const Node& n) {
    const int64_t count = element_count(n.extents);
    const State init = read(n.operands);
    State state = init;
    State next;
    if (options_.order == Order::kShuffled && count > 0) {
      const Permutation order(n.commutative ? Order::kShuffled : Order::kForward, count,
                              next_random());
      if (!tree(n, order, 0, count, next) || !combine(n, init, next, state)) return false;
    } else if (options_.order == Order::kBackward && count > 0) {
      if (!leaf(n, count - 1, state)) return false;
      for (int64_t i = count - 1; i-- > 0;) {
        if (!leaf(n, i, next) || !combine(n, next, state, state)) return false;
      }
      if (!combine(n, init, state, state)) return false;
    } else {
      for (int64_t i = 0; i < count; ++i) {
        if (!leaf(n, i, next) || !combine(n, state, next, state)) return false;
      }
    }
    assign(n.results, 0, state);
    return true;
  }

  // Combines leaves [low, high) of the order; splits them somewhere in their middle half.
  bool tree(const Node& n, const Permutation& order, int64_t low, int64_t high, State& out) {
    if (high - low == 1) return leaf(n, order(low), out);
    const int64_t quarter = (high - low) / 4;
    const auto spread = static_cast<uint64_t>(high - low - 2 * quarter);
    const int64_t middle = std::clamp<int64_t>(
        low + quarter + static_cast<int64_t>(next_random() % spread), low + 1, high - 1);
    State left;
    State right;
    return tree(n, order, low, middle, left) && tree(n, order, middle, high, right) &&
           combine(n, left, right, out);
  }

  bool scan(const Node& n) {
    const int64_t count = n.extents[0];
    const bool own_lanes = n.over_lanes && lane_ == 0;
    if (own_lanes) ++lanes_instance_;
    const auto enter = [&](int64_t i) {
      if (own_lanes) lane_ = static_cast<uint32_t>(i + 1);
    };
    State state = read(n.operands);
    std::vector<State> prefixes;
    State next;
    State part;
    // Shuffled: combines runs of leaves first, then the leaves before them.
    int64_t run_end = 0;
    State before = state;
    for (int64_t i = 0; i < count; ++i) {
      enter(i);
      if (!leaf(n, i, next)) return false;
      if (options_.order != Order::kShuffled) {
        if (!combine(n, state, next, state)) return false;
      } else if (i == run_end) {
        before = state;
        part = next;
        run_end = i + 1 + static_cast<int64_t>(next_random() % 7);
        if (!combine(n, before, part, state)) return false;
      } else if (!combine(n, part, next, part) || !combine(n, before, part, state)) {
        return false;
      }
      // A serial scan is a loop: iteration i runs leaf i, its combination, and each i.
      if (options_.order == Order::kForward || !n.over_lanes) {
        if (!each(n, i, state)) return false;
      } else {
        prefixes.push_back(state);
      }
    }
    const Permutation order(options_.order, count, next_random());
    for (int64_t i = 0; i < static_cast<int64_t>(prefixes.size()); ++i) {
      enter(order(i));
      if (!each(n, order(i), prefixes[static_cast<size_t>(order(i))])) return false;
    }
    if (own_lanes) lane_ = 0;
    assign(n.results, 0, state);
    return true;
  }
  bool each(const Node& n, int64_t index, const State& prefix) {
    const std::vector<ValueId>& arguments = kernel_.block(n.blocks[2]).arguments;
    registers_[arguments[0]] = static_cast<uint64_t>(index);
    assign(arguments, 1, prefix);
    return block(n.blocks[2]);
  }

  Kernel kernel_;
  std::vector<uint64_t> registers_;
  std::vector<View> views_;
  std::vector<std::vector<ShortNode>> nodes_;  // By BlockId.
  std::vector<std::unique_ptr<MemoryBytes>> storages_;
  InterpreterOptions options_;
  Status status_;
  uint64_t random_ = 0;
  uint64_t ticks_ = 0;
  uint32_t workgroup_ = 0;
  uint32_t lane_ = 0;  // 0 outside lanes loops.
  uint32_t lanes_instance_ = 0;
  std::vector<NodeRun> last_runs_;  // By NodeId, while an element is watched.
};

Interpreter::Interpreter(const Kernel& kernel) : machine_(std::make_unique<Machine>(kernel)) {}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

Status Interpreter::run(std::span<const BufferArgument> buffers, std::span<const uint64_t> scalars,
                        const InterpreterOptions& options) {
  return machine_->run(buffers, scalars, options);
}

}  // namespace tenon::kernel
