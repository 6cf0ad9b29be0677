#include "hlo/text/printer.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/text/attribute_printer.h"
#include "hlo/text/parser.h"

namespace tenon::hlo {
namespace {

class ModulePrinter {
 public:
  explicit ModulePrinter(const PrintOptions& options)
      : options_(options), form_(options.form), hlo_(options.form == TextForm::kHlo) {}

  std::string module(const Module& module);
  std::string single(const Instruction& op) {
    instruction(op);
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    out_ += text;
  }
  void location(const Location& where) {
    if (options_.locations) out_ += fmt::format(" loc({})", location_to_string(where));
  }
  std::string type(const Type& t) const { return type_text(t, form_); }
  std::string types(const std::vector<Type>& list) const;
  std::string function_type(const Instruction& op) const;
  std::string name(Value value);
  std::string names(const Instruction& op, size_t first = 0, size_t count = SIZE_MAX);
  void number(const Instruction& op);

  void function(const Computation& f);
  void body(const Computation& computation);
  void region(const Computation& computation);
  void instruction(const Instruction& op);
  void hlo_form(const Instruction& op);
  void generic_form(const Instruction& op);
  bool pretty_form(const Instruction& op);
  bool custom_form(const Instruction& op);
  void by_format(const Instruction& op);
  void format_item(const Instruction& op, std::string_view item, bool& first);
  void reduce(const Instruction& op);
  void while_loop(const Instruction& op);
  std::string dictionary(const Instruction& op, std::vector<AttrKey> shown);
  std::string window(const Instruction& op);
  bool same_type(const Instruction& op) const;

  PrintOptions options_;
  TextForm form_;
  bool hlo_;
  std::string out_;
  int indent_ = 0;
  int next_value_ = 0;
  int next_argument_ = 0;
  std::unordered_map<const Instruction*, std::string> names_;
};

std::string ModulePrinter::types(const std::vector<Type>& list) const {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ", ") + type(list[i]);
  return text;
}

std::string ModulePrinter::function_type(const Instruction& op) const {
  std::vector<Type> inputs;
  for (size_t i = 0; i < op.operand_count(); ++i) inputs.push_back(op.operand_type(i));
  const std::string results = types(op.result_types());
  return op.result_count() == 1 ? fmt::format("({}) -> {}", types(inputs), results)
                                : fmt::format("({}) -> ({})", types(inputs), results);
}

void ModulePrinter::number(const Instruction& op) {
  if (op.result_count() != 0) names_[&op] = fmt::format("{}", next_value_++);
}

std::string ModulePrinter::name(Value value) {
  std::string& known = names_[value.def];
  if (known.empty()) known = fmt::format("{}", next_value_++);
  if (value.def->result_count() == 1) return fmt::format("%{}", known);
  return fmt::format("%{}#{}", known, value.index);
}

std::string ModulePrinter::names(const Instruction& op, size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < op.operand_count() && i - first < count; ++i) {
    text += (i == first ? "" : ", ") + name(op.operand(i));
  }
  return text;
}

std::string ModulePrinter::module(const Module& module) {
  line(hlo_ ? "hlo_module" : "module");
  if (!module.name().empty()) out_ += " " + symbol_text(module.name());
  if (!module.attributes().empty()) out_ += " attributes " + dict_text(module.attributes(), form_);
  out_ += " {\n";
  ++indent_;
  for (const auto& f : module.functions()) function(*f);
  --indent_;
  out_ += "}\n";
  return std::move(out_);
}

