#include "hlo/lower/elements/emitter.h"

#include <algorithm>

#include "hlo/lower/elements/rules.h"

namespace tenon::hlo::lower {

ElementType memory_type(const Type& type) {
  const ElementType element = type.element_type();
  return is_complex(element) ? complex_part(element) : element;
}

Dims memory_dims(const Type& type) {
  Dims dims = type.dims();
  if (is_complex(type.element_type())) dims.push_back(2);
  return dims;
}

void ElementEmitter::fail(const Instruction& op, std::string why) {
  if (!status_.ok()) return;
  status_ = Status(ErrorCode::kUnimplemented, fmt::format("{}: {}", op.name(), why))
                .at(position_of(op.location()));
}

Element ElementEmitter::constant(ElementType type, double value) {
  if (is_complex(type)) {
    const ElementType part = complex_part(type);
    return {b.real(part, value), b.real(part, 0)};
  }
  if (is_float(type)) return {b.real(type, value)};
  return {b.integer(type, static_cast<int64_t>(value))};
}

Element ElementEmitter::integer(ElementType type, int64_t value) {
  if (is_float(type) || is_complex(type)) return constant(type, static_cast<double>(value));
  return {b.integer(type, value)};
}

Element ElementEmitter::load(kernel::MemoryId memory, const Type& type, const Values& index) {
  if (!is_complex(type.element_type())) return {b.load(memory, index)};
  Values part = index;
  part.push_back(b.index(0));
  const ValueId re = b.load(memory, part);
  part.back() = b.index(1);
  return {re, b.load(memory, part)};
}

void ElementEmitter::store(const Element& element, kernel::MemoryId memory, const Values& index) {
  if (!element.is_complex()) return b.store(element.re, memory, index);
  Values part = index;
  part.push_back(b.index(0));
  b.store(element.re, memory, part);
  part.back() = b.index(1);
  b.store(element.im, memory, part);
}

Element ElementEmitter::convert(const Element& x, ElementType from, ElementType to) {
  if (from == to) return x;
  if (is_complex(to)) {
    const ElementType part = complex_part(to);
    const ValueId im = x.is_complex() ? b.convert(x.im, part) : b.real(part, 0);
    return {b.convert(x.re, part), im};
  }
  return {b.convert(x.re, to)};
}

Element ElementEmitter::select(ValueId condition, const Element& x, const Element& y) {
  Element result = {b.select(condition, x.re, y.re)};
  if (x.is_complex()) result.im = b.select(condition, x.im, y.im);
  return result;
}

Values ElementEmitter::flat(const Elements& elements) {
  Values values;
  for (const Element& e : elements) {
    values.push_back(e.re);
    if (e.is_complex()) values.push_back(e.im);
  }
  return values;
}

Elements ElementEmitter::unflat(const Values& values, const std::vector<ElementType>& types,
                                size_t first) {
  Elements elements;
  for (const ElementType type : types) {
    Element e = {values[first++]};
    if (is_complex(type)) e.im = values[first++];
    elements.push_back(e);
  }
  return elements;
}

Element ElementEmitter::if_else(ValueId condition, ElementType type,
                                const std::function<Element()>& then,
                                const std::function<Element()>& otherwise) {
  const Values values =
      b.if_else(condition, [&] { return flat({then()}); }, [&] { return flat({otherwise()}); });
  return unflat(values, {type})[0];
}

Elements ElementEmitter::if_else(ValueId condition, const std::vector<ElementType>& types,
                                 const std::function<Elements()>& then,
                                 const std::function<Elements()>& otherwise) {
  const Values values =
      b.if_else(condition, [&] { return flat(then()); }, [&] { return flat(otherwise()); });
  return unflat(values, types);
}

// Replaces the index along a dimension of one element by 0, its only value, for any loop it comes
// from: equal elements then have equal indices.
void ElementEmitter::normalise(const Dims& dims, Values& index) const {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) index[d] = b.index(0);
  }
}

