// Recordings: bytes through reader and checks, then the listing and the writer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/backend/layers/record/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::backend;
  // The checksums are skipped, because a fuzzer cannot guess them.
  const auto recording = read_recording({reinterpret_cast<const char*>(data), size}, true);
  if (!recording) return 0;
  for (const recorded::Entry& entry : recording->entries) {
    if (to_string(*recording, entry).empty()) std::abort();
  }
  const std::string written = save_entries(recording->entries);
  const auto again = read_recording(written, true);
  if (!again || again->entries.size() != recording->entries.size() || again->cut != 0) std::abort();
  if (save_entries(again->entries) != written) std::abort();
  return 0;
}
