#include "conformance/cases/programs/large.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/random.h"

namespace tenon::conformance {
namespace {

using runtime::BufferPtr;
using enum ElementType;

constexpr int64_t kWindow = 64;

// Each aligned run of 128 elements has each of 0 … 127 once; elements 2^31 and 2^32 apart differ.
int64_t pattern_at(int64_t i) { return (i ^ i >> 7 ^ i >> 14 ^ i >> 28) & 127; }

// %x is 0, and an argument: nothing is known before it runs.
constexpr std::string_view kFill = R"(
func.func @main(%x: tensor<i64>) -> tensor<$Nx$T> {
 %k = stablehlo.iota dim = 0 : tensor<$Nxi64>
 %y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<i64>) -> tensor<$Nxi64>
 %i = stablehlo.add %k, %y : tensor<$Nxi64>
 %c7 = stablehlo.constant dense<7> : tensor<$Nxi64>
 %c14 = stablehlo.constant dense<14> : tensor<$Nxi64>
 %c28 = stablehlo.constant dense<28> : tensor<$Nxi64>
 %mask = stablehlo.constant dense<127> : tensor<$Nxi64>
 %i7 = stablehlo.shift_right_logical %i, %c7 : tensor<$Nxi64>
 %i14 = stablehlo.shift_right_logical %i, %c14 : tensor<$Nxi64>
 %i28 = stablehlo.shift_right_logical %i, %c28 : tensor<$Nxi64>
 %a = stablehlo.xor %i, %i7 : tensor<$Nxi64>
 %b = stablehlo.xor %a, %i14 : tensor<$Nxi64>
 %c = stablehlo.xor %b, %i28 : tensor<$Nxi64>
 %d = stablehlo.and %c, %mask : tensor<$Nxi64>
 %r = stablehlo.convert %d : (tensor<$Nxi64>) -> tensor<$Nx$T>
 return %r : tensor<$Nx$T>
})";

Literal scalar_of(int64_t value, ElementType type = kS64) {
  Literal array(Shape(type, {}));
  array.set_integer(0, value);
  return array;
}

Literal list_of(const std::vector<int64_t>& values, Dims dims, ElementType type = kS64) {
  Literal array(Shape(type, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) array.set_integer(static_cast<int64_t>(i), values[i]);
  return array;
}

// A device with programs and large arrays.
class LargeArrays {
 public:
  LargeArrays(RuntimeDevice& device, LargeSizes sizes) : device_(device), sizes_(sizes) {}

  int64_t past() const { return sizes_.past; }
  int64_t count() const { return sizes_.count; }

  /// $N, $M and $T are the number of elements, a third of it, and the type of elements.
  std::string text(std::string_view with_names, std::string_view type = "i8") const {
    std::string made;
    for (size_t i = 0; i < with_names.size(); ++i) {
      const char next =
          with_names[i] == '$' && i + 1 < with_names.size() ? with_names[i + 1] : '\0';
      if (next == 'N') made += std::to_string(count());
      if (next == 'M') made += std::to_string(count() / 3);
      if (next == 'T') made += type;
      if (next == 'N' || next == 'M' || next == 'T') {
        ++i;
      } else {
        made += with_names[i];
      }
    }
    return made;
  }

  /// The result of a program of `arguments`, and of small arrays behind them.
  Result<BufferPtr> run(const std::string& program, std::vector<BufferPtr> arguments,
                        const std::vector<Literal>& small = {}) {
    TENON_ASSIGN(const auto executable, device_.load(program));
    for (const Literal& each : small) {
      TENON_ASSIGN(BufferPtr buffer, device_.put(each));
      arguments.push_back(std::move(buffer));
    }
    TENON_ASSIGN(const runtime::Execution done, device_.execute(*executable, arguments));
    TENON_TRY(done.done.await());
    return done.results[0];
  }

  Result<BufferPtr> fill(std::string_view type = "i8") {
    return run(text(kFill, type), {}, {scalar_of(0)});
  }

 private:
  RuntimeDevice& device_;
  const LargeSizes sizes_;
};

using At = std::function<int64_t(int64_t index)>;

Status check_window(const Literal& got, int64_t begin, const At& expected) {
  for (int64_t i = 0; i < got.element_count(); ++i) {
    if (got.get_integer(i) == expected(begin + i)) continue;
    return internal_error("element [{}] is {}, expected {}", begin + i, got.element_to_string(i),
                          expected(begin + i));
  }
  return {};
}

// Windows of an array: the beginning, both sides of 2^31, the end.
Status check_windows(LargeArrays& arrays, const BufferPtr& array, const At& expected) {
  const int64_t count = array->shape().dims()[0];
  const std::string slice = fmt::format(
      "func.func @main(%a: tensor<{0}x{1}>, %i: tensor<i64>) -> tensor<{2}x{1}> {{\n"
      " %r = stablehlo.dynamic_slice %a, %i, sizes = [{2}] : (tensor<{0}x{1}>, tensor<i64>) -> "
      "tensor<{2}x{1}>\n return %r : tensor<{2}x{1}>\n}}\n",
      count, element_type_info(array->shape().element_type()).mlir_name, kWindow);
  // The last one would end beyond the array, and moves to its end.
  for (const int64_t begin : {int64_t{0}, arrays.past() - kWindow / 2, arrays.past() + 1, count}) {
    TENON_ASSIGN(const BufferPtr window, arrays.run(slice, {array}, {scalar_of(begin)}));
    TENON_ASSIGN(const Literal got, window->to_literal());
    TENON_TRY(check_window(got, std::min(begin, count - kWindow), expected));
  }
  return {};
}

// --- The cases

Status large_iota(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  return check_windows(d, a, pattern_at);
}

// Its bytes pass 2^32.
Status large_iota_of_words(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill("i16"));
  return check_windows(d, a, pattern_at);
}

