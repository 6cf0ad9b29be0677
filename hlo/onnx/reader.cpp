#include "hlo/onnx/reader.h"

#include <charconv>
#include <exception>
#include <filesystem>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "core/base/file.h"

namespace tenon::hlo {
namespace {

using protozero::pbf_reader;
using Wire = protozero::pbf_wire_type;

template <class... Args>
Error damaged_model(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kDataLoss, format, std::forward<Args>(args)...);
}

pbf_reader over(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

std::string_view view_of(pbf_reader& reader) {
  if (reader.wire_type() != Wire::length_delimited) {
    reader.skip();
    return {};
  }
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

std::string text_of(pbf_reader& reader) { return std::string(view_of(reader)); }

int64_t integer_of(pbf_reader& reader) {
  if (reader.wire_type() == Wire::varint) return reader.get_int64();
  reader.skip();
  return 0;
}

// A repeated field of numbers, packed or not.
void add_integers(pbf_reader& reader, std::vector<int64_t>& into) {
  if (reader.wire_type() != Wire::length_delimited) {
    into.push_back(integer_of(reader));
    return;
  }
  for (const int64_t value : reader.get_packed_int64()) into.push_back(value);
}

// The bytes of a repeated field of fixed width, packed or not.
void add_fixed(pbf_reader& reader, std::string& into) {
  const auto add = [&](auto value) {
    into.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  switch (reader.wire_type()) {
    case Wire::length_delimited:
      into.append(view_of(reader));
      break;
    case Wire::fixed32:
      add(reader.get_fixed32());
      break;
    case Wire::fixed64:
      add(reader.get_fixed64());
      break;
    default:
      reader.skip();
  }
}

// Fields of the messages (onnx.proto).
namespace model_field {
constexpr uint32_t kGraph = 7, kOpsets = 8, kFunctions = 25;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12, kSparse = 15;
}
namespace node_field {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7,
                   kOverload = 8;
}
namespace attribute_field {
constexpr uint32_t kName = 1, kReal = 2, kInteger = 3, kText = 4, kTensor = 5, kGraph = 6,
                   kReals = 7, kIntegers = 8, kTexts = 9, kType = 20, kReference = 21;
}
namespace tensor_field {
constexpr uint32_t kDims = 1, kType = 2, kSegment = 3, kFloats = 4, kInt32s = 5, kInt64s = 7,
                   kName = 8, kRaw = 9, kDoubles = 10, kUint64s = 11, kExternal = 13,
                   kLocation = 14;
}
namespace function_field {
constexpr uint32_t kName = 1, kInput = 4, kOutput = 5, kNode = 7, kOpsets = 9, kDomain = 10,
                   kDefaults = 11, kOverload = 13;
}

class OnnxReader {
 public:
  OnnxReader(const std::string& directory, const OnnxLimits& limits)
      : directory_(directory), limits_(limits) {}

  Result<OnnxModel> model(std::string_view bytes);
  Result<Literal> tensor(std::string_view bytes, std::string* name = nullptr);

 private:
  struct TensorData {
    Dims dims;
    int64_t type = 0;
    std::string_view raw;
    bool has_raw = false;
    bool segmented = false;
    std::string fixed;  // float_data or double_data
    std::vector<int64_t> integers;
    int64_t location = 0;
    std::map<std::string, std::string> external;
  };

  Result<OnnxGraph> graph(std::string_view bytes, int depth);
  Result<OnnxNode> node(std::string_view bytes, int depth);
  Result<std::pair<std::string, OnnxAttribute>> attribute(std::string_view bytes, int depth);
  Result<std::pair<std::string, OnnxFunction>> function(std::string_view bytes);
  Result<std::string> external_data(const TensorData& data, int64_t expected);
  Result<Literal> literal(const TensorData& data);

  const std::string directory_;
  const OnnxLimits limits_;
  int64_t external_bytes_ = 0;
};

void add_opset(std::string_view bytes, OnnxOpsets& opsets) {
  std::string domain;
  int64_t version = 0;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    if (reader.tag() == 1) {
      domain = text_of(reader);
    } else if (reader.tag() == 2) {
      version = integer_of(reader);
    } else {
      reader.skip();
    }
  }
  opsets[domain == "ai.onnx" ? "" : domain] = version;
}

// A TensorShapeProto.
void read_dims(std::string_view bytes, Dims& dims, std::vector<std::string>& symbols) {
  pbf_reader shape = over(bytes);
  while (shape.next(1)) {
    int64_t size = kDynamic;
    std::string symbol;
    pbf_reader dim = over(view_of(shape));
    while (dim.next()) {
      if (dim.tag() == 1) {
        size = integer_of(dim);
      } else if (dim.tag() == 2) {
        symbol = text_of(dim);
      } else {
        dim.skip();
      }
    }
    dims.push_back(size < 0 ? kDynamic : size);
    symbols.push_back(std::move(symbol));
  }
}

// A TypeProto.
void read_type(std::string_view bytes, OnnxValueInfo& info) {
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    const uint32_t tag = reader.tag();
    const std::string_view inner = view_of(reader);
    switch (tag) {
      case 1:
        break;
      case 4:
        info.unsupported = "a sequence";
        continue;
      case 5:
        info.unsupported = "a map";
        continue;
      case 8:
        info.unsupported = "a sparse tensor";
        continue;
      case 9:
        info.unsupported = "an optional";
        continue;
      default:
        continue;
    }
    int64_t number = 0;
    std::optional<Dims> dims;
    // A field that comes again replaces what was read.
    OnnxValueInfo fresh;
    fresh.name = std::move(info.name);
    info = std::move(fresh);
    pbf_reader tensor = over(inner);
    while (tensor.next()) {
      if (tensor.tag() == 1) {
        number = integer_of(tensor);
      } else if (tensor.tag() == 2) {
        dims.emplace();
        info.symbols.clear();
        read_dims(view_of(tensor), *dims, info.symbols);
      } else {
        tensor.skip();
      }
    }
    info.element_type = onnx_element_type(number);
    if (!info.element_type && number != 0) {
      info.unsupported = number == 8 ? "a tensor of strings"
                                     : fmt::format("a tensor of unknown element type {}", number);
    }
    if (info.element_type && dims) info.type = Type::tensor(*info.element_type, std::move(*dims));
  }
}

OnnxValueInfo read_value_info(std::string_view bytes) {
  OnnxValueInfo info;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    if (reader.tag() == 1) {
      info.name = text_of(reader);
    } else if (reader.tag() == 2) {
      read_type(view_of(reader), info);
    } else {
      reader.skip();
    }
  }
  return info;
}

std::pair<std::string, std::string> read_entry(std::string_view bytes) {
  std::pair<std::string, std::string> entry;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    if (reader.tag() == 1) {
      entry.first = text_of(reader);
    } else if (reader.tag() == 2) {
      entry.second = text_of(reader);
    } else {
      reader.skip();
    }
  }
  return entry;
}

