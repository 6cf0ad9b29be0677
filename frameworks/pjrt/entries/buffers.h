// Creation of buffers, which functions of several groups of the table need.
#pragma once

#include "frameworks/pjrt/objects.h"

struct PJRT_Buffer {
  std::shared_ptr<tenon::pjrt::ClientState> client;
  PJRT_Memory* memory = nullptr;
  std::vector<int64_t> order;  ///< Dimensions from minor to major: the layout.
  tenon::runtime::BufferPtr buffer;

  PJRT_Device* device() const { return tenon::pjrt::unwrap(memory).device; }
};

namespace tenon::pjrt {

/// A new buffer; the caller of the API destroys it.
PJRT_Buffer* make_buffer(std::shared_ptr<ClientState> client, PJRT_Memory* memory,
                         runtime::BufferPtr buffer);

/// OK if the memory belongs to the client, which is the only one that buffers keep alive.
Status check_client(const ClientState& client, const PJRT_Memory* memory);

}  // namespace tenon::pjrt
