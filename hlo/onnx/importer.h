// hlo/onnx/: reads ONNX models into Modules, by a table of lowerings of their ops.
#pragma once

#include <map>
#include <memory>
#include <string>

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

}  // namespace tenon::hlo
