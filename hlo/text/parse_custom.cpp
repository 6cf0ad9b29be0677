// Ops with their own pretty form: calls, constants, contractions, control flow.
#include <cstdio>

#include "hlo/text/parser.h"

namespace tenon::hlo {

bool Parser::parse_custom(OpCode code, RawOp& out, std::vector<Type>& result_types) {
  switch (code) {
    case OpCode::kConstant:
      return parse_constant(out, result_types);
    case OpCode::kSelect:
      return parse_select(out, result_types);
    case OpCode::kSlice:
      return parse_slice(out, result_types);
    case OpCode::kDotGeneral:
      return parse_dot_general(out, result_types);
    case OpCode::kConvolution:
      return parse_convolution(out, result_types);
    case OpCode::kReduce:
      return parse_reduce(out, result_types);
    case OpCode::kWhile:
      return parse_while(out, result_types);
    case OpCode::kCustomCall:
      return parse_custom_call(out, result_types);
    case OpCode::kComposite:
      return parse_composite(out, result_types);
    case OpCode::kCall:
      return parse_call(out, result_types);
    case OpCode::kReturn:
      return parse_return(out);
    case OpCode::kChloTopK:
      return parse_top_k(out, result_types);
    case OpCode::kChloScan:
      return parse_scan(out, result_types);
    case OpCode::kGetTupleElement: {
      int64_t index = 0;
      if (!parse_operand(out) || !scan_.expect('[') || !scan_.integer(index) ||
          !scan_.expect(']')) {
        return false;
      }
      insert(out.attributes, "index", Attribute(index));
      if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
      return parse_functional(out, result_types);
    }
    case OpCode::kOptimizationBarrier: {
      const bool parenthesised = scan_.accept('(');
      if (!parse_operands(out, parenthesised ? ')' : ':')) return false;
      if (parenthesised && !scan_.expect(')')) return false;
      if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
      if (out.operands.empty()) return true;
      return scan_.expect(':') && parse_type_list(result_types) &&
             check_operand_types(out, result_types);
    }
    case OpCode::kReducePrecision: {
      // "format = e5m10"
      if (!parse_operand(out) || !scan_.expect(',') || !scan_.expect_keyword("format") ||
          !scan_.expect('=')) {
        return false;
      }
      const size_t start = scan_.token_start();
      const std::string format(scan_.word());
      int exponent = -1;
      int mantissa = -1;
      int used = 0;
      if (format.size() > 8 ||
          std::sscanf(format.c_str(), "e%dm%d%n", &exponent, &mantissa, &used) != 2 ||
          static_cast<size_t>(used) != format.size()) {
        return scan_.fail_at(start, fmt::format("'{}' is not a format such as e5m10", format));
      }
      insert(out.attributes, "exponent_bits", Attribute(int64_t{exponent}));
      insert(out.attributes, "mantissa_bits", Attribute(int64_t{mantissa}));
      if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
      return parse_same_type(out, result_types);
    }
    default:
      return scan_.fail("{} has no pretty form", out.name);
  }
}

// [dict] value : the dictionary comes first; the type belongs to the value.
bool Parser::parse_constant(RawOp& out, std::vector<Type>& result_types) {
  if (scan_.peek("<{") || scan_.peek("()")) {
    // The form of quantized constants: () <{value = …}> : () -> T
    if (scan_.accept('(') && !scan_.expect(')')) return false;
    if (scan_.accept('<') &&
        (!scan_.expect('{') || !parse_dict_entries(out.attributes, '}') || !scan_.expect('>'))) {
      return false;
    }
    if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
    return parse_functional(out, result_types);
  }
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  Attribute value;
  if (!parse_attribute(value)) return false;
  const auto* dense = value.get<DenseAttr>();
  if (dense == nullptr)
    return scan_.fail("the value of a constant is dense<…> or dense_resource<…>");
  result_types.emplace_back(dense->shape);
  insert(out.attributes, "value", std::move(value));
  return true;
}

// ': Tpred, Tvalue' or a function type.
bool Parser::parse_select(RawOp& out, std::vector<Type>& result_types) {
  if (!parse_operands(out, ':')) return false;
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  const size_t colon = scan_.token_start();
  if (!scan_.expect(':')) return false;
  if (scan_.peek("(")) {
    scan_.set_offset(colon);
    return parse_functional(out, result_types);
  }
  std::vector<Type> types;
  if (!parse_type_list(types)) return false;
  if (types.size() != 2)
    return scan_.fail("select is followed by two types, found {}", types.size());
  result_types.push_back(types[1]);
  return check_operand_types(out, {types[0], types[1], types[1]});
}

// %a [0:4:2, 1:3]
bool Parser::parse_slice(RawOp& out, std::vector<Type>& result_types) {
  I64s start;
  I64s limit;
  I64s strides;
  if (!parse_operand(out) || !scan_.expect('[')) return false;
  while (!scan_.peek("]")) {
    start.push_back(0);
    limit.push_back(0);
    strides.push_back(1);
    if (!scan_.integer(start.back()) || !scan_.expect(':') || !scan_.integer(limit.back())) {
      return false;
    }
    if (scan_.accept(':') && !scan_.integer(strides.back())) return false;
    if (!scan_.accept(',')) break;
  }
  if (!scan_.expect(']')) return false;
  insert(out.attributes, "start_indices", std::move(start));
  insert(out.attributes, "limit_indices", std::move(limit));
  insert(out.attributes, "strides", std::move(strides));
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  return parse_functional(out, result_types);
}

// %a, %b, [batching_dims = [0] x [0],] contracting_dims = [2] x [1] [, precision = …] [, algorithm
// = <…>]
bool Parser::parse_dot_general(RawOp& out, std::vector<Type>& result_types) {
  DotDims dims;
  if (!parse_operand(out) || !scan_.expect(',') || !parse_operand(out)) return false;
  while (scan_.accept(',')) {
    const size_t start = scan_.token_start();
    const std::string_view word = scan_.word();
    if (!scan_.expect('=')) return false;
    if (word == "batching_dims" || word == "contracting_dims") {
      const bool batching = word == "batching_dims";
      if (!parse_i64_list(batching ? dims.lhs_batching : dims.lhs_contracting) ||
          !scan_.expect('x') ||
          !parse_i64_list(batching ? dims.rhs_batching : dims.rhs_contracting)) {
        return false;
      }
    } else if (word == "precision") {
      Attribute precision;
      if (!parse_attribute_value({AttrKey::precision_config, AttrKind::kPrecisions}, precision)) {
        return false;
      }
      insert(out.attributes, "precision_config", std::move(precision));
    } else if (word == "algorithm") {
      Attribute algorithm;
      if (scan_.peek() == '#' ? !parse_attribute(algorithm) : !parse_dot_algorithm(algorithm)) {
        return false;
      }
      insert(out.attributes, "algorithm", std::move(algorithm));
    } else {
      return scan_.fail_at(start, fmt::format("unknown part '{}' of dot_general", word));
    }
  }
  insert(out.attributes, "dot_dimension_numbers", Attribute(std::move(dims)));
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  return parse_functional(out, result_types);
}

// (%a, %b) dim_numbers = […]x[…]->[…], window = {…} D : FT
bool Parser::parse_convolution(RawOp& out, std::vector<Type>& result_types) {
  ConvDims dims;
  if (!scan_.expect('(') || !parse_operands(out, ')') || !scan_.expect(')') ||
      !scan_.expect_keyword("dim_numbers") || !scan_.expect('=') || !parse_conv_dims(dims) ||
      !scan_.expect(',') || !scan_.expect_keyword("window") || !scan_.expect('=') ||
      !parse_window(out)) {
    return false;
  }
  insert(out.attributes, "dimension_numbers", Attribute(std::move(dims)));
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  return parse_functional(out, result_types);
}

bool Parser::parse_window(RawOp& out) {
  if (!scan_.expect('{')) return false;
  while (!scan_.accept('}')) {
    const size_t start = scan_.token_start();
    const std::string_view word = scan_.word();
    if (!scan_.expect('=')) return false;
    if (word == "pad") {
      I64Matrix padding;
      padding.columns = 2;
      if (!scan_.expect('[')) return false;
      while (!scan_.peek("]")) {
        I64s row;
        if (!parse_i64_list(row)) return false;
        if (row.size() != 2) return scan_.fail("padding is a list of pairs");
        padding.values.insert(padding.values.end(), row.begin(), row.end());
        ++padding.rows;
        if (!scan_.accept(',')) break;
      }
      if (!scan_.expect(']')) return false;
      insert(out.attributes, "padding", Attribute(std::move(padding)));
    } else if (word == "reverse") {
      BoolsAttr reverse;
      if (!scan_.expect('[')) return false;
      while (!scan_.peek("]")) {
        int64_t bit = 0;
        if (scan_.accept_keyword("true")) {
          bit = 1;
        } else if (!scan_.accept_keyword("false") && !scan_.integer(bit)) {
          return false;
        }
        reverse.values.push_back(bit != 0 ? 1 : 0);
        if (!scan_.accept(',')) break;
      }
      if (!scan_.expect(']')) return false;
      insert(out.attributes, "window_reversal", std::move(reverse));
    } else {
      I64s values;
      const std::string_view key = word == "stride"       ? "window_strides"
                                   : word == "lhs_dilate" ? "lhs_dilation"
                                   : word == "rhs_dilate" ? "rhs_dilation"
                                                          : std::string_view{};
      if (key.empty()) return scan_.fail_at(start, fmt::format("unknown window part '{}'", word));
      if (!parse_i64_list(values)) return false;
      insert(out.attributes, std::string(key), std::move(values));
    }
    if (!scan_.accept(',')) return scan_.expect('}');
  }
  return true;
}

// (%a init: %i), (%b init: %j) [applies op] across dimensions = [1] D : FT [reducer(…) (…) {…}]
bool Parser::parse_reduce(RawOp& out, std::vector<Type>& result_types) {
  std::vector<RawValue> inits;
  do {
    RawOp init;
    if (!scan_.expect('(') || !parse_operand(out) || !scan_.expect_keyword("init") ||
        !scan_.expect(':') || !parse_operand(init) || !scan_.expect(')')) {
      return false;
    }
    inits.push_back(init.operands[0]);
  } while (scan_.accept(','));
  out.operands.insert(out.operands.end(), inits.begin(), inits.end());
  std::string combiner;
  Location combiner_location;
  if (scan_.accept_keyword("applies")) {
    combiner_location = location_here();
    combiner = scan_.word();
  }
  I64s dimensions;
  if (!scan_.expect_keyword("across") || !scan_.expect_keyword("dimensions") ||
      !scan_.expect('=') || !parse_i64_list(dimensions)) {
    return false;
  }
  insert(out.attributes, "dimensions", std::move(dimensions));
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  if (!parse_functional(out, result_types)) return false;
  return combiner.empty() ? parse_reducer(out)
                          : parse_applied_reducer(out, combiner, combiner_location);
}

// The region for `applies`: the op on two scalars of the first input's element type.
bool Parser::parse_applied_reducer(RawOp& out, const std::string& combiner,
                                   const Location& location) {
  const Type scalar = type_of(out.operands[0]).with_dims({});
  RawRegion region;
  const auto fresh = [&] {
    module_.value_types.push_back(scalar);
    return static_cast<RawValue>(module_.value_types.size() - 1);
  };
  region.arguments = {fresh(), fresh()};
  RawOp combined;
  combined.name = combiner;
  combined.operands = region.arguments;
  combined.results = {fresh()};
  combined.location = location;
  RawOp end;
  end.name = "stablehlo.return";
  end.operands = combined.results;
  end.location = location;
  region.ops.push_back(std::move(combined));
  region.ops.push_back(std::move(end));
  out.regions.push_back(std::move(region));
  return true;
}

// reducer(%x: T, %acc: T) (…) {…}: pairs (element k of lhs, element k of rhs); the block has all
// lhs first.
bool Parser::parse_reducer(RawOp& out) {
  if (!scan_.expect_keyword("reducer")) return false;
  open_scope();
  RawRegion region;
  std::vector<RawValue> rhs;
  std::vector<Location> rhs_locations;
  while (scan_.accept('(')) {
    for (int side = 0; side < 2; ++side) {
      Name name;
      Type type;
      if (!parse_name(name) || !scan_.expect(':')) return false;
      Location location = location_here();
      if (!parse_type(type)) return false;
      if (scan_.peek_word() == "loc" && !parse_location(location)) return false;
      if (!define(name.text, type, (side == 0 ? region.arguments : rhs).emplace_back()))
        return false;
      (side == 0 ? region.argument_locations : rhs_locations).push_back(std::move(location));
      if (!scan_.expect(side == 0 ? ',' : ')')) return false;
    }
  }
  region.arguments.insert(region.arguments.end(), rhs.begin(), rhs.end());
  region.argument_locations.insert(region.argument_locations.end(), rhs_locations.begin(),
                                   rhs_locations.end());
  const bool good = scan_.expect('{') && parse_ops(region.ops) && scan_.expect('}');
  close_scope();
  out.regions.push_back(std::move(region));
  return good;
}

// (%x = %a, …) : T, … [attributes dict] cond {…} do {…}; the names are the arguments of both
// regions.
bool Parser::parse_while(RawOp& out, std::vector<Type>& result_types) {
  std::vector<Name> names;
  if (!scan_.expect('(')) return false;
  while (scan_.peek() != ')') {
    names.emplace_back();
    if (!parse_name(names.back()) || !scan_.expect('=') || !parse_operand(out)) return false;
    if (!scan_.accept(',')) break;
  }
  if (!scan_.expect(')')) return false;
  if (!names.empty()) {
    if (!scan_.expect(':') || !parse_type_list(result_types) ||
        !check_operand_types(out, result_types)) {
      return false;
    }
  }
  if (scan_.accept_keyword("attributes") && !parse_attribute_dict(out.attributes)) return false;
  for (const std::string_view keyword : {"cond", "do"}) {
    if (!scan_.expect_keyword(keyword) || !scan_.expect('{')) return false;
    open_scope();
    RawRegion region;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!define_argument(names[i].text, result_types[i], region)) return false;
    }
    if (!parse_region_body(region) || !scan_.expect('}')) return false;
    close_scope();
    out.regions.push_back(std::move(region));
  }
  return true;
}

