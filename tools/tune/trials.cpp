#include "tools/tune/trials.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"

namespace tenon::tools {
namespace {

constexpr std::string_view kBegun = "begun";

}  // namespace

Result<Trials> Trials::open(const std::string& path, std::string device, bool fresh) {
  Trials trials(path, std::move(device));
  std::error_code none;
  if (!fresh && std::filesystem::is_regular_file(path, none)) {
    TENON_ASSIGN(const std::string text, read_file(path));
    // The part behind the last line end was cut off with the process that wrote it.
    const size_t whole = text.rfind('\n') + 1;
    size_t number = 0;
    for (size_t at = 0; at < whole;) {
      const size_t end = text.find('\n', at);
      ++number;
      Status read = trials.read_line(std::string_view(text).substr(at, end - at));
      if (!read.ok())
        return Error(std::move(read).with_context(fmt::format("{}:{}", path, number)));
      at = end + 1;
    }
    if (whole != text.size()) TENON_TRY(write_file(path, text.substr(0, whole)));
  }
  trials.file_.reset(std::fopen(path.c_str(), fresh ? "we" : "ae"));
  if (trials.file_ == nullptr) {
    return failed_precondition("cannot write {}: {}", path, std::strerror(errno));
  }
  return trials;
}

Status Trials::read_line(std::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  const auto wrong = [] { return Status(invalid_argument("the line is no trial")); };
  const auto text = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!json.is_object() || text("device").empty() || text("outcome").empty()) return wrong();
  const auto parameters = json.find("parameters");
  if (parameters == json.end() || !parameters->is_object()) return wrong();
  if (text("device") != device_) return {};
  Tuning tuning;
  for (const auto& [name, value] : parameters->items()) {
    if (!value.is_number_integer()) return wrong();
    tuning[name] = value.get<int64_t>();
  }
  Trial trial{.outcome = text("outcome"), .reason = text("reason")};
  if (trial.outcome == kBegun) {
    trial = {.outcome = "lost", .reason = "the process ended"};
  } else if (trial.outcome == "measured") {
    const auto seconds = json.find("seconds");
    if (seconds == json.end() || !seconds->is_number()) return wrong();
    trial.seconds = seconds->get<double>();
  }
  trials_[{text("program"), std::move(tuning)}] = std::move(trial);
  return {};
}

std::optional<Trial> Trials::find(const std::string& program, const Tuning& tuning) const {
  const auto found = trials_.find({program, tuning});
  return found == trials_.end() ? std::nullopt : std::optional(found->second);
}

Status Trials::write_line(const std::string& program, const Tuning& tuning, const Trial& trial) {
  nlohmann::json json = {{"device", device_},
                         {"program", program},
                         {"parameters", nlohmann::json::object()},
                         {"outcome", trial.outcome}};
  for (const auto& [name, value] : tuning) json["parameters"][name] = value;
  if (trial.outcome == "measured") json["seconds"] = trial.seconds;
  if (!trial.reason.empty()) json["reason"] = trial.reason;
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0) {
    return failed_precondition("cannot write {}: {}", path_, std::strerror(errno));
  }
  return {};
}

Status Trials::begin(const std::string& program, const Tuning& tuning) {
  return write_line(program, tuning, {.outcome = std::string(kBegun)});
}

Status Trials::end(const std::string& program, const Tuning& tuning, const Trial& trial) {
  trials_[{program, tuning}] = trial;
  return write_line(program, tuning, trial);
}

}  // namespace tenon::tools
