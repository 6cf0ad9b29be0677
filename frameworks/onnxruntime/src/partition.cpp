#include "frameworks/onnxruntime/src/partition.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "hlo/onnx/importer.h"

namespace tenon::ort {
namespace {

constexpr int64_t kMostDecidingValues = 64;  // Elements of an input that decides a shape.
constexpr int64_t kLeastWork = 64;           // Elements of a node whose group is worth a call.

// Ops that move numbers or make shapes.
constexpr std::array<std::string_view, 18> kMovingOps = {
    "Cast",    "CastLike", "Concat",   "Constant", "ConstantOfShape", "Expand",
    "Flatten", "Gather",   "Identity", "Range",    "Reshape",         "Shape",
    "Size",    "Slice",    "Split",    "Squeeze",  "Transpose",       "Unsqueeze"};

// Sizes for those that a graph leaves open: the same for each name. Sizes that have no name, as
// behind a node that is left, may have to be equal: `uniform`.
class SampleSizes {
 public:
  explicit SampleSizes(bool uniform) : uniform_(uniform) {}

  bool took_part() const { return took_part_; }
  hlo::Type sample(const hlo::OnnxValueInfo& info) {
    Dims dims = info.type->dims();
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != kDynamic) continue;
      took_part_ = true;
      // An image is large enough for the usual number of halvings.
      const int64_t size = uniform_ ? 16 : i == 0 ? 2 : dims.size() >= 4 && i >= 2 ? 224 : 16;
      dims[i] =
          info.symbols[i].empty() ? size : named_.emplace(info.symbols[i], size).first->second;
    }
    return hlo::Type::tensor(*info.element_type, std::move(dims));
  }

 private:
  bool uniform_;
  bool took_part_ = false;
  std::map<std::string, int64_t> named_;
};

std::string first_output(const GraphNode& node) {
  return node.node.outputs.empty() ? "" : node.node.outputs.front();
}

class Partitioner {
 public:
  Partitioner(const GraphReader& reader, const OrtGraph* graph, const ProviderOptions& options,
              bool uniform = false)
      : reader_(reader),
        options_(options),
        opsets_(reader.opsets(graph)),
        trial_(opsets_),
        sizes_(uniform) {}

  bool sampled() const { return sizes_.took_part(); }
  // Whether the table has every op of the node and of its subgraphs.
  bool has_rows(const hlo::OnnxNode& node) const;
  Partition run(const std::vector<const OrtNode*>& nodes,
                const std::map<std::string, Status>& refused);
  // Nothing if the node can be lowered, else why not.
  Status try_node(const OrtNode* node);

 private:
  Status check_row(const hlo::OnnxNode& node) const;
  Status add_input(const OrtValueInfo* value);
  void forget_outputs(const GraphNode& node);
  Status check_outputs(const GraphNode& node) const;
  Status by_value(const GraphNode& node, Status failure);
  bool is_worth_a_call(const GraphNode& node) const;
  std::string described(const hlo::OnnxNode& node, const Status& why) const;

  const GraphReader& reader_;
  const ProviderOptions& options_;
  hlo::OnnxOpsets opsets_;
  hlo::OnnxTrial trial_;
  SampleSizes sizes_;
  std::set<std::string> arguments_;  // Values of the trial that no node of it makes.
  std::map<std::string, const OrtValue*> weights_;
  std::set<std::string> needed_constants_;
};

Status Partitioner::add_input(const OrtValueInfo* value) {
  const std::string name = reader_.name(value);
  if (name.empty() || trial_.type_of(name) != nullptr) return {};
  const hlo::OnnxValueInfo info = reader_.value(value);
  if (const OrtValue* const constant = reader_.constant(value)) {
    if (!info.unsupported.empty()) return unimplemented("'{}' is {}", name, info.unsupported);
    const TensorView view = reader_.tensor(constant);
    if (element_count(view.dims) <= options_.constant_elements || !may_cross(view.type)) {
      return trial_.add_constant(name, reader_.literal(constant));
    }
    weights_[name] = constant;
    trial_.add_value(name, hlo::Type::tensor(view.type, view.dims));
    return {};
  }
  if (!info.unsupported.empty()) return unimplemented("'{}' is {}", name, info.unsupported);
  if (!may_cross(*info.element_type)) {
    return unimplemented("'{}' has elements of less than a byte", name);
  }
  arguments_.insert(name);
  trial_.add_value(name, sizes_.sample(info));
  return {};
}

Status Partitioner::check_outputs(const GraphNode& node) const {
  for (const OrtValueInfo* each : node.outputs) {
    const hlo::Type* const made = trial_.type_of(reader_.name(each));
    if (made == nullptr) continue;
    const hlo::OnnxValueInfo info = reader_.value(each);
    if (!made->is_tensor() || !may_cross(made->element_type()) ||
        info.element_type != made->element_type()) {
      return unimplemented("'{}' is {} to ONNX Runtime, and {} here", info.name,
                           info.type ? info.type->to_string() : info.unsupported,
                           made->to_string());
    }
  }
  return {};
}

