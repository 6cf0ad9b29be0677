#include "core/kernel/analysis/in_place.h"

#include <algorithm>

#include "core/kernel/ir/visitor.h"

namespace tenon::kernel {

InPlacePairs::InPlacePairs(const Kernel& kernel)
    : kernel_(kernel), of_(kernel.buffer_count), parents_(kernel.blocks.size(), kNone) {
  walk(kernel.body, false);
  number_layouts();
  for (MemoryId m = 0; m < kernel.buffer_count; ++m) {
    const BufferAccesses& of = of_[m];
    if (kernel.memory(m).access != Access::kIn || of.otherwise) continue;
    const bool loaded = !of.loads.empty();
    inputs_[{of.layout, loaded, loaded ? of.loads[0].place : std::vector<ValueId>()}].push_back(m);
  }
  for (auto& [key, inputs] : inputs_) {
    std::ranges::stable_sort(inputs, {}, [&](MemoryId m) { return last_load(m); });
  }
}

// 0 for an input that is never loaded.
size_t InPlacePairs::last_load(MemoryId input) const {
  const std::vector<BufferAccess>& loads = of_[input].loads;
  return loads.empty() ? 0 : loads.back().order;
}

void InPlacePairs::walk(BlockId block, bool repeated) {
  for (const NodeId id : kernel_.block(block).nodes) {
    const Node& node = kernel_.node(id);
    for (const MemoryId memory : node.memories) {
      if (memory < kernel_.buffer_count) touch(node, memory, block, repeated);
    }
    const bool once = is<OnLanes, OnIf>(node.op);
    for (const BlockId inner : node.blocks) {
      parents_[inner] = block;
      walk(inner, repeated || !once);
    }
  }
}

void InPlacePairs::touch(const Node& node, MemoryId memory, BlockId block, bool repeated) {
  BufferAccesses& of = of_[memory];
  if (!is<OnLoad, OnStore>(node.op)) {
    of.otherwise = true;
    return;
  }
  BufferAccess access{order_++, block, repeated, {}};
  for (const ValueId index : indices_of(node)) {
    const Value& value = kernel_.value(index);
    // Equal constants are the same index.
    const bool constant = kernel_.is_constant(index);
    access.place.push_back(
        constant ? constants_.try_emplace({value.type, value.bits}, index).first->second : index);
  }
  (node.op == OpCode::kLoad ? of.loads : of.stores).push_back(std::move(access));
}

void InPlacePairs::number_layouts() {
  std::map<std::tuple<ElementType, Dims, Dims, bool>, size_t> numbers;
  std::vector<size_t> outputs;  // By layout.
  for (MemoryId m = 0; m < kernel_.buffer_count; ++m) {
    const Memory& memory = kernel_.memory(m);
    const auto layout =
        std::tuple(memory.type, memory.dims, memory.resolved_strides(), memory.packed);
    of_[m].layout = numbers.try_emplace(layout, numbers.size()).first->second;
    outputs.resize(numbers.size());
    if (memory.access == Access::kOut) of_[m].rank = outputs[of_[m].layout]++;
  }
}

bool InPlacePairs::contains(MemoryId out, MemoryId in) const {
  const Memory& over = kernel_.memory(out);
  const Memory& under = kernel_.memory(in);
  const BufferAccesses& written = of_[out];
  const BufferAccesses& read = of_[in];
  // A buffer can only be over an earlier one.
  const bool alike = in < out && over.access == Access::kOut && under.access == Access::kIn &&
                     written.layout == read.layout && !under.packed;
  if (!alike || written.otherwise || read.otherwise) return false;
  const auto once_behind_loads = [&](const BufferAccess& store) {
    work_ += static_cast<int64_t>(read.loads.size());
    return !store.repeated && std::ranges::all_of(read.loads, [&](const BufferAccess& load) {
      return load.order < store.order && is_within(load.block, store.block);
    });
  };
  const auto is_stored_to = [&](const BufferAccess& load) {
    work_ += static_cast<int64_t>(written.stores.size());
    return std::ranges::find(written.stores, load.place, &BufferAccess::place) !=
           written.stores.end();
  };
  return std::ranges::all_of(written.stores, once_behind_loads) &&
         std::ranges::all_of(read.loads, is_stored_to);
}

// Whether `block` is `outer` or is nested in it.
bool InPlacePairs::is_within(BlockId block, BlockId outer) const {
  while (block != outer && block != kNone) block = parents_[block];
  return block == outer;
}

// Adds pairs with at most kMostInputs of the key's inputs that are loaded before `before`.
void InPlacePairs::collect(const Key& key, MemoryId out, size_t before,
                           std::vector<MemoryId>& found) const {
  const auto inputs = inputs_.find(key);
  if (inputs == inputs_.end()) return;
  const std::vector<MemoryId>& all = inputs->second;
  const auto behind =
      std::ranges::lower_bound(all, before, {}, [&](MemoryId m) { return last_load(m); });
  const auto count = static_cast<size_t>(behind - all.begin());
  const size_t half = kMostInputs / 2;
  const size_t wanted = of_[out].rank < half ? 0 : of_[out].rank - half;
  const size_t first = count <= kMostInputs ? 0 : std::min(wanted, count - kMostInputs);
  for (size_t i = first; i < std::min(count, first + kMostInputs); ++i) {
    if (contains(out, all[i])) found.push_back(all[i]);
  }
}

std::vector<MemoryId> InPlacePairs::inputs_of(MemoryId out) const {
  const BufferAccesses& written = of_[out];
  std::vector<MemoryId> found;
  if (kernel_.memory(out).access != Access::kOut || written.otherwise) return found;
  collect({written.layout, false, {}}, out, order_, found);
  for (const BufferAccess& store : written.stores) {
    collect({written.layout, true, store.place}, out, store.order, found);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

}  // namespace tenon::kernel
