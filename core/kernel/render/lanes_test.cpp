// Runs rendered OpenCL C with a thread for each lane, and compares it with the interpreter: where a
// barrier is missing, or lanes part ways before one, the bits differ or the test does not end.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "core/kernel/render/c_library.h"
#include "core/kernel/render/render.h"
#include "core/kernel/render/source_writer.h"
#include "core/kernel/testing/case_test_util.h"

namespace tenon::kernel {
namespace {

using enum ElementType;
using testing::Case;

// OpenCL C as C: what the sources use of it.
constexpr std::string_view kOpenClAsC = R"(
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <tgmath.h>
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define inline static inline
#define reqd_work_group_size(x, y, z) unused
#define __kernel static
#define __global
#define __local static
#define CLK_LOCAL_MEM_FENCE 0
#define CLK_GLOBAL_MEM_FENCE 0
#define get_group_id(d) the_group
#define get_local_id(d) the_lane
#define barrier(fences) pthread_barrier_wait(&the_barrier)
#define as_float(x) ((union { uint from; float to; }){(x)}.to)
#define as_uint(x) ((union { float from; uint to; }){(x)}.to)
#define as_double(x) ((union { ulong from; double to; }){(x)}.to)
#define as_ulong(x) ((union { double from; ulong to; }){(x)}.to)
#define LOCKED(p, new) (pthread_mutex_lock(&the_mutex), *(p) = (new), pthread_mutex_unlock(&the_mutex))
#define atomic_add(p, v) LOCKED(p, *(p) + (v))
#define atomic_min(p, v) LOCKED(p, *(p) < (v) ? *(p) : (v))
#define atomic_max(p, v) LOCKED(p, *(p) > (v) ? *(p) : (v))
#define atomic_and(p, v) LOCKED(p, *(p) & (v))
#define atomic_or(p, v) LOCKED(p, *(p) | (v))
#define atomic_xor(p, v) LOCKED(p, *(p) ^ (v))
static __thread int the_lane, the_group;
static pthread_barrier_t the_barrier;
static pthread_mutex_t the_mutex = PTHREAD_MUTEX_INITIALIZER;
)";

// Vector types and their functions, as Clang has them in C too.
constexpr std::string_view kVectorsAsC = R"(
#define OVERLOAD __attribute__((overloadable)) static
#define VECTORS(T, N, I) \
  typedef T T##N __attribute__((ext_vector_type(N))); \
  typedef I I##N __attribute__((ext_vector_type(N))); \
  OVERLOAD T##N vload##N(ulong at, const T *from) { \
    T##N v; \
    memcpy(&v, from + at * N, sizeof v); \
    return v; \
  } \
  OVERLOAD void vstore##N(T##N v, ulong at, T *to) { memcpy(to + at * N, &v, sizeof v); } \
  OVERLOAD T##N any_fma(T##N x, T##N y, T##N z) { return __builtin_elementwise_fma(x, y, z); } \
  OVERLOAD T##N any_fabs(T##N x) { return __builtin_elementwise_abs(x); } \
  OVERLOAD T##N select(T##N x, T##N y, I##N c) { return c ? y : x; } \
  OVERLOAD I##N as_##I##N(T##N x) { \
    I##N bits; \
    memcpy(&bits, &x, sizeof bits); \
    return bits; \
  }
OVERLOAD float any_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
OVERLOAD double any_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
OVERLOAD float any_fabs(float x) { return __builtin_fabsf(x); }
OVERLOAD double any_fabs(double x) { return __builtin_fabs(x); }
#undef fma
#undef fabs
#define fma any_fma
#define fabs any_fabs
#undef inline
VECTORS(float, 2, int)
VECTORS(float, 4, int)
VECTORS(float, 8, int)
VECTORS(float, 16, int)
VECTORS(double, 2, long)
VECTORS(double, 4, long)
VECTORS(double, 8, long)
VECTORS(double, 16, long)
#define inline static inline
)";

