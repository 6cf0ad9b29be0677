#include "hlo/proto/proto.h"

#include <algorithm>
#include <exception>
#include <protozero/pbf_reader.hpp>

#include "hlo/proto/converter.h"

namespace tenon::hlo {
namespace {

namespace field = instruction_field;

// Fields of HloModuleProto, HloComputationProto, HloInputOutputAliasProto and OpMetadata.
constexpr uint32_t kModuleName = 1, kComputations = 3, kEntryId = 6, kAliases = 8;
constexpr uint32_t kInstructions = 2, kComputationId = 5, kRootId = 6;
constexpr uint32_t kAliasEntries = 1, kOutputIndex = 1, kAliasParameter = 2, kParameterIndex = 3;
constexpr uint32_t kSourceFile = 3, kSourceLine = 4, kStackFrame = 15;
// The module's table of stack frames; what it has is counted from 1.
constexpr uint32_t kStackFrames = 17, kFileNames = 1, kFileLocations = 3, kFrames = 4;
constexpr uint32_t kFileNumber = 1, kLine = 3, kColumn = 4, kLocationNumber = 1;
// Instructions and their operands: inlined calls and regions may repeat a computation, and operands
// may be tuples.
constexpr int64_t kMostValues = int64_t{1} << 24;

// By their numbers.
Result<std::vector<ProtoShape>> parameters_of(const ProtoMessage& computation, int depth) {
  std::map<int64_t, ProtoShape> found;
  for (const ProtoMessage& each : computation.messages(kInstructions)) {
    if (each.text(field::kOpcode) != "parameter") continue;
    TENON_ASSIGN(found[each.integer(field::kParameterNumber)],
                 shape_of(each.message(field::kShape), depth));
  }
  std::vector<ProtoShape> parameters;
  for (auto& [number, shape] : found) {
    if (number != static_cast<int64_t>(parameters.size()))
      return damaged("parameters without an order");
    parameters.push_back(std::move(shape));
  }
  return parameters;
}

// An instruction's id within its computation. Newer versions of XLA put the computation's id into
// the bits above, or not: a module may have both.
int64_t local_id(int64_t id) { return id & 0xFFFF'FFFF; }

HloValues all_of(const HloOperands& operands) {
  HloValues all;
  for (const HloValues* each : operands) all.insert(all.end(), each->begin(), each->end());
  return all;
}

HloOperands pointers_to(const std::vector<HloValues>& values) {
  HloOperands pointers;
  for (const HloValues& each : values) pointers.push_back(&each);
  return pointers;
}

RawOp return_op(std::string name, HloValues values) {
  RawOp op;
  op.name = std::move(name);
  op.operands = std::move(values);
  return op;
}

// The memory of these parameters may become that of results.
ArrayAttr argument_attributes(const ProtoMessage& module, size_t count) {
  std::vector<Dict> attributes(count);
  for (const ProtoMessage& each : module.message(kAliases).messages(kAliasEntries)) {
    const std::vector<int64_t> output = each.integers(kOutputIndex);
    const int64_t parameter = each.integer(kAliasParameter);
    if (output.size() > 1 || !each.integers(kParameterIndex).empty() || parameter < 0 ||
        parameter >= static_cast<int64_t>(count)) {
      continue;  // Only a hint.
    }
    insert(attributes[static_cast<size_t>(parameter)], "tf.aliasing_output",
           IntegerAttr{output.empty() ? 0 : output[0], ElementType::kS32});
  }
  ArrayAttr all;
  for (Dict& each : attributes) all.emplace_back(std::move(each));
  return all;
}

}  // namespace

// --- The module

Result<RawModule> HloProtoConverter::convert() {
  for (const ProtoMessage& each : module_.messages(kComputations)) {
    computations_.emplace(each.integer(kComputationId), each);
  }
  const ProtoMessage table = module_.message(kStackFrames);
  frames_ = {table.messages(kFileNames), table.messages(kFileLocations), table.messages(kFrames)};
  const int64_t entry = module_.integer(kEntryId);
  const auto found = computations_.find(entry);
  if (found == computations_.end()) return damaged("{}: there is no entry computation", file_name_);
  TENON_ASSIGN(const std::vector<ProtoShape> shapes,
               parameters_of(found->second, limits_.max_depth));
  RawRegion body;
  std::vector<HloValues> parameters;
  std::vector<Type> inputs;
  for (const ProtoShape& shape : shapes) {
    parameters.push_back(new_values(shape));
    shape.append_leaves(inputs);
  }
  body.arguments = all_of(pointers_to(parameters));
  TENON_ASSIGN(HloValues results, convert_computation(entry, pointers_to(parameters), body));
  std::vector<Type> outputs;
  for (const RawValue each : results) outputs.push_back(raw_.value_types[each]);
  body.ops.push_back(return_op("func.return", std::move(results)));
  RawOp function;
  function.name = "func.func";
  insert(function.attributes, "sym_name", "main");
  if (inputs.size() == shapes.size()) {
    insert(function.attributes, "arg_attrs", argument_attributes(module_, inputs.size()));
  }
  insert(function.attributes, "function_type",
         Type::function(std::move(inputs), std::move(outputs)));
  function.regions.push_back(std::move(body));
  raw_.module.name = "builtin.module";
  insert(raw_.module.attributes, "sym_name", std::string(module_.text(kModuleName)));
  raw_.module.regions.emplace_back().ops.push_back(std::move(function));
  return std::move(raw_);
}

Result<HloValues> HloProtoConverter::convert_computation(int64_t id, const HloOperands& parameters,
                                                         RawRegion& into) {
  const auto computation = computations_.find(id);
  if (computation == computations_.end()) return damaged("there is no computation {}", id);
  if (depth_ >= limits_.max_depth) return damaged("computations call one another too deeply");
  ++depth_;
  // By local id; a map's elements stay where they are.
  std::unordered_map<int64_t, std::pair<ProtoShape, HloValues>> converted;
  HloValues last;
  for (const ProtoMessage& each : computation->second.messages(kInstructions)) {
    HloInstruction op;
    op.proto = each;
    op.opcode = each.text(field::kOpcode);
    const auto with_name = [&](const Status& status) {
      return Error(Status(status)
                       .with_context(fmt::format("{} %{}", op.opcode, each.text(field::kName)))
                       .at(position_of(location_of(op))));
    };
    auto shape = shape_of(each.message(field::kShape), limits_.max_depth);
    if (!shape) return with_name(shape.error());
    op.shape = *std::move(shape);
    for (const int64_t operand : each.integers(field::kOperands)) {
      const auto from = converted.find(local_id(operand));
      if (from == converted.end())
        return damaged("%{}: operand {} comes later", each.text(field::kName), operand);
      op.operand_shapes.push_back(&from->second.first);
      op.operands.push_back(&from->second.second);
      if (op.opcode != "get-tuple-element") converted_ += std::ssize(from->second.second);
    }
    if (++converted_ > kMostValues) {
      return resource_exhausted("more than {} instructions and operands, calls inlined",
                                kMostValues);
    }
    Result<HloValues> values = damaged("a parameter that the caller lacks");
    if (op.opcode == "parameter") {
      const int64_t number = op.integer(field::kParameterNumber);
      if (number >= 0 && number < static_cast<int64_t>(parameters.size())) {
        values = *parameters[static_cast<size_t>(number)];
      }
    } else {
      values = convert(op, into);
    }
    if (!values) return with_name(values.error());
    if (!fits(op.shape, *values)) {
      return damaged("{} %{}: its shape is not that of its value", op.opcode,
                     each.text(field::kName));
    }
    last = *values;
    converted[local_id(each.integer(field::kId))] = {std::move(op.shape), *std::move(values)};
  }
  --depth_;
  const auto root = converted.find(local_id(computation->second.integer(kRootId)));
  return root == converted.end() ? last : root->second.second;
}

// --- Instructions

Result<HloValues> HloProtoConverter::convert(const HloInstruction& op, RawRegion& into) {
  const std::string_view opcode = op.opcode;
  if (opcode == "tuple") return all_of(op.operands);
  if (opcode == "get-tuple-element") return tuple_element(op);
  // The size that set-dimension-size sets is that of the dimension: shape_of refuses dynamic ones.
  if (opcode == "copy" || opcode == "domain" || opcode == "add-dependency" ||
      opcode == "set-dimension-size") {
    if (op.operands.empty()) return damaged("it has no operand");
    return *op.operands[0];
  }
  if (opcode == "constant") return convert_constant(op, into);
  if (opcode == "while") return convert_while(op, into);
  if (opcode == "conditional") return convert_conditional(op, into);
  if (opcode == "rng") return convert_rng(op, into);
  if (opcode == "call" || opcode == "fusion") {
    TENON_ASSIGN(const int64_t id, called(op, 0));
    return convert_computation(id, op.operands, into);
  }
  TENON_ASSIGN(NamedAttributes named, attributes_of(op));
  if (named.name.empty()) return unimplemented("HLO's op '{}' is not supported", opcode);
  std::vector<RawRegion> regions;
  for (size_t r = 0; r < named.regions; ++r) {
    TENON_ASSIGN(regions.emplace_back(), region_of(op, r));
  }
  return add(op, std::string(named.name), std::move(named.attributes), into, std::move(regions));
}

Result<HloValues> HloProtoConverter::tuple_element(const HloInstruction& op) const {
  const int64_t index = op.integer(field::kTupleIndex);
  if (op.operands.size() != 1 || !op.operand_shapes[0]->is_tuple || index < 0 ||
      index >= static_cast<int64_t>(op.operand_shapes[0]->elements.size())) {
    return damaged("there is no element {}", index);
  }
  const ProtoShape& tuple = *op.operand_shapes[0];
  const auto element = static_cast<size_t>(index);
  const auto first = op.operands[0]->begin() + static_cast<std::ptrdiff_t>(tuple.begins[element]);
  return HloValues(first, first + static_cast<std::ptrdiff_t>(tuple.elements[element].leaf_count));
}

Result<HloValues> HloProtoConverter::convert_constant(const HloInstruction& op, RawRegion& into) {
  const ProtoMessage literal = op.proto.message(field::kLiteral);
  // A computation that is called often has its constants once.
  auto known = constants_.find(literal.bytes().data());
  if (known == constants_.end()) {
    TENON_ASSIGN(DenseAttr read, literal_of(literal, limits_.max_constant_bytes));
    known = constants_.emplace(literal.bytes().data(), std::move(read)).first;
  }
  DenseAttr value = known->second;
  if (op.shape.is_tuple || !(op.shape.type == Type(value.shape)))
    return damaged("its literal has another shape");
  Dict attributes;
  insert(attributes, "value", std::move(value));
  return add(op, "stablehlo.constant", std::move(attributes), into);
}

// The body is the first computation of a while, the condition the second.
Result<HloValues> HloProtoConverter::convert_while(const HloInstruction& op, RawRegion& into) {
  std::vector<RawRegion> regions;
  for (const size_t computation : {1, 0}) {
    TENON_ASSIGN(regions.emplace_back(), region_of(op, computation));
  }
  return add(op, "stablehlo.while", {}, into, std::move(regions));
}

// A branch gets one operand, which in StableHLO is a value of the enclosing computation.
Result<HloValues> HloProtoConverter::convert_conditional(const HloInstruction& op,
                                                         RawRegion& into) {
  std::vector<RawRegion> regions;
  for (size_t b = 0; b + 1 < op.operands.size(); ++b) {
    TENON_ASSIGN(regions.emplace_back(), region_with(op, b, {op.operands[b + 1]}, {}));
  }
  if (regions.empty() || op.operands[0]->size() != 1) return damaged("it has no branches");
  HloInstruction selected = op;
  selected.operands.resize(1);
  const bool is_if = raw_.value_types[op.operands[0]->front()].element_type() == ElementType::kPred;
  return add(selected, is_if ? "stablehlo.if" : "stablehlo.case", {}, into, std::move(regions));
}

// The shape is an operand of StableHLO's.
Result<HloValues> HloProtoConverter::convert_rng(const HloInstruction& op, RawRegion& into) {
  const int64_t distribution = op.integer(field::kDistribution);
  if (op.shape.is_tuple || distribution < 1 || distribution > 2) return damaged("no distribution");
  Literal dims = Literal::from_i64s(op.shape.type.dims());
  HloInstruction shape = op;
  shape.operands.clear();
  shape.shape.type = Type(dims.shape());
  Dict value;
  insert(value, "value", DenseAttr::of(std::move(dims)));
  HloInstruction drawn = op;
  const HloValues dims_value = add(shape, "stablehlo.constant", std::move(value), into);
  drawn.operands.push_back(&dims_value);
  Dict attributes;
  insert(attributes, "rng_distribution",
         EnumAttr{EnumKind::kRngDistribution, static_cast<uint8_t>(distribution)});
  return add(drawn, "stablehlo.rng", std::move(attributes), into);
}

// A file and a line of its own, or the innermost stack frame in the module's table.
Location HloProtoConverter::location_of(const HloInstruction& op) const {
  const ProtoMessage metadata = op.proto.message(field::kMetadata);
  const auto place = [](std::string_view file, int64_t line, int64_t column) {
    return file_location(std::string(file),
                         static_cast<uint32_t>(std::clamp<int64_t>(line, 0, INT32_MAX)),
                         static_cast<uint32_t>(std::clamp<int64_t>(column, 1, INT32_MAX)));
  };
  const std::string_view file = metadata.text(kSourceFile);
  if (!file.empty()) return place(file, metadata.integer(kSourceLine), 1);
  const auto entry = [](const std::vector<ProtoMessage>& table, int64_t number) {
    const bool is_there = number >= 1 && number <= std::ssize(table);
    return is_there ? table[static_cast<size_t>(number - 1)] : ProtoMessage();
  };
  const ProtoMessage frame = entry(frames_.frames, metadata.integer(kStackFrame));
  const ProtoMessage where = entry(frames_.locations, frame.integer(kLocationNumber));
  const std::string_view name = entry(frames_.files, where.integer(kFileNumber)).bytes();
  return name.empty() ? nullptr : place(name, where.integer(kLine), where.integer(kColumn));
}

// --- Regions and values

Result<int64_t> HloProtoConverter::called(const HloInstruction& op, size_t index) const {
  const std::vector<int64_t> ids = op.proto.integers(field::kCalled);
  if (index >= ids.size()) return damaged("it lacks a computation");
  return ids[index];
}

Result<RawRegion> HloProtoConverter::region_of(const HloInstruction& op, size_t index) {
  TENON_ASSIGN(const int64_t id, called(op, index));
  const auto computation = computations_.find(id);
  if (computation == computations_.end()) return damaged("there is no computation {}", id);
  TENON_ASSIGN(const std::vector<ProtoShape> shapes,
               parameters_of(computation->second, limits_.max_depth));
  RawRegion region;
  std::vector<HloValues> parameters;
  for (const ProtoShape& shape : shapes) parameters.push_back(new_values(shape));
  region.arguments = all_of(pointers_to(parameters));
  return region_with(op, index, pointers_to(parameters), std::move(region));
}

Result<RawRegion> HloProtoConverter::region_with(const HloInstruction& op, size_t index,
                                                 const HloOperands& parameters, RawRegion region) {
  TENON_ASSIGN(const int64_t id, called(op, index));
  TENON_ASSIGN(HloValues results, convert_computation(id, parameters, region));
  region.ops.push_back(return_op("stablehlo.return", std::move(results)));
  return region;
}

HloValues HloProtoConverter::add(const HloInstruction& op, std::string name, Dict attributes,
                                 RawRegion& into, std::vector<RawRegion> regions) {
  RawOp made;
  made.name = std::move(name);
  made.operands = all_of(op.operands);
  made.results = new_values(op.shape);
  made.attributes = std::move(attributes);
  made.regions = std::move(regions);
  made.location = location_of(op);
  HloValues results = made.results;
  into.ops.push_back(std::move(made));
  return results;
}

bool HloProtoConverter::fits(const ProtoShape& shape, const HloValues& values) const {
  if (values.size() != shape.leaf_count) return false;
  std::vector<Type> types;
  shape.append_leaves(types);
  return std::ranges::equal(types, values, [&](const Type& type, RawValue value) {
    return type == raw_.value_types[value];
  });
}

HloValues HloProtoConverter::new_values(const ProtoShape& shape) {
  std::vector<Type> types;
  shape.append_leaves(types);
  HloValues values;
  for (Type& each : types) values.push_back(new_value(std::move(each)));
  return values;
}

RawValue HloProtoConverter::new_value(Type type) {
  raw_.value_types.push_back(std::move(type));
  return static_cast<RawValue>(raw_.value_types.size() - 1);
}

// --- Entry points

// Fields of HloModuleProto that any version has are messages, strings or integers.
bool is_hlo_proto(std::string_view bytes) try {
  constexpr uint32_t kMostFields = 64;
  if (!bytes.starts_with('\x0a')) return false;  // The name comes first.
  bool has_computations = false;
  protozero::pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    if (reader.tag() > kMostFields) return false;
    has_computations |=
        reader.tag_and_type() ==
        protozero::tag_and_type(kComputations, protozero::pbf_wire_type::length_delimited);
    reader.skip();
  }
  return has_computations;
} catch (const protozero::exception&) {
  return false;
}

Result<RawModule> parse_hlo_proto(std::string_view bytes, const std::string& file_name,
                                  const ImportLimits& limits) try {
  return HloProtoConverter(ProtoMessage(bytes), file_name, limits).convert();
} catch (const protozero::exception& error) {
  return damaged("{}: a damaged HLO proto: {}", file_name, error.what());
}

}  // namespace tenon::hlo
