// parse_artifact: converts the IR section of an artifact to a RawModule.

#include <algorithm>
#include <utility>

#include "hlo/artifact/bytecode_reader.h"
#include "hlo/artifact/vhlo_ops.h"
#include "hlo/types/op_location.h"

namespace tenon::hlo::bytecode {
namespace {

constexpr const char* kSection = "IR";

// Bits of an op's mask byte: they state which parts follow.
enum OpMask : uint8_t {
  kHasAttributes = 0x01,
  kHasResults = 0x02,
  kHasOperands = 0x04,
  kHasSuccessors = 0x08,
  kHasRegions = 0x10,
  kHasUseListOrders = 0x20,
  kHasProperties = 0x40,
  kUnknownMask = 0x80,
};

// An op takes a name, a mask and a location.
constexpr size_t kLeastOpBytes = 3;
// Capacity reserved before a list has been read; longer lists grow as they are read.
constexpr size_t kMostReserved = 1024;

class IrReader {
 public:
  IrReader(BytecodeReader& reader)
      : reader_(reader),
        container_(reader.container()),
        plans_(container_.op_names.size()),
        gathered_(container_.properties.size()),
        values_left_(container_.ir.size()),
        ops_left_(container_.ir.size() / kLeastOpBytes) {}

  Result<RawModule> read() {
    Cursor cursor = container_.cursor(container_.ir, kSection);
    // A value takes at least one byte, and its number must stay below kUndefined.
    if (container_.ir.size() >= kUndefined) return reader_.error(cursor, "4 GiB of ops or more");
    RegionScope scope;
    RawRegion top;
    TENON_TRY(read_block(cursor, scope, top, 0, false));
    if (cursor.failed()) return container_.fault(cursor);
    if (!cursor.at_end())
      return reader_.error(cursor, "{} bytes are left over", cursor.remaining());
    if (top.ops.size() != 1 || top.ops[0].name != "builtin.module" ||
        top.ops[0].regions.size() != 1) {
      return invalid_argument("artifact of {}: it holds {} instead of one module",
                              container_.producer,
                              top.ops.size() == 1 ? fmt::format("one {}", top.ops[0].name)
                                                  : fmt::format("{} ops", top.ops.size()));
    }
    module_.module = std::move(top.ops[0]);
    return std::move(module_);
  }

 private:
  static constexpr RawValue kUndefined = ~RawValue{0};

  // Values of a region that sees no outside values, and of its nested regions, by number.
  struct RegionScope {
    std::vector<RawValue> values;
    size_t next = 0;  ///< Number of the next value defined in the innermost region …
    size_t end = 0;   ///< … and the first number that the region has not reserved.
  };

  /// The attributes of an op as read from entry i of the properties; the plan determines the
  /// meaning of the bytes.
  struct Gathered {
    const OpPlan* plan = nullptr;
    Dict attributes;
  };

  Status define(Cursor& cursor, RegionScope& scope, const Type& type, std::vector<RawValue>& out) {
    if (scope.next == scope.end) {
      return reader_.error(cursor, "a region defines more values than it announced");
    }
    TENON_TRY(reader_.pay_for_copy(type));
    const auto value = static_cast<RawValue>(module_.value_types.size());
    module_.value_types.push_back(type);
    scope.values[scope.next++] = value;
    out.push_back(value);
    return {};
  }

  Status read_block(Cursor& cursor, RegionScope& scope, RawRegion& region, int depth,
                    bool in_function) {
    const Cursor::Flagged head = cursor.varint_flag();
    if (head.flag) TENON_TRY(read_arguments(cursor, scope, region));
    if (head.value > cursor.remaining() / kLeastOpBytes || head.value > ops_left_) {
      return reader_.error(cursor, "{} ops do not fit the {} bytes left", head.value,
                           cursor.remaining());
    }
    ops_left_ -= head.value;
    region.ops.reserve(head.value);
    for (uint64_t i = 0; i < head.value; ++i) {
      region.ops.emplace_back();
      TENON_TRY(read_op(cursor, scope, region.ops.back(), depth, in_function));
    }
    return {};
  }

