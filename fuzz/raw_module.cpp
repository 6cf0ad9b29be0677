#include "fuzz/raw_module.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <map>

#include "core/types/float_convert.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kMostElements = 256;
constexpr int kMostOps = 8;

// Builds a Module that need not be valid, and converts it to RawOps at the end.
class ModuleMaker {
 public:
  ModuleMaker(const uint8_t* data, size_t size) : bytes_(data, size) {}

  std::unique_ptr<Module> run() {
    main_ = &module_->add_function("main");
    if (one_in(8)) add_callee();
    const int ops = integer(1, kMostOps);
    std::vector<Value> values;
    for (int i = 0; i < ops && bytes_.remaining_bytes() > 0; ++i) add_op(*main_, values, 0);
    std::vector<Value> results;
    std::vector<Type> types;
    for (size_t i = values.size(); i-- > 0 && results.size() < 4;) {
      if (!values[i].def->uses().empty() && one_in(2)) continue;
      results.push_back(values[i]);
      types.push_back(values[i].type());
    }
    end(*main_, results);
    drop_unused_constants();
    main_->set_declared_result_types(std::move(types));
    return std::move(module_);
  }

 private:
  // --- Choices

  int integer(int low, int high) { return bytes_.ConsumeIntegralInRange<int>(low, high); }
  bool one_in(int n) { return integer(1, n) == n; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + integer(0, static_cast<int>(all.size()) - 1));
  }

  ElementType element() {
    if (one_in(4)) return static_cast<ElementType>(integer(0, kElementTypeCount - 1));
    return one_of({ElementType::kF32, ElementType::kS32, ElementType::kPred, ElementType::kF32,
                   ElementType::kU64, ElementType::kC64, ElementType::kF64, ElementType::kBF16});
  }

  int64_t size() {
    if (one_in(16)) return one_of<int64_t>({0, 5, 7, 8, 16, 17});
    return integer(1, 4);
  }

  Dims dims() {
    Dims dims(static_cast<size_t>(one_in(16) ? integer(4, 6) : integer(0, 3)));
    for (int64_t& dim : dims) dim = size();
    while (count_of(dims) > kMostElements) dims.pop_back();
    return dims;
  }

  static int64_t count_of(const Dims& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
      if (dim > 0 && count <= kMostElements) count *= dim;
    }
    return count;
  }

  Type type() {
    if (one_in(32)) return Type::token();
    if (one_in(32)) return Type::tuple({Type::tensor(element(), dims())});
    if (one_in(16)) {
      QuantizedType q;
      q.scales = {one_of({0.5, 1.0, 0.1, 3.0})};
      q.zero_points = {integer(-2, 2)};
      if (one_in(2)) q.storage = one_of({ElementType::kU8, ElementType::kS4, ElementType::kS16});
      q.storage_min = integer_min(q.storage);
      q.storage_max = integer_max(q.storage);
      q.zero_points[0] = std::max(q.zero_points[0], q.storage_min);
      return Type::quantized_tensor(dims(), q);
    }
    if (one_in(32)) return Type::tensor(element(), {kDynamic, size()});
    return Type::tensor(element(), dims());
  }

  // A type that is often compatible with `like`.
  Type type_like(const Type& like) {
    if (!like.is_tensor()) return like;
    switch (integer(0, 11)) {
      case 0:
        return Type::tensor(like.element_type(), {});
      case 1:
        return Type::tensor(element(), like.is_quantized() ? Dims{} : like.dims());
      case 2:
        return Type::tensor(one_of({ElementType::kS32, ElementType::kS64, ElementType::kU8}),
                            {one_of<int64_t>({1, 2, 3, like.rank()})});
      case 3:
        return Type::tensor(ElementType::kS32, {});
      case 4:
        return type();
      case 5: {
        if (like.is_quantized() || like.rank() == 0) return like;
        Dims dims = like.dims();
        dims[index(dims.size())] = size();
        return Type::tensor(like.element_type(), dims);
      }
      default:
        return like;
    }
  }

  size_t index(size_t count) {
    return count == 0 ? 0 : static_cast<size_t>(integer(0, static_cast<int>(count) - 1));
  }

  // --- Values

  // A value of the type: an existing one, else a new parameter of the program, or a constant.
  Value value_of(const Type& type, const std::vector<Value>& values) {
    std::vector<Value> fitting;
    for (const Value value : values) {
      if (value.type() == type) fitting.push_back(value);
    }
    if (!fitting.empty() && !one_in(6)) return fitting[index(fitting.size())];
    if (type.is_tensor() && !type.is_quantized() && type.shape().is_static() && one_in(2)) {
      return constant(type.shape());
    }
    return main_->add_parameter(type);
  }

  Value constant(const Shape& shape) {
    auto op = std::make_unique<Instruction>(OpCode::kConstant, std::vector<Value>{},
                                            std::vector<Type>{Type(shape)});
    op->mutable_attributes().set(AttrKey::value, literal(shape));
    return main_->insert(std::move(op), main_->first())->result();
  }

  Attribute literal(const Shape& shape) {
    Literal values(shape);
    const bool many = one_in(2);
    for (int64_t i = 0; i < values.element_count(); ++i) {
      const int x = i == 0 || many ? integer(-3, 9) : 1;
      const ElementType type = shape.element_type();
      if (is_complex(type)) {
        values.set_complex(i, {static_cast<double>(x), 1});
      } else if (is_float(type)) {
        values.set_double(i, round_to(type, static_cast<double>(x)));
      } else {
        values.set_integer(i, is_pred(type) ? x & 1 : wrap_integer(type, x));
      }
    }
    return DenseAttr::of(std::move(values));
  }

  void drop_unused_constants() {
    for (Instruction* op = main_->first(); op != nullptr;) {
      Instruction* const next = op->next();
      if (op->code() == OpCode::kConstant && op->uses().empty()) main_->erase(op);
      op = next;
    }
  }

  // --- Ops

  // Usually draws again if the verifier refuses the op, but sometimes keeps the mistake.
  void add_op(Computation& into, std::vector<Value>& values, int depth) {
    constexpr int kTries = 12;
    const OpCode code = op_code();
    if (code == OpCode::kParameter || code == OpCode::kReturn) return;
    for (int i = 0; i < kTries && (i == 0 || bytes_.remaining_bytes() > 0); ++i) {
      Instruction* const placed = draw_op(code, into, values, depth);
      if (!verify(*placed).ok() && !one_in(128)) {
        into.erase(placed);
        continue;
      }
      for (uint32_t r = 0; r < placed->result_count(); ++r) values.push_back(placed->result(r));
      return;
    }
  }

  Instruction* draw_op(OpCode code, Computation& into, const std::vector<Value>& values,
                       int depth) {
    const OpInfo& info = op_info(code);
    auto op = std::make_unique<Instruction>(code, operands(info, values), std::vector<Type>{});
    Instruction* placed = into.insert(std::move(op));
    for (const AttrSpec& spec : info.attribute_specs()) {
      const bool wanted = spec.default_value == AttrDefault::kRequired ? !one_in(64) : one_in(3);
      if (!wanted) continue;
      if (auto value = attribute(spec, *placed)) {
        placed->mutable_attributes().set(spec.key, std::move(*value));
      }
    }
    for (const std::string_view name : info.region_names()) {
      const int count = name.ends_with('*') ? integer(0, 3) : 1;
      for (int i = 0; i < count; ++i) add_region(*placed, values, depth);
    }
    canonicalize_attributes(*placed);
    set_results(*placed);
    return placed;
  }

  // Skips half of CHLO's math functions: they are large, and decompositions have their own tests.
  OpCode op_code() {
    const auto code = static_cast<OpCode>(integer(0, static_cast<int>(kOpCount) - 1));
    if (op_info(code).dialect() != "chlo" || one_in(3)) return code;
    return static_cast<OpCode>(integer(0, static_cast<int>(kOpCount) - 1));
  }

  // Whether the op's row allows operands of the type.
  static bool takes(const OpInfo& info, const Type& type) {
    if (!type.is_tensor()) return (info.types & kTypesToken) != 0;
    if (type.is_quantized()) return (info.types & kTypesQuantized) != 0;
    return (info.types & type_set_of(type.element_type())) != 0;
  }

  static bool code_takes_starts(OpCode code) {
    return code == OpCode::kDynamicSlice || code == OpCode::kDynamicUpdateSlice;
  }

  std::vector<Value> operands(const OpInfo& info, const std::vector<Value>& values) {
    std::vector<Value> operands;
    const auto add = [&] {
      const bool first = operands.empty();
      if (first && !values.empty() && !one_in(3)) {
        const Value value = values[index(values.size())];
        if (takes(info, value.type())) {
          operands.push_back(value);
          return;
        }
      }
      Type wanted = first ? type() : type_like(operands[index(operands.size())].type());
      for (int i = 0; i < 8 && !takes(info, wanted); ++i) wanted = type();
      operands.push_back(value_of(wanted, values));
    };
    for (const std::string_view name : info.operand_names()) {
      int count = name.ends_with('*') ? integer(0, 4) : 1;
      const bool one_a_dimension = code_takes_starts(info.code) && name.ends_with('*');
      if (one_a_dimension && !operands.empty() && operands[0].type().is_tensor()) {
        count = static_cast<int>(operands[0].type().rank());
      }
      for (int i = 0; i < count; ++i) add();
    }
    return operands;
  }

  // If the rule infers the result types, usually takes them.
  void set_results(Instruction& op) {
    const auto names = op.info().result_names();
    auto inferred = infer_types(op);
    if (!inferred && !names.empty()) {
      std::vector<Type> stated;
      const Type like = op.operand_count() > 0 ? op.operand_type(0) : type();
      for (const std::string_view name : names) {
        const int count = name.ends_with('*') ? integer(0, 3) : 1;
        for (int i = 0; i < count; ++i) stated.push_back(type_like(like));
      }
      op.set_result_types(stated);
      inferred = infer_types(op);  // For ops whose result type is stated.
      if (!inferred) inferred = stated;
    }
    if (!inferred) return;
    for (Type& type : *inferred) {
      if (type.is_tensor() && (type.rank() > 8 || count_of(type.dims()) > kMostElements)) {
        type = Type::tensor(type.element_type(), {});
      }
      if (one_in(64)) type = type_like(type);
    }
    op.set_result_types(std::move(*inferred));
  }

  // --- Regions

  void add_region(Instruction& op, const std::vector<Value>& outer, int depth) {
    Computation& region = op.add_region();
    std::vector<Type> arguments = region_arguments(op);
    if (one_in(48)) arguments.push_back(type());
    std::vector<Value> values;
    for (const Type& type : arguments) values.push_back(region.add_parameter(type));
    const size_t own = values.size();
    if (one_in(3)) values.insert(values.begin(), outer.begin(), outer.end());
    const int ops = depth < 2 ? integer(0, 3) : 0;
    for (int i = 0; i < ops; ++i) add_op(region, values, depth + 1);
    std::vector<Value> results;
    for (const Type& type : region_results(op, arguments, own)) {
      Value found;
      for (size_t i = values.size(); i-- > 0 && !found;) {
        if (values[i].type() == type && !one_in(4)) found = values[i];
      }
      results.push_back(found ? found : value_of(type, values));
    }
    end(region, results);
  }

  static Type scalar_of(const Type& type) {
    return type.is_tensor() && !type.is_quantized() ? Type::tensor(type.element_type(), {}) : type;
  }

  std::vector<Type> region_arguments(const Instruction& op) {
    std::vector<Type> types;
    const auto pairs = [&](size_t from, size_t count) {
      for (int twice = 0; twice < 2; ++twice) {
        for (size_t i = from; i < std::min(from + count, op.operand_count()); ++i) {
          types.push_back(scalar_of(op.operand_type(i)));
        }
      }
    };
    switch (op.code()) {
      case OpCode::kIf:
      case OpCode::kCase:
        break;
      case OpCode::kReduce:
      case OpCode::kReduceWindow:
        pairs(0, op.operand_count() / 2);
        break;
      case OpCode::kScatter:
        pairs(0, (op.operand_count() - 1) / 2);
        break;
      case OpCode::kSort:
        for (size_t i = 0; i < op.operand_count(); ++i) {
          types.insert(types.end(), 2, scalar_of(op.operand_type(i)));
        }
        break;
      case OpCode::kMap:
        for (size_t i = 0; i < op.operand_count(); ++i) {
          types.push_back(scalar_of(op.operand_type(i)));
        }
        break;
      case OpCode::kAllReduce:
      case OpCode::kReduceScatter:
      case OpCode::kSelectAndScatter:
        pairs(0, 1);
        break;
      default:
        for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
    }
    return types;
  }

  std::vector<Type> region_results(const Instruction& op, const std::vector<Type>& arguments,
                                   size_t own) {
    const Type pred = Type::tensor(ElementType::kPred, {});
    switch (op.code()) {
      case OpCode::kWhile:
        return op.region_count() == 1 ? std::vector<Type>{pred} : arguments;
      case OpCode::kSort:
        return {pred};
      case OpCode::kSelectAndScatter:
        return op.region_count() == 1 ? std::vector<Type>{pred}
                                      : std::vector<Type>{arguments.empty() ? pred : arguments[0]};
      case OpCode::kIf:
      case OpCode::kCase:
        // The other branches return the types of the first.
        if (op.region_count() > 1 && op.region(0).return_instruction() != nullptr) {
          return op.region(0).result_types();
        }
        return {type(), type()};
      case OpCode::kMap:
        return {one_in(2) || arguments.empty() ? Type::tensor(element(), {}) : arguments[0]};
      case OpCode::kReduce:
      case OpCode::kReduceWindow:
      case OpCode::kScatter:
      case OpCode::kAllReduce:
      case OpCode::kReduceScatter:
        return {arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(own / 2)};
      default:
        return arguments;
    }
  }

  static void end(Computation& computation, const std::vector<Value>& results) {
    computation.insert(
        std::make_unique<Instruction>(OpCode::kReturn, results, std::vector<Type>{}));
  }

  // A function for calls and composites.
  void add_callee() {
    Computation& callee = module_->add_function("callee");
    callee.set_visibility("private");
    const Type type = Type::tensor(element(), dims());
    const Value argument = callee.add_parameter(type);
    auto op = std::make_unique<Instruction>(OpCode::kAdd, std::vector<Value>{argument, argument},
                                            std::vector<Type>{type});
    end_value_ = callee.insert(std::move(op))->result();
    end(callee, {end_value_});
    callee.set_declared_result_types({type});
  }

  // --- Attributes

  int64_t small() {
    if (one_in(32)) return one_of<int64_t>({-1, INT64_MAX, INT64_MIN, int64_t{1} << 32, -7, 64});
    return integer(0, 4);
  }

  // A list of numbers, with one entry per dimension: dimensions, sizes or strides.
  I64s list(size_t rank, AttrKey key) {
    size_t length = rank;
    if (one_in(8)) length = static_cast<size_t>(integer(0, 4));
    I64s list(std::min<size_t>(length, 8));
    const bool of_dimensions = key == AttrKey::permutation || key == AttrKey::dimensions ||
                               key == AttrKey::broadcast_dimensions || key == AttrKey::layout;
    if (of_dimensions && key != AttrKey::permutation && one_in(2)) {
      list.resize(index(list.size() + 1));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      list[i] = of_dimensions ? static_cast<int64_t>(i) : one_in(3) ? small() : 1;
    }
    if (of_dimensions && !list.empty() && one_in(2)) {
      std::swap(list[0], list[index(list.size())]);
      if (one_in(4)) list[0] = small();
    }
    return list;
  }

  I64s dimension_list(size_t rank) {
    I64s list;
    for (size_t i = 0; i < std::min<size_t>(rank, 6); ++i) {
      if (one_in(2)) list.push_back(static_cast<int64_t>(i));
    }
    if (one_in(16)) list.push_back(small());
    return list;
  }

  ConvDims conv_dims(size_t rank) {
    ConvDims d;
    const auto spatial = static_cast<int64_t>(rank < 2 ? 0 : rank - 2);
    I64s order(static_cast<size_t>(spatial) + 2);
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    const auto deal = [&](int64_t& a, int64_t& b, I64s& rest) {
      I64s drawn = order;
      if (one_in(2))
        std::rotate(drawn.begin(), drawn.begin() + static_cast<ptrdiff_t>(index(drawn.size())),
                    drawn.end());
      a = drawn[0];
      b = drawn[1];
      rest.assign(drawn.begin() + 2, drawn.end());
    };
    deal(d.input_batch, d.input_feature, d.input_spatial);
    deal(d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial);
    deal(d.output_batch, d.output_feature, d.output_spatial);
    return d;
  }

  std::optional<Attribute> attribute(const AttrSpec& spec, const Instruction& op) {
    const Type like = op.operand_count() > 0 ? op.operand_type(0) : Type();
    const size_t rank = like.is_tensor() ? like.dims().size() : 0;
    switch (spec.kind) {
      case AttrKind::kBool:
      case AttrKind::kUnit:
        return Attribute(one_in(2));
      case AttrKind::kI64:
      case AttrKind::kI32:
      case AttrKind::kChannelId:
        return Attribute(small());
      case AttrKind::kF32:
        return FloatAttr::of(ElementType::kF32, one_of({0.0, 1e-3, 0.5, -1.0}));
      case AttrKind::kString:
        return Attribute(one_of({"", "a.b", "ab,bc->ac", "elements", "Sharding", "x"}));
      case AttrKind::kSymbol:
        return SymbolAttr{one_in(8) ? "nothing" : "callee"};
      case AttrKind::kSymbols:
        return ArrayAttr(static_cast<size_t>(integer(0, 1)), SymbolAttr{"callee"});
      case AttrKind::kI64s:
        return fft_length(spec, like).value_or(list(rank, spec.key));
      case AttrKind::kI64Matrix:
      case AttrKind::kReplicaGroups: {
        I64Matrix matrix{static_cast<int64_t>(one_in(8) ? index(4) : rank), 2, {}};
        if (spec.kind == AttrKind::kReplicaGroups) matrix = {1, 1, {0}};
        for (int64_t i = 0; i < matrix.rows * matrix.columns; ++i) {
          if (spec.kind == AttrKind::kI64Matrix) matrix.values.push_back(integer(-1, 2));
        }
        return matrix;
      }
      case AttrKind::kBools: {
        BoolsAttr flags;
        for (size_t i = 0; i < rank; ++i) flags.values.push_back(one_in(2) ? 1 : 0);
        return flags;
      }
      case AttrKind::kDense:
        return literal(Shape(element(), dims()));
      case AttrKind::kEnum:
        return EnumAttr{spec.enum_kind, static_cast<uint8_t>(index(enum_size(spec.enum_kind)))};
      case AttrKind::kPrecisions:
        return ArrayAttr(static_cast<size_t>(integer(1, 2)), EnumAttr{EnumKind::kPrecision, 1});
      case AttrKind::kDotDims:
        return dot_dims(op);
      case AttrKind::kRaggedDotDims:
        return RaggedDotDims{dot_dims(op), dimension_list(1), dimension_list(rank)};
      case AttrKind::kGatherDims:
        return GatherDims{dimension_list(rank), dimension_list(rank), {}, {},
                          dimension_list(rank), integer(0, 2)};
      case AttrKind::kScatterDims:
        return ScatterDims{dimension_list(rank), dimension_list(rank), {}, {},
                           dimension_list(rank), integer(0, 2)};
      case AttrKind::kConvDims:
        return conv_dims(rank);
      case AttrKind::kChannelHandle:
        return ChannelHandle{integer(0, 1), integer(0, 3)};
      case AttrKind::kResultAccuracy:
        return ResultAccuracy{0, 0, integer(0, 4), static_cast<ResultAccuracyMode>(index(3))};
      case AttrKind::kAliases:
        return ArrayAttr{OutputOperandAlias{{}, small(), {}}};
      case AttrKind::kDict:
        return Attribute(Dict{});
      case AttrKind::kAny:
        return Attribute(small());
      default:
        return std::nullopt;
    }
  }

  std::optional<Attribute> fft_length(const AttrSpec& spec, const Type& like) {
    if (spec.key != AttrKey::fft_length || like.rank() == 0 || !like.is_tensor()) return {};
    return Attribute(I64s{like.dims().back()});
  }

  DotDims dot_dims(const Instruction& op) {
    DotDims d;
    if (op.operand_count() < 2 || !op.operand_type(0).is_tensor() ||
        !op.operand_type(1).is_tensor()) {
      return d;
    }
    const size_t lhs = op.operand_type(0).dims().size();
    const size_t rhs = op.operand_type(1).dims().size();
    for (size_t i = 0; i < std::min(lhs, rhs); ++i) {
      const auto at = static_cast<int64_t>(i);
      switch (integer(0, 2)) {
        case 0:
          d.lhs_batching.push_back(at);
          d.rhs_batching.push_back(at);
          break;
        case 1:
          d.lhs_contracting.push_back(at);
          d.rhs_contracting.push_back(one_in(4) ? static_cast<int64_t>(rhs) - 1 - at : at);
          break;
        default:
          break;
      }
    }
    return d;
  }

  FuzzedDataProvider bytes_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Computation* main_ = nullptr;
  Value end_value_;
};

