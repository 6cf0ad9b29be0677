// The kernel of every op that has no other: what ran before with tensors of the same shapes runs as
// the program that was kept then, without Python's interpreter.
//
// The first time, and where a program alone does not do, the call goes on to the kernel in Python
// (tenon_torch/device/eager.py), which is registered for the key PrivateUse2, since no tensor has
// that: it makes the op's program, and leaves a Plan for the calls to come.
//
// Thread-safety: all of this is touched with Python's lock.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/Exceptions.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "op_call.h"
#include "plan.h"

namespace tenon::torch_device {
namespace {

using torch::jit::Stack;

/// Plans by calls.
class Plans {
 public:
  /// Never destroyed: the interpreter may be gone.
  static Plans& only() {
    static auto* const plans = new Plans();
    return *plans;
  }

  void start(PythonFunctions python, size_t most) {
    python_ = std::make_unique<PythonFunctions>(std::move(python));
    most_ = most;
    lifting_.clear();
  }

  void call(const c10::OperatorHandle& op, Stack& stack) {
    if (is_checking_) return give_back(op, stack);
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    OpCall op_call(op, torch::jit::last(stack, count), lifts(op));
    const auto found = op_call.is_keyed() ? plans_.find(op_call.key()) : plans_.end();
    if (found == plans_.end() || found->second->writes_beside(op_call.items())) {
      if (checked_.contains(&schema))
        op_call.expected = checked(op, torch::jit::last(stack, count));
      return make(op, op_call, stack);
    }
    const std::shared_ptr<const Plan> plan = found->second;  // What it calls may drop it.
    ++calls_;
    std::vector<at::Tensor> results = plan->call(*python_, op_call.items());
    torch::jit::drop(stack, count);
    if (schema.returns().size() == 1 &&
        schema.returns()[0].type()->kind() == c10::TypeKind::ListType) {
      stack.emplace_back(c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(results)));
    } else {
      for (at::Tensor& each : results) stack.emplace_back(std::move(each));
    }
  }

  /// The call that this thread hands to eager.py, once; null if no plan could be found for it.
  static OpCall* take_open() { return std::exchange(open_, nullptr); }

  void check(const c10::OperatorHandle& op) { checked_.insert(&op.schema()); }

  int64_t calls() const { return calls_; }
  const PythonFunctions& python() const {
    TORCH_CHECK(python_ != nullptr, "tenon: the device has not started");
    return *python_;
  }

  void keep(const std::string& key, std::shared_ptr<const Plan> plan) {
    if (plans_.size() >= most_) plans_.clear();  // eager.py keeps the programs.
    plans_.insert_or_assign(key, std::move(plan));
  }

 private:
  /// Thrown where a check needs what only work gives.
  struct CheckEnds : std::exception {};

  /// PyTorch's own kernel of an op that it would make of the form with `out` checks the arguments,
  /// makes the results and calls that form, which here does nothing. Gives the results, whose types
  /// and strides are what the op's have to be; throws what the op would. Nothing, if the kernel
  /// reads elements.
  static std::optional<std::vector<at::Tensor>> checked(const c10::OperatorHandle& op,
                                                        at::ArrayRef<c10::IValue> arguments) {
    struct Checking {
      Checking() { is_checking_ = true; }
      ~Checking() { is_checking_ = false; }
    } const checking;
    Stack stack(arguments.begin(), arguments.end());
    try {
      op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional, stack);
    } catch (const CheckEnds&) {
      return std::nullopt;
    }
    std::vector<at::Tensor> results;
    for (const c10::IValue& each : stack) {
      if (each.isTensor()) results.push_back(each.toTensor());
    }
    return results;
  }

  /// Gives the arguments that an op changes as its results, as they are.
  static void give_back(const c10::OperatorHandle& op, Stack& stack) {
    const auto& arguments = op.schema().arguments();
    // Its schema does not say that it changes the second one.
    const bool is_copy = op.operator_name().name == "aten::_copy_from";
    std::vector<c10::IValue> changed;
    const auto given = torch::jit::last(stack, arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* const alias = arguments[i].alias_info();
      if ((alias != nullptr && alias->isWrite()) || (is_copy && i == 1))
        changed.push_back(given[i]);
    }
    const size_t count = op.schema().returns().size();
    if (changed.size() < count) throw CheckEnds();
    torch::jit::drop(stack, arguments.size());
    for (size_t i = 0; i < count; ++i) stack.push_back(std::move(changed[i]));
  }

