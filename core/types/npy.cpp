#include "core/types/npy.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "core/base/file.h"

namespace tenon {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The descriptor without its byte order. For a type that NumPy lacks it is 'V' and a width.
std::string descriptor_of(ElementType type) {
  const size_t bytes = storage_bytes(type);
  if (is_pred(type)) return "|b1";
  if (bit_width(type) < 8) return "|V1";
  const char order = bytes == 1 ? '|' : '<';
  if (is_signed_integer(type)) return fmt::format("{}i{}", order, bytes);
  if (is_unsigned_integer(type)) return fmt::format("{}u{}", order, bytes);
  if (is_complex(type)) return fmt::format("<c{}", bytes);
  const bool native =
      type == ElementType::kF16 || type == ElementType::kF32 || type == ElementType::kF64;
  return fmt::format("{}{}{}", order, native ? 'f' : 'V', bytes);
}

std::optional<ElementType> type_of_descriptor(std::string_view descriptor,
                                              std::optional<ElementType> expected) {
  if (expected && descriptor_of(*expected).substr(1) == descriptor) return expected;
  for (const ElementTypeInfo& row : element_types()) {
    const std::string own = descriptor_of(row.type);
    if (own[1] != 'V' && std::string_view(own).substr(1) == descriptor) return row.type;
  }
  if (descriptor == "V2") return ElementType::kBF16;
  return std::nullopt;
}

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  bool read(std::string& descriptor, bool& fortran, Dims& shape) {
    if (!accept('{')) return false;
    while (!accept('}')) {
      std::string key;
      if (!quoted(key) || !accept(':')) return false;
      if (key == "descr") {
        if (!quoted(descriptor)) return false;
      } else if (key == "fortran_order") {
        fortran = word("True");
        if (!fortran && !word("False")) return false;
      } else if (key == "shape") {
        if (!tuple(shape)) return false;
      } else {
        return false;
      }
      accept(',');
    }
    return !descriptor.empty();
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    skip();
    if (!text_.substr(at_).starts_with(w)) return false;
    at_ += w.size();
    return true;
  }
  bool quoted(std::string& out) {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool tuple(Dims& out) {
    if (!accept('(')) return false;
    while (!accept(')')) {
      skip();
      int64_t size = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) return false;
      at_ = static_cast<size_t>(end - text_.data());
      out.push_back(size);
      accept(',');
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void swap_bytes(std::byte* data, size_t count, size_t unit) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * unit, data + (i + 1) * unit);
}

// Row-major data from column-major `from`.
void transpose_from_fortran(const std::byte* from, const Dims& dims, size_t unit, std::byte* to) {
  Dims strides(dims.size());
  int64_t stride = 1;
  int64_t count = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    strides[d] = stride;
    stride *= dims[d];
    count *= dims[d];
  }
  const Dims rows = row_major_strides(dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t source = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      source += rest / rows[d] * strides[d];
      rest %= rows[d];
    }
    std::memcpy(to + static_cast<size_t>(i) * unit, from + static_cast<size_t>(source) * unit,
                unit);
  }
}

}  // namespace

Result<Literal> parse_npy(std::string_view bytes, std::optional<ElementType> expected) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 10) {
    return invalid_argument("not a .npy file: it does not begin with \\x93NUMPY");
  }
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const int version = byte(6);
  if (version < 1 || version > 3) {
    return unimplemented(".npy format version {}; versions 1 to 3 are read", version);
  }
  size_t start = 10;
  size_t length = byte(8) | (size_t{byte(9)} << 8);
  if (version > 1) {
    if (bytes.size() < 12) return invalid_argument(".npy header is cut off");
    length |= (size_t{byte(10)} << 16) | (size_t{byte(11)} << 24);
    start = 12;
  }
  if (length > bytes.size() - start) return invalid_argument(".npy header is cut off");
  std::string descriptor;
  bool fortran = false;
  Dims dims;
  if (!HeaderReader(bytes.substr(start, length)).read(descriptor, fortran, dims)) {
    return invalid_argument(".npy header is not understood");
  }
  const bool has_order =
      descriptor[0] == '<' || descriptor[0] == '>' || descriptor[0] == '|' || descriptor[0] == '=';
  const auto type =
      type_of_descriptor(std::string_view(descriptor).substr(has_order ? 1 : 0), expected);
  if (!type) return unimplemented(".npy arrays of type '{}' are not read", descriptor);
  const auto unit = static_cast<int64_t>(storage_bytes(*type));
  TENON_ASSIGN(const int64_t count, checked_element_count(dims, unit));
  const std::string_view data = bytes.substr(start + length);
  if (static_cast<int64_t>(data.size()) != count * unit) {
    return invalid_argument(".npy data has {} bytes, {} expected for {}", data.size(), count * unit,
                            Shape(*type, dims).to_string());
  }
  Literal literal(Shape(*type, dims));
  std::byte* to = literal.mutable_data().data();
  if (fortran) {
    transpose_from_fortran(reinterpret_cast<const std::byte*>(data.data()), dims,
                           static_cast<size_t>(unit), to);
  } else if (count != 0) {
    std::memcpy(to, data.data(), data.size());
  }
  if (descriptor[0] == '>') {
    const size_t part = storage_bytes(complex_part(*type));
    swap_bytes(to, literal.data().size() / part, part);
  }
  if (bit_width(*type) < 8) {
    // Literal may require other values of the bits that the type does not use.
    for (int64_t i = 0; i < count; ++i) {
      if (is_float(*type)) {
        literal.set_double(i, literal.get_double(i));
      } else {
        literal.set_integer(i, literal.get_integer(i));
      }
    }
  }
  return literal;
}

std::string npy_bytes(const Literal& literal) {
  std::string shape = "(";
  for (const int64_t dim : literal.shape().dims()) shape += fmt::format("{}, ", dim);
  if (literal.shape().rank() > 1) shape.resize(shape.size() - 2);
  if (literal.shape().rank() == 1) shape.pop_back();
  shape += ")";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   descriptor_of(literal.element_type()), shape);
  // Data begins at a multiple of 64 bytes.
  const bool long_header = header.size() > 65000;
  const size_t prefix = long_header ? 12 : 10;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out(kMagic);
  out += static_cast<char>(long_header ? 2 : 1);
  out += '\0';
  for (size_t i = 0; i < prefix - 8; ++i)
    out += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  out += header;
  const auto data = literal.data();
  out.append(reinterpret_cast<const char*>(data.data()), data.size());
  return out;
}

Result<Literal> read_npy(const std::string& path, std::optional<ElementType> expected) {
  TENON_ASSIGN(const std::string bytes, read_file(path));
  auto literal = parse_npy(bytes, expected);
  if (!literal) return Error(std::move(literal.error()).with_context(path));
  return literal;
}

Status write_npy(const std::string& path, const Literal& literal) {
  return write_file(path, npy_bytes(literal));
}

}  // namespace tenon
