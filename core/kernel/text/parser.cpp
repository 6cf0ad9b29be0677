// The parser of kernels: their heads, and the entry points. It builds the kernel as it reads, with
// one function for each syntactic element: operands (parse_operands.h), then statements, then
// kernels.
#include "core/kernel/text/parse_statements.h"
#include "core/kernel/text/text.h"

namespace tenon::kernel {
namespace {

class KernelParser : private StatementParser {
 public:
  KernelParser(std::string_view text, const std::string& file) : StatementParser(text, file) {}

  Result<std::vector<Kernel>> take_all() {
    std::vector<Kernel> kernels;
    while (!scan_.at_end()) {
      if (!kernel()) return Error(scan_.status()).at({});
      kernels.push_back(builder_.finish());
      kernels.back().lines = take_lines();
    }
    return kernels;
  }

 private:
  bool kernel() {
    if (!head() || !scan_.expect('{')) return false;
    bool yielded = false;
    while (!scan_.accept('}')) {
      if (!statement(yielded)) return false;
    }
    return !yielded || scan_.fail("K0: a kernel's body yields nothing");
  }

  // 'kernel @name(parameters) index s32 grid(%i: 4)'
  bool head() {
    forget_names();
    if (!scan_.expect_keyword("kernel") || !scan_.expect('@')) return false;
    const std::string name(scan_.suffix());
    if (name.empty()) return scan_.fail_expected("a kernel's name");
    builder_ = Builder(name);
    const size_t parameters = scan_.offset();
    if (!parameter_list()) return false;
    ElementType index{};
    if (!scan_.expect_keyword("index") || !type(index)) return false;
    if (index != ElementType::kS32 && index != ElementType::kS64) {
      return scan_.fail("K10: the index type is s32 or s64");
    }
    const size_t end = scan_.offset();
    // The builder must know the index type first, so the parameters are read again.
    builder_ = Builder(name, index);
    forget_names();
    scan_.set_offset(parameters);
    if (!parameter_list()) return false;
    scan_.set_offset(end);
    return grid();
  }

  bool grid() {
    Names names;
    Dims extents;
    if (!scan_.expect_keyword("grid") || !scan_.expect('(') || !induction(names, extents)) {
      return false;
    }
    if (scan_.accept_keyword("label")) {
      std::string label;
      if (!scan_.string_literal(label)) return false;
      builder_.set_label(std::move(label));
    }
    define_all(names, builder_.grid(std::move(extents)));
    return true;
  }

  bool parameter_list() {
    if (!scan_.expect('(')) return false;
    while (scan_.peek() != ')') {
      if (!parameter()) return false;
      if (!scan_.accept(',')) break;
    }
    return scan_.expect(')');
  }

  bool parameter() {
    const size_t start = scan_.token_start();
    std::string text;
    if (!name(text) || !scan_.expect(':')) return false;
    if (is_memory(text) || is_value(text)) {
      return scan_.fail_at(start, fmt::format("K0: parameter %{} is declared twice", text));
    }
    if (scan_.accept_keyword("scalar")) {
      ElementType scalar{};
      if (!type(scalar)) return false;
      define(text, builder_.scalar(text, scalar));
      return true;
    }
    Memory m;
    m.name = text;
    m.packed = scan_.accept_keyword("packed");
    const std::string_view access = scan_.word();
    if (access != "in" && access != "out" && access != "inout") {
      return scan_.fail_at(start, "expected 'in', 'out', 'inout' or 'scalar'");
    }
    m.access = access == "in" ? Access::kIn : access == "out" ? Access::kOut : Access::kInOut;
    if (!shape(m)) return false;
    if (scan_.accept_keyword("over") && !memory(m.over)) return false;
    declare(text, builder_.buffer(std::move(m)));
    return true;
  }
};

}  // namespace

Result<std::vector<Kernel>> parse_all(std::string_view text, const std::string& file) {
  return KernelParser(text, file).take_all();
}

Result<Kernel> parse(std::string_view text, const std::string& file) {
  TENON_ASSIGN(std::vector<Kernel> kernels, parse_all(text, file));
  if (kernels.size() != 1) {
    return invalid_argument("one kernel expected, {} found", kernels.size()).at({file, 1, 1});
  }
  return std::move(kernels[0]);
}

}  // namespace tenon::kernel
