// The host's services for plug-ins.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <mutex>
#include <thread>

#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/c_types.h"
#include "core/kernel/render/render.h"
#include "core/kernel/serial/serial.h"
#include "core/kernel/text/text.h"
#include "core/program/serial.h"

using tenon::kernel::Access;
using tenon::kernel::Kernel;

struct TenonKernel::KernelDescription {
  std::string name;  // The name of its function in rendered source.
  std::vector<TenonBufferInfo> buffers;
};

struct TenonCall::CallDescription {
  std::string kind;
  std::vector<TenonArrayInfo> operands;
  std::vector<TenonArrayInfo> results;
  std::vector<tenon::program::LibraryCallAttribute> members;
  std::vector<TenonAttribute> attributes;
  std::vector<TenonCompositeAttribute> composite_attributes;
  TenonComposite composite{};
};

namespace tenon::backend {
namespace {

std::shared_ptr<const TenonKernel::KernelDescription> description_of(const Kernel& kernel) {
  auto description = std::make_shared<TenonKernel::KernelDescription>();
  description->name = kernel::source_name(kernel.name);
  for (size_t i = 0; i < kernel.buffer_count; ++i) {
    const kernel::Memory& m = kernel.memories[i];
    TenonBufferInfo info{};
    info.size = sizeof info;
    info.type = c_name_of(m.type);
    info.bytes = m.bytes();
    info.reads = m.access != Access::kOut ? 1 : 0;
    info.writes = m.access != Access::kIn ? 1 : 0;
    description->buffers.push_back(info);
  }
  return description;
}

// Copies as much of `all` as the caller knows of (B1).
template <class Info>
TenonCode give(Info all, Info* to) {
  const size_t size = std::min(to->size, sizeof all);
  all.size = to->size;
  std::memcpy(to, &all, size);
  return TENON_OK;
}

TenonCode describe(const TenonKernel* handle, TenonKernelInfo* info) {
  const Kernel& kernel = *handle->kernel;
  try {
    std::call_once(handle->described, [&] { handle->description = description_of(kernel); });
  } catch (const std::exception&) {
    return TENON_RESOURCE_EXHAUSTED;
  }
  const TenonKernel::KernelDescription& d = *handle->description;
  TenonKernelInfo all{};
  all.name = d.name.c_str();
  all.label = kernel.label.c_str();
  all.buffers = d.buffers.data();
  all.buffer_count = d.buffers.size();
  all.scalar_count = kernel.scalars.size();
  all.grid = kernel.grid.data();
  all.grid_rank = kernel.grid.size();
  return give(all, info);
}

struct LastRender {
  std::mutex mutex;
  std::optional<kernel::RenderOptions> options;
};
LastRender& last_render() {
  static LastRender last;
  return last;
}

Result<kernel::RenderOptions> options_of(const TenonRenderOptions& from) {
  kernel::RenderOptions options;
  options.language = from.language == TENON_OPENCL ? kernel::Language::kOpenCl
                     : from.language == TENON_CUDA ? kernel::Language::kCuda
                                                   : kernel::Language::kC;
  if (from.lanes > 0) options.lanes = from.lanes;
  if (options.language == kernel::Language::kC) options.table = "kernel_table";
  if (from.offset_bits != 0 && from.offset_bits != 32 && from.offset_bits != 64) {
    return invalid_argument("render: offsets have 0, 32 or 64 bits, not {}", from.offset_bits);
  }
  if (from.vector_bytes < 0)
    return invalid_argument("render: vectors of {} bytes", from.vector_bytes);
  options.offset_bits = static_cast<int>(from.offset_bits);
  options.vector_bytes = from.vector_bytes;
  options.fit_lanes = from.fit_lanes != 0;
  options.stop = from.stop != 0;
  options.rename = from.rename != 0;
  return options;
}

TenonCode render_as(const TenonKernel* const* kernels, size_t count,
                    const TenonRenderOptions* wanted, const TenonSink* source, void* context,
                    void (*rendered)(void* context, size_t kernel, const TenonRenderedKernel* how),
                    const TenonSink* error) {
  try {
    std::vector<Kernel> copies;
    for (size_t i = 0; i < count; ++i) copies.push_back(*kernels[i]->kernel);
    TenonRenderOptions known{};
    std::memcpy(&known, wanted, std::min(wanted->size, sizeof known));
    const auto options = options_of(known);
    if (!options) return to_code(options.error(), error);
    {
      LastRender& last = last_render();
      const std::lock_guard lock(last.mutex);
      last.options = *options;
    }
    const auto made = kernel::render(copies, *options);
    if (!made) return to_code(made.error(), error);
    write(source, made->text);
    for (size_t i = 0; rendered != nullptr && i < made->kernels.size(); ++i) {
      const kernel::RenderedKernel& each = made->kernels[i];
      const TenonRenderedKernel how = {sizeof how, each.function.c_str(), each.workgroups,
                                       each.lanes};
      rendered(context, i, &how);
    }
    return TENON_OK;
  } catch (const std::exception& e) {  // Reporting it allocates no memory.
    write(error, "the host could not render: ");
    write(error, e.what());
    return TENON_INTERNAL;
  }
}

TenonCode render(const TenonKernel* const* kernels, size_t count, TenonLanguage language,
                 int64_t lanes, const TenonSink* source, const TenonSink* error) {
  TenonRenderOptions options{};
  options.size = sizeof options;
  options.language = language;
  options.lanes = lanes;
  return render_as(kernels, count, &options, source, nullptr, nullptr, error);
}

// Writes nothing if the host has no memory for the text.
template <class Make>
void write_made(const TenonSink* sink, const Make& make) {
  try {
    write(sink, make());
  } catch (const std::exception&) {
  }
}

void print(const TenonKernel* kernel, const TenonSink* text) {
  write_made(text, [&] { return kernel::print(*kernel->kernel); });
}

void serialize(const TenonKernel* kernel, const TenonSink* bytes) {
  write_made(bytes, [&] { return kernel::save(*kernel->kernel); });
}

std::vector<TenonArrayInfo> array_infos(std::span<const Shape> shapes,
                                        const std::vector<bool>& constant) {
  std::vector<TenonArrayInfo> infos;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const bool same = i < constant.size() && constant[i];
    infos.push_back({sizeof(TenonArrayInfo), c_name_of(shapes[i].element_type()),
                     shapes[i].dims().data(), shapes[i].dims().size(),
                     static_cast<uint8_t>(same ? 1 : 0)});
  }
  return infos;
}

TenonCompositeAttribute attribute_info(const program::CompositeAttribute& attribute) {
  TenonCompositeAttribute info{};
  info.size = sizeof info;
  info.name = attribute.name.c_str();
  if (const auto* integers = std::get_if<Dims>(&attribute.value)) {
    info.integers = integers->data();
    info.count = integers->size();
  } else if (const auto* reals = std::get_if<std::vector<double>>(&attribute.value)) {
    info.reals = reals->data();
    info.count = reals->size();
  } else {
    info.text = std::get<std::string>(attribute.value).c_str();
  }
  return info;
}

// The site outlives the description, which refers to its names and numbers.
std::shared_ptr<const TenonCall::CallDescription> description_of(const LibraryCallSite& site) {
  auto description = std::make_shared<TenonCall::CallDescription>();
  description->kind = program::name_of(site.call);
  description->operands = array_infos(site.operands, site.constant);
  description->results = array_infos(site.results, {});
  description->members = program::attributes_of(site.call);
  for (const program::LibraryCallAttribute& each : description->members) {
    description->attributes.push_back(
        {sizeof(TenonAttribute), each.name.c_str(), each.values.data(), each.values.size()});
  }
  if (const auto* composite = std::get_if<program::Composite>(&site.call)) {
    for (const program::CompositeAttribute& each : composite->attributes) {
      description->composite_attributes.push_back(attribute_info(each));
    }
    description->composite = {sizeof(TenonComposite), composite->name.c_str(), composite->version,
                              description->composite_attributes.data(),
                              description->composite_attributes.size()};
  }
  return description;
}

TenonCode describe_call(const TenonCall* call, TenonCallInfo* info) {
  try {
    std::call_once(call->described, [&] { call->description = description_of(*call->site); });
  } catch (const std::exception&) {
    return TENON_RESOURCE_EXHAUSTED;
  }
  const TenonCall::CallDescription& d = *call->description;
  TenonCallInfo all{};
  all.kind = d.kind.c_str();
  all.operands = d.operands.data();
  all.operand_count = d.operands.size();
  all.results = d.results.data();
  all.result_count = d.results.size();
  all.attributes = d.attributes.data();
  all.attribute_count = d.attributes.size();
  all.composite = d.composite.name == nullptr ? nullptr : &d.composite;
  return give(all, info);
}

void serialize_call(const TenonCall* call, const TenonSink* bytes) {
  write_made(bytes, [&] { return program::save_call(call->site->call); });
}

void serialize_segment(const TenonSegment* segment, const TenonSink* bytes) {
  write_made(bytes, [&] { return program::save(*segment->program); });
}

struct Log {
  std::mutex mutex;
  std::function<void(std::string_view)> write = [](std::string_view text) {
    std::cerr << "tenon: " << text << '\n';
  };
};
Log& log_state() {
  static Log log;
  return log;
}

void log(const char* text) {
  Log& state = log_state();
  const std::lock_guard lock(state.mutex);
  try {
    state.write(text);
  } catch (const std::exception&) {
  }
}

void parallel_for(size_t count, void (*body)(void* context, size_t index), void* context) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(context, i);
  };
  std::vector<std::thread> threads;
  const size_t others = std::min<size_t>(count, std::thread::hardware_concurrency());
  try {
    for (size_t t = 1; t < others; ++t) threads.emplace_back(work);
  } catch (const std::exception&) {  // The threads started so far do all the work.
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

const TenonHost* host_services() {
  static const TenonHost host = {sizeof(TenonHost),
                                 TENON_ABI_MAJOR,
                                 TENON_ABI_MINOR,
                                 describe,
                                 render,
                                 print,
                                 serialize,
                                 log,
                                 parallel_for,
                                 describe_call,
                                 serialize_call,
                                 serialize_segment,
                                 render_as};
  return &host;
}

std::optional<kernel::RenderOptions> last_render_options() {
  LastRender& last = last_render();
  const std::lock_guard lock(last.mutex);
  return last.options;
}

void set_log(std::function<void(std::string_view)> log) {
  Log& state = log_state();
  const std::lock_guard lock(state.mutex);
  state.write = std::move(log);
}

}  // namespace tenon::backend