// A function that launches a kernel: run_NAME(buffers …).
std::string launcher(const Kernel& kernel, const RenderedKernel& rendered,
                     const RenderOptions& options) {
  std::vector<std::string> arguments;
  for (size_t b = 0; b < kernel.buffer_count; ++b) {
    // A base that is not the buffer's own address.
    arguments.push_back(options.offset_bits == 0
                            ? fmt::format("the_buffers[{}]", b)
                            : fmt::format("(uchar *)the_buffers[{}] - 64, 64", b));
  }
  if (options.stop) arguments.emplace_back("&the_stop");
  return fmt::format(R"(
static void *lane_of_{0}(void *number) {{
  the_lane = (int)(ulong)number;
  for (the_group = 0; the_group < {1}; ++the_group) {{
    {0}({3});
    pthread_barrier_wait(&the_barrier);
  }}
  return 0;
}}
void run_{0}(void *a, void *b, void *c, void *d) {{
  pthread_t threads[{2}];
  void *given[] = {{a, b, c, d}};
  memcpy(the_buffers, given, sizeof given);
  pthread_barrier_init(&the_barrier, 0, {2});
  for (long i = 0; i < {2}; ++i) pthread_create(&threads[i], 0, lane_of_{0}, (void *)i);
  for (int i = 0; i < {2}; ++i) pthread_join(threads[i], 0);
  pthread_barrier_destroy(&the_barrier);
}}
)",
                     rendered.function, rendered.workgroups, rendered.lanes,
                     fmt::join(arguments, ", "));
}

void expect_interpreters_results(std::vector<Case> cases, const RenderOptions& options,
                                 double tolerance = 0) {
  std::vector<Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto source = render(kernels, options);
  ASSERT_TRUE(source) << source.error().to_string();
  const bool has_vectors = options.vector_bytes > 0;
  std::string text = fmt::format("{}{}static void *the_buffers[4];\nstatic uint the_stop;\n{}",
                                 kOpenClAsC, has_vectors ? kVectorsAsC : "", source->text);
  int64_t launched = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    text += launcher(kernels[k], source->kernels[k], options);
    launched += source->kernels[k].lanes;
  }
  if (options.lanes > 1) {
    EXPECT_GT(launched, static_cast<int64_t>(kernels.size())) << "no kernel has several lanes";
  }
  const auto library =
      CLibrary::compile(text,
                        "-O1 -fsigned-char -pthread -Wno-unknown-pragmas -Wno-attributes "
                        "-Wno-unused-parameter -Wno-psabi",
                        has_vectors ? "clang-19" : "");
  ASSERT_TRUE(library) << library.error().to_string();
  for (size_t k = 0; k < cases.size(); ++k) {
    Case& c = cases[k];
    std::vector<Literal> mine = c.buffers;
    ASSERT_TRUE(testing::run(c.kernel, c.buffers).ok());
    std::vector<void*> pointers;
    for (Literal& buffer : mine) pointers.push_back(buffer.mutable_data().data());
    const Status called = library->call("run_" + source->kernels[k].function, pointers);
    ASSERT_TRUE(called.ok()) << called.to_string();
    for (size_t m = 0; m < mine.size(); ++m) {
      if (c.kernel.memories[m].access == Access::kIn) continue;
      testing::expect_same(c.kernel.name, mine[m], c.buffers[m], tolerance);
    }
  }
}

RenderOptions options_of(int64_t lanes) {
  RenderOptions options;
  options.language = Language::kOpenCl;
  options.lanes = lanes;
  return options;
}

TEST(RenderedLanes, Loops) {
  expect_interpreters_results(testing::loop_cases(), options_of(4));
  RenderOptions all = options_of(8);
  all.fit_lanes = true;
  all.offset_bits = 64;
  all.stop = true;
  expect_interpreters_results(testing::loop_cases(), all);
}

// While loops within each other, with barriers in their bodies.
TEST(RenderedLanes, NestedWhileLoops) {
  const auto kernel = parse(R"(
kernel @nested(%x: in s32[20], %y: out s32[20]) index s32 grid() {
  scratch %s : s32[20]
  scratch %t : s32[20]
  lanes(%i: 20) {
    %v = load %x[%i] : s32
    store %v, %s[%i] : s32
  }
  %last = while(%a = 0) : s32 {
    %few = lt %a, 3 : s32
    yield %few
  } do(%b) {
    %inner = while(%c = 0) : s32 {
      %more = lt %c, 2 : s32
      yield %more
    } do(%d) {
      lanes(%i: 20) {
        %back = sub 19, %i : s32
        %v = load %s[%back] : s32
        %u = add %v, %d : s32
        store %u, %t[%i] : s32
      }
      lanes(%i: 20) {
        %v = load %t[%i] : s32
        %w = load %s[%i] : s32
        %u = add %v, %w : s32
        store %u, %s[%i] : s32
      }
      %e = add %d, 1 : s32
      yield %e
    }
    %n = add %b, 1 : s32
    yield %n
  }
  lanes(%i: 20) {
    %v = load %s[%i] : s32
    %u = add %v, %last : s32
    store %u, %y[%i] : s32
  }
}
)",
                            "nested");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
  Case c = {*kernel, testing::zero_buffers(*kernel)};
  for (int64_t i = 0; i < 20; ++i) c.buffers[0].set_integer(i, i * i);
  RenderOptions options = options_of(16);
  expect_interpreters_results({c}, options);
  options.stop = true;
  expect_interpreters_results({c}, options);
}

