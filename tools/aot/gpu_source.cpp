#include "tools/aot/gpu_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/gpu/driver.h"

namespace tenon::tools {
namespace {

// Rows of an array; C has none of no elements.
std::string list_of(std::string_view type, const std::string& name,
                    const std::vector<std::string>& rows) {
  return fmt::format("static const {} {}[] = {{\n    {}}};\n", type, name,
                     rows.empty() ? "0" : fmt::format("{}", fmt::join(rows, ",\n    ")));
}

// The tables of a function begin with this; symbols of models do not.
std::string table_prefix(size_t number) { return fmt::format("tenon_aot_f{}", number); }

std::string kernel_rows(const gpu::AheadModel& model) {
  std::vector<std::string> rows;
  for (const gpu::GpuKernelCode& each : model.kernels) {
    const gpu::Grid grid = gpu::grid_of(each.blocks);
    rows.push_back(fmt::format("{{\"{}\", {}, {}, {}, {}}}", each.symbol, grid.x, grid.y,
                               each.threads, each.scalars.size()));
  }
  if (rows.empty()) rows.emplace_back("{0, 0, 0, 0, 0}");
  return list_of("tenon_aot_kernel", "kernels", rows);
}

// The lists of a function's work.
class GpuTables {
 public:
  GpuTables(const gpu::AheadModel& model, const gpu::AheadEntry& entry)
      : model_(model), entry_(entry) {}

  std::string text(size_t number) {
    std::vector<std::string> sequences;
    for (const auto& sequence : entry_.segment.sequences) {
      sequences.push_back(std::to_string(steps_.size()));
      for (const gpu::SegmentStep& step : sequence) {
        std::visit([&](const auto& it) { add(it); }, step);
      }
    }
    sequences.push_back(std::to_string(steps_.size()));
    if (steps_.empty()) steps_.emplace_back("{0, 0, 0, 0, 0}");
    if (places_.empty()) places_.emplace_back("{0, 0}");
    const std::string name = table_prefix(number);
    return list_of("tenon_aot_step", name + "_steps", steps_) +
           list_of("uint32_t", name + "_sequences", sequences) +
           list_of("tenon_aot_place", name + "_places", places_) +
           list_of("uint64_t", name + "_scalars", scalars_) +
           list_of("uint32_t", name + "_branches", branches_) +
           fmt::format(
               "static const tenon_aot_tables {0}_tables = {{kernels, {0}_steps, {0}_sequences,\n  "
               "  "
               "{0}_places, {0}_scalars, {0}_branches, {1}}};\n",
               name, entry_.arrays);
  }

 private:
  size_t add_place(const gpu::SegmentPlace& place) {
    places_.push_back(fmt::format("{{{}, {}}}", place.offset, place.memory));
    return places_.size() - 1;
  }
  void add(const gpu::SegmentLaunch& launch) {
    if (model_.kernels[launch.kernel].blocks == 0) return;
    steps_.push_back(fmt::format(
        "{{{}, {}, {}, {}, {}}}", launch.is_copy ? "TENON_AOT_COPY" : "TENON_AOT_LAUNCH",
        launch.kernel, places_.size(), scalars_.size(), launch.buffers.size()));
    for (const gpu::SegmentPlace& each : launch.buffers) add_place(each);
    for (const uint64_t each : launch.scalars) {
      scalars_.push_back(fmt::format("UINT64_C({})", each));
    }
  }
  void add(const gpu::SegmentLoop& loop) {
    steps_.push_back(fmt::format("{{TENON_AOT_LOOP, {}, {}, {}, 0}}", loop.condition, loop.body,
                                 add_place(loop.predicate)));
  }
  void add(const gpu::SegmentChoice& choice) {
    steps_.push_back(fmt::format(
        "{{{}, {}, {}, 0, {}}}", choice.is_pred ? "TENON_AOT_PRED_CHOICE" : "TENON_AOT_CHOICE",
        add_place(choice.index), branches_.size(), choice.branches.size()));
    for (const uint32_t each : choice.branches) branches_.push_back(std::to_string(each));
  }

