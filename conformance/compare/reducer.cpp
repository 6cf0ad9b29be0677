#include "conformance/compare/reducer.h"

#include <algorithm>

#include "hlo/builder/builder.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::OpCode;
using hlo::Value;

// A copy of `from` with only the instructions in `kept`; values that they use of other instructions
// become parameters. The results of all kept instructions are returned, in order.
struct Cut {
  std::unique_ptr<hlo::Module> module;
  std::vector<Value> inputs;  // values of the original, one for each parameter
};

Cut cut(const Computation& from, const std::vector<const Instruction*>& kept) {
  Cut result;
  result.module = std::make_unique<hlo::Module>();
  result.module->set_name("reduced");
  Computation& function = result.module->add_function("main");
  hlo::Cloner cloner;
  const auto is_kept = [&](const Instruction* op) {
    return std::find(kept.begin(), kept.end(), op) != kept.end();
  };
  const auto require = [&](Value value) {
    const bool known =
        std::find(result.inputs.begin(), result.inputs.end(), value) != result.inputs.end();
    if (known || is_kept(value.def)) return;
    cloner.map(value, function.add_parameter(value.type()));
    result.inputs.push_back(value);
  };
  std::vector<Value> results;
  std::vector<hlo::Type> types;
  for (const Instruction& op : from) {
    if (!is_kept(&op)) continue;
    for (const Value operand : op.operands()) require(operand);
    for (const Value captured : hlo::captured_values(op)) require(captured);
    Instruction* copy = function.insert(cloner.clone(op));
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      cloner.map(const_cast<Instruction&>(op).result(r), copy->result(r));
      results.push_back(copy->result(r));
      types.push_back(op.result_type(r));
    }
  }
  function.set_declared_result_types(std::move(types));
  hlo::Builder builder(function);
  static_cast<void>(builder.finish(results));
  return result;
}

class Reducer {
 public:
  Reducer(Failure failure, const Device& device, int budget)
      : best_(std::move(failure)), device_(device), budget_(budget) {}

  Failure run() {
    if (const auto first = mismatch(*best_.module, best_.arguments)) best_.text = first->text;
    alone();
    instructions();
    shapes();
    numbers();
    return std::move(best_);
  }

 private:
  std::optional<Mismatch> mismatch(const hlo::Module& module,
                                   const std::vector<Literal>& arguments) {
    if (budget_-- <= 0) return std::nullopt;
    return compare(module, arguments, device_);
  }

  bool accept(std::unique_ptr<hlo::Module> module, std::vector<Literal> arguments) {
    if (!hlo::verify(*module).ok()) return false;
    const auto found = mismatch(*module, arguments);
    if (!found) return false;
    best_ = {std::move(module), std::move(arguments), found->text};
    return true;
  }

  // Evaluates the wanted values: the arguments for a cut's new parameters.
  Result<std::vector<Literal>> values_of(const std::vector<Value>& wanted) {
    const Computation& function = *best_.module->entry();
    hlo::Evaluator evaluator(*best_.module);
    TENON_ASSIGN(const std::vector<Literal> results, evaluator.run(function, best_.arguments));
    const Instruction& end = *function.return_instruction();
    std::vector<Literal> values;
    for (const Value value : wanted) {
      if (value.def->code() == OpCode::kParameter) {
        for (size_t i = 0; i < function.parameter_count(); ++i) {
          if (function.parameter(i) == value) values.push_back(best_.arguments[i]);
        }
        continue;
      }
      for (size_t i = 0; i < end.operand_count(); ++i) {
        if (end.operand(i) == value) {
          values.push_back(results[i]);
          break;
        }
      }
    }
    return values;
  }

  bool try_keeping(const std::vector<const Instruction*>& kept) {
    Cut smaller = cut(*best_.module->entry(), kept);
    auto arguments = values_of(smaller.inputs);
    return arguments && arguments->size() == smaller.inputs.size() &&
           accept(std::move(smaller.module), std::move(*arguments));
  }

  std::vector<const Instruction*> body() const {
    std::vector<const Instruction*> ops;
    for (const Instruction& op : *best_.module->entry()) {
      if (op.code() != OpCode::kReturn) ops.push_back(&op);
    }
    return ops;
  }

  // In most cases the wrong op is wrong when run alone.
  void alone() {
    const auto found = mismatch(*best_.module, best_.arguments);
    if (found && found->op != nullptr) try_keeping({found->op});
  }