TEST(RenderedLanes, DivergentControlFlow) {
  expect_interpreters_results(testing::divergent_cases(), options_of(7));
}

TEST(RenderedLanes, Reductions) {
  constexpr double kTolerance = 1e-4;
  for (const int64_t lanes : {2, 5, 16}) {
    expect_interpreters_results(testing::reduction_cases(), options_of(lanes), kTolerance);
    expect_interpreters_results(testing::ordered_reduction_cases(), options_of(lanes));
  }
}

TEST(RenderedLanes, Examples) {
  constexpr double kTolerance = 1e-4;
  expect_interpreters_results(testing::example_cases(TENON_SOURCE), options_of(16), kTolerance);
}

// Cases that the C compiler gets at once.
std::vector<Case> both(std::vector<Case> cases, const std::vector<Case>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

// One lane, whose compiler makes vectors of loops: reductions in parts, lanes side by side.
TEST(RenderedLanes, Strips) {
  constexpr double kTolerance = 1e-4;
  for (const int64_t bytes : {8, 16, 64}) {
    RenderOptions options = options_of(1);
    options.vector_bytes = bytes;
    expect_interpreters_results(both(testing::loop_cases(), testing::ordered_reduction_cases()),
                                options);
    expect_interpreters_results(
        both(testing::reduction_cases(), testing::example_cases(TENON_SOURCE)), options,
        kTolerance);
  }
}

// No leaves, though each of their rows would have many: the result is the initial value.
TEST(RenderedLanes, StripsOfNoLeaves) {
  const auto kernel = parse(R"(
kernel @nothing(%x: in s32[4], %y: out s32[4]) index s32 grid() {
  lanes(%i: 4) {
    %first = load %x[%i] : s32
    %s = reduce serial(%k: 0, %l: 64) init(%first) : s32 commutative {
      %w = add %l, %first : s32
      yield %w
    } combine(%a, %b) {
      %c = add %a, %b : s32
      yield %c
    }
    store %s, %y[%i] : s32
  }
}
)",
                            "nothing");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
  Case c = {*kernel, testing::zero_buffers(*kernel)};
  for (int64_t i = 0; i < 4; ++i) c.buffers[0].set_integer(i, 5 + i);
  RenderOptions options = options_of(1);
  options.vector_bytes = 16;
  expect_interpreters_results({c}, options);
}

// Sums along columns and along rows, of sizes with and without a rest, with values that are
// computed before the sum, between two, and after them.
TEST(RenderedLanes, StripsOfEachForm) {
  constexpr std::string_view kText = R"(
kernel @KIND(%x: in s32[ROWS, COLUMNS], %y: out s32[LANES], %z: in s32[LANES]) index s32 grid() {
  lanes(%i: LANES) {
    %before = load %z[%i] : s32
    %twice = add %before, %i : s32
    %s = reduce serial(%k: SUMMED) init(%twice) : s32 commutative {
      %v = load %x[PLACE] : s32
      %w = mul %v, %twice : s32
      yield %w
    } combine(%a, %b) {
      %c = add %a, %b : s32
      yield %c
    }
    %most = reduce serial(%k: SUMMED) init(%s) : s32 commutative {
      %v = load %x[PLACE] : s32
      %w = sub %v, %s : s32
      yield %w
    } combine(%a, %b) {
      %c = max %a, %b : s32
      yield %c
    }
    %last = add %most, %before : s32
    store %last, %y[%i] : s32
  }
}
)";
  const auto with = [&](std::string_view kind, int64_t rows, int64_t columns, bool down) {
    std::string text(kText);
    const auto put = [&](const std::string& word, const std::string& by) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
        text.replace(at, word.size(), by);
      }
    };
    put("KIND", std::string(kind));
    put("ROWS", std::to_string(rows));
    put("COLUMNS", std::to_string(columns));
    put("LANES", std::to_string(down ? columns : rows));
    put("SUMMED", std::to_string(down ? rows : columns));
    put("PLACE", down ? "%k, %i" : "%i, %k");
    const auto kernel = parse(text, std::string(kind));
    EXPECT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
    Case c = {*kernel, testing::zero_buffers(*kernel)};
    for (int64_t i = 0; i < rows * columns; ++i) c.buffers[0].set_integer(i, (i * i) % 101 - 40);
    for (int64_t i = 0; i < c.kernel.memories[2].dims[0]; ++i) {
      c.buffers[2].set_integer(i, 7 - i);
    }
    return c;
  };
  RenderOptions options = options_of(1);
  options.vector_bytes = 16;
  for (const int64_t size : {4, 7, 16, 37, 64}) {
    const Case down = with("down", 5, size, true);
    const Case along = with("along", 3, size, false);
    expect_interpreters_results({down, along}, options);
    const std::vector<Kernel> kernels = {down.kernel, along.kernel};
    const std::string text = render(kernels, options)->text;
    const auto middle = text.begin() + static_cast<std::ptrdiff_t>(text.find("void along("));
    const std::regex array("int32_t v\\d+\\[");
    EXPECT_TRUE(std::regex_search(text.begin(), middle, array)) << text;
    // A sum of few elements has no parts.
    EXPECT_EQ(std::regex_search(middle, text.end(), array), size >= 8) << text;
    options.lanes = 128;  // A kernel without loops over lanes has one of them too.
    options.fit_lanes = true;
    EXPECT_FALSE(std::regex_search(render(kernels, options)->text, array));
    options.lanes = 1;
  }
}

