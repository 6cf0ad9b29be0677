// hlo/ir/: the IR: instructions, computations, modules.
//
// Instructions, computations and modules: the HLO graph.
//
// A Module owns functions. A Computation owns its parameters and a list of instructions that ends
// in `return`. An Instruction owns its regions, which are computations that may use values of the
// enclosing computations, as StableHLO's regions do. A Value is one result of an instruction. Every
// mutation keeps use lists up to date.
//
// Thread-safety: concurrent reads are safe; only one thread at a time may change a Module.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/ops/ops.h"
#include "hlo/types/attribute.h"
#include "hlo/types/location.h"

namespace tenon::hlo {

class Computation;
class Instruction;
class Module;

/// One result of an instruction; null when default-constructed.
struct Value {
  Instruction* def = nullptr;
  uint32_t index = 0;

  explicit operator bool() const { return def != nullptr; }
  const Type& type() const;
  const Shape& shape() const { return type().shape(); }
  bool operator==(const Value&) const = default;
};

struct ValueHash {
  size_t operator()(Value value) const {
    return std::hash<const void*>()(value.def) * 31 + value.index;
  }
};

/// Operand `operand` of `user`.
struct Use {
  Instruction* user = nullptr;
  uint32_t operand = 0;
  bool operator==(const Use&) const = default;
};

/// The declared attributes of an instruction in canonical form, ordered by key.
class Attributes {
 public:
  const Attribute* find(AttrKey key) const;
  void set(AttrKey key, Attribute value);
  void erase(AttrKey key);
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<std::pair<AttrKey, Attribute>> entries_;
};

class Instruction {
 public:
  /// Creates a detached instruction: it belongs to no computation until inserted.
  Instruction(OpCode code, const std::vector<Value>& operands, std::vector<Type> result_types);
  ~Instruction();
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;

  OpCode code() const { return code_; }
  const OpInfo& info() const { return op_info(code_); }
  std::string_view name() const { return op_name(code_); }

  size_t operand_count() const { return operands_.size(); }
  Value operand(size_t i) const { return operands_[i].value; }
  const Type& operand_type(size_t i) const { return operand(i).type(); }
  std::vector<Value> operands() const;
  void set_operand(size_t i, Value value);
  void set_operands(const std::vector<Value>& values);

  size_t result_count() const { return result_types_.size(); }
  const std::vector<Type>& result_types() const { return result_types_; }
  const Type& result_type(size_t i = 0) const { return result_types_[i]; }
  void set_result_types(std::vector<Type> types) { result_types_ = std::move(types); }
  void set_result_type(size_t i, Type type) { result_types_[i] = std::move(type); }
  Value result(uint32_t i = 0) { return {this, i}; }
  std::vector<Value> results();

  const Attributes& attributes() const { return attributes_; }
  Attributes& mutable_attributes() { return attributes_; }
  const Attribute* attribute(AttrKey key) const { return attributes_.find(key); }
  /// The attribute's alternative T, or null when absent.
  template <class T>
  const T* attr(AttrKey key) const {
    const Attribute* found = attributes_.find(key);
    return found ? found->get<T>() : nullptr;
  }
  /// An integer attribute, or `fallback` if absent.
  int64_t integer(AttrKey key, int64_t fallback = 0) const;
  bool flag(AttrKey key, bool fallback = false) const;
  /// A list attribute; empty if absent.
  const I64s& i64s(AttrKey key) const;
  /// A list attribute, or `size` elements `fill` if absent.
  I64s i64s_or(AttrKey key, size_t size, int64_t fill) const;
  /// A matrix attribute, or `rows` x 2 zeros if absent: padding.
  I64Matrix padding_or_zero(size_t rows) const;
  /// A text attribute; empty if absent.
  std::string_view text(AttrKey key) const;
  template <class Enum>
  Enum enumeration(AttrKey key) const {
    const EnumAttr* word = attr<EnumAttr>(key);
    return word ? static_cast<Enum>(word->value) : Enum{};
  }

  /// Attributes that the op does not declare.
  const Dict& discardable() const { return discardable_; }
  Dict& mutable_discardable() { return discardable_; }

