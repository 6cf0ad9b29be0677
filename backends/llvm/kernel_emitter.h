// The part of code generation for a kernel that is the same for all LLVM targets: values by id,
// blocks, the dispatch of statements, loops of a reduction, structured control flow.
//
// A target derives from KernelEmitter. It defines how a value of the kernel is represented in LLVM
// IR (`Form`: a scalar, a vector, a list of scalars …) and emits the code that depends on it:
// operations, accesses to memory, lanes loops, reductions over lanes.
//
// Thread-safety: that of the module's LLVMContext.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"
#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::codegen {

template <class Form>
class KernelEmitter {
 public:
  KernelEmitter(const KernelEmitter&) = delete;
  KernelEmitter& operator=(const KernelEmitter&) = delete;

 protected:
  using Value = llvm::Value;
  using BasicBlock = llvm::BasicBlock;
  using Ids = std::vector<kernel::ValueId>;
  using Many = std::vector<Form>;

  /// `kernel` must be verified and legalised; module and kernel must outlive the emitter.
  KernelEmitter(llvm::Module& module, const kernel::Kernel& kernel)
      : module_(module),
        context_(module.getContext()),
        kernel_(kernel),
        ranges_(kernel),
        b_(context_),
        values_(kernel.values.size()),
        memories_(kernel.memories.size()),
        aliased_(kernel.memories.size()) {
    for (kernel::MemoryId m = 0; m < kernel.buffer_count; ++m) {
      const kernel::MemoryId under = kernel.memory(m).over;
      if (under != kernel::kNone) aliased_[m] = aliased_[under] = true;
    }
  }
  virtual ~KernelEmitter() = default;

  // --- Forms of values

  /// The form of a value that is the same in all iterations; and of a loop's index from its
  /// position, whose type may be wider.
  virtual Form form_of(Value* scalar) = 0;
  virtual Form index_from(Value* place) = 0;
  /// The LLVM values that phi nodes carry for such values; and the forms made from them.
  virtual LlvmValues flatten(const Ids& like, const Many& forms) = 0;
  virtual Many unflatten(const Ids& like, const LlvmValues& values) = 0;

  Form form(kernel::ValueId value) {
    const kernel::Value& v = kernel_.value(value);
    if (v.kind != kernel::ValueKind::kConstant) return values_[value];
    return form_of(constant(context_, v.type, v.bits));
  }
  Many forms(const Ids& values, size_t first = 0) {
    Many list;
    for (size_t i = first; i < values.size(); ++i) list.push_back(form(values[i]));
    return list;
  }
  void set(const Ids& values, const Many& forms, size_t first = 0) {
    for (size_t i = first; i < values.size(); ++i) values_[values[i]] = forms[i - first];
  }
  /// Sets `indices` to those at position `place` in row-major order.
  void set_indices(const Ids& indices, const Dims& extents, Value* place) {
    for (size_t d = extents.size(); d-- > 0;) {
      Value* const extent =
          llvm::ConstantInt::getSigned(place->getType(), std::max<int64_t>(extents[d], 1));
      values_[indices[d]] = index_from(d == 0 ? place : b_.CreateURem(place, extent));
      if (d > 0) place = b_.CreateUDiv(place, extent);
    }
  }

  // --- Facts

  /// Whether the result of a scalar operation is an integer that provably does not wrap around.
  bool fits(const kernel::Node& n) const {
    const kernel::ValueId result = n.results[0];
    return is_integer(kernel_.value(result).type) && !ranges_.may_overflow(result);
  }
  /// The type of the last operand, which operation() needs.
  ElementType operand_type(const kernel::Node& n) const {
    return kernel_.value(n.operands.back()).type;
  }
  /// Whether a launch may give the buffer and another one the same memory (K4).
  bool may_alias(kernel::MemoryId buffer) const { return aliased_[buffer]; }

  // --- Statements

  /// Emits the nodes of a block; returns the operands of its yield.
  virtual Many block(kernel::BlockId id) {
    for (const kernel::NodeId n : kernel_.block(id).nodes) {
      const kernel::Node& node = kernel_.node(n);
      if (node.op == kernel::OpCode::kYield) return forms(node.operands);
      statement(node);
    }
    return {};
  }

  void statement(const kernel::Node& n) {
    visit(n, kernel::Overloads{
                 [&](kernel::OnScalar) { operation(n); }, [&](kernel::OnLoad) { load(n); },
                 [&](kernel::OnStore) { store(n); }, [&](kernel::OnAtomic) { atomic(n); },
                 [&](kernel::OnDeclaration) { declare(n.memories[0]); },
                 [&](kernel::OnLanes) { lanes(n); }, [&](kernel::OnFor) { for_loop(n); },
                 [&](kernel::OnWhile) { while_loop(n); }, [&](kernel::OnIf) { if_else(n); },
                 [&](kernel::OnReduce) { reduce(n); }, [&](kernel::OnContract) { contract(n); },
                 [&](kernel::OnScan) { scan(n); }, [](kernel::OnCopy) {},  // Legalised away.
                 [](kernel::OnYield) {},                                   // Read by block().
             });
  }

