// Which nodes of a graph a provider takes, and in which groups.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frameworks/onnxruntime/src/graph_reader.h"
#include "frameworks/onnxruntime/src/options.h"

namespace tenon::ort {

/// A node that is left to ONNX Runtime.
struct LeftNode {
  std::string text;  ///< "node 'x', Op of opset 17: why".
};

struct Partition {
  std::vector<std::vector<const OrtNode*>> groups;
  std::vector<LeftNode> left;
  size_t claimed = 0;
  /// Constants whose values their nodes need.
  std::set<std::string> needed_constants;
};

/// Finds the nodes that can be lowered, by lowering them with sample sizes for unknown ones, and
/// puts them into groups as large as possible: a group holds every claimed node between two of its
/// own.
/// `refused` keeps, from a subgraph to the graph around it, why a node with subgraphs is not taken
/// whole: by the name of its first output. Its subgraphs have groups of their own then.
Partition partition_graph(const GraphReader& reader, const OrtGraph* graph,
                          const ProviderOptions& options, std::map<std::string, Status>& refused);

/// The group of each node, or -1: nodes that are claimed and of one group have no other node on a
/// path between them. `sources[i]` are earlier nodes whose results node i uses.
std::vector<int> groups_of(const std::vector<bool>& claimed,
                           const std::vector<std::vector<size_t>>& sources);

}  // namespace tenon::ort