// Later nodes use these values as arguments.
void Partitioner::forget_outputs(const GraphNode& node) {
  for (const OrtValueInfo* each : node.outputs) {
    if (reader_.name(each).empty()) continue;
    const hlo::OnnxValueInfo info = reader_.value(each);
    if (info.unsupported.empty() && may_cross(*info.element_type)) {
      arguments_.insert(info.name);
      trial_.add_value(info.name, sizes_.sample(info));
    }
  }
}

// A node whose shape an argument decides is taken if programs may depend on values of arguments.
Status Partitioner::by_value(const GraphNode& node, Status failure) {
  // Large constants are arguments of programs, unless their values are needed.
  while (trial_.wanted_input() >= 0) {
    const std::string& name = node.node.inputs[static_cast<size_t>(trial_.wanted_input())];
    const auto weight = weights_.find(name);
    if (weight == weights_.end()) break;
    needed_constants_.insert(name);
    TENON_TRY(trial_.add_constant(name, reader_.literal(weight->second)));
    weights_.erase(weight);
    failure = trial_.add_node(node.node);
    if (failure.ok()) return {};
  }
  if (!options_.shape_values || trial_.wanted_input() < 0) return failure;
  const std::string& name = node.node.inputs[static_cast<size_t>(trial_.wanted_input())];
  const hlo::Type& type = *trial_.type_of(name);
  // A flag or a single number that is no integer decides what is done, not a shape.
  const bool is_integer =
      !is_float(type.element_type()) && type.element_type() != ElementType::kPred;
  if (!arguments_.contains(name) || type.rank() > 1 || (!is_integer && type.rank() != 1) ||
      element_count(type.dims()) > kMostDecidingValues) {
    return failure;
  }
  for (const OrtValueInfo* output : node.outputs) {
    const hlo::OnnxValueInfo info = reader_.value(output);
    if (!info.unsupported.empty()) return failure;
    if (!info.name.empty()) trial_.add_value(info.name, sizes_.sample(info));
  }
  return {};
}

bool Partitioner::has_rows(const hlo::OnnxNode& node) const {
  const auto has = [&](const hlo::OnnxNode& each) { return has_rows(each); };
  return check_row(node).ok() && std::ranges::all_of(node.attributes, [&](const auto& attribute) {
           return !attribute.second.graph ||
                  std::ranges::all_of(attribute.second.graph->nodes, has);
         });
}

Status Partitioner::check_row(const hlo::OnnxNode& node) const {
  const auto opset = opsets_.find(node.domain);
  if (opset == opsets_.end()) return unimplemented("the graph states no version of its domain");
  return hlo::has_onnx_op(node.domain, node.op_type, opset->second)
             ? Status()
             : unimplemented("the op is not supported");
}

Status Partitioner::try_node(const OrtNode* node) {
  GraphNode read = reader_.outline(node);
  const auto attempt = [&]() -> Status {
    TENON_TRY(check_row(read.node));
    read = reader_.node(node);
    for (const OrtValueInfo* each : read.inputs) {
      if (each != nullptr) TENON_TRY(add_input(each));
    }
    for (const OrtValueInfo* each : read.implicit_inputs) TENON_TRY(add_input(each));
    Status status = trial_.add_node(read.node);
    if (!status.ok() && trial_.wanted_input() >= 0) status = by_value(read, std::move(status));
    TENON_TRY(status);
    return check_outputs(read);
  };
  Status status;
  try {
    status = attempt();
  } catch (const OrtFailure& failure) {
    status = failure.status;
  }
  if (!status.ok()) forget_outputs(read);
  return status;
}

// "node 'x', Op of opset 17: why"; the importer's errors begin so, with a number that says nothing
// here.
std::string Partitioner::described(const hlo::OnnxNode& node, const Status& why) const {
  const auto opset = opsets_.find(node.domain);
  const std::string op =
      fmt::format("{}{} of opset {}", node.domain.empty() ? "" : node.domain + ".", node.op_type,
                  opset == opsets_.end() ? 0 : opset->second);
  std::string reason = why.message();
  if (const size_t at = reason.find(op + ": "); at != std::string::npos)
    reason = reason.substr(at + op.size() + 2);
  return fmt::format("node '{}', {}: {}", node.name, op, reason);
}

bool Partitioner::is_worth_a_call(const GraphNode& node) const {
  if (std::ranges::find(kMovingOps, node.node.op_type) != kMovingOps.end()) return false;
  if (node.node.op_type == "Loop" || node.node.op_type == "Scan") return true;
  const auto is_large = [&](const std::string& name) {
    const hlo::Type* const type = name.empty() ? nullptr : trial_.type_of(name);
    return type != nullptr && element_count(type->dims()) >= kLeastWork;
  };
  return std::ranges::any_of(node.node.inputs, is_large) ||
         std::ranges::any_of(node.node.outputs, is_large);
}

