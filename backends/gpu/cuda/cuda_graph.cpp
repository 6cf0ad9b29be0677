#include "backends/gpu/cuda/cuda_graph.h"

#include <algorithm>

namespace tenon::gpu {

// The driver has cudaGraphSetConditional built in: its compiler links it, ptxas would not. A pred
// of a branch is 0 or 1; chosen_branch() (driver.h) says the same of an index.
const char* const kCudaConditionPtx = R"(.version 7.8
.target sm_75
.address_size 64

.extern .func cudaGraphSetConditional (.param .b64 condition, .param .b32 value);

.visible .entry tenon_condition_of_loop(.param .u64 condition, .param .u64 predicate)
{
  .reg .b32 %value;
  .reg .b64 %condition, %place;
  ld.param.u64 %condition, [condition];
  ld.param.u64 %place, [predicate];
  ld.global.u8 %value, [%place];
  and.b32 %value, %value, 1;
  {
    .param .b64 to;
    .param .b32 what;
    st.param.b64 [to], %condition;
    st.param.b32 [what], %value;
    call.uni cudaGraphSetConditional, (to, what);
  }
  ret;
}

.visible .entry tenon_condition_of_branch(.param .u64 condition, .param .u64 index,
                                          .param .u32 is_pred, .param .u32 branch,
                                          .param .u32 count)
{
  .reg .pred %pred, %true, %out, %chosen;
  .reg .b32 %kind, %branch, %last, %number, %value;
  .reg .b64 %condition, %place;
  ld.param.u64 %condition, [condition];
  ld.param.u64 %place, [index];
  ld.param.u32 %kind, [is_pred];
  ld.param.u32 %branch, [branch];
  ld.param.u32 %last, [count];
  sub.u32 %last, %last, 1;
  setp.ne.u32 %pred, %kind, 0;
  @%pred bra of_pred;
  ld.global.u32 %number, [%place];
  setp.gt.u32 %out, %number, %last;
  selp.b32 %number, %last, %number, %out;
  bra.uni both;
of_pred:
  ld.global.u8 %number, [%place];
  setp.ne.u32 %true, %number, 0;
  selp.b32 %number, 0, 1, %true;
both:
  setp.eq.u32 %chosen, %number, %branch;
  selp.b32 %value, 1, 0, %chosen;
  {
    .param .b64 to;
    .param .b32 what;
    st.param.b64 [to], %condition;
    st.param.b32 [what], %value;
    call.uni cudaGraphSetConditional, (to, what);
  }
  ret;
}
)";

Result<CudaConditionKernels> load_condition_kernels(const CudaApi& api) {
  CudaConditionKernels kernels;
  TENON_TRY(api.check(api.load_module(&kernels.module, kCudaConditionPtx, 0, nullptr, nullptr),
                      "load the conditions of graphs"));
  const auto find = [&](CUfunction* function, const char* name) {
    return api.check(api.function(function, kernels.module, name), "find a kernel");
  };
  Status found = find(&kernels.of_loop, "tenon_condition_of_loop");
  if (found.ok()) found = find(&kernels.of_branch, "tenon_condition_of_branch");
  if (found.ok()) return kernels;
  static_cast<void>(api.unload_module(kernels.module));
  return tl::make_unexpected(found);
}

// Walks through work, in the order in which its kernels run. With a context, it adds nodes to the
// graph, each behind the one before; without, it only lists the kernels.
class CudaGraph::Maker {
 public:
  Maker(CudaGraph& made, const GpuWork& work, CUcontext context)
      : made_(made), api_(*made.api_.graphs), work_(work), context_(context) {}

  Status run() {
    Chain chain = {made_.graph_, nullptr};
    return sequence(chain, 0);
  }
  std::vector<KernelNode> take() { return std::move(kernels_); }

 private:
  /// The graph to which nodes are added, and the last one.
  struct Chain {
    CUgraph graph = nullptr;
    CUgraphNode last = nullptr;

    const CUgraphNode* before() const { return last == nullptr ? nullptr : &last; }
    size_t count() const { return last == nullptr ? 0 : 1; }
  };

  bool builds() const { return context_ != nullptr; }
  Status check(CUresult result, const char* what) const { return made_.api_.check(result, what); }

  Status sequence(Chain& chain, uint32_t number) {
    for (const WorkStep& step : work_.sequences[number]) {
      TENON_TRY(std::visit([&](const auto& it) { return add(chain, it); }, step));
    }
    return {};
  }

  Status add(Chain& chain, const WorkLaunch& launch) {
    return kernel(chain, {nullptr, reinterpret_cast<CUfunction>(launch.function),
                          grid_of(launch.blocks), launch.threads, launch.arguments});
  }

  Status add(Chain& chain, const WorkLoop& loop) {
    TENON_ASSIGN(const CudaCondition goes_on, condition());
    const auto test = [&](Chain& where) -> Status {
      TENON_TRY(sequence(where, loop.condition));
      return kernel(where, {nullptr, made_.conditions_->of_loop, {}, 1, {goes_on, loop.predicate}});
    };
    TENON_TRY(test(chain));
    TENON_ASSIGN(Chain body, conditional(chain, goes_on, kCudaWhile));
    TENON_TRY(sequence(body, loop.body));
    return test(body);
  }

