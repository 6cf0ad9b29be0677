// Reductions: one leaf after the other, or vectors of leaves whose lanes are combined at the end.
#include "backends/cpu/emitter.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::ValueId;

namespace {

constexpr int64_t kAccumulators = 4;    // Whose additions overlap.
constexpr size_t kMostLeafNodes = 100;  // For more than one.

}  // namespace

void Emitter::reduce(const Node& n) {
  if (width_ == 1 && reduce_by_vectors(n)) return;
  reduce_by_one(n);
}

Emitter::Many Emitter::combine(const Node& n, const Many& left, const Many& right) {
  Many both = left;
  both.insert(both.end(), right.begin(), right.end());
  set(kernel_.block(n.blocks[1]).arguments, both);
  return block(n.blocks[1]);
}

void Emitter::reduce_by_one(const Node& n) {
  const Ids& indices = kernel_.block(n.blocks[0]).arguments;
  const std::function<Many(size_t, const Many&)> nested = [&](size_t d, const Many& carried) {
    if (d == n.extents.size()) return combine(n, carried, block(n.blocks[0]));
    return loop(number(0), number(n.extents[d]), 1, n.results, carried,
                [&](Value* i, const Many& inner) {
                  values_[indices[d]] = index_from(i);
                  return nested(d + 1, inner);
                });
  };
  set(n.results, nested(0, get(n.operands)));
}

Emitter::Many Emitter::neutral(const Node& n) {
  const kernel::Block& combination = kernel_.block(n.blocks[1]);
  Many list;
  for (const NodeId id : combination.nodes) {
    const Node& node = kernel_.node(id);
    const bool plain = n.results.size() == 1 && combination.nodes.size() == 2;
    llvm::Constant* const one =
        plain && is_scalar_op(node.op) && !is_pred(kernel_.value(n.results[0]).type)
            ? codegen::identity_of(context_, node.op, kernel_.value(n.results[0]).type)
            : nullptr;
    if (one != nullptr) {
      list.push_back({nullptr, b_.CreateVectorSplat(static_cast<unsigned>(width_), one), 0});
    }
  }
  return list;
}

Emitter::Many Emitter::horizontal(const Node& n, Many vectors) {
  const int64_t whole = width_;
  while (width_ > 1) {
    const int64_t half = width_ / 2;
    Many sides[2];
    for (int64_t s = 0; s < 2; ++s) {
      std::vector<int> which;
      for (int64_t lane = 0; lane < half; ++lane)
        which.push_back(static_cast<int>(s * half + lane));
      for (const Lanes& each : vectors) {
        if (half > 1) {
          sides[s].push_back({nullptr, b_.CreateShuffleVector(each.vector, which), 0});
        } else {
          sides[s].push_back(
              {b_.CreateExtractElement(each.vector, static_cast<uint64_t>(s)), nullptr, 0});
        }
      }
    }
    width_ = half;
    vectors = combine(n, sides[0], sides[1]);
    if (half == 1) break;
    for (Lanes& each : vectors) each = {nullptr, vector_of(each), 0};
  }
  width_ = whole;
  return vectors;
}

bool Emitter::reduce_by_vectors(const Node& n) {
  if (!n.commutative || !only_computes(n.blocks[1])) return false;
  for (const int64_t extent : n.extents) {
    if (extent < 1) return false;
  }
  Plan plan = plan_of(n);
  const int64_t extent = n.extents.empty() ? 0 : n.extents[plan.dimension];
  while (plan.width > extent) plan.width /= 2;  // No lane without a leaf.
  if (plan.width < 2) return false;
  const Ids& indices = kernel_.block(n.blocks[0]).arguments;
  const ValueId lane = indices[plan.dimension];
  const Varying varying(kernel_, n, lane);
  for (const ValueId result : n.results) {
    if (!varying(result)) return false;
  }
  Many total;
  in_lanes(plan.width, varying, [&] { total = horizontal(n, partial_sums(n, plan)); });
  set(n.results, combine(n, get(n.operands), total));
  return true;
}

