#include "hlo/proto/message.h"

#include <protozero/pbf_reader.hpp>

namespace tenon::hlo {
namespace {

using WireType = protozero::pbf_wire_type;

protozero::pbf_reader reader_of(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace

int64_t ProtoMessage::integer(uint32_t field, int64_t otherwise) const {
  protozero::pbf_reader reader = reader_of(bytes_);
  while (reader.next(field, WireType::varint)) otherwise = reader.get_int64();
  return otherwise;
}

float ProtoMessage::real(uint32_t field) const {
  float value = 0;
  protozero::pbf_reader reader = reader_of(bytes_);
  while (reader.next(field, WireType::fixed32)) value = reader.get_float();
  return value;
}

std::string_view ProtoMessage::text(uint32_t field) const {
  std::string_view text;
  protozero::pbf_reader reader = reader_of(bytes_);
  while (reader.next(field, WireType::length_delimited)) {
    const protozero::data_view view = reader.get_view();
    text = {view.data(), view.size()};
  }
  return text;
}

std::vector<ProtoMessage> ProtoMessage::messages(uint32_t field) const {
  std::vector<ProtoMessage> found;
  protozero::pbf_reader reader = reader_of(bytes_);
  while (reader.next(field, WireType::length_delimited)) {
    const protozero::data_view view = reader.get_view();
    found.emplace_back(std::string_view(view.data(), view.size()));
  }
  return found;
}

std::vector<int64_t> ProtoMessage::integers(uint32_t field) const {
  std::vector<int64_t> values;
  protozero::pbf_reader reader = reader_of(bytes_);
  while (reader.next(field)) {
    if (reader.wire_type() == WireType::length_delimited) {
      for (const int64_t value : reader.get_packed_int64()) values.push_back(value);
    } else if (reader.wire_type() == WireType::varint) {
      values.push_back(reader.get_int64());
    } else {
      reader.skip();
    }
  }
  return values;
}

}  // namespace tenon::hlo
