#include <algorithm>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

Module::~Module() {
  for (const auto& function : functions_) function->drop_all_operands();
}

void Module::add(std::unique_ptr<Computation> function) {
  function->module_ = this;
  by_name_.emplace(function->name(), function.get());
  functions_.push_back(std::move(function));
}

Computation& Module::add_function(std::string name) {
  auto function = std::make_unique<Computation>();
  function->name_ = std::move(name);
  add(std::move(function));
  return *functions_.back();
}

void Module::erase_function(Computation* function) {
  erase_functions([&](const Computation& at) { return &at == function; });
}

void Module::erase_functions(const std::function<bool(const Computation&)>& is_dead) {
  by_name_.clear();
  std::erase_if(functions_, [&](const auto& owned) { return is_dead(*owned); });
  for (const auto& function : functions_) by_name_.emplace(function->name(), function.get());
}

Computation* Module::find_function(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Computation* Module::entry() const {
  if (Computation* main = find_function("main")) return main;
  Computation* only = nullptr;
  for (const auto& function : functions_) {
    if (function->visibility() == "private" || function->is_declaration()) continue;
    if (only != nullptr) return nullptr;
    only = function.get();
  }
  if (only == nullptr && functions_.size() == 1) only = functions_.front().get();
  return only;
}

Value Cloner::operator()(Value value) const {
  const auto found = map_.find(value);
  return found == map_.end() ? value : found->second;
}

std::unique_ptr<Instruction> Cloner::clone(const Instruction& op) {
  std::vector<Value> operands;
  operands.reserve(op.operand_count());
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back((*this)(op.operand(i)));
  auto copy = std::make_unique<Instruction>(op.code(), std::move(operands), op.result_types());
  copy->mutable_attributes() = op.attributes();
  copy->mutable_discardable() = op.discardable();
  copy->set_location(op.location());
  auto* original = const_cast<Instruction*>(&op);
  for (uint32_t i = 0; i < op.result_count(); ++i) map(original->result(i), copy->result(i));
  for (size_t i = 0; i < op.region_count(); ++i) copy->add_region(clone(op.region(i)));
  return copy;
}

std::unique_ptr<Computation> Cloner::clone(const Computation& region) {
  auto copy = std::make_unique<Computation>();
  copy->name_ = region.name();
  copy->set_visibility(region.visibility());
  copy->set_location(region.location());
  copy->attributes() = region.attributes();
  copy->parameter_attributes() = region.parameter_attributes();
  copy->result_attributes() = region.result_attributes();
  if (region.is_function()) copy->set_declared_result_types(region.result_types());
  for (size_t i = 0; i < region.parameter_count(); ++i) {
    const Value parameter = region.parameter(i);
    map(parameter, copy->add_parameter(parameter.type(), parameter.def->location()));
  }
  for (const Instruction& op : region) copy->insert(clone(op));
  return copy;
}

std::unique_ptr<Module> Module::clone() const {
  auto copy = std::make_unique<Module>();
  copy->name_ = name_;
  copy->attributes_ = attributes_;
  for (const auto& function : functions_) {
    copy->add(Cloner().clone(*function));
  }
  return copy;
}

namespace {

// Compares two computations; values are matched by position.
class ComputationComparison {
 public:
  explicit ComputationComparison(std::string* why) : why_(why) {}

  bool functions(const Computation& a, const Computation& b) {
    if (a.name() != b.name()) return differ("function @{} against @{}", a.name(), b.name());
    where_ = a.name();
    if (a.visibility() != b.visibility()) {
      return differ("visibility '{}' against '{}'", a.visibility(), b.visibility());
    }
    if (a.parameter_attributes() != b.parameter_attributes()) {
      return differ("parameter attributes differ");
    }
    if (a.result_attributes() != b.result_attributes()) return differ("result attributes differ");
    if (a.attributes() != b.attributes()) return differ("function attributes differ");
    if (a.result_types() != b.result_types()) {
      return differ("result types {} against {}", types_to_string(a.result_types()),
                    types_to_string(b.result_types()));
    }
    return computations(a, b);
  }

 private:
  template <class... Args>
  bool differ(fmt::format_string<Args...> format, Args&&... args) {
    if (why_ != nullptr) {
      *why_ = fmt::format("in @{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
    }
    return false;
  }

  bool computations(const Computation& a, const Computation& b) {
    if (a.parameter_types() != b.parameter_types()) {
      return differ("parameters ({}) against ({})", types_to_string(a.parameter_types()),
                    types_to_string(b.parameter_types()));
    }
    for (size_t i = 0; i < a.parameter_count(); ++i) {
      match_[a.parameter(i).def] = b.parameter(i).def;
    }
    const Instruction* x = a.first();
    const Instruction* y = b.first();
    for (; x != nullptr && y != nullptr; x = x->next(), y = y->next()) {
      if (!instructions(*x, *y)) return false;
    }
    if (x != nullptr || y != nullptr) {
      return differ("{} at the end stands on one side only", x ? x->name() : y->name());
    }
    return true;
  }

  bool instructions(const Instruction& x, const Instruction& y) {
    if (x.code() != y.code()) return differ("{} against {}", x.name(), y.name());
    if (x.result_types() != y.result_types()) {
      return differ("{}: results {} against {}", x.name(), types_to_string(x.result_types()),
                    types_to_string(y.result_types()));
    }
    if (x.operand_count() != y.operand_count()) return differ("{}: operand count", x.name());
    for (size_t i = 0; i < x.operand_count(); ++i) {
      const auto found = match_.find(x.operand(i).def);
      if (found == match_.end() || found->second != y.operand(i).def ||
          x.operand(i).index != y.operand(i).index) {
        return differ("{}: operand {} is another value", x.name(), i);
      }
    }
    if (!(x.attributes() == y.attributes())) return attribute_difference(x, y);
    if (x.discardable() != y.discardable()) {
      return differ("{}: discardable attributes differ", x.name());
    }
    if (x.region_count() != y.region_count()) return differ("{}: region count", x.name());
    for (size_t i = 0; i < x.region_count(); ++i) {
      if (!computations(x.region(i), y.region(i))) return false;
    }
    match_[const_cast<Instruction*>(&x)] = const_cast<Instruction*>(&y);
    return true;
  }

  bool attribute_difference(const Instruction& x, const Instruction& y) {
    for (const AttrSpec& spec : x.info().attribute_specs()) {
      const Attribute* a = x.attribute(spec.key);
      const Attribute* b = y.attribute(spec.key);
      if ((a == nullptr) != (b == nullptr) || (a != nullptr && !(*a == *b))) {
        return differ("{}: attribute {} differs", x.name(), attr_key_name(spec.key));
      }
    }
    return differ("{}: attributes differ", x.name());
  }

  std::string* why_;
  std::string where_;
  std::unordered_map<Instruction*, Instruction*> match_;
};

}  // namespace

bool equal(const Module& a, const Module& b, std::string* why) {
  const auto differ = [&](std::string text) {
    if (why != nullptr) *why = std::move(text);
    return false;
  };
  if (a.name() != b.name()) return differ(fmt::format("@{} against @{}", a.name(), b.name()));
  if (a.attributes() != b.attributes()) return differ("module attributes differ");
  if (a.functions().size() != b.functions().size()) return differ("number of functions differs");
  for (size_t i = 0; i < a.functions().size(); ++i) {
    if (!ComputationComparison(why).functions(*a.functions()[i], *b.functions()[i])) return false;
  }
  return true;
}

}  // namespace tenon::hlo
