// The journal of a run: its records as they arrive, so that a run that was interrupted goes on.
//
// A text file: a JSON object that identifies the run, then a record a line. Records are as the
// workers sent them, before a declaration or waivers change their outcomes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/compare/record.h"

namespace tenon::conformance {

/// Two parts of one run have these in common.
struct RunIdentity {
  std::string tenon;   ///< The version of Tenon.
  std::string cases;   ///< The digest of the names of the selected cases.
  std::string bounds;  ///< The digest of the bounds that the declaration relaxes.
  std::string plugin;  ///< The digest of the plug-in's file; empty for a device of this program.
  uint64_t seed = 0;
  std::vector<std::string> device;  ///< Its description.
  bool counts_steps = true;
};

struct JournalContents {
  RunIdentity identity;
  std::vector<CaseRecord> records;
};

/// The path of the journal of a run whose report goes to `report`.
std::string journal_path(const std::string& report);

/// Reads a journal; a last line without its end is left out, since the run was killed as it wrote
/// it. Errors: the file's; it is no journal.
Result<JournalContents> read_journal(const std::string& path);

/// Errors: the first member that differs, with both values. The devices are not compared.
Status check_same_run(const RunIdentity& journal, const RunIdentity& run);
Status check_same_device(const RunIdentity& journal, const std::vector<std::string>& device);

/// Writes a journal. Thread-safety: one thread at a time.
class Journal {
 public:
  /// Creates or replaces the file. Errors name the path and the system's reason.
  static Result<Journal> create(const std::string& path, const JournalContents& contents);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&& other) noexcept;
  ~Journal();

  Status add(const CaseRecord& record);

 private:
  Journal(int file, std::string path) : file_(file), path_(std::move(path)) {}
  Status write_line(std::string_view line);

  int file_ = -1;
  std::string path_;
};

}  // namespace tenon::conformance
