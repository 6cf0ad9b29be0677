// Attributes of StableHLO and CHLO: #stablehlo.dot<…>, #stablehlo.conv<…> and similar ones.
#include "hlo/text/parser.h"

namespace tenon::hlo {

// Called after '#stablehlo.'; returns false without an error for a name that is kept verbatim.
bool Parser::parse_stablehlo_attribute(std::string_view name, Attribute& out) {
  if (name == "dot") {
    DotDims d;
    if (!parse_struct_fields({{"lhs_batching_dimensions", &d.lhs_batching},
                              {"rhs_batching_dimensions", &d.rhs_batching},
                              {"lhs_contracting_dimensions", &d.lhs_contracting},
                              {"rhs_contracting_dimensions", &d.rhs_contracting}},
                             {})) {
      return false;
    }
    out = Attribute(std::move(d));
    return true;
  }
  if (name == "gather") {
    GatherDims d;
    if (!parse_struct_fields({{"offset_dims", &d.offset_dims},
                              {"collapsed_slice_dims", &d.collapsed_slice_dims},
                              {"operand_batching_dims", &d.operand_batching_dims},
                              {"start_indices_batching_dims", &d.start_indices_batching_dims},
                              {"start_index_map", &d.start_index_map}},
                             {{"index_vector_dim", &d.index_vector_dim}})) {
      return false;
    }
    out = Attribute(std::move(d));
    return true;
  }
  if (name == "scatter") {
    ScatterDims d;
    if (!parse_struct_fields({{"update_window_dims", &d.update_window_dims},
                              {"inserted_window_dims", &d.inserted_window_dims},
                              {"input_batching_dims", &d.input_batching_dims},
                              {"scatter_indices_batching_dims", &d.scatter_indices_batching_dims},
                              {"scatter_dims_to_operand_dims", &d.scatter_dims_to_operand_dims}},
                             {{"index_vector_dim", &d.index_vector_dim}})) {
      return false;
    }
    out = Attribute(std::move(d));
    return true;
  }
  if (name == "channel_handle") {
    ChannelHandle handle;
    if (!parse_struct_fields({}, {{"handle", &handle.handle}, {"type", &handle.type}}))
      return false;
    out = handle;
    return true;
  }
  if (name == "conv") {
    ConvDims dims;
    if (!scan_.expect('<')) return false;
    if (scan_.accept_keyword("raw")) {
      // The fields by name, as printed if there is no diagram form.
      const bool good =
          parse_fields({{"input_spatial_dimensions", &dims.input_spatial},
                        {"kernel_spatial_dimensions", &dims.kernel_spatial},
                        {"output_spatial_dimensions", &dims.output_spatial}},
                       {{"input_batch_dimension", &dims.input_batch},
                        {"input_feature_dimension", &dims.input_feature},
                        {"kernel_input_feature_dimension", &dims.kernel_input_feature},
                        {"kernel_output_feature_dimension", &dims.kernel_output_feature},
                        {"output_batch_dimension", &dims.output_batch},
                        {"output_feature_dimension", &dims.output_feature}});
      if (!good) return false;
      out = Attribute(std::move(dims));
      return true;
    }
    if (!parse_conv_dims(dims) || !scan_.expect('>')) return false;
    out = Attribute(std::move(dims));
    return true;
  }
  if (name == "dot_algorithm") return parse_dot_algorithm(out);
  if (name == "result_accuracy") return parse_result_accuracy(out);
  if (name == "output_operand_alias") return parse_output_alias(out);
  if (name == "ragged_dot") return parse_ragged_dims(out);
  if (const auto kind = enum_kind_from_name(name)) {
    return scan_.expect('<') && parse_enum_word(*kind, out) && scan_.expect('>');
  }
  return false;
}

// '<' name = […] or name = n, in any order '>'.
bool Parser::parse_struct_fields(
    const std::vector<std::pair<std::string_view, I64s*>>& lists,
    const std::vector<std::pair<std::string_view, int64_t*>>& numbers) {
  return scan_.expect('<') && parse_fields(lists, numbers);
}

bool Parser::parse_fields(const std::vector<std::pair<std::string_view, I64s*>>& lists,
                          const std::vector<std::pair<std::string_view, int64_t*>>& numbers) {
  while (!scan_.accept('>')) {
    const size_t start = scan_.token_start();
    const std::string_view name = scan_.word();
    if (!scan_.expect('=')) return false;
    bool known = false;
    for (const auto& [field, target] : lists) {
      if (field != name) continue;
      known = true;
      if (!parse_i64_list(*target)) return false;
    }
    for (const auto& [field, target] : numbers) {
      if (field != name) continue;
      known = true;
      if (!scan_.integer(*target)) return false;
    }
    if (!known) return scan_.fail_at(start, fmt::format("unknown field '{}'", name));
    if (!scan_.accept(',')) return scan_.expect('>');
  }
  return true;
}

bool Parser::parse_i64_list(I64s& out) {
  out.clear();
  if (!scan_.expect('[')) return false;
  if (scan_.accept(']')) return true;
  do {
    out.push_back(0);
    if (!scan_.integer(out.back())) return false;
  } while (scan_.accept(','));
  return scan_.expect(']');
}

bool Parser::parse_dot_algorithm(Attribute& out) {
  DotAlgorithm a;
  if (!scan_.expect('<')) return false;
  const auto precision = [&](PrecisionType& type) {
    if (scan_.accept_keyword("tf32")) {
      type = {ElementType::kF32, true};
      return true;
    }
    Type parsed;
    if (!parse_type(parsed)) return false;
    type = {parsed.element_type(), false};
    return true;
  };
  while (!scan_.accept('>')) {
    const size_t start = scan_.token_start();
    const std::string_view name = scan_.word();
    if (!scan_.expect('=')) return false;
    bool good = false;
    if (name == "lhs_precision_type") {
      good = precision(a.lhs_precision);
    } else if (name == "rhs_precision_type") {
      good = precision(a.rhs_precision);
    } else if (name == "accumulation_type") {
      good = precision(a.accumulation);
    } else if (name == "lhs_component_count") {
      good = scan_.integer(a.lhs_component_count);
    } else if (name == "rhs_component_count") {
      good = scan_.integer(a.rhs_component_count);
    } else if (name == "num_primitive_operations") {
      good = scan_.integer(a.num_primitive_operations);
    } else if (name == "allow_imprecise_accumulation") {
      a.allow_imprecise_accumulation = scan_.accept_keyword("true");
      good = a.allow_imprecise_accumulation || scan_.expect_keyword("false");
    } else {
      return scan_.fail_at(start, fmt::format("unknown field '{}' of dot_algorithm", name));
    }
    if (!good) return false;
    if (!scan_.accept(',')) {
      if (!scan_.expect('>')) return false;
      break;
    }
  }
  out = Attribute(a);
  return true;
}

bool Parser::parse_result_accuracy(Attribute& out) {
  ResultAccuracy a;
  if (!scan_.expect('<')) return false;
  while (!scan_.accept('>')) {
    const size_t start = scan_.token_start();
    const std::string_view name = scan_.word();
    if (!scan_.expect('=')) return false;
    if (name == "atol" || name == "rtol") {
      if (!scan_.real(name == "atol" ? a.atol : a.rtol)) return false;
    } else if (name == "ulps") {
      if (!scan_.integer(a.ulps)) return false;
    } else if (name == "mode") {
      Attribute mode;
      if (scan_.peek() == '#' ? !parse_attribute(mode)
                              : !parse_enum_word(EnumKind::kResultAccuracyMode, mode)) {
        return false;
      }
      const auto* word = mode.get<EnumAttr>();
      if (word == nullptr || word->kind != EnumKind::kResultAccuracyMode) {
        return scan_.fail_at(start, "mode is not a result_accuracy_mode");
      }
      a.mode = static_cast<ResultAccuracyMode>(word->value);
    } else {
      return scan_.fail_at(start, fmt::format("unknown field '{}' of result_accuracy", name));
    }
    if (!scan_.accept(',')) {
      if (!scan_.expect('>')) return false;
      break;
    }
  }
  out = Attribute(a);
  return true;
}

bool Parser::parse_output_alias(Attribute& out) {
  OutputOperandAlias alias;
  if (!parse_struct_fields({{"output_tuple_indices", &alias.output_tuple_indices},
                            {"operand_tuple_indices", &alias.operand_tuple_indices}},
                           {{"operand_index", &alias.operand_index}})) {
    return false;
  }
  out = Attribute(std::move(alias));
  return true;
}

bool Parser::parse_ragged_dims(Attribute& out) {
  RaggedDotDims d;
  if (!parse_struct_fields({{"lhs_batching_dimensions", &d.dot.lhs_batching},
                            {"rhs_batching_dimensions", &d.dot.rhs_batching},
                            {"lhs_contracting_dimensions", &d.dot.lhs_contracting},
                            {"rhs_contracting_dimensions", &d.dot.rhs_contracting},
                            {"lhs_ragged_dimensions", &d.lhs_ragged},
                            {"rhs_group_dimensions", &d.rhs_group}},
                           {})) {
    return false;
  }
  out = Attribute(std::move(d));
  return true;
}

// "[b, 0, 1, f]"
bool Parser::parse_conv_dims_list(std::vector<std::string>& out) {
  if (!scan_.expect('[')) return false;
  do {
    scan_.token_start();
    std::string entry(scan_.suffix());
    if (entry.empty()) return scan_.fail_expected("a dimension letter or number");
    out.push_back(std::move(entry));
  } while (scan_.accept(','));
  return scan_.expect(']');
}

// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]": the position of a name is its axis.
bool Parser::parse_conv_dims(ConvDims& out) {
  std::vector<std::string> input;
  std::vector<std::string> kernel;
  std::vector<std::string> output;
  const size_t start = scan_.token_start();
  if (!parse_conv_dims_list(input) || !scan_.expect('x') || !parse_conv_dims_list(kernel) ||
      !scan_.expect("->") || !parse_conv_dims_list(output)) {
    return false;
  }
  const auto place = [&](const std::vector<std::string>& list, std::string_view letters,
                         int64_t& first, int64_t& second, I64s& spatial) {
    spatial.assign(list.size() >= 2 ? list.size() - 2 : 0, -1);
    first = second = -1;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string& entry = list[i];
      const auto axis = static_cast<int64_t>(i);
      if (entry.size() == 1 && entry[0] == letters[0] && first < 0) {
        first = axis;
      } else if (entry.size() == 1 && entry[0] == letters[1] && second < 0) {
        second = axis;
      } else {
        size_t number = 0;
        for (const char c : entry) {
          number = c >= '0' && c <= '9' && number < 1000
                       ? number * 10 + static_cast<size_t>(c - '0')
                       : 1000;
        }
        if (number >= spatial.size() || spatial[number] >= 0) return false;
        spatial[number] = axis;
      }
    }
    return first >= 0 && second >= 0;
  };
  if (!place(input, "bf", out.input_batch, out.input_feature, out.input_spatial) ||
      !place(kernel, "io", out.kernel_input_feature, out.kernel_output_feature,
             out.kernel_spatial) ||
      !place(output, "bf", out.output_batch, out.output_feature, out.output_spatial)) {
    return scan_.fail_at(start, "dimension numbers name each of b, f (or i, o) and 0, 1 … once");
  }
  return true;
}

}  // namespace tenon::hlo