// Along neighbouring floats the parts are vectors: also of what follows a load, and of a maximum,
// whose NaNs and signs of zero are those of the elements. The rest of the one row goes to its parts
// one by one; of several rows with rests the parts are an array.
TEST(RenderedLanes, PartsInVectors) {
  constexpr std::string_view kText = R"(
kernel @parts(%x: in TYPE[ROWS, SIZE], %y: out TYPE[3]) index s32 grid() {
  %first = load %x[0, 0] : TYPE
  %s, %m = reduce serial(%r: ROWS, %k: SIZE) init(-0.0, -inf) : TYPE, TYPE commutative {
    %v = load %x[%r, %k] : TYPE
    %d = sub %v, %first : TYPE
    %w = fma %d, %d, %first : TYPE
    %a = abs %w : TYPE
    yield %a, %v
  } combine(%a, %b, %c, %d) {
    %sum = add %a, %c : TYPE
    %most = max %b, %d : TYPE
    yield %sum, %most
  }
  %l = reduce serial(%r: ROWS, %k: SIZE) init(inf) : TYPE commutative {
    %v = load %x[%r, %k] : TYPE
    %n = neg %v : TYPE
    %z = mul %n, 0.0 : TYPE
    yield %z
  } combine(%a, %b) {
    %least = min %a, %b : TYPE
    yield %least
  }
  store %s, %y[0] : TYPE
  store %m, %y[1] : TYPE
  store %l, %y[2] : TYPE
}
)";
  const auto with = [&](std::string_view type, int64_t rows, int64_t size, double special) {
    std::string text(kText);
    for (const auto& [word, by] : {std::pair<std::string, std::string>("TYPE", type),
                                   {"ROWS", std::to_string(rows)},
                                   {"SIZE", std::to_string(size)}}) {
      text = std::regex_replace(text, std::regex(word), by);
    }
    const auto kernel = parse(text, "parts");
    EXPECT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
    Case c = {*kernel, testing::zero_buffers(*kernel)};
    for (int64_t i = 0; i < rows * size; ++i) {
      c.buffers[0].set_double(i, static_cast<double>(i * i % 23 - 7));
    }
    c.buffers[0].set_double(rows * size / 2, special);
    return c;
  };
  RenderOptions options = options_of(1);
  options.vector_bytes = 32;
  const std::regex vector("(float8|double4) v\\d+");
  // The C compiler gets all kernels at once, so that each has a name of its own.
  std::vector<Case> cases;
  const auto add = [&](Case c, bool has_vectors) {
    c.kernel.name += fmt::format("_{}", cases.size());
    const std::string rendered = render({&c.kernel, 1}, options)->text;
    EXPECT_EQ(std::regex_search(rendered, vector), has_vectors) << rendered;
    cases.push_back(std::move(c));
  };
  for (const std::string_view type : {"f32", "f64"}) {
    for (const auto& [rows, size] : {std::pair<int64_t, int64_t>(1, 64), {3, 64}, {1, 83}}) {
      for (const double special : {5.0, -0.0, std::nan("")}) {
        add(with(type, rows, size, special), true);
      }
    }
    add(with(type, 3, 83, 5), false);
  }
  expect_interpreters_results(cases, options);
}

