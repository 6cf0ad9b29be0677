#include "core/backend/layers/cache/cache.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "core/backend/layers/forward.h"
#include "core/base/archive.h"
#include "core/base/digest.h"
#include "core/base/process/environment.h"
#include "core/kernel/serial/serial.h"
#include "core/program/serial.h"

namespace tenon::backend {
namespace {

using serial::digest_of;

constexpr serial::Format kCacheEntryFormat = {"TNCE", "cache entry", 1, 1};

// The inputs of a compilation whose binary was read from the folder.
struct Source {
  std::string key;
  TargetInfo target;
  std::optional<program::Program> segment;  // Empty for kernels, which load gets again.
};

// The binaries that were read from the folder most recently: an executable is loaded soon after it
// was compiled.
class FoundBinaries {
 public:
  void add(std::string_view binary, Source source) {
    const std::lock_guard lock(mutex_);
    if (binaries_.size() >= kMost) binaries_.pop_front();
    binaries_.push_back({digest_of(binary), std::make_shared<Source>(std::move(source))});
  }
  // Null if the binary was not read from the folder.
  std::shared_ptr<const Source> source_of(std::string_view binary) const {
    const std::string digest = digest_of(binary);
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(binaries_, digest, &BinarySource::digest);
    return found == binaries_.end() ? nullptr : found->source;
  }

 private:
  static constexpr size_t kMost = 64;
  struct BinarySource {
    std::string digest;
    std::shared_ptr<const Source> source;
  };
  mutable std::mutex mutex_;
  std::deque<BinarySource> binaries_;
};

class CacheBackend final : public ForwardingBackend,
                           public std::enable_shared_from_this<CacheBackend> {
 public:
  CacheBackend(std::shared_ptr<Backend> inner, std::shared_ptr<CacheFolder> folder,
               std::shared_ptr<CacheCounts> counts)
      : ForwardingBackend(std::move(inner)),
        folder_(std::move(folder)),
        counts_(std::move(counts)) {}

  Result<std::unique_ptr<Device>> open(size_t index) override;

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    std::string what = "kernels";
    for (const kernel::Kernel* kernel : kernels) append(what, kernel::save(*kernel));
    const std::string key = key_of(target, what);
    if (std::optional<std::string> found = find(key)) {
      found_.add(*found, {key, target, {}});
      return Compiled{*std::move(found), {}};
    }
    return compile_anew(key, target, kernels);
  }

  // A plan may contain compiled code.
  Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site) override {
    std::string what = "call";
    append(what, program::save_call(site.call));
    for (const auto& shapes : {site.operands, site.results}) {
      for (const Shape& each : shapes) append(what, each.to_string());
      append(what, "");
    }
    for (const bool each : site.constant) append(what, each ? "constant" : "");
    const std::string key = key_of(target, what);
    if (const std::optional<std::string> found = find(key)) {
      serial::ArchiveReader reader(*found, kCacheEntryFormat.newest);
      LibraryCallPlan kept;
      reader(kept.plan, kept.workspace_bytes, kept.packed_bytes, kept.seconds);
      if (reader.ok()) return kept;
    }
    TENON_ASSIGN(LibraryCallPlan plan, ForwardingBackend::plan(target, site));
    serial::ArchiveWriter writer;
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
      append(what, fmt::format("{} {}", each.shape().to_string(), digest_of(text_of(each.data()))));
    }
    const std::string key = key_of(target, what);
    if (std::optional<std::string> found = find(key)) {
      found_.add(*found, {key, target, segment});
      return *std::move(found);
    }
    return compile_segment_anew(key, target, segment);
  }

  // Compiles the source of `binary` again if the binary was read from the folder; else returns
  // nothing.
  Result<std::optional<std::string>> compile_again(std::string_view binary, Kernels kernels) {
    const std::shared_ptr<const Source> source = found_.source_of(binary);
    if (source == nullptr) return std::nullopt;
    if (source->segment) return compile_segment_anew(source->key, source->target, *source->segment);
    TENON_ASSIGN(Compiled compiled, compile_anew(source->key, source->target, kernels));
    if (!compiled.declined.empty()) {
      return internal_error("B13: {} declines kernels that it once took", name());
    }
    return std::move(compiled.binary);
  }

 private:
  static void append(std::string& to, std::string_view part) {
    to += fmt::format("|{}|", part.size());
    to += part;
  }
  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string key_of(const TargetInfo& target, std::string_view what) const {
    std::string key;
    for (const std::string_view part : {name(), version()}) append(key, part);
    append(key, to_string(target));
    append(key, what);
    return key;
  }

  Result<Compiled> compile_anew(const std::string& key, const TargetInfo& target, Kernels kernels) {
    TENON_ASSIGN(Compiled compiled, ForwardingBackend::compile(target, kernels));
    if (compiled.declined.empty()) keep(key, compiled.binary);
    return compiled;
  }

  Result<std::string> compile_segment_anew(const std::string& key, const TargetInfo& target,
                                           const program::Program& segment) {
    TENON_ASSIGN(std::string binary, ForwardingBackend::compile_segment(target, segment));
    keep(key, binary);
    return binary;
  }

  // The full key is compared: the file's name is only its digest.
  static std::string file_of(std::string_view key) {
    return digest_of(key) + std::string(kCacheExtension);
  }

  std::optional<std::string> find(const std::string& key) {
    if (folder_ == nullptr) return {};
    const std::optional<std::string> bytes = folder_->read(file_of(key));
    if (!bytes) return {};
    const auto file = serial::unseal(*bytes, kCacheEntryFormat);
    if (!file) return {};
    serial::ArchiveReader reader(file->payload, file->version);
    std::string stored;
    std::string binary;
    reader(stored, binary);
    if (!reader.ok() || stored != key) return {};
    ++counts_->found;
    return binary;
  }

  void keep(const std::string& key, const std::string& binary) {
    ++counts_->compiled;
    if (folder_ == nullptr) return;
    serial::ArchiveWriter writer;
    writer(key, binary);
    folder_->write(file_of(key), serial::seal(kCacheEntryFormat, std::move(writer).take()));
  }

  const std::shared_ptr<CacheFolder> folder_;
  const std::shared_ptr<CacheCounts> counts_;
  FoundBinaries found_;
};

