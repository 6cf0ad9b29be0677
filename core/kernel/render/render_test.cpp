// C source, compiled and run, gives the interpreter's bits; for the other languages the text is
// checked.
#include "core/kernel/render/render.h"
#include "core/kernel/render/rendered_binary.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/kernel/render/c_library.h"
#include "core/kernel/testing/case_test_util.h"

namespace tenon::kernel {
namespace {

using enum ElementType;
using testing::atomics;
using testing::Case;
using testing::kAtomicKinds;
using testing::operation_cases;

Result<std::string> source_of(std::span<const Kernel> kernels, const RenderOptions& options = {}) {
  TENON_ASSIGN(RenderedSource source, render(kernels, options));
  return std::move(source.text);
}

void expect_interpreters_bits(std::vector<Case>& cases) {
  std::vector<Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto source = source_of(kernels);
  ASSERT_TRUE(source) << source.error().to_string();
  const auto library = CLibrary::compile(*source);
  ASSERT_TRUE(library) << library.error().to_string();
  for (Case& c : cases) {
    std::vector<Literal> mine = c.buffers;
    ASSERT_TRUE(testing::run(c.kernel, c.buffers).ok());
    std::vector<void*> pointers;
    for (Literal& buffer : mine) pointers.push_back(buffer.mutable_data().data());
    const Status called = library->call(source_name(c.kernel.name), pointers);
    ASSERT_TRUE(called.ok()) << called.to_string();
    for (size_t m = 0; m < mine.size(); ++m) {
      if (c.kernel.memories[m].access != Access::kIn) {
        testing::expect_same(c.kernel.name, mine[m], c.buffers[m]);
      }
    }
  }
}

TEST(Render, EveryOperation) {
  std::vector<Case> cases =
      operation_cases({kPred, kS8, kS32, kS64, kU8, kU16, kU32, kU64, kF16, kF32, kF64});
  expect_interpreters_bits(cases);
}

TEST(Render, Examples) {
  std::vector<Case> cases = testing::example_cases(TENON_SOURCE);
  expect_interpreters_bits(cases);
}

TEST(Render, ControlFlowAndCarriedValues) {
  std::vector<Case> cases = testing::loop_cases();
  expect_interpreters_bits(cases);
}

TEST(Render, Atomics) {
  std::vector<Case> cases = testing::atomic_cases({kS8, kU16, kS32, kU32, kS64, kU64});
  expect_interpreters_bits(cases);
}

TEST(Render, AtomicsOfLanguages) {
  const auto text = [](ElementType type, AtomicKind kind, Language language) {
    const Kernel kernel = atomics(type, kind);
    return source_of(std::span(&kernel, 1), {language, 32}).value();
  };
  const auto contains = [](const std::string& whole, std::string_view part) {
    EXPECT_NE(whole.find(part), std::string::npos) << part << "\n" << whole;
  };
  contains(text(kS32, AtomicKind::kAdd, Language::kCuda), "atomicAdd(&y[");
  contains(text(kS64, AtomicKind::kAdd, Language::kCuda), "atomicAdd((unsigned long long *)&sums[");
  contains(text(kS64, AtomicKind::kMin, Language::kCuda), "atomicMin((long long *)&y[");
  contains(text(kU64, AtomicKind::kXor, Language::kCuda), "if (lane == 0) atomicXor(");
  contains(text(kU32, AtomicKind::kMax, Language::kOpenCl), "atomic_max(&y[");
  // By each lane in the loop; outside, by one lane between barriers.
  const std::string whole = text(kS32, AtomicKind::kAdd, Language::kCuda);
  contains(whole, "\n    atomicAdd(&y[");
  contains(whole, "__syncthreads();\n  if (lane == 0) atomicAdd(&y[2], ");
  EXPECT_TRUE(whole.ends_with(");\n  __syncthreads();\n}\n")) << whole;
  // If the language lacks atomics on this type: one lane, serially.
  EXPECT_EQ(text(kS64, AtomicKind::kAdd, Language::kOpenCl).find("atomic_add"), std::string::npos);
}

void expect_opencl(std::span<const Kernel> kernels, const RenderOptions& options) {
  const auto source = source_of(kernels, options);
  ASSERT_TRUE(source) << source.error().to_string();
  std::string folder = (std::filesystem::temp_directory_path() / "tenon_opencl_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/k.cl") << *source;
  const std::string command = fmt::format(
      "clang-19 -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -w -fsyntax-only {}/k.cl",
      folder);
  EXPECT_EQ(std::system(command.c_str()), 0) << *source;
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

TEST(Render, OpenClIsWellFormed) {
  std::vector<Kernel> kernels;
  for (const ElementType type : {kS32, kU32, kU64}) {
    for (const AtomicKind kind : kAtomicKinds) kernels.push_back(atomics(type, kind));
  }
  for (const Case& c : operation_cases({kPred, kS8, kS32, kU64, kF16, kF32, kF64})) {
    kernels.push_back(c.kernel);
  }
  expect_opencl(kernels, {Language::kOpenCl, 64});
  expect_opencl(kernels, {.language = Language::kOpenCl, .lanes = 1, .offset_bits = 64});
  expect_opencl(
      kernels, {.language = Language::kOpenCl, .fit_lanes = true, .offset_bits = 32, .stop = true});
}

// f16 is converted by the language's functions, and computed in f32.
TEST(Render, OpenClConvertsHalf) {
  std::vector<Kernel> kernels;
  for (const Case& c : operation_cases({kF16})) kernels.push_back(c.kernel);
  const auto source = source_of(kernels, {Language::kOpenCl, 1});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_NE(source->find("vload_half(0"), std::string::npos) << *source;
  EXPECT_NE(source->find("vstore_half_rte("), std::string::npos) << *source;
  const auto c = source_of(kernels, {Language::kC, 1});
  EXPECT_EQ(c->find("half"), std::string::npos) << *c;
}

TEST(Render, BasesOffsetsAndStop) {
  const auto kernel = parse(R"(
kernel @double(%x: in s32[64], %y: out s32[64], %n: scalar s32) index s32 grid(%i: 1) label "a double of 1.5" {
  %last = while(%a = 0) : s32 {
    %v = load %x[3] : s32
    %more = lt %a, %v : s32
    yield %more
  } do(%b) {
    %next = add %b, %n : s32
    yield %next
  }
  lanes(%j: 40) {
    store %last, %y[%j] : s32
  }
}
)",
                            "double");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const std::span<const Kernel> kernels(&*kernel, 1);
  const RenderOptions options = {
      .language = Language::kOpenCl, .fit_lanes = true, .offset_bits = 32, .stop = true};
  expect_opencl(kernels, options);
  const auto source = render(kernels, options);
  ASSERT_TRUE(source);
  for (const std::string_view part :
       {"k_double(__global uint8_t *x_base, uint32_t x_offset, __global uint8_t *y_base, uint32_t "
        "y_offset, int32_t n, __global const volatile uint32_t *stop)",
        "__global int32_t *restrict y = (__global int32_t *restrict )(y_base + y_offset);",
        // One lane asks, and all leave the loop together.
        "if (lane == 0) stopped[0] = *stop;\n  barrier(", "if ((stopped[0] != 0) | !("}) {
    EXPECT_NE(source->text.find(part), std::string::npos) << part << "\n" << source->text;
  }
  EXPECT_EQ(source->text.find("int64_t"), std::string::npos) << "a chip may have none";
  EXPECT_EQ(source->text.find("cl_khr_fp64"), std::string::npos) << "the same";
  ASSERT_EQ(source->kernels.size(), 1U);
  EXPECT_EQ(source->kernels[0].function, "k_double");
  EXPECT_EQ(source->kernels[0].workgroups, 1);
  EXPECT_EQ(source->kernels[0].lanes, 64);

  const auto serial = source_of(kernels, {.language = Language::kOpenCl, .lanes = 1, .stop = true});
  ASSERT_TRUE(serial);
  EXPECT_EQ(serial->find("barrier"), std::string::npos) << *serial;
  EXPECT_EQ(serial->find("lane"), std::string::npos) << *serial;
  EXPECT_NE(serial->find("if ((*stop != 0) | !("), std::string::npos) << *serial;
}

TEST(Render, LanguagesWithLanes) {
  const auto text = read_file(std::string(TENON_SOURCE) + "/core/kernel/examples/softmax.kernel");
  const auto kernel = parse(*text, "softmax");
  const std::span<const Kernel> kernels(&*kernel, 1);
  const auto opencl = source_of(kernels, {Language::kOpenCl, 64});
  ASSERT_TRUE(opencl);
  for (const std::string_view part : {"__kernel __attribute__((reqd_work_group_size(64, 1, 1))) "
                                      "void softmax(__global const float "
                                      "*restrict x, __global float *restrict y)",
                                      "__local float e[1000];", "get_group_id(0)", "for (int32_t",
                                      "+= 64)", "barrier(", "partial[lane] ="}) {
    EXPECT_NE(opencl->find(part), std::string::npos) << part << "\n" << *opencl;
  }
  const auto cuda = source_of(kernels, {Language::kCuda, 64});
  ASSERT_TRUE(cuda);
  for (const std::string_view part :
       {"extern \"C\" __global__ void __launch_bounds__(64) softmax(const float *__restrict__ x",
        "__shared__ float e[1000];", "blockIdx.x", "threadIdx.x", "__syncthreads();"}) {
    EXPECT_NE(cuda->find(part), std::string::npos) << part;
  }
}

TEST(Render, NamesAreFree) {
  const auto kernel = parse(R"(kernel @double(%int: in f32[2], %v0: out f32[2]) index s32 grid() {
  lanes(%i: 2) {
    %a = load %int[%i] : f32
    store %a, %v0[%i] : f32
  }
}
)",
                            "names");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto source = source_of(std::span<const Kernel>(&*kernel, 1));
  ASSERT_TRUE(source);
  EXPECT_NE(source->find("void k_double(const float *restrict k_int, float *restrict v0)"),
            std::string::npos)
      << *source;
  EXPECT_TRUE(CLibrary::compile(*source));
}

