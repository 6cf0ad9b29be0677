#include "backends/gpu/simulator/simulator.h"

#include <tbb/task_arena.h>

#include <algorithm>

#include "backends/gpu/simulator/block.h"
#include "backends/support/parallel.h"

namespace tenon::gpu {
namespace {

HostThreadMemory& memory_of_thread() {
  thread_local HostThreadMemory memory;
  return memory;
}

Status check(const SimProgram& program, const SimLaunch& launch) {
  if (launch.kernel >= program.image().kernels.size()) {
    return invalid_argument("gpu-sim: there is no kernel {}", launch.kernel);
  }
  const SimKernel& kernel = program.image().kernels[launch.kernel];
  if (launch.arguments.size() != kernel.parameters.size()) {
    return invalid_argument("gpu-sim: @{} takes {} arguments, not {}", kernel.symbol,
                            kernel.parameters.size(), launch.arguments.size());
  }
  if (launch.shape.threads == 0 || launch.shape.threads > 1024 || launch.shape.blocks < 0) {
    return invalid_argument("gpu-sim: @{}: cannot launch {} blocks of {} threads", kernel.symbol,
                            launch.shape.blocks, launch.shape.threads);
  }
  return {};
}

Status run_blocks(SimRun& run, int64_t begin, int64_t end) {
  SimBlock block(run, memory_of_thread());
  if (!block.is_ready()) {
    return resource_exhausted("gpu-sim: there is no memory for the stacks of {} threads",
                              run.launch.shape.threads);
  }
  block.run_blocks(begin, end);
  return {};
}

Status run(SimRun& run) {
  const int64_t blocks = run.launch.shape.blocks;
  constexpr int64_t kThreadsATask = 2048;
  const int64_t least = std::max<int64_t>(1, kThreadsATask / run.launch.shape.threads);
  if (run.memory || blocks <= least) {
    TENON_TRY(run_blocks(run, 0, blocks));
    return run.outcome();
  }
  const int64_t most_tasks = int64_t{8} * tbb::this_task_arena::max_concurrency();
  const int64_t grain = std::max(least, (blocks + most_tasks - 1) / most_tasks);
  const int64_t tasks = (blocks + grain - 1) / grain;
  std::vector<Status> outcomes(static_cast<size_t>(tasks));
  parallel_for(tasks, [&](int64_t i) {
    outcomes[static_cast<size_t>(i)] =
        run_blocks(run, i * grain, std::min((i + 1) * grain, blocks));
  });
  for (Status& each : outcomes) TENON_TRY(std::move(each));
  return run.outcome();
}

}  // namespace

Result<std::shared_ptr<const SimProgram>> SimProgram::load(std::string_view image) {
  auto program = std::make_shared<SimProgram>();
  TENON_ASSIGN(program->image_, load_sim_image(image));
  const std::string object = std::exchange(program->image_.object, "");
  TENON_ASSIGN(program->objects_, codegen::load_objects({&object, 1}, sim_functions()));
  for (const SimKernel& each : program->image_.kernels) {
    TENON_ASSIGN(void* const address, program->objects_->address(each.symbol));
    program->entries_.push_back(reinterpret_cast<SimEntry>(address));
  }
  return program;
}

Status simulate(const SimProgram& program, const SimLaunch& launch) {
  TENON_TRY(check(program, launch));
  static const volatile uint32_t go = 0;
  SimLaunch whole = launch;
  for (const volatile uint32_t*& word : whole.stops) {
    if (word == nullptr) word = &go;
  }
  try {
    SimRun one(program, whole);
    return run(one);
  } catch (const std::exception& e) {  // Out of memory, for tasks or for the checks.
    return resource_exhausted("gpu-sim: {}", e.what());
  }
}

}  // namespace tenon::gpu
