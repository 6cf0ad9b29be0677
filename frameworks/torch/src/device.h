// Tensors of the device: what a storage holds.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/utils/pybind.h>

namespace tenon::torch_device {

constexpr auto kType = c10::DeviceType::PrivateUse1;

using Dims = c10::SmallVector<int64_t, 5>;

/// A storage's context points to it. To be touched with Python's lock.
struct Contents {
  PyObject* array = nullptr;  ///< Null: nothing was written yet.
  at::ScalarType type = at::ScalarType::Undefined;
  Dims shape;  ///< The array's.

  void hold(pybind11::object next, at::ScalarType next_type, Dims next_shape);
};

/// Contents of the storage of a tensor of the device.
Contents& contents_of(const at::Tensor& tensor);

/// A new tensor of the current device, without contents.
at::Tensor new_tensor(at::IntArrayRef size, at::IntArrayRef stride, at::ScalarType type);

/// Adds what tenon_torch/device/eager.py needs of plans.cpp.
void bind_plans(pybind11::module_& module);

}  // namespace tenon::torch_device