Status large_add(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  TENON_ASSIGN(const BufferPtr b, d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>, %x: tensor<i8>) -> tensor<$Nxi8> {
 %y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<i8>) -> tensor<$Nxi8>
 %r = stablehlo.add %a, %y : tensor<$Nxi8>
 return %r : tensor<$Nxi8>
})"),
                                        {a}, {scalar_of(-100, kS8)}));
  return check_windows(d, b, [](int64_t i) { return pattern_at(i) - 100; });
}

Status large_slice(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  const std::string text = fmt::format(
      "func.func @main(%a: tensor<{0}xi8>) -> tensor<{3}xi8> {{\n"
      " %r = stablehlo.slice %a [{1}:{2}:7] : (tensor<{0}xi8>) -> tensor<{3}xi8>\n"
      " return %r : tensor<{3}xi8>\n}}\n",
      d.count(), d.past() - 700, d.past() + 700, 200);
  TENON_ASSIGN(const BufferPtr r, d.run(text, {a}));
  TENON_ASSIGN(const Literal got, r->to_literal());
  return check_window(got, 0, [&](int64_t i) { return pattern_at(d.past() - 700 + 7 * i); });
}

std::vector<int64_t> some_indices(const LargeArrays& d, int64_t wanted) {
  Random random(1);
  std::vector<int64_t> indices = {0, d.past() - 1, d.past(), d.count() - 1};
  while (std::ssize(indices) < wanted) {
    const int64_t low = random.one_in(2) ? d.past() : 0;
    const int64_t index = random.between(low, d.count() - 1);
    if (std::ranges::count(indices, index) == 0) indices.push_back(index);
  }
  return indices;
}

Status large_gather(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  const std::vector<int64_t> indices = some_indices(d, 256);
  TENON_ASSIGN(const BufferPtr r, d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>, %i: tensor<256x1xi64>) -> tensor<256xi8> {
 %r = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>} : (tensor<$Nxi8>, tensor<256x1xi64>) -> tensor<256xi8>
 return %r : tensor<256xi8>
})"),
                                        {a}, {list_of(indices, {256, 1})}));
  TENON_ASSIGN(const Literal got, r->to_literal());
  return check_window(got, 0,
                      [&](int64_t i) { return pattern_at(indices[static_cast<size_t>(i)]); });
}

