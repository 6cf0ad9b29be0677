#include "conformance/cases/text_program.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <functional>

#include "conformance/compare/differential.h"
#include "core/types/float_convert.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

// Ops that subtract: a type without sign and zero has no results for them.
bool needs_signed(hlo::OpCode op) {
  using enum hlo::OpCode;
  return op == kCholesky || op == kTriangularSolve || op == kBatchNormInference ||
         op == kBatchNormTraining || op == kBatchNormGrad;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Commas within <…> belong to a quantized type.
std::vector<std::string> types_of(std::string_view text) {
  std::vector<std::string> types;
  int depth = 0;
  std::string type;
  for (const char c : text) {
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (c == ',' && depth == 0) {
      types.push_back(std::move(type));
      type.clear();
    } else if (c != ' ' || !type.empty()) {
      type += c;
    }
  }
  if (!type.empty()) types.push_back(std::move(type));
  for (std::string& each : types) each = "tensor<" + each + ">";
  return types;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// "u8", "i8"
std::string name_in_quantized_type(ElementType type) {
  const std::string_view name = element_type_info(type).mlir_name;
  return std::string(name.starts_with("ui") ? "u" : "i") +
         std::string(name.substr(name.find_first_of("0123456789")));
}

int64_t number_of(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// --- Arguments

Literal numbers(const Shape& shape, Random& random, const std::function<double(Random&)>& draw) {
  Literal array(shape);
  const ElementType type = shape.element_type();
  for (int64_t i = 0; i < array.element_count(); ++i) {
    const double number = draw(random);
    if (is_complex(type)) {
      array.set_complex(i, {number, draw(random)});
    } else if (is_float(type)) {
      array.set_double(i, number);
    } else {
      array.set_integer(i, wrap_integer(type, static_cast<int64_t>(number)));
    }
  }
  return array;
}

std::complex<double> element(const Literal& a, int64_t i) { return a.get_complex(i); }

void set(Literal& a, int64_t i, std::complex<double> z) {
  if (is_complex(a.element_type())) {
    a.set_complex(i, z);
  } else {
    a.set_double(i, z.real());
  }
}

// Each matrix of the last two dimensions: with a diagonal that dominates, Hermitian if asked for.
Literal matrices(const Shape& shape, Random& random, bool hermitian) {
  Literal a = numbers(shape, random, [](Random& r) { return r.unit() - 0.5; });
  const int64_t n = shape.dims().back();
  for (int64_t first = 0; first < a.element_count(); first += n * n) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; hermitian && j < i; ++j)
        set(a, first + j * n + i, std::conj(element(a, first + i * n + j)));
      set(a, first + i * n + i, {0.75 * static_cast<double>(n) + random.unit(), 0});
    }
  }
  return a;
}

// Uniform, with the variance 1 / inputs.
Literal weights(const Shape& shape, Random& random) {
  const int64_t outputs = shape.rank() == 0 ? 1 : shape.dims().back();
  const int64_t inputs =
      std::max<int64_t>(shape.element_count() / std::max<int64_t>(outputs, 1), 1);
  const double limit = std::sqrt(3.0 / static_cast<double>(inputs));
  return numbers(shape, random, [limit](Random& r) { return limit * (2 * r.unit() - 1); });
}

}  // namespace

