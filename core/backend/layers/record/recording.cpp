#include "core/backend/layers/record/recording.h"

#include <fmt/ranges.h>

#include "core/backend/layers/record/recording_serial.h"

namespace tenon::backend {

using recorded::Number;

namespace {

std::string length_bytes(uint64_t length) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

// The length and the sealed entry.
std::string framed(const recorded::Entry& entry) {
  serial::ArchiveWriter writer;
  writer(entry);
  const std::string sealed = serial::seal(kRecordedEntryFormat, std::move(writer).take());
  return length_bytes(sealed.size()) + sealed;
}

}  // namespace

// --- Writing

Result<std::shared_ptr<RecordingFile>> RecordingFile::create(const std::string& path) {
  TENON_ASSIGN(OutputFile file, OutputFile::create(path));
  auto recording = std::make_shared<RecordingFile>(std::move(file));
  recording->write(serial::seal(kRecordingFormat, {}));
  if (const Status status = recording->status(); !status.ok()) return tl::make_unexpected(status);
  return recording;
}

Number RecordingFile::add(const recorded::Entry& entry) {
  const std::lock_guard lock(mutex_);
  return append(entry);
}

Number RecordingFile::append(const recorded::Entry& entry) {
  write(framed(entry));
  return entries_++;
}

void RecordingFile::write(std::string_view bytes) {
  if (status_.ok()) status_ = file_.write(size_, bytes);
  size_ += bytes.size();
}

Number RecordingFile::add_bytes(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const size_t hash = std::hash<std::string_view>()(bytes);
  const auto [first, last] = known_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    const BytesEntry& known = each->second;
    if (known.size == bytes.size() && file_.holds(known.offset, bytes)) return known.number;
  }
  append(recorded::RecordedBytes{bytes});
  known_.insert({hash, {blobs_, size_ - bytes.size(), bytes.size()}});
  return blobs_++;
}

Number RecordingFile::new_number() {
  const std::lock_guard lock(mutex_);
  return ++handles_;
}

Status RecordingFile::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::string save_entries(const std::vector<recorded::Entry>& entries) {
  std::string bytes = serial::seal(kRecordingFormat, {});
  for (const recorded::Entry& entry : entries) bytes += framed(entry);
  return bytes;
}

// --- Printing

namespace {

class RecordingPrinter {
 public:
  explicit RecordingPrinter(const Recording& recording) : recording_(recording) {}

  std::string operator()(const recorded::RecordedBytes& e) const {
    return fmt::format("bytes {}", e.bytes.size());
  }
  std::string operator()(const recorded::RecordedOpen& e) const {
    return fmt::format("open {}, a {} {}, compiler {}, as device {}", e.device, e.backend,
                       e.version, e.compiler_id, e.opening);
  }
  std::string operator()(const recorded::RecordedClose& e) const {
    return fmt::format("close device {}", e.opening);
  }
  std::string operator()(const recorded::RecordedCompile& e) const {
    std::string text = fmt::format("compile {} for {}", kernels(e.kernels), e.target);
    for (const recorded::DeclinedKernel& each : e.declined) {
      text += fmt::format("; declined @{}: {} ({})", name(e.kernels[each.kernel]), each.text,
                          name_of(static_cast<Reason>(each.reason)));
    }
    if (e.declined.empty()) text += fmt::format(": {} bytes", bytes(e.binary));
    return text;
  }
  std::string operator()(const recorded::RecordedLoad& e) const {
    return fmt::format("load module {}: {}, binary of {} bytes", e.module, kernels(e.kernels),
                       bytes(e.binary));
  }
  std::string operator()(const recorded::RecordedUnload& e) const {
    return fmt::format("unload module {}", e.module);
  }
  std::string operator()(const recorded::RecordedAllocate& e) const {
    return fmt::format("allocate memory {}: {} bytes in space {}", e.memory, e.bytes, e.space);
  }
  std::string operator()(const recorded::RecordedFree& e) const {
    return fmt::format("free memory {}", e.memory);
  }
  std::string operator()(const recorded::RecordedCopy& e) const {
    return fmt::format("copy {} bytes to {} from {}{}", e.bytes, place(e.destination),
                       place(e.source), queue(e.queue));
  }
  std::string operator()(const recorded::RecordedFill& e) const {
    return fmt::format("fill {} bytes of {}{}", e.bytes, place(e.destination), queue(e.queue));
  }
  std::string operator()(const recorded::RecordedLaunch& e) const {
    const kernel::Kernel& kernel = recording_.kernel_of(e);
    std::vector<std::string> buffers;
    for (size_t i = 0; i < e.buffers.size(); ++i) {
      buffers.push_back(fmt::format("%{} {}", kernel.memories[i].name, place(e.buffers[i])));
    }
    std::string text = fmt::format("launch @{}({}", kernel.name, fmt::join(buffers, ", "));
    for (const uint64_t scalar : e.scalars) text += fmt::format(", {}", scalar);
    text += fmt::format("){}", queue(e.queue));
    return e.label.empty() ? text : fmt::format("{} '{}'", text, e.label);
  }
  std::string operator()(const recorded::RecordedRecord& e) const {
    return fmt::format("record event {}{}", e.event, queue(e.queue));
  }
  std::string operator()(const recorded::RecordedWait& e) const {
    return fmt::format("wait for event {}{}", e.event, queue(e.queue));
  }
  std::string operator()(const recorded::RecordedValues& e) const {
    size_t size = 0;
    for (const recorded::Written& each : e.written) size += bytes(each.data);
    return fmt::format("values of {}: {} bytes", e.work, size);
  }
  std::string operator()(const recorded::RecordedFailure& e) const {
    return fmt::format("{} {} failed: {} ({})", e.call ? "call" : "work up to the event after",
                       e.work, e.message, error_code_name(static_cast<ErrorCode>(e.code)));
  }

 private:
  size_t bytes(Number number) const { return recording_.bytes[number].size(); }
  std::string name(Number kernel) const { return recording_.kernels.at(kernel).name; }
  std::string kernels(const std::vector<Number>& list) const {
    std::vector<std::string> names;
    for (const Number each : list) names.push_back("@" + name(each));
    return fmt::format("{}", fmt::join(names, " "));
  }
  static std::string place(const recorded::RecordedAddress& place) {
    return place.memory == 0 ? "the host" : fmt::format("{}+{}", place.memory, place.offset);
  }
  static std::string queue(uint32_t queue) {
    return queue == 0 ? "" : fmt::format(" on queue {}", queue);
  }

  const Recording& recording_;
};

}  // namespace

std::string to_string(const Recording& recording, const recorded::Entry& entry) {
  return std::visit(RecordingPrinter(recording), entry);
}

const kernel::Kernel& Recording::kernel_of(const recorded::RecordedLaunch& launch) const {
  const auto& load = std::get<recorded::RecordedLoad>(entries[loads.at(launch.module)]);
  return kernels.at(load.kernels[launch.kernel]);
}

}  // namespace tenon::backend