  const gpu::AheadModel& model_;
  const gpu::AheadEntry& entry_;
  std::vector<std::string> steps_;
  std::vector<std::string> places_;
  std::vector<std::string> scalars_;
  std::vector<std::string> branches_;
};

// The arrays of a function for its descriptor.
std::string array_rows(const std::vector<AotArray>& arrays, const std::string& prefix) {
  std::string text;
  std::vector<std::string> rows;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Shape& shape = arrays[i].shape;
    std::string dims = "0";
    if (shape.rank() > 0) {
      dims = fmt::format("{}_dims_{}", prefix, i);
      text +=
          fmt::format("static const int64_t {}[] = {{{}}};\n", dims, fmt::join(shape.dims(), ", "));
    }
    rows.push_back(fmt::format("{{\"{}\", \"{}\", {}, {}, {}, {}}}", arrays[i].name,
                               name_of(shape.element_type()), dims, shape.byte_size(), shape.rank(),
                               arrays[i].shared));
  }
  if (rows.empty()) rows.emplace_back("{0, 0, 0, 0, 0, 0}");
  return text + list_of("tenon_aot_array", prefix + "s", rows);
}

std::string function_code(const AotProject& project, const AotSignature& function, size_t number) {
  std::vector<std::string> names;
  for (const auto* list : {&function.arguments, &function.results}) {
    for (const AotArray& each : *list) names.push_back("(void*)" + each.name);
  }
  if (names.empty()) names.emplace_back("0");
  return fmt::format(
      R"(
int32_t {0}_run(const void* gpu, void* const* arrays, void* arena, struct CUstream_st* stream) {{
  const {1}_gpu* const loaded = gpu;
  const tenon_aot_work call = {{&loaded->cuda, loaded->functions, &{2}_tables, arrays,
                               (uint64_t)(uintptr_t)arena, stream}};
  return tenon_aot_sequence(&call, 0);
}}
int32_t {0}({3}) {{
  return {0}_run(gpu, (void*[]){{{4}}}, arena, stream);
}}
)",
      function.symbol, project.name, table_prefix(number), parameters_of(project, function),
      fmt::join(names, ", "));
}

std::string image_list(const AotProject& project, const gpu::AheadModel& model) {
  std::vector<std::string> images;
  for (const gpu::AheadImage& each : model.images) {
    images.push_back(blob_symbol(project, each.kind));
  }
  if (images.empty()) images.emplace_back("0");
  return fmt::format(
      "static const tenon_aot_image_list list = {{{{{}}}, {}, kernels, {}, {}, {}, {}}};\n",
      fmt::join(images, ", "), model.images.size(), model.kernels.size(),
      model.constants.empty() ? "0" : blob_symbol(project, "constants"), model.constants.size(),
      model.weights.size());
}

std::string load_functions(const AotProject& project) {
  const bool weights = project.weights_bytes > 0;
  return fmt::format(
      R"(
int32_t {0}_load({0}_gpu* gpu{1}) {{
  return tenon_aot_cuda_load(&gpu->cuda, gpu->functions, &list, {2});
}}
int32_t {0}_unload({0}_gpu* gpu) {{ return tenon_aot_cuda_unload(&gpu->cuda); }}
static int32_t load(void* gpu, const void* weights) {{
  {3}return {0}_load(gpu{4});
}}
static int32_t unload(void* gpu) {{ return {0}_unload(gpu); }}
)",
      project.name, weights ? ", const void* weights" : "", weights ? "weights" : "0",
      weights ? "" : "(void)weights;\n  ", weights ? ", weights" : "");
}

