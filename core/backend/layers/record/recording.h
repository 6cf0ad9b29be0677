// A recording: one file of all that open devices were asked, and of what came out.
//
// A head (serial::seal of nothing), then entries one behind the other, each the length of what
// follows in eight bytes and a sealed entry. A process may die at any byte: a recording ends with
// its last whole entry. Bytes stand in entries of their own, once each, and are referred to by
// number; kernels are such bytes, in their serial form. Handles are numbers of the recording.
//
// Version 1; a new version of what a kernel is written as does not change it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/backend/backend.h"
#include "core/base/archive.h"
#include "core/base/file.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::backend {

inline constexpr serial::Format kRecordingFormat = {"TNRC", "recording", 1, 1};

/// The initial value of each byte of memory, in the recorded run and in every replay, so that bytes
/// that a kernel leaves unwritten are the same too.
inline constexpr std::byte kUnwritten{0xA5};

namespace recorded {

using Number = uint64_t;

/// Bytes that entries refer to: by their number among the entries of this kind.
struct RecordedBytes {
  std::string_view bytes;
};

/// A device was opened; `opening` numbers this.
struct RecordedOpen {
  Number opening = 0;
  std::string backend;
  std::string version;
  std::string device;  ///< "chip:0"
  std::string compiler_id;
  std::string target;  ///< to_string(TargetInfo)
};

struct RecordedClose {
  Number opening = 0;
};

struct DeclinedKernel {
  uint32_t kernel = 0;
  uint8_t reason = 0;  ///< Reason
  std::string text;
};

/// Needs no open device.
struct RecordedCompile {
  std::string target;           ///< Its name.
  std::vector<Number> kernels;  ///< Bytes
  Number binary = 0;            ///< Bytes; of no meaning if some were declined.
  std::vector<DeclinedKernel> declined;
};

struct RecordedLoad {
  Number opening = 0;
  Number module = 0;
  Number binary = 0;
  std::vector<Number> kernels;
};

struct RecordedUnload {
  Number module = 0;
};

struct RecordedAllocate {
  Number opening = 0;
  Number memory = 0;
  uint32_t space = 0;
  int64_t bytes = 0;
};

struct RecordedFree {
  Number memory = 0;
};

/// In a device's memory, or the host's if `memory` is 0.
struct RecordedAddress {
  Number memory = 0;
  int64_t offset = 0;
};

struct RecordedCopy {
  Number opening = 0;
  uint32_t queue = 0;
  RecordedAddress destination;
  RecordedAddress source;
  int64_t bytes = 0;
  Number data = 0;  ///< Bytes, if the source is the host's.
};

struct RecordedFill {
  Number opening = 0;
  uint32_t queue = 0;
  RecordedAddress destination;
  int64_t bytes = 0;
  Number pattern = 0;
};

struct RecordedLaunch {
  Number opening = 0;
  uint32_t queue = 0;
  Number module = 0;
  uint32_t kernel = 0;
  std::vector<RecordedAddress> buffers;
  std::vector<uint64_t> scalars;
  std::string label;
};

struct RecordedRecord {
  Number opening = 0;
  uint32_t queue = 0;
  Number event = 0;
};

struct RecordedWait {
  Number opening = 0;
  uint32_t queue = 0;
  Number event = 0;
};

struct Written {
  uint32_t buffer = 0;  ///< Index of the launch's buffer; 0 for a copy.
  Number data = 0;
};

/// The bytes that entry `work`, a copy to the host or a launch, had written when it was done.
struct RecordedValues {
  Number work = 0;
  std::vector<Written> written;
};

/// The entry's call failed, or its event did: then it, or some entry of its queue between the
/// event before and that event.
struct RecordedFailure {
  Number work = 0;
  bool call = false;
  uint8_t code = 0;  ///< ErrorCode
  std::string message;
};

using Entry =
    std::variant<RecordedBytes, RecordedOpen, RecordedClose, RecordedCompile, RecordedLoad,
                 RecordedUnload, RecordedAllocate, RecordedFree, RecordedCopy, RecordedFill,
                 RecordedLaunch, RecordedRecord, RecordedWait, RecordedValues, RecordedFailure>;

}  // namespace recorded

/// A file that is being written.
///
/// Thread-safety: all of it.
class RecordingFile {
 public:
  /// Replaces the file at `path`. Errors: the system's.
  static Result<std::shared_ptr<RecordingFile>> create(const std::string& path);
  explicit RecordingFile(OutputFile file) : file_(std::move(file)) {}

  /// The entry's number, counted from 0.
  recorded::Number add(const recorded::Entry& entry);
  /// The number of an entry Bytes with these bytes, which is written unless there is one.
  recorded::Number add_bytes(std::string_view bytes);
  /// A number for a handle: 1, 2, …
  recorded::Number new_number();
  /// The first error in writing; nothing is written after it.
  Status status() const;

 private:
  struct BytesEntry {
    recorded::Number number = 0;
    uint64_t offset = 0;
    size_t size = 0;
  };
  recorded::Number append(const recorded::Entry& entry);
  void write(std::string_view bytes);

  mutable std::mutex mutex_;
  const OutputFile file_;
  Status status_;
  uint64_t size_ = 0;
  recorded::Number entries_ = 0;
  recorded::Number blobs_ = 0;
  recorded::Number handles_ = 0;
  std::unordered_multimap<size_t, BytesEntry> known_;  // By hash.
};

/// The contents of a file, checked: everything that an entry refers to comes before it and still
/// exists, lies within its memory, and has the right number of bytes; kernels are verified.
struct Recording {
  std::vector<recorded::Entry> entries;                ///< Their bytes are those of the file.
  std::vector<std::string_view> bytes;                 ///< Contents of entries Bytes, by number.
  std::map<recorded::Number, kernel::Kernel> kernels;  ///< By number of their bytes.
  size_t cut = 0;  ///< Bytes at the end that are no whole entry.

  std::map<recorded::Number, size_t> loads;  ///< By number of the module, its entry Load.

  const kernel::Kernel& kernel_of(const recorded::RecordedLaunch& launch) const;
};

/// `file` lives as long as the recording. Errors: those of serial::unseal; a wrong entry, with its
/// number.
Result<Recording> read_recording(std::string_view file, bool damaged_too = false);

/// One line, without a newline: "copy 4096 bytes to memory 3+64 from the host".
std::string to_string(const Recording& recording, const recorded::Entry& entry);

/// The bytes of a file with these entries.
std::string save_entries(const std::vector<recorded::Entry>& entries);

}  // namespace tenon::backend
