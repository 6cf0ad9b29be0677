// A plug-in's table in C, as tests change it: its compiler renders OpenCL C, its device does
// nothing, and its copies and events fail without a text.
#pragma once

#include <gtest/gtest.h>

#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/c_types.h"
#include "core/backend/testing/backend_test_util.h"

namespace tenon::backend {

class TableInC : public ::testing::Test {
 protected:
  TableInC() {
    table_.size = sizeof table_;
    table_.abi_major = TENON_ABI_MAJOR;
    table_.abi_minor = TENON_ABI_MINOR;
    table_.name = "chip";
    table_.version = "1";
    table_.devices = [](void*, void (*)(void*, const TenonDeviceInfo*), const TenonSink*) {
      return TENON_OK;
    };
    table_.open = [](size_t, TenonDevice* device, const TenonSink*) {
      *device = 1;
      return TENON_OK;
    };
    table_.close = [](TenonDevice) {};
    table_.compile = [](const TenonCompileArgs* args) {
      return host_services()->render(args->kernels, args->kernel_count, TENON_OPENCL, 1,
                                     args->binary, args->error);
    };
    table_.load = [](const TenonLoadArgs*, TenonModule* module) {
      *module = 1;
      return TENON_OK;
    };
    table_.unload = [](TenonDevice, TenonModule) {};
    table_.allocate = [](TenonDevice, uint32_t, int64_t, TenonMemory*, const TenonSink*) {
      return TENON_INTERNAL;
    };
    table_.free = [](TenonDevice, TenonMemory) {};
    table_.copy = [](const TenonCopyArgs*) { return TENON_INTERNAL; };
    table_.launch = [](const TenonLaunchArgs*) { return TENON_OK; };
    table_.record = [](TenonDevice, uint32_t, TenonEvent* event, const TenonSink*) {
      *event = 1;
      return TENON_OK;
    };
    table_.wait = [](TenonDevice, uint32_t, TenonEvent, const TenonSink*) { return TENON_OK; };
    table_.await = [](TenonDevice, TenonEvent, int64_t, TenonEventState* state, const TenonSink*) {
      *state = TENON_EVENT_ERROR;
      return TENON_INTERNAL;
    };
    table_.release = [](TenonDevice, TenonEvent) {};
    target_.name = "chip";
    target_.compiler_id = "1";
    target_.features = kernel::TargetFeatures::least();
  }

  TenonBackend table_{};
  TargetInfo target_;
  const kernel::Kernel kernel_ = add_one();
  const kernel::Kernel* kernels_[1] = {&kernel_};
};

}  // namespace tenon::backend
