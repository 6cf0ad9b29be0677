#include "frameworks/onnxruntime/src/provider.h"

#include <dlfcn.h>

#include <charconv>
#include <filesystem>

#include "core/base/file.h"

namespace tenon::ort {
namespace {

// Runs a group for ONNX Runtime.
struct GroupRunner : OrtNodeComputeInfo {
  OrtRuntime runtime;
  std::shared_ptr<CompiledGroup> group;

  GroupRunner(const OrtRuntime& tables, std::shared_ptr<CompiledGroup> made)
      : runtime(tables), group(std::move(made)) {
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
      *state = self;
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
      auto* const runner = static_cast<GroupRunner*>(self);
      return runner->runtime.guarded([&] { runner->group->run(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) {};
  }
};

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string folder_of_this_library() {
  Dl_info found = {};
  if (dladdr(reinterpret_cast<void*>(&folder_of_this_library), &found) == 0) return ".";
  const std::filesystem::path file(found.dli_fname);
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

// Whether ONNX Runtime has copies between nodes of a provider and its own: since release 1.24.
bool copies_memory_of_providers(std::string_view version) {
  constexpr int kFirstMinor = 24;
  int major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto [at, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || at == end || *at != '.') return false;
  if (std::from_chars(at + 1, end, minor).ec != std::errc()) return false;
  return major > 1 || (major == 1 && minor >= kFirstMinor);
}

OrtStatus* supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                             size_t count, OrtEpDevice** made, size_t most, size_t* made_count) {
  auto* const factory = static_cast<ProviderFactory*>(self);
  *made_count = 0;
  // A device of Tenon's is none of those that ONNX Runtime knows: its host, the CPU, stands for it.
  for (size_t i = 0; i < count && most > 0; ++i) {
    if (factory->runtime().get<HardwareDeviceType>(devices[i]) != kOrtCpu) continue;
    return factory->runtime().guarded([&] {
      factory->runtime().call<CreateEpDevice>(
          static_cast<void*>(self), devices[i], static_cast<const OrtKeyValuePairs*>(nullptr),
          static_cast<const OrtKeyValuePairs*>(nullptr), &made[0]);
      *made_count = 1;
      if (factory->memory() != nullptr) {
        factory->runtime().call<EpDeviceAddAllocatorInfo>(made[0], factory->memory()->info());
      }
    });
  }
  return nullptr;
}

std::map<std::string, std::string> entries_of(const OrtRuntime& runtime,
                                              const OrtSessionOptions* options) {
  OrtKeyValuePairs* pairs = nullptr;
  runtime.call<GetSessionOptionsConfigEntries>(options, &pairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  runtime.get<GetKeyValuePairs>(static_cast<const OrtKeyValuePairs*>(pairs), &keys, &values,
                                &count);
  std::map<std::string, std::string> entries;
  for (size_t i = 0; i < count; ++i) entries[keys[i]] = values[i];
  runtime.get<ReleaseKeyValuePairs>(pairs);
  return entries;
}

OrtStatus* create_provider(OrtEpFactory* self, const OrtHardwareDevice* const*,
                           const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions* options,
                           const OrtLogger* logger, OrtEp** made) {
  auto* const factory = static_cast<ProviderFactory*>(self);
  *made = nullptr;
  return factory->runtime().guarded([&] {
    *made = new SessionProvider(*factory,
                                value_or_throw(provider_options_of(
                                    entries_of(factory->runtime(), options), factory->name())),
                                logger);
  });
}

}  // namespace

ProviderFactory::ProviderFactory(const OrtRuntime& runtime, ProviderName name, std::string folder,
                                 bool takes_memory)
    : runtime_(runtime), name_(std::move(name)), folder_(std::move(folder)) {
  GetName = [](const OrtEpFactory* self) {
    return static_cast<const ProviderFactory*>(self)->name().provider.c_str();
  };
  GetVendor = [](const OrtEpFactory*) { return "Tenon"; };
  GetVendorId = [](const OrtEpFactory*) { return uint32_t{0}; };
  GetVersion = [](const OrtEpFactory*) { return TENON_VERSION; };
  GetSupportedDevices = supported_devices;
  CreateEp = create_provider;
  ReleaseEp = [](OrtEpFactory*, OrtEp* provider) {
    delete static_cast<SessionProvider*>(provider);
  };
  CreateAllocator = [](OrtEpFactory* self, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                       OrtAllocator** allocator) -> OrtStatus* {
    auto* const factory = static_cast<ProviderFactory*>(self);
    const ProviderMemory* const memory = factory->memory();
    *allocator = nullptr;
    return factory->runtime().guarded([&] {
      if (memory != nullptr) *allocator = memory->make_allocator();
    });
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) {
    ProviderMemory::end_allocator(allocator);
  };
  CreateDataTransfer = [](OrtEpFactory* self, OrtDataTransferImpl** transfer) -> OrtStatus* {
    auto* const factory = static_cast<ProviderFactory*>(self);
    const ProviderMemory* const memory = factory->memory();
    *transfer = nullptr;
    return factory->runtime().guarded([&] {
      if (memory != nullptr) *transfer = memory->make_transfer();
    });
  };
  IsStreamAware = [](const OrtEpFactory*) { return false; };
  if (takes_memory) open_memory();
}

// ONNX Runtime wants to know the memory before there is a session, so the device is opened for a
// moment. One that cannot be opened is an error of sessions, which may name another.
void ProviderFactory::open_memory() {
  ProviderOptions options;
  options.device = name_.device;
  auto open = [options, library = default_library()] {
    return ProviderDevice::open(options, library);
  };
  try {
    if (open()->has_own_memory()) {
      memory_ = std::make_unique<const ProviderMemory>(runtime_, std::move(open));
    }
  } catch (const client::PluginError&) {
  } catch (const OrtFailure&) {
  }
}

std::string ProviderFactory::default_library() const {
  return environment_or("TENON_PJRT_LIBRARY", folder_ + "/libtenon_pjrt.so");
}

SessionProvider::SessionProvider(const ProviderFactory& factory, ProviderOptions options,
                                 const OrtLogger* logger)
    : factory_(factory),
      options_(std::move(options)),
      logger_(logger),
      device_(ProviderDevice::open(options_, factory.default_library())) {
  if (const ProviderMemory* const memory = factory.memory()) {
    memory_ = memory->memory();
    memory_->set_device(device_);
  }
  GetName = [](const OrtEp* self) {
    return static_cast<const SessionProvider*>(self)->factory_.name().provider.c_str();
  };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
    auto* const provider = static_cast<SessionProvider*>(self);
    return provider->runtime().guarded([&] { provider->claim(graph, support); });
  };
  Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
               OrtNodeComputeInfo** infos, OrtNode**) {
    auto* const provider = static_cast<SessionProvider*>(self);
    return provider->runtime().guarded([&] {
      for (size_t i = 0; i < count; ++i) provider->compile(graphs[i], fused[i], &infos[i]);
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<GroupRunner*>(infos[i]);
  };
}

SessionProvider::~SessionProvider() {
  try {
    if (!options_.report_file.empty()) write_report();
  } catch (const std::exception&) {
    // A report that cannot be written is none.
  }
}

void SessionProvider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  const GraphReader reader(runtime());
  Partition partition = partition_graph(reader, graph, options_, refused_nodes_);
  OrtNodeFusionOptions fusion = {};
  fusion.ort_version_supported = kOrtApiVersion;
  fusion.drop_constant_initializers = true;
  const auto add = [&](const std::vector<const OrtNode*>& nodes) {
    runtime().call<AddNodesToFuse>(support, nodes.data(), nodes.size(),
                                   static_cast<const OrtNodeFusionOptions*>(&fusion));
  };
  for (const LeftNode& each : partition.left) {
    runtime().log(logger_, kOrtInfo, "tenon: ONNX Runtime keeps " + each.text);
    left_.push_back(each);
  }
  if (partition.claimed + partition.left.size() == 0) return;
  runtime().log(logger_, kOrtInfo,
                fmt::format("tenon: {} takes {} of {} nodes, in {} groups",
                            factory_.name().provider, partition.claimed,
                            partition.claimed + partition.left.size(), partition.groups.size()));
  claimed_ += partition.claimed;
  if (options_.strict && !partition.left.empty()) {
    // ONNX Runtime only logs an error here: `compile` refuses the session.
    std::string text = partition.left.front().text;
    if (partition.left.size() > 1)
      text += fmt::format(" (and {} other nodes)", partition.left.size() - 1);
    refused_ = Status(ErrorCode::kUnimplemented, text);
    add(reader.nodes(graph));
    return;
  }
  needed_constants_.merge(partition.needed_constants);
  for (const auto& nodes : partition.groups) add(nodes);
}

void SessionProvider::compile(const OrtGraph* graph, const OrtNode* fused_node,
                              OrtNodeComputeInfo** info) {
  throw_if_error(refused_);
  const GraphReader reader(runtime());
  auto group = std::make_shared<CompiledGroup>(
      reader, graph, runtime().text<NodeGetName>(fused_node), needed_constants_, options_,
      prepared_left_, device_, memory_, logger_);
  groups_.push_back(group);
  *info = new GroupRunner(runtime(), std::move(group));
}

void SessionProvider::write_report() const {
  std::string text =
      fmt::format("{{\"provider\": {}, \"device\": {}, \"claimed\": {},\n \"left\": [",
                  json_text(factory_.name().provider), json_text(options_.device), claimed_);
  for (const LeftNode& each : left_) {
    text += fmt::format("{}{}", &each == left_.data() ? "" : ", ", json_text(each.text));
  }
  text += "],\n \"groups\": [";
  for (const auto& group : groups_) {
    const GroupCounts& counts = group->counts();
    text += fmt::format(
        "{}\n  {{\"name\": {}, \"nodes\": {}, \"prepared\": {}, \"runs\": {}, \"compiled\": {}, "
        "\"loaded\": {}, "
        "\"hits\": {}, \"dropped\": {}, \"sent\": {}, \"fetched\": {}}}",
        group == groups_.front() ? "" : ",", json_text(group->name()), counts.nodes,
        counts.prepared, counts.runs.load(), counts.compiled.load(), counts.loaded.load(),
        counts.hits.load(), counts.dropped.load(), counts.sent.load(), counts.fetched.load());
  }
  text += "]}\n";
  const Status written = write_file(options_.report_file, text);
  if (!written.ok()) runtime().log(logger_, kOrtWarning, "tenon: " + written.message());
}

}  // namespace tenon::ort

// ONNX Runtime looks these up in the library.
extern "C" OrtStatus* CreateEpFactories(const char* registered_name,
                                        const tenon::ort::OrtApiBase* base, const OrtLogger*,
                                        tenon::ort::OrtEpFactory** factories, size_t most,
                                        size_t* count) {
  using namespace tenon::ort;
  *count = 0;
  const OrtApi* const api = base->GetApi(kOrtApiVersion);
  // Without a table there is no way to tell why: an older ONNX Runtime says so itself.
  if (api == nullptr) return nullptr;
  const OrtRuntime runtime(api, GetEpApi::call(api));
  return runtime.guarded([&] {
    if (most < 1) throw OrtFailure{tenon::invalid_argument("there is no room for a factory")};
    std::string folder = folder_of_this_library();
    ProviderName name = provider_name_of(registered_name == nullptr ? "" : registered_name, folder);
    factories[0] = new ProviderFactory(runtime, std::move(name), std::move(folder),
                                       copies_memory_of_providers(base->GetVersionString()));
    *count = 1;
  });
}

extern "C" OrtStatus* ReleaseEpFactory(tenon::ort::OrtEpFactory* factory) {
  delete static_cast<tenon::ort::ProviderFactory*>(factory);
  return nullptr;
}