  size_t region_count() const { return regions_.size(); }
  Computation& region(size_t i) const { return *regions_[i]; }
  Computation& add_region();
  void add_region(std::unique_ptr<Computation> region);

  const Location& location() const { return location_; }
  void set_location(Location location) { location_ = std::move(location); }

  /// The computation that contains this instruction; null while detached.
  Computation* parent() const { return parent_; }
  Instruction* next() const { return next_; }
  Instruction* previous() const { return previous_; }
  /// Whether it precedes `other` in the same computation.
  bool comes_before(const Instruction& other) const { return position_ < other.position_; }

  /// Uses of any result.
  const std::vector<Use>& uses() const { return uses_; }
  /// Scans all uses: to ask for every result, use `used_results`.
  bool has_uses(uint32_t result) const;
  /// For each result, whether it has a use.
  std::vector<bool> used_results() const;
  /// Replaces every use of result `index` by `value`.
  void replace_uses(uint32_t index, Value value);
  /// Replaces every use of each result by the value with the result's index, in one scan of the
  /// uses.
  void replace_all_uses(const std::vector<Value>& values);

  /// Whether it must run even if its results are unused.
  bool has_side_effect() const;
  /// Whether it must keep its order relative to other ordered instructions: it has a side effect,
  /// is a barrier, communicates with other devices or the host, or has such an op in a region.
  bool is_ordered() const;

 private:
  friend class Computation;
  struct Operand {
    Value value;
    uint32_t use_slot = 0;  // index in value.def->uses_
  };
  void add_use(uint32_t operand);
  void drop_use(uint32_t operand);
  void drop_operands();

  OpCode code_;
  std::vector<Operand> operands_;
  std::vector<Type> result_types_;
  Attributes attributes_;
  Dict discardable_;
  std::vector<std::unique_ptr<Computation>> regions_;
  Location location_;
  std::vector<Use> uses_;
  Computation* parent_ = nullptr;
  Instruction* previous_ = nullptr;
  Instruction* next_ = nullptr;
  int64_t position_ = 0;  // Increases along the computation, with gaps.
};

inline const Type& Value::type() const { return def->result_type(index); }

/// A function of the Module, or a region of an instruction.
class Computation {
 public:
  Computation() = default;
  ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  /// The name of a function, set when it is added to its Module; regions have none.
  const std::string& name() const { return name_; }
  /// "", "public", "private" or "nested".
  const std::string& visibility() const { return visibility_; }
  void set_visibility(std::string visibility) { visibility_ = std::move(visibility); }
  bool is_function() const { return owner_ == nullptr; }

  size_t parameter_count() const { return parameters_.size(); }
  Instruction& parameter_instruction(size_t i) const { return *parameters_[i]; }
  Value parameter(size_t i) const { return {parameters_[i].get(), 0}; }
  Value add_parameter(Type type, Location location = nullptr);
  void erase_parameter(size_t i);
  /// Keeps only the parameters with the indices in `kept`, ascending.
  void keep_parameters(const std::vector<uint32_t>& kept);
  std::vector<Type> parameter_types() const;

  /// Attribute dictionaries of a function, one for each parameter or result, or none at all.
  std::vector<Dict>& parameter_attributes() { return parameter_attributes_; }
  const std::vector<Dict>& parameter_attributes() const { return parameter_attributes_; }
  std::vector<Dict>& result_attributes() { return result_attributes_; }
  const std::vector<Dict>& result_attributes() const { return result_attributes_; }
  Dict& attributes() { return attributes_; }
  const Dict& attributes() const { return attributes_; }
  /// The declared result types of a function; for a region, the types of its return.
  std::vector<Type> result_types() const;
  void set_declared_result_types(std::vector<Type> types) { declared_results_ = std::move(types); }
  bool is_declaration() const { return first_ == nullptr; }

  const Location& location() const { return location_; }
  void set_location(Location location) { location_ = std::move(location); }

  Instruction* first() const { return first_; }
  Instruction* last() const { return last_; }
  bool empty() const { return first_ == nullptr; }
  /// The final `return`, or null if there is none yet.
  Instruction* return_instruction() const;

