// Access to a device through the runtime, for cases that use it as a framework does, and checks of
// its memory (runtime_memory.cpp).
#pragma once

#include <fmt/format.h>

#include "conformance/cases/program_maker.h"
#include "core/types/float_convert.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::conformance::runtime_checks {

/// A client of the released device, and the steps that its executions ran.
class RuntimeDevice {
 public:
  static Result<RuntimeDevice> open(const BackendDevice& source) {
    RuntimeDevice opened;
    runtime::ClientOptions one;
    one.devices = {source.index};
    TENON_ASSIGN(opened.client_, runtime::Client::open(source.backend, one));
    return opened;
  }

  const std::shared_ptr<runtime::Device>& device() const { return client_->devices()[0]; }
  const backend::TargetInfo& target() const { return device()->info().target; }

  Result<std::shared_ptr<runtime::Executable>> load(const std::string& text) const {
    TENON_ASSIGN(const auto module, hlo::import_module(text, "case"));
    TENON_ASSIGN(auto made, hlo::compile(*module, client_->backend(), target()));
    return runtime::Executable::load(device(), std::move(made.compiled), {});
  }

  Result<runtime::BufferPtr> put(const Literal& array,
                                 runtime::MemoryKind kind = runtime::MemoryKind::kDevice) const {
    TENON_ASSIGN(auto made,
                 buffer_from_host(device(), kind, {array.data().data(), array.shape(), {}, {}}));
    return made.buffer;
  }

  Result<runtime::Execution> execute(const runtime::Executable& executable,
                                     std::vector<runtime::BufferPtr> arguments) {
    TENON_ASSIGN(runtime::Execution run, executable.execute(arguments));
    executions_.push_back(run);
    return run;
  }

  /// Runs on these arrays, and waits.
  Result<std::vector<Literal>> run(const runtime::Executable& executable,
                                   const std::vector<Literal>& arguments) {
    std::vector<runtime::BufferPtr> buffers;
    for (const Literal& each : arguments) {
      TENON_ASSIGN(runtime::BufferPtr buffer, put(each));
      buffers.push_back(std::move(buffer));
    }
    TENON_ASSIGN(const runtime::Execution done, execute(executable, buffers));
    std::vector<Literal> results;
    for (const runtime::BufferPtr& each : done.results) {
      TENON_ASSIGN(Literal array, each->to_literal());
      results.push_back(std::move(array));
    }
    return results;
  }

  program::StepCounts steps() const {
    program::StepCounts sum;
    for (const runtime::Execution& each : executions_) {
      if (!each.done.await().ok()) continue;
      sum.kernels += each.steps->kernels;
      sum.calls += each.steps->calls;
      sum.host += each.steps->host;
    }
    return sum;
  }

 private:
  std::shared_ptr<runtime::Client> client_;
  std::vector<runtime::Execution> executions_;
};

/// first, first + 7, …, as the type wraps them.
inline Literal test_numbers(Dims dims, int64_t first, ElementType type = ElementType::kS32) {
  Literal array(Shape(type, std::move(dims)));
  for (int64_t i = 0; i < array.element_count(); ++i)
    array.set_integer(i, wrap_integer(type, first + 7 * i));
  return array;
}

/// Each element, and `added`.
inline Literal plus(const Literal& x, int64_t added) {
  Literal sum = x;
  for (int64_t i = 0; i < x.element_count(); ++i)
    sum.set_integer(i, wrap_integer(x.element_type(), x.get_integer(i) + added));
  return sum;
}

/// `donor` is an attribute of the argument: " {tf.aliasing_output = 0 : i32}".
inline std::string add_one(int64_t count, std::string_view donor = "") {
  return fmt::format(
      "func.func @main(%a: tensor<{0}xi32>{1}) -> tensor<{0}xi32> {{\n"
      " %k = stablehlo.constant dense<1> : tensor<{0}xi32>\n"
      " %r = stablehlo.add %a, %k : tensor<{0}xi32>\n return %r : tensor<{0}xi32>\n}}\n",
      count, donor);
}
inline constexpr std::string_view kDonor = " {tf.aliasing_output = 0 : i32}";

/// An error with the first element that differs.
inline Status same(const Literal& got, const Literal& expected, std::string_view what) {
  if (got == expected) return {};
  for (int64_t i = 0; i < got.element_count(); ++i) {
    if (got.get_integer(i) != expected.get_integer(i)) {
      return internal_error("{}: element {} is {}, expected {}", what, i, got.element_to_string(i),
                            expected.element_to_string(i));
    }
  }
  return internal_error("{}: another shape", what);
}

// --- Checks of memory

Status donation_takes_the_buffer(RuntimeDevice& d);
Status chain_of_donations(RuntimeDevice& d);
Status held_buffers_stay(RuntimeDevice& d);
Status one_buffer_twice(RuntimeDevice& d);
Status large_temporaries(RuntimeDevice& d);
Status memory_used_up_and_given_back(RuntimeDevice& d);
Status fragmentation(RuntimeDevice& d);

}  // namespace tenon::conformance::runtime_checks
