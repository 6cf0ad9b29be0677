// Files, functions, regions, ops in generic form, value names.
#include "hlo/text/parser.h"

#include <algorithm>

namespace tenon::hlo {

Result<RawModule> Parser::parse() {
  const bool good = parse_file(module_);
  if (!good) {
    // Locations that refer to each other would keep each other alive.
    for (auto& [name, node] : location_aliases_) node->children.clear();
    return Error(Status(scan_.status()).in_stage("parse"));
  }
  return std::move(module_);
}

namespace {

// Aliases can make locations refer to themselves, or nest without bound.
class LocationDepth {
 public:
  explicit LocationDepth(int limit) : limit_(limit) {}
  bool within_limit(const LocationNode* node, int depth = 0) {
    if (node == nullptr) return true;
    const auto known = depth_.find(node);
    if (known != depth_.end() && known->second >= depth) return known->second <= limit_;
    if (depth > limit_) return false;
    depth_[node] = depth;
    return std::all_of(node->children.begin(), node->children.end(),
                       [&](const Location& child) { return within_limit(child.get(), depth + 1); });
  }

 private:
  int limit_;
  std::unordered_map<const LocationNode*, int> depth_;
};

}  // namespace

bool Parser::parse_file(RawModule& out) {
  if (!parse_resources() || !parse_alias_definitions()) return false;
  out.module.name = "builtin.module";
  const size_t start = scan_.token_start();
  if (scan_.peek_word() == "hlo_module") {
    is_hlo_ = true;
  }
  if (is_hlo_ || scan_.peek_word() == "module" || scan_.peek_word() == "builtin.module" ||
      scan_.peek("\"builtin.module\"")) {
    if (!parse_op(out.module)) return false;
  } else {
    // A file of functions is a module.
    out.module.location = location_here();
    out.module.regions.emplace_back();
    while (!scan_.at_end() && !scan_.peek("{-#") && !scan_.peek("#")) {
      out.module.regions[0].ops.emplace_back();
      if (!parse_op(out.module.regions[0].ops.back())) return false;
    }
    if (out.module.regions[0].ops.empty()) return scan_.fail_expected("a module or a function");
  }
  if (!parse_alias_definitions()) return false;
  if (!scan_.at_end() && scan_.token_start() != resources_at_) {
    return scan_.fail_expected("the end of the text");
  }
  for (size_t i = location_copies_.size(); i-- > 0;) {
    *location_copies_[i].first = *location_copies_[i].second;
  }
  LocationDepth depth(limits_.max_depth);
  for (const auto& [name, node] : location_aliases_) {
    if (!depth.within_limit(node.get())) {
      return scan_.fail_at(start, fmt::format("location alias '#{}' refers to itself or is nested "
                                              "deeper than {} levels",
                                              name, limits_.max_depth));
    }
  }
  return true;
}

bool Parser::parse_alias_definitions() {
  while (true) {
    const size_t start = scan_.token_start();
    const char sigil = scan_.peek();
    if (sigil != '#' && sigil != '!') return true;
    scan_.accept(sigil);
    const std::string name(scan_.suffix());
    if (name.empty() || !scan_.accept('=')) {
      scan_.set_offset(start);
      return true;
    }
    const int64_t size_before = size_;
    peak_ = depth_;
    const size_t text_before = scan_.offset();
    // Long lists and texts are copied to each use of the alias; elements of constants are shared.
    const auto extent = [&](bool is_shared) {
      constexpr size_t kTextOfOne = 4;  // A type or attribute takes this much memory, in text.
      if (!is_shared) size_ += static_cast<int64_t>((scan_.offset() - text_before) / kTextOfOne);
      return ParsedExtent{peak_ - depth_, size_ - size_before};
    };
    if (sigil == '!') {
      Type type;
      if (!parse_type(type)) return false;
      type_aliases_[name] = {std::move(type), extent(false)};
    } else if (scan_.peek_word() == "loc") {
      if (!parse_location_alias_definition(name)) return false;
    } else {
      Attribute value;
      if (!parse_attribute(value)) return false;
      const bool is_constant = value.get<DenseAttr>() != nullptr;
      attribute_aliases_[name] = {std::move(value), extent(is_constant)};
    }
  }
}

// --- Values

bool Parser::parse_name(Name& out) {
  out.offset = scan_.token_start();
  if (!scan_.accept('%')) return scan_.fail_expected("a value");
  out.text = scan_.suffix();
  if (out.text.empty()) return scan_.fail_expected("a value name after '%'");
  out.number = -1;
  if (scan_.text().substr(scan_.offset()).starts_with("#")) {
    scan_.accept('#');
    if (!scan_.integer(out.number)) return false;
  }
  return true;
}

bool Parser::define(std::string_view name, const Type& type, RawValue& out) {
  out = static_cast<RawValue>(module_.value_types.size());
  module_.value_types.push_back(type);
  Definition& definition = values_[name];
  if (definition.count != 0 && definition.scope == marks_.size() && !name.empty()) {
    return fail_at_name(name, fmt::format("%{} is defined twice", name));
  }
  undo_.emplace_back(name, definition);
  definition = {out, 1, marks_.size()};
  return true;
}

bool Parser::define_argument(std::string_view name, const Type& type, RawRegion& region) {
  return define(name, type, region.arguments.emplace_back());
}

void Parser::close_scope() {
  while (undo_.size() > marks_.back()) {
    const auto& [name, previous] = undo_.back();
    if (previous.count == 0) {
      values_.erase(name);
    } else {
      values_[name] = previous;
    }
    undo_.pop_back();
  }
  marks_.pop_back();
}

bool Parser::resolve(const Name& name, RawValue& out) {
  const auto found = values_.find(name.text);
  if (found == values_.end()) {
    return scan_.fail_at(name.offset, fmt::format("%{} is not defined here", name.text));
  }
  const int64_t number = std::max<int64_t>(name.number, 0);
  if (number >= found->second.count) {
    return scan_.fail_at(name.offset, fmt::format("%{} has {} results, there is no #{}", name.text,
                                                  found->second.count, number));
  }
  out = found->second.first + static_cast<RawValue>(number);
  return true;
}

bool Parser::parse_operand(RawOp& out) {
  Name name;
  RawValue value = 0;
  if (!parse_name(name) || !resolve(name, value)) return false;
  out.operands.push_back(value);
  return true;
}

bool Parser::parse_operands(RawOp& out, char closing) {
  if (scan_.peek() == closing) return true;
  do {
    if (!parse_operand(out)) return false;
  } while (scan_.accept(','));
  return true;
}

bool Parser::check_operand_types(const RawOp& op, const std::vector<Type>& types) {
  if (types.size() != op.operands.size()) {
    return scan_.fail("{}: {} operands but {} operand types", op.name, op.operands.size(),
                      types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const Type actual = type_of(op.operands[i]);
    if (actual == types[i]) continue;
    return scan_.fail("{}: operand {} has type {}, written as {}", op.name, i, actual.to_string(),
                      types[i].to_string());
  }
  return true;
}

bool Parser::define_results(const std::vector<std::pair<std::string_view, uint32_t>>& names,
                            size_t name_offset, const std::vector<Type>& types, RawOp& op) {
  size_t total = 0;
  for (const auto& [name, count] : names) total += count;
  if (!names.empty() && total != types.size()) {
    return scan_.fail_at(
        name_offset, fmt::format("{} has {} results, {} are named", op.name, types.size(), total));
  }
  size_t next = 0;
  for (const auto& [name, count] : names) {
    for (uint32_t i = 0; i < count; ++i) {
      if (i == 0) {
        if (!define(name, types[next++], op.results.emplace_back())) return false;
        values_[name].count = count;
      } else {
        op.results.push_back(static_cast<RawValue>(module_.value_types.size()));
        module_.value_types.push_back(types[next++]);
      }
    }
  }
  for (; next < types.size(); ++next) {
    op.results.push_back(static_cast<RawValue>(module_.value_types.size()));
    module_.value_types.push_back(types[next]);
  }
  return true;
}

// --- Ops

bool Parser::parse_op(RawOp& out) {
  if (!enter()) return false;
  const LeaveOnReturn leave_on_return{*this};
  std::vector<std::pair<std::string_view, uint32_t>> names;
  const size_t start = scan_.token_start();
  if (scan_.peek() == '%') {
    do {
      Name name;
      if (!parse_name(name)) return false;
      int64_t count = 1;
      if (scan_.accept(':') && !scan_.integer(count)) return false;
      if (count < 1 || count > 1000000) return scan_.fail("{} results cannot be named", count);
      names.emplace_back(name.text, static_cast<uint32_t>(count));
    } while (scan_.accept(','));
    if (!scan_.expect('=')) return false;
  }
  out.location = location_here();
  std::vector<Type> types;
  if (!parse_op_body(out, types)) return false;
  if (!parse_optional_location(out)) return false;
  return define_results(names, start, types, out);
}

bool Parser::parse_op_body(RawOp& out, std::vector<Type>& result_types) {
  if (scan_.peek() == '"') return parse_generic_op(out, result_types);
  const std::string_view word = scan_.word(/*dashes=*/true);
  if (word.empty()) return scan_.fail_expected("an op");
  if (word == "func.func") return parse_function(out);
  if (word == "module" || word == "builtin.module" || word == "hlo_module") {
    return parse_module_op(out);
  }
  return is_hlo_ ? parse_hlo_op(word, out, result_types) : parse_pretty_op(word, out, result_types);
}

bool Parser::parse_generic_op(RawOp& out, std::vector<Type>& result_types) {
  if (!scan_.string_literal(out.name) || !scan_.expect('(') || !parse_operands(out, ')') ||
      !scan_.expect(')')) {
    return false;
  }
  if (scan_.peek("[")) return scan_.fail("{}: successor blocks are not supported", out.name);
  if (scan_.accept('<')) {
    if (!scan_.expect('{') || !parse_dict_entries(out.attributes, '}') || !scan_.expect('>')) {
      return false;
    }
  }
  if (scan_.peek() == '(' && !parse_region_list(out)) return false;
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  std::vector<Type> operand_types;
  return scan_.expect(':') && parse_function_type(operand_types, result_types) &&
         check_operand_types(out, operand_types);
}

// HLO text: name '(' operands ')' [dict] ['(' regions ')'] [':' types]
bool Parser::parse_hlo_op(std::string_view name, RawOp& out, std::vector<Type>& result_types) {
  out.name = name;
  const auto code = op_from_name(name);
  const OpInfo* info = code ? &op_info(*code) : nullptr;
  if (!scan_.expect('(') || !parse_operands(out, ')') || !scan_.expect(')')) return false;
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes, info)) return false;
  if (scan_.peek() == '(' && !parse_region_list(out)) return false;
  return !scan_.accept(':') || parse_type_list(result_types);
}

