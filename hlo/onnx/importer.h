// hlo/onnx/: reads ONNX models into Modules, by a table of lowerings of their ops.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "hlo/ir/instruction.h"
#include "hlo/onnx/model.h"

namespace tenon::hlo {

struct OnnxKnowledge {
  /// Sizes of inputs with unknown ones, by number.
  std::map<size_t, Dims> shapes;
  /// Values of inputs, by number: they are used where a value decides a shape, and only there.
  std::map<size_t, Literal> values;
};

struct OnnxImport {
  std::unique_ptr<Module> module;
  /// The inputs whose values the Module depends on.
  std::vector<size_t> used_values;
};

/// A Module whose function `main` has the inputs of the model's graph, with sizes as far as the
/// model states them, and no body.
Result<std::unique_ptr<Module>> onnx_signature(const OnnxModel& model);

/// The Module of a model: `main` takes the inputs that have no initializer and returns the outputs.
/// Errors name the node, its op and version: kUnimplemented for what is not supported.
Result<OnnxImport> import_onnx(const OnnxModel& model, const OnnxKnowledge& known = {});

/// Whether the table has a row of the op for a version of its domain.
bool has_onnx_op(std::string_view domain, std::string_view op_type, int64_t version);

/// Imports the nodes of a graph one by one, to learn which of them can be imported.
class OnnxTrial {
 public:
  explicit OnnxTrial(OnnxOpsets opsets);
  ~OnnxTrial();

  /// A value that nodes may use, of a static type.
  void add_value(std::string name, const Type& type);
  Status add_constant(std::string name, Literal value);
  /// The outputs of a node that succeeds may be used by later ones. Its inputs must be there.
  Status add_node(OnnxNode node);
  /// The input whose value the last node needs, and which is not known; -1 if there is none.
  int64_t wanted_input() const { return wanted_input_; }
  /// Null if there is no such value.
  const Type* type_of(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  int64_t wanted_input_ = -1;
};

}  // namespace tenon::hlo