void ModulePrinter::function(const Computation& f) {
  names_.clear();
  next_value_ = next_argument_ = 0;
  line("func.func ");
  if (!f.visibility().empty()) out_ += f.visibility() + " ";
  out_ += symbol_text(f.name()) + "(";
  for (size_t i = 0; i < f.parameter_count(); ++i) {
    if (i != 0) out_ += ", ";
    if (!f.is_declaration()) {
      names_[f.parameter(i).def] = fmt::format("arg{}", next_argument_++);
      out_ += name(f.parameter(i)) + ": ";
    }
    out_ += type(f.parameter(i).type());
    if (i < f.parameter_attributes().size() && !f.parameter_attributes()[i].empty()) {
      out_ += " " + dict_text(f.parameter_attributes()[i], form_);
    }
    location(f.parameter(i).def->location());
  }
  out_ += ")";
  const std::vector<Type> results = f.result_types();
  if (!results.empty()) {
    out_ += " -> (";
    for (size_t i = 0; i < results.size(); ++i) {
      if (i != 0) out_ += ", ";
      out_ += type(results[i]);
      if (i < f.result_attributes().size() && !f.result_attributes()[i].empty()) {
        out_ += " " + dict_text(f.result_attributes()[i], form_);
      }
    }
    out_ += ")";
  }
  if (!f.attributes().empty()) out_ += " attributes " + dict_text(f.attributes(), form_);
  if (!f.is_declaration()) {
    out_ += " {\n";
    body(f);
    line("}");
  }
  location(f.location());
  out_ += "\n";
}

void ModulePrinter::body(const Computation& computation) {
  ++indent_;
  for (const Instruction& op : computation) instruction(op);
  --indent_;
}

// '{' [^bb0(args):] ops '}'
void ModulePrinter::region(const Computation& computation) {
  out_ += "{\n";
  if (computation.parameter_count() != 0) {
    line("^bb0(");
    for (size_t i = 0; i < computation.parameter_count(); ++i) {
      const Value parameter = computation.parameter(i);
      names_[parameter.def] = fmt::format("arg{}", next_argument_++);
      out_ += fmt::format("{}{}: {}", i == 0 ? "" : ", ", name(parameter), type(parameter.type()));
      location(parameter.def->location());
    }
    out_ += "):\n";
  }
  body(computation);
  line("}");
}

void ModulePrinter::instruction(const Instruction& op) {
  number(op);
  line("");
  if (op.result_count() == 1) out_ += fmt::format("%{} = ", names_[&op]);
  if (op.result_count() > 1) out_ += fmt::format("%{}:{} = ", names_[&op], op.result_count());
  if (hlo_) {
    hlo_form(op);
  } else if (!pretty_form(op)) {
    generic_form(op);
  }
  location(op.location());
  out_ += "\n";
}

// " {a = 1, b}" for the attributes that are not in `shown`; empty if there are none.
std::string ModulePrinter::dictionary(const Instruction& op, std::vector<AttrKey> shown) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text +=
        fmt::format("{}{}{}", text.empty() ? "" : ", ", key, value.empty() ? "" : " = " + value);
  };
  for (const auto& [key, value] : op.attributes()) {
    if (std::find(shown.begin(), shown.end(), key) != shown.end()) continue;
    const AttrSpec* spec = op.info().find_attribute(key);
    const bool unit = spec->kind == AttrKind::kUnit && !hlo_;
    add(attr_key_name(key), unit ? "" : attribute_text(*spec, value, form_));
  }
  // StableHLO wants both layouts or none, of no operands or results too.
  if (op.code() == OpCode::kCustomCall && !hlo_) {
    const bool of_operands = op.attribute(AttrKey::operand_layouts) != nullptr;
    const bool of_results = op.attribute(AttrKey::result_layouts) != nullptr;
    if (of_operands && !of_results) add(attr_key_name(AttrKey::result_layouts), "[]");
    if (of_results && !of_operands) add(attr_key_name(AttrKey::operand_layouts), "[]");
  }
  if (!op.discardable().empty()) {
    const std::string rest = dict_text(op.discardable(), form_);
    if (!text.empty()) text += ", ";
    text += rest.substr(1, rest.size() - 2);
  }
  return text.empty() ? "" : fmt::format(" {{{}}}", text);
}

void ModulePrinter::hlo_form(const Instruction& op) {
  out_ += fmt::format("{}({}){}", op.name(), names(op), dictionary(op, {}));
  for (size_t i = 0; i < op.region_count(); ++i) {
    out_ += i == 0 ? " (" : ", ";
    region(op.region(i));
  }
  if (op.region_count() != 0) out_ += ")";
  if (op.result_count() != 0) out_ += " : " + types(op.result_types());
}

