// The container of MLIR bytecode, versions 0 to 6: sections, tables and a bounds-checked cursor.
//
// This file is independent of dialects. The tables hold views into the input, which must outlive
// them; bytecode_reader.h decodes entries of the attribute and type table on demand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::hlo::bytecode {

inline constexpr uint64_t kNewestBytecode = 6;

/// Reads the primitive encodings from a part of the file.
///
/// Errors are sticky: the first error is kept with its position, the cursor jumps to its end, and
/// every later read returns zero, so that loops over counts end at once. The owner of the cursor
/// must check `failed()` at the end, and before reporting an error about a value that it read.
class Cursor {
 public:
  Cursor() = default;
  /// Reads bytes [begin, end) of `file`; positions are those of the file. `section` is the name of
  /// the part.
  Cursor(std::string_view file, size_t begin, size_t end, const char* section)
      : file_(file), position_(begin), end_(end), section_(section) {}

  size_t position() const { return position_; }
  size_t remaining() const { return end_ - position_; }
  bool at_end() const { return position_ == end_; }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  size_t error_position() const { return error_position_; }
  const char* section() const { return section_; }

  uint8_t byte() {
    if (at_end()) return static_cast<uint8_t>(fail_short(1));
    return static_cast<uint8_t>(file_[position_++]);
  }
  /// Little-endian prefix varint: the trailing zeros of the first byte give the number of further
  /// bytes.
  uint64_t varint() {
    if (!at_end() && (file_[position_] & 1) != 0) {
      return static_cast<uint8_t>(file_[position_++]) >> 1;
    }
    return long_varint();
  }
  /// A zigzag-encoded varint.
  int64_t svarint() {
    const uint64_t u = varint();
    return static_cast<int64_t>((u >> 1) ^ (~(u & 1) + 1));
  }
  struct Flagged {
    uint64_t value = 0;
    bool flag = false;
  };
  Flagged varint_flag() {
    const uint64_t u = varint();
    return {u >> 1, (u & 1) != 0};
  }
  /// A number of elements of at least `least_bytes` each; an error if the remaining bytes cannot
  /// hold them.
  size_t count(size_t least_bytes = 1);
  /// An index into the table `what`, which has `size` entries.
  size_t index(size_t size, const char* what);
  size_t check_index(uint64_t value, size_t size, const char* what);
  std::string_view bytes(uint64_t size);
  /// A size, followed by that many bytes.
  std::string_view blob();
  /// An integer of `width` bits: at most its low 64 bits, masked to its width.
  uint64_t apint(unsigned width);
  /// Bytes up to a NUL, which is consumed.
  std::string_view c_string();
  /// Padding up to a multiple of `alignment` in the file.
  void align(uint64_t alignment);

  template <class... Args>
  uint64_t fail(fmt::format_string<Args...> format, Args&&... args) {
    if (!failed()) set_error(fmt::format(format, std::forward<Args>(args)...));
    return 0;
  }

 private:
  uint64_t long_varint();
  uint64_t fail_short(uint64_t wanted);
  void set_error(std::string text);

  std::string_view file_;
  size_t position_ = 0;
  size_t end_ = 0;
  const char* section_ = "";
  std::string error_;
  size_t error_position_ = 0;
};

/// Bytes [begin, end) of the file.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

struct OpName {
  uint32_t dialect = 0;
  bool registered = true;  ///< Known to the writer: its properties have the op's own layout.
  std::string_view name;   ///< Without the dialect.
};

/// An attribute or type that is not decoded yet.
struct EncodedEntry {
  ByteSpan span;
  uint32_t dialect = 0;
  bool binary = false;  ///< The dialect's own encoding; else MLIR text and a NUL.
};

enum class ResourceKind : uint8_t { kBlob, kBool, kString };
struct BytecodeResource {
  std::string_view key;
  ResourceKind kind = ResourceKind::kBlob;
  ByteSpan span;
};

struct Container {
  std::string_view file;
  uint64_t version = 0;
  std::string_view producer;
  std::vector<std::string_view> strings;
  std::vector<std::string_view> dialects;
  std::vector<OpName> op_names;
  std::vector<EncodedEntry> attributes;
  std::vector<EncodedEntry> types;
  std::vector<ByteSpan> properties;
  std::vector<BytecodeResource>
      resources;  ///< Those of dialects, in the order in which attributes number them.
  ByteSpan ir;

  Cursor cursor(ByteSpan span, const char* section) const {
    return Cursor(file, span.begin, span.end, section);
  }
  /// The error that stopped `cursor`: "artifact of P: byte 0x2a (IR section): …".
  Error fault(const Cursor& cursor) const {
    return fault_at(cursor.error_position(), cursor.section(), cursor.error());
  }
  Error fault_at(size_t position, std::string_view section, std::string_view text) const;
};

/// Reads the section header at `cursor` (also of a nested section), and skips the content.
struct SectionHeader {
  uint8_t id = 0;
  ByteSpan span;
};
SectionHeader read_section(Cursor& cursor);

inline constexpr uint8_t kIrSection = 4;

Result<Container> read_container(std::string_view file);

}  // namespace tenon::hlo::bytecode
