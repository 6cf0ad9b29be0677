// The C ABI of a plug-in (core/backend/plugin.h), by its own table: versions and sizes of structs,
// symbols, errors, output.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <set>

#include "conformance/cases/interface/seam_device.h"
#include "conformance/cases/program_maker.h"
#include "core/backend/adapter/adapter.h"
#include "core/base/file.h"

namespace tenon::conformance {
namespace {

// A sink that counts its calls.
struct TextSink {
  std::string text;
  int writes = 0;
  TenonSink sink{sizeof(TenonSink), this, [](void* self, const char* bytes, size_t count) {
                   auto* const taken = static_cast<TextSink*>(self);
                   taken->text.append(bytes, count);
                   ++taken->writes;
                 }};
};

struct PluginTable {
  std::string path;
  int device = 0;  // Its number among the plug-in's.
  void* library = nullptr;
  TenonPluginFunction start = nullptr;
  const TenonBackend* table = nullptr;
};

Result<PluginTable> open_plugin(const std::string& path, int device) {
  PluginTable plugin{path, device};
  plugin.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin.library == nullptr) return internal_error("{} cannot be loaded: {}", path, dlerror());
  plugin.start = reinterpret_cast<TenonPluginFunction>(dlsym(plugin.library, TENON_PLUGIN_SYMBOL));
  if (plugin.start == nullptr)
    return internal_error("B2: there is no symbol {}", TENON_PLUGIN_SYMBOL);
  TextSink error;
  plugin.table = plugin.start(backend::host_services(), &error.sink);
  if (plugin.table == nullptr) return internal_error("it does not start: {}", error.text);
  return plugin;
}

// --- Versions, structs, symbols

Status same_table(const PluginTable& p) {
  for (int i = 0; i < 3; ++i) {
    TextSink error;
    const TenonBackend* const again = p.start(backend::host_services(), &error.sink);
    TENON_TRY(expect(again == p.table, "B2", "another call returns another table"));
    TENON_TRY(expect(error.writes == 0, "B2", "it writes an error and returns a table"));
  }
  return {};
}

Status states_version(const PluginTable& p) {
  TENON_TRY(expect(p.table->abi_major == TENON_ABI_MAJOR, "B3", "another major version"));
  return expect(p.table->abi_minor <= TENON_ABI_MINOR, "B3",
                "a newer minor version than the host's");
}

Status states_size(const PluginTable& p) {
  TENON_TRY(expect(p.table->size >= offsetof(TenonBackend, release) + sizeof(void*), "B1",
                   "the table's size does not cover the required functions"));
  return expect(p.table->size <= 4096, "B1", "the table's size is no size in bytes");
}

Status has_required_functions(const PluginTable& p) {
  const TenonBackend& t = *p.table;
  const bool all = t.devices != nullptr && t.open != nullptr && t.close != nullptr &&
                   t.compile != nullptr && t.load != nullptr && t.unload != nullptr &&
                   t.allocate != nullptr && t.free != nullptr && t.copy != nullptr &&
                   t.launch != nullptr && t.record != nullptr && t.wait != nullptr &&
                   t.await != nullptr && t.release != nullptr;
  TENON_TRY(expect(all, "B1", "a required function is null"));
  TENON_TRY(expect(t.name != nullptr && t.version != nullptr, "B1", "name or version is null"));
  for (const char* c = t.name; *c != '\0'; ++c) {
    const bool allowed =
        (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_' || *c == '-';
    TENON_TRY(expect(allowed, "B1", "the name is not one word in lower case"));
  }
  return {};
}

// Names of the symbols that the library defines for others.
Result<std::set<std::string>> exported(const std::string& path) {
  TENON_ASSIGN(const std::string bytes, read_file(path));
  const auto at = [&]<class T>(T* out, uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes.data() + offset, sizeof(T));
    return true;
  };
  Elf64_Ehdr head;
  if (!at(&head, 0)) return internal_error("{} has no ELF header", path);
  std::set<std::string> names;
  for (uint64_t s = 0; s < head.e_shnum; ++s) {
    Elf64_Shdr section;
    Elf64_Shdr strings;
    if (!at(&section, head.e_shoff + s * head.e_shentsize)) break;
    if (section.sh_type != SHT_DYNSYM) continue;
    if (!at(&strings, head.e_shoff + section.sh_link * uint64_t{head.e_shentsize})) break;
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      if (!at(&symbol, section.sh_offset + i * sizeof(Elf64_Sym))) break;
      const auto binding = ELF64_ST_BIND(symbol.st_info);
      const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
      const uint64_t name = strings.sh_offset + symbol.st_name;
      const bool is_defined = symbol.st_shndx != SHN_UNDEF && binding == STB_GLOBAL &&
                              visibility == STV_DEFAULT && name < bytes.size();
      if (is_defined) names.insert(bytes.c_str() + name);
    }
  }
  return names;
}