  // Removes half of the instructions, a quarter, … one.
  void instructions() {
    for (size_t part = body().size() / 2; part > 0;) {
      bool progress = false;
      for (size_t begin = 0; begin < body().size(); begin += part) {
        std::vector<const Instruction*> kept = body();
        const size_t end = std::min(begin + part, kept.size());
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(begin),
                   kept.begin() + static_cast<std::ptrdiff_t>(end));
        if (!kept.empty() && try_keeping(kept)) {
          progress = true;
          break;
        }
      }
      if (!progress) part /= 2;
      part = std::min(part, body().size() / 2);
    }
  }

  // Halves all parameters of one size along one dimension together, while types can be inferred.
  void shapes() {
    bool progress = true;
    while (progress) {
      progress = false;
      std::vector<int64_t> sizes;
      for (const Literal& a : best_.arguments) {
        for (const int64_t d : a.shape().dims()) {
          if (d > 1) sizes.push_back(d);
        }
      }
      std::sort(sizes.begin(), sizes.end());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
      for (auto size = sizes.rbegin(); size != sizes.rend() && !progress; ++size) {
        progress = resize(*size, *size / 2, 0) || resize(*size, *size - *size / 2, *size / 2) ||
                   resize(*size, *size - 1, 0);
      }
    }
  }

  // Keeps elements [first, first + to) of every dimension of size `from`.
  bool resize(int64_t from, int64_t to, int64_t first) {
    std::unique_ptr<hlo::Module> copy = best_.module->clone();
    Computation& function = *copy->entry();
    std::vector<Literal> arguments;
    for (size_t i = 0; i < function.parameter_count(); ++i) {
      arguments.push_back(sliced(best_.arguments[i], from, to, first));
      function.parameter_instruction(i).set_result_types({hlo::Type(arguments.back().shape())});
    }
    for (Instruction& op : function) {
      if (op.code() == OpCode::kReturn) {
        function.set_declared_result_types(types_of(op));
        break;
      }
      auto types = hlo::infer_types(op);
      if (!types) return false;
      op.set_result_types(std::move(*types));
    }
    return accept(std::move(copy), std::move(arguments));
  }

  static std::vector<hlo::Type> types_of(const Instruction& end) {
    std::vector<hlo::Type> types;
    for (const Value value : end.operands()) types.push_back(value.type());
    return types;
  }

  static Literal sliced(const Literal& x, int64_t from, int64_t to, int64_t first) {
    const Dims& dims = x.shape().dims();
    Dims smaller = dims;
    for (int64_t& d : smaller) d = d == from ? to : d;
    Literal result(Shape(x.element_type(), smaller));
    const size_t bytes = storage_bytes(x.element_type());
    const Dims strides = row_major_strides(dims);
    for (int64_t i = 0; i < result.element_count(); ++i) {
      int64_t rest = i;
      int64_t source = 0;
      for (size_t d = dims.size(); d-- > 0;) {
        source += (rest % smaller[d] + (dims[d] == from ? first : 0)) * strides[d];
        rest /= smaller[d];
      }
      std::memcpy(result.mutable_data().data() + static_cast<size_t>(i) * bytes,
                  x.data().data() + static_cast<size_t>(source) * bytes, bytes);
    }
    return result;
  }

  // Replaces runs of elements by zeros, then single elements; then by ones.
  void numbers() {
    for (size_t a = 0; a < best_.arguments.size(); ++a) {
      const int64_t count = best_.arguments[a].element_count();
      for (int64_t part = count; part > 0; part /= 2) {
        for (int64_t begin = 0; begin < count; begin += part) {
          if (replace(a, begin, std::min(begin + part, count), 0)) continue;
          replace(a, begin, std::min(begin + part, count), 1);
        }
      }
    }
  }

  bool replace(size_t argument, int64_t begin, int64_t end, int number) {
    std::vector<Literal> arguments = best_.arguments;
    Literal& array = arguments[argument];
    bool changed = false;
    for (int64_t i = begin; i < end; ++i) {
      const ElementType type = array.element_type();
      if (is_complex(type)) {
        changed |= array.get_complex(i) != std::complex<double>(number);
        array.set_complex(i, number);
      } else if (is_float(type)) {
        changed |= array.get_double(i) != number && array.get_double(i) != 1 - number;
        array.set_double(i, number);
      } else {
        changed |= array.get_integer(i) != number && array.get_integer(i) != 1 - number;
        array.set_integer(i, number);
      }
    }
    return changed && accept(best_.module->clone(), std::move(arguments));
  }

  Failure best_;
  const Device& device_;
  int budget_;
};

}  // namespace

Failure reduce(Failure failure, const Device& device, int budget) {
  return Reducer(std::move(failure), device, budget).run();
}

std::string_view name_of(Fault fault) { return fault == Fault::kLowering ? "lowering" : "backend"; }

Fault fault_of(const Failure& failure, const Device& interpreter) {
  return compare(*failure.module, failure.arguments, interpreter) ? Fault::kLowering
                                                                  : Fault::kBackend;
}

std::string to_mlir(const Failure& failure) {
  const std::unique_ptr<hlo::Module> copy = failure.module->clone();
  Computation& function = *copy->entry();
  hlo::Builder builder(function, function.first());
  for (size_t i = function.parameter_count(); i-- > 0;) {
    const Value constant = builder.constant(failure.arguments[i]);
    function.parameter_instruction(i).replace_uses(0, constant);
    function.erase_parameter(i);
  }
  std::string text;
  for (size_t begin = 0; begin < failure.text.size();) {
    const size_t end = std::min(failure.text.find('\n', begin), failure.text.size());
    text += "// " + failure.text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text + hlo::print_module(*copy, {hlo::TextForm::kStableHlo, false});
}

}  // namespace tenon::conformance