bool Parser::parse_custom_call(RawOp& out, std::vector<Type>& result_types) {
  std::string target;
  if (!parse_symbol(target) || !scan_.expect('(') || !parse_operands(out, ')') ||
      !scan_.expect(')')) {
    return false;
  }
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  insert(out.attributes, "call_target_name", Attribute(std::move(target)));
  return parse_functional(out, result_types);
}

// "name.op" %a, %b [({…}, …)] D : FT
bool Parser::parse_composite(RawOp& out, std::vector<Type>& result_types) {
  std::string name;
  if (!scan_.string_literal(name)) return false;
  if (scan_.peek() == '%' && !parse_operands(out, '{')) return false;
  if (scan_.peek() == '(' && !parse_region_list(out)) return false;
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  insert(out.attributes, "name", Attribute(std::move(name)));
  return parse_functional(out, result_types);
}

bool Parser::parse_call(RawOp& out, std::vector<Type>& result_types) {
  std::string callee;
  if (!parse_symbol(callee) || !scan_.expect('(') || !parse_operands(out, ')') ||
      !scan_.expect(')')) {
    return false;
  }
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  insert(out.attributes, "callee", SymbolAttr{std::move(callee)});
  return parse_functional(out, result_types);
}

bool Parser::parse_return(RawOp& out) {
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  if (scan_.peek() != '%') return true;
  std::vector<Type> types;
  if (!parse_operands(out, ':')) return false;
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  return scan_.expect(':') && parse_type_list(types) && check_operand_types(out, types);
}

