#include <algorithm>
#include <memory>

#include "client.h"
#include "lending.h"
#include "results.h"

namespace tenon::python {
namespace {

// An event that is destroyed at the end of a scope, though an exception leaves it.
class Completion {
 public:
  explicit Completion(const Plugin& plugin) : plugin_(plugin) {}
  ~Completion() {
    if (event == nullptr) return;
    auto args = sized<PJRT_Event_Destroy_Args>();
    args.event = event;
    plugin_.end(&PJRT_Api::PJRT_Event_Destroy, args);
  }
  void await() { plugin_.await(std::exchange(event, nullptr)); }
  PJRT_Event* event = nullptr;

 private:
  const Plugin& plugin_;
};

// The types of the results, if the plug-in states them all.
std::vector<std::shared_ptr<const ArrayType>> types_of_results(const Plugin& plugin,
                                                               PJRT_Executable* executable) {
  auto types = sized<PJRT_Executable_OutputElementTypes_Args>();
  types.executable = executable;
  auto shapes = sized<PJRT_Executable_OutputDimensions_Args>();
  shapes.executable = executable;
  try {
    plugin.call(&PJRT_Api::PJRT_Executable_OutputElementTypes, types);
    plugin.call(&PJRT_Api::PJRT_Executable_OutputDimensions, shapes);
  } catch (const PluginError&) {
    return {};
  }
  std::vector<std::shared_ptr<const ArrayType>> all;
  const int64_t* dims = shapes.dims;
  for (size_t i = 0; i < shapes.num_outputs && i < types.num_output_types; ++i) {
    const TypeInfo* const info = find_info(types.output_types[i]);
    if (info == nullptr) return {};
    const size_t rank = shapes.dim_sizes[i];
    all.push_back(array_type(*info, {dims, rank}));
    dims += rank;
  }
  return all;
}

// An array of this package, or null.
const Array* find_array(nb::handle object) {
  static const nb::handle type = nb::type<Array>();
  if (Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject*>(type.ptr()) &&
      nb::inst_ready(object)) {
    return nb::inst_ptr<Array>(object);
  }
  return nb::isinstance<Array>(object) ? &nb::cast<const Array&>(object) : nullptr;
}

// The table of the type that the results are to have. Null for this package's own.
const ExchangeTable* table_of_results(nb::handle like) {
  if (like.is_none()) return nullptr;
  const ExchangeTable* const table =
      PyType_Check(like.ptr()) != 0 ? exchange_of(reinterpret_cast<PyTypeObject*>(like.ptr())).table
                                    : nullptr;
  if (table != nullptr) return table;
  throw nb::type_error(("like: " + std::string(nb::repr(like).c_str()) +
                        " is no type of arrays with DLPack's exchange table")
                           .c_str());
}

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
  types_ = types_of_results(client_->plugin(), executable_);
  if (types_.size() != results_) types_.clear();
}

PluginProgram::PluginProgram(PluginProgram&& other) noexcept
    : client_(std::move(other.client_)),
      loaded_(std::exchange(other.loaded_, nullptr)),
      executable_(std::exchange(other.executable_, nullptr)),
      device_(other.device_),
      results_(other.results_),
      types_(std::move(other.types_)) {}

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

nb::list PluginProgram::run(nb::handle given, nb::handle like) {
  let_go_of_lent_arrays();
  const ExchangeTable* const table = table_of_results(like);
  // Errors of types come before the program runs.
  if (table != nullptr) std::ranges::for_each(types_, [](auto& type) { dlpack_type(*type->info); });
  // A tuple holds its elements, also when the caller changes the list meanwhile.
  const nb::object arguments = nb::steal(PySequence_Tuple(given.ptr()));
  if (!arguments.is_valid()) throw nb::python_error();
  std::vector<PJRT_Buffer*> buffers(nb::len(arguments));
  LentArguments lent(client_, client_->device(device_));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const nb::handle each = PyTuple_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
    if (const Array* const array = find_array(each)) {
      buffers[i] = array->handle();
    } else {
      if (lent.empty()) lent.reserve(buffers.size() - i);
      lent.add(host_array(each, Hold::kObject), i);
    }
  }
  ResultBuffers results(client_->plugin(), results_);
  if (table == nullptr) {
    {
      const nb::gil_scoped_release unlocked;
      execute(buffers, lent, results);
    }
    if (!lent.empty()) let_go_of_lent_arrays();
    return arrays_of(results);
  }
  HostResults host(client_, *table);
  {
    const nb::gil_scoped_release unlocked;
    execute(buffers, lent, results);
    host.fetch(results, types_.empty() ? asked_types(results) : types_);
  }
  if (!lent.empty()) let_go_of_lent_arrays();
  return host.objects();
}

// Waits, if the host's memory is lent.
void PluginProgram::execute(std::vector<PJRT_Buffer*>& arguments, LentArguments& lent,
                            ResultBuffers& results) const {
  const Plugin& plugin = client_->plugin();
  lent.send_to(arguments);
  Completion done(plugin);
  auto options = sized<PJRT_ExecuteOptions>();
  PJRT_Buffer* const* const argument_list = arguments.data();
  PJRT_Buffer** const result_list = results.data();
  auto args = sized<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = loaded_;
  args.options = &options;
  args.argument_lists = &argument_list;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = &result_list;
  if (!lent.empty()) args.device_complete_events = &done.event;
  plugin.call(&PJRT_Api::PJRT_LoadedExecutable_Execute, args);
  if (lent.empty()) return;
  done.await();
  lent.take_back();
}

std::vector<std::shared_ptr<const ArrayType>> PluginProgram::asked_types(
    ResultBuffers& results) const {
  std::vector<std::shared_ptr<const ArrayType>> types;
  for (size_t r = 0; r < results.size(); ++r) {
    types.push_back(type_of(client_->plugin(), results.data()[r]));
  }
  return types;
}

nb::list PluginProgram::arrays_of(ResultBuffers& results) const {
  const auto asked =
      types_.empty() ? asked_types(results) : std::vector<std::shared_ptr<const ArrayType>>();
  const auto& types = types_.empty() ? asked : types_;
  nb::list list;
  for (size_t r = 0; r < results.size(); ++r) {
    list.append(nb::cast(Array(client_, results.take(r), types[r])));
  }
  return list;
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
