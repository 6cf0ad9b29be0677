// A provider of a session, and the factory that makes it: what ONNX Runtime calls.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frameworks/onnxruntime/src/group.h"
#include "frameworks/onnxruntime/src/partition.h"
#include "frameworks/onnxruntime/src/provider_memory.h"

namespace tenon::ort {

/// One for each registration of the library.
class ProviderFactory : public OrtEpFactory {
 public:
  /// `takes_memory`: ONNX Runtime copies between the memory of a provider and the host's.
  ProviderFactory(const OrtRuntime& runtime, ProviderName name, std::string folder,
                  bool takes_memory);

  const OrtRuntime& runtime() const { return runtime_; }
  const ProviderName& name() const { return name_; }
  /// The PJRT plug-in, unless an option names another.
  std::string default_library() const;
  /// The memory of the registration's device, or null: arrays lie in the host's memory.
  const ProviderMemory* memory() const { return memory_.get(); }

 private:
  void open_memory();

  OrtRuntime runtime_;
  ProviderName name_;
  std::string folder_;
  std::unique_ptr<const ProviderMemory> memory_;
};

/// The provider of one session.
class SessionProvider : public OrtEp {
 public:
  SessionProvider(const ProviderFactory& factory, ProviderOptions options, const OrtLogger* logger);
  ~SessionProvider();

  const OrtRuntime& runtime() const { return factory_.runtime(); }
  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  void compile(const OrtGraph* graph, const OrtNode* fused_node, OrtNodeComputeInfo** info);

 private:
  void write_report() const;

  const ProviderFactory& factory_;
  ProviderOptions options_;
  const OrtLogger* logger_;
  std::shared_ptr<const ProviderDevice> device_;
  std::shared_ptr<DeviceAddresses> memory_;
  std::set<std::string> needed_constants_;
  std::map<std::string, Status> refused_nodes_;  ///< As partition_graph keeps them.
  Status refused_;  ///< With the option `strict`: the nodes that are left.
  int64_t prepared_left_ = options_.prepared_elements;  ///< All groups share it.
  size_t claimed_ = 0;
  std::vector<LeftNode> left_;
  std::vector<std::shared_ptr<const CompiledGroup>> groups_;
};

}  // namespace tenon::ort
