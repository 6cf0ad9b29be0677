#include "core/program/foreign_call.h"

#include <algorithm>

namespace tenon::program {
namespace {

constexpr std::string_view kOperands = "foreign.operands";
constexpr std::string_view kResults = "foreign.results";
constexpr std::string_view kAliases = "foreign.aliases";
constexpr std::string_view kAttribute = "foreign.attribute.";
constexpr int64_t kToken = -1;

bool is_plain(const ForeignArray& array) { return array == ForeignArray(); }

// For each array kToken, or the number of dimensions and those.
Literal numbers_of(const std::vector<ForeignArray>& arrays) {
  Dims numbers;
  for (const ForeignArray& array : arrays) {
    const auto rank = static_cast<int64_t>(array.minor_to_major.size());
    numbers.push_back(array.is_token ? kToken : rank);
    numbers.insert(numbers.end(), array.minor_to_major.begin(), array.minor_to_major.end());
  }
  return Literal::from_i64s(numbers);
}

Result<Dims> numbers_in(const ConfigValue& value) {
  const auto* literal = std::get_if<Literal>(&value);
  if (literal == nullptr || literal->element_type() != ElementType::kS64 ||
      literal->shape().dims().size() != 1) {
    return invalid_argument("not a list of integers");
  }
  Dims numbers;
  for (int64_t i = 0; i < literal->element_count(); ++i) {
    numbers.push_back(literal->get_integer(i));
  }
  return numbers;
}

bool is_order(const Dims& dims) {
  Dims sorted = dims;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

Result<std::vector<ForeignArray>> arrays_in(const ConfigValue& value) {
  TENON_ASSIGN(const Dims numbers, numbers_in(value));
  std::vector<ForeignArray> arrays;
  for (size_t i = 0; i < numbers.size();) {
    ForeignArray& array = arrays.emplace_back();
    const int64_t rank = numbers[i++];
    array.is_token = rank == kToken;
    if (array.is_token) continue;
    if (rank < 0 || rank > static_cast<int64_t>(numbers.size() - i)) {
      return invalid_argument("an array with {} dimensions", rank);
    }
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(i);
    array.minor_to_major.assign(begin, begin + rank);
    i += static_cast<size_t>(rank);
    if (!is_order(array.minor_to_major)) return invalid_argument("dimensions that are no order");
  }
  return arrays;
}

Status check_fit(const Program& program, const std::vector<ForeignArray>& arrays,
                 const std::vector<BufferId>& buffers) {
  size_t next = 0;
  for (const ForeignArray& array : arrays) {
    if (array.is_token) continue;
    if (next == buffers.size()) break;
    const size_t rank = program.buffer(buffers[next++]).dims.size();
    if (!array.minor_to_major.empty() && array.minor_to_major.size() != rank) {
      return Status(invalid_argument("an order of {} dimensions for an array of {}",
                                     array.minor_to_major.size(), rank));
    }
  }
  const auto count =
      std::ranges::count_if(arrays, [](const ForeignArray& array) { return !array.is_token; });
  if (static_cast<size_t>(count) == buffers.size()) return {};
  return Status(invalid_argument("{} arrays for {} buffers", count, buffers.size()));
}

Status read_aliases(const ConfigValue& value, const CustomCall& call, ForeignCall& foreign) {
  TENON_ASSIGN(const Dims numbers, numbers_in(value));
  if (numbers.size() % 2 != 0) return Status(invalid_argument("an alias without an operand"));
  for (size_t i = 0; i < numbers.size(); i += 2) {
    const bool fits = numbers[i] >= 0 && numbers[i] < static_cast<int64_t>(call.results.size()) &&
                      numbers[i + 1] >= 0 &&
                      numbers[i + 1] < static_cast<int64_t>(call.operands.size());
    if (!fits) return Status(invalid_argument("an alias of {} and {}", numbers[i], numbers[i + 1]));
    foreign.aliases.emplace_back(static_cast<uint32_t>(numbers[i]),
                                 static_cast<uint32_t>(numbers[i + 1]));
  }
  return {};
}

Status check_aliases(const Program& program, const CustomCall& call, const ForeignCall& foreign) {
  for (const auto& [result, operand] : foreign.aliases) {
    if (program.buffer(call.results[result]).bytes() ==
        program.buffer(call.operands[operand]).bytes()) {
      continue;
    }
    return Status(invalid_argument("an alias of arrays of different sizes"));
  }
  return {};
}

Result<ForeignCall> read_foreign(const Program& program, const CustomCall& call) {
  ForeignCall foreign;
  foreign.operands.resize(call.operands.size());
  foreign.results.resize(call.results.size());
  for (const auto& [key, value] : call.config) {
    if (key == kOperands) {
      TENON_ASSIGN(foreign.operands, arrays_in(value));
    } else if (key == kResults) {
      TENON_ASSIGN(foreign.results, arrays_in(value));
    } else if (key == kAliases) {
      TENON_TRY(read_aliases(value, call, foreign));
    } else if (key.starts_with(kAttribute)) {
      constexpr int64_t kDeepest = 256;  // As the readers of programs bound it.
      if (std::ranges::count(key, kWithin) > kDeepest) {
        return invalid_argument("an attribute within more than {} dictionaries", kDeepest);
      }
      ForeignAttribute& attribute = foreign.attributes.emplace_back();
      attribute.path = key.substr(kAttribute.size());
      if (const auto* text = std::get_if<std::string>(&value)) attribute.value = *text;
      if (const auto* literal = std::get_if<Literal>(&value)) attribute.value = *literal;
    }
  }
  TENON_TRY(check_fit(program, foreign.operands, call.operands));
  TENON_TRY(check_fit(program, foreign.results, call.results));
  TENON_TRY(check_aliases(program, call, foreign));
  return foreign;
}

}  // namespace

Dims ForeignArray::dims_of(const Dims& buffer) const {
  if (minor_to_major.empty()) return buffer;
  Dims dims(buffer.size());
  for (size_t i = 0; i < buffer.size(); ++i) {
    dims[static_cast<size_t>(minor_to_major[buffer.size() - 1 - i])] = buffer[i];
  }
  return dims;
}

void add_foreign(Config& config, const ForeignCall& foreign) {
  if (!std::ranges::all_of(foreign.operands, is_plain)) {
    config.emplace_back(kOperands, numbers_of(foreign.operands));
  }
  if (!std::ranges::all_of(foreign.results, is_plain)) {
    config.emplace_back(kResults, numbers_of(foreign.results));
  }
  if (!foreign.aliases.empty()) {
    Dims numbers;
    for (const auto& [result, operand] : foreign.aliases) {
      numbers.insert(numbers.end(), {result, operand});
    }
    config.emplace_back(kAliases, Literal::from_i64s(numbers));
  }
  for (const ForeignAttribute& attribute : foreign.attributes) {
    std::visit(
        [&](const auto& value) {
          config.emplace_back(std::string(kAttribute) + attribute.path, value);
        },
        attribute.value);
  }
}

Result<ForeignCall> foreign_of(const Program& program, const CustomCall& call) {
  auto foreign = read_foreign(program, call);
  if (foreign) return foreign;
  return invalid_argument("custom call @{}: {}", call.target, foreign.error().message());
}

}  // namespace tenon::program
