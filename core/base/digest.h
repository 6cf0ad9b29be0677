// Digests of 128 bits, which identify the bytes from which a value was computed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::serial {

/// XXH3 of 128 bits, as 32 hexadecimal digits. Two texts do not collide by accident, but an
/// attacker can make two that do, so a digest is no protection.
std::string digest_of(std::string_view bytes);

/// XXH3 of 64 bits: for interfaces that take a number, or for comparing two digests at once.
uint64_t short_digest_of(std::string_view bytes);

}  // namespace tenon::serial
