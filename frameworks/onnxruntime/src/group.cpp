#include "frameworks/onnxruntime/src/group.h"

#include <algorithm>
#include <filesystem>

#include "core/base/digest.h"
#include "core/base/file.h"
#include "hlo/text/printer.h"

namespace tenon::ort {
namespace {

using client::sized;

constexpr int64_t kMostShapeValues = 1024;  // Elements of an input whose value a program may need.

void append(std::string& key, const void* data, size_t size) {
  key.append(static_cast<const char*>(data), size);
}

// The sizes of a call's inputs as a key.
std::string key_of(const std::vector<TensorView>& inputs) {
  std::string key;
  for (const TensorView& each : inputs) {
    const auto rank = static_cast<int64_t>(each.dims.size());
    append(key, &rank, sizeof(rank));
    append(key, each.dims.data(), each.dims.size() * sizeof(int64_t));
  }
  return key;
}

size_t bytes_of(const TensorView& view) {
  return static_cast<size_t>(element_count(view.dims)) * storage_bytes(view.type);
}

std::string shapes_text(const std::vector<TensorView>& inputs) {
  std::string text;
  for (const TensorView& each : inputs) {
    text += (text.empty() ? "" : ", ") + Shape(each.type, each.dims).to_string();
  }
  return text;
}

bool has_known_sizes(const hlo::OnnxValueInfo& info) {
  return info.type && info.type->shape().is_static();
}

// The place of what the device's compiler prepares for a convolution or a product, or dequantises,
// if it is a constant of the program; -1 if there is none. Programs for several sizes would have
// the weights of products several times.
int prepared_input(const hlo::OnnxNode& node, bool is_static) {
  if (is_static && (node.op_type == "MatMul" || node.op_type == "Gemm")) return 1;
  if (node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "ConvInteger") {
    return 1;
  }
  if (node.op_type == "QLinearConv") return 3;
  return node.op_type == "DequantizeLinear" ? 0 : -1;
}

bool is_file_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

CompiledGroup::CompiledGroup(const GraphReader& reader, const OrtGraph* graph, std::string name,
                             const std::set<std::string>& needed_constants,
                             const ProviderOptions& options, int64_t& prepared_left,
                             std::shared_ptr<const ProviderDevice> device, const OrtLogger* logger)
    : reader_(reader),
      name_(std::move(name)),
      options_(options),
      device_(std::move(device)),
      logger_(logger),
      compile_options_(device_->compile_options(options)) {
  read_graph(reader, graph, needed_constants, prepared_left);
  compile_static();
}

void CompiledGroup::read_graph(const GraphReader& reader, const OrtGraph* graph,
                               const std::set<std::string>& needed_constants,
                               int64_t& prepared_left) {
  model_.opsets = reader.opsets(graph);
  model_.graph.name = name_;
  for (const OrtValueInfo* each : reader.inputs(graph)) {
    if (reader.constant(each) != nullptr) continue;
    hlo::OnnxValueInfo info = reader.value(each);
    // A rank of 0 may be an unknown one.
    if (info.type && info.type->rank() == 0) info.type.reset();
    model_.graph.inputs.push_back(std::move(info));
  }
  input_count_ = model_.graph.inputs.size();
  const bool is_static = std::ranges::all_of(model_.graph.inputs, has_known_sizes);
  for (const OrtValueInfo* each : reader.outputs(graph))
    model_.graph.outputs.push_back(reader.value(each));
  std::set<std::string> known;
  const auto add_constant = [&](const OrtValueInfo* value, bool is_prepared) {
    const OrtValue* const constant = value == nullptr ? nullptr : reader.constant(value);
    if (constant == nullptr || !known.insert(reader.name(value)).second) return;
    const TensorView view = reader.tensor(constant);
    const std::string value_name = reader.name(value);
    const int64_t elements = element_count(view.dims);
    const bool is_part = elements <= options_.constant_elements || !may_cross(view.type) ||
                         needed_constants.contains(value_name);
    is_prepared = is_prepared && !is_part && elements <= prepared_left;
    if (is_prepared) {
      prepared_left -= elements;
      counts_.prepared += elements;
    }
    if (is_part || is_prepared) {
      model_.graph.initializers.emplace_back(value_name, reader.literal(constant));
      return;
    }
    weights_.push_back(device_->put({view.data, view.type, view.dims}, nullptr));
    hlo::OnnxValueInfo info;
    info.name = value_name;
    info.element_type = view.type;
    info.symbols.resize(view.dims.size());
    info.type = hlo::Type::tensor(view.type, view.dims);
    model_.graph.inputs.push_back(std::move(info));
  };
  for (const OrtNode* each : reader.nodes(graph)) {
    GraphNode node = reader.node(each);
    const int place = prepared_input(node.node, is_static);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      add_constant(node.inputs[i], static_cast<int>(i) == place);
    for (const OrtValueInfo* input : node.implicit_inputs) add_constant(input, false);
    model_.graph.nodes.push_back(std::move(node.node));
  }
  counts_.nodes = model_.graph.nodes.size();
}

// Errors of programs whose sizes are known come while the session is made.
void CompiledGroup::compile_static() {
  Inputs inputs;
  for (size_t i = 0; i < input_count_; ++i) {
    const hlo::OnnxValueInfo& info = model_.graph.inputs[i];
    if (!has_known_sizes(info)) return;
    inputs.push_back({info.type->element_type(), info.type->dims(), nullptr});
  }
  try {
    program_for(inputs);
  } catch (const OrtFailure& failure) {
    // It needs values, which come with a run.
    if (failure.status.code() != ErrorCode::kUnimplemented) throw;
  }
}

CompiledGroup::Inputs CompiledGroup::inputs_of(OrtKernelContext* context) const {
  size_t count = 0;
  const OrtKernelContext* const constant_context = context;
  reader_.runtime().call<KernelContextGetInputCount>(constant_context, &count);
  if (count != input_count_) {
    throw OrtFailure{
        internal_error("group '{}' gets {} inputs, and takes {}", name_, count, input_count_)};
  }
  Inputs inputs;
  inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const OrtValue* value = nullptr;
    reader_.runtime().call<KernelContextGetInput>(constant_context, i, &value);
    if (value == nullptr) throw OrtFailure{invalid_argument("input {} of a group has no value", i)};
    inputs.push_back(reader_.tensor(value));
    if (inputs.back().type != model_.graph.inputs[i].element_type) {
      throw OrtFailure{invalid_argument("input '{}' has another element type than in the model",
                                        model_.graph.inputs[i].name)};
    }
  }
  return inputs;
}

void CompiledGroup::run(OrtKernelContext* context) {
  const Inputs inputs = inputs_of(context);
  const std::shared_ptr<const GroupProgram> program = program_for(inputs);
  execute(*program, inputs, context);
  ++counts_.runs;
}

std::shared_ptr<const GroupProgram> CompiledGroup::find(const std::string& shapes,
                                                        const Inputs& inputs) {
  const std::lock_guard lock(mutex_);
  const auto used = used_values_.find(shapes);
  if (used == used_values_.end()) return nullptr;
  std::string key = shapes;
  for (const size_t i : used->second) append(key, inputs[i].data, bytes_of(inputs[i]));
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found->second);
  return programs_.front();
}

