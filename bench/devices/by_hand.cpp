// bench/devices/: programs that devices are compared by, and kernels by hand beside them.
//
// Kernels that somebody wrote for an OpenCL device, with the sizes of this folder's programs: what
// is there to be had of the device, beside what Tenon's source gets. For devices like a CPU's
// (PoCL): a work item has vectors of 16 floats, and rows or tiles of its own.
//
//   c++ -O2 -std=c++20 bench/devices/by_hand.cpp -lOpenCL -ldl -o by_hand && ./by_hand [ROUNDS]
//
// Prints the median and the least time of each kernel from its launch to its end, as `tenon run
// --time` measures an execution; "launch" is an empty kernel's. Results are checked. With CLBlast
// (libclblast.so.1) its product too.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr const char* kSource = R"(
#pragma OPENCL FP_CONTRACT ON

kernel void nothing() {}

// A tile of 4 x 16 results in registers; b is read by rows.
kernel void product(global const float* restrict a, global const float* restrict b,
                    global float* restrict c) {
  const int row = get_global_id(1) * 4, column = get_global_id(0) * 16;
  float16 c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  for (int k = 0; k < 1024; ++k) {
    const float16 v = vload16(0, b + k * 1024 + column);
    c0 = fma((float16)a[row * 1024 + k], v, c0);
    c1 = fma((float16)a[(row + 1) * 1024 + k], v, c1);
    c2 = fma((float16)a[(row + 2) * 1024 + k], v, c2);
    c3 = fma((float16)a[(row + 3) * 1024 + k], v, c3);
  }
  vstore16(c0, 0, c + row * 1024 + column);
  vstore16(c1, 0, c + (row + 1) * 1024 + column);
  vstore16(c2, 0, c + (row + 2) * 1024 + column);
  vstore16(c3, 0, c + (row + 3) * 1024 + column);
}

// Four places of a row of the image, 16 of 64 features.
kernel void convolution(global const float* restrict x, global const float* restrict w,
                        global float* restrict y) {
  const int out = get_global_id(0) * 16, column = get_global_id(1) * 4, row = get_global_id(2);
  float16 s[4] = {0, 0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    if (row + i < 1 || row + i > 56) continue;
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 64; ++k) {
        const float16 v = vload16(0, w + ((i * 3 + j) * 64 + k) * 64 + out);
        for (int p = 0; p < 4; ++p) {
          const int at = column + p + j - 1;
          const float f = at < 0 || at > 55 ? 0 : x[((row + i - 1) * 56 + at) * 64 + k];
          s[p] = fma((float16)f, v, s[p]);
        }
      }
    }
  }
  for (int p = 0; p < 4; ++p) vstore16(s[p], 0, y + (row * 56 + column + p) * 64 + out);
}

float across(float16 v) {
  const float8 a = v.lo + v.hi;
  const float4 b = a.lo + a.hi;
  const float2 c = b.lo + b.hi;
  return c.x + c.y;
}

kernel void softmax(global const float* restrict x, global float* restrict y) {
  global const float* from = x + get_global_id(0) * 1024;
  global float* to = y + get_global_id(0) * 1024;
  float16 most = vload16(0, from);
  for (int i = 1; i < 64; ++i) most = fmax(most, vload16(i, from));
  const float8 a = fmax(most.lo, most.hi);
  const float4 b = fmax(a.lo, a.hi);
  const float2 c = fmax(b.lo, b.hi);
  const float m = fmax(c.x, c.y);
  float16 total = 0;
  for (int i = 0; i < 64; ++i) {
    const float16 e = exp(vload16(i, from) - m);
    total += e;
    vstore16(e, i, to);
  }
  const float factor = 1 / across(total);
  for (int i = 0; i < 64; ++i) vstore16(vload16(i, to) * factor, i, to);
}

