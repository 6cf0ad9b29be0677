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

void append_value(std::string& key, const GroupInput& input) {
  const std::span<const std::byte> bytes = input.bytes();
  append(key, bytes.data(), bytes.size());
}

// The sizes of a call's inputs as a key.
std::string key_of(const std::vector<GroupInput>& inputs) {
  std::string key;
  for (const GroupInput& each : inputs) {
    const Dims& dims = each.view.dims;
    const auto rank = static_cast<int64_t>(dims.size());
    append(key, &rank, sizeof(rank));
    append(key, dims.data(), dims.size() * sizeof(int64_t));
  }
  return key;
}

std::string shapes_text(const std::vector<GroupInput>& inputs) {
  std::string text;
  for (const GroupInput& each : inputs) {
    text += (text.empty() ? "" : ", ") + Shape(each.view.type, each.view.dims).to_string();
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

std::span<const std::byte> GroupInput::bytes() const {
  const size_t size = tensor_bytes(view.type, view.dims);
  if (memory == nullptr) return {static_cast<const std::byte*>(view.data), size};
  if (value.empty() && size > 0) {
    value.resize(size);
    memory->read(view.data, value.data(), size);
  }
  return value;
}

CompiledGroup::CompiledGroup(const GraphReader& reader, const OrtGraph* graph, std::string name,
                             const std::set<std::string>& needed_constants,
                             const ProviderOptions& options, int64_t& prepared_left,
                             std::shared_ptr<const ProviderDevice> device,
                             std::shared_ptr<DeviceAddresses> memory, const OrtLogger* logger)
    : reader_(reader),
      name_(std::move(name)),
      options_(options),
      device_(std::move(device)),
      memory_(std::move(memory)),
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
    inputs.push_back({{info.type->element_type(), info.type->dims(), nullptr}, nullptr, {}});
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
    const TensorView view = reader_.tensor(value);
    const bool on_device = memory_ != nullptr && memory_->contains(view.data);
    inputs.push_back({view, on_device ? memory_.get() : nullptr, {}});
    if (view.type != model_.graph.inputs[i].element_type) {
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
  std::vector<size_t> used;
  {
    const std::lock_guard lock(mutex_);
    const auto known = used_values_.find(shapes);
    if (known == used_values_.end()) return nullptr;
    used = known->second;
  }
  std::string key = shapes;
  for (const size_t i : used) append_value(key, inputs[i]);
  const std::lock_guard lock(mutex_);
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
  for (const size_t i : all_used) append_value(program->key, inputs[i]);
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
  for (size_t i = 0; i < inputs.size(); ++i) known.shapes[i] = inputs[i].view.dims;
  auto imported = hlo::import_onnx(model_, known);
  if (imported || !options_.shape_values) return value_or_throw(std::move(imported));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView& view = inputs[i].view;
    const int64_t count = element_count(view.dims);  // An empty array may have no address.
    if ((view.data == nullptr && count > 0) || count > kMostShapeValues) continue;
    const Shape shape(view.type, view.dims);
    known.values.emplace(i, value_or_throw(Literal::from_bytes(shape, inputs[i].bytes())));
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

// ONNX Runtime says where each result goes: the device's memory keeps it without a copy.
void CompiledGroup::give(const GroupProgram& program, std::vector<OwnedBuffer>& results,
                         OrtKernelContext* context) {
  // ONNX Runtime may refuse an output, and then frees the others: no copy has begun.
  std::vector<void*> outputs(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Dims& dims = program.results[i].shape().dims();
    OrtValue* value = nullptr;
    reader_.runtime().call<KernelContextGetOutput>(context, i, dims.data(), dims.size(), &value);
    reader_.runtime().call<GetTensorMutableData>(value, &outputs[i]);
  }
  // All copies begin before the first that is not done at once is awaited.
  std::vector<OwnedEvent> copies(results.size());
  std::exception_ptr failed;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const client::PluginError&) {
      if (!failed) failed = std::current_exception();
    }
  };
  const auto stays = [&](size_t i) { return memory_ != nullptr && memory_->contains(outputs[i]); };
  for (size_t i = 0; i < results.size() && !failed; ++i) {
    const Shape& shape = program.results[i].shape();
    if (shape.element_count() == 0 || stays(i)) continue;
    const auto size = static_cast<size_t>(shape.byte_size());
    attempt([&] { copies[i] = device_->get(results[i].get(), outputs[i], size); });
    ++counts_.fetched;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape& shape = program.results[i].shape();
    attempt([&] {
      device_->plugin().await(copies[i].release());
      if (shape.element_count() == 0 || !stays(i)) return;
      device_->await(results[i].get());
      memory_->put(outputs[i], make_device_array(device_, shape.element_type(), shape.dims(),
                                                 std::move(results[i])));
    });
  }
  if (failed) std::rethrow_exception(failed);
}

void CompiledGroup::execute(const GroupProgram& program, const Inputs& inputs,
                            OrtKernelContext* context) {
  const client::Plugin& plugin = device_->plugin();
  // The memory of the call is not touched after it, also where it fails: buffers end first.
  std::vector<OwnedEvent> reads(inputs.size());
  std::vector<OwnedBuffer> sent, results;
  std::vector<DeviceArrayPtr> held;
  std::vector<PJRT_Buffer*> arguments, made(program.results.size());
  const auto run = [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorView& view = inputs[i].view;
      if (inputs[i].memory != nullptr) {
        held.push_back(inputs[i].memory->array_at(view.data, view.type, view.dims, device_));
        arguments.push_back(held.back()->buffer.get());
        continue;
      }
      sent.push_back(device_->put({view.data, view.type, view.dims}, &reads[i]));
      arguments.push_back(sent.back().get());
      ++counts_.sent;
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
    give(program, results, context);
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
