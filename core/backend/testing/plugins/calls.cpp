// core/backend/testing/plugins/: plug-ins for tests: one that takes library calls, some that are
// wrong.
//
// A plug-in that takes library calls: interp, and matrix products of f32 by its own loops. If the
// right operand is constant, it is packed (transposed).
#include <cstring>

#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"

namespace tenon::backend {
namespace {

struct Sizes {
  int64_t m, k, n;
  bool packed;
};

Result<Sizes> sizes_of(const LibraryCallSite& site) {
  const auto* call = std::get_if<program::Contraction>(&site.call);
  if (call == nullptr) return unimplemented("only contractions are taken");
  const program::Contraction product = {{}, {}, {1}, {0}};
  if (*call != product || site.operands[0].dims().size() != 2 ||
      site.operands[1].dims().size() != 2 || site.results[0].element_type() != ElementType::kF32 ||
      site.operands[0].element_type() != ElementType::kF32) {
    return unimplemented("only plain products of matrices are taken");
  }
  return Sizes{site.operands[0].dims()[0], site.operands[0].dims()[1], site.operands[1].dims()[1],
               site.constant[1]};
}

Sizes read(std::string_view plan) {
  Sizes sizes{};
  std::memcpy(&sizes, plan.data(), sizeof sizes);
  return sizes;
}

class CallsDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  Status call(uint32_t queue, const LibraryCallLaunch& launch) override {
    TENON_TRY(drain(queue));
    const Sizes s = read(launch.plan);
    TENON_ASSIGN(const float* a, floats(launch.operands[0]));
    TENON_ASSIGN(const float* b, floats(launch.operands[1]));
    TENON_ASSIGN(float* c, floats(launch.results[0]));
    TENON_ASSIGN(float* sum, floats(launch.workspace));
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        *sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          *sum += a[i * s.k + k] * (s.packed ? b[j * s.k + k] : b[k * s.n + j]);
        }
        c[i * s.n + j] = *sum;
      }
    }
    return {};
  }

  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    if (operand != 1) return invalid_argument("operand {} has no packed form", operand);
    TENON_TRY(drain(queue));
    const Sizes s = read(plan);
    TENON_ASSIGN(float* to, floats(destination));
    TENON_ASSIGN(const float* from, floats(source));
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t j = 0; j < s.n; ++j) to[j * s.k + k] = from[k * s.n + j];
    }
    return {};
  }

 private:
  // Work may be done before the call returns (B8).
  Status drain(uint32_t queue) {
    TENON_ASSIGN(const EventHandle event, record(queue));
    const Result<bool> done = await(event, -1);
    release(event);
    return done ? Status() : done.error();
  }
  Result<float*> floats(const MemoryAddress& place) {
    TENON_ASSIGN(std::byte* const memory, map(place.memory));
    return reinterpret_cast<float*>(memory + place.offset);
  }
};

class CallsBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::string_view name() const override { return "calls"; }
  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(std::unique_ptr<Device> device, ForwardingBackend::open(index));
    return std::make_unique<CallsDevice>(std::move(device));
  }
  Result<LibraryCallPlan> plan(const TargetInfo&, const LibraryCallSite& site) override {
    TENON_ASSIGN(const Sizes sizes, sizes_of(site));
    LibraryCallPlan plan;
    plan.plan.assign(reinterpret_cast<const char*>(&sizes), sizeof sizes);
    plan.workspace_bytes = sizeof(float);
    plan.packed_bytes = {0, sizes.packed ? sizes.k * sizes.n * 4 : 0};
    return plan;
  }
};

}  // namespace
}  // namespace tenon::backend

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  using namespace tenon;
  return backend::export_backend(host, error, [] {
    backend::InterpreterConfig config;
    config.segments = false;
    return Result<std::shared_ptr<backend::Backend>>(std::make_shared<backend::CallsBackend>(
        std::shared_ptr<backend::Backend>(backend::make_interpreter_backend(config))));
  });
}