  /// Takes ownership; if `before` is null, inserts at the end.
  Instruction* insert(std::unique_ptr<Instruction> instruction, Instruction* before = nullptr);
  /// Removes and destroys the instruction, which must have no uses.
  void erase(Instruction* instruction);
  /// Removes the instruction without destroying it.
  std::unique_ptr<Instruction> take(Instruction* instruction);

  /// The instruction that owns this region; null for a function.
  Instruction* owner() const { return owner_; }
  Module* module() const;

  /// Forward iteration over instructions; the current one may be erased after advancing.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Instruction;
    using difference_type = std::ptrdiff_t;
    using pointer = Instruction*;
    using reference = Instruction&;

    Iterator() = default;
    explicit Iterator(Instruction* at) : at_(at) {}
    Instruction& operator*() const { return *at_; }
    Instruction* operator->() const { return at_; }
    Iterator& operator++() {
      at_ = at_->next();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    Instruction* at_ = nullptr;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

 private:
  friend class Cloner;
  friend class Instruction;
  friend class Module;
  void drop_all_operands();
  void set_position(Instruction& inserted);

  std::string name_;
  std::string visibility_;
  std::vector<std::unique_ptr<Instruction>> parameters_;
  std::vector<Dict> parameter_attributes_;
  std::vector<Dict> result_attributes_;
  Dict attributes_;
  std::vector<Type> declared_results_;
  Location location_;
  Instruction* first_ = nullptr;
  Instruction* last_ = nullptr;
  Instruction* owner_ = nullptr;
  Module* module_ = nullptr;
};

class Module {
 public:
  Module() = default;
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Dict& attributes() { return attributes_; }
  const Dict& attributes() const { return attributes_; }

  const std::vector<std::unique_ptr<Computation>>& functions() const { return functions_; }
  Computation& add_function(std::string name);
  void erase_function(Computation* function);
  /// Erases all functions for which `is_dead` returns true.
  void erase_functions(const std::function<bool(const Computation&)>& is_dead);
  /// The function with the name `name`, or null; if there are several, the first.
  Computation* find_function(std::string_view name) const;
  /// `main`, else the only public function, else the only function, else null.
  Computation* entry() const;

  std::unique_ptr<Module> clone() const;

 private:
  void add(std::unique_ptr<Computation> function);

  std::string name_;
  Dict attributes_;
  std::vector<std::unique_ptr<Computation>> functions_;
  std::unordered_map<std::string_view, Computation*> by_name_;  ///< The first of each name.
};

/// Structural equality: the same ops, types, attributes and operands in the same order. Locations
/// are ignored. If they differ, `*why`, if not null, describes the first difference.
bool equal(const Module& a, const Module& b, std::string* why = nullptr);

/// An error about `op`, at its location: "stablehlo.add: C1: …".
template <class... Args>
Error constraint_error(const Instruction& op, std::string_view label,
                       fmt::format_string<Args...> format, Args&&... args) {
  return invalid_argument("{}: {}: {}", op.name(), label,
                          fmt::format(format, std::forward<Args>(args)...))
      .at(position_of(op.location()));
}

/// Copies `op` detached; operands and captured values are mapped by `map_value`.
class Cloner {
 public:
  /// Values of the original that are not mapped stay the same.
  void map(Value from, Value to) { map_[from] = to; }
  Value operator()(Value value) const;
  std::unique_ptr<Instruction> clone(const Instruction& op);
  std::unique_ptr<Computation> clone(const Computation& region);

 private:
  std::unordered_map<Value, Value, ValueHash> map_;
};

/// Whether `holds` is true for an instruction of `computation` or of a nested region, at any depth.
bool any_instruction(const Computation& computation,
                     const std::function<bool(const Instruction&)>& holds);

/// The outside values that the regions of `op` use, each once. A copy of `op` must not use them
/// itself: that would add to the use lists of a Module that other threads may read.
std::vector<Value> captured_values(const Instruction& op);
/// Operands, followed by captured values.
std::vector<Value> all_operands(const Instruction& op);

}  // namespace tenon::hlo
