#include "hlo/ir/instruction.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::hlo {

const Attribute* Attributes::find(AttrKey key) const {
  for (const auto& [name, value] : entries_) {
    if (name == key) return &value;
  }
  return nullptr;
}

void Attributes::set(AttrKey key, Attribute value) {
  const auto place = std::lower_bound(entries_.begin(), entries_.end(), key,
                                      [](const auto& entry, AttrKey k) { return entry.first < k; });
  if (place != entries_.end() && place->first == key) {
    place->second = std::move(value);
  } else {
    entries_.emplace(place, key, std::move(value));
  }
}

void Attributes::erase(AttrKey key) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; });
}

Instruction::Instruction(OpCode code, const std::vector<Value>& operands,
                         std::vector<Type> result_types)
    : code_(code), result_types_(std::move(result_types)) {
  set_operands(operands);
}

Instruction::~Instruction() {
  for (const auto& region : regions_) region->drop_all_operands();
  regions_.clear();
  drop_operands();
}

std::vector<Value> Instruction::operands() const {
  std::vector<Value> values;
  values.reserve(operands_.size());
  for (const Operand& operand : operands_) values.push_back(operand.value);
  return values;
}

std::vector<Value> Instruction::results() {
  std::vector<Value> values;
  for (uint32_t i = 0; i < result_count(); ++i) values.push_back(result(i));
  return values;
}

void Instruction::add_use(uint32_t operand) {
  Operand& slot = operands_[operand];
  if (slot.value.def == nullptr) return;
  slot.use_slot = static_cast<uint32_t>(slot.value.def->uses_.size());
  slot.value.def->uses_.push_back({this, operand});
}

void Instruction::drop_use(uint32_t operand) {
  const Operand& slot = operands_[operand];
  if (slot.value.def == nullptr) return;
  std::vector<Use>& uses = slot.value.def->uses_;
  const Use moved = uses.back();
  uses[slot.use_slot] = moved;
  moved.user->operands_[moved.operand].use_slot = slot.use_slot;
  uses.pop_back();
}

void Instruction::drop_operands() {
  for (uint32_t i = 0; i < operands_.size(); ++i) drop_use(i);
  operands_.clear();
}

void Instruction::set_operand(size_t i, Value value) {
  const auto slot = static_cast<uint32_t>(i);
  drop_use(slot);
  operands_[i].value = value;
  add_use(slot);
}

void Instruction::set_operands(const std::vector<Value>& values) {
  drop_operands();
  operands_.reserve(values.size());
  for (const Value& value : values) {
    operands_.push_back({value, 0});
    add_use(static_cast<uint32_t>(operands_.size() - 1));
  }
}

int64_t Instruction::integer(AttrKey key, int64_t fallback) const {
  const auto* found = attr<IntegerAttr>(key);
  return found ? found->value : fallback;
}

bool Instruction::flag(AttrKey key, bool fallback) const {
  const auto* found = attr<bool>(key);
  return found ? *found : fallback;
}

const I64s& Instruction::i64s(AttrKey key) const {
  static const I64s kEmpty;
  const auto* found = attr<I64s>(key);
  return found ? *found : kEmpty;
}

I64s Instruction::i64s_or(AttrKey key, size_t size, int64_t fill) const {
  const auto* found = attr<I64s>(key);
  return found ? *found : I64s(size, fill);
}

I64Matrix Instruction::padding_or_zero(size_t rows) const {
  const auto* found = attr<I64Matrix>(AttrKey::padding);
  if (found) return *found;
  return {static_cast<int64_t>(rows), 2, I64s(rows * 2, 0)};
}

std::string_view Instruction::text(AttrKey key) const {
  if (const auto* found = attr<std::string>(key)) return *found;
  if (const auto* symbol = attr<SymbolAttr>(key)) return symbol->name;
  return {};
}

Computation& Instruction::add_region() {
  add_region(std::make_unique<Computation>());
  return *regions_.back();
}

void Instruction::add_region(std::unique_ptr<Computation> region) {
  region->owner_ = this;
  regions_.push_back(std::move(region));
}

bool Instruction::has_uses(uint32_t result) const {
  return std::any_of(uses_.begin(), uses_.end(), [&](const Use& use) {
    return use.user->operand(use.operand).index == result;
  });
}

void Instruction::replace_uses(uint32_t index, Value value) {
  const std::vector<Use> uses = uses_;
  for (const Use& use : uses) {
    if (use.user->operand(use.operand).index == index) use.user->set_operand(use.operand, value);
  }
}

std::vector<bool> Instruction::used_results() const {
  std::vector<bool> used(result_count());
  for (const Use& use : uses_) used[use.user->operand(use.operand).index] = true;
  return used;
}

void Instruction::replace_all_uses(const std::vector<Value>& values) {
  const std::vector<Use> uses = uses_;
  for (const Use& use : uses) {
    use.user->set_operand(use.operand, values[use.user->operand(use.operand).index]);
  }
}

namespace {
bool any_in_regions(const Instruction& op, bool (Instruction::*is)() const) {
  for (size_t i = 0; i < op.region_count(); ++i) {
    for (const Instruction& inner : op.region(i)) {
      if ((inner.*is)()) return true;
    }
  }
  return false;
}
}  // namespace

bool Instruction::has_side_effect() const {
  const uint8_t effects = info().effects;
  if ((effects & kSideEffect) != 0) return true;
  if ((effects & kMaySideEffect) == 0) return false;
  if (code_ == OpCode::kCustomCall) return flag(AttrKey::has_side_effect);
  if (code_ == OpCode::kCall) return true;  // the callee is not examined here
  return any_in_regions(*this, &Instruction::has_side_effect);
}

