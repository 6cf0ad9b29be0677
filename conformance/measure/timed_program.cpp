#include "conformance/measure/timed_program.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "conformance/cases/values.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

// Moderate numbers, the same again and again; indices in range, each once.
Literal timed_argument(const Shape& shape) {
  Literal array(shape);
  const auto count = array.element_count();
  if (shape.element_type() == ElementType::kS32) {
    for (int64_t i = 0; i < count; ++i) array.set_integer(i, count - 1 - i);
    return array;
  }
  Random random(1);
  const Literal few =
      random_values(Shape(shape.element_type(), {1021}), ValueClass::kOrdinary, random);
  const std::span<std::byte> bytes = array.mutable_data();
  for (size_t at = 0; at < bytes.size(); at += few.data().size()) {
    std::memcpy(bytes.data() + at, few.data().data(),
                std::min(few.data().size(), bytes.size() - at));
  }
  return array;
}

}  // namespace

Result<TimedProgram> TimedProgram::load(const std::shared_ptr<runtime::Client>& client,
                                        const std::string& text, bool strict) {
  const auto& device = client->devices()[0];
  TENON_ASSIGN(const auto module, hlo::import_module(text, "measured"));
  hlo::CompileOptions options;
  options.strict = strict;
  TENON_ASSIGN(auto made, hlo::compile(*module, client->backend(), device->info().target, options));
  TimedProgram program;
  TENON_ASSIGN(program.executable, runtime::Executable::load(device, std::move(made.compiled), {}));
  for (const Shape& shape : program.executable->parameters()) {
    const Literal array = timed_argument(shape);
    TENON_ASSIGN(auto made_buffer, buffer_from_host(device, runtime::MemoryKind::kDevice,
                                                    {array.data().data(), shape, {}, {}}));
    program.arguments.push_back(made_buffer.buffer);
    program.bytes += static_cast<double>(array.data().size());
  }
  for (const Shape& shape : program.executable->results())
    program.bytes += static_cast<double>(Literal(shape).data().size());
  return program;
}

Status TimedProgram::run() const {
  TENON_ASSIGN(const runtime::Execution run, executable->execute(arguments));
  return run.done.await();
}

Result<double> seconds_of(const std::function<Status()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  TENON_TRY(work());
  return std::max(std::chrono::duration<double>(Clock::now() - begin).count(), 1e-9);
}

Result<double> median_seconds(int count, const std::function<Status()>& work) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    TENON_ASSIGN(const double seconds, seconds_of(work));
    times.push_back(seconds);
  }
  std::ranges::nth_element(times, times.begin() + count / 2);
  return times[static_cast<size_t>(count / 2)];
}

}  // namespace tenon::conformance
