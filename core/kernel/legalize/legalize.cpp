#include "core/kernel/legalize/legalize.h"

#include <algorithm>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/text/text.h"
#include "core/kernel/transform/simplify.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

/// Types that every target can load, store and convert to and from 32 bits.
bool is_moved(ElementType type) {
  return type == kS8 || type == kU8 || type == kS16 || type == kU16;
}

std::string reason(const Kernel& kernel, const Node& n, const TargetFeatures& features) {
  const auto absent = [&](ElementType type) { return !features.computes(type); };
  for (const MemoryId m : n.memories) {
    const Memory& memory = kernel.memory(m);
    if (memory.packed) return fmt::format("%{} is packed", memory.name);
    if (!features.dimensions && memory.dims.size() != 1) {
      return fmt::format("%{} has {} dimensions", memory.name, memory.dims.size());
    }
    if (memory.space == Space::kPrivate && !features.private_memory) {
      return fmt::format("%{} is private", memory.name);
    }
    if (memory.space == Space::kScratch && !features.scratch) {
      return fmt::format("%{} is scratch memory", memory.name);
    }
  }
  switch (n.op) {
    case OpCode::kLoad:
    case OpCode::kStore:
      return absent(n.type) && !is_moved(n.type) ? fmt::format("it moves {}", name_of(n.type)) : "";
    case OpCode::kConvert:
    case OpCode::kBitcast: {
      const ElementType from = kernel.value(n.operands[0]).type;
      const bool with = n.op == OpCode::kConvert ? from == kF32 || n.type == kF32
                                                 : from == kU16 || n.type == kU16;
      if (with && (features.converts(from) || features.converts(n.type))) return "";
      for (const ElementType type : {from, n.type}) {
        if (absent(type) && !is_moved(type)) return fmt::format("it is of {}", name_of(type));
      }
      return absent(from) && absent(n.type) ? "neither type is computed with" : "";
    }
    case OpCode::kCopy:
    case OpCode::kContract:
      return features.tiles ? "" : "tile statements are not there";
    case OpCode::kReduce:
      if (n.over_lanes && !features.scratch) return "lanes share it";
      break;
    case OpCode::kScan:
      return features.scans ? "" : "scans are not there";
    case OpCode::kAtomic:
      return features.has_atomics(n.type) ? "" : "atomics are not there";
    default:
      break;
  }
  if (is_scalar_op(n.op) && is_math(n.op) && !features.has_math(n.op, n.type)) {
    return features.math ? fmt::format("{} of {} is not there", op_name(n.op), name_of(n.type))
                         : "math functions are not there";
  }
  if (n.op == OpCode::kFma && !features.fma) return "fma is not there";
  for (const std::vector<ValueId>* values : {&n.operands, &n.results}) {
    for (const ValueId value : *values) {
      const ElementType type = kernel.value(value).type;
      if (absent(type)) return fmt::format("a value is of {}", name_of(type));
    }
  }
  return "";
}

Status check_form(const TargetFeatures& features) {
  for (const ElementType type : {kF32, kS32, kU32}) {
    if (!features.computes(type))
      return invalid_argument("a target computes with {}", name_of(type));
  }
  for (const ElementType type : {kS2, kS4, kU2, kU4, kF4E2M1FN, kF6E2M3FN, kF6E3M2FN}) {
    if (features.computes(type)) {
      return invalid_argument(
          "no target computes with {}: elements of less than 8 bits are unpacked", name_of(type));
    }
  }
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (features.converts(type) && type != kF16 && type != kBF16) {
      return invalid_argument("no target converts {} alone: only f16 and bf16", name_of(type));
    }
  }
  if (features.computes(kS64) != features.computes(kU64)) {
    return invalid_argument("a target computes with both s64 and u64, or neither");
  }
  if (features.computes(kF64) && !features.computes(kS64)) {
    return invalid_argument("a target that computes with f64 does so with s64 and u64");
  }
  return {};
}

bool lacks_atomics(const Kernel& kernel, const TargetFeatures& features) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const Node& n) {
    return n.op == OpCode::kAtomic && !features.has_atomics(n.type);
  });
}

Status check_scratch(const Kernel& kernel, const TargetFeatures& features) {
  const auto found = std::ranges::find(kernel.memories, Space::kScratch, &Memory::space);
  if (features.scratch || found == kernel.memories.end()) return {};
  return unimplemented("@{}: %{} is scratch memory, which the target does not have", kernel.name,
                       found->name);
}

