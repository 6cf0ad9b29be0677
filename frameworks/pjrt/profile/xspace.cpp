#include "frameworks/pjrt/profile/xspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string_view>
#include <utility>

namespace tenon::pjrt {
namespace {

// Fields of xplane.proto.
constexpr protozero::pbf_tag_type kSpacePlanes = 1;
constexpr protozero::pbf_tag_type kSpaceWarnings = 3;
constexpr protozero::pbf_tag_type kPlaneId = 1;
constexpr protozero::pbf_tag_type kPlaneName = 2;
constexpr protozero::pbf_tag_type kPlaneLines = 3;
constexpr protozero::pbf_tag_type kPlaneEventMetadata = 4;
constexpr protozero::pbf_tag_type kPlaneStatMetadata = 5;
constexpr protozero::pbf_tag_type kLineId = 1;
constexpr protozero::pbf_tag_type kLineName = 2;
constexpr protozero::pbf_tag_type kLineTimestampNs = 3;
constexpr protozero::pbf_tag_type kLineEvents = 4;
constexpr protozero::pbf_tag_type kLineDurationPs = 9;
constexpr protozero::pbf_tag_type kEventMetadataId = 1;
constexpr protozero::pbf_tag_type kEventOffsetPs = 2;
constexpr protozero::pbf_tag_type kEventDurationPs = 3;
constexpr protozero::pbf_tag_type kEventStats = 4;
constexpr protozero::pbf_tag_type kStatMetadataId = 1;
constexpr protozero::pbf_tag_type kStatDouble = 2;
constexpr protozero::pbf_tag_type kStatInt64 = 4;
constexpr protozero::pbf_tag_type kStatText = 5;
constexpr protozero::pbf_tag_type kMetadataId = 1;    // Of events and of stats.
constexpr protozero::pbf_tag_type kMetadataName = 2;  // Of both.
constexpr protozero::pbf_tag_type kMapKey = 1;
constexpr protozero::pbf_tag_type kMapValue = 2;

// Names of stats, by their ids.
enum class SpanStat : uint8_t { kBytes = 1, kFlops = 2, kKernel = 3 };
constexpr std::pair<SpanStat, std::string_view> kStats[] = {{SpanStat::kBytes, "bytes_accessed"},
                                                            {SpanStat::kFlops, "flops"},
                                                            {SpanStat::kKernel, "kernel"}};

constexpr int64_t kPicoseconds = 1000;  // In a nanosecond.

std::string_view name_of(ProfileRow row) {
  switch (row) {
    case ProfileRow::kPrograms:
      return "XLA Modules";
    case ProfileRow::kSteps:
      return "XLA Ops";
    case ProfileRow::kTransfers:
      return "Transfers";
    case ProfileRow::kCompilations:
      break;
  }
  return "Compilations";
}

// The spans of a line, none of which begins before the one before it has ended.
using ProfileLine = std::vector<ProfileSpan>;

// A queue's work is done one piece after the other, even where the host gave it at once: one begins
// when the one before it is done.
void follow_one_another(ProfileLine& line) {
  std::ranges::stable_sort(line, {}, &ProfileSpan::end);
  for (size_t i = 1; i < line.size(); ++i) {
    line[i].begin = std::max(line[i].begin, line[i - 1].end);
    line[i].end = std::max(line[i].end, line[i].begin);
  }
}

// Adds each span to the first line that is free at its begin.
std::vector<ProfileLine> lines_of(ProfileLine spans) {
  std::ranges::stable_sort(spans, {}, &ProfileSpan::begin);
  std::vector<ProfileLine> lines;
  for (ProfileSpan& span : spans) {
    const auto free = std::ranges::find_if(
        lines, [&](const ProfileLine& line) { return line.back().end <= span.begin; });
    (free == lines.end() ? lines.emplace_back() : *free).push_back(std::move(span));
  }
  return lines;
}

// A plane, whose names of events get ids as they come.
class PlaneWriter {
 public:
  PlaneWriter(const ProfileRecording& recording, int64_t id, std::string_view device)
      : recording_(recording), plane_(bytes_) {
    plane_.add_int64(kPlaneId, id);
    plane_.add_string(kPlaneName, fmt::format("/device:CUSTOM:{}", device));
  }

