#include "conformance/run/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/file.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

constexpr int kJournalVersion = 2;

std::string line_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

json identity_json(const RunIdentity& identity) {
  return {{"journal", kJournalVersion}, {"tenon", identity.tenon},
          {"cases", identity.cases},    {"bounds", identity.bounds},
          {"plugin", identity.plugin},  {"seed", identity.seed},
          {"device", identity.device},  {"counts_steps", identity.counts_steps}};
}

Result<RunIdentity> identity_from_json(const json& value) {
  RunIdentity identity;
  try {
    const int version = value.at("journal").get<int>();
    if (version != kJournalVersion) return invalid_argument("it is of version {}", version);
    identity.tenon = value.at("tenon").get<std::string>();
    identity.cases = value.at("cases").get<std::string>();
    identity.bounds = value.at("bounds").get<std::string>();
    identity.plugin = value.at("plugin").get<std::string>();
    identity.seed = value.at("seed").get<uint64_t>();
    identity.device = value.at("device").get<std::vector<std::string>>();
    identity.counts_steps = value.at("counts_steps").get<bool>();
  } catch (const json::exception& error) {  // The library reports through exceptions.
    return invalid_argument("{}", error.what());
  }
  return identity;
}

Status differs(std::string_view what, std::string_view journal, std::string_view run) {
  return failed_precondition("the journal is of another run: its {} is {}, that of this run is {}",
                             what, journal, run);
}

}  // namespace

std::string journal_path(const std::string& report) { return report + ".partial"; }

Result<JournalContents> read_journal(const std::string& path) {
  TENON_ASSIGN(const std::string text, read_file(path));
  JournalContents contents;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const json value = json::parse(line, nullptr, false);
    begin = end + 1;
    if (++number == 1) {
      auto identity = identity_from_json(value);
      if (!identity) {
        return invalid_argument("{}: not a journal of tenon conform: {}", path,
                                identity.error().message());
      }
      contents.identity = std::move(*identity);
      continue;
    }
    auto record = record_from_json(value);
    if (!record) return invalid_argument("{}:{}: {}", path, number, record.error().message());
    contents.records.push_back(std::move(*record));
  }
  if (number == 0) return invalid_argument("{}: not a journal of tenon conform: it is empty", path);
  return contents;
}

Status check_same_run(const RunIdentity& journal, const RunIdentity& run) {
  if (journal.tenon != run.tenon) return differs("version of Tenon", journal.tenon, run.tenon);
  if (journal.seed != run.seed) {
    return differs("seed", std::to_string(journal.seed), std::to_string(run.seed));
  }
  if (journal.cases != run.cases) return differs("selection of cases", journal.cases, run.cases);
  if (journal.bounds != run.bounds) return differs("relaxed bounds", journal.bounds, run.bounds);
  if (journal.plugin != run.plugin) return differs("plug-in's file", journal.plugin, run.plugin);
  return {};
}

Status check_same_device(const RunIdentity& journal, const std::vector<std::string>& device) {
  if (journal.device == device) return {};
  const auto text = [](const std::vector<std::string>& lines) {
    return fmt::format("'{}'", fmt::join(lines, "; "));
  };
  return differs("device", text(journal.device), text(device));
}

Result<Journal> Journal::create(const std::string& path, const JournalContents& contents) {
  std::string text = line_of(identity_json(contents.identity));
  for (const CaseRecord& each : contents.records) text += line_of(to_json(each));
  TENON_TRY(write_file(path, text));
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return not_found("{}: {}", path, std::strerror(errno));
  return Journal(file, path);
}

Journal::Journal(Journal&& other) noexcept { *this = std::move(other); }

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

Status Journal::add(const CaseRecord& record) { return write_line(line_of(to_json(record))); }

Status Journal::write_line(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(file_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return resource_exhausted("{}: {}", path_, std::strerror(errno));
    line.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace tenon::conformance
