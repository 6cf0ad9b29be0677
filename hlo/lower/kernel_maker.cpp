#include "hlo/lower/kernel_maker.h"

#include <algorithm>
#include <cctype>

#include "core/kernel/transform/rewriter.h"
#include "core/kernel/transform/simplify.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

// Removes the buffers that no node accesses.
class BufferDropper : public kernel::Rewriter {
 public:
  explicit BufferDropper(const kernel::Kernel& kernel)
      : Rewriter(kernel), used_(kernel.memories.size()) {
    for (const kernel::Block& block : kernel.blocks) {
      for (const kernel::NodeId n : block.nodes) {
        for (const kernel::MemoryId m : kernel.node(n).memories) used_[m] = true;
      }
    }
  }
  const std::vector<bool>& used() const { return used_; }

 private:
  bool keeps(kernel::MemoryId buffer) const override { return used_[buffer]; }
  std::vector<bool> used_;
};

}  // namespace

std::string kernel_name(const Instruction& op) {
  const bool fusion = op.code() == OpCode::kFusion;
  std::string name(fusion ? op.text(AttrKey::fusion_kind) : op.info().short_name());
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name.empty() ? "fusion" : name;
}

namespace {

// A readable name for a fusion: the first ops that compute, each once, and the number of the
// others.
std::string names_within(const Instruction& fusion) {
  constexpr size_t kMost = 4;
  std::vector<std::string_view> names;
  for (const Instruction& op : fusion.region(0)) {
    const bool moves = op.info().category == Category::kShape || op.code() == OpCode::kConstant ||
                       op.code() == OpCode::kReturn;
    if (!moves && std::ranges::find(names, op.name()) == names.end()) names.push_back(op.name());
  }
  if (names.empty()) return std::string(fusion.name());
  const size_t shown = std::min(names.size(), kMost);
  const std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), " + "));
  return shown == names.size() ? text : fmt::format("{} + {} more", text, names.size() - shown);
}

}  // namespace

std::string label_of(const Instruction& op) {
  std::string name = op.code() == OpCode::kFusion ? names_within(op) : std::string(op.name());
  const SourcePosition at = position_of(op.location());
  if (!at.known()) return name;
  return fmt::format("{} at {}:{}:{}", name, at.file, at.line, at.column);
}

KernelMaker::KernelMaker(const Instruction& op, const LoweredOp& lowered, std::string name,
                         ElementType index_type)
    : op_(op), lowered_(lowered), builder_(std::move(name), index_type), emitter_(builder_) {
  builder_.set_label(label_of(op));
  if (op.code() == OpCode::kFusion) emitter_.enter(op);
}

kernel::MemoryId KernelMaker::add(BufferRef::BufferRefKind kind, uint32_t index, std::string name,
                                  const Type& type, kernel::Access access) {
  buffers_.push_back({kind, index});
  return builder_.buffer(std::move(name), memory_type(type), memory_dims(type), access);
}

void KernelMaker::inputs() {
  for (uint32_t i = 0; i < lowered_.inputs.size(); ++i) input(i);
}

kernel::MemoryId KernelMaker::input(uint32_t index) {
  const Value value = lowered_.inputs[index];
  const kernel::MemoryId memory = add(BufferRef::BufferRefKind::kInput, index,
                                      fmt::format("x{}", index), value.type(), kernel::Access::kIn);
  emitter_.bind(value, memory);
  return memory;
}

kernel::MemoryId KernelMaker::reshaped_input(Value value, const Dims& dims) {
  const auto found = std::ranges::find(lowered_.inputs, value);
  const std::vector<Value> operands = op_.operands();
  if (found == lowered_.inputs.end() || std::ranges::count(operands, value) != 1) {
    return kernel::kNone;
  }
  const auto index = static_cast<uint32_t>(found - lowered_.inputs.begin());
  return add(BufferRef::BufferRefKind::kInput, index, fmt::format("x{}_reshaped", index),
             Type::tensor(value.type().element_type(), dims), kernel::Access::kIn);
}

