// NVRTC for tests of samples/opencl/nvrtc: compiles CUDA C++ for the host, to machine code that
// driver.cpp runs. TENON_FAKE_CXX names the compiler of C++ (c++).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

namespace fs = std::filesystem;

// CUDA C++ as C++: what rendered sources use of it. driver.cpp sets the two indices and the
// function that waits for the other lanes.
constexpr const char* kCudaAsCpp = R"(
#include <math.h>
#include <string.h>
struct TenonIndex { unsigned x, y, z; };
extern "C" { TenonIndex threadIdx, blockIdx; void (*tenon_barrier)(); }
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(lanes)
#define __shared__ static
#define __syncthreads() tenon_barrier()
static float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
static long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static void atomicAdd(int* to, int x) { *to = (int)((unsigned)*to + (unsigned)x); }
static void atomicAdd(unsigned* to, unsigned x) { *to += x; }
static void atomicAdd(unsigned long long* to, unsigned long long x) { *to += x; }
template <class T> void atomicMin(T* to, T x) { if (x < *to) *to = x; }
template <class T> void atomicMax(T* to, T x) { if (x > *to) *to = x; }
template <class T> void atomicAnd(T* to, T x) { *to &= x; }
template <class T> void atomicOr(T* to, T x) { *to |= x; }
template <class T> void atomicXor(T* to, T x) { *to ^= x; }
template <int...> struct TenonPlaces {};
template <int N, int... I> struct TenonCount : TenonCount<N - 1, N - 1, I...> {};
template <int... I> struct TenonCount<0, I...> { using Places = TenonPlaces<I...>; };
template <class... P, int... I>
void tenon_call(void (*kernel)(P...), void** arguments, TenonPlaces<I...>) {
  kernel(*(P*)arguments[I]...);
}
template <class... P> unsigned tenon_call(void (*kernel)(P...), void** arguments) {
  if (arguments != 0) tenon_call(kernel, arguments, typename TenonCount<sizeof...(P)>::Places());
  return sizeof...(P);
}
#line 1 "kernels.cu"
)";

struct FakeProgram {
  std::string source, log, code;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A function for each kernel that takes its arguments as the driver gets them.
std::string calls_of(const std::string& source) {
  static const std::regex kKernel(R"(__launch_bounds__\(\d+\) (\w+)\()");
  std::string calls = "\n";
  for (std::sregex_iterator at(source.begin(), source.end(), kKernel), end; at != end; ++at) {
    const std::string name = (*at)[1];
    calls += "extern \"C\" unsigned tenon_call_" + name +
             "(void** arguments) { return tenon_call(&" + name + ", arguments); }\n";
  }
  return calls;
}

enum Outcome { kCompiled = 0, kFailed = 6 };  // The numbers are NVRTC's.

Outcome compile(FakeProgram& program) {
  std::string folder = (fs::temp_directory_path() / "tenon_fake_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return kFailed;
  std::ofstream(folder + "/host.cpp") << kCudaAsCpp << program.source << calls_of(program.source);
  const char* const set = std::getenv("TENON_FAKE_CXX");
  // Relative names, so that equal sources give equal code.
  const std::string command = "cd " + folder + " && " + (set == nullptr ? "c++" : set) +
                              " -std=c++17 -O1 -w -ffp-contract=off -shared -fPIC -o host.so "
                              "host.cpp >log 2>&1";
  const int status = std::system(command.c_str());
  program.log = content(folder + "/log");
  if (status == 0) program.code = content(folder + "/host.so");
  fs::remove_all(folder);
  return status == 0 ? kCompiled : kFailed;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVRTC's names
extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 1;
  return 0;
}
int nvrtcCreateProgram(FakeProgram** program, const char* source, const char*, int,
                       const char* const*, const char* const*) {
  *program = new FakeProgram{source, {}, {}};
  return 0;
}
int nvrtcDestroyProgram(FakeProgram** program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(FakeProgram* program, int, const char* const*) { return compile(*program); }
int nvrtcGetProgramLogSize(FakeProgram* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(FakeProgram* program, char* log) {
  std::strcpy(log, program->log.c_str());
  return 0;
}
int nvrtcGetCUBINSize(FakeProgram* program, size_t* size) {
  *size = program->code.size();
  return 0;
}
int nvrtcGetCUBIN(FakeProgram* program, char* code) {
  program->code.copy(code, program->code.size());
  return 0;
}
const char* nvrtcGetErrorString(int code) {
  return code == kFailed ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_OTHER";
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
