// The trials of `tenon tune` in a file, so that an interrupted search goes on where it was.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tools/tune/search.h"

namespace tenon::tools {

/// How a trial ended.
struct Trial {
  std::string
      outcome;  ///< "measured", "declined", "wrong results", "lost": only the first has a time.
  double seconds = 0;
  std::string reason;  ///< The error, if there was one.
};

/// A file of JSON lines, one where a trial begins and one where it ends. A trial that began and did
/// not end took the process with it; it counts as "lost".
class Trials {
 public:
  /// Reads the trials of `device` (its name and compiler) and appends to the file. Lines of other
  /// devices stay and are not used; `fresh` forgets them all. Errors: the file cannot be
  /// read or written, or a line but the last is no trial.
  static Result<Trials> open(const std::string& path, std::string device, bool fresh);

  std::optional<Trial> find(const std::string& program, const Tuning& tuning) const;
  Status begin(const std::string& program, const Tuning& tuning);
  Status end(const std::string& program, const Tuning& tuning, const Trial& trial);

  size_t count() const { return trials_.size(); }

 private:
  using Key = std::pair<std::string, Tuning>;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  Trials(std::string path, std::string device)
      : path_(std::move(path)), device_(std::move(device)) {}
  Status read_line(std::string_view line);
  Status write_line(const std::string& program, const Tuning& tuning, const Trial& trial);

  std::string path_;
  std::string device_;
  std::map<Key, Trial> trials_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tenon::tools