kernel::MemoryId KernelMaker::result(uint32_t index, kernel::Access access) {
  const std::string name = op_.result_count() == 1 ? "y" : fmt::format("y{}", index);
  return add(BufferRef::BufferRefKind::kResult, index, name, op_.result_type(index), access);
}

kernel::MemoryId KernelMaker::temporary(uint32_t index, kernel::Access access) {
  return add(BufferRef::BufferRefKind::kTemporary, index, fmt::format("t{}", index),
             Type(lowered_.temporaries[index]), access);
}

kernel::MemoryId KernelMaker::constant(uint32_t index) {
  return add(BufferRef::BufferRefKind::kConstant, index, fmt::format("c{}", index),
             Type(lowered_.constants[index].shape()), kernel::Access::kIn);
}

Status add_kernel(LoweredOp& lowered, const Instruction& op, std::string_view suffix,
                  const std::function<void(KernelMaker&)>& body, std::vector<uint64_t> scalars) {
  TENON_ASSIGN(const bool taken, try_kernel(lowered, op, suffix, body, std::move(scalars)));
  if (taken) return {};
  return Status(ErrorCode::kResourceExhausted,
                fmt::format("the kernel of {} has loops or memory beyond the limits of kernels",
                            label_of(op)));
}

namespace {

// Whether an array is so large that a number computed from its indices may not fit s32, even if it
// is not in memory.
bool is_far(const Type& type) {
  constexpr int64_t kNear = INT32_MAX - (int64_t{1} << 20);  // Loops may count up to a whole tile.
  return type.is_tensor() && type.shape().is_static() && element_count(type.dims()) > kNear;
}
bool has_far(const Instruction& op) {
  const auto far = [](Value value) { return is_far(value.type()); };
  return std::ranges::any_of(op.operands(), far) || std::ranges::any_of(op.result_types(), is_far);
}
bool reaches_far(const Instruction& op) {
  if (has_far(op)) return true;
  for (size_t i = 0; i < op.region_count(); ++i) {
    if (any_instruction(op.region(i), has_far)) return true;
  }
  return false;
}

}  // namespace

Taken try_kernel(LoweredOp& lowered, const Instruction& op, std::string_view suffix,
                 const std::function<void(KernelMaker&)>& body, std::vector<uint64_t> scalars) {
  for (const ElementType index_type : {ElementType::kS32, ElementType::kS64}) {
    if (index_type == ElementType::kS32 && reaches_far(op)) continue;
    KernelMaker maker(op, lowered, kernel_name(op) + std::string(suffix), index_type);
    body(maker);
    TENON_TRY(Status(maker.e().status()));
    if (maker.e().strayed()) return false;
    if (!maker.b().index_fits() && index_type == ElementType::kS32) continue;
    const kernel::Kernel whole = kernel::simplify(maker.b().finish());
    BufferDropper dropper(whole);
    kernel::Kernel kernel = dropper.run();
    if (const auto violation = kernel::find_violation(kernel)) {
      // The indices do not provably fit 32 bits.
      if (violation->rule == kernel::KernelRule::kK10 && index_type == ElementType::kS32) continue;
      if (violation->status.code() == ErrorCode::kResourceExhausted) return false;
      return internal_error("the kernel of {} breaks a rule: {}", label_of(op),
                            violation->status.message());
    }
    LoweredLaunch launch;
    for (size_t i = 0; i < maker.buffers().size(); ++i) {
      if (dropper.used()[i]) launch.buffers.push_back(maker.buffers()[i]);
    }
    launch.kernel = std::move(kernel);
    launch.scalars = std::move(scalars);
    lowered.launches.push_back(std::move(launch));
    return true;
  }
  return internal_error("the kernel of {} does not fit indices of 64 bits", label_of(op));
}

