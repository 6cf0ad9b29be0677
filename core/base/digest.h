// Digests of 128 bits: names of what was computed from some bytes, and stand-ins for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::serial {

/// XXH3 of 128 bits, as 32 hexadecimal digits. Two texts that nobody made for the purpose do not
/// share one; somebody who means harm can make two that do, so a digest guards nothing.
std::string digest_of(std::string_view bytes);

/// XXH3 of 64 bits: where an interface has a number, or two digests are compared at once.
uint64_t short_digest_of(std::string_view bytes);

}  // namespace tenon::serial
