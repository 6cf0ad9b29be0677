// Plans: programs of ops with all that a call of them does.
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "device.h"
#include "op_call.h"

namespace tenon::torch_device {

namespace py = pybind11;

/// Functions of eager.py and storage.py.
struct PythonFunctions {
  py::object read;    ///< (tensor, order) -> array
  py::object write;   ///< (tensor, array, order)
  py::object reader;  ///< (tensor, order) -> what `read` runs: (what the storage holds) -> arrays
  py::object
      writer;  ///< (tensor, order) -> that of `write`: (what it holds, new elements) -> arrays
  py::object number;                        ///< (float) -> array
  py::object counters;                      ///< Counts calls of programs.
  std::unordered_set<std::string> lifting;  ///< Ops whose numbers are arguments of the program.

  /// A number as an array, kept by its bits.
  py::object array_of(double value) const {
    const auto bits = std::bit_cast<uint64_t>(value);
    if (const auto found = numbers.find(bits); found != numbers.end()) return found->second;
    py::object made = number(value);
    if (numbers.size() >= kMostNumbers) numbers.clear();
    numbers.insert_or_assign(bits, made);
    return made;
  }
  static constexpr size_t kMostNumbers = 1024;
  mutable std::unordered_map<uint64_t, py::object> numbers = {};
};

inline Dims dims_of(py::handle stated) {
  const auto dims = stated.cast<std::vector<int64_t>>();
  return {dims.begin(), dims.end()};
}

/// Programs for tensors that are parts of what their storages hold, by where they lie. Each takes
/// the storage's array.
class ViewPrograms {
 public:
  /// Made by `make`, if need be.
  py::object get(const py::object& make, const at::Tensor& tensor, const py::object& order) {
    const Contents& contents = contents_of(tensor);
    const auto is_it = [&](const KeptView& each) {
      return each.type == contents.type && each.offset == tensor.storage_offset() &&
             each.bytes == tensor.storage().nbytes() && each.shape == contents.shape;
    };
    if (const auto found = std::ranges::find_if(kept_, is_it); found != kept_.end()) {
      return found->run;
    }
    KeptView next{contents.type, contents.shape, tensor.storage_offset(), tensor.storage().nbytes(),
                  make(tensor, order)};
    if (kept_.size() >= kMost) kept_.clear();
    kept_.push_back(next);
    return next.run;
  }

 private:
  static constexpr size_t kMost = 8;
  struct KeptView {
    at::ScalarType type;
    Dims shape;
    int64_t offset;
    size_t bytes;
    py::object run;
  };
  std::vector<KeptView> kept_;
};

/// A tensor as an array in the order of its memory; without an order row-major.
class Layout {
 public:
  py::object order;
  Dims shape;          ///< The array's.
  Dims stride;         ///< The tensor's.
  bool fills = false;  ///< The strides leave no gap in this order.
  size_t bytes = 0;
  mutable ViewPrograms views;

  /// From (order, shape, stride, fills, bytes).
  static Layout of(const py::tuple& stated) {
    return {stated[0],
            dims_of(stated[1]),
            dims_of(stated[2]),
            stated[3].cast<bool>(),
            stated[4].cast<size_t>(),
            {}};
  }

  /// Whether the tensor lies as stated, and a program can take its storage's array.
  bool has_array(const at::Tensor& tensor) const {
    return is_as_stated(tensor) && contents_of(tensor).array != nullptr;
  }

  /// Whether the tensor lies as stated, and is all that its storage holds.
  bool is_whole(const at::Tensor& tensor) const {
    return fills && is_as_stated(tensor) && tensor.storage_offset() == 0 &&
           tensor.storage().nbytes() == bytes;
  }

 private:
  bool is_as_stated(const at::Tensor& tensor) const {
    return tensor.device().type() == kType && bytes > 0 && stride == tensor.strides() &&
           !tensor.is_conj() && !tensor.is_neg();
  }
};

enum class SourceKind : uint8_t { kTensor, kNumber, kConstant, kResult };

/// An array that a program takes, or that an op hands on.
struct ArraySource {
  SourceKind kind = SourceKind::kConstant;
  size_t number = 0;  ///< The item's, or that of the program's result.
  Layout layout;      ///< The tensor's.
  py::object constant;