void ModulePrinter::generic_form(const Instruction& op) {
  out_ += fmt::format("\"{}\"({})", op.name(), names(op));
  for (size_t i = 0; i < op.region_count(); ++i) {
    out_ += i == 0 ? " (" : ", ";
    region(op.region(i));
  }
  if (op.region_count() != 0) out_ += ")";
  out_ += dictionary(op, {});
  out_ += " : " + function_type(op);
}

bool ModulePrinter::same_type(const Instruction& op) const {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!(op.operand_type(i) == op.result_type())) return false;
  }
  return true;
}

bool ModulePrinter::pretty_form(const Instruction& op) {
  const OpInfo& info = op.info();
  switch (info.syntax) {
    case Syntax::kGeneric:
      return false;
    case Syntax::kCustom:
      return custom_form(op);
    case Syntax::kSameType:
      by_format(op);
      out_ += " : " + (same_type(op) ? type(op.result_type()) : function_type(op));
      return true;
    case Syntax::kFunctionType:
      by_format(op);
      out_ += " : " + function_type(op);
      return true;
    case Syntax::kResultType:
      by_format(op);
      out_ += " : " + type(op.result_type());
      return true;
    case Syntax::kArrow:
    case Syntax::kOperandsArrow: {
      by_format(op);
      out_ += " : ";
      for (size_t i = 0; i < op.operand_count(); ++i) {
        out_ += (i == 0 ? "" : ", ") + type(op.operand_type(i));
      }
      out_ += " -> " + type(op.result_type());
      return true;
    }
  }
  return false;
}

void ModulePrinter::by_format(const Instruction& op) {
  out_ += op.name();
  std::vector<AttrKey> shown;
  bool first = true;
  std::string_view rest = op.info().format;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view item = rest.substr(0, end);
    format_item(op, item, first);
    if (item != "%") {
      if (item.ends_with('?')) item.remove_suffix(1);
      shown.push_back(*attr_key_from_name(item.substr(item.find('=') + 1)));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  out_ += dictionary(op, shown);
}

void ModulePrinter::format_item(const Instruction& op, std::string_view item, bool& first) {
  const auto separate = [&] {
    out_ += first ? " " : ", ";
    first = false;
  };
  if (item == "%") {
    if (op.operand_count() == 0) return;
    separate();
    out_ += names(op);
    return;
  }
  if (item.ends_with('?')) item.remove_suffix(1);
  const size_t equals = item.find('=');
  const std::string_view key = equals == std::string_view::npos ? item : item.substr(equals + 1);
  const AttrSpec* spec = op.info().find_attribute(*attr_key_from_name(key));
  const Attribute* value = op.attribute(spec->key);
  if (value == nullptr) return;
  separate();
  if (equals != std::string_view::npos) out_ += fmt::format("{} = ", item.substr(0, equals));
  // Within a pretty form, values have the short spelling of HLO text.
  out_ += attribute_text(*spec, *value, TextForm::kHlo);
}

std::string ModulePrinter::window(const Instruction& op) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, value);
  };
  if (const auto* list = op.attr<I64s>(AttrKey::window_strides)) add("stride", list_text(*list));
  if (const Attribute* padding = op.attribute(AttrKey::padding)) {
    add("pad",
        attribute_text(*op.info().find_attribute(AttrKey::padding), *padding, TextForm::kHlo));
  }
  if (const auto* list = op.attr<I64s>(AttrKey::lhs_dilation)) add("lhs_dilate", list_text(*list));
  if (const auto* list = op.attr<I64s>(AttrKey::rhs_dilation)) add("rhs_dilate", list_text(*list));
  if (const auto* flags = op.attr<BoolsAttr>(AttrKey::window_reversal)) {
    add("reverse", list_text(I64s(flags->values.begin(), flags->values.end())));
  }
  return fmt::format("{{{}}}", text);
}