bool Parser::parse_module_op(RawOp& out) {
  out.name = "builtin.module";
  if (scan_.peek() == '@') {
    std::string name;
    if (!parse_symbol(name)) return false;
    insert(out.attributes, "sym_name", Attribute(std::move(name)));
  }
  if (scan_.accept_keyword("attributes") && !parse_attribute_dict(out.attributes)) return false;
  out.regions.emplace_back();
  return parse_region(out.regions.back());
}

bool Parser::parse_function(RawOp& out) {
  out.name = "func.func";
  for (const std::string_view word : {"public", "private", "nested"}) {
    if (scan_.accept_keyword(word)) insert(out.attributes, "sym_visibility", std::string(word));
  }
  std::string name;
  if (!parse_symbol(name) || !scan_.expect('(')) return false;
  insert(out.attributes, "sym_name", Attribute(std::move(name)));

  // A function cannot use values of another function.
  std::unordered_map<std::string_view, Definition> outer;
  outer.swap(values_);
  open_scope();
  RawRegion body;
  std::vector<Type> inputs;
  std::vector<Type> results;
  ArrayAttr arg_attrs;
  ArrayAttr res_attrs;
  bool any_arg = false;
  bool any_res = false;
  while (scan_.peek() != ')') {
    std::string_view argument;
    if (scan_.peek() == '%') {
      Name argument_name;
      if (!parse_name(argument_name) || !scan_.expect(':')) return false;
      argument = argument_name.text;
    }
    Type type;
    Dict attributes;
    Location location = location_here();
    if (!parse_type(type)) return false;
    if (scan_.peek() == '{' && !parse_attribute_dict(attributes)) return false;
    if (scan_.peek_word() == "loc" && !parse_location(location)) return false;
    if (!define_argument(argument, type, body)) return false;
    body.argument_locations.push_back(std::move(location));
    inputs.push_back(std::move(type));
    any_arg |= !attributes.empty();
    arg_attrs.emplace_back(std::move(attributes));
    if (!scan_.accept(',')) break;
  }
  if (!scan_.expect(')')) return false;
  if (scan_.accept("->") && !parse_function_results(results, res_attrs, any_res)) return false;
  insert(out.attributes, "function_type", Attribute(Type::function(inputs, results)));
  if (any_arg) insert(out.attributes, "arg_attrs", Attribute(std::move(arg_attrs)));
  if (any_res) insert(out.attributes, "res_attrs", Attribute(std::move(res_attrs)));
  if (scan_.accept_keyword("attributes") && !parse_attribute_dict(out.attributes)) return false;
  if (!scan_.peek("{-#") && scan_.accept('{')) {
    if (!parse_ops(body.ops) || !scan_.expect('}')) return false;
    out.regions.push_back(std::move(body));
  }
  close_scope();
  values_.swap(outer);
  return true;
}

