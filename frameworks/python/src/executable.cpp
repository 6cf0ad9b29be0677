#include <memory>

#include "client.h"

namespace tenon::python {
namespace {

// Awaits an event at the end of a scope, though an exception leaves it.
class Completion {
 public:
  explicit Completion(const Plugin& plugin) : plugin_(plugin) {}
  ~Completion() {
    if (event == nullptr) return;
    auto args = sized<PJRT_Event_Destroy_Args>();
    args.event = event;
    plugin_.end(&PJRT_Api::PJRT_Event_Destroy, args);
  }
  void await() {
    const nb::gil_scoped_release unlocked;
    plugin_.await(std::exchange(event, nullptr));
  }
  PJRT_Event* event = nullptr;

 private:
  const Plugin& plugin_;
};

}  // namespace

PluginProgram::PluginProgram(Shared client, PJRT_LoadedExecutable* loaded, size_t device)
    : client_(std::move(client)), loaded_(loaded), device_(device) {
  auto get = sized<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = loaded_;
  client_->plugin().call(&PJRT_Api::PJRT_LoadedExecutable_GetExecutable, get);
  executable_ = get.executable;
  auto count = sized<PJRT_Executable_NumOutputs_Args>();
  count.executable = executable_;
  client_->plugin().call(&PJRT_Api::PJRT_Executable_NumOutputs, count);
  results_ = count.num_outputs;
}

PluginProgram::PluginProgram(PluginProgram&& other) noexcept
    : client_(other.client_),
      loaded_(std::exchange(other.loaded_, nullptr)),
      executable_(std::exchange(other.executable_, nullptr)),
      device_(other.device_),
      results_(other.results_) {}

PluginProgram::~PluginProgram() {
  if (executable_ != nullptr) {
    auto args = sized<PJRT_Executable_Destroy_Args>();
    args.executable = executable_;
    client_->plugin().end(&PJRT_Api::PJRT_Executable_Destroy, args);
  }
  if (loaded_ == nullptr) return;
  auto args = sized<PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = loaded_;
  client_->plugin().end(&PJRT_Api::PJRT_LoadedExecutable_Destroy, args);
}

std::vector<Array> PluginProgram::run(const nb::sequence& given) {
  // A tuple holds its elements, also when the caller changes the list meanwhile.
  const nb::object arguments = nb::steal(PySequence_Tuple(given.ptr()));
  if (!arguments.is_valid()) throw nb::python_error();
  std::vector<Array> lent;
  lent.reserve(nb::len(arguments));
  std::vector<PJRT_Buffer*> buffers;
  for (const nb::handle each : nb::borrow<nb::tuple>(arguments)) {
    const Array* array = nullptr;
    if (nb::isinstance<Array>(each)) {
      array = &nb::cast<const Array&>(each);
    } else {
      array = &lent.emplace_back(put(client_, each, device_, /*in_place=*/true));
    }
    buffers.push_back(array->handle());
  }
  std::vector<PJRT_Buffer*> results(results_);
  Completion done(client_->plugin());
  auto options = sized<PJRT_ExecuteOptions>();
  PJRT_Buffer* const* const argument_list = buffers.data();
  PJRT_Buffer** const result_list = results.data();
  auto args = sized<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = loaded_;
  args.options = &options;
  args.argument_lists = &argument_list;
  args.num_devices = 1;
  args.num_args = buffers.size();
  args.output_lists = &result_list;
  PJRT_Event** const events = &done.event;
  if (!lent.empty()) args.device_complete_events = events;
  {
    const nb::gil_scoped_release unlocked;
    client_->plugin().call(&PJRT_Api::PJRT_LoadedExecutable_Execute, args);
  }
  std::vector<Array> arrays;
  arrays.reserve(results.size());
  for (PJRT_Buffer* each : results) arrays.emplace_back(client_, each);
  if (!lent.empty()) {
    done.await();
    lent.clear();
    let_go_of_lent_arrays();
  }
  return arrays;
}

nb::str PluginProgram::name() const {
  auto args = sized<PJRT_Executable_Name_Args>();
  args.executable = executable_;
  client_->plugin().call(&PJRT_Api::PJRT_Executable_Name, args);
  return text_of({args.executable_name, args.executable_name_size});
}

nb::str PluginProgram::text() const {
  auto program = sized<PJRT_Program>();
  auto args = sized<PJRT_Executable_OptimizedProgram_Args>();
  args.executable = executable_;
  args.program = &program;
  std::string text;
  {
    const nb::gil_scoped_release unlocked;
    client_->plugin().call(&PJRT_Api::PJRT_Executable_OptimizedProgram, args);  // Its size alone.
    text.resize(program.code_size);
    program.code = text.data();
    client_->plugin().call(&PJRT_Api::PJRT_Executable_OptimizedProgram, args);
  }
  return text_of(text);
}

nb::bytes PluginProgram::serialize() const {
  auto args = sized<PJRT_Executable_Serialize_Args>();
  args.executable = executable_;
  {
    const nb::gil_scoped_release unlocked;
    client_->plugin().call(&PJRT_Api::PJRT_Executable_Serialize, args);
  }
  nb::bytes bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

nb::dict PluginProgram::memory() const {
  auto args = sized<PJRT_Executable_GetCompiledMemoryStats_Args>();
  args.executable = executable_;
  client_->plugin().call(&PJRT_Api::PJRT_Executable_GetCompiledMemoryStats, args);
  nb::dict dict;
  dict["arguments"] = args.argument_size_in_bytes;
  dict["results"] = args.output_size_in_bytes;
  dict["temporaries"] = args.temp_size_in_bytes;
  dict["code"] = args.generated_code_size_in_bytes;
  return dict;
}

nb::list PluginProgram::outputs() const {
  auto types = sized<PJRT_Executable_OutputElementTypes_Args>();
  types.executable = executable_;
  client_->plugin().call(&PJRT_Api::PJRT_Executable_OutputElementTypes, types);
  auto shapes = sized<PJRT_Executable_OutputDimensions_Args>();
  shapes.executable = executable_;
  client_->plugin().call(&PJRT_Api::PJRT_Executable_OutputDimensions, shapes);
  nb::list outputs;
  const int64_t* dims = shapes.dims;
  for (size_t i = 0; i < shapes.num_outputs; ++i) {
    nb::list shape;
    for (size_t d = 0; d < shapes.dim_sizes[i]; ++d) shape.append(*dims++);
    outputs.append(nb::make_tuple(dtype_of(info_of(types.output_types[i])), nb::tuple(shape)));
  }
  return outputs;
}

PluginProgram compile(const Shared& client, std::string_view program, std::string_view options,
                      size_t device) {
  auto source = sized<PJRT_Program>();
  std::string code(program);
  source.code = code.data();
  source.code_size = code.size();
  source.format = "mlir";
  source.format_size = 4;
  auto args = sized<PJRT_Client_Compile_Args>();
  args.client = client->handle();
  args.program = &source;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  {
    const nb::gil_scoped_release unlocked;
    client->plugin().call(&PJRT_Api::PJRT_Client_Compile, args);
  }
  return {client, args.executable, device};
}

PluginProgram load(const Shared& client, std::string_view bytes, std::string_view options,
                   size_t device) {
  auto args = sized<PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client->handle();
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  args.overridden_serialized_compile_options = options.data();
  args.overridden_serialized_compile_options_size = options.size();
  {
    const nb::gil_scoped_release unlocked;
    client->plugin().call(&PJRT_Api::PJRT_Executable_DeserializeAndLoad, args);
  }
  return {client, args.loaded_executable, device};
}

}  // namespace tenon::python