  // A branch may change the index: all conditions are set before the first branch runs.
  Status add(Chain& chain, const WorkChoice& choice) {
    std::vector<CudaCondition> chosen;
    for (size_t i = 0; i < choice.branches.size(); ++i) {
      TENON_ASSIGN(chosen.emplace_back(), condition());
      const std::vector<uint64_t> arguments = {
          chosen[i], choice.index, uint64_t{choice.is_pred ? 1U : 0U}, i, choice.branches.size()};
      TENON_TRY(kernel(chain, {nullptr, made_.conditions_->of_branch, {}, 1, arguments}));
    }
    for (size_t i = 0; i < choice.branches.size(); ++i) {
      TENON_ASSIGN(Chain branch, conditional(chain, chosen[i], kCudaIf));
      TENON_TRY(sequence(branch, choice.branches[i]));
    }
    return {};
  }

  Status kernel(Chain& chain, KernelNode node) {
    if (builds()) {
      std::vector<void*> pointers;
      for (uint64_t& each : node.arguments) pointers.push_back(&each);
      const CudaKernelNode params = params_of(node, pointers);
      TENON_TRY(
          check(api_.add_kernel(&node.node, chain.graph, chain.before(), chain.count(), &params),
                "add a kernel to a graph"));
      chain.last = node.node;
    }
    kernels_.push_back(std::move(node));
    return {};
  }

  // The next condition of the graph, in the order of the work.
  Result<CudaCondition> condition() {
    if (builds()) {
      CudaCondition made = 0;
      TENON_TRY(check(api_.create_condition(&made, made_.graph_, context_, 0, 0),
                      "add a condition to a graph"));
      made_.conditions_of_.push_back(made);
    }
    if (next_condition_ == made_.conditions_of_.size()) {
      return internal_error("gpu: the work has more loops than the graph");
    }
    return made_.conditions_of_[next_condition_++];
  }

  // Adds a node that runs a graph of its own, which is returned, while or if the condition is set.
  Result<Chain> conditional(Chain& chain, CudaCondition condition, CudaConditionalType type) {
    if (!builds()) return Chain();
    CudaNodeParams params;
    params.conditional.condition = condition;
    params.conditional.type = type;
    params.conditional.context = context_;
    CUgraphNode node = nullptr;
    TENON_TRY(
        check(api_.add_node(&node, chain.graph, chain.before(), nullptr, chain.count(), &params),
              "add a loop or branch to a graph"));
    chain.last = node;
    return Chain{params.conditional.graphs[0], nullptr};
  }

  CudaGraph& made_;
  const CudaGraphApi& api_;
  const GpuWork& work_;
  const CUcontext context_;
  size_t next_condition_ = 0;
  std::vector<KernelNode> kernels_;
};

CudaKernelNode CudaGraph::params_of(const KernelNode& node, std::vector<void*>& arguments) {
  CudaKernelNode params;
  params.function = node.function;
  params.grid[0] = node.grid.x;
  params.grid[1] = node.grid.y;
  params.block[0] = node.threads;
  params.arguments = arguments.data();
  return params;
}

Result<std::unique_ptr<CudaGraph>> CudaGraph::make(const CudaApi& api, CUcontext context,
                                                   const CudaConditionKernels* conditions,
                                                   const GpuWork& work) {
  if (!api.graphs) return unimplemented("the CUDA driver is too old for graphs with loops");
  std::unique_ptr<CudaGraph> made(new CudaGraph(api, conditions));
  TENON_TRY(api.check(api.graphs->create(&made->graph_, 0), "make a graph"));
  Maker maker(*made, work, context);
  TENON_TRY(maker.run());
  made->kernels_ = maker.take();
  TENON_TRY(api.check(api.graphs->instantiate(&made->executable_, made->graph_, 0),
                      "make a graph executable"));
  return made;
}

CudaGraph::~CudaGraph() {
  if (executable_ != nullptr) static_cast<void>(api_.graphs->destroy_executable(executable_));
  if (graph_ != nullptr) static_cast<void>(api_.graphs->destroy(graph_));
}

Status CudaGraph::update(const GpuWork& work) {
  Maker lister(*this, work, nullptr);
  TENON_TRY(lister.run());
  std::vector<KernelNode> wanted = lister.take();
  if (wanted.size() != kernels_.size()) {
    return internal_error("gpu: the work has other kernels than the graph");
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    KernelNode& known = kernels_[i];
    if (wanted[i].arguments == known.arguments) continue;
    known.arguments = std::move(wanted[i].arguments);
    std::vector<void*> pointers;
    for (uint64_t& each : known.arguments) pointers.push_back(&each);
    const CudaKernelNode params = params_of(known, pointers);
    TENON_TRY(
        api_.check(api_.graphs->set_kernel(executable_, known.node, &params), "change a graph"));
  }
  return {};
}

Status CudaGraph::launch(CUstream stream) {
  return api_.check(api_.graphs->launch(executable_, stream), "launch a graph");
}

}  // namespace tenon::gpu