bool Parser::parse_function_results(std::vector<Type>& types, ArrayAttr& attributes, bool& any) {
  if (!scan_.accept('(')) {
    types.emplace_back();
    attributes.emplace_back(Dict{});
    return parse_type(types.back());
  }
  while (scan_.peek() != ')') {
    Dict dict;
    types.emplace_back();
    if (!parse_type(types.back())) return false;
    if (scan_.peek() == '{' && !parse_attribute_dict(dict)) return false;
    any |= !dict.empty();
    attributes.emplace_back(std::move(dict));
    if (!scan_.accept(',')) break;
  }
  return scan_.expect(')');
}

// --- Regions

bool Parser::parse_ops(std::vector<RawOp>& out) {
  while (scan_.peek() != '}' && !scan_.at_end()) {
    out.emplace_back();
    if (!parse_op(out.back())) return false;
    if (scan_.peek() == '^') return scan_.fail("a region with several blocks is not supported");
  }
  return !scan_.failed();
}

bool Parser::parse_region_list(RawOp& out) {
  if (!scan_.expect('(')) return false;
  do {
    out.regions.emplace_back();
    if (!parse_region(out.regions.back())) return false;
  } while (scan_.accept(','));
  return scan_.expect(')');
}

bool Parser::parse_region(RawRegion& out) {
  if (!scan_.expect('{')) return false;
  open_scope();
  const bool good = parse_region_body(out);
  close_scope();
  return good && scan_.expect('}');
}

bool Parser::parse_region_body(RawRegion& out) {
  if (scan_.peek() == '^' && !parse_block_arguments(out)) return false;
  return parse_ops(out.ops);
}

// '^bb0(%a: T loc(…), …):'
bool Parser::parse_block_arguments(RawRegion& out) {
  if (!scan_.expect('^')) return false;
  scan_.suffix();
  if (scan_.accept('(')) {
    while (scan_.peek() != ')') {
      Name name;
      Type type;
      if (!parse_name(name) || !scan_.expect(':')) return false;
      Location location = location_here();
      if (!parse_type(type)) return false;
      if (scan_.peek_word() == "loc" && !parse_location(location)) return false;
      if (!define_argument(name.text, type, out)) return false;
      out.argument_locations.push_back(std::move(location));
      if (!scan_.accept(',')) break;
    }
    if (!scan_.expect(')')) return false;
  }
  return scan_.expect(':');
}

Result<RawModule> parse_mlir_text(std::string_view text, const std::string& file_name,
                                  const ImportLimits& limits) {
  return Parser(text, file_name, limits).parse();
}

}  // namespace tenon::hlo
