#include "conformance/generate/random_loop.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/random.h"

namespace tenon::conformance {
namespace {

constexpr const char* kVector = "tensor<20xi32>";
constexpr const char* kShortMatrix = "tensor<3x20xi32>";
constexpr const char* kLongMatrix = "tensor<60x20xi32>";
constexpr const char* kRow = "tensor<1x20xi32>";
constexpr const char* kNumber = "tensor<i32>";

// The text of a program: a loop over a counter, two vectors and two matrices.
class RandomLoop {
 public:
  RandomLoop(uint64_t seed, bool is_long)
      : random_(seed), is_long_(is_long), matrix_(is_long ? kLongMatrix : kShortMatrix) {}

  std::string text() {
    line("func.func @main(%a: {0}, %b: {0}, %m: {1}, %n: {1}) -> ({0}, {0}, {1}, {1}) {{", kVector,
         matrix_);
    constant("zero", 0);
    const char* y = random_.one_in(4) ? "m" : "n";
    const char* u = random_.one_in(4) ? "b" : "a";
    line(
        "%r:5 = stablehlo.while(%k = %zero, %u = %{}, %v = %{}, %x = %{}, %y = %{}) : {}, {}, {}, "
        "{}, {}",
        u, "b", "m", y, kNumber, kVector, kVector, matrix_, matrix_);
    line("cond {{");
    constant("last", 3);
    compare("more", "k", "last");
    line("stablehlo.return %more : tensor<i1>\n}} do {{");
    constant("one", 1);
    constant("o", 0);
    numbers_ = {"k"};
    vectors_ = {"u", "v"};
    matrices_ = {"x", "y"};
    for (int64_t i = random_.between(2, 9); i > 0; --i) operation();
    line("%next = stablehlo.add %k, %one : {}", kNumber);
    const std::string& last_y = recent(matrices_);
    const std::string& last_x = recent(matrices_);
    const std::string& last_v = recent(vectors_);
    const std::string& last_u = recent(vectors_);
    line("stablehlo.return %next, %{}, %{}, %{}, %{} : {}, {}, {}, {}, {}", last_u, last_v, last_x,
         last_y, kNumber, kVector, kVector, matrix_, matrix_);
    line("}}");
    line("return %r#1, %r#2, %r#3, %r#4 : {0}, {0}, {1}, {1}\n}}", kVector, matrix_);
    return text_;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  void constant(const std::string& name, int value) {
    line("%{} = stablehlo.constant dense<{}> : {}", name, value, kNumber);
  }
  void compare(const std::string& name, const std::string& a, const std::string& b) {
    line("%{0} = stablehlo.compare LT, %{1}, %{2} : ({3}, {3}) -> tensor<i1>", name, a, b, kNumber);
  }
  std::string named(std::vector<std::string>& kind) {
    kind.push_back(fmt::format("t{}", count_++));
    return kind.back();
  }
  // One of the values, often one of the last two.
  const std::string& recent(const std::vector<std::string>& kind) {
    return random_.one_in(2) ? random_.of(kind) : kind[kind.size() - 1 - random_.below(2)];
  }

  void operation() {
    const std::string s = random_.of(numbers_);
    const std::string v = recent(vectors_);
    const std::string w = random_.of(vectors_);
    const std::string m = recent(matrices_);
    const std::string n = random_.of(matrices_);
    switch (random_.below(12)) {
      case 0:
        line("%{} = stablehlo.subtract %{}, %{} : {}", named(vectors_), v, w, kVector);
        break;
      case 1: {
        const std::string row = fmt::format("r{}", count_++);
        line("%{} = stablehlo.dynamic_slice %{}, %{}, %o, sizes = [1, 20] : ({}, {}, {}) -> {}",
             row, m, s, matrix_, kNumber, kNumber, kRow);
        line("%{} = stablehlo.reshape %{} : ({}) -> {}", named(vectors_), row, kRow, kVector);
        break;
      }
      case 2:
      case 3: {
        const std::string row = fmt::format("r{}", count_++);
        line("%{} = stablehlo.reshape %{} : ({}) -> {}", row, v, kVector, kRow);
        line("%{} = stablehlo.dynamic_update_slice %{}, %{}, %{}, %o : ({}, {}, {}, {}) -> {}",
             named(matrices_), m, row, s, matrix_, kRow, kNumber, kNumber, matrix_);
        break;
      }
      case 4:
        // Changing a long matrix as a whole needs more than one workgroup, so it is rare.
        if (is_long_ && !random_.one_in(8)) return scatter_row(m, s, v);
        line("%{} = stablehlo.add %{}, %{} : {}", named(matrices_), m, n, matrix_);
        break;
      case 5:
        line("%{} = stablehlo.reverse %{}, dims = [0] : {}", named(vectors_), v, kVector);
        break;
      case 6:
        line("%{} = stablehlo.add %{}, %one : {}", named(numbers_), s, kNumber);
        break;
      case 7:
        branch(s, v, w);
        break;
      case 8:
        scatter_row(m, s, v);
        break;
      case 9:
        scatter(v, w);
        break;
      case 10:
        stack(m, v);
        break;
      default:
        loop(v, w);
        break;
    }
  }

  // One branch returns a value unchanged.
  void branch(const std::string& s, const std::string& v, const std::string& w) {
    const int64_t number = count_++;
    compare(fmt::format("p{}", number), s, "one");
    line("%{} = \"stablehlo.if\"(%p{}) ({{", named(vectors_), number);
    line("stablehlo.return %{} : {}\n}}, {{", v, kVector);
    line("%q{} = stablehlo.add %{}, %{} : {}", number, v, w, kVector);
    line("stablehlo.return %q{} : {}\n}}) : (tensor<i1>) -> {}", number, kVector, kVector);
  }

  // Swaps v and w, one added to the other.
  void loop(const std::string& v, const std::string& w) {
    const int64_t number = count_++;
    line("%w{0}:3 = stablehlo.while(%i{0} = %o, %c{0} = %{1}, %d{0} = %{2}) : {3}, {4}, {4}",
         number, v, w, kNumber, kVector);
    line("cond {{");
    compare(fmt::format("p{}", number), fmt::format("i{}", number), "one");
    line("stablehlo.return %p{} : tensor<i1>\n}} do {{", number);
    line("%j{0} = stablehlo.add %i{0}, %one : {1}", number, kNumber);
    line("%s{0} = stablehlo.add %c{0}, %d{0} : {1}", number, kVector);
    line("stablehlo.return %j{0}, %d{0}, %s{0} : {1}, {2}, {2}\n}}", number, kNumber, kVector);
    vectors_.push_back(fmt::format("w{}#{}", number, random_.between(1, 2)));
  }

  // Updates a row, possibly one out of range.
  void scatter_row(const std::string& m, const std::string& s, const std::string& v) {
    const int64_t number = count_++;
    line("%at{0} = stablehlo.reshape %{1} : ({2}) -> tensor<1xi32>", number, s, kNumber);
    line("%{} = \"stablehlo.scatter\"(%{}, %at{}, %{}) ({{", named(matrices_), m, number, v);
    combination(number);
    line(
        "}}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], "
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}} "
        ": ({0}, tensor<1xi32>, {1}) -> {0}",
        matrix_, kVector);
  }

