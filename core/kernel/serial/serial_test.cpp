// Saving and loading kernels; files of every version; damaged files.
#include "core/kernel/serial/serial.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/file.h"
#include "core/kernel/testing/exercise.h"
#include "core/kernel/testing/op_test_util.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {
namespace {

Kernel kernel_of_example(const std::string& name) {
  const std::string path = std::string(TENON_SOURCE) + "/core/kernel/examples/" + name + ".kernel";
  return parse(read_file(path).value(), name).value();
}

TEST(KernelSerial, RoundTripsExamples) {
  for (const char* name : {"attention", "cumsum", "dot", "softmax", "sort", "transpose"}) {
    const Kernel kernel = kernel_of_example(name);
    const std::string bytes = save(kernel);
    const auto read = load_kernel(bytes);
    ASSERT_TRUE(read) << name << read.error().to_string();
    EXPECT_EQ(print(*read), print(kernel));
    EXPECT_EQ(save(*read), bytes);
  }
}

TEST(KernelSerial, RoundTripsEveryOperation) {
  for (int o = 0; o < kScalarOpCount; ++o) {
    const auto code = static_cast<OpCode>(o);
    for (const ElementType type : testing::real_types()) {
      if (!contains(scalar_op(code).types, type)) continue;
      const Kernel kernel = testing::of_op(code, type, type, 5);
      const auto read = load_kernel(save(kernel));
      ASSERT_TRUE(read) << read.error().to_string() << print(kernel);
      EXPECT_TRUE(equal(*read, kernel));
    }
  }
}

// The first release wrote version 1: its files stay readable.
TEST(KernelSerial, LoadsFilesOfEveryVersion) {
  const std::string folder = std::string(TENON_SOURCE) + "/core/kernel/serial/testdata/";
  for (uint32_t version = kKernelFormat.oldest; version <= kKernelFormat.newest; ++version) {
    for (const char* name : {"dot", "cumsum", "sort", "softmax"}) {
      const auto bytes = read_file(folder + fmt::format("{}.v{}.tnkn", name, version));
      ASSERT_TRUE(bytes) << bytes.error().to_string();
      const auto read = load_kernel(*bytes);
      ASSERT_TRUE(read) << read.error().to_string();
      EXPECT_TRUE(equal(*read, kernel_of_example(name)));
    }
    // Every statement, flag and kind of memory.
    const auto bytes = read_file(folder + fmt::format("everything.v{}.tnkn", version));
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    const auto read = load_kernel(*bytes);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(print(*read), read_file(folder + "everything.kernel").value());
  }
}

TEST(KernelSerial, DamageIsFound) {
  std::string bytes = save(kernel_of_example("softmax"));
  EXPECT_EQ(load_kernel("softmax").error().message(),
            "this is no kernel: it does not begin with 'TNKN'");
  bytes[bytes.size() / 2] ^= 4;
  EXPECT_EQ(load_kernel(bytes).error().message(), "the kernel is damaged: its checksum differs");
}

// Each bit of each byte of the file is changed: loading gives an error, or another kernel that all
// code can handle.
TEST(KernelSerial, NoChangeOfABitBreaksTheReader) {
  int64_t kernels = 0;
  for (const char* name : {"dot", "softmax", "transpose"}) {
    const std::string whole = save(kernel_of_example(name));
    for (size_t i = 13; i < whole.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = whole;
        bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
        const auto read = load_kernel(bytes, true);
        if (!read) {
          EXPECT_FALSE(read.error().message().empty());
          continue;
        }
        ++kernels;
        EXPECT_EQ(exercise(*read, 0), "") << name << " byte " << i << " bit " << bit;
        run_on_zeros(*read);
      }
    }
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(load_kernel(std::string_view(whole).substr(0, size), true)) << size;
    }
  }
  EXPECT_GT(kernels, 100);
}

TEST(KernelSerial, WhatComesBehindIsAnError) {
  std::string payload = save(kernel_of_example("dot")).substr(13);
  const std::string bytes = seal(kKernelFormat, payload + "x");
  EXPECT_NE(load_kernel(bytes).error().message().find("1 bytes after the kernel"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::kernel
