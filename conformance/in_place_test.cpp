// Loops whose state is updated in place, random ones: slices stored into what is read before,
// behind or never again, what changes places, branches that give a value as it is, loops within
// loops. By steps and as one kernel they give what the evaluator gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/types/random.h"
#include "hlo/compile/interp.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

constexpr const char* kVector = "tensor<20xi32>";
constexpr const char* kMatrix = "tensor<3x20xi32>";
constexpr const char* kRow = "tensor<1x20xi32>";
constexpr const char* kNumber = "tensor<i32>";

// The text of a program: a loop over a counter, two vectors and two matrices.
class RandomLoop {
 public:
  explicit RandomLoop(uint64_t seed) : random_(seed) {}

  std::string text() {
    line("func.func @main(%a: {0}, %b: {0}, %m: {1}, %n: {1}) -> ({0}, {0}, {1}, {1}) {{", kVector,
         kMatrix);
    constant("zero", 0);
    line(
        "%r:5 = stablehlo.while(%k = %zero, %u = %{}, %v = %{}, %x = %{}, %y = %{}) : {}, {}, {}, "
        "{}, {}",
        random_.one_in(4) ? "b" : "a", "b", "m", random_.one_in(4) ? "m" : "n", kNumber, kVector,
        kVector, kMatrix, kMatrix);
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
    line("stablehlo.return %next, %{}, %{}, %{}, %{} : {}, {}, {}, {}, {}", recent(vectors_),
         recent(vectors_), recent(matrices_), recent(matrices_), kNumber, kVector, kVector, kMatrix,
         kMatrix);
    line("}}");
    line("return %r#1, %r#2, %r#3, %r#4 : {0}, {0}, {1}, {1}\n}}", kVector, kMatrix);
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
  // Mostly one of the last.
  const std::string& recent(const std::vector<std::string>& kind) {
    return random_.one_in(2) ? random_.of(kind) : kind[kind.size() - 1 - random_.below(2)];
  }

  void operation() {
    const std::string s = random_.of(numbers_);
    const std::string v = recent(vectors_);
    const std::string w = random_.of(vectors_);
    const std::string m = recent(matrices_);
    const std::string n = random_.of(matrices_);
    switch (random_.below(9)) {
      case 0:
        line("%{} = stablehlo.subtract %{}, %{} : {}", named(vectors_), v, w, kVector);
        break;
      case 1: {
        const std::string row = fmt::format("r{}", count_++);
        line("%{} = stablehlo.dynamic_slice %{}, %{}, %o, sizes = [1, 20] : ({}, {}, {}) -> {}",
             row, m, s, kMatrix, kNumber, kNumber, kRow);
        line("%{} = stablehlo.reshape %{} : ({}) -> {}", named(vectors_), row, kRow, kVector);
        break;
      }
      case 2:
      case 3: {
        const std::string row = fmt::format("r{}", count_++);
        line("%{} = stablehlo.reshape %{} : ({}) -> {}", row, v, kVector, kRow);
        line("%{} = stablehlo.dynamic_update_slice %{}, %{}, %{}, %o : ({}, {}, {}, {}) -> {}",
             named(matrices_), m, row, s, kMatrix, kRow, kNumber, kNumber, kMatrix);
        break;
      }
      case 4:
        line("%{} = stablehlo.add %{}, %{} : {}", named(matrices_), m, n, kMatrix);
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
      default:
        loop(v, w);
        break;
    }
  }

  // One way gives a value as it is.
  void branch(const std::string& s, const std::string& v, const std::string& w) {
    const int64_t number = count_++;
    compare(fmt::format("p{}", number), s, "one");
    line("%{} = \"stablehlo.if\"(%p{}) ({{", named(vectors_), number);
    line("stablehlo.return %{} : {}\n}}, {{", v, kVector);
    line("%q{} = stablehlo.add %{}, %{} : {}", number, v, w, kVector);
    line("stablehlo.return %q{} : {}\n}}) : (tensor<i1>) -> {}", number, kVector, kVector);
  }

  // v and w change places, one added to the other.
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

  Random random_;
  std::string text_;
  int64_t count_ = 0;
  std::vector<std::string> numbers_, vectors_, matrices_;
};

std::vector<Literal> arguments_of(const hlo::Module& module) {
  std::vector<Literal> arguments;
  Random random(7);
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    Literal array(module.entry()->parameter(i).shape());
    for (int64_t k = 0; k < array.element_count(); ++k) array.set_integer(k, random.below(100));
    arguments.push_back(std::move(array));
  }
  return arguments;
}

TEST(InPlace, RandomLoops) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = RandomLoop(seed).text();
    const auto module = hlo::import_module(text, "t");
    ASSERT_TRUE(module) << module.error().to_string() << "\n" << text;
    const std::vector<Literal> arguments = arguments_of(**module);
    const auto expected = hlo::Evaluator(**module).run(*(*module)->entry(), arguments);
    ASSERT_TRUE(expected) << expected.error().to_string();
    const auto optimized = (*module)->clone();
    ASSERT_TRUE(hlo::run_passes(*optimized, hlo::optimizing_passes()).ok());
    for (const hlo::Module* each : {module->get(), optimized.get()}) {
      for (const int64_t in_one_kernel : {0, 1}) {
        SCOPED_TRACE(in_one_kernel);
        hlo::InterpOptions options;
        options.lower.schedule = hlo::lower::Schedule::random(seed);
        options.lower.schedule.set("in_place", seed % 8 == 0 ? 0 : 1);
        options.lower.schedule.set("update_slice", seed % 3 == 0 ? 0 : 1);
        options.lower.schedule.set("control_in_workgroup", in_one_kernel);
        options.interpreter.order = static_cast<kernel::Order>(seed % 3);
        options.interpreter.seed = seed;
        std::vector<hlo::CheckFailure> failures;
        int64_t checks = 0;
        const auto actual =
            hlo::run_on_interp(*each, arguments, hlo::Checks(&failures, &checks), options);
        ASSERT_TRUE(actual) << actual.error().to_string() << "\n" << text;
        EXPECT_EQ(*actual, *expected) << text;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