Status large_scatter(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  std::vector<int64_t> indices = some_indices(d, 256);
  TENON_ASSIGN(
      const BufferPtr r,
      d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>, %u: tensor<256xi8>, %i: tensor<256x1xi64>) -> tensor<$Nxi8> {
 %r = "stablehlo.scatter"(%a, %i, %u) ({
  ^bb0(%x: tensor<i8>, %y: tensor<i8>):
   stablehlo.return %y : tensor<i8>
 }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true} : (tensor<$Nxi8>, tensor<256x1xi64>, tensor<256xi8>) -> tensor<$Nxi8>
 return %r : tensor<$Nxi8>
})"),
            {a}, {list_of(std::vector<int64_t>(256, -1), {256}, kS8), list_of(indices, {256, 1})}));
  std::ranges::sort(indices);
  return check_windows(
      d, r, [&](int64_t i) { return std::ranges::binary_search(indices, i) ? -1 : pattern_at(i); });
}

Status large_update(LargeArrays& d) {
  const int64_t at = d.past() + 17;
  TENON_ASSIGN(const BufferPtr a, d.fill());
  TENON_ASSIGN(const BufferPtr r,
               d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>, %u: tensor<5xi8>, %i: tensor<i64>) -> tensor<$Nxi8> {
 %r = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<$Nxi8>, tensor<5xi8>, tensor<i64>) -> tensor<$Nxi8>
 return %r : tensor<$Nxi8>
})"),
                     {a}, {list_of({-1, -2, -3, -4, -5}, {5}, kS8), scalar_of(at)}));
  return check_windows(
      d, r, [=](int64_t i) { return i >= at && i < at + 5 ? at - 1 - i : pattern_at(i); });
}

// Each run of 128 elements has each number once; a few elements are left.
Status large_count(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  TENON_ASSIGN(const BufferPtr r, d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>, %x: tensor<i8>) -> tensor<i64> {
 %y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<i8>) -> tensor<$Nxi8>
 %p = stablehlo.compare GE, %a, %y : (tensor<$Nxi8>, tensor<$Nxi8>) -> tensor<$Nxi1>
 %n = stablehlo.convert %p : (tensor<$Nxi1>) -> tensor<$Nxi64>
 %z = stablehlo.constant dense<0> : tensor<i64>
 %r = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [0] : (tensor<$Nxi64>, tensor<i64>) -> tensor<i64>
 return %r : tensor<i64>
})"),
                                        {a}, {scalar_of(1, kS8)}));
  TENON_ASSIGN(const Literal got, r->to_literal());
  int64_t expected = d.count() / 128 * 127;
  for (int64_t i = d.count() / 128 * 128; i < d.count(); ++i)
    expected += pattern_at(i) >= 1 ? 1 : 0;
  return check_window(got, 0, [=](int64_t) { return expected; });
}

Status large_pad(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  const std::string text = fmt::format(
      "func.func @main(%a: tensor<{0}xi8>, %x: tensor<i8>) -> tensor<{1}xi8> {{\n"
      " %r = stablehlo.pad %a, %x, low = [3], high = [5], interior = [0] : (tensor<{0}xi8>, "
      "tensor<i8>) -> tensor<{1}xi8>\n return %r : tensor<{1}xi8>\n}}\n",
      d.count(), d.count() + 8);
  TENON_ASSIGN(const BufferPtr r, d.run(text, {a}, {scalar_of(-7, kS8)}));
  return check_windows(d, r, [&](int64_t i) {
    return i < 3 || i >= d.count() + 3 ? int64_t{-7} : pattern_at(i - 3);
  });
}

Status large_concatenate(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  const std::string text = fmt::format(
      "func.func @main(%a: tensor<{0}xi8>, %b: tensor<5xi8>) -> tensor<{1}xi8> {{\n"
      " %r = stablehlo.concatenate %b, %a, %b, dim = 0 : (tensor<5xi8>, tensor<{0}xi8>, "
      "tensor<5xi8>) -> tensor<{1}xi8>\n return %r : tensor<{1}xi8>\n}}\n",
      d.count(), d.count() + 10);
  TENON_ASSIGN(const BufferPtr r, d.run(text, {a}, {list_of({-1, -1, -1, -1, -1}, {5}, kS8)}));
  return check_windows(d, r, [&](int64_t i) {
    return i < 5 || i >= d.count() + 5 ? int64_t{-1} : pattern_at(i - 5);
  });
}

