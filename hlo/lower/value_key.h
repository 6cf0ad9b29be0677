// ValueKey: a value as the key of a hash table.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// The instruction and the index of its result.
using ValueKey = std::pair<const Instruction*, uint32_t>;

struct ValueKeyHash {
  size_t operator()(const ValueKey& key) const {
    return std::hash<const void*>()(key.first) * 31 + key.second;
  }
};

}  // namespace tenon::hlo::lower
