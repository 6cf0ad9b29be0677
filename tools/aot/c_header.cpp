// Headers in C and C++.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tools/aot/project.h"

namespace tenon::tools {
namespace {

// Text within a comment of C.
std::string in_comment(std::string text) {
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/", at)) {
    text.replace(at, 2, "* /");
  }
  return text;
}

std::string macros_of(const AotSignature& function, const AotArray& array) {
  const std::string name = macro_of(function, array);
  std::string text = fmt::format("#define {}_RANK {}\n", name, array.shape.rank());
  if (array.shape.rank() > 0) {
    text += fmt::format("#define {}_DIMS {{{}}}\n", name, fmt::join(array.shape.dims(), ", "));
  }
  text += fmt::format("#define {}_COUNT {}\n", name, array.count());
  text += fmt::format("#define {}_BYTES {}\n", name, array.shape.byte_size());
  return text;
}

std::string arrays_comment(const AotSignature& function) {
  std::string text;
  const auto add = [&](const AotArray& array, std::string_view kind, std::string_view other,
                       const std::vector<AotArray>& others) {
    text += fmt::format(" *   {:<12} {} {}", array.name, kind, description_of(array));
    if (array.shared >= 0) {
      text += fmt::format("; may have the memory of {} {}", other,
                          others[static_cast<size_t>(array.shared)].name);
    }
    text += "\n";
  };
  for (const AotArray& each : function.arguments) {
    add(each, "argument", "result", function.results);
  }
  for (const AotArray& each : function.results)
    add(each, "result  ", "argument", function.arguments);
  return text;
}

std::string c_function(const AotProject& project, const AotSignature& function) {
  std::string text = fmt::format("\n/* {}\n{}", function.symbol, arrays_comment(function));
  if (!project.stack_arena) {
    text += fmt::format(" *   {:<12} {} bytes, aligned to {}{}\n", "arena", function.arena_bytes,
                        cpu::kAotAlignment, function.arena_bytes == 0 ? "; NULL will do" : "");
  }
  if (project.is_gpu) {
    text += function.waits
                ? " * Waits for the values that decide its loops and branches: no stream "
                  "may be capturing a graph.\n"
                : " * Only puts work on the stream, which may be capturing a graph.\n";
  }
  text += " */\n";
  text += fmt::format("#define {}_ARENA_BYTES {}\n", upper(function.symbol), function.arena_bytes);
  for (const auto* list : {&function.arguments, &function.results}) {
    for (const AotArray& each : *list) text += macros_of(function, each);
  }
  const bool has_outcome = project.is_gpu || !project.calls.empty();
  text += fmt::format("{} {}({});\n", has_outcome ? "int32_t" : "void", function.symbol,
                      parameters_of(project, function));
  text += fmt::format("int32_t {}_run({});\n", function.symbol,
                      project.is_gpu
                          ? "const void* gpu, void* const* arrays, void* arena, "
                            "struct CUstream_st* stream"
                          : "void* const* arrays, void* arena, const tenon_aot_context* context");
  return text;
}

std::string calls_struct(const AotProject& project) {
  if (project.calls.empty()) return "";
  std::string text =
      "\n/* The functions of the custom calls: the context's `calls`. A function that returns "
      "other\n"
      " * than 0 ends the call of the model, which returns the same. */\n";
  text += fmt::format("typedef struct {}_calls {{\n", project.name);
  for (const AotCall& each : project.calls) {
    text += fmt::format("  tenon_aot_call {}; /* @{} */\n", each.member, in_comment(each.target));
  }
  return text + fmt::format("}} {}_calls;\n", project.name);
}

constexpr const char* kGpuComment =
    R"( * Arrays are in the GPU's memory, dense, the last dimension is the fastest. Their addresses are
 * multiples of {}. Results overlap neither arguments nor each other, unless it is said below that
 * two may have one memory. Functions return a CUresult, 0 for success; an error of the work that
 * they put on a stream is that of a later call. The context in which the model was loaded must be
 * current. tenon_aot_cuda.h says more.
)";

