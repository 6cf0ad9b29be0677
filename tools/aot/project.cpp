#include "tools/aot/project.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/aot/embedded.h"

namespace tenon::tools {
namespace {

// The library that models need: of a GPU the loader of the driver.
std::string_view library_of(const AotProject& project) { return project.is_gpu ? "dl" : "m"; }

std::string pkg_config(const AotProject& project) {
  const std::string libs = project.library == AotLibrary::kShared
                               ? fmt::format("-L${{pcfiledir}} -l{}", project.name)
                               : fmt::format("${{pcfiledir}}/{}", project.library_file());
  return fmt::format(
      "Name: {0}\nDescription: {0}, compiled by tenon aot for {1}\nVersion: 1\n"
      "Cflags: -I${{pcfiledir}}\nLibs: {2} -l{3}\n",
      project.name, project.target, libs, library_of(project));
}

std::string cmake(const AotProject& project) {
  std::string text =
      fmt::format("# find_package({0} CONFIG) gives the target {0}::{0}.\n", project.name);
  text += fmt::format("if(NOT TARGET {0}::{0})\n", project.name);
  const std::string file = fmt::format("${{CMAKE_CURRENT_LIST_DIR}}/{}", project.library_file());
  if (project.library == AotLibrary::kObject || project.library == AotLibrary::kSource) {
    text += fmt::format(
        "  add_library({0}::{0} INTERFACE IMPORTED)\n"
        "  set_target_properties({0}::{0} PROPERTIES\n"
        "    INTERFACE_INCLUDE_DIRECTORIES \"${{CMAKE_CURRENT_LIST_DIR}}\"\n",
        project.name);
    const std::string_view between =
        project.library == AotLibrary::kSource ? "\"\n    INTERFACE_LINK_LIBRARIES \"" : ";";
    text += fmt::format("    INTERFACE_{} \"{}{}{}\")\n",
                        project.library == AotLibrary::kSource ? "SOURCES" : "LINK_LIBRARIES", file,
                        between, library_of(project));
  } else {
    text += fmt::format(
        "  add_library({0}::{0} {1} IMPORTED)\n"
        "  set_target_properties({0}::{0} PROPERTIES\n"
        "    IMPORTED_LOCATION \"{2}\"\n"
        "    INTERFACE_INCLUDE_DIRECTORIES \"${{CMAKE_CURRENT_LIST_DIR}}\"\n"
        "    INTERFACE_LINK_LIBRARIES \"{3}\")\n",
        project.name, project.library == AotLibrary::kShared ? "SHARED" : "STATIC", file,
        library_of(project));
  }
  return text + "endif()\n";
}

// Reads the file of weights into memory that it may stay in.
constexpr std::string_view kReadWeights = R"(
static void* read_weights(const char* path) {
  void* const weights = aligned_alloc(@ALIGNMENT, (@BYTES + @ALIGNMENT - 1) / @ALIGNMENT * @ALIGNMENT);
  FILE* const file = fopen(path, "rb");
  const int ok = weights != NULL && file != NULL && fread(weights, 1, @BYTES, file) == @BYTES &&
                 tenon_aot_hash(weights, @BYTES) == @HASH;
  if (file != NULL) fclose(file);
  if (ok) return weights;
  free(weights);
  return NULL;
}
)";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
    at += with.size();
  }
  return text;
}

// The element `i` for printf.
std::string shown(const AotArray& array) {
  const std::string_view type = c_type(array.shape.element_type());
  if (type == "float" || type == "double") return fmt::format("\" %g\", (double){}[i]", array.name);
  if (type == "uint64_t" || type == "int64_t") {
    return fmt::format("\" %lld\", (long long){}[i]", array.name);
  }
  return fmt::format("\" %ld\", (long){}[i]", array.name);
}

// The start of an example's function: its arrays.
std::string example_arrays(const AotProject& project, const AotSignature& function) {
  std::string text;
  for (const auto* list : {&function.arguments, &function.results}) {
    for (const AotArray& each : *list) {
      // An array of C has an element at least.
      text += fmt::format("  static _Alignas({}_ALIGNMENT) {} {}[{}];\n", upper(project.name),
                          c_type(each.shape.element_type()), each.name,
                          each.count() == 0 ? "1" : macro_of(function, each) + "_COUNT");
    }
  }
  return text;
}

std::string example_of(const AotProject& project, const AotSignature& function) {
  std::string text =
      fmt::format("\nstatic int run_{}({}) {{\n", function.name,
                  project.takes_context() ? "const tenon_aot_context* context" : "void");
  std::vector<std::string> names;
  for (const auto* list : {&function.arguments, &function.results}) {
    for (const AotArray& each : *list) names.push_back(each.name);
  }
  text += example_arrays(project, function);
  if (!project.stack_arena) {
    text += fmt::format(
        "  static _Alignas({}_ALIGNMENT) unsigned char arena[{}];\n", upper(project.name),
        function.arena_bytes == 0 ? "1" : fmt::format("{}_ARENA_BYTES", upper(function.symbol)));
    names.emplace_back("arena");
  }
  if (project.takes_context()) names.emplace_back("context");
  text += example_ones(function);
  if (project.calls.empty()) {
    text += fmt::format("  {}({});\n", function.symbol, fmt::join(names, ", "));
  } else {
    text += fmt::format("  const int32_t error = {}({});\n  if (error != 0) return error;\n",
                        function.symbol, fmt::join(names, ", "));
  }
  return text + example_results(function) + "  return 0;\n}\n";
}

}  // namespace

