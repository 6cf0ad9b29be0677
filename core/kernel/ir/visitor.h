// Dispatch on the statements of a kernel, and walks over its tree.
//
//   return visit(node, Overloads{
//                          [&](OnLoad) { return load(node); },
//                          [&](OnAccess) { return store(node); },  // store and atomic
//                          [&](OnScalar) { return scalar(node); },
//                          …
//                      });
//
// Each statement has a tag, which derives from the tag of its group. visit() calls the function
// with the closest tag; code without a function for some statement does not compile. A new row of
// statements.inc therefore causes an error in each piece of code that must handle it. A function of
// OnStatement handles all remaining statements and disables that check: use it only in code that is
// correct for unknown statements.
#pragma once

#include <algorithm>
#include <utility>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

struct OnNode {};                       ///< Any node.
struct OnScalar : OnNode {};            ///< An operation on scalars.
struct OnStatement : OnNode {};         ///< Any other node.
struct OnAccess : OnStatement {};       ///< load, store, atomic: accesses one element.
struct OnDeclaration : OnStatement {};  ///< scratch, private
struct OnReduction : OnStatement {};    ///< reduce, scan
struct OnTile : OnStatement {};         ///< copy, contract
#define KERNEL_STATEMENT(id, name, group, ...) \
  struct On##id : group {};
#include "core/kernel/ir/statements.inc"
#undef KERNEL_STATEMENT

/// An overload set of several functions.
template <class... Functions>
struct Overloads : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloads(Functions...) -> Overloads<Functions...>;

/// Calls the function for the tag of `op`; all functions must return the same type.
template <class F>
auto visit(OpCode op, F&& function) {
  switch (op) {
#define KERNEL_STATEMENT(id, ...) \
  case OpCode::k##id:             \
    return function(On##id{});
#include "core/kernel/ir/statements.inc"
#undef KERNEL_STATEMENT
    default:
      return function(OnScalar{});
  }
}
template <class F>
auto visit(const Node& node, F&& function) {
  return visit(node.op, std::forward<F>(function));
}

/// Whether the tag of `op` is, or derives from, one of these: is<OnDeclaration, OnLanes>(node.op).
template <class... Tags>
constexpr bool is(OpCode op) {
  return visit(op, []<class Tag>(Tag) { return (std::is_base_of_v<Tags, Tag> || ...); });
}

/// Whether some node of `block`, or of a block nested in it, satisfies `predicate`. A statement is
/// tested before the nodes of its blocks; the walk stops at the first match.
template <class Predicate>
bool any_node(const Kernel& kernel, BlockId block, const Predicate& predicate) {
  return std::ranges::any_of(kernel.block(block).nodes, [&](NodeId id) {
    const Node& node = kernel.node(id);
    return predicate(node) || std::ranges::any_of(node.blocks, [&](BlockId inner) {
             return any_node(kernel, inner, predicate);
           });
  });
}

/// Calls function(node) for every node of `block` and of the blocks nested in it, in text order: a
/// statement before the nodes of its blocks.
template <class F>
void for_each_node(const Kernel& kernel, BlockId block, const F& function) {
  any_node(kernel, block, [&](const Node& node) {
    function(node);
    return false;
  });
}

}  // namespace tenon::kernel