  void add_line(std::string_view name, const ProfileLine& spans) {
    std::string bytes;
    protozero::pbf_writer line(bytes);
    line.add_int64(kLineId, ++lines_);
    line.add_string(kLineName, name.data(), name.size());
    line.add_int64(kLineTimestampNs, recording_.epoch + recording_.begin);
    line.add_int64(kLineDurationPs, (recording_.end - recording_.begin) * kPicoseconds);
    for (const ProfileSpan& span : spans) line.add_message(kLineEvents, event_of(span));
    plane_.add_message(kPlaneLines, bytes);
  }

  std::string finish() {
    for (const auto& [name, id] : names_) add_metadata(kPlaneEventMetadata, id, name);
    for (const auto& [stat, name] : kStats) {
      add_metadata(kPlaneStatMetadata, static_cast<int64_t>(stat), name);
    }
    return std::move(bytes_);
  }

 private:
  std::string event_of(const ProfileSpan& span) {
    const auto [named, added] = names_.try_emplace(span.name, std::ssize(names_) + 1);
    std::string bytes;
    protozero::pbf_writer event(bytes);
    event.add_int64(kEventMetadataId, named->second);
    event.add_int64(kEventOffsetPs, (span.begin - recording_.begin) * kPicoseconds);
    event.add_int64(kEventDurationPs, std::max<int64_t>(span.end - span.begin, 0) * kPicoseconds);
    if (span.bytes >= 0) {
      add_stat(event, SpanStat::kBytes,
               [&](auto& stat) { stat.add_int64(kStatInt64, span.bytes); });
    }
    if (span.flops >= 0) {
      add_stat(event, SpanStat::kFlops,
               [&](auto& stat) { stat.add_double(kStatDouble, span.flops); });
    }
    if (!span.kernel.empty()) {
      add_stat(event, SpanStat::kKernel,
               [&](auto& stat) { stat.add_string(kStatText, span.kernel); });
    }
    return bytes;
  }

  template <class AddValue>
  static void add_stat(protozero::pbf_writer& event, SpanStat id, AddValue add_value) {
    std::string bytes;
    protozero::pbf_writer stat(bytes);
    stat.add_int64(kStatMetadataId, static_cast<int64_t>(id));
    add_value(stat);
    event.add_message(kEventStats, bytes);
  }

  // An entry of a map from ids to metadata.
  void add_metadata(protozero::pbf_tag_type field, int64_t id, std::string_view name) {
    std::string metadata_bytes;
    protozero::pbf_writer metadata(metadata_bytes);
    metadata.add_int64(kMetadataId, id);
    metadata.add_string(kMetadataName, name.data(), name.size());
    std::string entry_bytes;
    protozero::pbf_writer entry(entry_bytes);
    entry.add_int64(kMapKey, id);
    entry.add_message(kMapValue, metadata_bytes);
    plane_.add_message(field, entry_bytes);
  }

  const ProfileRecording& recording_;
  std::string bytes_;
  protozero::pbf_writer plane_;
  int64_t lines_ = 0;
  std::map<std::string, int64_t> names_;
};

std::string plane_of(const ProfileRecording& recording, int64_t id, std::string_view device,
                     std::map<std::pair<ProfileRow, uint32_t>, ProfileLine> rows) {
  PlaneWriter plane(recording, id, device);
  for (auto& [place, spans] : rows) {
    const auto [row, queue] = place;
    if (row == ProfileRow::kPrograms || row == ProfileRow::kSteps) follow_one_another(spans);
    const std::vector<ProfileLine> lines = lines_of(std::move(spans));
    for (size_t i = 0; i < lines.size(); ++i) {
      const size_t number = row == ProfileRow::kSteps ? queue : i;
      plane.add_line(
          number == 0 ? std::string(name_of(row)) : fmt::format("{} {}", name_of(row), number + 1),
          lines[i]);
    }
  }
  return plane.finish();
}

}  // namespace

std::string xspace_of(ProfileRecording recording) {
  std::map<std::string, std::map<std::pair<ProfileRow, uint32_t>, ProfileLine>> devices;
  for (ProfileSpan& span : recording.spans) {
    ProfileLine& row = devices[span.device][{span.row, span.queue}];
    row.push_back(std::move(span));
  }
  std::string bytes;
  protozero::pbf_writer space(bytes);
  int64_t id = 0;
  for (auto& [device, rows] : devices) {
    space.add_message(kSpacePlanes, plane_of(recording, id++, device, std::move(rows)));
  }
  if (recording.dropped > 0) {
    space.add_string(kSpaceWarnings,
                     fmt::format("{} events of Tenon's devices came after the {} that are kept",
                                 recording.dropped, ProfileRecorder::kMostSpans));
  }
  return bytes;
}

}  // namespace tenon::pjrt