Result<Literal> fill_argument(std::string_view how, const Shape& shape, ValueClass values,
                              Random& random) {
  const bool is_matrix = shape.rank() >= 2 && !is_integer(shape.element_type());
  if (how == "data") return random_values(shape, values, random);
  if (how == "ordinary") return random_values(shape, ValueClass::kOrdinary, random);
  if (how == "small")
    return numbers(shape, random, [](Random& r) { return static_cast<double>(r.between(-3, 3)); });
  if (how == "positive")
    return numbers(shape, random, [](Random& r) { return 0.5 + 1.5 * r.unit(); });
  if (how == "unit") return numbers(shape, random, [](Random& r) { return 2 * r.unit() - 1; });
  if (how == "spd" && is_matrix) return matrices(shape, random, true);
  if (how == "triangular" && is_matrix) return matrices(shape, random, false);
  if (how == "weights") return weights(shape, random);
  if (how.starts_with("sign:")) {
    const auto parts = split(how.substr(5), ':');
    const double size =
        static_cast<double>(number_of(parts[0])) / static_cast<double>(number_of(parts[1]));
    return numbers(shape, random, [size](Random& r) { return r.one_in(2) ? size : -size; });
  }
  if (how.starts_with("steps:")) {
    const auto limits = split(how.substr(6), ':');
    const int64_t low = number_of(limits[0]);
    const int64_t high = number_of(limits[1]);
    const auto of = static_cast<double>(number_of(limits[2]));
    return numbers(shape, random,
                   [=](Random& r) { return static_cast<double>(r.between(low, high)) / of; });
  }
  if (how.starts_with("ints:")) {
    const auto limits = split(how.substr(5), ':');
    return random_integers(shape, number_of(limits[0]), number_of(limits[1]), random);
  }
  if (how.starts_with("list:")) {
    const auto listed = split(how.substr(5), ',');
    Literal array(shape);
    for (int64_t i = 0; i < array.element_count(); ++i) {
      const int64_t number = number_of(listed[static_cast<size_t>(i)]);
      if (is_float(shape.element_type())) {
        array.set_double(i, static_cast<double>(number));
      } else {
        array.set_integer(i, number);
      }
    }
    return array;
  }
  return internal_error("no way to fill an argument of {}: {}", shape.to_string(), how);
}

std::string text_of(const TextTemplate& program, ElementType type) {
  const auto parameters = types_of(program.parameters);
  const auto results = types_of(program.results);
  std::string body(program.body);
  std::string list;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const char letter = static_cast<char>('a' + i);
    list += fmt::format("{}%{}: {}", i == 0 ? "" : ", ", letter, parameters[i]);
    body = replaced(body, fmt::format("${}", static_cast<char>('A' + i)), parameters[i]);
  }
  std::string names;
  std::string types;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string separator = i == 0 ? "" : ", ";
    names += fmt::format("{}%{}", separator, "rsuvw"[i]);
    types += separator + results[i];
    body = replaced(body, fmt::format("${}", "RSUVW"[i]), results[i]);
  }
  // $T itself is replaced last: it is a part of the types.
  const std::string text = fmt::format("func.func @main({}) -> ({}) {{\n{}\nreturn {} : {}\n}}\n{}",
                                       list, types, body, names, types, program.functions);
  return replaced(replaced(text, "$T", element_type_info(type).mlir_name), "$Q",
                  name_in_quantized_type(type));
}

Result<CaseProgram> make_text_program(const TextTemplate& program, ElementType type,
                                      ValueClass values, uint64_t seed) {
  CaseProgram made;
  TENON_ASSIGN(made.module, hlo::import_module(text_of(program, type), "case"));
  made.comparison = program.comparison;
  if (program.comparison == Comparison::kEachOp) {
    TENON_ASSIGN(made.module, with_all_values_returned(*made.module));
  }
  Random random(seed);
  const auto how = split(program.arguments, ' ');
  const hlo::Computation& main = *made.module->entry();
  for (size_t i = 0; i < main.parameter_count(); ++i) {
    const std::string fill = how.empty() ? "data" : how[std::min(i, how.size() - 1)];
    TENON_ASSIGN(Literal argument,
                 fill_argument(fill, main.parameter(i).type().shape(), values, random));
    made.arguments.push_back(std::move(argument));
  }
  return made;
}

void add_text_cases(CaseList& list, hlo::OpCode op, std::span<const TextTemplate> templates,
                    std::span<const ValueClass> values) {
  add_text_cases(list, op, templates, values, types_of(op));
}

void add_text_cases(CaseList& list, hlo::OpCode op, std::span<const TextTemplate> templates,
                    std::span<const ValueClass> values, const std::vector<ElementType>& types) {
  VariantCases made{"op/" + case_name_of(op), {}, types, values};
  if (needs_signed(op) && std::erase(made.types, ElementType::kF8E8M0FNU) > 0) {
    list.left_out.push_back({cell_of(op, ElementType::kF8E8M0FNU),
                             "the op subtracts, and the type has no sign and no zero"});
  }
  for (const TextTemplate& program : templates) {
    made.variants.push_back({std::string(program.variant), [&program](ElementType type) {
                               return MakeProgram([&program, type](ValueClass v, uint64_t seed) {
                                 return make_text_program(program, type, v, seed);
                               });
                             }});
  }
  add_variants(list, made);
}

}  // namespace tenon::conformance