  virtual void operation(const kernel::Node& n) = 0;
  virtual void load(const kernel::Node& n) = 0;
  virtual void store(const kernel::Node& n) = 0;
  virtual void atomic(const kernel::Node& n) = 0;
  virtual void declare(kernel::MemoryId memory) = 0;
  virtual void lanes(const kernel::Node& n) = 0;
  virtual void for_loop(const kernel::Node& n) = 0;
  virtual void while_loop(const kernel::Node& n) = 0;
  virtual void if_else(const kernel::Node& n) = 0;
  virtual void reduce(const kernel::Node& n) = 0;
  /// Does nothing for a target without tile statements, which are legalised away for it.
  virtual void contract(const kernel::Node&) {}
  /// The same for a target without scans.
  virtual void scan(const kernel::Node&) {}

  // --- Control flow

  /// A `for` from `low` to `high`, whose type must also represent the end of the last step.
  void count(const kernel::Node& n, Value* low, Value* high, bool unrolled = false) {
    const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
    const LlvmValues results = emit_loop(
        b_, low, high, n.extents[0], flatten(n.results, forms(n.operands, 2)),
        [&](Value* k, const LlvmValues& carried) {
          values_[arguments[0]] = index_from(k);
          set(arguments, unflatten(n.results, carried), 1);
          return flatten(n.results, block(n.blocks[0]));
        },
        unrolled);
    set(n.results, unflatten(n.results, results));
  }

  /// A `while` that all lanes run together. condition() and body() emit its blocks, with their
  /// arguments set.
  void repeat(const kernel::Node& n, const std::function<Value*()>& condition,
              const std::function<Many()>& body) {
    const LlvmValues results = emit_while(
        b_, flatten(n.results, forms(n.operands)),
        [&](const LlvmValues& carried) {
          const Many forms = unflatten(n.results, carried);
          for (const kernel::BlockId b : n.blocks) {
            set(kernel_.block(b).arguments, forms);
          }
          return condition();
        },
        [&] { return flatten(n.results, body()); });
    set(n.results, unflatten(n.results, results));
  }

  /// An `if` with one condition for all lanes. side(s) emits its block s.
  void choose(const kernel::Node& n, Value* condition, const std::function<Many(size_t)>& side) {
    const LlvmValues results =
        emit_if(b_, condition, [&](size_t s) { return flatten(n.results, side(s)); });
    set(n.results, unflatten(n.results, results));
  }

  // --- Reductions

  /// Emits the combination of a reduction.
  Many combine(const kernel::Node& n, const Many& left, const Many& right) {
    Many both = left;
    both.insert(both.end(), right.begin(), right.end());
    set(kernel_.block(n.blocks[1]).arguments, both);
    return block(n.blocks[1]);
  }

  /// A reduction by loops, one leaf after the other. A loop to `extent` is counted in
  /// counter_type(extent).
  void reduce_serially(const kernel::Node& n) {
    const Ids& indices = kernel_.block(n.blocks[0]).arguments;
    const std::function<LlvmValues(size_t, const LlvmValues&)> nested =
        [&](size_t d, const LlvmValues& carried) {
          if (d == n.extents.size()) {
            const Many leaf = block(n.blocks[0]);
            return flatten(n.results, combine(n, unflatten(n.results, carried), leaf));
          }
          llvm::IntegerType* const type = counter_type(n.extents[d]);
          return emit_loop(b_, llvm::ConstantInt::getSigned(type, 0),
                           llvm::ConstantInt::getSigned(type, n.extents[d]), 1, carried,
                           [&](Value* i, const LlvmValues& inner) {
                             values_[indices[d]] = index_from(i);
                             return nested(d + 1, inner);
                           });
        };
    const LlvmValues results = nested(0, flatten(n.results, forms(n.operands)));
    set(n.results, unflatten(n.results, results));
  }
  virtual llvm::IntegerType* counter_type(int64_t extent) = 0;

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const kernel::Kernel& kernel_;
  const kernel::Ranges ranges_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::vector<Form> values_;      ///< By id; form() makes those of constants.
  std::vector<Value*> memories_;  ///< Addresses, by id.

 private:
  std::vector<bool> aliased_;  // Buffers, by id.
};

}  // namespace tenon::codegen
