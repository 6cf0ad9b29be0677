// The extension MemoryDescriptions: every device has the same two memories.
//
// Without it jaxlib would give the devices of a topology no memory.
#include "frameworks/pjrt/c_api/memory_descriptions_extension.h"

#include <array>

#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"

struct PJRT_MemoryDescription {
  tenon::runtime::MemoryKind kind;
};

namespace tenon::pjrt {
namespace {

Status memory_descriptions(PJRT_DeviceDescription_MemoryDescriptions_Args& args) {
  static constexpr PJRT_MemoryDescription kDevice = {runtime::MemoryKind::kDevice};
  static constexpr PJRT_MemoryDescription kPinnedHost = {runtime::MemoryKind::kPinnedHost};
  static constexpr std::array<const PJRT_MemoryDescription*, 2> kMemories = {&kDevice,
                                                                             &kPinnedHost};
  args.memory_descriptions = kMemories.data();
  args.num_memory_descriptions = kMemories.size();
  args.default_memory_index = 0;
  return {};
}

Status memory_description_kind(PJRT_MemoryDescription_Kind_Args& args) {
  const std::string_view name = runtime::name_of(args.memory_description->kind);
  args.kind = name.data();
  args.kind_size = name.size();
  args.kind_id = static_cast<int>(args.memory_description->kind);
  return {};
}

}  // namespace

PJRT_Extension_Base* memory_descriptions_extension(PJRT_Extension_Base* next) {
  static PJRT_MemoryDescriptions_Extension extension = {
      {sizeof(PJRT_MemoryDescriptions_Extension), PJRT_Extension_Type_MemoryDescriptions, next},
      entry<memory_descriptions>,
      entry<memory_description_kind>};
  return &extension.base;
}

}  // namespace tenon::pjrt
