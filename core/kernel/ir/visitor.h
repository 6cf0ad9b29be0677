// Dispatch on the statements of a kernel, and walks over its tree.
//
//   return visit(node, Overloads{
//                          [&](OnLoad) { return load(node); },
//                          [&](OnAccess) { return store(node); },  // store and atomic
//                          [&](OnScalar) { return scalar(node); },
//                          …
//                      });
//
// Each statement has a tag, which derives from that of its group; the closest function is called,
// and code that has none for some statement does not compile. So a new row of statements.inc is an
// error in each piece of code that must know about it. A function of OnStatement takes all the rest
// and gives that up: it is for code to which a statement unknown to it makes no difference.
#pragma once

#include <algorithm>
#include <utility>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

struct OnNode {};                       ///< Any node.
struct OnScalar : OnNode {};            ///< An operation on scalars.
struct OnStatement : OnNode {};         ///< Any other node.
struct OnAccess : OnStatement {};       ///< load, store, atomic: to one element.
struct OnDeclaration : OnStatement {};  ///< scratch, private
struct OnReduction : OnStatement {};    ///< reduce, scan
struct OnTile : OnStatement {};         ///< copy, contract
#define KERNEL_STATEMENT(id, name, group, ...) \
  struct On##id : group {};
#include "core/kernel/ir/statements.inc"
#undef KERNEL_STATEMENT

/// Functions as the overloads of one.
template <class... Functions>
struct Overloads : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloads(Functions...) -> Overloads<Functions...>;

/// Calls the function for the tag of `op`; all functions return one type.
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

/// Whether some node of `block`, or of a block within it, satisfies `predicate`: a statement is
/// asked before the nodes of its blocks, and none after the first that does.
template <class Predicate>
bool any_node(const Kernel& kernel, BlockId block, const Predicate& predicate) {
  return std::ranges::any_of(kernel.block(block).nodes, [&](NodeId id) {
    const Node& node = kernel.node(id);
    return predicate(node) || std::ranges::any_of(node.blocks, [&](BlockId inner) {
             return any_node(kernel, inner, predicate);
           });
  });
}

/// Calls function(node) for every node of `block` and of the blocks within it, in the order of the
/// text: a statement comes before the nodes of its blocks.
template <class F>
void for_each_node(const Kernel& kernel, BlockId block, const F& function) {
  any_node(kernel, block, [&](const Node& node) {
    function(node);
    return false;
  });
}

}  // namespace tenon::kernel
