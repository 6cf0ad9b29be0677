// Reading a recording: entries out of bytes, and each checked against those before it.
#include <optional>
#include <set>

#include "core/backend/layers/loaded_kernel.h"
#include "core/backend/layers/record/recording_serial.h"
#include "core/kernel/serial/serial.h"

namespace tenon::backend {

using recorded::Number;

namespace {

// Checks each entry against the handles and bytes that the entries before it have defined.
class RecordingChecker {
 public:
  RecordingChecker(Recording& recording, bool damaged_too)
      : recording_(recording), damaged_too_(damaged_too) {}

  Status operator()(const recorded::RecordedBytes& e) {
    recording_.bytes.push_back(e.bytes);
    return {};
  }

  Status operator()(const recorded::RecordedOpen& e) {
    if (!openings_.insert(e.opening).second) return bad("device {} is open already", e.opening);
    return {};
  }

  Status operator()(const recorded::RecordedClose& e) {
    TENON_TRY(open(e.opening));
    openings_.erase(e.opening);
    std::erase_if(memories_, [&](const auto& each) { return each.second.opening == e.opening; });
    std::erase_if(modules_, [&](const auto& each) { return each.second == e.opening; });
    return {};
  }

  Status operator()(const recorded::RecordedCompile& e) {
    TENON_TRY(kernels(e.kernels));
    for (const recorded::DeclinedKernel& each : e.declined) {
      if (each.kernel >= e.kernels.size() || each.reason < 1 ||
          each.reason > static_cast<uint8_t>(Reason::kOther)) {
        return bad("kernel {} of {} is declined for reason {}", each.kernel, e.kernels.size(),
                   each.reason);
      }
    }
    return e.declined.empty() ? data(e.binary, -1) : Status();
  }

  Status operator()(const recorded::RecordedLoad& e) {
    TENON_TRY(open(e.opening));
    TENON_TRY(kernels(e.kernels));
    TENON_TRY(data(e.binary, -1));
    TENON_TRY(fresh(e.module));
    modules_[e.module] = e.opening;
    recording_.loads[e.module] = recording_.entries.size();
    return {};
  }

  Status operator()(const recorded::RecordedUnload& e) {
    if (modules_.erase(e.module) == 0) return bad("there is no module {}", e.module);
    return {};
  }

  Status operator()(const recorded::RecordedAllocate& e) {
    TENON_TRY(open(e.opening));
    TENON_TRY(fresh(e.memory));
    if (e.bytes <= 0) return bad("{} bytes are allocated", e.bytes);
    memories_[e.memory] = {e.opening, e.bytes};
    return {};
  }

  Status operator()(const recorded::RecordedFree& e) {
    if (memories_.erase(e.memory) == 0) return bad("there is no memory {}", e.memory);
    return {};
  }

  Status operator()(const recorded::RecordedCopy& e) {
    TENON_TRY(open(e.opening));
    if (e.bytes <= 0) return bad("{} bytes are copied", e.bytes);
    const bool from_host = e.source.memory == 0;
    const bool to_host = e.destination.memory == 0;
    if (from_host && to_host) return bad("a copy from host to host");
    if (!to_host) TENON_TRY(place(e.opening, e.destination, e.bytes));
    TENON_TRY(from_host ? data(e.data, e.bytes) : place(e.opening, e.source, e.bytes));
    if (overlap(e.destination, e.bytes, e.source, e.bytes)) {
      return bad("the ends of a copy of {} bytes overlap", e.bytes);
    }
    return {};
  }

  Status operator()(const recorded::RecordedFill& e) {
    TENON_TRY(open(e.opening));
    TENON_TRY(data(e.pattern, -1));
    const auto size = static_cast<int64_t>(recording_.bytes[e.pattern].size());
    if (size < 1 || size > 8 || (size & (size - 1)) != 0 || e.bytes <= 0 || e.bytes % size != 0) {
      return bad("{} bytes are filled with {}", e.bytes, size);
    }
    return place(e.opening, e.destination, e.bytes);
  }

