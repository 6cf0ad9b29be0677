#include "calls.h"

#include <algorithm>

#include "core/base/process/environment.h"
#include "core/base/process/library.h"

namespace tenon::opencl {
namespace {

// A row a workgroup, in vectors: for CPUs.
constexpr std::string_view kSoftmax = R"(
kernel void own_softmax(global const char* x, OFFSET at_x, global char* y, OFFSET at_y STOP) {
  global const FLOATS* from = (global const FLOATS*)(x + at_x) + get_group_id(0) * VECTORS;
  global FLOATS* to = (global FLOATS*)(y + at_y) + get_group_id(0) * VECTORS;
  union { FLOATS all; float each[WIDTH]; } most = {from[0]}, sum = {0};
  for (int i = 1; i < VECTORS; ++i) most.all = fmax(most.all, from[i]);
  float m = most.each[0], s = 0;
  for (int k = 1; k < WIDTH; ++k) m = fmax(m, most.each[k]);
  for (int i = 0; i < VECTORS; ++i) sum.all += to[i] = exp(from[i] - m);
  for (int k = 0; k < WIDTH; ++k) s += sum.each[k];
  for (int i = 0; i < VECTORS; ++i) to[i] /= s;
}
)";

struct ClBlast final : NamedLibrary {
  ClBlast() : NamedLibrary("TENON_CLBLAST_LIBRARY", {"libclblast.so.1"}) {}
  LibraryFunction<int, int, int, size_t, size_t, size_t, float, cl_mem, size_t, size_t, cl_mem,
                  size_t, size_t, float, cl_mem, size_t, size_t, cl_command_queue*, cl_event*>
      gemm{*this, "CLBlastSgemm"};
  Status status_of(int code, std::string_view function) const override {
    return internal_error("{}: code {}", function, code);
  }
};
const ClBlast& clblast() {
  static const ClBlast loaded;
  return loaded;
}

bool wants_clblast(const Found& found) {
  return environment_or("TENON_OPENCL_CLBLAST", found.is_host ? "0" : "1") == "1";
}

}  // namespace

Result<kernel::RenderedSource> own_kernel(const Found& found,
                                          const backend::LibraryCallSite& site) {
  const auto* const call = std::get_if<program::Composite>(&site.call);
  if (call == nullptr || call->name != "tenon.softmax" || call->attributes.size() != 1 ||
      site.operands.size() != 1 || !found.is_host) {
    return unimplemented("no kernel by hand");
  }
  const auto* const dimension = std::get_if<Dims>(&call->attributes[0].value);
  const Shape& x = site.operands[0];
  const int64_t columns = x.rank() == 0 ? 0 : x.dims().back();
  const int64_t width = std::clamp<int64_t>(found.target.vector_bytes / 4, 4, 16);
  if (dimension == nullptr || *dimension != Dims{x.rank() - 1} || columns == 0 ||
      columns % width != 0 || x.element_type() != ElementType::kF32) {
    return unimplemented("only rows of f32 in whole vectors");
  }
  std::string text = fmt::format(
      "#define FLOATS float{0}\n#define WIDTH {0}\n#define VECTORS {1}\n#define OFFSET {2}\n"
      "#define STOP {3}\n{4}",
      width, columns / width, found.offset_bits() == 64 ? "ulong" : "uint",
      found.shares_memory() ? ", global uint* stop" : "", kSoftmax);
  return kernel::RenderedSource{std::move(text),
                                {{"own_softmax", element_count(x.dims()) / columns, 1}}};
}

std::optional<std::string> clblast_plan(const Found& found, const backend::LibraryCallSite& site) {
  const auto* const call = std::get_if<program::Contraction>(&site.call);
  const auto is_matrix = [](const Shape& shape) {
    return shape.rank() == 2 && shape.element_type() == ElementType::kF32;
  };
  if (call == nullptr || call->lhs_contracting.size() != 1 ||
      !std::ranges::all_of(site.operands, is_matrix) || !is_matrix(site.results[0]) ||
      !wants_clblast(found) || !clblast().state().ok()) {
    return {};
  }
  const Dims& a = site.operands[0].dims();
  const Dims& b = site.operands[1].dims();
  const int64_t depth = call->lhs_contracting[0];
  const int64_t rhs_depth = call->rhs_contracting[0];
  return fmt::format("clblast {} {} {} {} {}", depth == 0 ? 1 : 0, rhs_depth, a[1 - depth],
                     b[1 - rhs_depth], a[depth]);
}

Status clblast_call(std::string_view plan, const ClArray& a, const ClArray& b, const ClArray& c,
                    cl_command_queue queue, cl_event* done) {
  constexpr int kRowMajor = 101;
  constexpr int kNo = 111;
  int a_is_transposed = 0, b_is_transposed = 0;
  size_t m = 0, n = 0, k = 0;
  TENON_TRY(clblast().state());  // The plan may be another machine's.
  if (std::sscanf(std::string(plan).c_str(), "clblast %d %d %zu %zu %zu", &a_is_transposed,
                  &b_is_transposed, &m, &n, &k) != 5) {
    return Status(ErrorCode::kFailedPrecondition, "the product was compiled for CLBlast");
  }
  return clblast().gemm(kRowMajor, kNo + a_is_transposed, kNo + b_is_transposed, m, n, k, 1,
                        a.memory, a.offset / 4, a_is_transposed != 0 ? m : k, b.memory,
                        b.offset / 4, b_is_transposed != 0 ? k : n, 0, c.memory, c.offset / 4, n,
                        &queue, done);
}

}  // namespace tenon::opencl
