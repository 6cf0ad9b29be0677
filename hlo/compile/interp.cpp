#include "hlo/compile/interp.h"

namespace tenon::hlo {
namespace {

Dict dict_of(const program::Config& config) {
  Dict dict;
  for (const auto& [key, value] : config) {
    std::visit(
        [&](const auto& v) {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<V, double>) {
            insert(dict, key, FloatAttr::of(ElementType::kF64, v));
          } else {
            insert(dict, key, v);
          }
        },
        value);
  }
  return dict;
}

}  // namespace

void install_checks(program::ProgramInterpreter& interpreter, const Checks& checks) {
  for (const std::string_view target : Checks::targets()) {
    interpreter.set_custom_call(
        std::string(target),
        [checks](const program::Step&, const program::CustomCall& call,
                 const std::vector<Literal>& operands, const std::vector<Shape>& results) {
          return checks.call(call.target, dict_of(call.config), operands, results, {});
        });
  }
}

Result<std::vector<Literal>> run_on_interp(const Module& module, std::span<const Literal> arguments,
                                           const Checks& checks, const InterpOptions& options) {
  TENON_ASSIGN(const program::Program program, compile_to_program(module, options.lower));
  program::ProgramInterpreter interpreter(program);
  install_checks(interpreter, checks);
  return interpreter.run(arguments, options.interpreter);
}

}  // namespace tenon::hlo
