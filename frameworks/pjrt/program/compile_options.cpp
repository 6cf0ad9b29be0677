#include "frameworks/pjrt/program/compile_options.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <ranges>

#include "frameworks/pjrt/c_api/messages.h"

namespace tenon::pjrt {
namespace {

using Message = protozero::pbf_reader;

// The tag of a field with its wire type. As in every reader of protocol buffers, a field of another
// wire type is an unknown field.
constexpr uint32_t varint(uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
constexpr uint32_t delimited(uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

// Fields of the messages, by their numbers.
constexpr uint32_t kArgumentLayouts = 1, kTupledArguments = 2, kOverrides = 7;
constexpr uint32_t kDeviceOrdinal = 1, kResultLayout = 2;
constexpr uint32_t kTupleShapes = 4, kLayout = 5, kMinorToMajor = 1;
constexpr uint32_t kKey = 1, kValue = 2, kStringValue = 1, kBoolValue = 2;
constexpr int kMostTuples = 16;

// A repeated field, packed or not.
std::vector<int64_t> integers(Message message, uint32_t field) {
  std::vector<int64_t> values;
  while (message.next()) {
    if (message.tag_and_type() == delimited(field)) {
      for (const int64_t value : message.get_packed_int64()) values.push_back(value);
    } else if (message.tag_and_type() == varint(field)) {
      values.push_back(message.get_int64());
    } else {
      message.skip();
    }
  }
  return values;
}

// Checks that the layouts in a ShapeProto and in its nested shapes are row-major.
Status check_layout(Message shape, int depth = 0) {
  if (depth > kMostTuples) return invalid_argument("a shape of tuples in tuples in tuples");
  while (shape.next()) {
    if (shape.tag_and_type() == delimited(kTupleShapes)) {
      TENON_TRY(check_layout(shape.get_message(), depth + 1));
    } else if (shape.tag_and_type() == delimited(kLayout)) {
      const std::vector<int64_t> order = integers(shape.get_message(), kMinorToMajor);
      for (size_t i = 0; i < order.size(); ++i) {
        if (order[i] == static_cast<int64_t>(order.size() - 1 - i)) continue;
        return unimplemented("an argument or result in a layout other than row-major");
      }
    } else {
      shape.skip();
    }
  }
  return {};
}

void read_assignment(Message assignment, std::vector<int64_t>& devices) {
  while (assignment.next(kComputationDevices, protozero::pbf_wire_type::length_delimited)) {
    for (const int64_t id : integers(assignment.get_message(), kReplicaDeviceIds)) {
      devices.push_back(id);
    }
  }
}

Status read_build_options(Message options, PjrtCompileOptions& read) {
  int64_t ordinal = -1;
  while (options.next()) {
    switch (options.tag_and_type()) {
      case varint(kDeviceOrdinal):
        ordinal = options.get_int64();
        break;
      case delimited(kResultLayout):
        TENON_TRY(check_layout(options.get_message()));
        break;
      case varint(kReplicas):
        read.replicas = std::max<int64_t>(options.get_int64(), 1);
        break;
      case varint(kPartitions):
        read.partitions = std::max<int64_t>(options.get_int64(), 1);
        break;
      case delimited(kDeviceAssignment):
        read_assignment(options.get_message(), read.devices);
        break;
      default:
        options.skip();
    }
  }
  if (read.devices.empty() && ordinal >= 0) read.devices = {ordinal};
  return {};
}

// Options of XLA (DebugOptions, ExecutableBuildOptions) that programs for several platforms set.
bool is_of_xla(std::string_view name) {
  static constexpr std::string_view kBuildOptionsOfXla[] = {
      "exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
      "memory_fitting_level"};
  return name.starts_with("xla_") ||
         std::ranges::find(kBuildOptionsOfXla, name) != std::ranges::end(kBuildOptionsOfXla);
}

// Some of these that programs set and that are booleans: a text that is none is a mistake.
Status check_value_of_xla(std::string_view name, const std::optional<std::string>& text) {
  static constexpr std::string_view kBooleans[] = {
      "xla_embed_ir_in_executable", "xla_allow_excess_precision", "xla_cpu_enable_fast_math",
      "xla_dump_hlo_as_text", "xla_dump_hlo_as_proto"};
  static constexpr std::string_view kValues[] = {"true", "True", "false", "False", "1", "0"};
  if (!text || std::ranges::find(kBooleans, name) == std::ranges::end(kBooleans) ||
      std::ranges::find(kValues, *text) != std::ranges::end(kValues)) {
    return {};
  }
  return invalid_argument("While setting option {}, '{}' is not a valid bool value.", name, *text);
}

// An option of the map that the user set.
struct Override {
  std::string name;
  std::optional<bool> flag;
  std::optional<std::string> text;
};

Override read_entry(Message entry) {
  Override read;
  while (entry.next()) {
    if (entry.tag_and_type() == delimited(kKey)) {
      read.name = entry.get_string();
    } else if (entry.tag_and_type() == delimited(kValue)) {
      Message value = entry.get_message();
      while (value.next()) {
        if (value.tag_and_type() == varint(kBoolValue)) {
          read.flag = value.get_bool();
        } else if (value.tag_and_type() == delimited(kStringValue)) {
          read.text = value.get_string();
        } else {
          value.skip();
        }
      }
    } else {
      entry.skip();
    }
  }
  return read;
}

Status apply(const Override& given, PjrtCompileOptions& read) {
  const std::string& name = given.name;
  if (is_of_xla(name)) return check_value_of_xla(name, given.text);
  if (name == "tenon_disable_rules") {
    if (!given.text) return invalid_argument("compiler option '{}' must be a text", name);
    for (const auto rule : std::views::split(*given.text, ',')) {
      read.compile.rewrites.disabled.emplace_back(rule.begin(), rule.end());
    }
    return {};
  }
  bool* const option = name == "tenon_strict"        ? &read.compile.strict
                       : name == "tenon_native_math" ? &read.compile.native_math
                                                     : nullptr;
  if (option == nullptr) {  // Programs look for XLA's words.
    return invalid_argument(
        "No such compile option: '{}'; there are tenon_strict, tenon_native_math and "
        "tenon_disable_rules, and those of XLA (xla_...), which have no effect",
        name);
  }
  if (!given.flag) return invalid_argument("compiler option '{}' must be true or false", name);
  *option = *given.flag;
  return {};
}

Result<PjrtCompileOptions> read_all(std::string_view bytes) {
  PjrtCompileOptions read;
  Message message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case delimited(kArgumentLayouts):
        TENON_TRY(check_layout(message.get_message()));
        break;
      case varint(kTupledArguments):
        if (message.get_bool()) return unimplemented("arguments in a tuple are not supported");
        break;
      case delimited(kBuildOptions):
        TENON_TRY(read_build_options(message.get_message(), read));
        break;
      case delimited(kOverrides):
        TENON_TRY(apply(read_entry(message.get_message()), read));
        break;
      default:
        message.skip();
    }
  }
  return read;
}

}  // namespace

Result<PjrtCompileOptions> parse_compile_options(std::string_view bytes) {
  try {
    return read_all(bytes);
  } catch (const protozero::exception& error) {
    return invalid_argument("the compile options are not a CompileOptionsProto: {}", error.what());
  } catch (const std::out_of_range& error) {
    return invalid_argument("the compile options are not a CompileOptionsProto: {}", error.what());
  }
}

}  // namespace tenon::pjrt
