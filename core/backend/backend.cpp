#include "core/backend/backend.h"

#include <bit>
#include <cstring>

#include "core/kernel/ir/ops.h"
#include "core/kernel/render/render.h"

namespace tenon::backend {
namespace {

struct BoxDimension {
  int64_t size = 1;
  int64_t destination = 0;  // Strides in bytes.
  int64_t source = 0;

  bool continues(const BoxDimension& inner) const {
    return destination == inner.destination * inner.size && source == inner.source * inner.size;
  }
};

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

namespace {

// The dimensions of a box from the innermost on, without those of one element, and with each that
// continues the one within it merged into that.
std::vector<BoxDimension> merged_dimensions(const Box& box) {
  std::vector<BoxDimension> merged;
  for (size_t i = box.sizes.size(); i-- > 0;) {
    const BoxDimension d = {box.sizes[i], box.destination_strides[i], box.source_strides[i]};
    if (d.size == 1) continue;
    if (!merged.empty() && d.continues(merged.back())) {
      merged.back().size *= d.size;
    } else {
      merged.push_back(d);
    }
  }
  return merged;
}

std::optional<PitchedBox::Pitches> pitches_of(const PitchedBox& box, int64_t row, int64_t slice) {
  const auto least_row = static_cast<int64_t>(box.row_bytes);
  if (box.rows == 1) row = least_row;
  const int64_t least_slice = row * static_cast<int64_t>(box.rows);
  if (box.slices == 1) slice = least_slice;
  if (row < least_row || slice < least_slice || slice % row != 0) return {};
  return PitchedBox::Pitches{static_cast<size_t>(row), static_cast<size_t>(slice)};
}

}  // namespace

std::optional<PitchedBox> pitched(const Box& box) {
  std::vector<BoxDimension> left = merged_dimensions(box);
  PitchedBox made;
  made.row_bytes = static_cast<size_t>(box.element_bytes);
  if (!left.empty() && left[0].destination == box.element_bytes &&
      left[0].source == box.element_bytes) {
    made.row_bytes *= static_cast<size_t>(left[0].size);
    left.erase(left.begin());
  }
  if (left.size() > 2) return {};
  left.resize(2, {1, 0, 0});
  made.rows = static_cast<size_t>(left[0].size);
  made.slices = static_cast<size_t>(left[1].size);
  if (made.row_bytes * made.rows * made.slices == 0) return {};
  const auto destination = pitches_of(made, left[0].destination, left[1].destination);
  const auto source = pitches_of(made, left[0].source, left[1].source);
  if (!destination || !source) return {};
  made.destination = *destination;
  made.source = *source;
  return made;
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
Result<EventTimes> Device::event_times(EventHandle) {
  return tl::make_unexpected(not_offered("event_time"));
}
Status Device::abort() { return not_offered("abort"); }

}  // namespace tenon::backend