  Status operator()(const recorded::RecordedLaunch& e) {
    TENON_TRY(open(e.opening));
    const auto module = modules_.find(e.module);
    if (module == modules_.end() || module->second != e.opening) {
      return bad("device {} has no module {}", e.opening, e.module);
    }
    const auto& load =
        std::get<recorded::RecordedLoad>(recording_.entries[recording_.loads[e.module]]);
    if (e.kernel >= load.kernels.size()) {
      return bad("kernel {} of {}", e.kernel, load.kernels.size());
    }
    const kernel::Kernel& kernel = recording_.kernels.at(load.kernels[e.kernel]);
    if (e.buffers.size() != kernel.buffer_count || e.scalars.size() != kernel.scalars.size()) {
      return bad("@{} takes {} buffers and {} scalars, not {} and {}", kernel.name,
                 kernel.buffer_count, kernel.scalars.size(), e.buffers.size(), e.scalars.size());
    }
    for (size_t i = 0; i < e.buffers.size(); ++i) {
      TENON_TRY(place(e.opening, e.buffers[i], kernel.memories[i].bytes()));
    }
    const auto aliases = first_alias<recorded::RecordedAddress>(loaded(kernel), e.buffers);
    if (!aliases) return {};
    return bad("@{}: buffers {} and {} overlap", kernel.name, aliases->first, aliases->second);
  }

  Status operator()(const recorded::RecordedRecord& e) {
    TENON_TRY(open(e.opening));
    TENON_TRY(fresh(e.event));
    events_.insert(e.event);
    return {};
  }

  Status operator()(const recorded::RecordedWait& e) {
    TENON_TRY(open(e.opening));
    return events_.contains(e.event) ? Status() : bad("there is no event {}", e.event);
  }

  Status operator()(const recorded::RecordedValues& e) {
    if (e.work >= recording_.entries.size()) return bad("there is no entry {} yet", e.work);
    const recorded::Entry& work = recording_.entries[e.work];
    if (!valued_.insert(e.work).second) return bad("entry {} has values already", e.work);
    for (const recorded::Written& each : e.written) {
      if (const auto* copy = std::get_if<recorded::RecordedCopy>(&work);
          copy != nullptr && copy->destination.memory == 0 && each.buffer == 0) {
        TENON_TRY(data(each.data, copy->bytes));
      } else if (const auto* launch = std::get_if<recorded::RecordedLaunch>(&work);
                 launch != nullptr && writes(*launch, each.buffer)) {
        TENON_TRY(data(each.data, recording_.kernel_of(*launch).memories[each.buffer].bytes()));
      } else {
        return bad("entry {} writes no buffer {}", e.work, each.buffer);
      }
    }
    return {};
  }

  Status operator()(const recorded::RecordedFailure& e) {
    if (e.work >= recording_.entries.size()) return bad("there is no entry {} yet", e.work);
    const recorded::Entry& work = recording_.entries[e.work];
    if (!std::holds_alternative<recorded::RecordedCopy>(work) &&
        !std::holds_alternative<recorded::RecordedFill>(work) &&
        !std::holds_alternative<recorded::RecordedLaunch>(work)) {
      return bad("entry {} is no work", e.work);
    }
    if (e.code == 0 || e.code > static_cast<uint8_t>(ErrorCode::kUnauthenticated)) {
      return bad("{} is no code of an error", e.code);
    }
    return {};
  }

 private:
  struct CheckedMemory {
    Number opening = 0;
    int64_t bytes = 0;
  };

  template <class... Args>
  static Status bad(fmt::format_string<Args...> format, Args&&... args) {
    return Status(invalid_argument(format, std::forward<Args>(args)...));
  }

  Status open(Number opening) const {
    return openings_.contains(opening) ? Status() : bad("there is no device {}", opening);
  }

