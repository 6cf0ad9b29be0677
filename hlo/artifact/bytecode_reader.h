// The attribute and type table of an artifact, decoded on demand into the attributes, types and
// locations of hlo/types.
//
// Entries refer to each other in any order. Each is decoded once, when first used. A cycle, a depth
// above the limit, and an entry that would grow out of proportion when written out are errors.
// Copies of lists and texts that the format shares but hlo/types does not are charged to an
// allowance that grows with the file, so a small file cannot make the reader use much memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/artifact/artifact.h"
#include "hlo/artifact/bytecode.h"
#include "hlo/types/attribute.h"
#include "hlo/types/location.h"
#include "hlo/types/type.h"

namespace tenon::hlo::bytecode {

/// A type of the table: a type of values, or one that occurs only inside other types and in
/// attributes.
struct TableType {
  enum class DecodedTypeKind : uint8_t { kValue, kElement, kQuantized, kTf32 };
  DecodedTypeKind kind = DecodedTypeKind::kValue;
  ElementType element = ElementType::kPred;  ///< kElement
  Type value;                                ///< kValue
  std::shared_ptr<const QuantizedType> quantized;

  static TableType of(ElementType type) { return {DecodedTypeKind::kElement, type, {}, nullptr}; }
  static TableType of(Type type) { return {DecodedTypeKind::kValue, {}, std::move(type), nullptr}; }
  /// The text for messages, in StableHLO's spelling.
  std::string to_string() const;
};

class BytecodeReader {
 public:
  BytecodeReader(Container container, const ImportLimits& limits);
  BytecodeReader(const BytecodeReader&) = delete;
  BytecodeReader& operator=(const BytecodeReader&) = delete;

  const Container& container() const { return container_; }
  const ImportLimits& limits() const { return limits_; }

  /// Attribute `index` of the table. The pointer is valid as long as the reader.
  Result<const Attribute*> attribute(uint64_t index);
  Result<const TableType*> type(uint64_t index);
  /// Type `index`, which must be a type of values.
  Result<const Type*> value_type(uint64_t index);
  /// Location `index`; null if it is unknown or of another dialect. A location that is too deep is
  /// truncated.
  Result<Location> location(uint64_t index);
  /// The text of attribute `index`, a string of builtin or VHLO.
  Result<std::string_view> text(uint64_t index);
  /// The entries (name, attribute index) of attribute `index`, a builtin dictionary.
  struct NamedIndex {
    std::string_view name;
    uint64_t attribute = 0;
  };
  Result<std::vector<NamedIndex>> dictionary(uint64_t index);
  /// Attribute `index`, which must be a dense array: i64 or index as I64s (rank 1) or I64Matrix
  /// (rank 2), i1 of rank 1 as BoolsAttr.
  Result<const Attribute*> list(uint64_t index);
  /// The same for a decoded attribute; not cached.
  Result<Attribute> to_list(const Attribute& dense);

  /// Charges `bytes` to the allowance for copies.
  Status pay(uint64_t bytes);
  Status pay_for_copy(const Attribute& attribute);
  Status pay_for_copy(const Type& type);

  /// An error at the position of `cursor`, or the cursor's own error if it has one.
  template <class... Args>
  Error error(const Cursor& cursor, fmt::format_string<Args...> format, Args&&... args) const {
    if (cursor.failed()) return container_.fault(cursor);
    return container_.fault_at(cursor.position(), cursor.section(),
                               fmt::format(format, std::forward<Args>(args)...));
  }
  /// "NAME is unknown; newest StableHLO version known is …": a limitation of this reader, not an
  /// invalid input.
  Error unknown(std::string_view name) const {
    return unimplemented("artifact of {}: {} is unknown; newest StableHLO version known is {}",
                         container_.producer, name, kNewestStableHlo);
  }