Status begin_as(LoweredOp& lowered, const Instruction& op, uint32_t r, Value value,
                TuningParameters& tuning) {
  const auto known = std::ranges::find(lowered.inputs, value);
  if (known != lowered.inputs.end()) {
    lowered.copies.emplace_back(r, static_cast<uint32_t>(known - lowered.inputs.begin()));
    return {};
  }
  return add_kernel(lowered, op, "_begin", [&](KernelMaker& maker) {
    maker.inputs();
    const kernel::MemoryId result = maker.result(r);
    for_each_index(maker.b(), value.type().dims(), tuning, [&](const Values& index) {
      maker.e().store(maker.e().element(value, index), result, index);
    });
  });
}

ValueId is_inside(Builder& b, const std::vector<TilePlace>& places) {
  ValueId inside = b.pred(true);
  for (const TilePlace& p : places) {
    if (p.size % p.tile == 0) continue;
    inside = b.logical_and(inside, b.compare(K::kLt, p.index, b.index(p.size)));
  }
  return inside;
}

void if_inside(Builder& b, const std::vector<TilePlace>& places,
               const std::function<void()>& body) {
  const ValueId inside = is_inside(b, places);
  if (is_true(b, inside)) return body();
  b.if_then(inside, body);
}

void if_whole(Builder& b, const std::vector<TilePlace>& places, const std::function<void()>& whole,
              const std::function<void()>& part) {
  ValueId is_whole = b.pred(true);
  for (const TilePlace& p : places) {
    if (p.size % p.tile == 0) continue;
    if (p.size < p.tile) return part();
    is_whole = b.logical_and(is_whole, b.compare(K::kLe, p.index, b.index(p.size - p.tile)));
  }
  if (is_true(b, is_whole)) return whole();
  const auto without_results = [](const std::function<void()>& body) {
    return [&body] {
      body();
      return Values();
    };
  };
  b.if_else(is_whole, without_results(whole), without_results(part));
}

namespace {

// So many rows that those of a few elements fill whole vectors.
int64_t lanes_of_rows(int64_t rows, int64_t elements) {
  constexpr int64_t kFewElements = 32;
  constexpr int64_t kTogether = 16;  // The elements of a vector.
  if (elements < 2 || elements > kFewElements || rows < kTogether / 4) return rows;
  return std::max(rows / kTogether, int64_t{1}) * kTogether;
}

}  // namespace

void for_each_index(Builder& b, const Dims& dims, TuningParameters& tuning,
                    const std::function<void(const Values&)>& body, Boxes boxes) {
  // Each workgroup has a box of indices with about the requested number of lanes, filled from the
  // minor dimensions.
  int64_t rest = tuning.choose(parameters::kLanes, CostModel().lanes);
  Dims tile(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 0 && rest > 1;) {
    tile[d] = std::min(
        dims[d],
        lanes_of_rows(rest, element_count(Dims(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1,
                                               dims.end()))));
    rest = tile[d] == dims[d] ? rest / dims[d] : 1;
  }
  Dims grid(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) grid[d] = tiles_of(dims[d], tile[d]);
  const Values groups = b.grid(grid);
  if (dims.empty()) return body({});
  Values first;
  std::vector<TilePlace> begin;
  for (size_t d = 0; d < dims.size(); ++d) {
    first.push_back(b.mul(groups[d], b.index(tile[d])));
    begin.push_back({first[d], dims[d], tile[d]});
  }
  const auto all = [&](bool checks) {
    b.lanes(tile, [&](const Values& lanes) {
      Values index(dims.size());
      std::vector<TilePlace> places;
      for (size_t d = 0; d < dims.size(); ++d) {
        index[d] = b.add(first[d], lanes[d]);
        if (checks) places.push_back({index[d], dims[d], tile[d]});
      }
      if_inside(b, places, [&] { body(index); });
    });
  };
  if (boxes == Boxes::kAll) return all(true);
  if_whole(b, begin, [&] { all(false); }, [&] { all(true); });
}

}  // namespace tenon::hlo::lower