std::string descriptor(const AotProject& project) {
  std::string text;
  std::vector<std::string> rows;
  for (size_t i = 0; i < project.functions.size(); ++i) {
    const AotSignature& each = project.functions[i];
    text += array_rows(each.arguments, table_prefix(i) + "_argument");
    text += array_rows(each.results, table_prefix(i) + "_result");
    rows.push_back(
        fmt::format("{{\"{0}\", {1}_arguments, {1}_results, {2}, {3}, {4}, {5}, 0, {6}_run}}",
                    each.name, table_prefix(i), each.arguments.size(), each.results.size(),
                    each.arena_bytes, each.waits ? 1 : 0, each.symbol));
  }
  text += list_of("tenon_aot_cuda_function", "functions", rows);
  return text + fmt::format(
                    "const tenon_aot_cuda_model {0}_model = {{TENON_AOT_ABI, {1}_ALIGNMENT, "
                    "\"{0}\", \"{2}\", {1}_HASH, \"{3}\",\n    {4}, \"{5}\", functions, {6}, 0, "
                    "sizeof({0}_gpu), load, unload}};\n",
                    project.name, upper(project.name), project.version, project.target,
                    project.weights_bytes, project.weights_bytes > 0 ? project.weights_hash : "",
                    rows.size());
}

}  // namespace

std::string blob_symbol(const AotProject& project, std::string_view kind) {
  return fmt::format("tenon_aot_of_{}_{}", project.name, kind);
}

std::vector<std::pair<std::string, std::string_view>> gpu_blobs(const AotProject& project,
                                                                const gpu::AheadModel& model) {
  std::vector<std::pair<std::string, std::string_view>> blobs;
  for (const gpu::AheadImage& each : model.images) {
    blobs.emplace_back(fmt::format("{}.c.{}", project.name, each.kind), each.bytes);
  }
  if (!model.constants.empty()) blobs.emplace_back(project.name + ".c.constants", model.constants);
  return blobs;
}

std::string gpu_source(const AotProject& project, const gpu::AheadModel& model) {
  std::string text = fmt::format(
      "/* {0}: the host's part, written by `tenon aot` for {1}. Compile it with\n"
      " * tenon_aot_cuda.c beside it, which it includes, and link libdl:\n *\n"
      " *     cc -std=c11 -O2 -c {0}.c\n */\n#include \"{0}.h\"\n#include \"tenon_aot_cuda.c\"\n\n"
      "/* The names of the files that become a part of the object begin with this. */\n"
      "#ifndef {2}_FILES\n#define {2}_FILES __FILE__\n#endif\n",
      project.name, project.target, upper(project.name));
  for (const auto& [file, bytes] : gpu_blobs(project, model)) {
    const std::string ending = file.substr(project.name.size() + 3);
    text += fmt::format("TENON_AOT_BLOB({0}, {2}_FILES \".{1}\", {3})\n",
                        blob_symbol(project, ending), ending, upper(project.name), bytes.size());
  }
  text += "\n" + kernel_rows(model) + image_list(project, model);
  for (size_t i = 0; i < model.entries.size(); ++i) {
    text += GpuTables(model, model.entries[i]).text(i);
  }
  text += load_functions(project);
  for (size_t i = 0; i < project.functions.size(); ++i) {
    text += function_code(project, project.functions[i], i);
  }
  return text + "\n" + descriptor(project);
}

std::string gpu_cpp_header(const AotProject& project) {
  const bool weights = project.weights_bytes > 0;
  std::string text = fmt::format(
      R"(// {0} in C++: a loaded model that unloads itself.
#pragma once

#include <cstdint>

#include "{0}.h"

namespace {0} {{

/// Functions return a CUresult, 0 for success.
class Gpu {{
 public:
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() {{ static_cast<void>(unload()); }}

  [[nodiscard]] std::int32_t load({1}) {{
    static_cast<void>(unload());
    const std::int32_t error = {0}_load(&gpu_{2});
    loaded_ = error == 0;
    return error;
  }}
  std::int32_t unload() {{
    if (!loaded_) return 0;
    loaded_ = false;
    return {0}_unload(&gpu_);
  }}
  const {0}_gpu* get() const {{ return &gpu_; }}

 private:
  {0}_gpu gpu_ = {{}};
  bool loaded_ = false;
}};

}}  // namespace {0}
)",
      project.name, weights ? "const void* weights" : "", weights ? ", weights" : "");
  return text;
}

