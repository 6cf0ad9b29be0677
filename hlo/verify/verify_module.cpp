// The verifier of whole Modules.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/inference/infer_util.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

class ModuleVerifier {
 public:
  ModuleVerifier(const Module& module, size_t limit) : module_(module), limit_(limit) {}

  std::vector<Status> run() {
    check_names();
    for (const auto& function : module_.functions()) {
      if (is_full()) break;
      check_function(*function);
    }
    check_recursion();
    return std::move(errors_);
  }

 private:
  bool is_full() const { return errors_.size() >= limit_; }

  void add(Status status) {
    if (!status.ok() && !is_full()) errors_.push_back(std::move(status).in_stage("verify"));
  }

  void check_names() {
    for (const auto& function : module_.functions()) {
      const std::string& name = function->name();
      if (name.empty()) {
        add(invalid_argument("a function has no name").at(position_of(function->location())));
      } else if (!functions_.emplace(name, function.get()).second) {
        add(invalid_argument("function @{} is defined twice", name)
                .at(position_of(function->location())));
      }
    }
  }

  void check_function(const Computation& function) {
    for (const Type& type : function.result_types()) {
      if (const std::string fault = infer::type_fault(type); !fault.empty()) {
        add(invalid_argument("a result type of @{} is malformed: {}", function.name(), fault)
                .at(position_of(function.location())));
      }
    }
    check_computation(function);
    if (function.is_declaration() || function.return_instruction() != nullptr) return;
    add(invalid_argument("function @{} does not end in a return", function.name())
            .at(position_of(function.location())));
  }

  // An instruction may use the values before it, here and in the enclosing computations.
  void check_computation(const Computation& computation) {
    for (size_t i = 0; i < computation.parameter_count(); ++i) {
      const Instruction& parameter = computation.parameter_instruction(i);
      add(verify(parameter));
      visible_.insert(&parameter);
    }
    for (const Instruction& op : computation) {
      if (is_full()) break;
      check_instruction(op);
      visible_.insert(&op);
    }
    for (size_t i = 0; i < computation.parameter_count(); ++i) {
      visible_.erase(&computation.parameter_instruction(i));
    }
    for (const Instruction& op : computation) visible_.erase(&op);
  }

  void check_instruction(const Instruction& op) {
    if (op.code() == OpCode::kReturn && op.next() != nullptr) {
      add(infer::rule_error(op, "", "is followed by {}, expected the end of its computation",
                            op.next()->name()));
    }
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Value value = op.operand(i);
      if (!value || visible_.contains(value.def)) continue;
      // Its type may be invalid, so nothing else is checked.
      add(infer::rule_error(op, "", "operand {} is not defined before its use", i));
      return;
    }
    // Errors inside the regions are reported before errors that follow from them.
    const size_t errors_before = errors_.size();
    for (size_t i = 0; i < op.region_count(); ++i) check_computation(op.region(i));
    if (errors_.size() == errors_before) add(verify(op));
  }

  // ---- Recursion --------------------------------------------------------------------------------

  struct CallEdge {
    const Instruction* op;
    const Computation* callee;
  };

  void collect_calls(const Computation& computation, std::vector<CallEdge>& calls) const {
    for (const Instruction& op : computation) {
      const auto collect = [&](const std::string& name) {
        const auto found = functions_.find(name);
        if (found != functions_.end()) calls.push_back({&op, found->second});
      };
      for (const AttrKey key : {AttrKey::callee, AttrKey::decomposition}) {
        if (const auto* symbol = op.attr<SymbolAttr>(key)) collect(symbol->name);
      }
      if (const auto* symbols = op.attr<ArrayAttr>(AttrKey::called_computations)) {
        for (const Attribute& element : *symbols) {
          if (const auto* symbol = element.get<SymbolAttr>()) collect(symbol->name);
        }
      }
      for (size_t i = 0; i < op.region_count(); ++i) collect_calls(op.region(i), calls);
    }
  }

  // Depth first with an explicit stack: a chain of calls may be too long for recursion.
  void check_recursion() {
    enum class VisitState : uint8_t { kActive, kDone };
    struct CallFrame {
      const Computation* function;
      std::vector<CallEdge> calls;
      size_t next = 0;
    };
    std::unordered_map<const Computation*, VisitState> states;
    for (const auto& root : module_.functions()) {
      if (states.contains(root.get())) continue;
      std::vector<CallFrame> stack;
      const auto enter = [&](const Computation* function) {
        states[function] = VisitState::kActive;
        stack.push_back({function, {}});
        collect_calls(*function, stack.back().calls);
      };
      enter(root.get());
      while (!stack.empty()) {
        CallFrame& frame = stack.back();
        if (frame.next == frame.calls.size()) {
          states[frame.function] = VisitState::kDone;
          stack.pop_back();
          continue;
        }
        const CallEdge call = frame.calls[frame.next++];
        const auto known = states.find(call.callee);
        if (known == states.end()) {
          enter(call.callee);
        } else if (known->second == VisitState::kActive) {
          add(infer::rule_error(*call.op, "", "recursion through @{}", call.callee->name()));
        }
      }
    }
  }

  const Module& module_;
  const size_t limit_;
  std::vector<Status> errors_;
  std::unordered_map<std::string, const Computation*> functions_;
  std::unordered_set<const Instruction*> visible_;
};

}  // namespace

std::vector<Status> verify_all(const Module& module, size_t limit) {
  return ModuleVerifier(module, limit).run();
}

Status verify(const Module& module) {
  std::vector<Status> errors = verify_all(module, 1);
  return errors.empty() ? Status() : std::move(errors.front());
}

}  // namespace tenon::hlo
