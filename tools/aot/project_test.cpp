// The files beside a model, as text; tests/aot compiles them.
#include "tools/aot/project.h"

#include <gtest/gtest.h>

namespace tenon::tools {
namespace {

using enum ElementType;

AotProject small_project() {
  AotProject project;
  project.name = "net";
  project.target = "x86_64-linux-gnu skylake */";
  project.hash = "abc";
  project.is_cpp = true;
  AotSignature function;
  function.name = "main";
  function.symbol = "net_main";
  function.arena_bytes = 128;
  function.arguments = {{"x", Shape(kF32, {2, 3}), 0}, {"z", Shape(kC64, {4}), -1}};
  function.results = {{"y0", Shape(kF32, {2, 3}), 0}, {"y1", Shape(kBF16, {}), -1}};
  project.functions = {function};
  return project;
}

void expect_line(const std::string& text, const std::string& line) {
  EXPECT_NE(text.find(line), std::string::npos) << "no '" << line << "' in\n" << text;
}

TEST(AotProject, Identifiers) {
  EXPECT_EQ(c_identifier("params['w'].1"), "params__w___1");
  EXPECT_EQ(c_identifier("9lives"), "_9lives");
  EXPECT_EQ(c_identifier(""), "_");
}

TEST(AotProject, TypesOfC) {
  EXPECT_EQ(c_type(kF32), "float");
  EXPECT_EQ(c_type(kC128), "double");
  EXPECT_EQ(c_type(kF16), "uint16_t");
  EXPECT_EQ(c_type(kS4), "int8_t");
  EXPECT_EQ(c_type(kPred), "uint8_t");
  EXPECT_EQ(c_type(kF8E5M2), "uint8_t");
  EXPECT_EQ((AotArray{"x", Shape(kC64, {4}), -1}).count(), 8);
}

TEST(AotProject, HeaderOfC) {
  const std::string header = c_header(small_project());
  expect_line(header, "for x86_64-linux-gnu skylake * /.");
  expect_line(header,
              "void net_main(const float* x, const float* z, float* y0, uint16_t* y1, void* "
              "arena);\n");
  expect_line(header, "#define NET_MAIN_X_DIMS {2, 3}\n");
  expect_line(header, "#define NET_MAIN_Z_COUNT 8\n");
  expect_line(header, "#define NET_MAIN_ARENA_BYTES 128\n");
  expect_line(header, "x            argument f32[2,3]; may have the memory of result y0\n");
  EXPECT_EQ(header.find("_DIMS {}"), std::string::npos);
  EXPECT_EQ(header.find("context needs"), std::string::npos);
}

TEST(AotProject, ContextsAreStated) {
  AotProject project = small_project();
  project.weights_bytes = 64;
  project.weights_hash = "00ff";
  project.threads = 4;
  project.stack_arena = true;
  project.calls = {{"acme.f", "acme_f"}};
  const std::string header = c_header(project);
  expect_line(header,
              "int32_t net_main(const float* x, const float* z, float* y0, uint16_t* y1, "
              "const tenon_aot_context* context);\n");
  expect_line(header, "  tenon_aot_call acme_f; /* @acme.f */\n");
  expect_line(header, "#define NET_THREADS 4\n");
  expect_line(header, "#define NET_WEIGHTS_HASH UINT64_C(0x00ff)\n");
  expect_line(cpp_header(project), "[[nodiscard]] std::int32_t operator()(");
  expect_line(example_source(project), "read_weights(\"net.weights\")");
}

TEST(AotProject, FilesByLanguage) {
  const auto names = [](const AotProject& project) {
    std::string list;
    for (const ProjectFile& each : aot_files_of(project)) list += each.path + " ";
    return list;
  };
  AotProject project = small_project();
  EXPECT_EQ(names(project),
            "net.h net.hpp net_example.c net.pc netConfig.cmake tenon_aot.h tenon_aot.hpp ");
  project.threads = 2;
  EXPECT_EQ(names(project),
            "net.h net.hpp net_example.c net.pc netConfig.cmake tenon_aot.h tenon_aot.hpp "
            "tenon_aot_tbb.hpp tenon_aot_threads.hpp ");
  project.is_cpp = false;
  EXPECT_EQ(names(project), "net.h net_example.c net.pc netConfig.cmake tenon_aot.h ");
}

TEST(AotProject, LibrariesByForm) {
  AotProject project = small_project();
  const auto files = [&](AotLibrary library) {
    project.library = library;
    return project.library_file();
  };
  EXPECT_EQ(files(AotLibrary::kObject), "net.o");
  EXPECT_EQ(files(AotLibrary::kStatic), "libnet.a");
  EXPECT_EQ(files(AotLibrary::kShared), "libnet.so");
}

}  // namespace
}  // namespace tenon::tools
