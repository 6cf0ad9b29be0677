// The extension Layouts: every array is row-major, at this interface.
//
// Without it jaxlib would take the layouts of parameters and results from the optimized program,
// which it would ask for, and convert to HLO, three times after each compilation.
#include "frameworks/pjrt/c_api/layouts_extension.h"

#include <map>
#include <memory>
#include <mutex>

#include "frameworks/pjrt/entries/buffers.h"
#include "frameworks/pjrt/entries/executables.h"
#include "frameworks/pjrt/entries/table.h"

/// Layouts are immutable, and there is one for each rank, for the process.
struct PJRT_Layouts_MemoryLayout {
  std::string text;
};

namespace tenon::pjrt {

PJRT_Layouts_MemoryLayout* row_major_layout(size_t rank) {
  static std::mutex mutex;
  static auto* const layouts = new std::map<size_t, PJRT_Layouts_MemoryLayout>();
  const std::lock_guard lock(mutex);
  PJRT_Layouts_MemoryLayout& layout = (*layouts)[rank];
  if (layout.text.empty()) {
    layout.text = fmt::format("{{{}}}", fmt::join(row_major_order(rank), ","));
  }
  return &layout;
}

namespace {

Status destroy(PJRT_Layouts_MemoryLayout_Destroy_Args&) { return {}; }

Status serialize(PJRT_Layouts_MemoryLayout_Serialize_Args& args) {
  args.serialized_bytes = args.layout->text.data();
  args.serialized_bytes_size = args.layout->text.size();
  args.serialized_layout = nullptr;
  args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout*) {};
  return {};
}

Status default_of_client(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args& args) {
  args.layout = row_major_layout(args.num_dims);
  return {};
}

Status default_of_topology(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args& args) {
  args.layout = row_major_layout(args.num_dims);
  return {};
}

Status of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout = row_major_layout(args.buffer->buffer->shape().dims().size());
  return {};
}

// The lists of the C API are not const, though callers only read them.
Status of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  auto& layouts = args.executable->state->results.layouts;
  args.num_outputs = layouts.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(layouts.data());
  return {};
}

Status of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  auto& layouts = args.executable->state->parameters.layouts;
  args.num_parameters = layouts.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(layouts.data());
  return {};
}

}  // namespace

PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next) {
  static PJRT_Layouts_Extension extension = {
      {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, next},
      entry<destroy>,
      entry<serialize>,
      entry<default_of_client>,
      entry<of_buffer>,
      entry<default_of_topology>,
      entry<of_outputs>,
      entry<of_parameters>};
  return &extension.base;
}

}  // namespace tenon::pjrt