Emitter::Many Emitter::partial_sums(const Node& n, const Plan& plan) {
  const Ids& indices = kernel_.block(n.blocks[0]).arguments;
  const int64_t extent = n.extents[plan.dimension];
  const size_t results = n.results.size();
  const bool several = extent >= kAccumulators * width_ && varying_->nodes() <= kMostLeafNodes;
  const size_t accumulators = several ? static_cast<size_t>(kAccumulators) : 1;
  Many neutral_ones = neutral(n);
  const bool known = !neutral_ones.empty();
  if (!known) {
    for (const ValueId result : n.results) {
      neutral_ones.push_back(
          {nullptr, llvm::Constant::getNullValue(type_of(kernel_.value(result).type, true)), 0});
    }
  }
  Ids like;
  Many inits;
  for (size_t a = 0; a < accumulators; ++a) {
    like.insert(like.end(), n.results.begin(), n.results.end());
    inits.insert(inits.end(), neutral_ones.begin(), neutral_ones.end());
  }
  // Where nothing is neutral, the first leaves are taken as they are.
  const auto first = [&](Value* place) {
    Value* is_first = b_.CreateICmpEQ(place, llvm::ConstantInt::get(place->getType(), 0));
    for (size_t d = 0; d < n.extents.size(); ++d) {
      if (d == plan.dimension) continue;
      is_first = b_.CreateAnd(is_first, b_.CreateICmpEQ(get(indices[d]).scalar, index(0)));
    }
    return is_first;
  };
  const auto take = [&](Many& carried, size_t which, Value* start, Value* place, Value* mask) {
    values_[indices[plan.dimension]] = index_from(place, 1);
    mask_ = mask;
    Many leaf = block(n.blocks[0]);
    mask_ = nullptr;
    const Many mine(carried.begin() + static_cast<std::ptrdiff_t>(which * results),
                    carried.begin() + static_cast<std::ptrdiff_t>((which + 1) * results));
    const Many both = combine(n, mine, leaf);
    for (size_t i = 0; i < results; ++i) {
      Value* next = vector_of(both[i]);
      if (!known) next = b_.CreateSelect(first(start), vector_of(leaf[i]), next);
      if (mask != nullptr) next = b_.CreateSelect(mask, next, vector_of(mine[i]));
      carried[which * results + i] = {nullptr, next, 0};
    }
  };
  const int64_t stride = static_cast<int64_t>(accumulators) * width_;
  const int64_t main = extent / stride * stride;
  const int64_t full = extent / width_ * width_;
  const auto along = [&](const Many& before) {
    Many carried =
        loop(number(0), number(main), stride, like, before, [&](Value* place, const Many& inner) {
          Many next = inner;
          for (size_t a = 0; a < accumulators; ++a) {
            Value* const mine = b_.CreateAdd(place, number(static_cast<int64_t>(a) * width_));
            take(next, a, place, mine, nullptr);
          }
          return next;
        });
    if (full > main) {
      carried = loop(number(main), number(full), width_, like, carried,
                     [&](Value* place, const Many& inner) {
                       Many next = inner;
                       take(next, 0, place, place, nullptr);
                       return next;
                     });
    }
    if (extent > full) {
      Value* const mask =
          b_.CreateICmpULT(steps(b_.getInt32Ty(), 1),
                           b_.CreateVectorSplat(static_cast<unsigned>(width_),
                                                b_.getInt32(static_cast<uint32_t>(extent - full))));
      take(carried, 0, number(full), number(full), mask);
    }
    return carried;
  };
  const std::function<Many(size_t, const Many&)> nested = [&](size_t d, const Many& carried) {
    if (d == plan.dimension) ++d;
    if (d >= n.extents.size()) return along(carried);
    return loop(number(0), number(n.extents[d]), 1, like, carried,
                [&](Value* i, const Many& inner) {
                  values_[indices[d]] = index_from(i);
                  return nested(d + 1, inner);
                });
  };
  Many sums = nested(0, inits);
  for (size_t a = 1; a < accumulators; ++a) {
    const auto at = sums.begin() + static_cast<std::ptrdiff_t>(a * results);
    const Many other(at, at + static_cast<std::ptrdiff_t>(results));
    const Many both =
        combine(n, Many(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(results)), other);
    for (size_t i = 0; i < results; ++i) sums[i] = {nullptr, vector_of(both[i]), 0};
  }
  sums.resize(results);
  return sums;
}

}  // namespace tenon::cpu
