// Common subexpression elimination: replaces an op by an earlier identical one.
//
// The regions of while, if and case may use the values of the enclosing computation. The regions of
// other ops are programs for their elements, some of which the host runs separately: values of the
// enclosing computation stay outside of them.
#include <functional>
#include <unordered_map>

#include "hlo/passes/constants.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/simplify/dead.h"

namespace tenon::hlo {
namespace {

size_t mix(size_t hash, size_t more) {
  return hash ^ (more + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2));
}

size_t hash_of(const I64s& numbers) {
  size_t hash = numbers.size();
  for (const int64_t number : numbers) hash = mix(hash, static_cast<size_t>(number));
  return hash;
}

// Hashes the first bytes; equality compares all of them.
size_t hash_of(const Literal& literal) {
  constexpr size_t kMost = 256;
  const auto bytes = literal.data();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return std::hash<std::string_view>()({text, std::min(bytes.size(), kMost)});
}

// Hashes the attributes that distinguish many ops of one kind; others are only compared.
size_t hash_of(const Attribute& attribute) {
  if (const auto* numbers = attribute.get<I64s>()) return hash_of(*numbers);
  if (const auto* matrix = attribute.get<I64Matrix>()) return hash_of(matrix->values);
  if (const auto* number = attribute.get<IntegerAttr>()) return static_cast<size_t>(number->value);
  if (const auto* word = attribute.get<EnumAttr>()) return word->value;
  if (const auto* dense = attribute.get<DenseAttr>()) return hash_of(dense->values);
  return 0;
}

size_t hash_of(Value value) { return std::hash<const void*>()(value.def) * 31 + value.index; }

bool swaps(const Instruction& op) { return op.info().commutative && op.operand_count() == 2; }

size_t hash_of(const Instruction& op) {
  auto hash = static_cast<size_t>(op.code());
  if (swaps(op)) {
    hash = mix(hash, hash_of(op.operand(0)) + hash_of(op.operand(1)));
  } else {
    for (size_t i = 0; i < op.operand_count(); ++i) hash = mix(hash, hash_of(op.operand(i)));
  }
  for (const auto& [key, attribute] : op.attributes()) hash = mix(hash, hash_of(attribute));
  for (const Type& type : op.result_types()) {
    if (type.is_tensor()) hash = mix(hash, hash_of(type.dims()));
  }
  return hash;
}

// Whether two ops give the same results. Values defined in their regions are matched by position.
class Equality {
 public:
  bool operator()(const Instruction& a, const Instruction& b) {
    if (a.code() != b.code() || a.result_types() != b.result_types() ||
        a.operand_count() != b.operand_count() || a.region_count() != b.region_count() ||
        !(a.attributes() == b.attributes()) || a.discardable() != b.discardable()) {
      return false;
    }
    if (!operands(a, b)) return false;
    for (size_t r = 0; r < a.region_count(); ++r) {
      if (!regions(a.region(r), b.region(r))) return false;
    }
    return true;
  }

 private:
  bool same(Value a, Value b) const {
    const auto found = match_.find(a.def);
    return a.index == b.index && (found == match_.end() ? a.def : found->second) == b.def;
  }

  bool operands(const Instruction& a, const Instruction& b) const {
    if (swaps(a) && same(a.operand(0), b.operand(1)) && same(a.operand(1), b.operand(0))) {
      return true;
    }
    for (size_t i = 0; i < a.operand_count(); ++i) {
      if (!same(a.operand(i), b.operand(i))) return false;
    }
    return true;
  }

  bool regions(const Computation& a, const Computation& b) {
    if (a.parameter_types() != b.parameter_types()) return false;
    for (size_t i = 0; i < a.parameter_count(); ++i) {
      match_[a.parameter(i).def] = b.parameter(i).def;
    }
    const Instruction* x = a.first();
    const Instruction* y = b.first();
    for (; x != nullptr && y != nullptr; x = x->next(), y = y->next()) {
      if (!(*this)(*x, *y)) return false;
      match_[x] = y;
    }
    return x == y;
  }

  std::unordered_map<const Instruction*, const Instruction*> match_;
};

// The ops seen so far in a computation, and in the enclosing ones if they are visible there.
class Table {
 public:
  explicit Table(const Table* outer) : outer_(outer) {}

  Instruction* find(const Instruction& op, size_t hash) const {
    for (const Table* table = this; table != nullptr; table = table->outer_) {
      const auto [first, last] = table->ops_.equal_range(hash);
      for (auto at = first; at != last; ++at) {
        if (Equality()(op, *at->second)) return at->second;
      }
    }
    return nullptr;
  }
  void add(Instruction& op, size_t hash) { ops_.emplace(hash, &op); }

 private:
  const Table* outer_;
  std::unordered_multimap<size_t, Instruction*> ops_;
};

bool sees_outside(const Instruction& op) {
  return op.code() == OpCode::kWhile || op.code() == OpCode::kIf || op.code() == OpCode::kCase;
}

bool share(Computation& computation, const Table* outer) {
  Table table(outer);
  bool changed = false;
  for (Instruction* op = computation.first(); op != nullptr;) {
    Instruction* const next = op->next();
    for (size_t r = 0; r < op->region_count(); ++r) {
      changed |= share(op->region(r), sees_outside(*op) ? &table : nullptr);
    }
    if (is_pure(*op)) {
      const size_t hash = hash_of(*op);
      if (Instruction* const known = table.find(*op, hash); known != nullptr) {
        op->replace_all_uses(known->results());
        computation.erase(op);
        changed = true;
      } else {
        table.add(*op, hash);
      }
    }
    op = next;
  }
  return changed;
}

}  // namespace

Result<bool> share_common(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= share(*function, nullptr);
  return changed;
}

}  // namespace tenon::hlo