  /// From ("tensor", number, layout), ("number", number), ("constant", array), ("result", number).
  static ArraySource of(const py::tuple& stated) {
    const auto kind = stated[0].cast<std::string>();
    if (kind == "constant") return {SourceKind::kConstant, 0, {}, stated[1]};
    const auto number = stated[1].cast<size_t>();
    if (kind == "tensor") return {SourceKind::kTensor, number, Layout::of(stated[2]), {}};
    return {kind == "number" ? SourceKind::kNumber : SourceKind::kResult, number, {}, {}};
  }
};

enum class ResultKind : uint8_t { kNew, kItem, kNone };

/// A result of an op: a tensor that is made, one of its arguments, or none.
struct PlannedResult {
  ResultKind kind;
  size_t number = 0;  ///< The item's.
  Dims shape, stride, held;
  at::ScalarType type = at::ScalarType::Undefined;
  ArraySource source;

  /// From ("new", shape, stride, type, shape of the array, source), ("item", number), ("none",).
  static PlannedResult of(const py::tuple& stated) {
    const auto kind = stated[0].cast<std::string>();
    PlannedResult output{kind == "new"    ? ResultKind::kNew
                         : kind == "item" ? ResultKind::kItem
                                          : ResultKind::kNone};
    if (output.kind == ResultKind::kItem) output.number = stated[1].cast<size_t>();
    if (output.kind == ResultKind::kNew) {
      output.shape = dims_of(stated[1]);
      output.stride = dims_of(stated[2]);
      output.type = stated[3].cast<at::ScalarType>();
      output.held = dims_of(stated[4]);
      output.source = ArraySource::of(stated[5]);
    }
    return output;
  }
};

/// A tensor that an op changes.
struct Write {
  size_t number;
  Layout layout;
  ArraySource source;

  /// From (number, layout, source).
  static Write of(const py::tuple& stated) {
    return {stated[0].cast<size_t>(), Layout::of(stated[1]), ArraySource::of(stated[2])};
  }
};

/// An op's program, and what becomes of its arguments and results: all that a call needs.
class Plan {
 public:
  Plan(py::object run, const py::list& arguments, const py::list& outputs, const py::list& writes)
      : run_(std::move(run)) {
    for (const py::handle each : arguments) {
      arguments_.push_back(ArraySource::of(py::cast<py::tuple>(each)));
    }
    for (const py::handle each : outputs)
      outputs_.push_back(PlannedResult::of(py::cast<py::tuple>(each)));
    for (const py::handle each : writes) writes_.push_back(Write::of(py::cast<py::tuple>(each)));
  }

  /// Whether a tensor that is changed shares its storage with another one that is not the same:
  /// PyTorch refuses some such calls.
  bool writes_beside(const Items& items) const {
    return std::ranges::any_of(writes_, [&](const Write& write) {
      const at::Tensor& changed = tensor_of(items, write.number);
      return std::ranges::any_of(items, [&](const Item& each) {
        const auto* const other = std::get_if<at::Tensor>(&each);
        return other != nullptr && !other->is_same(changed) && other->is_alias_of(changed) &&
               (other->storage_offset() != changed.storage_offset() ||
                other->sizes() != changed.sizes() || other->strides() != changed.strides());
      });
    });
  }