// (%a, k = 5 [, is_stable = false]) D : T -> (T, T)
bool Parser::parse_top_k(RawOp& out, std::vector<Type>& result_types) {
  int64_t k = 0;
  if (!scan_.expect('(') || !parse_operand(out) || !scan_.expect(',') ||
      !scan_.expect_keyword("k") || !scan_.expect('=') || !scan_.integer(k)) {
    return false;
  }
  insert(out.attributes, "k", Attribute(k));
  if (scan_.accept(',')) {
    Attribute stable;
    if (!scan_.expect_keyword("is_stable") || !scan_.expect('=') || !parse_attribute(stable)) {
      return false;
    }
    insert(out.attributes, "is_stable", std::move(stable));
  }
  Type operand;
  if (!scan_.expect(')')) return false;
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  if (!scan_.expect(':') || !parse_type(operand) || !scan_.expect("->") || !scan_.expect('(')) {
    return false;
  }
  return parse_type_list(result_types) && scan_.expect(')') && check_operand_types(out, {operand});
}

// (%in, …) inits(%init, …) dimension=0 [attributes dict] {region} : FT
bool Parser::parse_scan(RawOp& out, std::vector<Type>& result_types) {
  int64_t dimension = 0;
  if (!scan_.expect('(') || !parse_operands(out, ')') || !scan_.expect(')')) return false;
  if (!scan_.expect_keyword("inits") || !scan_.expect('(') || !parse_operands(out, ')') ||
      !scan_.expect(')') || !scan_.expect_keyword("dimension") || !scan_.expect('=') ||
      !scan_.integer(dimension)) {
    return false;
  }
  insert(out.attributes, "dimension", Attribute(dimension));
  if (scan_.accept_keyword("attributes") && !parse_attribute_dict(out.attributes)) return false;
  out.regions.emplace_back();
  // The region's parameters determine how the operands are divided (infer::scan_input_count).
  return parse_region(out.regions.back()) && parse_functional(out, result_types);
}

}  // namespace tenon::hlo