bool ModulePrinter::custom_form(const Instruction& op) {
  switch (op.code()) {
    case OpCode::kConstant: {
      const auto* value = op.attr<DenseAttr>(AttrKey::value);
      // The type of a quantized constant's value differs from its result type.
      if (!(Type(value->shape) == op.result_type())) return false;
      out_ += fmt::format("{}{} {} : {}", op.name(), dictionary(op, {AttrKey::value}),
                          dense_text(*value, form_), type(op.result_type()));
      return true;
    }
    case OpCode::kSelect: {
      const bool plain =
          op.operand_type(1) == op.result_type() && op.operand_type(2) == op.result_type();
      out_ += fmt::format(
          "{} {}{} : {}", op.name(), names(op), dictionary(op, {}),
          plain ? type(op.operand_type(0)) + ", " + type(op.result_type()) : function_type(op));
      return true;
    }
    case OpCode::kSlice: {
      const I64s& start = op.i64s(AttrKey::start_indices);
      const I64s& limit = op.i64s(AttrKey::limit_indices);
      const I64s& strides = op.i64s(AttrKey::strides);
      out_ += fmt::format("{} {} [", op.name(), names(op));
      for (size_t i = 0; i < start.size(); ++i) {
        out_ += fmt::format("{}{}:{}", i == 0 ? "" : ", ", start[i], limit[i]);
        if (strides[i] != 1) out_ += fmt::format(":{}", strides[i]);
      }
      out_ +=
          "]" + dictionary(op, {AttrKey::start_indices, AttrKey::limit_indices, AttrKey::strides});
      out_ += " : " + function_type(op);
      return true;
    }
    case OpCode::kDotGeneral: {
      const auto* dims = op.attr<DotDims>(AttrKey::dot_dimension_numbers);
      out_ += fmt::format("{} {}", op.name(), names(op));
      if (!dims->lhs_batching.empty() || !dims->rhs_batching.empty()) {
        out_ += fmt::format(", batching_dims = {} x {}", list_text(dims->lhs_batching),
                            list_text(dims->rhs_batching));
      }
      out_ += fmt::format(", contracting_dims = {} x {}", list_text(dims->lhs_contracting),
                          list_text(dims->rhs_contracting));
      if (const Attribute* precision = op.attribute(AttrKey::precision_config)) {
        out_ +=
            ", precision = " + attribute_text(*op.info().find_attribute(AttrKey::precision_config),
                                              *precision, TextForm::kHlo);
      }
      if (const auto* algorithm = op.attr<DotAlgorithm>(AttrKey::algorithm)) {
        out_ += ", algorithm = " + dot_algorithm_text(*algorithm);
      }
      out_ += dictionary(
          op, {AttrKey::dot_dimension_numbers, AttrKey::precision_config, AttrKey::algorithm});
      out_ += " : " + function_type(op);
      return true;
    }
    case OpCode::kConvolution:
      out_ += fmt::format(
          "{}({}) dim_numbers = {}, window = {}{} : {}", op.name(), names(op),
          conv_dims_text(*op.attr<ConvDims>(AttrKey::dimension_numbers)), window(op),
          dictionary(op, {AttrKey::dimension_numbers, AttrKey::window_strides, AttrKey::padding,
                          AttrKey::lhs_dilation, AttrKey::rhs_dilation, AttrKey::window_reversal}),
          function_type(op));
      return true;
    case OpCode::kReduce:
      reduce(op);
      return true;
    case OpCode::kWhile:
      while_loop(op);
      return true;
    case OpCode::kCustomCall:
      out_ += fmt::format("{} {}({}){} : {}", op.name(),
                          symbol_text(op.text(AttrKey::call_target_name)), names(op),
                          dictionary(op, {AttrKey::call_target_name}), function_type(op));
      return true;
    case OpCode::kCall:
      out_ += fmt::format("{} {}({}){} : {}", op.name(), symbol_text(op.text(AttrKey::callee)),
                          names(op), dictionary(op, {AttrKey::callee}), function_type(op));
      return true;
    case OpCode::kReturn:
      out_ +=
          op.parent() != nullptr && op.parent()->is_function() ? "func.return" : "stablehlo.return";
      if (op.operand_count() != 0) {
        out_ += " " + names(op) + dictionary(op, {}) + " : ";
        for (size_t i = 0; i < op.operand_count(); ++i) {
          out_ += (i == 0 ? "" : ", ") + type(op.operand_type(i));
        }
      }
      return true;
    case OpCode::kGetTupleElement:
      out_ += fmt::format("{} {}[{}]{} : {}", op.name(), names(op), op.integer(AttrKey::index),
                          dictionary(op, {AttrKey::index}), function_type(op));
      return true;
    case OpCode::kOptimizationBarrier:
      if (op.operand_count() == 0) return false;
      out_ += fmt::format("{} {}{} : {}", op.name(), names(op), dictionary(op, {}),
                          types(op.result_types()));
      return true;
    case OpCode::kReducePrecision:
      out_ += fmt::format("{} {}, format = e{}m{}{} : {}", op.name(), names(op),
                          op.integer(AttrKey::exponent_bits), op.integer(AttrKey::mantissa_bits),
                          dictionary(op, {AttrKey::exponent_bits, AttrKey::mantissa_bits}),
                          same_type(op) ? type(op.result_type()) : function_type(op));
      return true;
    case OpCode::kChloTopK:
      out_ += fmt::format("{}({}, k = {}{}){} : {} -> ({})", op.name(), names(op),
                          op.integer(AttrKey::k),
                          op.flag(AttrKey::is_stable, true) ? "" : ", is_stable = false",
                          dictionary(op, {AttrKey::k, AttrKey::is_stable}),
                          type(op.operand_type(0)), types(op.result_types()));
      return true;
    default:
      return false;
  }
}