  /// Runs it; gives the op's results.
  std::vector<at::Tensor> call(const PythonFunctions& python, const Items& items) const {
    py::list returned;
    if (!run_.is_none()) {
      py::list given(arguments_.size());
      for (size_t i = 0; i < arguments_.size(); ++i) {
        given[i] = array(python, items, arguments_[i], returned);
      }
      returned = run_(given);
      python.counters.attr("calls") = python.counters.attr("calls").cast<int64_t>() + 1;
    }
    // All are read before any is written.
    std::vector<py::object> arrays;
    arrays.reserve(writes_.size());
    for (const Write& each : writes_) {
      arrays.push_back(array(python, items, each.source, returned));
    }
    std::vector<at::Tensor> results;
    results.reserve(outputs_.size());
    for (const PlannedResult& each : outputs_)
      results.push_back(result(python, items, each, returned));
    for (size_t i = 0; i < writes_.size(); ++i) {
      write(python, tensor_of(items, writes_[i].number), writes_[i].layout, std::move(arrays[i]));
    }
    return results;
  }

 private:
  static py::object array(const PythonFunctions& python, const Items& items,
                          const ArraySource& source, const py::list& returned) {
    switch (source.kind) {
      case SourceKind::kConstant:
        return source.constant;
      case SourceKind::kResult:
        return returned[source.number];
      case SourceKind::kNumber:
        return python.array_of(std::get<double>(items[source.number]));
      case SourceKind::kTensor:
        break;
    }
    return read(python, tensor_of(items, source.number), source.layout);
  }

  /// The storage's array, and a program that takes it.
  static std::pair<py::object, py::object> held_and_program(const Layout& layout,
                                                            const py::object& make,
                                                            const at::Tensor& tensor) {
    for (;;) {
      const auto held = py::reinterpret_borrow<py::object>(contents_of(tensor).array);
      py::object run = layout.views.get(make, tensor, layout.order);
      if (contents_of(tensor).array == held.ptr()) return {held, std::move(run)};
      // It was made while another thread wrote.
    }
  }

  static py::object read(const PythonFunctions& python, const at::Tensor& tensor,
                         const Layout& layout) {
    if (!layout.has_array(tensor)) return python.read(tensor, layout.order);
    const Contents& contents = contents_of(tensor);
    if (layout.is_whole(tensor) && contents.type == tensor.scalar_type() &&
        contents.shape == layout.shape) {
      return py::reinterpret_borrow<py::object>(contents.array);
    }
    const auto [held, run] = held_and_program(layout, python.reader, tensor);
    py::object made = py::list(run(py::make_tuple(held)))[0];
    // The whole in the shape in which it is read, for the next time; unless it was written
    // meanwhile.
    if (layout.is_whole(tensor) && contents.type == tensor.scalar_type() &&
        contents.array == held.ptr()) {
      contents_of(tensor).hold(made, contents.type, layout.shape);
    }
    return made;
  }

  static at::Tensor result(const PythonFunctions& python, const Items& items,
                           const PlannedResult& output, const py::list& returned) {
    if (output.kind == ResultKind::kNone) return {};
    if (output.kind == ResultKind::kItem) return tensor_of(items, output.number);
    const at::Tensor tensor = new_tensor(output.shape, output.stride, output.type);
    contents_of(tensor).hold(array(python, items, output.source, returned), output.type,
                             output.held);
    return tensor;
  }

  static void write(const PythonFunctions& python, const at::Tensor& tensor, const Layout& layout,
                    py::object array) {
    if (layout.is_whole(tensor)) {
      return contents_of(tensor).hold(std::move(array), tensor.scalar_type(), layout.shape);
    }
    if (!layout.has_array(tensor)) {
      python.write(tensor, std::move(array), layout.order);
      return;
    }
    // Another thread may write another part while the program runs.
    for (bool is_written = false; !is_written;) {
      const auto [held, run] = held_and_program(layout, python.writer, tensor);
      const py::object next = py::list(run(py::make_tuple(held, array)))[0];
      Dims shape = dims_of(next.attr("shape"));
      Contents& contents = contents_of(tensor);
      is_written = contents.array == held.ptr();
      if (is_written) contents.hold(next, tensor.scalar_type(), std::move(shape));
    }
  }

  py::object run_;  ///< (arrays) -> arrays, or None where no program is needed.
  std::vector<ArraySource> arguments_;
  std::vector<PlannedResult> outputs_;
  std::vector<Write> writes_;
};

}  // namespace tenon::torch_device