Status exports_one_symbol(const PluginTable& p) {
  TENON_ASSIGN(const auto names, exported(p.path));
  for (const std::string& name : names) {
    if (name != TENON_PLUGIN_SYMBOL)
      return internal_error("B2: {} exports the symbol {}", p.path, name);
  }
  return {};
}

struct FoundDevices {
  std::vector<std::string> names;
  bool sizes = true;
};
Result<FoundDevices> devices_of(const PluginTable& p) {
  FoundDevices found;
  TextSink error;
  const TenonCode code = p.table->devices(
      &found,
      [](void* context, const TenonDeviceInfo* info) {
        auto* const all = static_cast<FoundDevices*>(context);
        all->names.emplace_back(info->name == nullptr ? "" : info->name);
        all->sizes &= info->size >= sizeof(TenonDeviceInfo) && info->target != nullptr &&
                      info->target->size > 0;
      },
      &error.sink);
  if (code != TENON_OK) return internal_error("devices fails with {}: {}", int{code}, error.text);
  return found;
}

Status describes_devices(const PluginTable& p) {
  TENON_ASSIGN(const FoundDevices found, devices_of(p));
  TENON_TRY(expect(!found.names.empty(), "B9", "there is no device"));
  TENON_TRY(
      expect(found.sizes, "B1", "a TenonDeviceInfo or TenonTargetInfo has no size or target"));
  return expect(std::set(found.names.begin(), found.names.end()).size() == found.names.size(), "B9",
                "two devices have one name");
}

// --- Errors and output

class OpenPlugin {
 public:
  explicit OpenPlugin(const PluginTable& p) : table_(*p.table) {
    code_ = table_.open(p.device, &device_, &error_.sink);
  }
  OpenPlugin(const OpenPlugin&) = delete;
  OpenPlugin& operator=(const OpenPlugin&) = delete;
  ~OpenPlugin() {
    if (code_ == TENON_OK) table_.close(device_);
  }
  Status status() const {
    return code_ == TENON_OK ? Status() : internal_error("open fails: {}", error_.text);
  }
  TenonDevice device() const { return device_; }

 private:
  const TenonBackend& table_;
  TenonDevice device_ = 0;
  TextSink error_;
  TenonCode code_;
};

Status error_has_a_sentence(const PluginTable& p) {
  const OpenPlugin open(p);
  TENON_TRY(open.status());
  TENON_TRY(expect(open.device() != 0, "B10", "open returns the handle 0"));
  constexpr TenonMemory kUntouched = 0x5A5A5A5A;
  TenonMemory memory = kUntouched;
  TextSink error;
  const TenonCode code =
      p.table->allocate(open.device(), 0, int64_t{1} << 60, &memory, &error.sink);
  TENON_TRY(expect(code == TENON_RESOURCE_EXHAUSTED, "B16", "2^60 bytes have another code"));
  TENON_TRY(expect(!error.text.empty(), "B4", "an error has no text"));
  TENON_TRY(expect(error.text.find('\n') == std::string::npos, "B4", "a text has several lines"));
  TENON_TRY(expect(memory == kUntouched, "B4", "a failed call has set its output"));
  memory = 0;
  TextSink none;
  const TenonCode small = p.table->allocate(open.device(), 0, 64, &memory, &none.sink);
  TENON_TRY(expect(small == TENON_OK && memory != 0, "B4", "a failed call has changed something"));
  TENON_TRY(expect(none.writes == 0, "B4", "a call that succeeds writes an error"));
  p.table->free(open.device(), memory);
  return {};
}

