// The extension module tenon._native. The package's own modules make its public face.
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "client.h"

namespace tenon::python {
namespace {

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::tuple shape_of(const Array& array) {
  nb::list list;
  for (const int64_t size : array.dims()) list.append(size);
  return nb::tuple(list);
}

// Raises tenon.Error, a class of the package.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const PluginError& error) {
    const nb::object type = nb::module_::import_("tenon._errors").attr("Error");
    const nb::object raised = type(text_of(error.what()), error.code());
    PyErr_SetObject(type.ptr(), raised.ptr());
  }
}

struct BoundClient {
  Shared state;
};

NB_MODULE(_native, m) {
  m.doc() = "Handles of a PJRT plug-in; the package tenon wraps them.";
  // Frameworks keep arrays and programs in caches of their own until the process ends.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);

  nb::class_<ClientDevice>(m, "Device", "A device of a client.")
      .def_ro("index", &ClientDevice::index, "Its place in Client.devices.")
      .def_prop_ro("id", &ClientDevice::id,
                   "The number that programs of several devices know it by.")
      .def_prop_ro("kind", &ClientDevice::kind, "What kind of device it is, in its maker's words.")
      .def_prop_ro(
          "attributes", &ClientDevice::attributes,
          nb::sig("def attributes(self) -> dict[str, str | int | float | bool | list[int]]"),
          "What the device states of itself.")
      .def("__repr__", [](const ClientDevice& device) { return device.name(); });

  nb::class_<Array>(m, "Array", "An array on a device.")
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "The sizes of its dimensions.")
      .def_prop_ro(
          "dtype", [](const Array& array) { return dtype_of(array.info()); },
          nb::sig("def dtype(self) -> numpy.dtype"),
          "The type of its elements, of numpy or of ml_dtypes.")
      .def_prop_ro(
          "ndim", [](const Array& array) { return array.dims().size(); },
          "The number of its dimensions.")
      .def_prop_ro("nbytes", &Array::bytes, "The bytes of its elements on the host.")
      .def_prop_ro("is_deleted", &Array::is_deleted,
                   "Whether it was deleted, or taken by a program that may take an argument.")
      .def(
          "block_until_ready",
          [](nb::handle self) {
            nb::cast<const Array&>(self).wait();
            return nb::borrow(self);
          },
          nb::sig("def block_until_ready(self) -> Array"),
          "Waits for the contents, and returns the array. Raises the error of the work that makes "
          "them.")
      .def("delete", &Array::remove, "Frees the memory, though Python may hold the array.")
      .def("to", &Array::copy_to, nb::arg("device"), "A copy on another device of the client.")
      .def(
          "__array__",
          [](nb::handle self, const nb::object& dtype, const nb::object& copy) {
            nb::object array = nb::cast<const Array&>(self).to_numpy(self);
            const bool wants_copy = !copy.is_none() && nb::cast<bool>(copy);
            const bool is_view = nb::cast<const Array&>(self).bytes() == 0 ||
                                 !nb::cast<bool>(array.attr("flags").attr("owndata"));
            const bool has_type = dtype.is_none() || array.attr("dtype").equal(dtype);
            if (!copy.is_none() && !wants_copy && !(is_view && has_type)) {
              throw nb::value_error("the array cannot be seen without a copy");
            }
            if (!dtype.is_none()) return array.attr("astype")(dtype, nb::arg("copy") = wants_copy);
            return wants_copy ? array.attr("copy")() : array;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: numpy.dtype | None = None, copy: bool | None = None) "
                  "-> numpy.ndarray"),
          "An array of numpy: the array's own memory, read-only, if the host sees it, else a copy.")
      .def(
          "__dlpack__",
          [](nb::handle self, const nb::kwargs& words) -> nb::object {
            if (words.contains("copy") && nb::object(words["copy"]).is(nb::bool_(true))) {
              return nb::module_::import_("numpy").attr("array")(self).attr("__dlpack__")();
            }
            return nb::cast<const Array&>(self).to_dlpack(self);
          },
          nb::sig("def __dlpack__(self, **kwargs: object) -> object"))
      .def(
          "__dlpack_device__", [](nb::handle) { return nb::make_tuple(nb::device::cpu::value, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__len__",
           [](const Array& array) {
             if (array.dims().empty())
               throw nb::type_error("an array of no dimensions has no length");
             return array.dims()[0];
           })
      .def("__getitem__",
           [](nb::handle self, const nb::object& key) {
             return nb::cast<const Array&>(self).to_numpy(self).attr("__getitem__")(key);
           })
      .def("__float__",
           [](nb::handle self) {
             return nb::float_(nb::cast<const Array&>(self).to_numpy(self).attr("item")());
           })
      .def("__int__",
           [](nb::handle self) {
             return nb::int_(nb::cast<const Array&>(self).to_numpy(self).attr("item")());
           })
      .def("__repr__", [](const Array& array) {
        std::string text = "tenon.Array(" + std::string(array.info().name) + "[";
        for (size_t i = 0; i < array.dims().size(); ++i) {
          text += (i == 0 ? "" : ", ") + std::to_string(array.dims()[i]);
        }
        return text + "]" + (array.is_deleted() ? ", deleted)" : ")");
      });

  nb::class_<PluginProgram>(m, "Executable", "A compiled program, loaded on its device.")
      .def("run", &PluginProgram::run, nb::arg("arguments"), nb::arg("like") = nb::none(),
           nb::sig("def run(self, arguments: collections.abc.Sequence[object], like: type | None = "
                   "None) -> list"),
           "Runs the program; returns a list of arrays, or of objects of the type `like`.")
      .def_prop_ro("name", &PluginProgram::name, "The name of its module.")
      .def_prop_ro("text", &PluginProgram::text,
                   "The program as it was optimized, as StableHLO text.")
      .def_prop_ro("outputs", &PluginProgram::outputs,
                   nb::sig("def outputs(self) -> list[tuple[numpy.dtype, tuple[int, ...]]]"),
                   "The dtype and the shape of each result.")
      .def_prop_ro("memory", &PluginProgram::memory, nb::sig("def memory(self) -> dict[str, int]"),
                   "Bytes of its arguments, results, temporaries and code.")
      .def("serialize", &PluginProgram::serialize, "Bytes that Client.load takes.");

  nb::class_<BoundClient>(m, "Client", "A client of a plug-in.")
      .def(
          "__init__",
          [](BoundClient* self, const std::string& path, const Options& options) {
            new (self)
                BoundClient{std::make_shared<const PluginClient>(Plugin::load(path), options)};
          },
          nb::arg("path"), nb::arg("options"))
      .def_prop_ro(
          "devices",
          [](const BoundClient& client) {
            nb::list list;
            for (size_t i = 0; i < client.state->device_count(); ++i)
              list.append(ClientDevice{client.state, i});
            return list;
          },
          nb::sig("def devices(self) -> list[Device]"), "The devices that this process reaches.")
      .def(
          "compile",
          [](const BoundClient& client, const nb::bytes& program, const nb::bytes& options,
             size_t device) {
            return compile(client.state, view_of(program), view_of(options), device);
          },
          nb::arg("program"), nb::arg("options"), nb::arg("device"))
      .def(
          "load",
          [](const BoundClient& client, const nb::bytes& bytes, const nb::bytes& options,
             size_t device) {
            return load(client.state, view_of(bytes), view_of(options), device);
          },
          nb::arg("bytes"), nb::arg("options"), nb::arg("device"))
      .def(
          "put",
          [](const BoundClient& client, nb::handle object, size_t device, bool in_place) {
            return put(client.state, object, device, in_place);
          },
          nb::arg("object"), nb::arg("device"), nb::arg("in_place"));
}

}  // namespace
}  // namespace tenon::python