// --- Tensors

// Elements below a byte lie several in one, the first in the lowest bits.
void unpack(std::string_view bytes, ElementType type, std::span<std::byte> into) {
  const int bits = bit_width(type);
  const int per_byte = 8 / bits;
  for (size_t i = 0; i < into.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i / static_cast<size_t>(per_byte)]);
    const int shift = bits * static_cast<int>(i % static_cast<size_t>(per_byte));
    auto value = static_cast<uint8_t>((byte >> shift) & ((1 << bits) - 1));
    if (is_signed_integer(type) && (value >> (bits - 1)) != 0) {
      value = static_cast<uint8_t>(value | (0xFF << bits));
    }
    into[i] = static_cast<std::byte>(value);
  }
}

// The bytes that a TensorProto has for `count` elements.
int64_t packed_bytes(ElementType type, int64_t count) {
  const int bits = bit_width(type);
  if (bits >= 8 || is_pred(type)) return count * static_cast<int64_t>(storage_bytes(type));
  const int64_t per_byte = 8 / bits;
  return count / per_byte + (count % per_byte != 0 ? 1 : 0);
}

Result<int64_t> number_in(const std::map<std::string, std::string>& entries, const char* key) {
  const auto found = entries.find(key);
  if (found == entries.end()) return 0;
  int64_t value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return damaged_model("external data: {} is '{}'", key, text);
  }
  return value;
}

}  // namespace

