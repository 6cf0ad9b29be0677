// A small writer of MLIR bytecode for tests: files as a producer makes them, and broken files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::hlo::bytecode {

/// Bytes built from the primitives of the format.
struct Bytes {
  std::string data;

  Bytes() = default;
  Bytes(std::initializer_list<uint64_t> varints) {
    for (const uint64_t v : varints) varint(v);
  }
  Bytes& raw(std::string_view bytes) {
    data += bytes;
    return *this;
  }
  Bytes& byte(uint8_t value) { return raw(std::string_view(reinterpret_cast<char*>(&value), 1)); }
  Bytes& varint(uint64_t value) {
    unsigned more = 0;
    while (more < 8 && (value >> (7 * (more + 1))) != 0) ++more;
    if (more == 8) {
      byte(0);
    } else {
      value = ((value << 1) | 1) << more;
    }
    for (unsigned i = 0; i < (more == 8 ? 8 : more + 1); ++i) {
      byte(static_cast<uint8_t>(value >> (8 * i)));
    }
    return *this;
  }
  Bytes& svarint(int64_t value) {
    return varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  Bytes& flagged(uint64_t value, bool flag) { return varint(value << 1 | (flag ? 1 : 0)); }
  Bytes& blob(std::string_view bytes) { return varint(bytes.size()).raw(bytes); }
  Bytes& section(uint8_t id, const Bytes& content) { return byte(id).blob(content.data); }
};

/// The tables of a file that is being built. Each entry has its own group, which is legal but not
/// compact.
class FileBuilder {
 public:
  uint64_t version = 6;
  std::string producer = "StableHLO_v1.20.0";

  uint64_t string(std::string_view text) { return place(strings_, std::string(text)); }
  uint64_t attribute(std::string_view dialect, const Bytes& bytes) {
    attributes_.push_back({this->dialect(dialect), bytes.data, true});
    return attributes_.size() - 1;
  }
  uint64_t type(std::string_view dialect, const Bytes& bytes) {
    types_.push_back({this->dialect(dialect), bytes.data, true});
    return types_.size() - 1;
  }
  /// An entry as MLIR text.
  uint64_t text_attribute(std::string_view dialect, const std::string& text) {
    attributes_.push_back({this->dialect(dialect), text + '\0', false});
    return attributes_.size() - 1;
  }
  uint64_t text_type(std::string_view dialect, const std::string& text) {
    types_.push_back({this->dialect(dialect), text + '\0', false});
    return types_.size() - 1;
  }
  uint64_t op(std::string_view dialect, std::string_view name) {
    return place(ops_, std::pair(this->dialect(dialect), string(name)));
  }
  /// Equal properties share an entry.
  uint64_t properties(const Bytes& bytes) { return place(properties_, bytes.data); }
  /// A blob to which attributes refer by its number.
  void resource(std::string_view key, std::string_view bytes) {
    Bytes data;
    data.varint(1).varint(bytes.size()).raw(bytes);
    resources_.emplace_back(string(key), data.data);
  }

  std::string file(const Bytes& ir) {
    const uint64_t builtin = dialect("builtin");
    Bytes out;
    out.raw("\x4D\x4C\xEF\x52").varint(version).raw(producer).byte(0);
    Bytes dialects{dialects_.size()};
    for (const uint64_t name : dialects_) {
      version == 0 ? dialects.varint(name) : dialects.flagged(name, false);
    }
    if (version >= 4) dialects.varint(ops_.size());
    for (const auto& [dialect, name] : ops_) {
      dialects.varint(dialect).varint(1);
      version < 5 ? dialects.varint(name) : dialects.flagged(name, true);
    }
    Bytes offsets{attributes_.size(), types_.size()};
    Bytes data;
    for (const auto* entries : {&attributes_, &types_}) {
      for (const Entry& e : *entries) {
        offsets.varint(e.dialect).varint(1).flagged(e.bytes.size(), e.binary);
        data.raw(e.bytes);
      }
    }
    Bytes resource_data;
    Bytes resource_offsets{0};
    if (!resources_.empty()) resource_offsets.varint(builtin).varint(resources_.size());
    for (const auto& [key, bytes] : resources_) {
      resource_offsets.varint(key).varint(bytes.size()).byte(0);
      resource_data.raw(bytes);
    }
    Bytes properties{properties_.size()};
    for (const std::string& p : properties_) properties.blob(p);
    Bytes strings{strings_.size()};
    for (size_t i = strings_.size(); i-- > 0;) strings.varint(strings_[i].size() + 1);
    for (const std::string& s : strings_) strings.raw(s).byte(0);
    out.section(1, dialects).section(3, offsets).section(2, data).section(4, ir);
    out.section(6, resource_offsets).section(5, resource_data).section(0, strings);
    if (version >= 5) out.section(8, properties);
    return out.data;
  }

 protected:
  uint64_t dialect(std::string_view name) { return place(dialects_, string(name)); }

