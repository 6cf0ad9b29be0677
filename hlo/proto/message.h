// One message of a protocol buffer, whose fields are asked for by number.
#pragma once

#include <bit>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::hlo {

/// An error of damaged bytes.
template <class... Args>
Error damaged(fmt::format_string<Args...> format, Args&&... args) {
  return Error(Status(ErrorCode::kDataLoss, fmt::format(format, std::forward<Args>(args)...)));
}

/// A view of a message. Fields of another wire type than asked for are unknown fields. Damaged
/// bytes throw protozero::exception, which parse_hlo_proto catches.
class ProtoMessage {
 public:
  ProtoMessage() = default;
  explicit ProtoMessage(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }

  /// The last value of a field, as protocol buffers define it; `otherwise` if there is none.
  int64_t integer(uint32_t field, int64_t otherwise = 0) const {
    protozero::pbf_reader reader = this->reader();
    while (reader.next(field, protozero::pbf_wire_type::varint)) otherwise = reader.get_int64();
    return otherwise;
  }
  bool flag(uint32_t field) const { return integer(field) != 0; }
  float real(uint32_t field) const {
    float value = 0;
    protozero::pbf_reader reader = this->reader();
    while (reader.next(field, protozero::pbf_wire_type::fixed32)) value = reader.get_float();
    return value;
  }
  std::string_view text(uint32_t field) const {
    std::string_view text;
    for (const ProtoMessage& each : messages(field)) text = each.bytes_;
    return text;
  }
  ProtoMessage message(uint32_t field) const { return ProtoMessage(text(field)); }
  bool has(uint32_t field) const { return reader().next(field); }

  std::vector<ProtoMessage> messages(uint32_t field) const {
    std::vector<ProtoMessage> found;
    protozero::pbf_reader reader = this->reader();
    while (reader.next(field, protozero::pbf_wire_type::length_delimited)) {
      const protozero::data_view view = reader.get_view();
      found.emplace_back(std::string_view(view.data(), view.size()));
    }
    return found;
  }
  /// A repeated field of integers, packed or not.
  std::vector<int64_t> integers(uint32_t field) const {
    std::vector<int64_t> values;
    protozero::pbf_reader reader = this->reader();
    while (reader.next(field)) {
      if (reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
        for (const int64_t value : reader.get_packed_int64()) values.push_back(value);
      } else if (reader.wire_type() == protozero::pbf_wire_type::varint) {
        values.push_back(reader.get_int64());
      } else {
        reader.skip();
      }
    }
    return values;
  }

 private:
  protozero::pbf_reader reader() const { return {bytes_.data(), bytes_.size()}; }

  std::string_view bytes_;
};

}  // namespace tenon::hlo
