// Work that the plug-in takes whole, instead of Tenon's kernels: kernels written by hand, and
// CLBlast's products.
#pragma once

#include <optional>

#include "core/kernel/render/render.h"
#include "driver.h"

namespace tenon::opencl {

/// A kernel written by hand for this call. Its parameters are those of rendered kernels: each
/// operand and result as a pointer and an offset in bytes, then the flag to stop, if there is one.
/// Errors: kUnimplemented, if there is none.
Result<kernel::RenderedSource> own_kernel(const Found& found, const backend::LibraryCallSite& site);

/// The plan of a product of f32 by CLBlast, if this call is one and CLBlast can be loaded and is
/// wanted: on devices with memory of their own, or where TENON_OPENCL_CLBLAST is 1.
std::optional<std::string> clblast_plan(const Found& found, const backend::LibraryCallSite& site);

struct ClArray {
  cl_mem memory;
  size_t offset;  ///< In bytes.
};
/// Queues the product of such a plan, which begins with "clblast ".
Status clblast_call(std::string_view plan, const ClArray& a, const ClArray& b, const ClArray& c,
                    cl_command_queue queue, cl_event* done);

}  // namespace tenon::opencl
