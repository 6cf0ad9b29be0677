// Helpers for tests of recordings: a device within the layer `record`, and backends that a replay
// may meet.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <optional>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/record/record.h"
#include "core/backend/layers/record/replay.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/base/file.h"
#include "core/kernel/text/text.h"

namespace tenon::backend {

namespace fs = std::filesystem;

using Floats = std::array<float, 4>;

inline kernel::Kernel parsed(const std::string& text) {
  auto kernel = kernel::parse(text, "k");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  return *std::move(kernel);
}

inline kernel::Kernel map_kernel(const std::string& name, const std::string& operation,
                                 const std::string& grid = "4", const std::string& access = "out") {
  return parsed("kernel @" + name + "(%x: in f32[4], %y: " + access +
                " f32[4]) index s32 grid(%i: " + grid + ") {\n%a = load %x[%i] : f32\n" +
                operation + "store %b, %y[%i] : f32\n}");
}

inline kernel::Kernel twice() { return map_kernel("twice", "%b = mul %a, 2.0 : f32\n"); }
// Writes two elements of four.
inline kernel::Kernel half() { return map_kernel("half", "%b = neg %a : f32\n", "2", "inout"); }

inline const std::byte* bytes_of(const Floats& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
inline std::byte* bytes_of(Floats& values) { return reinterpret_cast<std::byte*>(values.data()); }

// Compiles another kernel in the place of one, and says that it is another backend, so that a
// replay compiles.
class OtherBackend final : public ForwardingBackend {
 public:
  explicit OtherBackend(std::optional<kernel::Kernel> instead = {})
      : ForwardingBackend(make_interpreter_backend()), instead_(std::move(instead)) {}
  std::string_view name() const override { return "other"; }
  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    std::vector<const kernel::Kernel*> list(kernels.begin(), kernels.end());
    for (const kernel::Kernel*& each : list) {
      if (instead_ && each->name == instead_->name) each = &*instead_;
    }
    return ForwardingBackend::compile(target, list);
  }

 private:
  const std::optional<kernel::Kernel> instead_;
};

class RecordTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fs::path("tenon_record_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    options.path = (folder_ / "run.record").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Opens a device within the layer, with a module of some kernels and two buffers.
  void open(std::vector<kernel::Kernel> list, std::shared_ptr<Backend> inner = nullptr) {
    if (inner == nullptr) inner = make_interpreter_backend();
    backend = make_record_layer(std::move(inner), options).value();
    device = backend->open(0).value();
    kernels = std::move(list);
    std::vector<const kernel::Kernel*> each;
    for (const kernel::Kernel& kernel : kernels) each.push_back(&kernel);
    const auto target = backend->devices().value()[0].target;
    module = device->load(backend->compile(target, each).value().binary, each).value();
    x = device->allocate(0, 256).value();
    y = device->allocate(0, 256).value();
  }
  // The file, when all is closed.
  std::string closed() {
    device.reset();
    backend.reset();
    return read_file(options.path).value();
  }

  Status launch(uint32_t kernel, const MemoryAddress& from, const MemoryAddress& to,
                const char* label = "") {
    const std::array<MemoryAddress, 2> places = {from, to};
    KernelLaunch work;
    work.module = module;
    work.kernel = kernel;
    work.buffers = places;
    work.label = label;
    return device->launch(0, work);
  }
  // x + 1 into y, twice of that into x, twice.
  void run_chain() {
    open({add_one("add_one"), twice()});
    const Floats from = {1, 2, 3, 4};
    ASSERT_TRUE(device->copy(0, at(x), MemoryAddress::of_host(bytes_of(from)), 16).ok());
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(launch(0, at(x), at(y), "add at m.mlir:3").ok());
      ASSERT_TRUE(launch(1, at(y), at(x), "mul at m.mlir:4").ok());
    }
    ASSERT_TRUE(device->copy(0, MemoryAddress::of_host(bytes_of(result)), at(x), 16).ok());
    ASSERT_EQ(finish(*device).message(), "");
    EXPECT_EQ(result, (Floats{10, 14, 18, 22}));
    device->free(x);
    device->free(y);
    device->unload(module);
  }

  static MemoryAddress at(MemoryHandle memory, int64_t offset = 0) {
    return {memory, offset, nullptr};
  }

  static ReplayReport replayed(const std::string& file, Backend& backend, size_t most = 1) {
    const auto recording = read_recording(file);
    EXPECT_TRUE(recording) << recording.error().to_string();
    ReplayOptions how;
    how.most_differences = most;
    auto report = replay(*recording, backend, 0, how);
    EXPECT_TRUE(report) << report.error().to_string();
    return *std::move(report);
  }
  static std::string listing(const std::string& file) {
    const auto recording = read_recording(file).value();
    std::string text;
    for (const recorded::Entry& entry : recording.entries) {
      if (!std::holds_alternative<recorded::RecordedBytes>(entry)) {
        text += to_string(recording, entry) + "\n";
      }
    }
    return text;
  }

  RecordOptions options;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  std::vector<kernel::Kernel> kernels;
  ModuleHandle module = 0;
  MemoryHandle x = 0;
  MemoryHandle y = 0;
  Floats result = {};
  fs::path folder_;
};

}  // namespace tenon::backend