std::optional<ElementType> onnx_element_type(int64_t number) {
  using enum ElementType;
  static constexpr ElementType kTypes[] = {
      kF32,    kU8,         kS8,  kU16, kS16,      kS32,       kS64,  kPred,     kPred,
      kF16,    kF64,        kU32, kU64, kC64,      kC128,      kBF16, kF8E4M3FN, kF8E4M3FNUZ,
      kF8E5M2, kF8E5M2FNUZ, kU4,  kS4,  kF4E2M1FN, kF8E8M0FNU, kU2,   kS2};
  constexpr int64_t kString = 8;
  if (number < 1 || number > std::ssize(kTypes) || number == kString) return std::nullopt;
  return kTypes[number - 1];
}

std::string function_key(std::string_view domain, std::string_view name,
                         std::string_view overload) {
  return fmt::format("{}:{}:{}", domain == "ai.onnx" ? "" : domain, name, overload);
}

namespace {

Result<Literal> OnnxReader::tensor(std::string_view bytes, std::string* name) {
  namespace field = tensor_field;
  TensorData data;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case field::kDims:
        add_integers(reader, data.dims);
        break;
      case field::kType:
        data.type = integer_of(reader);
        break;
      case field::kSegment:
        reader.skip();
        data.segmented = true;
        break;
      case field::kFloats:
      case field::kDoubles:
        add_fixed(reader, data.fixed);
        break;
      case field::kInt32s:
      case field::kInt64s:
      case field::kUint64s:
        add_integers(reader, data.integers);
        break;
      case field::kName:
        if (name != nullptr) {
          *name = text_of(reader);
        } else {
          reader.skip();
        }
        break;
      case field::kRaw:
        data.raw = view_of(reader);
        data.has_raw = true;
        break;
      case field::kExternal:
        data.external.insert(read_entry(view_of(reader)));
        break;
      case field::kLocation:
        data.location = integer_of(reader);
        break;
      default:
        reader.skip();
    }
  }
  auto read = literal(data);
  if (!read && name != nullptr) {
    return Error(std::move(read.error()).with_context(fmt::format("tensor '{}'", *name)));
  }
  return read;
}

// A file's path, read as text alone, must stay in the model's folder, and what it leads to as well.
Result<std::string> OnnxReader::external_data(const TensorData& data, int64_t expected) {
  namespace fs = std::filesystem;
  const auto location = data.external.find("location");
  if (location == data.external.end() || location->second.empty())
    return damaged_model("external data without a location");
  if (directory_.empty())
    return invalid_argument("its data are in the file '{}', and the model has no folder",
                            location->second);
  TENON_ASSIGN(const int64_t offset, number_in(data.external, "offset"));
  TENON_ASSIGN(const int64_t length, number_in(data.external, "length"));
  if (length != 0 && length != expected)
    return damaged_model("external data of {} bytes, expected {}", length, expected);
  if (expected > limits_.max_external_bytes - external_bytes_)
    return resource_exhausted("the external data are more than the {} MiB allowed",
                              limits_.max_external_bytes >> 20);
  external_bytes_ += expected;
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(directory_, error);
  const fs::path given(location->second);
  const fs::path path = fs::weakly_canonical(folder / given, error);
  const std::string inside = path.lexically_relative(folder).string();
  if (error || given.is_absolute() || inside.empty() || inside.starts_with("..")) {
    return invalid_argument("its data would be in '{}', outside the model's folder",
                            location->second);
  }
  if (!fs::is_regular_file(path, error))
    return not_found("there is no file {} with its data", path.string());
  TENON_ASSIGN(const MappedFile file, MappedFile::open(path.string()));
  const auto size = static_cast<int64_t>(file.bytes().size());
  if (offset > size || expected > size - offset)
    return damaged_model("{} has {} bytes, and its data end at {} + {}", path.string(), size,
                         offset, expected);
  return std::string(
      file.bytes().substr(static_cast<size_t>(offset), static_cast<size_t>(expected)));
}