class CacheDevice final : public ForwardingDevice {
 public:
  CacheDevice(std::unique_ptr<Device> inner, std::shared_ptr<CacheBackend> backend)
      : ForwardingDevice(std::move(inner)), backend_(std::move(backend)) {}

  // If the backend refuses a binary from the folder, it was damaged before its checksum was
  // computed, or written by another build of the same version: it is compiled again.
  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    auto module = ForwardingDevice::load(binary, kernels);
    if (module || module.error().code() == ErrorCode::kUnavailable ||
        module.error().code() == ErrorCode::kResourceExhausted) {
      return module;
    }
    TENON_ASSIGN(const auto compiled, backend_->compile_again(binary, kernels));
    return compiled ? ForwardingDevice::load(*compiled, kernels) : module;
  }

 private:
  const std::shared_ptr<CacheBackend> backend_;
};

Result<std::unique_ptr<Device>> CacheBackend::open(size_t index) {
  TENON_ASSIGN(std::unique_ptr<Device> device, ForwardingBackend::open(index));
  return std::make_unique<CacheDevice>(std::move(device), shared_from_this());
}

// The user's folder for caches, or empty if the environment does not name one. A relative path
// would depend on the current folder; the XDG specification says to ignore it.
std::string user_cache_folder() {
  const auto is_absolute = [](const std::string& path) { return path.starts_with('/'); };
  if (std::string folder = environment_or("XDG_CACHE_HOME", ""); is_absolute(folder)) return folder;
  if (std::string home = environment_or("HOME", ""); is_absolute(home)) return home + "/.cache";
  return "";
}

}  // namespace

CacheLayer make_cache_layer(std::shared_ptr<Backend> inner, const CacheConfig& config) {
  CacheLayer layer;
  std::shared_ptr<CacheFolder> folder;
  if (config.folder.empty()) {
    layer.status = failed_precondition(
        "there is no folder for a cache: TENON_CACHE is not set, and neither XDG_CACHE_HOME nor "
        "HOME is an absolute path");
  } else if (auto opened = CacheFolder::open(config.folder, config.most_bytes)) {
    folder = *std::move(opened);
  } else {
    layer.status = opened.error();
  }
  auto counts = std::make_shared<CacheCounts>();
  layer.backend = std::make_shared<CacheBackend>(std::move(inner), folder, counts);
  layer.counts = std::move(counts);
  layer.folder = std::move(folder);
  return layer;
}

Result<CacheConfig> cache_config_from_environment() {
  CacheConfig config;
  config.folder = environment_or("TENON_CACHE", "");
  if (config.folder.empty()) {
    config.folder = user_cache_folder();
    if (!config.folder.empty()) config.folder += "/tenon";
  }
  TENON_ASSIGN(config.most_bytes, environment_number("TENON_CACHE_BYTES", config.most_bytes, {0},
                                                     "a number of bytes"));
  return config;
}

}  // namespace tenon::backend
