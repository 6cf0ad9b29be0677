// A call of an op on the device: its tensors, and the key of its plan.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device.h"

namespace tenon::torch_device {

/// A tensor among the arguments of a call, or a number that counts as one.
using Item = std::variant<at::Tensor, double>;
using Items = c10::SmallVector<Item, 6>;

inline const at::Tensor& tensor_of(const Items& items, size_t number) {
  TORCH_CHECK(number < items.size(), "tenon: a plan of more tensors than the call has");
  return std::get<at::Tensor>(items[number]);
}

/// A call of an op: its tensors, and what its program depends on, as bytes.
///
/// Numbers of arithmetic ops are no part of the bytes, since they are arguments of the program: the
/// ops that eager.py names (`lifts`), if all their tensors are of floats, and the numbers within
/// their range. A default that PyTorch's call from Python leaves out is left out here too.
class OpCall {
 public:
  OpCall(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments, bool lifts)
      : op_(op), lifts_(lifts), is_keyed_(read(arguments)) {
    if (lifts_ && !(is_keyed_ && has_floats_alone())) {
      lifts_ = false;
      is_keyed_ = read(arguments);
    }
  }

  /// Tensors like the results, by PyTorch's own checks; absent where there were none.
  std::optional<std::vector<at::Tensor>> expected;

  bool is_keyed() const { return is_keyed_; }
  const std::string& key() const { return key_; }
  const Items& items() const { return items_; }

  pybind11::list listed() const {
    pybind11::list all;
    for (const Item& each : items_) {
      if (const auto* const tensor = std::get_if<at::Tensor>(&each)) {
        all.append(pybind11::reinterpret_steal<pybind11::object>(THPVariable_Wrap(*tensor)));
      } else {
        all.append(std::get<double>(each));
      }
    }
    return all;
  }

 private:
  template <class T>
  void put(T value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  bool read(at::ArrayRef<c10::IValue> arguments) {
    key_.clear();
    items_.clear();
    put(&op_.schema());
    put(c10::typeMetaToScalarType(c10::get_default_dtype()));
    put(lifts_);
    const auto& described = op_.schema().arguments();
    size_t count = arguments.size();
    const auto is_default = [&](size_t i) {
      return described[i].default_value() && *described[i].default_value() == arguments[i];
    };
    if (lifts_) {
      while (count > 0 && !described[count - 1].kwarg_only() && is_default(count - 1)) --count;
    }
    for (size_t i = 0; i < count; ++i) {
      if (lifts_ && described[i].kwarg_only() && is_default(i)) {
        key_ += '-';
      } else if (!add(arguments[i])) {
        return false;
      }
    }
    return true;
  }

  bool add(const c10::IValue& value) {
    if (value.isNone()) {
      key_ += 'n';
    } else if (value.isTensor()) {
      return add_tensor(value.toTensor());
    } else if (value.isBool()) {
      key_ += value.toBool() ? 'T' : 'F';
    } else if (value.isInt()) {
      add_number('i', value.toInt(), static_cast<double>(value.toInt()));
    } else if (value.isDouble()) {
      add_number('d', value.toDouble(), value.toDouble());
    } else if (value.isComplexDouble()) {
      key_ += 'c';
      put(value.toComplexDouble());
    } else if (value.isString()) {
      key_ += 's';
      put(value.toStringRef().size());
      key_ += value.toStringRef();
    } else if (value.isDevice()) {
      key_ += 'D';
      put(value.toDevice().type());
      put(value.toDevice().index());
    } else if (value.isList()) {
      key_ += 'l';
      put(value.toListRef().size());
      for (const c10::IValue& each : value.toListRef()) {
        if (!add(each)) return false;
      }
    } else {
      return false;
    }
    return true;
  }

  template <class T>
  void add_number(char kind, T exact, double number) {
    if (lifts_) {
      key_ += 'N';
      items_.emplace_back(number);
    } else {
      key_ += kind;
      put(exact);
    }
  }

  bool add_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      key_ += 'u';
      return true;
    }
    const bool is_ours = tensor.device().type() == kType;
    if ((!is_ours && !tensor.is_cpu()) || tensor.layout() != at::kStrided) return false;
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return add(c10::IValue(tensor.item()));
    key_ += is_ours ? 't' : 'h';
    put(tensor.scalar_type());
    put(tensor.is_conj());
    put(tensor.is_neg());
    put(tensor.dim());
    for (const int64_t size : tensor.sizes()) put(size);
    for (const int64_t stride : tensor.strides()) put(stride);
    items_.emplace_back(tensor);
    return true;
  }

  bool has_floats_alone() const {
    const auto first = std::ranges::find_if(
        items_, [](const Item& each) { return std::holds_alternative<at::Tensor>(each); });
    if (first == items_.end()) return false;
    const double limit = greatest(std::get<at::Tensor>(*first).scalar_type());
    return std::ranges::all_of(items_, [&](const Item& each) {
      if (const auto* const tensor = std::get_if<at::Tensor>(&each)) {
        return at::isFloatingType(tensor->scalar_type());
      }
      const double number = std::get<double>(each);
      return !std::isfinite(number) || std::abs(number) <= limit;
    });
  }

  static double greatest(at::ScalarType type) {
    switch (type) {
      case at::kDouble:
        return std::numeric_limits<double>::max();
      case at::kFloat:
        return std::numeric_limits<float>::max();
      case at::kBFloat16:
        return std::numeric_limits<at::BFloat16>::max();
      case at::kHalf:
        return std::numeric_limits<at::Half>::max();
      default:
        return 0;  // Its program is that of the number.
    }
  }

  const c10::OperatorHandle& op_;
  bool lifts_;
  std::string key_;
  Items items_;
  bool is_keyed_;  // Last: reading fills the others.
};

}  // namespace tenon::torch_device