// A host of the first minor version, whose structs lack the members behind `error`.
Status takes_exact_sizes(const PluginTable& p) {
  const OpenPlugin open(p);
  TENON_TRY(open.status());
  TextSink error;
  TenonMemory memory = 0;
  if (p.table->allocate(open.device(), 0, 256, &memory, &error.sink) != TENON_OK)
    return internal_error("allocate: {}", error.text);
  Bytes sent = test_bytes(256, 3);
  Bytes got(256);
  TenonCopyArgs to{sizeof(TenonCopyArgs), open.device(), 0,          {memory, 0, nullptr},
                   {0, 0, sent.data()},   256,           &error.sink};
  TenonCopyArgs from{sizeof(TenonCopyArgs), open.device(), 0,          {0, 0, got.data()},
                     {memory, 0, nullptr},  256,           &error.sink};
  TENON_TRY(expect(p.table->copy(&to) == TENON_OK && p.table->copy(&from) == TENON_OK, "B1",
                   "a copy whose struct has exactly its size fails"));
  TenonEvent event = 0;
  TENON_TRY(expect(p.table->record(open.device(), 0, &event, &error.sink) == TENON_OK, "B23",
                   "record fails"));
  TenonEventState state = TENON_EVENT_PENDING;
  TENON_TRY(expect(p.table->await(open.device(), event, -1, &state, &error.sink) == TENON_OK &&
                       state == TENON_EVENT_DONE,
                   "B25", "await fails"));
  p.table->release(open.device(), event);
  p.table->free(open.device(), memory);
  return expect_bytes("B1", got, sent);
}

// Standard output goes to a file while `body` runs; its size then.
Result<int64_t> printed_by(const std::function<void()>& body) {
  char name[] = "/tmp/tenon-conform-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return internal_error("no temporary file");
  unlink(name);
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(file, STDOUT_FILENO);
  body();
  std::fflush(stdout);
  const int64_t bytes = lseek(file, 0, SEEK_END);
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  return bytes;
}

Status prints_nothing(const PluginTable& p) {
  Status status;
  TENON_ASSIGN(const int64_t bytes, printed_by([&] {
                 const auto found = devices_of(p);
                 const OpenPlugin open(p);
                 status = found ? open.status() : found.error();
                 TextSink error;
                 TenonMemory memory = 0;
                 static_cast<void>(
                     p.table->allocate(open.device(), 0, int64_t{1} << 60, &memory, &error.sink));
               }));
  TENON_TRY(std::move(status));
  return expect(bytes == 0, "B5", "a call writes to standard output");
}

struct AbiCase {
  const char* name;
  Status (*check)(const PluginTable& plugin);
};
constexpr AbiCase kAbiCases[] = {
    {"B1/describes_devices", describes_devices},
    {"B1/has_required_functions", has_required_functions},
    {"B1/states_size", states_size},
    {"B1/takes_exact_sizes", takes_exact_sizes},
    {"B2/exports_one_symbol", exports_one_symbol},
    {"B2/same_table", same_table},
    {"B3/states_version", states_version},
    {"B4/error_has_a_sentence", error_has_a_sentence},
    {"B5/prints_nothing", prints_nothing},
};

CaseResult run_abi_case(Status (*check)(const PluginTable&), CaseContext& context) {
  const auto released = context.target.release_device();
  if (!released) return failed_run(released.error());
  const auto plugin = open_plugin(released->plugin, static_cast<int>(released->index));
  const Status status = plugin ? check(*plugin) : plugin.error();
  CaseResult result = status.ok() ? CaseResult() : failed_run(status);
  if (!status.ok()) result.blame = Blame::kInterface;
  result.steps.kernels = 1;
  return result;
}

}  // namespace

void add_abi_cases(CaseList& list) {
  for (const AbiCase& each : kAbiCases) {
    ConformanceCase one;
    one.name = fmt::format("abi/{}", each.name);
    one.tier = Tier::kQuick;
    one.needs = CaseNeeds::kPlugin;
    one.run = [check = each.check](CaseContext& context) { return run_abi_case(check, context); };
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
