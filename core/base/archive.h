// Serial form: bytes from values, and values from bytes that nobody has checked.
//
// An ArchiveWriter and an ArchiveReader take the same calls, so that one function
//
//   template <class A> void serialize(A& a, serial::Of<A, Thing>& thing) {
//     a(thing.name, thing.dims, thing.kind);
//   }
//
// defines the members of a type for both. Numbers are in groups of seven bits, least significant
// first (LEB128), signed ones zigzag; text and lists are preceded by their length. Operations and
// element types are symbols: indices of a table of names at the beginning, so that the form does
// not depend on the enumerators of a build. Other enumerations are numbers below kEnumEnd<E>. A
// change of the members, or of the order of those enumerations, requires a new version
// (kernel/serial/serial.h, program/serial.h).
//
// A Reader never reads beyond its bytes and never allocates a list that is longer than they could
// hold. After the first error it returns zeros, and `status()` tells the error and its position.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/enumerators.h"
#include "core/base/status.h"

namespace tenon::serial {

/// The number of enumerators of an enumeration; enumerator_count<E>() if it has that. The order of
/// the enumerators is part of the form, as is the order of a variant's alternatives.
template <class E>
inline constexpr uint64_t kEnumEnd = 0;

/// The type of a T in `serialize`: const for a Writer, which only reads it.
template <class Archive, class T>
using Of = std::conditional_t<Archive::kReads, T, const T>;

class ArchiveWriter {
 public:
  static constexpr bool kReads = false;

  template <class... Parts>
  void operator()(const Parts&... parts) {
    (part(parts), ...);
  }
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  /// Writes the bytes as they are, without a length.
  void raw(std::string_view bytes) { bytes_ += bytes; }
  void symbol(std::string_view name);
  /// The table of symbols, followed by everything written.
  std::string take() &&;

 private:
  void part(bool value) { number(value ? 1 : 0); }
  void part(std::unsigned_integral auto value) { number(value); }
  void part(std::signed_integral auto value) {
    const auto wide = static_cast<int64_t>(value);
    number((static_cast<uint64_t>(wide) << 1) ^ static_cast<uint64_t>(wide >> 63));
  }
  void part(double value) { number(std::bit_cast<uint64_t>(value)); }
  template <class E>
    requires(kEnumEnd<E> != 0)
  void part(E value) {
    number(static_cast<uint64_t>(value));
  }
  void part(const std::string& text) {
    number(text.size());
    raw(text);
  }
  template <class T>
  void part(const std::vector<T>& list) {
    number(list.size());
    for (const T& each : list) part(each);
  }
  template <class A, class B>
  void part(const std::pair<A, B>& both) {
    (*this)(both.first, both.second);
  }
  template <class... Ts>
  void part(const std::variant<Ts...>& either) {
    number(either.index());
    std::visit([&](const auto& value) { part(value); }, either);
  }
  template <class T>
    requires requires(ArchiveWriter& w, const T& t) { serialize(w, t); }
  void part(const T& thing) {
    serialize(*this, thing);
  }

  std::string bytes_;
  std::map<std::string, uint64_t, std::less<>> symbols_;
};

class ArchiveReader {
 public:
  static constexpr bool kReads = true;

  explicit ArchiveReader(std::string_view bytes, uint32_t version = 0);
  /// The version of the file, for members that changed between versions.
  uint32_t version() const { return version_; }

  template <class... Parts>
  void operator()(Parts&... parts) {
    (part(parts), ...);
  }
  uint64_t number();
  /// The next `size` bytes.
  std::string_view raw(size_t size);
  /// A count of elements that take at least one byte each.
  size_t count();
  std::string_view symbol();
  size_t rest() const { return bytes_.size() - at_; }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  /// Keeps the first error.
  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (!ok()) return;
    status_ =
        invalid_argument("byte {}: {}", at_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void part(bool& value) {
    const uint64_t read = number();
    if (read > 1) fail("{} is not a truth value", read);
    value = read == 1;
  }
  template <std::unsigned_integral T>
  void part(T& value) {
    const uint64_t read = number();
    value = static_cast<T>(read);
    if (value != read) fail("{} is too large here", read);
  }
  template <std::signed_integral T>
  void part(T& value) {
    const uint64_t read = number();
    const auto wide = static_cast<int64_t>((read >> 1) ^ (~(read & 1) + 1));
    value = static_cast<T>(wide);
    if (value != wide) fail("{} is too large here", wide);
  }
  void part(double& value) { value = std::bit_cast<double>(number()); }
  template <class E>
    requires(kEnumEnd<E> != 0)
  void part(E& value) {
    const uint64_t read = number();
    if (read >= kEnumEnd<E>) fail("{} is not a valid kind: there are {}", read, kEnumEnd<E>);
    value = read < kEnumEnd<E> ? static_cast<E>(read) : E{};
  }
  void part(std::string& text) { text = raw(count()); }
  template <class T>
  void part(std::vector<T>& list) {
    list.clear();
    for (size_t left = count(); left > 0 && ok(); --left) part(list.emplace_back());
  }
  void part(std::vector<bool>& list) = delete;
  template <class A, class B>
  void part(std::pair<A, B>& both) {
    (*this)(both.first, both.second);
  }
  template <class... Ts>
  void part(std::variant<Ts...>& either) {
    const uint64_t index = number();
    if (index >= sizeof...(Ts)) return fail("alternative {} of {}", index, sizeof...(Ts));
    alternative(either, index, std::index_sequence_for<Ts...>());
  }
  template <class Variant, size_t... I>
  void alternative(Variant& either, uint64_t index, std::index_sequence<I...>) {
    static_cast<void>(((index == I && (part(either.template emplace<I>()), true)) || ...));
  }
  template <class T>
    requires requires(ArchiveReader& r, T& t) { serialize(r, t); }
  void part(T& thing) {
    serialize(*this, thing);
  }

  std::string_view bytes_;
  size_t at_ = 0;
  uint32_t version_ = 0;
  std::vector<std::string> symbols_;
  Status status_;
};

/// A kind of file: the four letters at its beginning, a name of its contents, the versions that are
/// read. The newest version is written.
struct Format {
  std::string_view letters;
  std::string_view what;
  uint32_t oldest;
  uint32_t newest;
};

/// Makes a file: letters, version, a checksum of version and payload (FNV-1a of 64 bits, which
/// plug-ins of earlier releases also compute), the payload.
std::string seal(const Format& format, std::string_view payload,
                 std::optional<uint32_t> version = {});

struct Unsealed {
  std::string_view payload;
  uint32_t version = 0;
};
/// Errors: another kind of file; kFailedPrecondition for a version that is not read; kDataLoss if
/// the checksum differs. `damaged_too` skips the checksum (a fuzzer cannot guess it).
Result<Unsealed> unseal(std::string_view bytes, const Format& format, bool damaged_too = false);

}  // namespace tenon::serial