Result<Literal> OnnxReader::literal(const TensorData& data) {
  const std::optional<ElementType> type = onnx_element_type(data.type);
  if (!type) {
    if (data.type == 8) return unimplemented("tensors of strings are not supported");
    return damaged_model("unknown element type {}", data.type);
  }
  if (data.segmented) return unimplemented("tensors in segments are not supported");
  const auto unit = static_cast<int64_t>(storage_bytes(*type));
  TENON_ASSIGN(const int64_t count, checked_element_count(data.dims, unit));
  if (count > limits_.max_tensor_bytes / unit)
    return resource_exhausted("{} elements are more than the {} MiB allowed", count,
                              limits_.max_tensor_bytes >> 20);
  const int64_t bytes = packed_bytes(*type, count);
  std::string kept;
  std::string_view raw = data.raw;
  if (data.location == 1) {
    TENON_ASSIGN(kept, external_data(data, bytes));
    raw = kept;
  } else if (!data.fixed.empty()) {
    raw = data.fixed;
  } else if (!data.has_raw) {
    // Each integer has an element, or a byte of elements below one.
    const bool narrow = bit_width(*type) < 8 && !is_pred(*type);
    const auto width = static_cast<size_t>(narrow ? 1 : unit);
    if (std::ssize(data.integers) != (narrow ? bytes : count))
      return damaged_model("it has {} numbers for {} elements", data.integers.size(), count);
    for (const int64_t value : data.integers) {
      kept.append(reinterpret_cast<const char*>(&value), std::min<size_t>(width, 8));
    }
    raw = kept;
  }
  if (std::ssize(raw) != bytes)
    return damaged_model("it has {} bytes for {} elements of {}", raw.size(), count,
                         name_of(*type));
  Literal read{Shape(*type, data.dims)};
  if (count == 0) return read;
  const std::span<std::byte> into = read.mutable_data();
  if (bit_width(*type) < 8 && !is_pred(*type)) {
    unpack(raw, *type, into);
  } else {
    std::memcpy(into.data(), raw.data(), raw.size());
  }
  if (is_pred(*type)) {
    for (std::byte& each : into) each = each == std::byte{0} ? each : std::byte{1};
  }
  return read;
}

// --- Graphs

Result<std::pair<std::string, OnnxAttribute>> OnnxReader::attribute(std::string_view bytes,
                                                                    int depth) {
  namespace field = attribute_field;
  std::string name;
  OnnxAttribute read;
  std::string reals;
  int64_t type = 0;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case field::kName:
        name = text_of(reader);
        break;
      case field::kReal:
        if (reader.wire_type() == Wire::fixed32) {
          read.real = reader.get_float();
        } else {
          reader.skip();
        }
        break;
      case field::kInteger:
        read.integer = integer_of(reader);
        break;
      case field::kText:
        read.text = text_of(reader);
        break;
      case field::kTensor: {
        auto tensor = this->tensor(view_of(reader));
        // An op that asks for it says that it is missing.
        if (!tensor && tensor.error().code() != ErrorCode::kUnimplemented)
          return Error(tensor.error());
        if (tensor) read.tensor = *std::move(tensor);
        break;
      }
      case field::kGraph: {
        TENON_ASSIGN(OnnxGraph inner, graph(view_of(reader), depth + 1));
        read.graph = std::make_shared<const OnnxGraph>(std::move(inner));
        break;
      }
      case field::kReals:
        add_fixed(reader, reals);
        break;
      case field::kIntegers:
        add_integers(reader, read.integers);
        break;
      case field::kTexts:
        read.texts.push_back(text_of(reader));
        break;
      case field::kType:
        type = integer_of(reader);
        break;
      case field::kReference:
        read.reference = text_of(reader);
        break;
      default:
        reader.skip();
    }
  }
  read.reals.resize(reals.size() / sizeof(float));
  if (!read.reals.empty())
    std::memcpy(read.reals.data(), reals.data(), read.reals.size() * sizeof(float));
  // Writers of proto3 leave out zeros.
  if (type == 1 && !read.real) read.real = 0.0F;
  if (type == 2 && !read.integer) read.integer = 0;
  if (type == 3 && !read.text) read.text = "";
  return std::pair(std::move(name), std::move(read));
}

Result<OnnxNode> OnnxReader::node(std::string_view bytes, int depth) {
  namespace field = node_field;
  OnnxNode read;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case field::kInput:
        read.inputs.push_back(text_of(reader));
        break;
      case field::kOutput:
        read.outputs.push_back(text_of(reader));
        break;
      case field::kName:
        read.name = text_of(reader);
        break;
      case field::kOpType:
        read.op_type = text_of(reader);
        break;
      case field::kAttribute: {
        TENON_ASSIGN(auto named, attribute(view_of(reader), depth));
        read.attributes.insert(std::move(named));
        break;
      }
      case field::kDomain:
        read.domain = text_of(reader);
        break;
      case field::kOverload:
        read.overload = text_of(reader);
        break;
      default:
        reader.skip();
    }
  }
  if (read.domain == "ai.onnx") read.domain.clear();
  return read;
}