namespace {

std::string gpu_example_of(const AotProject& project, const AotSignature& function) {
  std::string text =
      fmt::format("\nstatic int32_t run_{}(tenon_aot_device* device, const {}_gpu* gpu) {{\n",
                  function.name, project.name);
  std::vector<std::string> names = {"gpu"};
  std::vector<std::string> missing;
  std::string freed;
  // Static arrays of more than 2 GiB cannot be linked.
  for (const auto* list : {&function.arguments, &function.results}) {
    for (const AotArray& each : *list) {
      text += fmt::format("  {0}* const {1} = malloc({2}_BYTES + 1);\n",
                          c_type(each.shape.element_type()), each.name, macro_of(function, each));
      missing.push_back(each.name + " == NULL");
      freed += fmt::format("  free({});\n", each.name);
    }
  }
  if (!missing.empty()) {
    text += fmt::format("  if ({}) return device->error = 2; /* out of memory */\n",
                        fmt::join(missing, " || "));
  }
  text += example_ones(function);
  for (const AotArray& each : function.arguments) {
    text +=
        fmt::format("  void* const on_gpu_{0} = tenon_aot_device_new(device, {0}, {1}_BYTES);\n",
                    each.name, macro_of(function, each));
    names.push_back("on_gpu_" + each.name);
  }
  for (const AotArray& each : function.results) {
    text +=
        fmt::format("  void* const on_gpu_{0} = tenon_aot_device_new(device, NULL, {1}_BYTES);\n",
                    each.name, macro_of(function, each));
    names.push_back("on_gpu_" + each.name);
  }
  text += fmt::format("  void* const arena = tenon_aot_device_new(device, NULL, {}_ARENA_BYTES);\n",
                      upper(function.symbol));
  names.emplace_back("arena");
  names.emplace_back("NULL");
  text += fmt::format("  if (device->error == 0) device->error = {}({});\n", function.symbol,
                      fmt::join(names, ", "));
  for (const AotArray& each : function.results) {
    text += fmt::format("  tenon_aot_device_read(device, {0}, on_gpu_{0}, {1}_BYTES);\n", each.name,
                        macro_of(function, each));
  }
  return text + "  if (device->error != 0) return device->error;\n" + example_results(function) +
         freed + "  return 0;\n}\n";
}

}  // namespace

std::string gpu_example(const AotProject& project) {
  const bool weights = project.weights_bytes > 0;
  std::string text = fmt::format(
      "/* Calls the functions of {0} once on the first GPU, on arguments of ones, and prints what\n"
      " * results begin with.\n *\n *     cc -std=c11 {0}_example.c {1} -ldl\n */\n"
      "#include <stdio.h>\n#include <stdlib.h>\n\n#include \"{0}.h\"\n"
      "#include \"tenon_aot_device.h\"\n",
      project.name,
      project.library == AotLibrary::kShared ? fmt::format("-L. -Wl,-rpath,. -l{}", project.name)
                                             : project.library_file());
  text += read_weights_function(project);
  for (const AotSignature& each : project.functions) text += gpu_example_of(project, each);
  text += fmt::format("\nint main(void) {{\n  static {}_gpu gpu;\n  tenon_aot_device device;\n",
                      project.name);
  if (weights) {
    text += fmt::format(
        "  void* const weights = read_weights(\"{0}\");\n"
        "  if (weights == NULL) {{\n    fprintf(stderr, \"cannot read {0}\\n\");\n    return 1;\n  "
        "}}\n",
        project.weights_file());
  }
  text += "  tenon_aot_device_open(&device);\n";
  text += fmt::format(
      "  const int32_t error = device.error != 0 ? device.error : {}_load(&gpu{});\n"
      "  if (error != 0) {{\n    fprintf(stderr, \"%s\\n\", tenon_aot_cuda_error_name(error));\n"
      "    return 1;\n  }}\n",
      project.name, weights ? ", weights" : "");
  if (weights) text += "  free(weights);\n";
  for (const AotSignature& each : project.functions) {
    text += fmt::format("  run_{}(&device, &gpu);\n", each.name);
  }
  text += fmt::format(
      "  if (device.error != 0) fprintf(stderr, \"%s\\n\", "
      "tenon_aot_cuda_error_name(device.error));\n"
      "  {}_unload(&gpu);\n  tenon_aot_device_close(&device);\n  return device.error != 0;\n}}\n",
      project.name);
  return text;
}

}  // namespace tenon::tools