  // Updates many positions, some of them equal.
  void scatter(const std::string& v, const std::string& w) {
    const int64_t number = count_++;
    line("%most{} = stablehlo.constant dense<31> : {}", number, kVector);
    line("%at{0} = stablehlo.and %{1}, %most{0} : {2}", number, w, kVector);
    line("%{} = \"stablehlo.scatter\"(%{}, %at{}, %{}) ({{", named(vectors_), v, number, w);
    combination(number);
    line(
        "}}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : ({0}, {0}, {0}) -> {0}",
        kVector);
  }
  void combination(int64_t number) {
    line("^bb0(%old{0}: {1}, %new{0}: {1}):", number, kNumber);
    line("%both{0} = stablehlo.{1} %old{0}, %new{0} : {2}", number,
         random_.one_in(2) ? "subtract" : "add", kNumber);
    line("stablehlo.return %both{} : {}", number, kNumber);
  }

  // A loop that stacks rows, each computed from the previous one.
  void stack(const std::string& m, const std::string& v) {
    const int64_t number = count_++;
    line("%m{0}:2 = stablehlo.while(%i{0} = %o, %c{0} = %{1}) : {2}, {3}", number, m, kNumber,
         matrix_);
    line("cond {{");
    constant(fmt::format("n{}", number), 2);
    compare(fmt::format("p{}", number), fmt::format("i{}", number), fmt::format("n{}", number));
    line("stablehlo.return %p{} : tensor<i1>\n}} do {{", number);
    line("%j{0} = stablehlo.add %i{0}, %one : {1}", number, kNumber);
    line(
        "%r{0} = stablehlo.dynamic_slice %c{0}, %i{0}, %o, sizes = [1, 20] : ({1}, {2}, {2}) -> "
        "{3}",
        number, matrix_, kNumber, kRow);
    line("%b{0} = stablehlo.reshape %{1} : ({2}) -> {3}", number, v, kVector, kRow);
    line("%s{0} = stablehlo.add %r{0}, %b{0} : {1}", number, kRow);
    line(
        "%d{0} = stablehlo.dynamic_update_slice %c{0}, %s{0}, %j{0}, %o : ({1}, {2}, {3}, {3}) -> "
        "{1}",
        number, matrix_, kRow, kNumber);
    line("stablehlo.return %j{0}, %d{0} : {1}, {2}\n}}", number, kNumber, matrix_);
    matrices_.push_back(fmt::format("m{}#1", number));
  }

  Random random_;
  bool is_long_;
  const char* matrix_;
  std::string text_;
  int64_t count_ = 0;
  std::vector<std::string> numbers_, vectors_, matrices_;
};

}  // namespace

std::string random_loop(uint64_t seed, bool is_long) { return RandomLoop(seed, is_long).text(); }

}  // namespace tenon::conformance
