// Recordings: bytes through reader and checks, then the listing and the writer.
#include <cstdlib>
#include <string_view>

#include "core/backend/layers/record/recording.h"
#include "fuzz/targets.h"

bool tenon::fuzz::fuzz_recording(std::string_view bytes) {
  using namespace tenon::backend;
  // The checksums are skipped, because a fuzzer cannot guess them.
  const auto recording = read_recording(bytes, true);
  if (!recording) return false;
  for (const recorded::Entry& entry : recording->entries) {
    if (to_string(*recording, entry).empty()) std::abort();
  }
  const std::string written = save_entries(recording->entries);
  const auto again = read_recording(written, true);
  if (!again || again->entries.size() != recording->entries.size() || again->cut != 0) std::abort();
  if (save_entries(again->entries) != written) std::abort();
  return true;
}