 private:
  struct Entry {
    uint64_t dialect = 0;
    std::string bytes;
    bool binary = true;
  };
  template <class T>
  static uint64_t place(std::vector<T>& table, T value) {
    for (size_t i = 0; i < table.size(); ++i) {
      if (table[i] == value) return i;
    }
    table.push_back(std::move(value));
    return table.size() - 1;
  }

  std::vector<std::string> strings_;
  std::vector<uint64_t> dialects_;
  std::vector<std::pair<uint64_t, uint64_t>> ops_;
  std::vector<Entry> attributes_;
  std::vector<Entry> types_;
  std::vector<std::string> properties_;
  std::vector<std::pair<uint64_t, std::string>> resources_;
};

/// A module with one function "main" without arguments, to which the test adds ops.
class ProgramBuilder : public FileBuilder {
 public:
  uint64_t unknown_location = attribute("builtin", {15});
  uint64_t f32 = type("vhlo", {4});
  uint64_t i64 = type("vhlo", {14});
  uint64_t scalar = type("vhlo", Bytes{20, 0, f32});  ///< tensor<f32>

  uint64_t string_attribute(std::string_view text) { return attribute("vhlo", {14, string(text)}); }
  uint64_t bool_attribute(bool value) { return attribute("vhlo", {2, value ? 1u : 0u}); }
  uint64_t i64_attribute(int64_t value) { return attribute("vhlo", Bytes{9, i64}.svarint(value)); }
  /// A tensor_v1 of i64 and rank 1.
  uint64_t list_attribute(const std::vector<int64_t>& list) {
    const uint64_t tensor = tensor_type({static_cast<int64_t>(list.size())}, i64);
    return attribute("vhlo", Bytes{15, tensor}.blob(std::string_view(
                                 reinterpret_cast<const char*>(list.data()), list.size() * 8)));
  }
  uint64_t tensor_type(const std::vector<int64_t>& dims, uint64_t element) {
    Bytes bytes{20, dims.size()};
    for (const int64_t dim : dims) bytes.svarint(dim);
    return type("vhlo", bytes.varint(element));
  }
  /// A discardable dictionary.
  uint64_t dictionary(const std::vector<std::pair<std::string, uint64_t>>& entries) {
    Bytes bytes{1, entries.size()};
    for (const auto& [name, value] : entries) {
      bytes.varint(attribute("builtin", {2, string(name)})).varint(value);
    }
    return attribute("builtin", bytes);
  }

  struct Op {
    std::string_view dialect = "vhlo";
    std::string_view name;
    std::vector<uint64_t> fields;  ///< Properties; omitted if empty.
    std::vector<uint64_t> results;
    std::vector<uint64_t> operands;
    std::vector<uint64_t> discardable;  ///< Empty or one dictionary.
  };
  void add(const Op& op) {
    const uint8_t mask = (op.discardable.empty() ? 0 : 0x01) | (op.results.empty() ? 0 : 0x02) |
                         (op.operands.empty() ? 0 : 0x04) | (op.fields.empty() ? 0 : 0x40);
    body.varint(this->op(op.dialect, op.name)).byte(mask).varint(unknown_location);
    if (!op.discardable.empty()) body.varint(op.discardable[0]);
    if (!op.fields.empty()) {
      Bytes fields;
      for (const uint64_t f : op.fields) fields.varint(f);
      body.varint(properties(fields));
    }
    if (!op.results.empty()) body.varint(op.results.size());
    for (const uint64_t type : op.results) body.varint(type);
    if (!op.operands.empty()) body.varint(op.operands.size());
    for (const uint64_t value : op.operands) body.varint(value);
    values += op.results.size();
    ++op_count;
  }
  void add_constant() {
    add({.name = "constant_v1",
         .fields = {attribute("vhlo", Bytes{15, scalar}.blob(std::string_view("\0\0\x80\x3f", 4)))},
         .results = {scalar}});
  }

  /// The file, with `body` as the ops of main.
  std::string program() {
    const uint64_t empty = attribute("vhlo", {1, 0});
    const uint64_t function = attribute("vhlo", {17, type("vhlo", {8, 0, 0})});
    const uint64_t properties =
        this->properties({empty, function, empty, string_attribute("main"), string_attribute("")});
    Bytes ir;
    ir.flagged(1, false);
    ir.varint(op("builtin", "module")).byte(0x10).varint(unknown_location);
    ir.flagged(1, false).varint(1).varint(0).flagged(1, false);
    ir.varint(op("vhlo", "func_v1")).byte(0x50).varint(unknown_location).varint(properties);
    ir.flagged(1, false).varint(1).varint(values).flagged(op_count, false).raw(body.data);
    return file(ir);
  }

  Bytes body;
  uint64_t values = 0;
  uint64_t op_count = 0;
};

}  // namespace tenon::hlo::bytecode