void ElementEmitter::provide(const Instruction& op, Values index, Elements elements) {
  normalise(op.result_type().dims(), index);
  known_[{&op, 0}][std::move(index)].push_back({b.current_block(), std::move(elements)});
  const Category category = op.info().category;
  const bool combines = category == Category::kReduction || category == Category::kContraction;
  if (combines) provided_.insert(&op);
}

void ElementEmitter::provide(Value value, Values index, const Element& element) {
  normalise(value.type().dims(), index);
  known_[key(value)][std::move(index)].push_back({b.current_block(), {element}});
  provided_values_.insert(key(value));
}

void ElementEmitter::enter(const Instruction& fusion) {
  for (size_t i = 0; i < fusion.operand_count(); ++i) {
    aliases_[key(fusion.region(0).parameter(i))] = fusion.operand(i);
  }
}

Value ElementEmitter::resolve(Value value) const {
  for (auto at = aliases_.find(key(value)); at != aliases_.end(); at = aliases_.find(key(value))) {
    value = at->second;
  }
  return value;
}

Element ElementEmitter::element(Value given, const Values& at) {
  const Value value = resolve(given);
  Values index = at;
  normalise(value.type().dims(), index);
  if (const auto scalar = scalars_.find(key(value)); scalar != scalars_.end()) {
    return scalar->second;
  }
  // An element of an empty array is never needed, but the leaf of an empty reduction may use one.
  const Dims& dims = value.type().dims();
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
    return constant(value.type().element_type(), 0);
  }
  if (provided_values_.contains(key(value))) {
    if (const Elements* const known = known_at(key(value), index)) return known->front();
  }
  if (const auto found = memories_.find(key(value)); found != memories_.end()) {
    Values row = found->second.row;
    row.insert(row.end(), index.begin() + static_cast<std::ptrdiff_t>(row.size()), index.end());
    normalise(value.type().dims(), row);
    if (row == index) {
      index.erase(index.begin(),
                  index.begin() + static_cast<std::ptrdiff_t>(found->second.row.size()));
      return load(found->second.memory, value.type(), index);
    }
  }
  const ElementRule* const rule = value.def->info().element;
  if (rule != nullptr && rule->same_as != nullptr) {
    return element(rule->same_as(*this, value), index);
  }
  if (rule != nullptr && rule->result != nullptr) {
    Elements made = remembered(key(value), index, [&] {
      return Elements{rule->result(*this, *value.def, value.index, index)};
    });
    return made.empty() ? constant(value.type().element_type(), 0) : made[0];
  }
  return elements(*value.def, index)[value.index];
}

Elements ElementEmitter::elements(const Instruction& op, const Values& index) {
  Elements made = remembered({&op, 0}, index, [&] { return emit(op, index); });
  if (!made.empty()) return made;
  // Keeps the kernel well typed after an error.
  for (const Type& type : op.result_types()) {
    made.push_back(type.is_tensor() ? constant(type.element_type(), 0) : Element{});
  }
  return made;
}

const Elements* ElementEmitter::known_at(Key what, const Values& index) const {
  const auto known = known_.find(what);
  if (known == known_.end()) return nullptr;
  const auto at = known->second.find(index);
  if (at == known->second.end()) return nullptr;
  const auto open =
      std::ranges::find_if(at->second, [&](const KnownElements& k) { return b.is_open(k.block); });
  return open == at->second.end() ? nullptr : &open->elements;
}

Elements ElementEmitter::remembered(Key what, const Values& index,
                                    const std::function<Elements()>& make) {
  if (const Elements* const known = known_at(what, index)) return *known;
  const kernel::BlockId block = b.current_block();
  strayed_ |= provided_.contains(what.first);
  check_limits(*what.first);
  if (!status_.ok()) return {};
  ++depth_;
  Elements made = make();
  --depth_;
  std::vector<KnownElements>& entries = known_[what][index];
  std::erase_if(entries, [&](const KnownElements& k) { return !b.is_open(k.block); });
  entries.push_back({block, made});
  return made;
}

