// Parser of both text forms: StableHLO (pretty and generic, as JAX, torch-mlir and TensorFlow print
// it) and HLO text (hlo/text/printer.h). Both produce a RawModule.
//
// The forms share types, attributes, regions and functions. They differ in how an op is written:
// HLO text has one form, `%r = dialect.op(%a) {attributes} ({regions}) : types`, and short type
// names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/scanner.h"
#include "hlo/ir/raw_module.h"
#include "hlo/ops/ops.h"
#include "hlo/text/parse.h"

namespace tenon::hlo {

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const ImportLimits& limits)
      : scan_(text, file), limits_(limits) {}

  Result<RawModule> parse();

 private:
  // --- parse_types.cpp
  bool parse_type(Type& out);
  bool parse_type_list(std::vector<Type>& out);  // "T, T" up to a closing bracket
  bool parse_tensor_body(Type& out, bool is_buffer);
  bool parse_bounds(Dims& bounds);
  bool parse_element(Type& element);
  bool parse_quantized(QuantizedType& out);
  bool parse_quantized_storage(QuantizedType& out);
  bool parse_scales(QuantizedType& out);
  bool parse_hlo_dims(Type& type);
  bool parse_function_type(std::vector<Type>& inputs, std::vector<Type>& results);
  bool parse_bang_type(Type& out);

  // --- parse_attributes.cpp
  bool parse_attribute(Attribute& out);
  /// `info`: the op to which the attributes belong, for HLO text, in which words of its
  /// enumerations are bare.
  bool parse_attribute_dict(Dict& out, const OpInfo* info = nullptr);
  bool parse_dict_entries(Dict& out, char closing, const OpInfo* info = nullptr);
  bool parse_dict_value(const OpInfo* info, std::string_view key, Attribute& out);
  bool parse_number(Attribute& out);
  bool parse_word_attribute(Attribute& out);
  bool parse_symbol(std::string& out);
  bool parse_array_attribute(Attribute& out);
  bool parse_dense_array(Attribute& out);
  bool parse_hash_attribute(Attribute& out);
  // --- parse_stablehlo_attributes.cpp
  bool parse_stablehlo_attribute(std::string_view name, Attribute& out);
  bool parse_struct_fields(const std::vector<std::pair<std::string_view, I64s*>>& lists,
                           const std::vector<std::pair<std::string_view, int64_t*>>& numbers);
  /// The same, after the '<'.
  bool parse_fields(const std::vector<std::pair<std::string_view, I64s*>>& lists,
                    const std::vector<std::pair<std::string_view, int64_t*>>& numbers);
  bool parse_dot_algorithm(Attribute& out);
  bool parse_result_accuracy(Attribute& out);
  bool parse_output_alias(Attribute& out);
  bool parse_conv_dims(ConvDims& out);
  bool parse_conv_dims_list(std::vector<std::string>& out);
  bool parse_ragged_dims(Attribute& out);
  bool parse_enum_word(EnumKind kind, Attribute& out);
  bool parse_i64_list(I64s& out);
  /// An integer of `type`, in decimal within its range (for iN, which has no sign, also up to 2^N -
  /// 1, as in MLIR) or in hexadecimal as its bits.
  bool parse_ranged_integer(ElementType type, int64_t& out);

  // --- parse_dense.cpp
  /// One entry of the resource section. All uses of it as elements of one type share the decoded
  /// elements, so that the memory for a text is at most a multiple of its length.
  struct TextResource {
    std::string text;   ///< As written, "0x…"; empty once it is decoded.
    std::string bytes;  ///< The decoded bytes.
    std::map<std::pair<ElementType, int64_t>, Literal> literals;  ///< By type and count.
  };
  bool parse_dense(Attribute& out);
  bool parse_dense_value(const Shape& shape, DenseAttr& out);
  bool parse_dense_elements(const Shape& shape, Literal& out, size_t axis, int64_t& next);
  bool parse_dense_element(Literal& out, int64_t index);
  bool parse_dense_part(ElementType type, double& out, uint64_t& bits, bool& is_bits);
  bool parse_hex_data(const Shape& shape, DenseAttr& out);
  bool decode_dense_bytes(const Shape& shape, std::string_view bytes, DenseAttr& out);
  bool parse_dense_resource(Attribute& out);
  bool decode_resource(TextResource& resource, const Shape& shape, DenseAttr& out);
  bool parse_resources();

  // --- parse_location.cpp
  bool parse_location(Location& out);  // 'loc(' … ')'
  bool parse_location_body(Location& out);
  bool parse_optional_location(RawOp& op);
  bool parse_location_alias_definition(std::string_view name);

  // --- parser.cpp
  struct Name {
    std::string_view text;  // without '%'
    int64_t number = -1;    // of %name#number
    size_t offset = 0;
  };
  struct Definition {
    RawValue first = 0;
    uint32_t count = 0;
    size_t scope = 0;  // the number of open scopes
  };
  bool parse_file(RawModule& out);
  bool parse_alias_definitions();
  bool parse_ops(std::vector<RawOp>& out);
  bool parse_op(RawOp& out);
  bool parse_op_body(RawOp& out, std::vector<Type>& result_types);
  bool parse_generic_op(RawOp& out, std::vector<Type>& result_types);
  bool parse_hlo_op(std::string_view name, RawOp& out, std::vector<Type>& result_types);
  bool parse_module_op(RawOp& out);
  bool parse_function(RawOp& out);
  bool parse_function_results(std::vector<Type>& types, ArrayAttr& attributes, bool& any);
  bool parse_region(RawRegion& out);  // '{' … '}'
  bool parse_region_body(RawRegion& out);
  bool parse_region_list(RawOp& out);  // '(' region, … ')'
  bool parse_block_arguments(RawRegion& out);
  bool parse_name(Name& out);
  bool parse_operands(RawOp& out, char closing);  // names up to `closing`, which is not consumed
  bool parse_operand(RawOp& out);
  bool check_operand_types(const RawOp& op, const std::vector<Type>& types);
  /// Defines a new value with this name at its position in the text; a name is defined only once in
  /// a scope.
  bool define(std::string_view name, const Type& type, RawValue& out);
  bool define_argument(std::string_view name, const Type& type, RawRegion& region);
  bool define_results(const std::vector<std::pair<std::string_view, uint32_t>>& names,
                      size_t name_offset, const std::vector<Type>& types, RawOp& op);
  bool resolve(const Name& name, RawValue& out);
  void open_scope() { marks_.push_back(undo_.size()); }
  void close_scope();
  Location location_here();

  // --- parse_pretty.cpp, parse_custom.cpp
  bool parse_pretty_op(std::string_view name, RawOp& out, std::vector<Type>& result_types);
  bool parse_by_format(const OpInfo& info, RawOp& out, std::vector<Type>& result_types);
  bool parse_format_item(const OpInfo& info, std::string_view item, bool first, RawOp& out);
  bool parse_attribute_value(const AttrSpec& spec, Attribute& out);
  bool parse_types(const OpInfo& info, const RawOp& op, std::vector<Type>& result_types);
  bool parse_same_type(const RawOp& op, std::vector<Type>& result_types);
  bool parse_functional(const RawOp& op, std::vector<Type>& result_types);  // ': FT'
  bool parse_custom(OpCode code, RawOp& out, std::vector<Type>& result_types);
  bool parse_constant(RawOp& out, std::vector<Type>& result_types);
  bool parse_select(RawOp& out, std::vector<Type>& result_types);
  bool parse_slice(RawOp& out, std::vector<Type>& result_types);
  bool parse_dot_general(RawOp& out, std::vector<Type>& result_types);
  bool parse_convolution(RawOp& out, std::vector<Type>& result_types);
  bool parse_window(RawOp& out);
  bool parse_reduce(RawOp& out, std::vector<Type>& result_types);
  bool parse_reducer(RawOp& out);
  bool parse_applied_reducer(RawOp& out, const std::string& combiner, const Location& location);
  bool parse_while(RawOp& out, std::vector<Type>& result_types);
  bool parse_custom_call(RawOp& out, std::vector<Type>& result_types);
  bool parse_composite(RawOp& out, std::vector<Type>& result_types);
  bool parse_call(RawOp& out, std::vector<Type>& result_types);
  bool parse_return(RawOp& out);
  bool parse_top_k(RawOp& out, std::vector<Type>& result_types);
  bool parse_scan(RawOp& out, std::vector<Type>& result_types);
  // --- parse_foreign.cpp
  bool parse_foreign(std::string_view name, RawOp& out, std::vector<Type>& result_types);
  bool parse_check(RawOp& out, std::vector<Type>& result_types);
  bool parse_sdy(std::string_view name, RawOp& out, std::vector<Type>& result_types);
  bool parse_manual_computation(RawOp& out, std::vector<Type>& result_types);

  /// Reports an error at `name`, a piece of the text.
  bool fail_at_name(std::string_view name, std::string message) {
    return scan_.fail_at(static_cast<size_t>(name.data() - scan_.text().data()),
                         std::move(message));
  }
  Type type_of(RawValue value) const { return module_.value_types[value]; }
  bool enter() {  // bounds recursion; call leave() when done
    ++size_;
    peak_ = std::max(peak_, ++depth_);
    return depth_ <= limits_.max_depth ||
           scan_.fail("nested deeper than {} levels", limits_.max_depth);
  }
  void leave() { --depth_; }
  struct LeaveOnReturn {
    Parser& parser;
    ~LeaveOnReturn() { parser.leave(); }
  };

  /// The nesting depth of types and attributes, and their number, with aliases written out.
  struct ParsedExtent {
    int depth = 0;
    int64_t size = 0;
  };
  template <class T>
  struct Alias {
    T value;
    ParsedExtent extent;
  };
  /// Counts an alias that is used here: its contents are bounded as if they were written here.
  bool take_in(const ParsedExtent& extent) {
    constexpr int64_t kMost = 1 << 22;            // More than a file of many MB contains.
    const int depth = depth_ - 1 + extent.depth;  // It is used at the depth entered for it.
    peak_ = std::max(peak_, depth);
    size_ += extent.size;
    if (depth > limits_.max_depth) {
      return scan_.fail("nested deeper than {} levels", limits_.max_depth);
    }
    taken_in_ += extent.size;
    return taken_in_ <= kMost ||
           scan_.fail("aliases stand for more than {} types and attributes", kMost);
  }

  Scanner scan_;
  ImportLimits limits_;
  RawModule module_;
  bool is_hlo_ = false;
  int depth_ = 0;
  int peak_ = 0;          ///< The maximum depth since the start of the alias that is being defined.
  int64_t size_ = 0;      ///< Types and attributes so far, with aliases written out.
  int64_t taken_in_ = 0;  ///< The part of size_ that comes from aliases.

  std::unordered_map<std::string_view, Definition> values_;
  // The definitions that close_scope restores: a name's previous definition, count 0 if it had
  // none.
  std::vector<std::pair<std::string_view, Definition>> undo_;
  std::vector<size_t> marks_;

  std::unordered_map<std::string, Alias<Attribute>> attribute_aliases_;
  std::unordered_map<std::string, Alias<Type>> type_aliases_;
  std::unordered_map<std::string, std::shared_ptr<LocationNode>> location_aliases_;
  /// Aliases of aliases, resolved when all are defined: target and source.
  std::vector<std::pair<std::shared_ptr<LocationNode>, Location>> location_copies_;
  std::unordered_map<std::string, TextResource> resources_;
  size_t resources_at_ = std::string_view::npos;  ///< The start of their section.
};

}  // namespace tenon::hlo