  bool lifts(const c10::OperatorHandle& op) {
    const auto [found, is_new] = lifting_.try_emplace(&op.schema(), false);
    if (is_new && python_ != nullptr) {
      found->second = python_->lifting.contains(c10::toString(op.operator_name()));
    }
    return found->second;
  }

  static void make(const c10::OperatorHandle& op, OpCall& op_call, Stack& stack) {
    struct Opened {
      explicit Opened(OpCall* op_call) : outer(std::exchange(open_, op_call)) {}
      ~Opened() { open_ = outer; }
      OpCall* outer;
    } const opened(&op_call);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse2), &stack);
  }

  std::unique_ptr<const PythonFunctions> python_;
  size_t most_ = 0;
  int64_t calls_ = 0;
  static thread_local OpCall* open_;
  static thread_local bool is_checking_;
  std::unordered_set<const c10::FunctionSchema*> checked_;
  std::unordered_map<const c10::FunctionSchema*, bool> lifting_;
  std::unordered_map<std::string, std::shared_ptr<const Plan>> plans_;
};

thread_local OpCall* Plans::open_ = nullptr;
thread_local bool Plans::is_checking_ = false;

void call(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, Stack* stack) {
  const py::gil_scoped_acquire locked;
  try {
    Plans::only().call(op, *stack);
  } catch (py::error_already_set& error) {  // The thread of autograd hands it on.
    error.restore();
    python_error kept;
    kept.persist();
    throw std::move(kept);
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&call>());
}
// PyTorch has kernels of these for every device, which refuse those that it does not know.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const char* const name :
       {"_copy_from", "convolution_overrideable", "convolution_backward_overrideable",
        "conj_physical_", "mode", "mode.values"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&call>());
  }
}

/// Whether PyTorch makes an op of its form with `out` for devices that have no kernel of it: two
/// calls for one, and an empty tensor that is not needed.
bool is_made_with_out(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  return op.operator_name().getNamespace() == "aten" &&
         !op.operator_name().name.ends_with("_copy") &&
         !op.operator_name().overload_name.ends_with("out") &&
         !op.hasKernelForDispatchKey(Key::PrivateUse1) && op.hasKernelForDispatchKey(Key::CPU) &&
         op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional);
}

/// Registers the kernel for such ops. Gives their names.
std::vector<std::string> take_ops() {
  static auto* const library = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<std::string> names;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !is_made_with_out(*op)) continue;
    Plans::only().check(*op);
    names.push_back(c10::toString(name).substr(std::string_view("aten::").size()));
    library->impl(names.back().c_str(), torch::CppFunction::makeFromBoxedFunction<&call>());
  }
  return names;
}

void bind_plans(py::module_& module) {
  module.def("take_ops", &take_ops,
             "Takes ops that PyTorch would make of their form with `out`; their names.");
  py::class_<Plan, std::shared_ptr<Plan>>(
      module, "Plan", "An op's program, and what becomes of its arguments and results.")
      .def(py::init<py::object, py::list, py::list, py::list>())
      .def(
          "call",
          [](const Plan& plan, const std::vector<at::Tensor>& tensors) {
            return plan.call(Plans::only().python(), Items(tensors.begin(), tensors.end()));
          },
          "Runs it with tensors; their number is their place.");
  module.def(
      "start_plans",
      [](py::object read, py::object write, py::object reader, py::object writer, py::object number,
         py::object counters, const std::vector<std::string>& lifting, size_t most) {
        PythonFunctions python{std::move(read),
                               std::move(write),
                               std::move(reader),
                               std::move(writer),
                               std::move(number),
                               std::move(counters),
                               {lifting.begin(), lifting.end()}};
        Plans::only().start(std::move(python), most);
      },
      "Says which functions plans call, ops whose numbers are arguments, how many are kept.");
  module.def(
      "open_call",
      []() -> std::optional<std::tuple<py::object, py::list, py::object>> {
        OpCall* const op_call = Plans::take_open();
        if (op_call == nullptr) return std::nullopt;
        return std::tuple(op_call->is_keyed() ? py::object(py::bytes(op_call->key())) : py::none(),
                          op_call->listed(),
                          op_call->expected ? py::cast(*op_call->expected) : py::none());
      },
      "The key (or None), the items and the results to expect (or None) of the call that waits for "
      "a plan, once; or None.");
  module.def(
      "keep_plan",
      [](const std::string& key, std::shared_ptr<Plan> plan) {
        Plans::only().keep(key, std::move(plan));
      },
      "Keeps a plan for calls of this key.");
  module.def("planned_calls", [] { return Plans::only().calls(); }, "How many calls had a plan.");
}

}  // namespace tenon::torch_device
