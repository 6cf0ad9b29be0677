// Models for the tests of the importer, written in C++.
#pragma once

#include <string>
#include <vector>

#include "hlo/evaluator/evaluator.h"
#include "hlo/onnx/importer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo::testing {

using Names = std::vector<std::string>;

inline OnnxNode node(const std::string& op, Names inputs, Names outputs) {
  OnnxNode made;
  made.op_type = op;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  return made;
}

inline OnnxNode with_integer(OnnxNode made, const std::string& name, int64_t value) {
  made.attributes[name].integer = value;
  return made;
}

inline OnnxValueInfo value_info(const std::string& name, ElementType type, Dims dims,
                                Names symbols = {}) {
  OnnxValueInfo info;
  info.name = name;
  info.element_type = type;
  symbols.resize(dims.size());
  info.symbols = std::move(symbols);
  info.type = Type::tensor(type, std::move(dims));
  return info;
}

inline OnnxModel model_of(std::vector<OnnxNode> nodes, std::vector<OnnxValueInfo> inputs,
                          Names outputs, int64_t opset = 18) {
  OnnxModel model;
  model.opsets[""] = opset;
  model.graph.nodes = std::move(nodes);
  model.graph.inputs = std::move(inputs);
  for (std::string& each : outputs) model.graph.outputs.emplace_back().name = std::move(each);
  return model;
}

inline Literal floats(Dims dims, const std::vector<float>& values) {
  Literal literal(Shape(ElementType::kF32, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) literal.set(static_cast<int64_t>(i), values[i]);
  return literal;
}

inline std::string error_of(const OnnxModel& model, const OnnxKnowledge& known = {}) {
  const auto imported = import_onnx(model, known);
  return imported ? "" : imported.error().message();
}

/// The first result of the evaluator, or an error, as text.
inline std::string run(const OnnxModel& model, const std::vector<Literal>& arguments,
                       const OnnxKnowledge& known = {}) {
  const auto imported = import_onnx(model, known);
  if (!imported) return imported.error().message();
  if (const Status valid = verify(*imported->module); !valid.ok()) return valid.message();
  const auto results = Evaluator(*imported->module).run(*imported->module->entry(), arguments);
  return results ? (*results)[0].to_string() : results.error().message();
}

}  // namespace tenon::hlo::testing
