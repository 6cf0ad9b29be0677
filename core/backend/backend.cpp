#include "core/backend/backend.h"

#include <bit>
#include <cstring>

#include "core/kernel/ir/ops.h"
#include "core/kernel/render/render.h"

namespace tenon::backend {
namespace {

Status not_offered(std::string_view what) {
  return Status(unimplemented("the device does not offer {}", what));
}

// Copies the first `rank` dimensions of the box, in runs of `width` bytes.
void copy_runs(std::byte* to, const std::byte* from, const Box& box, size_t axis, size_t rank,
               size_t width) {
  if (axis == rank) {
    std::memcpy(to, from, width);
    return;
  }
  for (int64_t i = 0; i < box.sizes[axis]; ++i) {
    copy_runs(to + i * box.destination_strides[axis], from + i * box.source_strides[axis], box,
              axis + 1, rank, width);
  }
}

}  // namespace

void copy_box(std::byte* to, const std::byte* from, const Box& box) {
  int64_t width = box.element_bytes;
  size_t rank = box.sizes.size();
  for (; rank > 0; --rank) {
    const size_t inner = rank - 1;
    if (box.destination_strides[inner] != width || box.source_strides[inner] != width) break;
    width *= box.sizes[inner];
  }
  if (width > 0) copy_runs(to, from, box, 0, rank, static_cast<size_t>(width));
}

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::kTooMuchScratch:
      return "too much scratch memory";
    case Reason::kTooMuchPrivate:
      return "too much private memory";
    case Reason::kTooManyParameters:
      return "too many parameters";
    case Reason::kTooMuchCode:
      return "too much code";
    case Reason::kNoSuchOperation:
      return "an operation that it does not have";
    case Reason::kNoSuchType:
      return "a type that it does not have";
    case Reason::kOther:
      break;
  }
  return "another reason";
}

Status Device::fill(uint32_t, const MemoryAddress&, int64_t, std::span<const std::byte>) {
  return not_offered("fill");
}
Status Device::copy_box(uint32_t, const MemoryAddress&, const MemoryAddress&, const Box&) {
  return not_offered("copy_box");
}
Status Device::call(uint32_t, const LibraryCallLaunch&) { return not_offered("call"); }
Status Device::pack(uint32_t, std::string_view, uint32_t, const MemoryAddress&,
                    const MemoryAddress&) {
  return not_offered("pack");
}
Result<std::vector<Statistic>> Device::statistics() {
  return tl::make_unexpected(not_offered("statistics"));
}
Result<LibraryCallPlan> Backend::plan(const TargetInfo&, const LibraryCallSite&) {
  return tl::make_unexpected(not_offered("plan"));
}
Result<std::string> Backend::source(const TargetInfo& target, Kernels kernels) {
  return rendered_source(target, kernels, "renders no source: it compiles kernels itself");
}
Result<std::string> Backend::rendered_source(const TargetInfo& target, Kernels kernels,
                                             std::string_view none) {
  const kernel::RenderCapture capture;
  const Result<Compiled> compiled = compile(target, kernels);
  std::string text;
  for (const std::string& each : capture.texts()) text += each;
  if (!text.empty()) return text;
  if (!compiled) return tl::make_unexpected(compiled.error());
  if (!compiled->declined.empty()) return declined_source(kernels, compiled->declined.front());
  return unimplemented("{} {}", name(), none);
}
tl::unexpected<Status> Backend::declined_source(Kernels kernels, const Declined& declined) const {
  const std::string which = declined.kernel < kernels.size()
                                ? "@" + kernels[declined.kernel]->name
                                : fmt::format("kernel {}", declined.kernel);
  const std::string why = declined.text.empty() ? "" : ": " + declined.text;
  return tl::make_unexpected(
      Status(unimplemented("{} declines {}: {}{}", name(), which, name_of(declined.reason), why)));
}
Result<std::string> Backend::compile_segment(const TargetInfo&, const program::Program&) {
  return tl::make_unexpected(not_offered("compile_segment"));
}
Result<std::byte*> Device::map(MemoryHandle) { return tl::make_unexpected(not_offered("map")); }
Result<MemoryHandle> Device::import_memory(uint32_t, std::span<const std::byte>) {
  return tl::make_unexpected(not_offered("import_memory"));
}
Result<double> Device::event_time(EventHandle) {
  return tl::make_unexpected(not_offered("event_time"));
}
Status Device::abort() { return not_offered("abort"); }

}  // namespace tenon::backend
