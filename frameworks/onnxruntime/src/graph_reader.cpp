#include "frameworks/onnxruntime/src/graph_reader.h"

#include <utility>

namespace tenon::ort {
namespace {

constexpr int kOrtStringType = 8, kNewestOrtType = 22;

// The numbers of both are the same for the types that ONNX Runtime's version 23 has.
std::optional<ElementType> element_type(int number) {
  return number == kOrtStringType || number > kNewestOrtType ? std::nullopt
                                                             : hlo::onnx_element_type(number);
}

// Ends what a function of ONNX Runtime made.
template <class Slot, class Handle>
class ScopedHandle {
 public:
  ScopedHandle(const OrtRuntime& runtime, Handle* handle) : runtime_(runtime), handle_(handle) {}
  ~ScopedHandle() { runtime_.get<Slot>(handle_); }
  ScopedHandle(const ScopedHandle&) = delete;
  ScopedHandle& operator=(const ScopedHandle&) = delete;

 private:
  const OrtRuntime& runtime_;
  Handle* handle_;
};

// Two elements a byte, the first in its lower half.
Literal unpacked(const Shape& shape, bool is_signed, const void* data) {
  Literal literal(shape);
  const auto* const bytes = static_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    const int half = (bytes[i / 2] >> (i % 2 == 0 ? 0 : 4)) & 0xf;
    literal.set_integer(i, is_signed && half >= 8 ? half - 16 : half);
  }
  return literal;
}

}  // namespace

bool may_cross(ElementType type) { return bit_width(type) >= 8 || type == ElementType::kPred; }

hlo::OnnxOpsets GraphReader::opsets(const OrtGraph* graph) const {
  size_t count = 0;
  runtime_->call<GraphGetNumOperatorSets>(graph, &count);
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  runtime_->call<GraphGetOperatorSets>(graph, domains.data(), versions.data(), count);
  hlo::OnnxOpsets opsets;
  for (size_t i = 0; i < count; ++i) {
    const std::string domain = domains[i];
    opsets[domain == "ai.onnx" ? "" : domain] = versions[i];
  }
  return opsets;
}

std::vector<const OrtNode*> GraphReader::nodes(const OrtGraph* graph) const {
  return runtime_->list<GraphGetNumNodes, GraphGetNodes, const OrtNode*>(graph);
}
std::vector<const OrtValueInfo*> GraphReader::inputs(const OrtGraph* graph) const {
  return runtime_->list<GraphGetNumInputs, GraphGetInputs, const OrtValueInfo*>(graph);
}
std::vector<const OrtValueInfo*> GraphReader::outputs(const OrtGraph* graph) const {
  return runtime_->list<GraphGetNumOutputs, GraphGetOutputs, const OrtValueInfo*>(graph);
}
std::vector<const OrtValueInfo*> GraphReader::initializers(const OrtGraph* graph) const {
  return runtime_->list<GraphGetNumInitializers, GraphGetInitializers, const OrtValueInfo*>(graph);
}

std::string GraphReader::name(const OrtValueInfo* value) const {
  return value == nullptr ? "" : runtime_->text<GetValueInfoName>(value);
}

hlo::OnnxValueInfo GraphReader::value(const OrtValueInfo* value) const {
  hlo::OnnxValueInfo info;
  info.name = name(value);
  const OrtTypeInfo* type = nullptr;
  runtime_->call<GetValueInfoTypeInfo>(value, &type);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (type != nullptr) runtime_->call<CastTypeInfoToTensorInfo>(type, &tensor);
  if (tensor == nullptr) {
    info.unsupported = type == nullptr ? "of no known type" : "no tensor";
    return info;
  }
  int number = 0;
  runtime_->call<GetTensorElementType>(tensor, &number);
  info.element_type = element_type(number);
  if (!info.element_type) {
    info.unsupported = number == kOrtStringType
                           ? "a tensor of strings"
                           : "a tensor of element type " + std::to_string(number);
    return info;
  }
  size_t rank = 0;
  runtime_->call<GetDimensionsCount>(tensor, &rank);
  Dims dims(rank);
  std::vector<const char*> symbols(rank);
  runtime_->call<GetDimensions>(tensor, dims.data(), rank);
  runtime_->call<GetSymbolicDimensions>(tensor, symbols.data(), rank);
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) dims[i] = kDynamic;
    info.symbols.emplace_back(symbols[i] == nullptr ? "" : symbols[i]);
  }
  info.type = hlo::Type::tensor(*info.element_type, std::move(dims));
  return info;
}

const OrtValue* GraphReader::constant(const OrtValueInfo* value) const {
  bool is_constant = false;
  runtime_->call<ValueInfoIsConstantInitializer>(value, &is_constant);
  if (!is_constant) return nullptr;
  const OrtValue* found = nullptr;
  runtime_->call<ValueInfoGetInitializerValue>(value, &found);
  return found;
}

TensorView GraphReader::tensor(const OrtValue* value) const {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  runtime_->call<GetTensorTypeAndShape>(value, &info);
  const ScopedHandle<ReleaseTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo> released(*runtime_,
                                                                                        info);
  TensorView view;
  int number = 0;
  runtime_->call<GetTensorElementType>(static_cast<const OrtTensorTypeAndShapeInfo*>(info),
                                       &number);
  const auto type = element_type(number);
  if (!type)
    throw OrtFailure{unimplemented("tensors of element type {} are not supported", number)};
  view.type = *type;
  size_t rank = 0;
  runtime_->call<GetDimensionsCount>(static_cast<const OrtTensorTypeAndShapeInfo*>(info), &rank);
  view.dims.resize(rank);
  runtime_->call<GetDimensions>(static_cast<const OrtTensorTypeAndShapeInfo*>(info),
                                view.dims.data(), rank);
  void* data = nullptr;
  runtime_->call<GetTensorMutableData>(const_cast<OrtValue*>(value), &data);
  view.data = data;
  return view;
}