Partition Partitioner::run(const std::vector<const OrtNode*>& nodes,
                           const std::map<std::string, Status>& refused) {
  Partition partition;
  std::vector<bool> claimed(nodes.size());
  std::vector<std::vector<size_t>> sources(nodes.size());
  std::vector<GraphNode> outlines;
  std::unordered_map<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Status status = try_node(nodes[i]);
    claimed[i] = status.ok();
    const GraphNode& outline = outlines.emplace_back(reader_.outline(nodes[i]));
    if (!status.ok()) {
      const auto before = refused.find(first_output(outline));
      partition.left.push_back(
          {described(outline.node, before == refused.end() ? status : before->second)});
    }
    for (const auto* list : {&outline.inputs, &outline.implicit_inputs}) {
      for (const OrtValueInfo* each : *list) {
        const auto maker = makers.find(reader_.name(each));
        if (maker != makers.end()) sources[i].push_back(maker->second);
      }
    }
    for (const std::string& name : outline.node.outputs) {
      if (!name.empty()) makers[name] = i;
    }
  }
  std::map<int, std::vector<size_t>> groups;
  const std::vector<int> group = groups_of(claimed, sources);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (group[i] >= 0) groups[group[i]].push_back(i);
  }
  for (const auto& [number, members] : groups) {
    const bool taken =
        options_.small_groups || options_.strict ||
        std::ranges::any_of(members, [&](size_t i) { return is_worth_a_call(outlines[i]); });
    if (taken) partition.groups.emplace_back();
    for (const size_t i : members) {
      if (taken) {
        partition.groups.back().push_back(nodes[i]);
      } else {
        partition.left.push_back({described(
            outlines[i].node, Status(ErrorCode::kUnimplemented, "its group is not worth a call"))});
      }
    }
    partition.claimed += taken ? members.size() : 0;
  }
  partition.needed_constants = needed_constants_;
  return partition;
}

}  // namespace

// A claimed node is of the group behind all groups that it needs through nodes that are left.
std::vector<int> groups_of(const std::vector<bool>& claimed,
                           const std::vector<std::vector<size_t>>& sources) {
  std::vector<int> stages(claimed.size(), -1);
  std::vector<int> groups(claimed.size(), -1);
  for (size_t i = 0; i < claimed.size(); ++i) {
    int stage = claimed[i] ? 0 : -1;
    for (const size_t source : sources[i]) {
      const bool next = claimed[i] && !claimed[source];
      stage = std::max(stage, stages[source] + (next ? 1 : 0));
    }
    stages[i] = stage;
    if (claimed[i]) groups[i] = stage;
  }
  return groups;
}

namespace {

// A rank of 0 may be an unknown one, or that of a count: the graph around says more.
bool is_static(const GraphReader& reader, const OrtValueInfo* value) {
  if (value == nullptr) return true;
  const hlo::OnnxValueInfo info = reader.value(value);
  return !info.type || (info.type->shape().is_static() && info.type->rank() > 0);
}

// ONNX Runtime asks for subgraphs first: those of a node that will be taken whole are left to it.
// The graph around the node is not there yet, so that it is tried by itself. If that says nothing,
// since sizes are not known, its ops decide.
bool is_taken_whole(const GraphReader& reader, const OrtGraph* graph,
                    const ProviderOptions& options, std::map<std::string, Status>& refused) {
  const OrtNode* parent = nullptr;
  reader.runtime().call<GraphGetParentNode>(graph, &parent);
  if (parent == nullptr) return false;
  Partitioner partitioner(reader, graph, options);
  Status status = partitioner.try_node(parent);
  if (status.ok()) return true;
  const GraphNode node = reader.node(parent);
  const auto known = [&](const OrtValueInfo* each) { return is_static(reader, each); };
  if ((!std::ranges::all_of(node.inputs, known) ||
       !std::ranges::all_of(node.implicit_inputs, known)) &&
      partitioner.has_rows(node.node)) {
    return true;
  }
  refused.emplace(first_output(node), std::move(status));
  return false;
}

}  // namespace

Partition partition_graph(const GraphReader& reader, const OrtGraph* graph,
                          const ProviderOptions& options, std::map<std::string, Status>& refused) {
  if (is_taken_whole(reader, graph, options, refused)) return {};
  const std::vector<const OrtNode*> nodes = reader.nodes(graph);
  Partitioner partitioner(reader, graph, options);
  Partition partition = partitioner.run(nodes, refused);
  if (partition.left.empty() || !partitioner.sampled()) return partition;
  Partition other = Partitioner(reader, graph, options, true).run(nodes, refused);
  return other.left.size() < partition.left.size() ? other : partition;
}

}  // namespace tenon::ort
