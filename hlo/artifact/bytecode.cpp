#include "hlo/artifact/bytecode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "hlo/artifact/artifact.h"

namespace tenon::hlo {

namespace {
constexpr std::string_view kMagic = "\x4D\x4C\xEF\x52";
}

bool is_artifact(std::string_view bytes) { return bytes.substr(0, kMagic.size()) == kMagic; }

namespace bytecode {

uint64_t Cursor::long_varint() {
  if (at_end()) return fail_short(1);
  const auto first = static_cast<uint8_t>(file_[position_]);
  const unsigned more = first == 0 ? 8 : static_cast<unsigned>(std::countr_zero(first));
  if (remaining() < more + 1) return fail_short(more + 1);
  uint64_t value = 0;
  if (first == 0) {
    std::memcpy(&value, file_.data() + position_ + 1, 8);
  } else {
    std::memcpy(&value, file_.data() + position_, more + 1);
    value >>= more + 1;
  }
  position_ += more + 1;
  return value;
}

uint64_t Cursor::fail_short(uint64_t wanted) {
  return fail("{} bytes are needed, {} are left", wanted, remaining());
}

void Cursor::set_error(std::string text) {
  error_ = std::move(text);
  error_position_ = position_;
  position_ = end_;
}

size_t Cursor::count(size_t least_bytes) {
  const size_t before = position_;
  const uint64_t n = varint();
  if (n > remaining() / least_bytes) {
    const size_t bytes_left = remaining();
    position_ = before;
    return fail("a list of {} entries does not fit the {} bytes left", n, bytes_left);
  }
  return n;
}

size_t Cursor::check_index(uint64_t value, size_t size, const char* what) {
  if (value >= size && !failed())
    return fail("{} {} does not exist; there are {}", what, value, size);
  return failed() ? 0 : value;
}

size_t Cursor::index(size_t size, const char* what) { return check_index(varint(), size, what); }

std::string_view Cursor::bytes(uint64_t size) {
  if (size > remaining()) {
    fail_short(size);
    return {};
  }
  const std::string_view result = file_.substr(position_, size);
  position_ += size;
  return result;
}

std::string_view Cursor::blob() { return bytes(varint()); }

uint64_t Cursor::apint(unsigned width) {
  if (width <= 8) return byte() & ((1u << width) - 1);
  if (width > 64) return fail("integers of {} bits cannot be read", width);
  const auto value = static_cast<uint64_t>(svarint());
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

std::string_view Cursor::c_string() {
  const size_t nul = file_.substr(0, end_).find('\0', position_);
  if (nul == std::string_view::npos) {
    fail("a text has no end");
    return {};
  }
  const std::string_view text = file_.substr(position_, nul - position_);
  position_ = nul + 1;
  return text;
}

void Cursor::align(uint64_t alignment) {
  if (!std::has_single_bit(alignment)) {
    fail("an alignment of {} is not a power of two", alignment);
    return;
  }
  while (!failed() && (position_ & (alignment - 1)) != 0) {
    if (!at_end() && static_cast<uint8_t>(file_[position_]) != 0xCB) {
      fail("padding is {:#04x} instead of 0xcb", static_cast<uint8_t>(file_[position_]));
    } else {
      byte();
    }
  }
}

Error Container::fault_at(size_t position, std::string_view section, std::string_view text) const {
  return invalid_argument("artifact of {}: byte {:#x} ({} section): {}", producer, position,
                          section, text);
}

SectionHeader read_section(Cursor& cursor) {
  const uint8_t head = cursor.byte();
  const uint64_t length = cursor.varint();
  if ((head & 0x80) != 0) cursor.align(cursor.varint());
  SectionHeader header{static_cast<uint8_t>(head & 0x7f), {cursor.position(), cursor.position()}};
  cursor.bytes(length);
  if (!cursor.failed()) header.span.end = cursor.position();
  return header;
}

namespace {

enum SectionId : uint8_t {
  kStringsSection,
  kDialectsSection,
  kAttributeDataSection,
  kAttributeOffsetsSection,
  kIrSection,
  kResourceDataSection,
  kResourceOffsetsSection,
  kDialectVersionSection,
  kPropertiesSection,
  kSectionCount,
};
constexpr std::array<const char*, kSectionCount> kSectionNames = {
    "string",  "dialect",       "attribute and type data", "attribute and type offset",
    "IR",      "resource data", "resource offset",         "dialect version",
    "property"};

// Reads the sections in order; stops at the first error.
class ContainerReader {
 public:
  explicit ContainerReader(std::string_view file) { out_.file = file; }

  Result<Container> read() {
    TENON_TRY(read_header());
    TENON_TRY(in_section(kStringsSection, &ContainerReader::read_strings));
    TENON_TRY(in_section(kDialectsSection, &ContainerReader::read_dialects));
    TENON_TRY(in_section(kAttributeOffsetsSection, &ContainerReader::read_entries));
    if (sections_[kResourceOffsetsSection] && sections_[kResourceDataSection]) {
      TENON_TRY(in_section(kResourceOffsetsSection, &ContainerReader::read_resources));
    }
    if (sections_[kPropertiesSection]) {
      TENON_TRY(in_section(kPropertiesSection, &ContainerReader::read_properties));
    }
    out_.ir = *sections_[kIrSection];
    return std::move(out_);
  }

 private:
  Status read_header() {
    Cursor cursor(out_.file, 0, out_.file.size(), "header");
    if (!is_artifact(out_.file)) {
      return invalid_argument("this is not MLIR bytecode: it does not begin with 4d 4c ef 52");
    }
    cursor.bytes(kMagic.size());
    out_.producer = "an unknown producer";
    out_.version = cursor.varint();
    const std::string_view producer = cursor.c_string();
    if (cursor.failed()) return out_.fault(cursor);
    out_.producer = producer;
    if (out_.version > kNewestBytecode) {
      return unimplemented("artifact of {}: bytecode version {} is unknown; the newest known is {}",
                           producer, out_.version, kNewestBytecode);
    }
    while (!cursor.at_end()) {
      const size_t start = cursor.position();
      const SectionHeader header = read_section(cursor);
      if (cursor.failed()) return out_.fault(cursor);
      if (header.id >= kSectionCount || header.id == kDialectVersionSection) {
        return out_.fault_at(start, "header", fmt::format("section {} is unknown", header.id));
      }
      if (sections_[header.id]) {
        return out_.fault_at(start, "header",
                             fmt::format("a second {} section", kSectionNames[header.id]));
      }
      sections_[header.id] = header.span;
    }
    for (const uint8_t id : {kStringsSection, kDialectsSection, kAttributeDataSection,
                             kAttributeOffsetsSection, kIrSection}) {
      if (!sections_[id]) return missing(id);
    }
    if (out_.version >= 5 && !sections_[kPropertiesSection]) return missing(kPropertiesSection);
    if (sections_[kResourceDataSection].has_value() !=
        sections_[kResourceOffsetsSection].has_value()) {
      return missing(sections_[kResourceDataSection] ? kResourceOffsetsSection
                                                     : kResourceDataSection);
    }
    return {};
  }

  Error missing(uint8_t id) const {
    return invalid_argument("artifact of {}: the {} section is missing", out_.producer,
                            kSectionNames[id]);
  }

  Status in_section(SectionId id, void (ContainerReader::*content)(Cursor&)) {
    Cursor cursor = out_.cursor(*sections_[id], kSectionNames[id]);
    (this->*content)(cursor);
    if (!cursor.at_end()) cursor.fail("{} bytes are left over", cursor.remaining());
    return cursor.failed() ? Status(out_.fault(cursor)) : Status();
  }

  std::string_view string(Cursor& cursor) {
    const size_t i = cursor.index(out_.strings.size(), "string");
    return cursor.failed() ? std::string_view() : out_.strings[i];
  }
  Cursor::Flagged string_flag(Cursor& cursor) {
    Cursor::Flagged f = cursor.varint_flag();
    f.value = cursor.check_index(f.value, out_.strings.size(), "string");
    return f;
  }

  // Lengths are stored in reverse order; the texts end exactly at the end of the section.
  void read_strings(Cursor& cursor) {
    const size_t n = cursor.count();
    std::vector<uint64_t> lengths(n);
    uint64_t total = 0;
    for (size_t i = n; i-- > 0;) {
      lengths[i] = cursor.varint();
      if (lengths[i] == 0 || lengths[i] > cursor.remaining() || total > cursor.remaining()) {
        cursor.fail("string {} takes {} bytes, {} are left", i, lengths[i], cursor.remaining());
        return;
      }
      total += lengths[i];
    }
    if (cursor.failed()) return;
    if (total != cursor.remaining()) {
      cursor.fail("the strings take {} bytes, {} are left", total, cursor.remaining());
      return;
    }
    out_.strings.reserve(n);
    for (const uint64_t length : lengths) {
      const std::string_view text = cursor.bytes(length);
      if (text.back() != '\0') {
        cursor.fail("string {} does not end in NUL", out_.strings.size());
        return;
      }
      out_.strings.push_back(text.substr(0, length - 1));
    }
  }

  void read_dialects(Cursor& cursor) {
    const size_t n = cursor.count();
    for (size_t i = 0; i < n && !cursor.failed(); ++i) {
      if (out_.version == 0) {
        out_.dialects.push_back(string(cursor));
        continue;
      }
      const Cursor::Flagged name = string_flag(cursor);
      if (cursor.failed()) return;
      out_.dialects.push_back(out_.strings[name.value]);
      if (name.flag && read_section(cursor).id != kDialectVersionSection) {
        cursor.fail("the version of dialect {} is expected here", out_.dialects.back());
      }
    }
    const size_t expected = out_.version >= 4 ? cursor.count() : 0;
    while (!cursor.at_end()) {
      const auto dialect = static_cast<uint32_t>(cursor.index(out_.dialects.size(), "dialect"));
      const size_t count = cursor.count();
      for (size_t i = 0; i < count && !cursor.failed(); ++i) {
        if (out_.version < 5) {
          out_.op_names.push_back({dialect, true, string(cursor)});
          continue;
        }
        const Cursor::Flagged name = string_flag(cursor);
        if (!cursor.failed()) {
          out_.op_names.push_back({dialect, name.flag, out_.strings[name.value]});
        }
      }
    }
    if (out_.version >= 4 && expected != out_.op_names.size()) {
      cursor.fail("{} op names are announced, {} are listed", expected, out_.op_names.size());
    }
  }

  void read_entries(Cursor& cursor) {
    // An entry takes a byte here and, since it has a code or a NUL, one in the data.
    const uint64_t attributes = cursor.varint();
    const uint64_t types = cursor.varint();
    const size_t bound = std::min(cursor.remaining(), sections_[kAttributeDataSection]->size());
    if (attributes > bound || types > bound - attributes) {
      cursor.fail("{} attributes and {} types do not fit the {} bytes left", attributes, types,
                  bound);
      return;
    }
    size_t next = sections_[kAttributeDataSection]->begin;
    read_groups(cursor, attributes, next, out_.attributes);
    read_groups(cursor, types, next, out_.types);
    if (next != sections_[kAttributeDataSection]->end) {
      cursor.fail("the entries end at byte {:#x}, their section at {:#x}", next,
                  sections_[kAttributeDataSection]->end);
    }
  }

  void read_groups(Cursor& cursor, size_t total, size_t& next, std::vector<EncodedEntry>& out) {
    out.reserve(total);
    while (out.size() < total && !cursor.failed()) {
      const auto dialect = static_cast<uint32_t>(cursor.index(out_.dialects.size(), "dialect"));
      const size_t count = cursor.count();
      if (count > total - out.size()) {
        cursor.fail("a group of {} entries where {} are missing", count, total - out.size());
      }
      for (size_t i = 0; i < count && !cursor.failed(); ++i) {
        const Cursor::Flagged size = cursor.varint_flag();
        if (size.value == 0 || size.value > sections_[kAttributeDataSection]->end - next) {
          cursor.fail("an entry of {} bytes, {} are left", size.value,
                      sections_[kAttributeDataSection]->end - next);
          return;
        }
        out.push_back({{next, next + size.value}, dialect, size.flag});
        next += size.value;
      }
    }
  }

  void read_resources(Cursor& cursor) {
    size_t next = sections_[kResourceDataSection]->begin;
    const size_t external = cursor.count();
    std::vector<BytecodeResource> unused;
    for (size_t i = 0; i < external && !cursor.failed(); ++i) {
      string(cursor);
      read_resource_group(cursor, next, unused);
    }
    while (!cursor.at_end()) {
      cursor.index(out_.dialects.size(), "dialect");
      read_resource_group(cursor, next, out_.resources);
    }
    if (next != sections_[kResourceDataSection]->end) {
      cursor.fail("the resources end at byte {:#x}, their section at {:#x}", next,
                  sections_[kResourceDataSection]->end);
    }
  }

  void read_resource_group(Cursor& cursor, size_t& next, std::vector<BytecodeResource>& out) {
    const size_t n = cursor.count(3);
    for (size_t i = 0; i < n && !cursor.failed(); ++i) {
      const std::string_view key = string(cursor);
      const uint64_t size = cursor.varint();
      const uint8_t kind = cursor.byte();
      const size_t left = sections_[kResourceDataSection]->end - next;
      if (size > left) {
        cursor.fail("resource {} takes {} bytes, {} are left", key, size, left);
      } else if (kind > static_cast<uint8_t>(ResourceKind::kString)) {
        cursor.fail("resource {} is of unknown kind {}", key, kind);
      }
      out.push_back({key, static_cast<ResourceKind>(kind), {next, next + size}});
      next += cursor.failed() ? 0 : size;
    }
  }

  void read_properties(Cursor& cursor) {
    const size_t n = cursor.count();
    out_.properties.reserve(n);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t size = cursor.varint();
      const size_t begin = cursor.position();
      cursor.bytes(size);
      out_.properties.push_back({begin, cursor.position()});
    }
  }

  Container out_;
  std::array<std::optional<ByteSpan>, kSectionCount> sections_;
};

}  // namespace

Result<Container> read_container(std::string_view file) { return ContainerReader(file).read(); }

}  // namespace bytecode
}  // namespace tenon::hlo