// A fast lane must not store to memory that a slower lane still reads: in the next iteration of a
// loop, or after an if that reads in one branch only.
TEST(Render, BarriersAcrossControlFlow) {
  const auto kernel = parse(R"(kernel @k(%x: in s32[4], %y: out s32[4]) index s32 grid() {
  scratch %s : s32[4]
  %r = for %k = (0, 3, 1) carry(%c = 0) : s32 {
    lanes(%i: 4) {
      %v = load %x[%i] : s32
      %w = add %v, %c : s32
      store %w, %s[%i] : s32
    }
    %n = load %s[0] : s32
    yield %n
  }
  %p = lt %r, 3 : s32
  %q = if %p : s32 {
    %a = load %s[1] : s32
    yield %a
  } else {
    lanes(%i: 4) {
      store 0, %s[%i] : s32
    }
    yield 1
  }
  lanes(%i: 4) {
    store %q, %s[%i] : s32
  }
  lanes(%i: 4) {
    %a = load %s[%i] : s32
    store %a, %y[%i] : s32
  }
}
)",
                            "k");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
  const auto source = source_of(std::span<const Kernel>(&*kernel, 1), {Language::kCuda, 4});
  ASSERT_TRUE(source);
  // A barrier follows the load of s[0] before the iteration ends.
  const size_t load = source->find("= s[0]");
  ASSERT_NE(load, std::string::npos) << *source;
  const std::string rest = source->substr(load, source->find("\n  }\n", load) - load);
  EXPECT_NE(rest.find("__syncthreads();"), std::string::npos) << *source;
  // The loop after the if begins with a barrier: one branch has loaded since the last one.
  const size_t branch = source->find("} else {");
  const size_t behind = source->find("\n  }\n", branch);
  EXPECT_EQ(source->substr(behind, 25), "\n  }\n  __syncthreads();\n ") << *source;
}

