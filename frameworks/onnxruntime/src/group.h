// A group of nodes as programs of the device, one for the sizes of each call.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frameworks/onnxruntime/src/device.h"
#include "frameworks/onnxruntime/src/device_addresses.h"
#include "frameworks/onnxruntime/src/graph_reader.h"
#include "hlo/onnx/importer.h"

namespace tenon::ort {

/// Counts of a group, for the report.
struct GroupCounts {
  size_t nodes = 0;
  int64_t prepared =
      0;  ///< Elements of constants that its programs have for the compiler to lay out.
  std::atomic<int64_t> runs = 0;
  std::atomic<int64_t> compiled = 0;
  std::atomic<int64_t> loaded = 0;  ///< From the cache's folder.
  std::atomic<int64_t> hits = 0;
  std::atomic<int64_t> dropped = 0;
  std::atomic<int64_t> sent = 0;     ///< Inputs that came in the host's memory.
  std::atomic<int64_t> fetched = 0;  ///< Results that were copied to the host's memory.
};

/// An input of a call, in the host's memory or in the device's.
struct GroupInput {
  TensorView view;
  DeviceAddresses* memory = nullptr;     ///< Null: the host's.
  mutable std::vector<std::byte> value;  ///< As `bytes` copied it from the device.

  /// The value, which is brought to the host once.
  std::span<const std::byte> bytes() const;
};

/// A program for one set of sizes.
struct GroupProgram {
  std::string shapes;  ///< The sizes of its inputs as a key.
  std::string key;     ///< The same, with the values that it depends on.
  OwnedExecutable executable;
  std::vector<hlo::Type> results;
};

/// Thread-safety: `run` from any thread; programs are compiled one after another.
class CompiledGroup {
 public:
  /// Reads the group's graph, and puts its large constants on the device. Where all sizes are
  /// known, its program is compiled. `prepared_left` is how many elements of constants the session
  /// may yet put into programs; the group takes its own off. Throws OrtFailure and PluginError.
  CompiledGroup(const GraphReader& reader, const OrtGraph* graph, std::string name,
                const std::set<std::string>& needed_constants, const ProviderOptions& options,
                int64_t& prepared_left, std::shared_ptr<const ProviderDevice> device,
                std::shared_ptr<DeviceAddresses> memory, const OrtLogger* logger);
  CompiledGroup(const CompiledGroup&) = delete;
  CompiledGroup& operator=(const CompiledGroup&) = delete;

  /// Runs the group for a call of ONNX Runtime. Throws OrtFailure and PluginError.
  void run(OrtKernelContext* context);

  const std::string& name() const { return name_; }
  const GroupCounts& counts() const { return counts_; }

 private:
  using Inputs = std::vector<GroupInput>;

  void read_graph(const GraphReader& reader, const OrtGraph* graph,
                  const std::set<std::string>& needed_constants, int64_t& prepared_left);
  void compile_static();
  Inputs inputs_of(OrtKernelContext* context) const;
  std::shared_ptr<const GroupProgram> program_for(const Inputs& inputs);
  std::shared_ptr<const GroupProgram> find(const std::string& shapes, const Inputs& inputs);
  std::shared_ptr<GroupProgram> make(const Inputs& inputs, std::vector<size_t>& used_values);
  hlo::OnnxImport import_for(const Inputs& inputs) const;
  OwnedExecutable compiled_text(const std::string& text);
  void give(const GroupProgram& program, std::vector<OwnedBuffer>& results,
            OrtKernelContext* context);
  void execute(const GroupProgram& program, const Inputs& inputs, OrtKernelContext* context);

  GraphReader reader_;
  std::string name_;
  ProviderOptions options_;
  std::shared_ptr<const ProviderDevice> device_;
  std::shared_ptr<DeviceAddresses> memory_;
  const OrtLogger* logger_;
  std::string compile_options_;
  hlo::OnnxModel model_;
  size_t input_count_ = 0;  ///< Those of the call; constants on the device come behind them.
  std::vector<OwnedBuffer> weights_;
  GroupCounts counts_;

  std::mutex mutex_;                                         ///< Guards what follows.
  std::mutex compile_mutex_;                                 ///< Taken before `mutex_`.
  std::list<std::shared_ptr<const GroupProgram>> programs_;  ///< The one used last is first.
  std::unordered_map<std::string, std::list<std::shared_ptr<const GroupProgram>>::iterator> by_key_;
  /// For the sizes of a call, the inputs whose values the programs for them depend on.
  std::unordered_map<std::string, std::vector<size_t>> used_values_;
};

}  // namespace tenon::ort