bool Instruction::is_ordered() const {
  return has_side_effect() || (info().effects & kBarrier) != 0 ||
         info().category == Category::kCommunication ||
         any_in_regions(*this, &Instruction::is_ordered);
}

// Uses go in both directions, and in a broken program out of regions and across functions: all
// operands are dropped before anything is destroyed.
void Computation::drop_all_operands() {
  for (Instruction* at = first_; at != nullptr; at = at->next_) {
    for (const auto& region : at->regions_) region->drop_all_operands();
    at->drop_operands();
  }
}

Computation::~Computation() {
  drop_all_operands();
  while (first_ != nullptr) {
    Instruction* next = first_->next_;
    delete first_;
    first_ = next;
  }
}

Value Computation::add_parameter(Type type, Location location) {
  auto parameter = std::make_unique<Instruction>(OpCode::kParameter, std::vector<Value>{},
                                                 std::vector<Type>{std::move(type)});
  parameter->parent_ = this;
  parameter->location_ = std::move(location);
  parameters_.push_back(std::move(parameter));
  return {parameters_.back().get(), 0};
}

void Computation::erase_parameter(size_t i) {
  parameters_.erase(parameters_.begin() + static_cast<ptrdiff_t>(i));
  if (i < parameter_attributes_.size()) {
    parameter_attributes_.erase(parameter_attributes_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Computation::keep_parameters(const std::vector<uint32_t>& kept) {
  const auto keep = [&](auto& list) {
    if (list.empty()) return;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] != i) list[i] = std::move(list[kept[i]]);
    }
    list.resize(kept.size());
  };
  keep(parameters_);
  keep(parameter_attributes_);
}

std::vector<Type> Computation::parameter_types() const {
  std::vector<Type> types;
  for (const auto& parameter : parameters_) types.push_back(parameter->result_type());
  return types;
}

std::vector<Type> Computation::result_types() const {
  if (is_function()) return declared_results_;
  std::vector<Type> types;
  if (const Instruction* end = return_instruction()) {
    for (size_t i = 0; i < end->operand_count(); ++i) types.push_back(end->operand_type(i));
  }
  return types;
}

Instruction* Computation::return_instruction() const {
  return last_ != nullptr && last_->code() == OpCode::kReturn ? last_ : nullptr;
}

Instruction* Computation::insert(std::unique_ptr<Instruction> instruction, Instruction* before) {
  Instruction* inserted = instruction.release();
  inserted->parent_ = this;
  inserted->next_ = before;
  inserted->previous_ = before ? before->previous_ : last_;
  (inserted->previous_ ? inserted->previous_->next_ : first_) = inserted;
  (before ? before->previous_ : last_) = inserted;
  set_position(*inserted);
  return inserted;
}

// Positions are far apart, so that there is nearly always a free one between two others; if not,
// all instructions are renumbered. The new position is close to the previous instruction's, so that
// insertions in order fill a gap slowly.
void Computation::set_position(Instruction& inserted) {
  constexpr int64_t kGap = int64_t{1} << 32;
  constexpr int64_t kStep = int64_t{1} << 10;
  const Instruction* const before = inserted.previous_;
  const Instruction* const behind = inserted.next_;
  if (behind == nullptr) {
    inserted.position_ = before == nullptr ? 0 : before->position_ + kGap;
  } else if (before == nullptr) {
    inserted.position_ = behind->position_ - kGap;
  } else if (behind->position_ - before->position_ > 1) {
    inserted.position_ =
        before->position_ + std::min((behind->position_ - before->position_) / 2, kStep);
  } else {
    int64_t position = 0;
    for (Instruction& op : *this) op.position_ = position += kGap;
  }
}

std::unique_ptr<Instruction> Computation::take(Instruction* instruction) {
  (instruction->previous_ ? instruction->previous_->next_ : first_) = instruction->next_;
  (instruction->next_ ? instruction->next_->previous_ : last_) = instruction->previous_;
  instruction->next_ = instruction->previous_ = nullptr;
  instruction->parent_ = nullptr;
  return std::unique_ptr<Instruction>(instruction);
}

void Computation::erase(Instruction* instruction) { take(instruction).reset(); }

Module* Computation::module() const {
  const Computation* at = this;
  while (at->owner_ != nullptr) {
    if (at->owner_->parent() == nullptr) return nullptr;
    at = at->owner_->parent();
  }
  return at->module_;
}

namespace {

// The outside values that regions use, in the order of their first uses.
struct Captures {
  std::unordered_set<const Computation*> inside;
  std::unordered_set<Value, ValueHash> known;
  std::vector<Value> values;

  void add(const Computation& region) {
    inside.insert(&region);
    for (const Instruction& op : region) {
      for (size_t i = 0; i < op.operand_count(); ++i) {
        const Value operand = op.operand(i);
        if (inside.contains(operand.def->parent())) continue;
        if (known.insert(operand).second) values.push_back(operand);
      }
      for (size_t i = 0; i < op.region_count(); ++i) add(op.region(i));
    }
    inside.erase(&region);
  }
};

}  // namespace

bool any_instruction(const Computation& computation,
                     const std::function<bool(const Instruction&)>& holds) {
  for (const Instruction& op : computation) {
    if (holds(op)) return true;
    for (size_t i = 0; i < op.region_count(); ++i) {
      if (any_instruction(op.region(i), holds)) return true;
    }
  }
  return false;
}

std::vector<Value> captured_values(const Instruction& op) {
  Captures captures;
  for (size_t i = 0; i < op.region_count(); ++i) captures.add(op.region(i));
  return std::move(captures.values);
}

std::vector<Value> all_operands(const Instruction& op) {
  std::vector<Value> values = op.operands();
  const std::vector<Value> captured = captured_values(op);
  values.insert(values.end(), captured.begin(), captured.end());
  return values;
}

}  // namespace tenon::hlo