// Writes a Module in the form that readers produce.
class RawWriter {
 public:
  RawModule run(const Module& module) {
    raw_.module.name = "builtin.module";
    raw_.module.regions.emplace_back();
    for (const auto& function : module.functions()) {
      raw_.module.regions[0].ops.push_back(raw_function(*function));
    }
    return std::move(raw_);
  }

 private:
  RawOp raw_function(const Computation& function) {
    RawOp op;
    op.name = "func.func";
    set(op, "sym_name", function.name());
    if (!function.visibility().empty()) set(op, "sym_visibility", function.visibility());
    set(op, "function_type", Type::function(function.parameter_types(), function.result_types()));
    op.regions.push_back(raw_region(function));
    return op;
  }

  static void set(RawOp& op, std::string key, Attribute value) {
    op.attributes.emplace_back(std::move(key), std::move(value));
    std::ranges::sort(op.attributes, {}, [](const auto& entry) { return entry.first; });
  }

  RawValue define(Value value) {
    const auto number = static_cast<RawValue>(raw_.value_types.size());
    raw_.value_types.push_back(value.type());
    numbers_[{value.def, value.index}] = number;
    return number;
  }

  RawRegion raw_region(const Computation& computation) {
    RawRegion region;
    for (size_t i = 0; i < computation.parameter_count(); ++i) {
      region.arguments.push_back(define(computation.parameter(i)));
    }
    for (Instruction& op : computation) region.ops.push_back(raw_op(op));
    return region;
  }

  RawOp raw_op(Instruction& op) {
    RawOp raw;
    raw.name = op.name();
    for (const Value operand : op.operands()) {
      raw.operands.push_back(numbers_.at({operand.def, operand.index}));
    }
    for (const auto& [key, value] : op.attributes()) {
      set(raw, std::string(attr_key_name(key)), value);
    }
    for (size_t i = 0; i < op.region_count(); ++i) raw.regions.push_back(raw_region(op.region(i)));
    for (uint32_t r = 0; r < op.result_count(); ++r) raw.results.push_back(define(op.result(r)));
    return raw;
  }

  RawModule raw_;
  std::map<std::pair<const Instruction*, uint32_t>, RawValue> numbers_;
};

}  // namespace

RawModule raw_module_of(const uint8_t* data, size_t size) {
  return RawWriter().run(*ModuleMaker(data, size).run());
}

}  // namespace tenon::hlo