std::shared_ptr<const GroupProgram> CompiledGroup::program_for(const Inputs& inputs) {
  const std::string shapes = key_of(inputs);
  if (auto program = find(shapes, inputs)) {
    ++counts_.hits;
    return program;
  }
  const std::lock_guard compiling(compile_mutex_);
  // Another thread may have made it meanwhile.
  if (auto program = find(shapes, inputs)) {
    ++counts_.hits;
    return program;
  }
  std::vector<size_t> used;
  const std::shared_ptr<GroupProgram> program = make(inputs, used);
  const std::lock_guard lock(mutex_);
  std::vector<size_t>& all_used = used_values_[shapes];
  for (const size_t i : used) {
    if (std::ranges::find(all_used, i) == all_used.end()) all_used.push_back(i);
  }
  std::ranges::sort(all_used);
  program->shapes = shapes;
  program->key = shapes;
  for (const size_t i : all_used) append(program->key, inputs[i].data, bytes_of(inputs[i]));
  programs_.push_front(program);
  by_key_[program->key] = programs_.begin();
  while (programs_.size() > static_cast<size_t>(options_.cache_size)) {
    const std::shared_ptr<const GroupProgram> dropped = programs_.back();
    by_key_.erase(dropped->key);
    programs_.pop_back();
    const auto same = [&](const auto& each) { return each->shapes == dropped->shapes; };
    if (std::ranges::none_of(programs_, same)) used_values_.erase(dropped->shapes);
    ++counts_.dropped;
  }
  return program;
}