  Status read_arguments(Cursor& cursor, RegionScope& scope, RawRegion& region) {
    const size_t n = cursor.count();
    region.arguments.reserve(std::min(n, kMostReserved));
    bool any_location = false;
    std::vector<Location> locations;
    for (size_t i = 0; i < n && !cursor.failed(); ++i) {
      Cursor::Flagged type{0, true};
      if (container_.version >= 4) {
        type = cursor.varint_flag();
      } else {
        type.value = cursor.varint();
      }
      if (cursor.failed()) break;
      TENON_ASSIGN(const Type* const value_type, reader_.value_type(type.value));
      TENON_TRY(define(cursor, scope, *value_type, region.arguments));
      locations.emplace_back();
      if (type.flag) {
        TENON_ASSIGN(locations.back(), location(cursor));
        any_location |= locations.back() != nullptr;
      }
    }
    if (any_location) region.argument_locations = std::move(locations);
    if (container_.version >= 3 && cursor.byte() != 0) skip_use_list_orders(cursor, n);
    return {};
  }

  // The order of the uses of `n` values, which this reader does not need.
  static void skip_use_list_orders(Cursor& cursor, size_t n) {
    const size_t m = n > 1 ? cursor.count() : 1;
    for (size_t i = 0; i < m && !cursor.failed(); ++i) {
      if (n > 1) cursor.varint();
      const Cursor::Flagged uses = cursor.varint_flag();
      for (uint64_t j = 0; j < uses.value && !cursor.failed(); ++j) cursor.varint();
    }
  }

  Result<Location> location(Cursor& cursor) {
    const uint64_t index = cursor.varint();
    if (cursor.failed()) return container_.fault(cursor);
    return reader_.location(index);
  }

  Result<const OpPlan*> plan(Cursor& cursor, size_t& name) {
    name = cursor.index(plans_.size(), "op name");
    if (cursor.failed()) return container_.fault(cursor);
    OpPlan& plan = plans_[name];
    if (!plan.resolved) {
      const OpName& op = container_.op_names[name];
      TENON_ASSIGN(plan, plan_op(reader_, container_.dialects[op.dialect], op.name));
    }
    return &plan;
  }

  Status read_op(Cursor& cursor, RegionScope& scope, RawOp& op, int depth, bool in_function) {
    const size_t start = cursor.position();
    size_t name = 0;
    TENON_ASSIGN(const OpPlan* const plan, this->plan(cursor, name));
    TENON_TRY(reader_.pay(plan->name.size()));
    op.name = plan->is_return && in_function ? "func.return" : plan->name;
    const uint8_t mask = cursor.byte();
    TENON_ASSIGN(op.location, location(cursor));
    if ((mask & kUnknownMask) != 0) {
      return container_.fault_at(start, kSection,
                                 fmt::format("{}: mask {:#x} is unknown", op.name, mask));
    }
    TENON_TRY(read_attributes(cursor, *plan, name, mask, op));
    if ((mask & kHasResults) != 0) {
      const size_t n = cursor.count();
      op.results.reserve(std::min(n, kMostReserved));
      for (size_t i = 0; i < n && !cursor.failed(); ++i) {
        TENON_ASSIGN(const Type* const type, reader_.value_type_at(cursor));
        TENON_TRY(define(cursor, scope, *type, op.results));
      }
    }
    if ((mask & kHasOperands) != 0) {
      const size_t n = cursor.count();
      op.operands.reserve(std::min(n, kMostReserved));
      for (size_t i = 0; i < n && !cursor.failed(); ++i) {
        const uint64_t number = cursor.varint();
        if (number >= scope.values.size() || scope.values[number] == kUndefined) {
          return reader_.error(cursor, "operand {} of {} is value {}, which is not defined", i,
                               op.name, number);
        }
        op.operands.push_back(scope.values[number]);
      }
    }
    if ((mask & kHasSuccessors) != 0) {
      return reader_.error(cursor, "{} has successors; regions of one block alone can be read",
                           op.name);
    }
    if ((mask & kHasUseListOrders) != 0) {
      if (container_.version < 3)
        return reader_.error(cursor, "{}: use-list orders before version 3", op.name);
      skip_use_list_orders(cursor, op.results.size());
    }
    if ((mask & kHasRegions) != 0) TENON_TRY(read_regions(cursor, scope, *plan, op, depth));
    return cursor.failed() ? Status(container_.fault(cursor)) : Status();
  }

