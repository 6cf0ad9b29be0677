#include "core/backend/layers/cache.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "core/backend/layers/forward.h"
#include "core/kernel/serial.h"
#include "core/program/serial.h"
#include "core/serial/archive.h"
#include "core/types/file.h"

namespace tenon::backend {
namespace {

namespace fs = std::filesystem;

constexpr serial::Format kEntryFormat = {"TNCE", "cache entry", 1, 1};
constexpr std::string_view kExtension = ".tenon-binary";
constexpr auto kLongestWrite = std::chrono::hours(1);

class CacheBackend final : public ForwardingBackend {
 public:
  CacheBackend(std::shared_ptr<Backend> inner, CacheConfig config,
               std::shared_ptr<CacheCounts> counts)
      : ForwardingBackend(std::move(inner)),
        config_(std::move(config)),
        counts_(std::move(counts)) {
    std::error_code ignored;
    fs::create_directories(config_.folder, ignored);
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    std::string what = "kernels";
    for (const kernel::Kernel* kernel : kernels) append(what, kernel::save(*kernel));
    const std::string key = key_of(target, what);
    if (std::optional<std::string> found = find(key)) return Compiled{*std::move(found), {}};
    TENON_ASSIGN(Compiled compiled, ForwardingBackend::compile(target, kernels));
    if (compiled.declined.empty()) keep(key, compiled.binary);
    return compiled;
  }

  // A plan may hold code of its own.
  Result<CallPlan> plan(const TargetInfo& target, const CallSite& site) override {
    std::string what = "call";
    append(what, program::save_call(site.call));
    for (const auto& shapes : {site.operands, site.results}) {
      for (const Shape& each : shapes) append(what, each.to_string());
      append(what, "");
    }
    for (const bool each : site.constant) append(what, each ? "constant" : "");
    const std::string key = key_of(target, what);
    if (const std::optional<std::string> found = find(key)) {
      serial::Reader reader(*found, kEntryFormat.newest);
      CallPlan kept;
      reader(kept.plan, kept.workspace_bytes, kept.packed_bytes, kept.seconds);
      if (reader.ok()) return kept;
    }
    TENON_ASSIGN(CallPlan plan, ForwardingBackend::plan(target, site));
    serial::Writer writer;
    writer(plan.plan, plan.workspace_bytes, plan.packed_bytes, plan.seconds);
    keep(key, std::move(writer).take());
    return plan;
  }

  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    std::string what = "segment";
    program::Program but_constants = segment;
    but_constants.constants.clear();
    append(what, program::save(but_constants));
    for (const Literal& each : segment.constants) {
      append(what, fmt::format("{} {}", each.shape().to_string(), hash_of(text_of(each.data()))));
    }
    const std::string key = key_of(target, what);
    if (std::optional<std::string> found = find(key)) return *std::move(found);
    TENON_ASSIGN(std::string binary, ForwardingBackend::compile_segment(target, segment));
    keep(key, binary);
    return binary;
  }

 private:
  static void append(std::string& to, std::string_view part) {
    to += fmt::format("|{}|", part.size());
    to += part;
  }

  std::string key_of(const TargetInfo& target, std::string_view what) const {
    std::string key;
    for (const std::string_view part : {name(), version()}) append(key, part);
    append(key, to_string(target));
    append(key, what);
    return key;
  }

  static std::string hash_of(std::string_view bytes) {
    return fmt::format("{:016x}{:016x}", serial::hash_of(bytes, 0), serial::hash_of(bytes, 1));
  }
  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // The name is a hash; the key itself is compared.
  fs::path path_of(std::string_view key) const {
    return fs::path(config_.folder) / (hash_of(key) + std::string(kExtension));
  }

  std::optional<std::string> find(const std::string& key) {
    const fs::path path = path_of(key);
    const auto bytes = read_file(path.string());
    if (!bytes) return {};
    const auto file = serial::unseal(*bytes, kEntryFormat);
    if (!file) return {};
    serial::Reader reader(file->payload, file->version);
    std::string stored;
    std::string binary;
    reader(stored, binary);
    if (!reader.ok() || stored != key) return {};
    std::error_code ignored;  // What was used last goes last.
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    ++counts_->found;
    return binary;
  }

  void keep(const std::string& key, const std::string& binary) {
    ++counts_->compiled;
    serial::Writer writer;
    writer(key, binary);
    const std::string entry = serial::seal(kEntryFormat, std::move(writer).take());
    if (write_file(path_of(key).string(), entry).ok()) trim();
  }

  void trim() const {
    struct Entry {
      fs::file_time_type time;
      int64_t bytes;
      fs::path path;
    };
    std::vector<Entry> entries;
    int64_t all = 0;
    const auto now = fs::file_time_type::clock::now();
    std::error_code error;  // Other processes come and go.
    for (fs::directory_iterator at(config_.folder, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code gone;
      const fs::path& path = at->path();
      const auto time = fs::last_write_time(path, gone);
      const auto bytes = static_cast<int64_t>(fs::file_size(path, gone));
      if (gone) continue;
      if (path.extension() == ".tmp" && now - time > kLongestWrite) {
        fs::remove(path, gone);  // Whoever wrote it has died (write_file).
      } else if (path.extension() == kExtension) {
        entries.push_back({time, bytes, path});
        all += bytes;
      }
    }
    std::ranges::sort(entries, {}, &Entry::time);
    for (const Entry& entry : entries) {
      if (all <= config_.most_bytes) return;
      fs::remove(entry.path, error);
      all -= entry.bytes;
    }
  }

  const CacheConfig config_;
  const std::shared_ptr<CacheCounts> counts_;
};

}  // namespace

CacheLayer make_cache_layer(std::shared_ptr<Backend> inner, const CacheConfig& config) {
  auto counts = std::make_shared<CacheCounts>();
  return {std::make_shared<CacheBackend>(std::move(inner), config, counts), counts};
}

CacheConfig cache_config_from_environment() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  CacheConfig config;
  config.folder = variable("TENON_CACHE");
  if (config.folder.empty()) {
    const std::string home = variable("XDG_CACHE_HOME");
    config.folder = (home.empty() ? variable("HOME") + "/.cache" : home) + "/tenon";
  }
  const std::string bytes = variable("TENON_CACHE_BYTES");
  std::from_chars(bytes.data(), bytes.data() + bytes.size(), config.most_bytes);
  return config;
}

}  // namespace tenon::backend