std::string read_weights_function(const AotProject& project) {
  if (project.weights_bytes == 0) return "";
  const std::string prefix = upper(project.name);
  std::string text(kReadWeights);
  text = replaced(std::move(text), "@BYTES", prefix + "_WEIGHTS_BYTES");
  text = replaced(std::move(text), "@HASH", prefix + "_WEIGHTS_HASH");
  return replaced(std::move(text), "@ALIGNMENT", prefix + "_ALIGNMENT");
}

std::string example_ones(const AotSignature& function) {
  std::string text;
  for (const AotArray& each : function.arguments) {
    if (each.count() == 0) continue;
    text += fmt::format("  for (size_t i = 0; i < {}_COUNT; ++i) {}[i] = 1;\n",
                        macro_of(function, each), each.name);
  }
  return text;
}

std::string example_results(const AotSignature& function) {
  std::string text;
  for (const AotArray& each : function.results) {
    const std::string count = macro_of(function, each) + "_COUNT";
    text += fmt::format("  printf(\"{} {}:\");\n", function.name, each.name);
    if (each.count() > 0) {
      text += fmt::format("  for (size_t i = 0; i < {0} && i < 8; ++i) printf({1});\n", count,
                          shown(each));
    }
    text += "  printf(\"\\n\");\n";
  }
  return text;
}

std::string AotProject::library_file() const {
  switch (library) {
    case AotLibrary::kObject:
      return name + ".o";
    case AotLibrary::kStatic:
      return fmt::format("lib{}.a", name);
    case AotLibrary::kShared:
      return fmt::format("lib{}.so", name);
    case AotLibrary::kSource:
      return name + ".c";
  }
  return name;
}

std::string example_source(const AotProject& project) {
  if (project.is_gpu) return gpu_example(project);
  std::string text = fmt::format(
      "/* Calls the functions of {0} once, on arguments of ones, and prints what results begin "
      "with.\n"
      " *\n *     cc -std=c11 {0}_example.c {1} -lm\n */\n",
      project.name,
      project.library == AotLibrary::kShared ? fmt::format("-L. -Wl,-rpath,. -l{}", project.name)
                                             : project.library_file());
  text += "#include <stdio.h>\n";
  if (project.weights_bytes > 0) text += "#include <stdlib.h>\n";
  text += fmt::format("\n#include \"{}.h\"\n", project.name);
  text += read_weights_function(project);
  for (const AotCall& each : project.calls) {
    text += fmt::format(
        "\n/* To be written: results[0] … from operands[0] …; now an error. */\n"
        "static int call_{}(void* user, const void* const* operands, void* const* results) {{\n"
        "  (void)user;\n  (void)operands;\n  (void)results;\n  return 1;\n}}\n",
        each.member);
  }
  for (const AotSignature& each : project.functions) text += example_of(project, each);
  text += "\nint main(void) {\n";
  std::string context;
  if (!project.calls.empty()) {
    text += fmt::format("  {}_calls calls;\n", project.name);
    for (const AotCall& each : project.calls) {
      text += fmt::format("  calls.{0} = call_{0};\n", each.member);
    }
  }
  if (project.takes_context()) {
    text += "  tenon_aot_context context = {0};\n";
    if (!project.calls.empty()) text += "  context.calls = &calls;\n";
    if (project.weights_bytes > 0) {
      text += fmt::format(
          "  context.weights = read_weights(\"{0}\");\n"
          "  if (context.weights == NULL) {{\n    fprintf(stderr, \"cannot read {0}\\n\");\n"
          "    return 1;\n  }}\n",
          project.weights_file());
    }
    context = "&context";
  }
  text += "  int errors = 0;\n";
  for (const AotSignature& each : project.functions) {
    text += fmt::format("  errors += run_{}({}) != 0;\n", each.name, context);
  }
  return text + "  return errors != 0;\n}\n";
}

std::vector<ProjectFile> aot_files_of(const AotProject& project) {
  const bool is_source = project.library == AotLibrary::kSource;
  std::vector<ProjectFile> files;
  files.push_back({project.name + ".h", c_header(project)});
  if (project.is_cpp) files.push_back({project.name + ".hpp", cpp_header(project)});
  files.push_back({project.name + "_example.c", example_source(project)});
  if (!is_source) {
    files.push_back({project.name + ".pc", pkg_config(project)});
  }
  files.push_back({project.name + "Config.cmake", cmake(project)});
  for (const EmbeddedFile& each : aot_headers()) {
    const bool is_cpp = each.path.ends_with(".hpp");
    const bool is_threads = each.path.find("threads") != std::string_view::npos ||
                            each.path.find("tbb") != std::string_view::npos;
    const bool is_cuda = each.path.find("cuda") != std::string_view::npos ||
                         each.path.find("device") != std::string_view::npos;
    if (is_cpp && (!project.is_cpp || project.is_gpu || (is_threads && project.threads == 0))) {
      continue;
    }
    if (is_cuda && (!project.is_gpu || (each.path.ends_with(".c") && !is_source))) continue;
    files.push_back({std::string(each.path), std::string(each.text)});
  }
  return files;
}

}  // namespace tenon::tools