  Status read_attributes(Cursor& cursor, const OpPlan& plan, size_t name, uint8_t mask, RawOp& op) {
    std::vector<BytecodeReader::NamedIndex> named;
    if ((mask & kHasAttributes) != 0) {
      const uint64_t index = cursor.varint();
      if (cursor.failed()) return container_.fault(cursor);
      TENON_ASSIGN(named, reader_.dictionary(index));
    }
    if ((mask & kHasProperties) != 0) {
      const size_t index = cursor.index(gathered_.size(), "properties entry");
      if (cursor.failed()) return container_.fault(cursor);
      TENON_TRY(read_properties(index, plan, name, op));
    } else if (container_.version >= 5) {
      for (const Field& field : plan.fields) {
        if (!field.optional) return missing(plan, field);
      }
    } else {
      TENON_TRY(take_fields(plan, named, op));
    }
    for (const BytecodeReader::NamedIndex& entry : named) {
      TENON_ASSIGN(const Attribute* const value, reader_.attribute(entry.attribute));
      TENON_TRY(reader_.pay(entry.name.size()));
      TENON_TRY(reader_.pay_for_copy(*value));
      op.attributes.emplace_back(std::string(entry.name), *value);
    }
    if (!named.empty()) {
      TENON_ASSIGN(Attribute sorted, reader_.dict_of(cursor, std::move(op.attributes)));
      op.attributes = *sorted.get<Dict>();
    }
    return {};
  }

  Error missing(const OpPlan& plan, const Field& field) const {
    return invalid_argument("artifact of {}: {} has no attribute {}", container_.producer,
                            plan.name, field.name);
  }

  // Before version 5 the fields are in the dictionary, among the discardable attributes.
  Status take_fields(const OpPlan& plan, std::vector<BytecodeReader::NamedIndex>& named,
                     RawOp& op) {
    std::vector<FieldValue> values;
    values.reserve(plan.fields.size());
    for (const Field& field : plan.fields) {
      const auto entry = std::find_if(named.begin(), named.end(),
                                      [&](const auto& e) { return e.name == field.name; });
      if (entry != named.end()) {
        values.push_back({&field, entry->attribute, true});
        named.erase(entry);
      } else if (!field.optional) {
        return missing(plan, field);
      }
    }
    TENON_ASSIGN(op.attributes, gather_attributes(reader_, plan, values));
    return {};
  }

  Status read_properties(size_t index, const OpPlan& plan, size_t name, RawOp& op) {
    Gathered& gathered = gathered_[index];
    if (gathered.plan == nullptr) {
      TENON_TRY(gather_properties(index, plan, name, gathered.attributes));
      gathered.plan = &plan;
    } else if (gathered.plan != &plan) {
      // Ops of different kinds may share an entry if its bytes are equal.
      return gather_properties(index, plan, name, op.attributes);
    }
    for (const auto& [key, value] : gathered.attributes) {
      TENON_TRY(reader_.pay(key.size()));
      TENON_TRY(reader_.pay_for_copy(value));
    }
    op.attributes = gathered.attributes;
    return {};
  }

  Status gather_properties(size_t index, const OpPlan& plan, size_t name, Dict& out) {
    Cursor cursor = container_.cursor(container_.properties[index], "property");
    if (!container_.op_names[name].registered || !plan.has_known_properties) {
      if (container_.op_names[name].registered && !cursor.at_end()) {
        return unimplemented("artifact of {}: the properties of {} cannot be read",
                             container_.producer, plan.name);
      }
      if (cursor.at_end()) return {};
      TENON_ASSIGN(const Attribute* const all, reader_.attribute_at(cursor));
      if (all->get<Dict>() == nullptr || !cursor.at_end()) {
        return reader_.error(cursor, "the properties of {} are not a dictionary", plan.name);
      }
      out = *all->get<Dict>();
      return {};
    }
    std::vector<FieldValue> values;
    values.reserve(plan.fields.size());
    for (const Field& field : plan.fields) {
      Cursor::Flagged value{0, true};
      if (field.optional) {
        value = cursor.varint_flag();
      } else {
        value.value = cursor.varint();
      }
      values.push_back({&field, value.value, value.flag});
    }
    if (cursor.failed() || !cursor.at_end()) {
      return reader_.error(cursor, "the properties of {} have {} bytes left over", plan.name,
                           cursor.remaining());
    }
    TENON_ASSIGN(out, gather_attributes(reader_, plan, values));
    return {};
  }

  Status read_regions(Cursor& cursor, RegionScope& scope, const OpPlan& plan, RawOp& op,
                      int depth) {
    if (depth >= reader_.limits().max_depth) {
      return reader_.error(cursor, "regions are nested deeper than {}", reader_.limits().max_depth);
    }
    const Cursor::Flagged head = cursor.varint_flag();
    if (!head.flag) return read_region_list(cursor, scope, head.value, plan, op, depth);
    RegionScope own;
    if (container_.version < 2) return read_region_list(cursor, own, head.value, plan, op, depth);
    const SectionHeader section = read_section(cursor);
    if (cursor.failed()) return container_.fault(cursor);
    if (section.id != kIrSection) {
      return container_.fault_at(
          section.span.begin, kSection,
          fmt::format("section {} where the regions of {} are expected", section.id, op.name));
    }
    Cursor inner = container_.cursor(section.span, kSection);
    TENON_TRY(read_region_list(inner, own, head.value, plan, op, depth));
    if (inner.failed() || !inner.at_end()) {
      return reader_.error(inner, "the regions of {} have {} bytes left over", op.name,
                           inner.remaining());
    }
    return {};
  }