/// Serial loops must have bounds of the index type.
Status check_loops(const Kernel& kernel, const TargetFeatures& features) {
  if (kernel.index_type == kS64 || (features.scans && !lacks_atomics(kernel, features))) return {};
  const auto check = [&](const Dims& extents) {
    const bool fit =
        std::all_of(extents.begin(), extents.end(), [](int64_t e) { return e >> 31 == 0; });
    return fit ? Status()
               : unimplemented("@{}: a loop of 2^31 iterations, indices of s32", kernel.name);
  };
  TENON_TRY(check(kernel.grid));
  for (const Node& n : kernel.nodes) {
    if (is<OnScan, OnLanes>(n.op)) TENON_TRY(check(n.extents));
  }
  return {};
}

/// Tile statements stay if none of the memories that they access will be replaced.
bool keeps_tiles(const Kernel& kernel, const TargetFeatures& features) {
  const auto stays = [&](MemoryId id) {
    const Memory& m = kernel.memory(id);
    return features.computes(m.type) && (m.space != Space::kPrivate || features.private_memory);
  };
  return features.tiles && features.dimensions && !lacks_atomics(kernel, features) &&
         std::all_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const Node& n) {
           const bool tile = is<OnTile>(n.op);
           return !tile || std::all_of(n.memories.begin(), n.memories.end(), stays);
         });
}

}  // namespace

TargetFeatures TargetFeatures::least() {
  TargetFeatures features;
  features.fma = false;
  features.dimensions = false;
  return features;
}

Result<TargetFeatures> TargetFeatures::parse(std::string_view text) {
  TargetFeatures features = least();
  const std::pair<std::string_view, bool TargetFeatures::*> members[] = {
      {"math", &TargetFeatures::math},
      {"fma", &TargetFeatures::fma},
      {"tiles", &TargetFeatures::tiles},
      {"scans", &TargetFeatures::scans},
      {"private_memory", &TargetFeatures::private_memory},
      {"dimensions", &TargetFeatures::dimensions}};
  bool atomics = false;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (const auto type = element_type_from_name(word); type && !is_complex(*type)) {
      features.computed.insert(*type);
      continue;
    }
    if (word == "convert_f16" || word == "convert_bf16") {
      features.converted.insert(word == "convert_f16" ? kF16 : kBF16);
      continue;
    }
    if (word == "atomics" || word == "no_scratch") {
      atomics |= word == "atomics";
      features.scratch &= word == "atomics";
      continue;
    }
    const auto member = std::find_if(std::begin(members), std::end(members),
                                     [&](const auto& m) { return m.first == word; });
    if (member != std::end(members)) {
      features.*member->second = true;
    } else if (word != "least") {
      return invalid_argument(
          "'{}' is not a feature of targets; there are element types, math, fma, tiles, scans, "
          "private_memory, atomics, dimensions, no_scratch, convert_f16, convert_bf16, and least",
          word);
    }
  }
  for (size_t t = 0; atomics && t < kElementTypeCount; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (is_integer(type) && features.computes(type)) features.atomics.insert(type);
  }
  return features;
}

Status check_legal(const Kernel& kernel, const TargetFeatures& features) {
  for (NodeId id = 0; id < kernel.nodes.size(); ++id) {
    const std::string why = reason(kernel, kernel.node(id), features);
    if (why.empty()) continue;
    return Status(invalid_argument("@{}: {} is not legal for the target: {}", kernel.name,
                                   op_name(kernel.node(id).op), why))
        .at(position_of(kernel, id));
  }
  return {};
}

Result<Kernel> legalize(const Kernel& kernel, const TargetFeatures& features) {
  TENON_TRY(check_form(features));
  if (!features.computes(kernel.index_type)) {
    return unimplemented("@{}: its indices are of {}, which the target does not compute with",
                         kernel.name, name_of(kernel.index_type));
  }
  for (const ValueId scalar : kernel.scalars) {
    const ElementType type = kernel.value(scalar).type;
    if (features.computes(type)) continue;
    return unimplemented("@{}: a scalar parameter is of {}, which the target does not compute with",
                         kernel.name, name_of(type));
  }
  TENON_TRY(check_loops(kernel, features));
  // If a target has tiles, its private memory need not be registers.
  const bool registers = features.private_memory && !features.tiles;
  const bool keeps = !has_tiles(kernel) || keeps_tiles(kernel, features);
  Kernel legal = keeps ? expand_structure(kernel, features)
                       : expand_structure(expand_tiles(kernel, registers), features);
  TENON_TRY(check_scratch(legal, features));
  legal = widen_floats(std::move(legal), features);
  legal = expand_functions(std::move(legal), features);
  if (!features.computes(kF64)) legal = soften_f64(std::move(legal));
  if (!features.computes(kS64) || !features.computes(kU64)) legal = split_integers(simplify(legal));
  legal = widen_integers(std::move(legal), features);
  if (!features.dimensions) {
    TENON_ASSIGN(legal, flatten(legal));
  }
  legal = simplify(legal);
  TENON_TRY(check_legal(legal, features));
  TENON_TRY(verify(legal));
  return legal;
}

}  // namespace tenon::kernel