hlo::OnnxImport CompiledGroup::import_for(const Inputs& inputs) const {
  hlo::OnnxKnowledge known;
  for (size_t i = 0; i < inputs.size(); ++i) known.shapes[i] = inputs[i].dims;
  auto imported = hlo::import_onnx(model_, known);
  if (imported || !options_.shape_values) return value_or_throw(std::move(imported));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data == nullptr || element_count(inputs[i].dims) > kMostShapeValues) continue;
    const Shape shape(inputs[i].type, inputs[i].dims);
    known.values.emplace(
        i, value_or_throw(Literal::from_bytes(
               shape, {static_cast<const std::byte*>(inputs[i].data), bytes_of(inputs[i])})));
  }
  return value_or_throw(hlo::import_onnx(model_, known));
}

std::shared_ptr<GroupProgram> CompiledGroup::make(const Inputs& inputs,
                                                  std::vector<size_t>& used_values) {
  hlo::OnnxImport imported = import_for(inputs);
  used_values = imported.used_values;
  std::erase_if(used_values, [&](size_t i) { return i >= input_count_; });
  auto program = std::make_shared<GroupProgram>();
  program->results = imported.module->find_function("main")->result_types();
  for (size_t i = 0; i < program->results.size(); ++i) {
    const hlo::Type& type = program->results[i];
    const hlo::OnnxValueInfo& declared = model_.graph.outputs[i];
    if (!type.is_tensor() || !type.shape().is_static() ||
        declared.element_type != type.element_type()) {
      throw OrtFailure{unimplemented("output '{}' is {}, which ONNX Runtime does not expect",
                                     declared.name, type.to_string())};
    }
  }
  hlo::PrintOptions print;
  print.form = hlo::TextForm::kStableHlo;
  print.locations = true;
  const std::string text = hlo::print_module(*imported.module, print);
  const std::string digest = serial::digest_of(text);
  if (!options_.dump_directory.empty()) {
    std::string file = name_;
    std::ranges::replace_if(file, [](char c) { return !is_file_word(c); }, '_');
    std::error_code ignored;
    std::filesystem::create_directories(options_.dump_directory, ignored);
    print.locations = false;
    throw_if_error(
        write_file(fmt::format("{}/{}-{}.mlir", options_.dump_directory, file, digest.substr(0, 8)),
                   hlo::print_module(*imported.module, print)));
  }
  reader_.runtime().log(logger_, kOrtVerbose,
                        fmt::format("tenon: group '{}' of {} nodes gets a program for {}", name_,
                                    counts_.nodes, shapes_text(inputs)));
  program->executable = compiled_text(text);
  return program;
}