  Status read_region_list(Cursor& cursor, RegionScope& scope, uint64_t n, const OpPlan& plan,
                          RawOp& op, int depth) {
    if (n > cursor.remaining()) {
      return reader_.error(cursor, "{} regions do not fit the {} bytes left", n,
                           cursor.remaining());
    }
    op.regions.reserve(std::min<size_t>(n, kMostReserved));
    for (uint64_t i = 0; i < n; ++i) {
      RawRegion& region = op.regions.emplace_back();
      bool empty = false;
      TENON_TRY(read_region(cursor, scope, region, plan.is_function, depth, empty));
      // A function without a body is a declaration.
      if (empty && plan.is_function) op.regions.pop_back();
    }
    return {};
  }

  Status read_region(Cursor& cursor, RegionScope& scope, RawRegion& region, bool in_function,
                     int depth, bool& empty) {
    const uint64_t blocks = cursor.varint();
    empty = blocks == 0;
    if (empty) return {};
    if (blocks > 1) {
      return reader_.error(cursor, "a region of {} blocks; regions of one block alone can be read",
                           blocks);
    }
    const uint64_t values = cursor.varint();
    // Each value is defined somewhere in the section, with a type of at least one byte.
    if (values > values_left_) {
      return reader_.error(cursor, "a region announces {} values, more than the file can define",
                           values);
    }
    values_left_ -= values;
    const size_t base = scope.values.size();
    const auto outer = std::make_pair(scope.next, scope.end);
    scope.next = base;
    scope.end = base + values;
    scope.values.resize(scope.end, kUndefined);
    TENON_TRY(read_block(cursor, scope, region, depth + 1, in_function));
    if (scope.next != scope.end && !cursor.failed()) {
      return reader_.error(cursor, "a region announces {} values and defines {}", values,
                           scope.next - base);
    }
    scope.values.resize(base);
    std::tie(scope.next, scope.end) = outer;
    return {};
  }

  BytecodeReader& reader_;
  const Container& container_;
  std::vector<OpPlan> plans_;
  std::vector<Gathered> gathered_;
  // Values and ops that blocks may still announce. The section cannot define more, so a wrong count
  // cannot make the reader allocate too much memory.
  uint64_t values_left_;
  uint64_t ops_left_;
  RawModule module_;
};

}  // namespace

static Result<RawModule> read_artifact(std::string_view bytes, const ImportLimits& limits) {
  TENON_ASSIGN(Container container, read_container(bytes));
  BytecodeReader reader(std::move(container), limits);
  return IrReader(reader).read();
}

}  // namespace tenon::hlo::bytecode

namespace tenon::hlo {
namespace {

// Gives each op without a location its number in the function, from 1 on; the ops in an op's
// regions follow it. Errors can then state a position.
void number_ops(std::vector<RawOp>& ops, const Location& function, uint32_t& number) {
  for (RawOp& op : ops) {
    ++number;
    const bool unknown = op.location == nullptr || (op.location->kind == LocationKind::kUnknown &&
                                                    op.location->children.empty());
    if (unknown) op.location = op_location(function, number);
    for (RawRegion& region : op.regions) number_ops(region.ops, function, number);
  }
}

void number_ops(RawModule& module, std::string_view file) {
  for (RawRegion& region : module.module.regions) {
    for (RawOp& function : region.ops) {
      const Attribute* name = find(function.attributes, "sym_name");
      const std::string* text = name != nullptr ? name->get<std::string>() : nullptr;
      const Location place = function_location(file, text != nullptr ? *text : "");
      uint32_t number = 0;
      for (RawRegion& body : function.regions) number_ops(body.ops, place, number);
    }
  }
}

}  // namespace

Result<RawModule> parse_artifact(std::string_view bytes, const std::string& file_name,
                                 const ImportLimits& limits) {
  auto module = bytecode::read_artifact(bytes, limits);
  if (!module) {
    return Error(std::move(module.error()).at({file_name, 0, 0}).in_stage("import"));
  }
  number_ops(*module, file_name);
  return module;
}

}  // namespace tenon::hlo