// The kernel of `text`, whose product stays in registers, with empty buffers.
Case product_of(std::string_view text) {
  const auto kernel = parse(std::string(text), "product");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  if (!kernel) return {};
  EXPECT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
  EXPECT_TRUE(std::ranges::any_of(kernel->nodes,
                                  [&](const Node& n) { return is_register_product(*kernel, n); }));
  return {*kernel, testing::zero_buffers(*kernel)};
}

// Sums in scratch, as schedules for wide registers have them: blocks of them stay in registers, in
// vectors where the language has those.
TEST(RenderedLanes, ProductsWithSumsInScratch) {
  constexpr std::string_view kText = R"(
kernel @product(%x: in f32[12, 10], %w: in f32[10, 16], %y: out f32[12, 16]) index s32 grid() {
  scratch %a : f32[12,10]
  scratch %b : f32[10,16]
  scratch %sums : f32[12,16]
  lanes(%i: 12, %j: 16) {
    %start = convert %j : s32 -> f32
    store %start, %sums[%i, %j] : f32
  }
  copy box(12, 10) %a[0, 0] by(0, 1) = %x[0, 0] by(0, 1) pad 0.0
  copy box(10, 16) %b[0, 0] by(0, 1) = %w[0, 0] by(0, 1) pad 0.0
  contract box(12, 16, 10) %sums[0, 0] += %a[0, 0] * %b[0, 0]
  lanes(%i: 12, %j: 16) {
    %sum = load %sums[%i, %j] : f32
    store %sum, %y[%i, %j] : f32
  }
}
)";
  Case c = product_of(kText);
  ASSERT_FALSE(c.buffers.empty());
  RenderOptions options = options_of(1);
  options.vector_bytes = 32;
  for (int64_t i = 0; i < 120; ++i) c.buffers[0].set_double(i, static_cast<double>(i % 7 - 3));
  for (int64_t i = 0; i < 160; ++i) c.buffers[1].set_double(i, static_cast<double>(i % 5 - 2));
  for (const int64_t lanes : {1, 3, 16}) expect_interpreters_results({c}, options_of(lanes));
  expect_interpreters_results({c}, options);
  const auto source = render({&c.kernel, 1}, options);
  ASSERT_TRUE(source) << source.error().to_string();
  // Six rows of two vectors, read and written once, and two vectors of the second factor.
  const auto count = [&](const std::string& word) {
    size_t found = 0;
    for (size_t at = source->text.find(word); at != std::string::npos;
         at = source->text.find(word, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("vstore8("), 12U) << source->text;
  EXPECT_EQ(count("vload8("), 14U) << source->text;
}

// A convolution reads its filter in place: the second factor begins where two loops are.
TEST(RenderedLanes, ProductsOfBuffersFromStarts) {
  constexpr std::string_view kText = R"(
kernel @product(%x: in f32[3, 6, 10], %w: in f32[3, 2, 10, 8], %y: out f32[6, 8]) index s32 grid() {
  scratch %sums : f32[7,16]
  lanes(%i: 7, %j: 16) {
    store 0.5, %sums[%i, %j] : f32
  }
  for %tap = (0, 3, 1) {
    for %half = (0, 2, 1) {
      contract box(6, 8, 10) %sums[1, 4] += %x[%tap, 0, 0] * %w[%tap, %half, 0, 0]
    }
  }
  lanes(%i: 6, %j: 8) {
    %row = add %i, 1 : s32
    %column = add %j, 4 : s32
    %sum = load %sums[%row, %column] : f32
    store %sum, %y[%i, %j] : f32
  }
}
)";
  std::string transposed(kText);
  transposed.replace(transposed.find("3, 6, 10"), 8, "3, 10, 6");
  transposed.insert(transposed.find("0, 0]\n    }") + 5, " transpose a");
  for (const std::string& text : {std::string(kText), transposed}) {
    Case c = product_of(text);
    ASSERT_FALSE(c.buffers.empty());
    for (int64_t i = 0; i < 180; ++i) c.buffers[0].set_double(i, static_cast<double>(i % 7 - 3));
    for (int64_t i = 0; i < 480; ++i) c.buffers[1].set_double(i, static_cast<double>(i % 11 - 2));
    for (const int64_t lanes : {1, 3, 16}) expect_interpreters_results({c}, options_of(lanes));
    RenderOptions options = options_of(1);
    options.vector_bytes = 32;
    expect_interpreters_results({c}, options);
  }
}

TEST(RenderedLanes, Atomics) {
  expect_interpreters_results(testing::atomic_cases({kS32, kU32, kS64}), options_of(4));
}

}  // namespace
}  // namespace tenon::kernel