// If each op of a chain reads its operand at two indices, the first operand would be emitted once
// for each path to it.
void ElementEmitter::check_limits(const Instruction& op) {
  constexpr int kMostDepth = 1000;
  constexpr int64_t kMostEmitted = 100'000;
  if (!status_.ok() || (depth_ < kMostDepth && ++emitted_ < kMostEmitted)) return;
  status_ = Status(ErrorCode::kResourceExhausted,
                   fmt::format("{}: one kernel would take more than {} operations in a row, or {}",
                               op.name(), kMostDepth, kMostEmitted))
                .at(position_of(op.location()));
}

Elements ElementEmitter::emit(const Instruction& op, const Values& index) {
  const ElementRule* const rule = op.info().element;
  if (rule == nullptr || (rule->fits != nullptr && !is_elemental(op))) {
    fail(op, "there is no rule for one element");
    return {};
  }
  if (rule->at != nullptr) return rule->at(*this, op, index);
  Elements operands;
  bool complex = false;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    // Limits of clamp and predicates of select may be scalars.
    const bool scalar = op.operand_type(i).rank() == 0;
    operands.push_back(element(op.operand(i), scalar ? Values{} : index));
    complex |= operands.back().is_complex();
  }
  if (!status_.ok()) return {};
  complex |= is_complex(op.result_type().element_type());
  if (!complex) return emit_elementwise(*this, *rule, op, operands);
  if (rule->complex != nullptr) return rule->complex(*this, op, operands);
  fail(op, "there is no lowering on complex numbers");
  return {};
}

std::vector<ElementType> parameter_types(const Computation& region) {
  std::vector<ElementType> types;
  for (size_t i = 0; i < region.parameter_count(); ++i) {
    types.push_back(region.parameter(i).type().element_type());
  }
  return types;
}

std::vector<ElementType> result_types(const Computation& region) {
  std::vector<ElementType> types;
  const Instruction* end = region.return_instruction();
  for (size_t i = 0; i < end->operand_count(); ++i) {
    types.push_back(end->operand_type(i).element_type());
  }
  return types;
}

void ElementEmitter::forget(const Computation& region) {
  for (const Instruction& op : region) {
    for (uint32_t r = 0; r <= op.result_count(); ++r) known_.erase({&op, r});
    for (size_t i = 0; i < op.region_count(); ++i) forget(op.region(i));
  }
}

// Elements are emitted recursively, from the results backwards; for a long region, the first ops
// are emitted first to limit the depth.
void ElementEmitter::emit_in_order(const Computation& region) {
  constexpr int kLong = 256;
  if (std::distance(region.begin(), region.end()) < kLong) return;
  for (const Instruction& op : region) {
    const bool scalar = op.info().category == Category::kElementwise && op.result_count() == 1 &&
                        op.result_type().is_tensor() && op.result_type().rank() == 0;
    if (scalar && op.code() != OpCode::kConstant) static_cast<void>(elements(op, {}));
  }
}

Elements ElementEmitter::call(const Computation& region, const Elements& arguments) {
  forget(region);
  std::vector<std::pair<Key, Element>> shadowed;
  for (size_t i = 0; i < region.parameter_count(); ++i) {
    const Key parameter = key(region.parameter(i));
    if (const auto found = scalars_.find(parameter); found != scalars_.end()) {
      shadowed.emplace_back(*found);
    }
    scalars_[parameter] = arguments[i];
  }
  emit_in_order(region);
  Elements results;
  const Instruction* end = region.return_instruction();
  for (size_t i = 0; i < end->operand_count(); ++i) {
    const bool array = end->operand_type(i).is_tensor();
    results.push_back(array ? element(end->operand(i), {}) : Element{});
  }
  for (size_t i = 0; i < region.parameter_count(); ++i) scalars_.erase(key(region.parameter(i)));
  for (const auto& [parameter, element] : shadowed) scalars_[parameter] = element;
  forget(region);
  return results;
}

}  // namespace tenon::hlo::lower