// The folder's files are code of this process, as with any cache of compiled code.
OwnedExecutable CompiledGroup::compiled_text(const std::string& text) {
  if (options_.cache_directory.empty()) {
    ++counts_.compiled;
    return device_->compile(text, compile_options_);
  }
  const std::string file =
      fmt::format("{}/{}.tenon", options_.cache_directory,
                  serial::digest_of(device_->version() + '\n' + compile_options_ + '\n' + text));
  if (const auto bytes = read_file(file)) {
    try {
      OwnedExecutable loaded = device_->load(*bytes, compile_options_);
      ++counts_.loaded;
      return loaded;
    } catch (const client::PluginError& error) {
      reader_.runtime().log(logger_, kOrtWarning,
                            fmt::format("tenon: {} is not used: {}", file, error.what()));
    }
  }
  ++counts_.compiled;
  OwnedExecutable executable = device_->compile(text, compile_options_);
  std::error_code ignored;
  std::filesystem::create_directories(options_.cache_directory, ignored);
  std::string kept;
  try {
    const Status written = write_file(file, device_->serialize(executable.get()));
    if (!written.ok()) kept = written.message();
  } catch (const client::PluginError& error) {  // Of a device whose programs cannot be kept.
    kept = error.what();
  }
  if (!kept.empty())
    reader_.runtime().log(logger_, kOrtWarning, "tenon: no program is kept: " + kept);
  return executable;
}

void CompiledGroup::execute(const GroupProgram& program, const Inputs& inputs,
                            OrtKernelContext* context) const {
  const client::Plugin& plugin = device_->plugin();
  // The memory of the call is not touched after it, also where it fails: buffers end first.
  std::vector<OwnedEvent> reads(inputs.size());
  std::vector<OwnedBuffer> sent, results;
  std::vector<PJRT_Buffer*> arguments, made(program.results.size());
  const auto run = [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      sent.push_back(device_->put({inputs[i].data, inputs[i].type, inputs[i].dims}, &reads[i]));
      arguments.push_back(sent.back().get());
    }
    for (const OwnedBuffer& each : weights_) arguments.push_back(each.get());
    auto options = sized<PJRT_ExecuteOptions>();
    PJRT_Buffer* const* argument_list = arguments.data();
    PJRT_Buffer** result_list = made.data();
    auto args = sized<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = program.executable.get();
    args.options = &options;
    args.argument_lists = &argument_list;
    args.num_devices = 1;
    args.num_args = arguments.size();
    args.output_lists = &result_list;
    plugin.call(&PJRT_Api::PJRT_LoadedExecutable_Execute, args);
    for (PJRT_Buffer* each : made) results.emplace_back(&plugin, each);
    // ONNX Runtime may refuse an output, and then frees the others: no copy has begun.
    std::vector<void*> outputs(made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const Dims& dims = program.results[i].shape().dims();
      OrtValue* value = nullptr;
      reader_.runtime().call<KernelContextGetOutput>(context, i, dims.data(), dims.size(), &value);
      reader_.runtime().call<GetTensorMutableData>(value, &outputs[i]);
    }
    // All copies begin before the first that is not done at once is awaited.
    std::vector<OwnedEvent> copies;
    std::exception_ptr failed;
    for (size_t i = 0; i < made.size(); ++i) {
      const Shape& shape = program.results[i].shape();
      if (shape.element_count() == 0) continue;
      try {
        copies.push_back(device_->get(made[i], outputs[i], static_cast<size_t>(shape.byte_size())));
      } catch (const client::PluginError&) {
        failed = std::current_exception();
        break;
      }
    }
    for (OwnedEvent& each : copies) {
      try {
        plugin.await(each.release());
      } catch (const client::PluginError&) {
        if (!failed) failed = std::current_exception();
      }
    }
    if (failed) std::rethrow_exception(failed);
  };
  const auto end = [&] {
    results.clear();
    sent.clear();
    for (OwnedEvent& each : reads) {
      try {
        plugin.await(each.release());
      } catch (const client::PluginError&) {
        // The execution's own error is told.
      }
    }
  };
  try {
    run();
  } catch (...) {
    end();
    throw;
  }
  end();
}

}  // namespace tenon::ort