void ModulePrinter::reduce(const Instruction& op) {
  const size_t n = op.operand_count() / 2;
  out_ += op.name();
  for (size_t i = 0; i < n; ++i) {
    out_ += fmt::format("{}({} init: {})", i == 0 ? "" : ", ", name(op.operand(i)),
                        name(op.operand(n + i)));
  }
  out_ += fmt::format(" across dimensions = {}{} : {}\n", list_text(op.i64s(AttrKey::dimensions)),
                      dictionary(op, {AttrKey::dimensions}), function_type(op));
  // The arguments are pairs (element, accumulator) for each input; the block has all lhs first.
  const Computation& body_region = op.region(0);
  line(" reducer");
  for (size_t i = 0; i < n; ++i) {
    for (const size_t side : {i, n + i}) {
      const Value parameter = body_region.parameter(side);
      names_[parameter.def] = fmt::format("arg{}", next_argument_++);
      out_ +=
          fmt::format("{}{}: {}", side == i ? "(" : ", ", name(parameter), type(parameter.type()));
      location(parameter.def->location());
    }
    out_ += ") ";
  }
  out_ += "{\n";
  body(body_region);
  line("}");
}

void ModulePrinter::while_loop(const Instruction& op) {
  std::vector<std::string> arguments;
  out_ += fmt::format("{}(", op.name());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    arguments.push_back(fmt::format("arg{}", next_argument_++));
    out_ += fmt::format("{}%{} = {}", i == 0 ? "" : ", ", arguments[i], name(op.operand(i)));
  }
  out_ += ")";
  if (op.operand_count() != 0) out_ += " : " + types(op.result_types());
  const std::string attributes = dictionary(op, {});
  if (!attributes.empty()) out_ += " attributes" + attributes;
  out_ += "\n";
  for (size_t r = 0; r < 2; ++r) {
    line(r == 0 ? "cond {\n" : "do {\n");
    for (size_t i = 0; i < arguments.size(); ++i) {
      names_[op.region(r).parameter(i).def] = arguments[i];
    }
    body(op.region(r));
    line(r == 0 ? "}\n" : "}");
  }
}

}  // namespace

std::string print_module(const Module& module, const PrintOptions& options) {
  return ModulePrinter(options).module(module);
}

std::string print_instruction(const Instruction& op, const PrintOptions& options) {
  return ModulePrinter(options).single(op);
}

}  // namespace tenon::hlo