// A kernel is often named after its computation, and C's headers may use the same name.
TEST(Render, NamesOfTheHeadersAreTaken) {
  std::vector<Kernel> kernels;
  for (const std::string_view name : {"tanh", "expm1f", "cbrtl", "memset", "lgamma"}) {
    kernels.push_back(testing::of_op(OpCode::kNeg, kF32, {}, 4));
    kernels.back().name = name;
  }
  const auto source = source_of(kernels);
  ASSERT_TRUE(source);
  EXPECT_NE(source->find("void k_tanh(const float"), std::string::npos);
  EXPECT_TRUE(CLibrary::compile(*source));
}

// The host tells plug-ins the name without knowing for which language it is.
TEST(Render, FunctionsAreNamedAsSourceNameSays) {
  EXPECT_EQ(source_name("dot_general"), "dot_general");
  for (const std::string_view reserved :
       {"tanh",  "buffers",  "scalars", "main",   "constant",  "global", "kernel",  "and",
        "xor",   "not",      "new",     "float4", "double",    "uint",   "uint8_t", "select",
        "clamp", "popcount", "step",    "printf", "atomicAdd", "min",    "random",  "rename"}) {
    EXPECT_EQ(source_name(reserved), "k_" + std::string(reserved));
  }
  EXPECT_EQ(source_name("k_tanh"), "k_k_tanh");
  EXPECT_EQ(source_name("_Bool"), "k__Bool");
  EXPECT_NE(source_name("a.b"), source_name("a-b"));
  EXPECT_TRUE(source_name("3d").starts_with("k_k3d_")) << source_name("3d");
  for (const Language language : {Language::kC, Language::kOpenCl, Language::kCuda}) {
    std::vector<Kernel> kernels;
    for (const std::string_view name :
         {"constant", "tanh", "k_tanh", "a.b", "a-b", "main", "lane"}) {
      kernels.push_back(testing::of_op(OpCode::kNeg, kF32, {}, 4));
      kernels.back().name = name;
    }
    const auto source = source_of(kernels, {language, 32});
    ASSERT_TRUE(source) << source.error().message();
    for (const Kernel& kernel : kernels) {
      EXPECT_NE(source->find(" " + source_name(kernel.name) + "("), std::string::npos)
          << kernel.name << "\n"
          << *source;
    }
    kernels.push_back(kernels[1]);
    EXPECT_EQ(render(kernels, {language, 32}).error().message(),
              "two kernels of one source have the name @tanh");
    const auto renamed = render(kernels, {.language = language, .lanes = 32, .rename = true});
    ASSERT_TRUE(renamed) << renamed.error().message();
    std::set<std::string> functions;
    for (const RenderedKernel& each : renamed->kernels) {
      EXPECT_NE(renamed->text.find(" " + each.function + "("), std::string::npos);
      EXPECT_TRUE(functions.insert(each.function).second) << each.function;
    }
    EXPECT_EQ(functions.size(), kernels.size());
  }
}

