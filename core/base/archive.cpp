#include "core/base/archive.h"

namespace tenon::serial {
namespace {

constexpr size_t kChecksumBytes = 8;

std::string as_bytes(uint64_t value) {
  std::string bytes;
  for (size_t i = 0; i < kChecksumBytes; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// FNV-1a of the version and the payload. A part of the format: it only detects damage, and never
// identifies the bytes (digest.h does).
uint64_t checksum_of(std::string_view payload, uint32_t version) {
  uint64_t hash = 0xCBF29CE484222325 ^ version;
  for (const char c : payload) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace

void ArchiveWriter::symbol(std::string_view name) {
  const auto found = symbols_.find(name);
  if (found != symbols_.end()) return number(found->second);
  number(symbols_.emplace(name, symbols_.size()).first->second);
}

std::string ArchiveWriter::take() && {
  std::vector<std::string> names(symbols_.size());
  for (const auto& [name, place] : symbols_) names[place] = name;
  ArchiveWriter table;
  table(names);
  return table.bytes_ + bytes_;
}

ArchiveReader::ArchiveReader(std::string_view bytes, uint32_t version)
    : bytes_(bytes), version_(version) {
  part(symbols_);
}

std::string_view ArchiveReader::symbol() {
  const uint64_t place = number();
  if (place < symbols_.size()) return symbols_[place];
  fail("symbol {} of {}", place, symbols_.size());
  return {};
}

uint64_t ArchiveReader::number() {
  uint64_t value = 0;
  for (int shift = 0; ok(); shift += 7) {
    if (rest() == 0) {
      fail("the file ends within a number");
      break;
    }
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    const uint64_t part = byte & 0x7F;
    if (shift > 63 || (part << shift) >> shift != part) {
      fail("a number of more than 64 bits");
      break;
    }
    value |= part << shift;
    if (byte == 0 && shift > 0) fail("a number that could be shorter");
    if (byte < 0x80) return value;
  }
  return 0;
}

std::string_view ArchiveReader::raw(size_t size) {
  if (size > rest()) {
    fail("{} bytes are wanted, {} are left", size, rest());
    return {};
  }
  at_ += size;
  return bytes_.substr(at_ - size, size);
}

size_t ArchiveReader::count() {
  const uint64_t read = number();
  if (read <= rest()) return static_cast<size_t>(read);
  fail("a list of {}, but {} bytes are left", read, rest());
  return 0;
}

std::string seal(const Format& format, std::string_view payload, std::optional<uint32_t> version) {
  const uint32_t number = version.value_or(format.newest);
  std::string bytes(format.letters);
  bytes += static_cast<char>(number);
  bytes += as_bytes(checksum_of(payload, number));
  return bytes.append(payload);
}

Result<Unsealed> unseal(std::string_view bytes, const Format& format, bool damaged_too) {
  const size_t head = format.letters.size() + 1 + kChecksumBytes;
  if (!bytes.starts_with(format.letters)) {
    return invalid_argument("this is no {}: it does not begin with '{}'", format.what,
                            format.letters);
  }
  if (bytes.size() < head) return make_error(ErrorCode::kDataLoss, "the file ends in its head");
  const uint32_t version = static_cast<uint8_t>(bytes[format.letters.size()]);
  if (version < format.oldest || version > format.newest) {
    return failed_precondition("a {} of version {}; versions {} to {} can be read", format.what,
                               version, format.oldest, format.newest);
  }
  const std::string_view payload = bytes.substr(head);
  const std::string_view sum = bytes.substr(format.letters.size() + 1, kChecksumBytes);
  if (!damaged_too && sum != as_bytes(checksum_of(payload, version))) {
    return make_error(ErrorCode::kDataLoss, "the {} is damaged: its checksum differs", format.what);
  }
  return Unsealed{payload, version};
}

}  // namespace tenon::serial