std::string gpu_struct(const AotProject& project) {
  const bool weights = project.weights_bytes > 0;
  return fmt::format(
      R"(
/* A loaded model: memory of the caller's, which stays where it is until it is unloaded. */
typedef struct {0}_gpu {{
  tenon_aot_cuda cuda;
  void* functions[{1}];
}} {0}_gpu;

/* Loads the model into the current context{2}. After an error there is
 * nothing to unload. */
int32_t {0}_load({0}_gpu* gpu{3});
/* After the end of all work on all streams. */
int32_t {0}_unload({0}_gpu* gpu);
)",
      project.name, std::max<int64_t>(project.kernels, 1),
      weights ? fmt::format(", with a copy of the bytes of {}", project.weights_file()) : "",
      weights ? ", const void* weights" : "");
}

std::string context_comment(const AotProject& project) {
  if (!project.takes_context()) return "";
  std::vector<std::string> members;
  if (project.weights_bytes > 0) {
    members.push_back(fmt::format("weights: the bytes of {}", project.weights_file()));
  }
  if (!project.calls.empty()) {
    members.push_back(fmt::format("calls: a {}_calls; user", project.name));
  }
  if (project.threads > 0) {
    members.push_back(fmt::format("parallel_for, of at most {} workers; pool", project.threads));
  }
  return fmt::format(" * The context needs {}.\n", fmt::join(members, ", and "));
}

std::string cpp_type(ElementType type) {
  const std::string_view name = c_type(type);
  return name.ends_with("_t") ? fmt::format("std::{}", name) : std::string(name);
}

std::string cpp_class(const AotProject& project, const AotSignature& function) {
  std::vector<std::string> parameters;
  std::vector<std::string> arguments;
  for (const AotArray& each : function.arguments) {
    parameters.push_back(fmt::format("std::span<const {}, {}> {}",
                                     cpp_type(each.shape.element_type()), each.count(), each.name));
    arguments.push_back(each.name + ".data()");
  }
  for (const AotArray& each : function.results) {
    parameters.push_back(fmt::format("std::span<{}, {}> {}", cpp_type(each.shape.element_type()),
                                     each.count(), each.name));
    arguments.push_back(each.name + ".data()");
  }
  if (!project.stack_arena) arguments.emplace_back("arena_.data()");
  if (project.takes_context()) {
    parameters.emplace_back("const tenon_aot_context& context");
    arguments.emplace_back("&context");
  }
  const std::string name = class_of(function.name);
  std::string text =
      fmt::format("\n/// {}, with an arena: an object for each thread.\nclass {} {{\n public:\n",
                  function.symbol, name);
  text += fmt::format("  static constexpr std::size_t kArenaBytes = {};\n\n", function.arena_bytes);
  text += "  /// Whether there was memory for the arena.\n";
  text += fmt::format("  bool valid() const {{ return {}; }}\n",
                      project.stack_arena ? "true" : "arena_.valid()");
  text += fmt::format("  {} operator()({}) const {{\n    {}::{}({});\n  }}\n",
                      project.calls.empty() ? "void" : "[[nodiscard]] std::int32_t",
                      fmt::join(parameters, ", "), project.calls.empty() ? "" : "return ",
                      function.symbol, fmt::join(arguments, ", "));
  if (!project.stack_arena) {
    text += fmt::format("\n private:\n  tenon_aot::Arena arena_{{kArenaBytes, {}}};\n",
                        cpu::kAotAlignment);
  }
  return text + "};\n";
}

}  // namespace

int64_t AotArray::count() const {
  return element_count(shape.dims()) * (is_complex(shape.element_type()) ? 2 : 1);
}

std::string c_identifier(std::string_view text) {
  std::string name;
  for (const char c : text) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "_" + name;
  return name;
}