  // For the decoders of dialects, at a cursor within an entry.
  Result<const Attribute*> attribute_at(Cursor& cursor) { return attribute(cursor.varint()); }
  Result<const TableType*> type_at(Cursor& cursor) { return type(cursor.varint()); }
  Result<const Type*> value_type_at(Cursor& cursor) { return value_type(cursor.varint()); }
  Result<ElementType> element_type_at(Cursor& cursor);
  Result<std::string_view> text_at(Cursor& cursor) { return text(cursor.varint()); }
  /// An index into the string table.
  std::string_view string_at(Cursor& cursor);
  I64s svarints_at(Cursor& cursor);
  Result<ArrayAttr> attributes_at(Cursor& cursor);
  Result<std::vector<Type>> value_types_at(Cursor& cursor);
  /// list<svarint> shape, type element; `bounds` is empty or has one bound per dimension.
  Result<Type> shaped_type_at(Cursor& cursor, Dims bounds, bool is_buffer);
  /// The bounds in a tensor encoding, the attribute at the cursor.
  Result<Dims> bounds_at(Cursor& cursor);
  /// An integer or float of the type at the cursor: true and false for i1.
  Result<Attribute> integer_at(Cursor& cursor);
  Result<Attribute> float_at(Cursor& cursor);
  /// A tensor type, followed by its elements as a blob.
  Result<Attribute> dense_at(Cursor& cursor);
  /// A type as an attribute: a type of values, or the name of another type as OpaqueAttr.
  Result<Attribute> type_attribute_at(Cursor& cursor);
  /// Sorts by key; a duplicate key is an error.
  Result<Attribute> dict_of(const Cursor& cursor, Dict entries) const;

 private:
  enum class DecodeState : uint8_t { kUnread, kActive, kDone };
  /// Depth and written-out size of the entry that is being decoded, computed from its parts.
  struct DecodedExtent {
    uint32_t depth = 0;
    uint64_t bytes = 0;
  };
  template <class T>
  struct DecodeSlot {
    T value;
    DecodedExtent extent;
    DecodeState state = DecodeState::kUnread;
  };
  struct AttributeSlot : DecodeSlot<Attribute> {
    uint32_t list = 0;  ///< 1 + index in lists_, 0 if not requested yet.
  };

  template <class S, class Decode>
  Result<S*> decode_once(std::vector<S>& slots, const std::vector<EncodedEntry>& entries,
                         uint64_t index, const char* what, Decode decode);
  Result<Attribute> decode_attribute(const EncodedEntry& entry, Cursor& cursor);
  Result<TableType> decode_type(const EncodedEntry& entry, Cursor& cursor);
  Result<Location> decode_location(const EncodedEntry& entry, Cursor& cursor);
  bool is_binary_of(const EncodedEntry& entry, std::string_view dialect) const;

  Container container_;
  ImportLimits limits_;
  std::vector<AttributeSlot> attributes_;
  std::vector<DecodeSlot<TableType>> types_;
  std::vector<DecodeSlot<Location>> locations_;
  std::vector<std::unique_ptr<Attribute>> lists_;
  DecodedExtent extent_;
  int active_ = 0;
  uint64_t allowance_;
};

// Decoders of the dialects; the cursor is after the code.
Result<Attribute> decode_builtin_attribute(BytecodeReader& reader, uint64_t code, Cursor& cursor);
Result<TableType> decode_builtin_type(BytecodeReader& reader, uint64_t code, Cursor& cursor);
Result<Location> decode_builtin_location(BytecodeReader& reader, uint64_t code, Cursor& cursor);
Result<Attribute> decode_vhlo_attribute(BytecodeReader& reader, uint64_t code, Cursor& cursor);
Result<TableType> decode_vhlo_type(BytecodeReader& reader, uint64_t code, Cursor& cursor);
Result<Attribute> decode_sdy_attribute(BytecodeReader& reader, uint64_t code, Cursor& cursor);

/// `text` in quotes, escaped as MLIR prints it.
std::string quoted(std::string_view text);

/// A dense constant of `shape` from its bytes in the format's encoding: all elements, or one for a
/// splat.
Result<DenseAttr> dense_from_blob(const Shape& shape, std::string_view blob, int64_t max_bytes);

}  // namespace tenon::hlo::bytecode