kernel void layer_norm(global const float* restrict x, global const float* restrict g,
                       global const float* restrict b, global float* restrict y) {
  global const float* from = x + get_global_id(0) * 1024;
  float16 sum = 0;
  for (int i = 0; i < 64; ++i) sum += vload16(i, from);
  const float mean = across(sum) / 1024;
  float16 squares = 0;
  for (int i = 0; i < 64; ++i) {
    const float16 d = vload16(i, from) - mean;
    squares = fma(d, d, squares);
  }
  const float factor = rsqrt(across(squares) / 1024 + 1e-5f);
  for (int i = 0; i < 64; ++i) {
    const float16 n = (vload16(i, from) - mean) * factor;
    vstore16(fma(n, vload16(i, g), vload16(i, b)), i, y + get_global_id(0) * 1024);
  }
}

// A square of 16 x 16, written by rows.
kernel void transpose(global const float* restrict x, global float* restrict y) {
  const int row = get_global_id(1) * 16, column = get_global_id(0) * 16;
  float square[16][16];
  for (int i = 0; i < 16; ++i) vstore16(vload16(0, x + (row + i) * 2048 + column), 0, square[i]);
  for (int j = 0; j < 16; ++j) {
    float out[16];
    for (int i = 0; i < 16; ++i) out[i] = square[i][j];
    vstore16(vload16(0, out), 0, y + (column + j) * 2048 + row);
  }
}

kernel void sum_of_all(global const float* restrict x, global float* restrict parts) {
  global const float* from = x + get_global_id(0) * 65536;
  float16 a = 0, b = 0;
  for (int i = 0; i < 4096; i += 2) {
    a += vload16(i, from);
    b += vload16(i + 1, from);
  }
  parts[get_global_id(0)] = across(a + b);
}

kernel void sum_of_parts(global const float* restrict parts, global float* restrict y) {
  float total = 0;
  for (int i = 0; i < 64; ++i) total += parts[i];
  y[0] = total;
}

kernel void sum_of_columns(global const float* restrict x, global float* restrict y) {
  float16 total = 0;
  for (int i = 0; i < 2048; ++i) total += vload16(0, x + i * 2048 + get_global_id(0) * 16);
  vstore16(total, 0, y + get_global_id(0) * 16);
}

kernel void block_sums(global const float* restrict x, global float* restrict sums) {
  float16 total = 0;
  for (int i = 0; i < 1024; ++i) total += vload16(get_global_id(0) * 1024 + i, x);
  sums[get_global_id(0)] = across(total);
}

kernel void cumulative_sum(global const float* restrict x, global const float* restrict sums,
                           global float* restrict y) {
  float before = 0;
  for (int i = 0; i < get_global_id(0); ++i) before += sums[i];
  for (int i = 0; i < 16384; ++i) {
    before += x[get_global_id(0) * 16384 + i];
    y[get_global_id(0) * 16384 + i] = before;
  }
}

kernel void add(global const float* restrict x, global const float* restrict y,
                global float* restrict z) {
  for (int i = 0; i < 64; ++i) {
    const size_t at = get_global_id(0) * 64 + i;
    vstore16(vload16(at, x) + vload16(at, y), at, z);
  }
}
)";

void must(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  std::fprintf(stderr, "by_hand: %s: OpenCL's error %d\n", what, code);
  std::exit(1);
}

using Floats = std::vector<float>;

struct MeasuredDevice {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;

  MeasuredDevice() {
    cl_platform_id platform = nullptr;
    must(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr), "clGetDeviceIDs");
    cl_int code = 0;
    context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
    must(code, "clCreateContext");
    queue = clCreateCommandQueue(context, id, 0, &code);
    must(code, "clCreateCommandQueue");
    const char* source = kSource;
    program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
    must(code, "clCreateProgramWithSource");
    must(clBuildProgram(program, 1, &id, "", nullptr, nullptr), "clBuildProgram");
  }

  cl_mem array(const Floats& values) const {
    cl_int code = 0;
    const cl_mem made =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                       values.size() * sizeof(float), const_cast<float*>(values.data()), &code);
    must(code, "clCreateBuffer");
    return made;
  }
  Floats read(cl_mem from, size_t count) const {
    Floats values(count);
    must(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, count * sizeof(float), values.data(), 0,
                             nullptr, nullptr),
         "clEnqueueReadBuffer");
    return values;
  }
  cl_kernel kernel(const char* name, const std::vector<cl_mem>& arguments) const {
    cl_int code = 0;
    const cl_kernel made = clCreateKernel(program, name, &code);
    must(code, name);
    for (cl_uint i = 0; i < arguments.size(); ++i) {
      must(clSetKernelArg(made, i, sizeof(cl_mem), &arguments[i]), name);
    }
    return made;
  }
  void launch(cl_kernel made, const std::vector<size_t>& grid) const {
    must(clEnqueueNDRangeKernel(queue, made, static_cast<cl_uint>(grid.size()), nullptr,
                                grid.data(), nullptr, 0, nullptr, nullptr),
         "clEnqueueNDRangeKernel");
  }
};