Literal GraphReader::literal(const OrtValue* value) const {
  const TensorView view = tensor(value);
  const Shape shape(view.type, view.dims);
  if (view.type == ElementType::kS4 || view.type == ElementType::kU4) {
    return unpacked(shape, view.type == ElementType::kS4, view.data);
  }
  return value_or_throw(Literal::from_bytes(
      shape, {static_cast<const std::byte*>(view.data), static_cast<size_t>(shape.byte_size())}));
}

hlo::OnnxAttribute GraphReader::attribute(const OrtOpAttr* attribute, OrtOpAttrType type) const {
  hlo::OnnxAttribute read;
  // The bytes of a list or text: their number first, by a call that does not succeed.
  const auto bytes = [&] {
    size_t size = 0;
    if (OrtStatus* const status =
            runtime_->get<ReadOpAttr>(attribute, type, nullptr, size_t{0}, &size))
      runtime_->get<ReleaseStatus>(status);
    std::string all(size, '\0');
    if (size > 0) {
      runtime_->call<ReadOpAttr>(attribute, type, static_cast<void*>(all.data()), size, &size);
    }
    return all;
  };
  const auto numbers = [&]<class T>(std::vector<T>& values) {
    const std::string all = bytes();
    values.resize(all.size() / sizeof(T));
    std::memcpy(values.data(), all.data(), values.size() * sizeof(T));
  };
  size_t size = 0;
  switch (type) {
    case kOrtInt:
      runtime_->call<ReadOpAttr>(attribute, type, static_cast<void*>(&read.integer.emplace()),
                                 sizeof(int64_t), &size);
      break;
    case kOrtFloat:
      runtime_->call<ReadOpAttr>(attribute, type, static_cast<void*>(&read.real.emplace()),
                                 sizeof(float), &size);
      break;
    case kOrtInts:
      numbers(read.integers);
      break;
    case kOrtFloats:
      numbers(read.reals);
      break;
    case kOrtString:
      read.text = bytes();
      break;
    case kOrtStrings: {
      const std::string all = bytes();
      for (size_t at = 0; at < all.size(); at += read.texts.back().size() + 1)
        read.texts.emplace_back(all.c_str() + at);
      break;
    }
    case kOrtTensor: {
      OrtValue* value = nullptr;
      runtime_->call<OpAttrGetTensorAttributeAsOrtValue>(attribute, &value);
      const ScopedHandle<ReleaseValue, OrtValue> released(*runtime_, value);
      read.tensor = literal(value);
      break;
    }
    default:
      throw OrtFailure{unimplemented("an attribute is neither number, text nor tensor")};
  }
  return read;
}

GraphNode GraphReader::outline(const OrtNode* node) const {
  GraphNode read;
  read.node.name = runtime_->text<NodeGetName>(node);
  read.node.op_type = runtime_->text<NodeGetOperatorType>(node);
  read.node.domain = runtime_->text<NodeGetDomain>(node);
  if (read.node.domain == "ai.onnx") read.node.domain.clear();
  read.inputs = runtime_->list<NodeGetNumInputs, NodeGetInputs, const OrtValueInfo*>(node);
  read.implicit_inputs =
      runtime_->list<NodeGetNumImplicitInputs, NodeGetImplicitInputs, const OrtValueInfo*>(node);
  read.outputs = runtime_->list<NodeGetNumOutputs, NodeGetOutputs, const OrtValueInfo*>(node);
  for (const OrtValueInfo* each : read.inputs) read.node.inputs.push_back(name(each));
  for (const OrtValueInfo* each : read.outputs) read.node.outputs.push_back(name(each));
  return read;
}

GraphNode GraphReader::node(const OrtNode* node) const {
  GraphNode read = outline(node);
  for (const OrtOpAttr* each :
       runtime_->list<NodeGetNumAttributes, NodeGetAttributes, const OrtOpAttr*>(node)) {
    OrtOpAttrType type = kOrtInt;
    runtime_->call<OpAttrGetType>(each, &type);
    if (type == kOrtGraph) continue;
    read.node.attributes[runtime_->text<OpAttrGetName>(each)] = attribute(each, type);
  }
  size_t count = 0;
  runtime_->call<NodeGetNumSubgraphs>(node, &count);
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> names(count);
  if (count > 0) runtime_->call<NodeGetSubgraphs>(node, graphs.data(), count, names.data());
  for (size_t i = 0; i < count; ++i) {
    read.node.attributes[names[i]].graph = std::make_shared<hlo::OnnxGraph>(graph(graphs[i]));
  }
  return read;
}

hlo::OnnxGraph GraphReader::graph(const OrtGraph* graph) const {
  hlo::OnnxGraph read;
  read.name = runtime_->text<GraphGetName>(graph);
  for (const OrtValueInfo* each : inputs(graph)) read.inputs.push_back(value(each));
  for (const OrtValueInfo* each : outputs(graph)) read.outputs.push_back(value(each));
  for (const OrtValueInfo* each : initializers(graph)) {
    const OrtValue* const found = constant(each);
    if (found != nullptr) read.initializers.emplace_back(name(each), literal(found));
  }
  for (const OrtNode* each : nodes(graph)) read.nodes.push_back(node(each).node);
  return read;
}

}  // namespace tenon::ort
