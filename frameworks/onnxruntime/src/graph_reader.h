// Reads graphs of ONNX Runtime into the importer's form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frameworks/onnxruntime/src/ort_runtime.h"
#include "hlo/onnx/model.h"

namespace tenon::ort {

/// A value of ONNX Runtime: it names, types, and may hold a constant.
struct GraphValue {
  hlo::OnnxValueInfo info;
  const OrtValueInfo* handle = nullptr;
};

/// A tensor of ONNX Runtime, as it lies in memory.
struct TensorView {
  ElementType type = ElementType::kF32;
  Dims dims;
  const void* data = nullptr;
};

/// A node and the values that it uses beside its inputs: those of the graphs around its subgraphs.
struct GraphNode {
  hlo::OnnxNode node;
  std::vector<const OrtValueInfo*> inputs;  ///< Null: left out.
  std::vector<const OrtValueInfo*> implicit_inputs;
  std::vector<const OrtValueInfo*> outputs;
};

/// Reads graphs, nodes and values. Errors are thrown as OrtFailure.
///
/// Thread-safety: everything, from any thread.
class GraphReader {
 public:
  explicit GraphReader(const OrtRuntime& runtime) : runtime_(&runtime) {}

  const OrtRuntime& runtime() const { return *runtime_; }
  hlo::OnnxOpsets opsets(const OrtGraph* graph) const;
  std::vector<const OrtNode*> nodes(const OrtGraph* graph) const;
  std::vector<const OrtValueInfo*> inputs(const OrtGraph* graph) const;
  std::vector<const OrtValueInfo*> outputs(const OrtGraph* graph) const;
  std::vector<const OrtValueInfo*> initializers(const OrtGraph* graph) const;

  /// A node without its attributes.
  GraphNode outline(const OrtNode* node) const;
  GraphNode node(const OrtNode* node) const;
  std::string name(const OrtValueInfo* value) const;
  hlo::OnnxValueInfo value(const OrtValueInfo* value) const;
  /// The tensor that a value always is, or nothing.
  const OrtValue* constant(const OrtValueInfo* value) const;

  TensorView tensor(const OrtValue* value) const;
  Literal literal(const OrtValue* value) const;

 private:
  hlo::OnnxAttribute attribute(const OrtOpAttr* attribute, OrtOpAttrType type) const;
  hlo::OnnxGraph graph(const OrtGraph* graph) const;

  const OrtRuntime* runtime_;
};

/// Whether values of the type may enter or leave a group: elements of whole bytes.
bool may_cross(ElementType type);

}  // namespace tenon::ort