Status large_reverse(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  TENON_ASSIGN(const BufferPtr r, d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>) -> tensor<$Nxi8> {
 %r = stablehlo.reverse %a, dims = [0] : tensor<$Nxi8>
 return %r : tensor<$Nxi8>
})"),
                                        {a}));
  return check_windows(d, r, [&](int64_t i) { return pattern_at(d.count() - 1 - i); });
}

Status large_transpose(LargeArrays& d) {
  TENON_ASSIGN(const BufferPtr a, d.fill());
  TENON_ASSIGN(const BufferPtr r, d.run(d.text(R"(
func.func @main(%a: tensor<$Nxi8>) -> tensor<$Nxi8> {
 %m = stablehlo.reshape %a : (tensor<$Nxi8>) -> tensor<$Mx3xi8>
 %t = stablehlo.transpose %m, dims = [1, 0] : (tensor<$Mx3xi8>) -> tensor<3x$Mxi8>
 %r = stablehlo.reshape %t : (tensor<3x$Mxi8>) -> tensor<$Nxi8>
 return %r : tensor<$Nxi8>
})"),
                                        {a}));
  const int64_t rows = d.count() / 3;
  return check_windows(d, r, [=](int64_t i) { return pattern_at(i % rows * 3 + i / rows); });
}

struct LargeCase {
  std::string_view name;
  Status (*check)(LargeArrays& arrays);
  int64_t bytes;        ///< For each element: the arrays that it has at once.
  int64_t element = 1;  ///< Bytes.
};
constexpr LargeCase kLargeCases[] = {
    {"large/iota/s8", large_iota, 1},
    {"large/iota/s16", large_iota_of_words, 2, 2},
    {"large/add/s8", large_add, 2},
    {"large/slice/s8", large_slice, 1},
    {"large/gather/s8", large_gather, 1},
    {"large/scatter/s8", large_scatter, 2},
    {"large/dynamic_update_slice/s8", large_update, 2},
    {"large/reduce/s8", large_count, 1},
    {"large/pad/s8", large_pad, 2},
    {"large/concatenate/s8", large_concatenate, 2},
    {"large/reverse/s8", large_reverse, 2},
    {"large/transpose/s8", large_transpose, 2},
};

// Why a device cannot have such arrays; OK if it can, as far as it says.
Status check_room(const backend::TargetInfo& target, const LargeCase& one, LargeSizes sizes) {
  if (!target.accepts_all && !target.features.computes(kS64))
    return unimplemented("the device has no indices of 64 bits");
  if (target.largest_buffer > 0 && target.largest_buffer < one.element * sizes.count)
    return unimplemented("the largest array of the device has {} bytes", target.largest_buffer);
  const int64_t bytes = one.bytes * sizes.count;
  const int64_t room = target.spaces[0].bytes;
  if (room > 0 && room < bytes + bytes / 16)
    return unimplemented("the arrays have {} bytes, the memory {}", bytes, room);
  return {};
}

}  // namespace

std::vector<std::string> large_case_names() {
  std::vector<std::string> names;
  for (const LargeCase& each : kLargeCases) names.emplace_back(each.name);
  return names;
}

Status check_large_case(std::string_view name, RuntimeDevice& device, LargeSizes sizes) {
  const auto* const one = std::ranges::find(kLargeCases, name, &LargeCase::name);
  if (one == std::end(kLargeCases)) return not_found("there is no case {}", name);
  TENON_TRY(check_room(device.target(), *one, sizes));
  LargeArrays arrays(device, sizes);
  Status status = one->check(arrays);
  // Others may have the memory, or the device does not say how much it has.
  if (status.code() == ErrorCode::kResourceExhausted) return unimplemented("{}", status.message());
  return status;
}

void add_large_cases(CaseList& list) {
  for (const std::string& name : large_case_names()) {
    ConformanceCase one;
    one.name = name;
    one.tier = Tier::kExtended;
    one.needs = CaseNeeds::kInterface;
    one.alone = true;
    one.run = [name](CaseContext& context) {
      return run_on_runtime(context, [&](RuntimeDevice& device) {
        return check_large_case(name, device, LargeSizes());
      });
    };
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
