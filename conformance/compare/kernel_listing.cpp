#include "conformance/compare/kernel_listing.h"

#include <algorithm>
#include <cstring>

#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/math/scalar.h"
#include "core/kernel/render/listing.h"
#include "core/program/interpreter.h"

namespace tenon::conformance {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;

Status interpret(const kernel::Kernel& kernel, const LaunchedKernel& launched, Buffers& buffers,
                 kernel::Watch* watch) {
  std::vector<kernel::BufferArgument> arguments;
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<std::byte>& bytes = buffers[launched.same_as[i]];
    arguments.push_back({bytes.data(), bytes.size()});
  }
  kernel::InterpreterOptions options;
  options.check = false;
  options.watch = watch;
  return kernel::Interpreter(kernel).run(arguments, launched.scalars, options);
}

// An element of a memory as text.
std::string element_text(const kernel::Memory& memory, std::span<const std::byte> bytes,
                         int64_t element) {
  const size_t width = storage_bytes(memory.type);
  uint64_t raw = 0;
  std::memcpy(&raw, bytes.data() + static_cast<size_t>(element) * width, width);
  const uint64_t bits = width == 8 ? raw : kernel::from_pattern(memory.type, raw);
  return kernel::value_text(memory.type, bits);
}

// The last launch of a program that writes one of its results.
class LaunchFinder {
 public:
  LaunchFinder(const program::Program& program, size_t result)
      : program_(program), root_(program.root(program.results[result])) {}

  void take(const program::Launch& launch, std::span<const kernel::BufferArgument> buffers) {
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (program_.root(launch.buffers[i]) != root_) continue;
      if (kernel.memories[i].access == kernel::Access::kIn) continue;
      launch_ = &launch;
      buffer_ = i;
    }
    if (launch_ != &launch) return;
    buffers_.clear();
    same_as_.clear();
    for (size_t i = 0; i < buffers.size(); ++i) {
      buffers_.emplace_back(buffers[i].data, buffers[i].data + buffers[i].bytes);
      const auto first = std::ranges::find(buffers, buffers[i].data, &kernel::BufferArgument::data);
      same_as_.push_back(static_cast<size_t>(first - buffers.begin()));
    }
  }

  bool has_found() const { return launch_ != nullptr; }
  size_t buffer() const { return buffer_; }
  LaunchedKernel launched() const {
    return {program_.kernels[launch_->kernel], buffers_, launch_->scalars, same_as_};
  }

 private:
  const program::Program& program_;
  const program::BufferId root_;
  const program::Launch* launch_ = nullptr;
  size_t buffer_ = 0;
  Buffers buffers_;
  std::vector<size_t> same_as_;
};

}  // namespace

std::string launch_listing(const LaunchedKernel& launched,
                           const std::optional<kernel::RenderOptions>& source, size_t buffer,
                           std::span<const std::byte> got, size_t begin, size_t end) {
  const auto rendered = source ? kernel::list_source(launched.kernel, *source)
                               : Result<kernel::Listing>(kernel::list_text(launched.kernel));
  if (!rendered) return {};
  const kernel::Kernel& kernel = rendered->kernel;
  const kernel::Memory& memory = kernel.memory(static_cast<kernel::MemoryId>(buffer));
  if (memory.packed) return {};
  Buffers right = launched.buffers;
  if (!interpret(kernel, launched, right, nullptr).ok()) return {};
  const std::vector<std::byte>& bytes = right[launched.same_as[buffer]];
  const size_t width = storage_bytes(memory.type);
  end = std::min({end, bytes.size(), got.size()});
  for (size_t at = begin / width * width; at + width <= end; at += width) {
    if (std::memcmp(bytes.data() + at, got.data() + at, width) == 0) continue;
    kernel::Watch watch;
    watch.buffer = static_cast<kernel::MemoryId>(buffer);
    watch.element = static_cast<int64_t>(at / width);
    Buffers again = launched.buffers;
    if (!interpret(kernel, launched, again, &watch).ok() || !watch.was_stored) return {};
    return kernel::annotate(*rendered, watch, element_text(memory, got, watch.element));
  }
  return {};
}

std::string kernel_listing(const DeviceProgram& device, const std::vector<Literal>& arguments,
                           const WrongResult& wrong) {
  if (wrong.result >= device.program.results.size()) return {};
  program::ProgramInterpreter interpreter(device.program);
  LaunchFinder finder(device.program, wrong.result);
  interpreter.set_launch_observer(
      [&](const program::Launch& launch, std::span<const kernel::BufferArgument> buffers) {
        finder.take(launch, buffers);
      });
  kernel::InterpreterOptions options;
  options.check = false;
  if (!interpreter.run(arguments, options) || !finder.has_found()) return {};
  const auto bytes = std::as_bytes(std::span(wrong.got.data()));
  if (wrong.got.element_count() == 0) return {};
  const size_t width = bytes.size() / static_cast<size_t>(wrong.got.element_count());
  const size_t begin = static_cast<size_t>(wrong.element) * width;
  return launch_listing(finder.launched(), device.source, finder.buffer(), bytes, begin,
                        begin + width);
}

}  // namespace tenon::conformance