Result<OnnxGraph> OnnxReader::graph(std::string_view bytes, int depth) {
  namespace field = graph_field;
  if (depth > limits_.max_depth) return damaged_model("graphs are nested too deeply");
  OnnxGraph read;
  std::vector<OnnxValueInfo> inputs;
  std::set<std::string> initialized;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case field::kNode: {
        TENON_ASSIGN(OnnxNode each, node(view_of(reader), depth));
        read.nodes.push_back(std::move(each));
        break;
      }
      case field::kName:
        read.name = text_of(reader);
        break;
      case field::kInitializer: {
        std::string name;
        TENON_ASSIGN(Literal value, tensor(view_of(reader), &name));
        initialized.insert(name);
        read.initializers.emplace_back(std::move(name), std::move(value));
        break;
      }
      case field::kInput:
        inputs.push_back(read_value_info(view_of(reader)));
        break;
      case field::kOutput:
        read.outputs.push_back(read_value_info(view_of(reader)));
        break;
      case field::kSparse:
        return unimplemented("sparse initializers are not supported");
      default:
        reader.skip();
    }
  }
  for (OnnxValueInfo& each : inputs) {
    if (!initialized.contains(each.name)) read.inputs.push_back(std::move(each));
  }
  return read;
}

Result<std::pair<std::string, OnnxFunction>> OnnxReader::function(std::string_view bytes) {
  namespace field = function_field;
  OnnxFunction read;
  std::string name, domain, overload;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case field::kName:
        name = text_of(reader);
        break;
      case field::kInput:
        read.inputs.push_back(text_of(reader));
        break;
      case field::kOutput:
        read.outputs.push_back(text_of(reader));
        break;
      case field::kNode: {
        TENON_ASSIGN(OnnxNode each, node(view_of(reader), 0));
        read.nodes.push_back(std::move(each));
        break;
      }
      case field::kOpsets:
        add_opset(view_of(reader), read.opsets);
        break;
      case field::kDomain:
        domain = text_of(reader);
        break;
      case field::kDefaults: {
        TENON_ASSIGN(auto named, attribute(view_of(reader), 0));
        read.defaults.insert(std::move(named));
        break;
      }
      case field::kOverload:
        overload = text_of(reader);
        break;
      default:
        reader.skip();
    }
  }
  return std::pair(function_key(domain, name, overload), std::move(read));
}

Result<OnnxModel> OnnxReader::model(std::string_view bytes) {
  OnnxModel read;
  bool has_graph = false;
  pbf_reader reader = over(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case model_field::kGraph: {
        TENON_ASSIGN(read.graph, graph(view_of(reader), 0));
        has_graph = true;
        break;
      }
      case model_field::kOpsets:
        add_opset(view_of(reader), read.opsets);
        break;
      case model_field::kFunctions: {
        TENON_ASSIGN(auto named, function(view_of(reader)));
        read.functions.insert(std::move(named));
        break;
      }
      default:
        reader.skip();
    }
  }
  if (!has_graph) return damaged_model("the model has no graph");
  return read;
}

template <class Read>
auto without_exceptions(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::exception& error) {
    return damaged_model("the bytes are damaged: {}", error.what());
  }
}

}  // namespace

bool is_onnx(std::string_view bytes) {
  bool has_version = false;
  bool has_graph = false;
  try {
    pbf_reader reader = over(bytes);
    while (reader.next()) {
      const bool is_text = reader.wire_type() == Wire::length_delimited;
      const uint32_t tag = reader.tag();
      // ir_version and model_version are numbers; no other field is.
      const bool is_number = tag == 1 || tag == 5;
      if (tag > 100 || is_number == is_text) return false;
      has_version |= tag == 1;
      has_graph |= tag == model_field::kGraph;
      reader.skip();
    }
  } catch (const std::exception&) {
    return false;
  }
  return has_version && has_graph;
}

Result<OnnxModel> read_onnx(std::string_view bytes, const std::string& directory,
                            const OnnxLimits& limits) {
  return without_exceptions([&] { return OnnxReader(directory, limits).model(bytes); });
}

Result<Literal> read_onnx_tensor(std::string_view bytes, const OnnxLimits& limits) {
  return without_exceptions([&] { return OnnxReader("", limits).tensor(bytes); });
}

}  // namespace tenon::hlo