  // A number is given once.
  Status fresh(Number number) {
    if (number == 0 || !numbers_.insert(number).second) return bad("the number {} again", number);
    return {};
  }

  bool writes(const recorded::RecordedLaunch& launch, uint32_t buffer) const {
    return buffer < launch.buffers.size() &&
           recording_.kernel_of(launch).memories[buffer].access != kernel::Access::kIn;
  }

  // Checks that the bytes exist, `size` of them if that is given.
  Status data(Number number, int64_t size) const {
    if (number >= recording_.bytes.size()) return bad("there are no bytes {}", number);
    const size_t found = recording_.bytes[number].size();
    if (size < 0 || found == static_cast<size_t>(size)) return {};
    return bad("bytes {} are {}, not {}", number, found, size);
  }

  Status place(Number opening, const recorded::RecordedAddress& place, int64_t bytes) const {
    const auto memory = memories_.find(place.memory);
    if (memory == memories_.end() || memory->second.opening != opening) {
      return bad("device {} has no memory {}", opening, place.memory);
    }
    if (place.offset >= 0 && bytes <= memory->second.bytes - place.offset) return {};
    return bad("{} bytes at {} of {}", bytes, place.offset, memory->second.bytes);
  }

  Status kernels(const std::vector<Number>& list) {
    for (const Number each : list) {
      TENON_TRY(data(each, -1));
      if (recording_.kernels.contains(each)) continue;
      auto kernel = kernel::load_kernel(recording_.bytes[each], damaged_too_);
      if (!kernel) return std::move(kernel.error()).with_context(fmt::format("bytes {}", each));
      recording_.kernels.emplace(each, *std::move(kernel));
    }
    return {};
  }

  Recording& recording_;
  const bool damaged_too_;
  std::set<Number> openings_;
  std::set<Number> numbers_;
  std::set<Number> events_;
  std::set<Number> valued_;
  std::map<Number, Number> modules_;  // Their devices.
  std::map<Number, CheckedMemory> memories_;
};

// The next entry's bytes, sealed; nothing if they are not all there.
std::optional<std::string_view> next_frame(std::string_view& rest) {
  if (rest.size() < kLengthBytes) return {};
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<uint8_t>(rest[i])} << (8 * i);
  }
  if (length > rest.size() - kLengthBytes) return {};
  const std::string_view frame = rest.substr(kLengthBytes, length);
  rest.remove_prefix(kLengthBytes + length);
  return frame;
}

Result<recorded::Entry> read_entry(std::string_view frame, bool damaged_too) {
  TENON_ASSIGN(const serial::Unsealed sealed,
               serial::unseal(frame, kRecordedEntryFormat, damaged_too));
  serial::ArchiveReader reader(sealed.payload, sealed.version);
  recorded::Entry entry;
  reader(entry);
  if (reader.ok() && reader.rest() != 0) reader.fail("{} bytes behind the entry", reader.rest());
  TENON_TRY(Status(reader.status()));
  return entry;
}

}  // namespace

Result<Recording> read_recording(std::string_view file, bool damaged_too) {
  const std::string head = serial::seal(kRecordingFormat, {});
  TENON_TRY(serial::unseal(file.substr(0, head.size()), kRecordingFormat, damaged_too));
  Recording recording;
  RecordingChecker checker(recording, damaged_too);
  std::string_view rest = file.substr(head.size());
  while (const auto frame = next_frame(rest)) {
    const auto in_entry = [&](Status status) {
      return tl::make_unexpected(
          std::move(status).with_context(fmt::format("entry {}", recording.entries.size())));
    };
    auto entry = read_entry(*frame, damaged_too);
    if (!entry) return in_entry(std::move(entry.error()));
    if (Status status = std::visit(checker, *entry); !status.ok()) {
      return in_entry(std::move(status));
    }
    recording.entries.push_back(*std::move(entry));
  }
  recording.cut = rest.size();
  return recording;
}

}  // namespace tenon::backend
