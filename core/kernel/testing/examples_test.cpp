// The kernels of docs/kernel-ir.md: verified, printed and parsed again, run in several orders and
// compared with straightforward code.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "core/base/file.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/testing/kernel_test_util.h"

namespace tenon::kernel {
namespace {

using testing::orders;
using testing::run;
using testing::zero_buffers;

Kernel example(const std::string& name) {
  const std::string path = std::string(TENON_SOURCE) + "/core/kernel/examples/" + name + ".kernel";
  const auto text = read_file(path);
  EXPECT_TRUE(text) << path;
  auto kernel = parse(*text, name);
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  return std::move(*kernel);
}

double input(int64_t i) { return std::sin(static_cast<double>(i * i % 1009)) * 3; }

void fill(Literal& buffer, const std::function<double(int64_t)>& value) {
  for (int64_t i = 0; i < buffer.element_count(); ++i)
    buffer.set<float>(i, static_cast<float>(value(i)));
}

void expect_close(const Literal& buffer, const std::function<double(int64_t)>& expected,
                  double tolerance = 1e-5) {
  for (int64_t i = 0; i < buffer.element_count(); ++i) {
    ASSERT_NEAR(buffer.get<float>(i), expected(i), tolerance) << i;
  }
}

TEST(Examples, VerifyAndRoundTrip) {
  int count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(TENON_SOURCE) + "/core/kernel/examples")) {
    const Kernel kernel = example(file.path().stem().string());
    const Status status = verify(kernel);
    EXPECT_TRUE(status.ok()) << status.to_string();
    const std::string text = print(kernel);
    const auto again = parse(text, "printed");
    ASSERT_TRUE(again) << again.error().to_string() << "\n" << text;
    EXPECT_EQ(print(*again), text);
    EXPECT_TRUE(equal(kernel, *again));
    ++count;
  }
  EXPECT_EQ(count, 6);
}

TEST(Examples, Softmax) {
  const Kernel kernel = example("softmax");
  for (const InterpreterOptions& options : orders()) {
    std::vector<Literal> buffers = zero_buffers(kernel);
    fill(buffers[0], input);
    const Status status = run(kernel, buffers, {}, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_close(buffers[1], [&](int64_t i) {
      const int64_t row = i / 1000 * 1000;
      double sum = 0;
      for (int64_t j = 0; j < 1000; ++j) sum += std::exp(buffers[0].get<float>(row + j));
      return std::exp(static_cast<double>(buffers[0].get<float>(i))) / sum;
    });
  }
}

TEST(Examples, Transpose) {
  const Kernel kernel = example("transpose");
  for (const InterpreterOptions& options : orders()) {
    std::vector<Literal> buffers = zero_buffers(kernel);
    fill(buffers[0], input);
    const Status status = run(kernel, buffers, {}, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_close(
        buffers[1], [&](int64_t i) { return buffers[0].get<float>(i % 100 * 70 + i / 100); }, 0);
  }
}

TEST(Examples, Dot) {
  const Kernel kernel = example("dot");
  for (const InterpreterOptions& options : orders()) {
    std::vector<Literal> buffers = zero_buffers(kernel);
    fill(buffers[0], input);
    fill(buffers[1], [](int64_t i) { return input(i + 7); });
    const Status status = run(kernel, buffers, {}, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_close(
        buffers[2],
        [&](int64_t i) {
          float sum = 0;
          for (int64_t k = 0; k < 48; ++k) {
            sum = std::fma(buffers[0].get<float>(i / 96 * 48 + k),
                           buffers[1].get<float>(k * 96 + i % 96), sum);
          }
          return sum;
        },
        0);
  }
}

// Tiles expanded in either loop order: each result is summed in the same order.
TEST(Examples, DotInBothOrders) {
  const Kernel kernel = example("dot");
  std::vector<Literal> expected = zero_buffers(kernel);
  for (size_t m = 0; m < 2; ++m) fill(expected[m], input);
  const std::vector<Literal> inputs = expected;
  ASSERT_TRUE(run(kernel, expected).ok());
  for (const bool registers : {false, true}) {
    const Kernel expanded = expand_tiles(kernel, registers);
    ASSERT_TRUE(verify(expanded).ok()) << verify(expanded).to_string();
    EXPECT_FALSE(has_tiles(expanded));
    std::vector<Literal> buffers = inputs;
    ASSERT_TRUE(run(expanded, buffers).ok());
    EXPECT_TRUE(std::ranges::equal(buffers[2].data(), expected[2].data())) << registers;
  }
}

TEST(Examples, Attention) {
  const Kernel kernel = example("attention");
  for (const InterpreterOptions& options : orders()) {
    std::vector<Literal> buffers = zero_buffers(kernel);
    for (int64_t b = 0; b < 3; ++b) {
      fill(buffers[static_cast<size_t>(b)], [&](int64_t i) { return input(i + b) / 3; });
    }
    const Status status = run(kernel, buffers, {}, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    const auto at = [&](size_t b, int64_t row, int64_t column) {
      return static_cast<double>(buffers[b].get<float>(row * 64 + column));
    };
    expect_close(buffers[3], [&](int64_t i) {
      double sum = 0;
      double weighted = 0;
      for (int64_t j = 0; j < 128; ++j) {
        double score = 0;
        for (int64_t c = 0; c < 64; ++c) score += at(0, i / 64, c) * at(1, j, c);
        const double weight = std::exp(score / 8);
        sum += weight;
        weighted += weight * at(2, j, i % 64);
      }
      return weighted / sum;
    });
  }
}

TEST(Examples, CumulativeSum) {
  const Kernel kernel = example("cumsum");
  for (const InterpreterOptions& options : orders()) {
    std::vector<Literal> buffers = zero_buffers(kernel);
    for (int64_t i = 0; i < 200; ++i)
      buffers[0].set<int32_t>(i, static_cast<int32_t>(i * i % 17 - 5));
    const Status status = run(kernel, buffers, {}, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (int64_t i = 0; i < 200; ++i) {
      int32_t sum = 0;
      for (int64_t j = i / 50 * 50; j <= i; ++j) sum += buffers[0].get<int32_t>(j);
      ASSERT_EQ(buffers[1].get<int32_t>(i), sum) << i;
    }
  }
}

TEST(Examples, Sort) {
  const Kernel kernel = example("sort");
  for (const InterpreterOptions& options : orders()) {
    std::vector<Literal> buffers = zero_buffers(kernel);
    fill(buffers[0], [](int64_t i) { return static_cast<double>(i * i % 11); });
    const Status status = run(kernel, buffers, {}, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (int64_t row = 0; row < 3; ++row) {
      std::vector<float> sorted(40);
      for (int64_t j = 0; j < 40; ++j)
        sorted[static_cast<size_t>(j)] = buffers[0].get<float>(row * 40 + j);
      std::stable_sort(sorted.begin(), sorted.end());
      for (int64_t j = 0; j < 40; ++j) {
        ASSERT_EQ(buffers[1].get<float>(row * 40 + j), sorted[static_cast<size_t>(j)]);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::kernel
