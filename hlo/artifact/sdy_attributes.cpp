// Attributes of Shardy, kept as the text that MLIR prints for them.

#include "hlo/artifact/bytecode_reader.h"

namespace tenon::hlo::bytecode {
namespace {

enum SdyAttributeCode : uint64_t {
  kSdyManualAxes,
  kSdyMeshAxis,
  kSdyMesh,
  kSdySubAxisInfo,
  kSdyAxisRef,
  kSdyDimensionSharding,
  kSdySharding,
  kSdyShardingPerValue,
  kSdyDimMapping,
  kSdyTensorMapping,
  kSdyOpShardingRule,
  kSdyAxisRefList,
  kSdyListOfAxisRefLists,
  kSdyAllToAllParam,
  kSdyAllToAllParamList,
  kSdyShardingWithUnreduced,
  kSdyShardingPerValueWithUnreduced,
  kSdyShardingWithReduction,
};

constexpr std::string_view kPrefix = "#sdy.";

// Writes the text of one attribute; like the cursor, it keeps the first error.
class SdyPrinter {
 public:
  SdyPrinter(BytecodeReader& reader, Cursor& cursor) : reader_(reader), cursor_(cursor) {}

  Result<Attribute> print(uint64_t code);

 private:
  // The text of an attribute within another: without its dialect and name.
  std::string part() {
    const auto attribute = reader_.attribute_at(cursor_);
    if (!attribute) return fail(attribute.error());
    if (const auto* symbol = (*attribute)->get<SymbolAttr>())
      return pay(fmt::format("@{}", symbol->name));
    if (const auto* text = (*attribute)->get<std::string>()) return pay(quoted(*text));
    const auto* opaque = (*attribute)->get<OpaqueAttr>();
    if (opaque == nullptr) {
      cursor_.fail("an attribute of dialect sdy is expected");
      return {};
    }
    std::string_view text = opaque->text;
    if (text.starts_with(kPrefix)) text.remove_prefix(std::min(text.find('<'), text.size()));
    return pay(std::string(text));
  }
  std::string parts() {
    const size_t n = cursor_.count();
    std::string out;
    for (size_t i = 0; i < n && !failed(); ++i)
      out += fmt::format("{}{}", i == 0 ? "" : ", ", part());
    return out;
  }
  std::string mesh_or_symbol() {
    std::string text = part();
    return text.starts_with('@') ? text : fmt::format("mesh{}", text);
  }
  static std::string factor(int64_t index) {
    constexpr int64_t kLetters = 'z' - 'i' + 1;
    return index < kLetters ? std::string(1, static_cast<char>('i' + std::max<int64_t>(index, 0)))
                            : fmt::format("z_{}", index - kLetters + 1);
  }
  std::string factors(std::string_view name) {
    std::string out;
    for (const int64_t index : reader_.svarints_at(cursor_)) {
      out += fmt::format("{}{}", out.empty() ? "" : ", ", factor(index));
    }
    return out.empty() ? out : fmt::format(" {}={{{}}}", name, out);
  }
  std::string dimension_sharding() {
    std::string out = fmt::format("{{{}", parts());
    if (cursor_.byte() == 0) out += out.size() > 1 ? ", ?" : "?";
    out += "}";
    const Cursor::Flagged priority = cursor_.varint_flag();
    return priority.flag ? fmt::format("{}p{}", out, priority.value) : out;
  }
  std::string sharding(uint64_t code) {
    // Each is read in its own statement, because the operands of + are unsequenced.
    std::string out = mesh_or_symbol();
    out = fmt::format("#sdy.sharding<{}, [{}]", out, parts());
    if (const std::string axes = parts(); !axes.empty()) {
      out += fmt::format(", replicated={{{}}}", axes);
    }
    if (code == kSdySharding) return out + ">";
    const std::string unreduced = parts();
    const int64_t reduction = code == kSdyShardingWithReduction ? cursor_.svarint() : 0;
    constexpr std::string_view kReductions[] = {"", "max", "min"};
    if (reduction < 0 || reduction > 2) cursor_.fail("reduction {} does not exist", reduction);
    if (!unreduced.empty() && !failed()) {
      out += fmt::format(", unreduced={}{{{}}}", kReductions[reduction], unreduced);
    }
    return out + ">";
  }
  std::string op_sharding_rule() {
    const I64s sizes = reader_.svarints_at(cursor_);
    std::string out = fmt::format("#sdy.op_sharding_rule<({})->(", parts());
    out += fmt::format("{})", parts());
    std::string list;
    for (size_t i = 0; i < sizes.size(); ++i) {
      list += fmt::format("{}{}={}", i == 0 ? "" : ", ", factor(static_cast<int64_t>(i)), sizes[i]);
    }
    if (!list.empty()) out += fmt::format(" {{{}}}", list);
    for (const char* name :
         {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
      out += factors(name);
    }
    return out + (cursor_.byte() != 0 ? ", custom>" : ">");
  }
  std::string all_to_all_param() {
    const std::string axes = parts();
    const int64_t source = cursor_.svarint();
    return fmt::format("{{{}}}: {}->{}", axes, source, cursor_.svarint());
  }
  std::string mesh() {
    std::string out = fmt::format("#sdy.mesh<[{}]", parts());
    const I64s ids = reader_.svarints_at(cursor_);
    return ids.empty() ? out + ">" : fmt::format("{}, device_ids=[{}]>", out, fmt::join(ids, ", "));
  }
  std::string mesh_axis() {
    const std::string name = quoted(reader_.string_at(cursor_));
    return fmt::format("{}={}", name, cursor_.svarint());
  }
  std::string sub_axis_info() {
    const int64_t pre_size = cursor_.svarint();
    return fmt::format("({}){}", pre_size, cursor_.svarint());
  }
  std::string axis_ref() {
    std::string out = quoted(reader_.string_at(cursor_));
    const Cursor::Flagged sub_axis = cursor_.varint_flag();
    if (!sub_axis.flag) return out;
    const auto attribute = reader_.attribute(sub_axis.value);
    if (!attribute) return fail(attribute.error());
    const auto* text = (*attribute)->get<OpaqueAttr>();
    return text ? out + ":" + text->text : out;
  }
  std::string dim_mapping() {
    std::string out;
    for (const int64_t index : reader_.svarints_at(cursor_)) out += factor(index);
    return out;
  }
  std::string text_of(uint64_t code);

  bool failed() const { return cursor_.failed() || !status_.ok(); }
  std::string fail(const Status& status) {
    if (status_.ok()) status_ = status;
    return {};
  }
  std::string pay(const std::string& text) {
    const Status paid = reader_.pay(text.size());
    return paid.ok() ? text : fail(paid);
  }

  BytecodeReader& reader_;
  Cursor& cursor_;
  Status status_;
};

std::string SdyPrinter::text_of(uint64_t code) {
  switch (code) {
    case kSdyManualAxes:
      return fmt::format("#sdy<manual_axes{{{}}}>", parts());
    case kSdyMeshAxis:
      return mesh_axis();
    case kSdyMesh:
      return mesh();
    case kSdySubAxisInfo:
      return sub_axis_info();
    case kSdyAxisRef:
      return axis_ref();
    case kSdyDimensionSharding:
      return dimension_sharding();
    case kSdySharding:
    case kSdyShardingWithUnreduced:
    case kSdyShardingWithReduction:
      return sharding(code);
    case kSdyShardingPerValue:
    case kSdyShardingPerValueWithUnreduced:
      return fmt::format("#sdy.sharding_per_value<[{}]>", parts());
    case kSdyDimMapping:
      return dim_mapping();
    case kSdyTensorMapping:
      return fmt::format("[{}]", parts());
    case kSdyOpShardingRule:
      return op_sharding_rule();
    case kSdyAxisRefList:
      return fmt::format("{{{}}}", parts());
    case kSdyListOfAxisRefLists:
    case kSdyAllToAllParamList:
      return fmt::format("[{}]", parts());
    case kSdyAllToAllParam:
      return all_to_all_param();
    default:
      return {};
  }
}

Result<Attribute> SdyPrinter::print(uint64_t code) {
  if (code > kSdyShardingWithReduction) {
    return unimplemented("artifact of {}: attribute {} of dialect sdy is unknown",
                         reader_.container().producer, code);
  }
  std::string text = text_of(code);
  if (!status_.ok()) return Error(status_);
  return Attribute(OpaqueAttr{std::move(text)});
}

}  // namespace

Result<Attribute> decode_sdy_attribute(BytecodeReader& reader, uint64_t code, Cursor& cursor) {
  return SdyPrinter(reader, cursor).print(code);
}

}  // namespace tenon::hlo::bytecode
