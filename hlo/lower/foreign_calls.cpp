#include "hlo/lower/foreign_calls.h"

#include <algorithm>

#include "hlo/lower/program/module_lowering.h"
#include "hlo/text/attribute_printer.h"

namespace tenon::hlo::lower {
namespace {

constexpr std::string_view kTypedConfig = "mhlo.backend_config";

Literal flat(Literal values) { return values.reshaped({values.element_count()}); }

// Numbers of one type as a list.
std::optional<Literal> list_of(const ArrayAttr& elements) {
  const auto* first = elements.empty() ? nullptr : elements[0].get<IntegerAttr>();
  const auto* first_real = elements.empty() ? nullptr : elements[0].get<FloatAttr>();
  if (first == nullptr && first_real == nullptr) return {};
  const ElementType type = first != nullptr ? first->type : first_real->type;
  Literal list(Shape(type, {static_cast<int64_t>(elements.size())}));
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto* integer = elements[i].get<IntegerAttr>();
    const auto* real = elements[i].get<FloatAttr>();
    if (integer != nullptr && integer->type == type) {
      list.set_integer(static_cast<int64_t>(i), integer->value);
    } else if (real != nullptr && real->type == type) {
      list.set_double(static_cast<int64_t>(i), real->value());
    } else {
      return {};
    }
  }
  return list;
}

std::variant<std::string, Literal> value_of(const Attribute& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* flag = value.get<bool>()) {
    return Literal::scalar_integer(ElementType::kPred, *flag ? 1 : 0);
  }
  if (const auto* integer = value.get<IntegerAttr>()) {
    return Literal::scalar_integer(integer->type, integer->value);
  }
  if (const auto* real = value.get<FloatAttr>()) {
    return Literal::scalar(real->type, real->value());
  }
  if (const auto* integers = value.get<I64s>()) return Literal::from_i64s(*integers);
  if (const auto* flags = value.get<BoolsAttr>()) {
    Literal values(Shape(ElementType::kPred, {static_cast<int64_t>(flags->values.size())}));
    for (size_t i = 0; i < flags->values.size(); ++i) {
      values.set_integer(static_cast<int64_t>(i), flags->values[i] ? 1 : 0);
    }
    return values;
  }
  if (const auto* elements = value.get<ArrayAttr>()) {
    if (auto list = list_of(*elements)) return *std::move(list);
  }
  if (const auto* dense = value.get<DenseAttr>()) return flat(dense->expanded());
  return attribute_text(value, TextForm::kHlo);
}

// Whether a name has the character that separates names in a path.
bool has_separators(const Dict& dict) {
  return std::ranges::any_of(dict, [](const auto& attribute) {
    const auto* inner = attribute.second.template get<Dict>();
    return attribute.first.find(program::kWithin) != std::string::npos ||
           (inner != nullptr && has_separators(*inner));
  });
}

void add_attributes(const Dict& dict, const std::string& within,
                    std::vector<program::ForeignAttribute>& attributes) {
  for (const auto& [name, value] : dict) {
    const std::string path = within + name;
    if (const auto* inner = value.get<Dict>()) {
      add_attributes(*inner, path + program::kWithin, attributes);
    } else {
      attributes.push_back({path, value_of(value)});
    }
  }
}

// The orders that the pass has left; empty if there are none.
std::vector<I64s> orders_in(const Instruction& op, std::string_view key) {
  std::vector<I64s> orders;
  const Attribute* found = find(op.discardable(), key);
  const auto* list = found == nullptr ? nullptr : found->get<ArrayAttr>();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* order = (*list)[i].get<I64s>();
    orders.push_back(order == nullptr ? I64s() : *order);
  }
  return orders;
}

std::vector<program::ForeignArray> arrays_of(const std::vector<Type>& types,
                                             const std::vector<I64s>& orders) {
  std::vector<program::ForeignArray> arrays;
  for (size_t i = 0; i < types.size(); ++i) {
    program::ForeignArray& array = arrays.emplace_back();
    array.is_token = types[i].is_token();
    if (array.is_token || i >= orders.size()) continue;
    const bool is_row_major = std::ranges::is_sorted(orders[i], std::greater());
    if (!is_row_major) array.minor_to_major.assign(orders[i].begin(), orders[i].end());
  }
  return arrays;
}

bool is_row_major(const Instruction& op, AttrKey key) {
  const auto* layouts = op.attr<ArrayAttr>(key);
  return layouts == nullptr || std::ranges::all_of(*layouts, [](const Attribute& layout) {
           return std::ranges::is_sorted(*layout.get<I64s>(), std::greater());
         });
}

// The number of an array among those that are no tokens.
uint32_t number_among_arrays(const std::vector<program::ForeignArray>& arrays, size_t index) {
  const auto end = arrays.begin() + static_cast<std::ptrdiff_t>(std::min(index, arrays.size()));
  return static_cast<uint32_t>(std::count_if(
      arrays.begin(), end, [](const program::ForeignArray& array) { return !array.is_token; }));
}

}  // namespace

const Dict* attributes_of_call(const Instruction& op) {
  const Attribute* const typed = find(op.discardable(), kTypedConfig);
  const Dict* const attributes = typed == nullptr ? nullptr : typed->get<Dict>();
  return attributes != nullptr ? attributes : op.attr<Dict>(AttrKey::backend_config);
}

Result<program::ForeignCall> foreign_call_of(const Instruction& op) {
  if (!is_row_major(op, AttrKey::operand_layouts) || !is_row_major(op, AttrKey::result_layouts)) {
    return Error(unsupported(op, "layouts that are not row-major, before the pass call-layouts"));
  }
  program::ForeignCall foreign;
  std::vector<Type> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  foreign.operands = arrays_of(operands, orders_in(op, kOperandLayouts));
  foreign.results = arrays_of(op.result_types(), orders_in(op, kResultLayouts));
  if (const auto* aliases = op.attr<ArrayAttr>(AttrKey::output_operand_aliases)) {
    for (const Attribute& each : *aliases) {
      const auto* alias = each.get<OutputOperandAlias>();
      if (alias == nullptr) continue;
      const int64_t result =
          alias->output_tuple_indices.empty() ? 0 : alias->output_tuple_indices[0];
      const auto is_array = [](int64_t index, const std::vector<program::ForeignArray>& arrays) {
        return index >= 0 && index < static_cast<int64_t>(arrays.size()) &&
               !arrays[static_cast<size_t>(index)].is_token;
      };
      if (!is_array(alias->operand_index, foreign.operands) || !is_array(result, foreign.results)) {
        continue;  // A token has no memory.
      }
      foreign.aliases.emplace_back(
          number_among_arrays(foreign.results, static_cast<size_t>(result)),
          number_among_arrays(foreign.operands, static_cast<size_t>(alias->operand_index)));
    }
  }
  const Dict* const attributes = attributes_of_call(op);
  if (attributes != nullptr && has_separators(*attributes)) {
    return Error(unsupported(op, "an attribute whose name has the character U+001F"));
  }
  if (attributes != nullptr) add_attributes(*attributes, "", foreign.attributes);
  return foreign;
}

}  // namespace tenon::hlo::lower