Floats random_floats(size_t count, uint32_t seed) {
  Floats values(count);
  for (float& each : values) {
    seed = seed * 1664525 + 1013904223;
    each = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return values;
}

int rounds = 30;

void time(const MeasuredDevice& device, const char* name, const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds + 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    must(clFinish(device.queue), name);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin() + 2, seconds.end());
  std::printf("%-16s by hand      median %8.1f us, least %8.1f us\n", name,
              seconds[2 + static_cast<size_t>(rounds) / 2] * 1e6, seconds[2] * 1e6);
  std::fflush(stdout);
}

// Elements of a result that the host computes in f64.
void check(const char* name, const Floats& found, const std::vector<size_t>& places,
           const std::function<double(size_t)>& expected) {
  for (const size_t at : places) {
    const double want = expected(at);
    if (std::abs(found[at] - want) > 1e-3 * std::max(1.0, std::abs(want))) {
      std::fprintf(stderr, "by_hand: %s: element %zu is %g, not %g\n", name, at, found[at], want);
      std::exit(1);
    }
  }
}

void products(const MeasuredDevice& d) {
  constexpr size_t n = 1024;
  const Floats a = random_floats(n * n, 1), b = random_floats(n * n, 2);
  const cl_mem x = d.array(a), y = d.array(b), z = d.array(Floats(n * n));
  const auto expected = [&](size_t at) {
    double sum = 0;
    for (size_t k = 0; k < n; ++k) sum += double(a[at / n * n + k]) * b[k * n + at % n];
    return sum;
  };
  const std::vector<size_t> places = {0, 77, n * n / 2 + 5, n * n - 1};
  const cl_kernel kernel = d.kernel("product", {x, y, z});
  time(d, "product", [&] { d.launch(kernel, {n / 16, n / 4}); });
  check("product", d.read(z, n * n), places, expected);

  using Sgemm = int(int, int, int, size_t, size_t, size_t, float, cl_mem, size_t, size_t, cl_mem,
                    size_t, size_t, float, cl_mem, size_t, size_t, cl_command_queue*, cl_event*);
  void* const library = dlopen("libclblast.so.1", RTLD_NOW);
  if (library == nullptr) return;
  auto* const sgemm = reinterpret_cast<Sgemm*>(dlsym(library, "CLBlastSgemm"));
  cl_command_queue queue = d.queue;
  constexpr int kRowMajor = 101, kPlain = 111;  // CLBlast's numbers.
  time(d, "CLBlast", [&] {
    must(
        sgemm(kRowMajor, kPlain, kPlain, n, n, n, 1, x, 0, n, y, 0, n, 0, z, 0, n, &queue, nullptr),
        "CLBlastSgemm");
  });
  check("CLBlast", d.read(z, n * n), places, expected);
}

void convolution(const MeasuredDevice& d) {
  constexpr size_t size = 56, features = 64;
  const Floats x = random_floats(size * size * features, 1);
  const Floats w = random_floats(9 * features * features, 2);
  const cl_mem y = d.array(Floats(size * size * features));
  const cl_kernel kernel = d.kernel("convolution", {d.array(x), d.array(w), y});
  time(d, "convolution", [&] { d.launch(kernel, {features / 16, size / 4, size}); });
  check(
      "convolution", d.read(y, size * size * features), {0, 70, 100'000, 200'703}, [&](size_t at) {
        const size_t out = at % features, column = at / features % size, row = at / features / size;
        double sum = 0;
        for (size_t i = 0; i < 3; ++i) {
          for (size_t j = 0; j < 3; ++j) {
            if (row + i < 1 || row + i > size || column + j < 1 || column + j > size) continue;
            for (size_t k = 0; k < features; ++k) {
              sum += double(x[((row + i - 1) * size + column + j - 1) * features + k]) *
                     w[((i * 3 + j) * features + k) * features + out];
            }
          }
        }
        return sum;
      });
}

