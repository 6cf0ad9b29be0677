// A model as a graph of nodes, read from a file or given by a framework that holds the graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/types/literal.h"
#include "hlo/types/type.h"

namespace tenon::hlo {

struct OnnxGraph;

/// An attribute of a node; which member counts follows from what the op asks for.
struct OnnxAttribute {
  std::optional<int64_t> integer;
  std::optional<float> real;
  std::optional<std::string> text;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> texts;
  std::optional<Literal> tensor;
  std::shared_ptr<const OnnxGraph> graph;
  /// Within a function: the attribute of the calling node that it stands for.
  std::string reference;
};

using OnnxAttributes = std::map<std::string, OnnxAttribute, std::less<>>;

struct OnnxNode {
  std::string domain;  ///< Empty for ai.onnx.
  std::string op_type;
  std::string name;
  std::string overload;
  std::vector<std::string> inputs;  ///< Names of values; empty: an optional input left out.
  std::vector<std::string> outputs;
  OnnxAttributes attributes;
};

/// An input or output of a graph.
struct OnnxValueInfo {
  std::string name;
  /// Unknown sizes are kDynamic; nothing if there is no type, or one without a rank.
  std::optional<Type> type;
  /// The names of symbolic sizes, or empty texts.
  std::vector<std::string> symbols;
  std::optional<ElementType> element_type;
  std::string unsupported;  ///< Why a value of this type cannot be imported: a sequence …
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValueInfo> inputs;  ///< Those without an initializer alone.
  std::vector<OnnxValueInfo> outputs;
  std::vector<std::pair<std::string, Literal>> initializers;
};

using OnnxOpsets = std::map<std::string, int64_t, std::less<>>;  ///< Versions by domain.

struct OnnxFunction {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  OnnxAttributes defaults;
  std::vector<OnnxNode> nodes;
  OnnxOpsets opsets;
};

struct OnnxModel {
  OnnxOpsets opsets;
  OnnxGraph graph;
  /// By "domain:name:overload".
  std::map<std::string, OnnxFunction, std::less<>> functions;
};

/// The key of the function that a node would call.
std::string function_key(std::string_view domain, std::string_view name, std::string_view overload);

/// The element type that TensorProto.DataType numbers, or nothing: strings, and unknown numbers.
std::optional<ElementType> onnx_element_type(int64_t number);

}  // namespace tenon::hlo