std::string_view c_type(ElementType type) {
  using enum ElementType;
  switch (type) {
    case kS2:
    case kS4:
    case kS8:
      return "int8_t";
    case kS16:
      return "int16_t";
    case kS32:
      return "int32_t";
    case kS64:
      return "int64_t";
    case kU16:
    case kBF16:
    case kF16:
      return "uint16_t";
    case kU32:
      return "uint32_t";
    case kU64:
      return "uint64_t";
    case kF32:
    case kC64:
      return "float";
    case kF64:
    case kC128:
      return "double";
    default:
      return "uint8_t";  // pred, small integers and floats: a byte each.
  }
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string macro_of(const AotSignature& function, const AotArray& array) {
  return upper(function.symbol + "_" + array.name);
}

std::string parameters_of(const AotProject& project, const AotSignature& function) {
  std::vector<std::string> list;
  if (project.is_gpu) list.push_back(fmt::format("const {}_gpu* gpu", project.name));
  for (const AotArray& each : function.arguments) {
    list.push_back(fmt::format("const {}* {}", c_type(each.shape.element_type()), each.name));
  }
  for (const AotArray& each : function.results) {
    list.push_back(fmt::format("{}* {}", c_type(each.shape.element_type()), each.name));
  }
  if (!project.stack_arena) list.emplace_back("void* arena");
  if (project.takes_context()) list.emplace_back("const tenon_aot_context* context");
  if (project.is_gpu) list.emplace_back("struct CUstream_st* stream");
  return list.empty() ? "void" : fmt::format("{}", fmt::join(list, ", "));
}

std::string class_of(std::string_view name) {
  std::string text;
  bool start = true;
  for (const char c : name) {
    if (c == '_') {
      start = true;
      continue;
    }
    text += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = false;
  }
  return c_identifier(text);
}

std::string description_of(const AotArray& array) {
  std::string text = array.shape.to_string();
  using enum ElementType;
  const ElementType type = array.shape.element_type();
  if (is_complex(type)) text += ", pairs of real and imaginary parts";
  if (type == kBF16 || type == kF16) text += ", as bits";
  if (is_pred(type)) text += ", 0 or 1";
  if (is_integer(type) && bit_width(type) < 8) text += ", a byte each";
  if (is_float(type) && bit_width(type) <= 8) text += ", the bits in a byte each";
  return text;
}

std::string c_header(const AotProject& project) {
  const std::string guard = upper(project.name) + "_H";
  std::string text = fmt::format("/* {}: written by `tenon aot` for {}.\n *\n", project.name,
                                 in_comment(project.target));
  if (project.is_gpu) {
    text += fmt::format(kGpuComment, cpu::kAotAlignment);
  } else {
    text += fmt::format(
        " * Arrays are dense, the last dimension is the fastest. Their addresses are multiples of "
        "{}\n"
        " * bytes and of the size of an element; multiples of {} are fastest. Results overlap "
        "neither\n"
        " * arguments nor each other, unless it is said below that two may have one memory.\n{}",
        cpu::kAotLeastAlignment, cpu::kAotAlignment, context_comment(project));
  }
  text += fmt::format(" */\n#ifndef {0}\n#define {0}\n\n#include \"{1}\"\n\n", guard,
                      project.is_gpu ? "tenon_aot_cuda.h" : "tenon_aot.h");
  text += fmt::format("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n#define {}_ALIGNMENT {}\n",
                      upper(project.name), cpu::kAotAlignment);
  text += fmt::format("#define {}_HASH \"{}\"\n", upper(project.name), project.hash);
  if (project.weights_bytes > 0) {
    text += fmt::format("#define {0}_WEIGHTS_BYTES {1}\n#define {0}_WEIGHTS_HASH UINT64_C(0x{2})\n",
                        upper(project.name), project.weights_bytes, project.weights_hash);
  }
  if (project.threads > 0) {
    text += fmt::format("#define {}_THREADS {}\n", upper(project.name), project.threads);
  }
  text += project.is_gpu ? gpu_struct(project) : calls_struct(project);
  for (const AotSignature& each : project.functions) text += c_function(project, each);
  text += fmt::format(
      "\nextern const tenon_aot_{}model {}_model;\n\n#ifdef __cplusplus\n}}\n#endif\n#endif\n",
      project.is_gpu ? "cuda_" : "", project.name);
  return text;
}

std::string cpp_header(const AotProject& project) {
  if (project.is_gpu) return gpu_cpp_header(project);
  std::string text = fmt::format(
      "// {0} in C++20: functions on spans, each with an arena.\n#pragma once\n\n"
      "#include <cstddef>\n#include <cstdint>\n#include <span>\n\n#include \"{0}.h\"\n"
      "#include \"tenon_aot.hpp\"\n\nnamespace {0} {{\n",
      project.name);
  for (const AotSignature& each : project.functions) text += cpp_class(project, each);
  return text + fmt::format("\n}}  // namespace {}\n", project.name);
}

}  // namespace tenon::tools
