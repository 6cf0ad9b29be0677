// Creation of buffers, which functions of several groups of the table need.
#pragma once

#include <optional>

#include "frameworks/pjrt/objects.h"
#include "frameworks/pjrt/types.h"

struct PJRT_Buffer {
  std::shared_ptr<tenon::pjrt::ClientState> client;
  PJRT_Memory* memory = nullptr;
  /// Dimensions from minor to major, the layout, of a rank for which they are not shared.
  tenon::Dims order;
  tenon::runtime::BufferPtr buffer;
  /// Set for an array whose contents come later (runtime::LateBuffer): no work may use it before.
  std::optional<tenon::runtime::Event> given = {};

  /// Before it is given to the caller.
  void set_rank(size_t rank) {
    if (tenon::pjrt::shared_row_major_order(rank) == nullptr) {
      order = tenon::pjrt::row_major_order(rank);
    }
  }
  PJRT_Device* device() const { return tenon::pjrt::unwrap(memory).device; }
};

namespace tenon::pjrt {

/// A new buffer; the caller of the API destroys it.
PJRT_Buffer* make_buffer(std::shared_ptr<ClientState> client, PJRT_Memory* memory,
                         runtime::BufferPtr buffer);

/// The array for work to use. Waits for the contents of a late one to be handed over, which another
/// thread must do. Errors: none for others.
Result<runtime::BufferPtr> usable(const PJRT_Buffer& buffer);

/// OK if the memory belongs to the client, which is the only one that buffers keep alive.
Status check_client(const ClientState& client, const PJRT_Memory* memory);

/// The memory named, or a device's default one. Errors: neither; another client's.
Result<PJRT_Memory*> memory_of(const PJRT_Client* client, PJRT_Memory* memory, PJRT_Device* device);

}  // namespace tenon::pjrt