TEST(Render, ParametersAreNotKeywordsOfAnyLanguage) {
  const auto kernel = parse(R"(kernel @k(%global: in f32[2], %and: out f32[2]) index s32 grid() {
  lanes(%i: 2) {
    %a = load %global[%i] : f32
    store %a, %and[%i] : f32
  }
}
)",
                            "names");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto source = source_of(std::span<const Kernel>(&*kernel, 1), {Language::kOpenCl, 2});
  ASSERT_TRUE(source);
  EXPECT_NE(source->find("k_global, __global float *restrict k_and)"), std::string::npos)
      << *source;
}

// The host launches the grid of the kernel that it was given. OpenCL C has no 64-bit atomics, and
// the legal form is one loop: every workgroup would run all of it.
TEST(Render, ALegalFormOfFewerWorkgroupsKeepsTheGrid) {
  const auto kernel =
      parse(R"(kernel @sum(%x: in s64[782], %y: inout s64[1]) index s32 grid(%g: 782) {
  lanes(%i: 1) {
    %a = load %x[%g] : s64
    atomic add %a, %y[0] : s64
  }
}
)",
            "sum");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto text = [&](Language language) {
    return source_of(std::span<const Kernel>(&*kernel, 1), {language, 32}).value();
  };
  EXPECT_NE(text(Language::kOpenCl).find("\n  if (group >= 1) return;\n"), std::string::npos)
      << text(Language::kOpenCl);
  EXPECT_EQ(text(Language::kCuda).find(") return;"), std::string::npos);
}

// Behind a table, no function of the same name in another library is called: C has a `getpid`.
TEST(Render, WhatATableNamesIsItsOwn) {
  const Kernel kernel = parse(
                            "kernel @getpid(%y: out s32[1]) index s32 grid() {\n"
                            "lanes(%i: 1) {\nstore 7, %y[%i] : s32\n}\n}",
                            "t")
                            .value();
  RenderOptions options;
  options.table = "kernel_table";
  const auto source = source_of(std::span(&kernel, 1), options);
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_NE(source->find("static void getpid("), std::string::npos) << *source;
  EXPECT_EQ(source->find("double"), std::string::npos) << *source;
}

TEST(RenderedBinary, IsReadAsItWasSaved) {
  const RenderedBinary binary = {{{"tanh_2", 12, 64}, {"sum", 1, 1}}, std::string("\0\n\x7f", 3)};
  const auto loaded = RenderedBinary::load(binary.save());
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->program, binary.program);
  ASSERT_EQ(loaded->kernels.size(), 2U);
  EXPECT_EQ(loaded->kernels[0].function, "tanh_2");
  EXPECT_EQ(loaded->kernels[0].workgroups, 12);
  EXPECT_EQ(loaded->kernels[0].lanes, 64);
  EXPECT_TRUE(RenderedBinary::load(RenderedBinary().save()));
}

TEST(RenderedBinary, OtherBytesAreAnError) {
  for (const std::string_view bytes :
       {"", "f", "f 1 1", "f 1 1\n", "f 1\n\n", " 1 1\n\n", "f 0 1\n\n", "f -1 1\n\n", "f 1 x\n\n",
        "f 1 99999999999999999999\n\n", "f 1 1 1\n\n"}) {
    const auto loaded = RenderedBinary::load(bytes);
    ASSERT_FALSE(loaded) << bytes;
    EXPECT_EQ(loaded.error().code(), ErrorCode::kDataLoss) << bytes;
  }
}

TEST(CLibrary, Errors) {
  const auto bad = CLibrary::compile("int f(void) { return x; }");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), ErrorCode::kInternal);
  EXPECT_NE(bad.error().message().find("the C compiler refused"), std::string::npos);
  const auto good = CLibrary::compile("void f(int *x) { *x = 3; }");
  ASSERT_TRUE(good);
  int x = 0;
  const std::vector<void*> pointers = {&x};
  EXPECT_TRUE(good->call("f", pointers).ok());
  EXPECT_EQ(x, 3);
  EXPECT_EQ(good->call("g", pointers).message(), "the library has no function g");
  EXPECT_EQ(good->call("f", std::vector<void*>(5)).message(), "f: at most four pointers");
}

}  // namespace
}  // namespace tenon::kernel