void rows(const MeasuredDevice& d) {
  constexpr size_t n = 1024;
  const Floats x = random_floats(n * n, 1), g = random_floats(n, 2), b = random_floats(n, 3);
  const cl_mem in = d.array(x), y = d.array(Floats(n * n));
  const cl_kernel softmax = d.kernel("softmax", {in, y});
  time(d, "softmax", [&] { d.launch(softmax, {n}); });
  check("softmax", d.read(y, n * n), {0, 5000, n * n - 1}, [&](size_t at) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += std::exp(double(x[at / n * n + i]));
    return std::exp(double(x[at])) / sum;
  });
  const cl_kernel norm = d.kernel("layer_norm", {in, d.array(g), d.array(b), y});
  time(d, "layer_norm", [&] { d.launch(norm, {n}); });
  check("layer_norm", d.read(y, n * n), {0, 5000, n * n - 1}, [&](size_t at) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) sum += x[at / n * n + i];
    const double mean = sum / n;
    for (size_t i = 0; i < n; ++i) squares += std::pow(x[at / n * n + i] - mean, 2);
    return (x[at] - mean) / std::sqrt(squares / n + 1e-5) * g[at % n] + b[at % n];
  });
}

void squares(const MeasuredDevice& d) {
  constexpr size_t n = 2048;
  const Floats x = random_floats(n * n, 1), z = random_floats(n * n, 2);
  const cl_mem in = d.array(x), y = d.array(Floats(n * n)), parts = d.array(Floats(64));
  const cl_kernel transpose = d.kernel("transpose", {in, y});
  time(d, "transpose", [&] { d.launch(transpose, {n / 16, n / 16}); });
  check("transpose", d.read(y, n * n), {1, 5000, n * n - 2},
        [&](size_t at) { return x[at % n * n + at / n]; });
  const cl_kernel columns = d.kernel("sum_of_columns", {in, y});
  time(d, "sum_of_columns", [&] { d.launch(columns, {n / 16}); });
  check("sum_of_columns", d.read(y, n), {0, 77, n - 1}, [&](size_t at) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += x[i * n + at];
    return sum;
  });
  const cl_kernel part = d.kernel("sum_of_all", {in, parts});
  const cl_kernel whole = d.kernel("sum_of_parts", {parts, y});
  time(d, "sum_of_all", [&] {
    d.launch(part, {64});
    d.launch(whole, {1});
  });
  check("sum_of_all", d.read(y, 1), {0}, [&](size_t) {
    double sum = 0;
    for (const float each : x) sum += each;
    return sum;
  });
  const cl_kernel add = d.kernel("add", {in, d.array(z), y});
  time(d, "add", [&] { d.launch(add, {n * n / 1024}); });
  check("add", d.read(y, n * n), {0, 77, n * n - 1}, [&](size_t at) { return x[at] + z[at]; });
}

void scan(const MeasuredDevice& d) {
  constexpr size_t n = 1 << 20;
  const Floats x = random_floats(n, 1);
  const cl_mem in = d.array(x), sums = d.array(Floats(64)), y = d.array(Floats(n));
  const cl_kernel blocks = d.kernel("block_sums", {in, sums});
  const cl_kernel sum = d.kernel("cumulative_sum", {in, sums, y});
  time(d, "cumulative_sum", [&] {
    d.launch(blocks, {64});
    d.launch(sum, {64});
  });
  check("cumulative_sum", d.read(y, n), {0, 20'000, n - 1}, [&](size_t at) {
    double total = 0;
    for (size_t i = 0; i <= at; ++i) total += x[i];
    return total;
  });
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) rounds = std::max(1, std::atoi(words[1]));
  const MeasuredDevice device;
  const cl_kernel nothing = device.kernel("nothing", {});
  time(device, "launch", [&] { device.launch(nothing, {1}); });
  products(device);
  convolution(device);
  rows(device);
  squares(device);
  scan(device);
  return 0;
}
