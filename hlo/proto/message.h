// One message of a protocol buffer, whose fields are asked for by number.
#pragma once

#include <cstdint>
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
  int64_t integer(uint32_t field, int64_t otherwise = 0) const;
  bool flag(uint32_t field) const { return integer(field) != 0; }
  float real(uint32_t field) const;
  std::string_view text(uint32_t field) const;
  ProtoMessage message(uint32_t field) const { return ProtoMessage(text(field)); }
  std::vector<ProtoMessage> messages(uint32_t field) const;
  /// A repeated field of integers, packed or not.
  std::vector<int64_t> integers(uint32_t field) const;

 private:
  std::string_view bytes_;
};

}  // namespace tenon::hlo
