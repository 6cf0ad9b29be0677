// Memory that host and device share (B28, B29): on interp, through the C ABI, within the layers.
#include <gtest/gtest.h>

#include <array>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/record/record_test_util.h"
#include "core/backend/registry/registry.h"
#include "core/backend/testing/backend_test_util.h"

namespace tenon::backend {
namespace {

class ImportMemory : public OnDevice {
 protected:
  void open_on(std::shared_ptr<Backend> on) { open(std::move(on), 64, 64); }
  std::span<const std::byte> host() const { return std::as_bytes(std::span(from)); }
  Result<MemoryHandle> import() { return device->import_memory(0, host()); }
  Status copy_out() {
    return device->copy(0, MemoryAddress::of_host(bytes_of(to)), {y, 0, nullptr}, sizeof to);
  }

  alignas(16) Floats from = {1, 2, 3, 4};
  Floats to = {};
};

TEST_F(ImportMemory, KernelsReadTheHostsBytes) {
  const auto plugin = std::string(TENON_PLUGINS) + "/libtenon_interp.so";
  Registry registry("");
  for (const auto& each :
       {std::shared_ptr<Backend>(make_interpreter_backend()), registry.get(plugin).value(),
        make_validate_layer(make_interpreter_backend())}) {
    to = {};
    open_on(each);
    const auto memory = import();
    ASSERT_TRUE(memory) << memory.error().to_string();
    EXPECT_EQ(launch({{*memory, 0, nullptr}, {y, 0, nullptr}}).message(), "");
    EXPECT_EQ(copy_out().message(), "");
    EXPECT_EQ(finish(*device).message(), "");
    EXPECT_EQ(to, (Floats{2, 3, 4, 5}));
    EXPECT_EQ(device->map(*memory).value(), host().data());
    device->free(*memory);
    EXPECT_EQ(finish(*device).message(), "");
    device = nullptr;
  }
}

TEST_F(ImportMemory, WhatADeviceCannotTakeItDeclines) {
  open_on(make_interpreter_backend());
  const auto tail = device->import_memory(0, host().subspan(4));
  ASSERT_FALSE(tail);
  EXPECT_EQ(tail.error(),
            Status(ErrorCode::kInvalidArgument, "interp: memory that is not aligned to 16 bytes"));
  EXPECT_EQ(device->import_memory(0, {}).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(device->import_memory(1, host()).error().code(), ErrorCode::kInvalidArgument);
}

// Imported memory does not count as memory of the device.
TEST_F(ImportMemory, TakesNoRoom) {
  InterpreterConfig small;
  small.memory_bytes = 128;
  open_on(make_interpreter_backend(small));
  ASSERT_FALSE(device->allocate(0, 1));
  const auto memory = import();
  ASSERT_TRUE(memory);
  device->free(*memory);
  EXPECT_FALSE(device->allocate(0, 1));
}

TEST_F(ImportMemory, ValidateFindsWhoWritesIt) {
  open_on(make_validate_layer(make_interpreter_backend()));
  const MemoryHandle memory = import().value();
  const MemoryAddress at = {memory, 0, nullptr};
  const std::string number = std::to_string(memory);
  const auto read_only = [&](const std::string& what) {
    return "validate: B28: " + what + " is imported memory " + number + ", which is only read";
  };
  EXPECT_EQ(launch({{x, 0, nullptr}, at}).message(), read_only("a buffer that is written"));
  EXPECT_EQ(device->copy(0, at, {x, 0, nullptr}, 16).message(), read_only("a copy's destination"));
  EXPECT_EQ(device->fill(0, at, 16, host().first(4)).message(), read_only("a fill's destination"));
  EXPECT_EQ(device->copy_box(0, at, {x, 0, nullptr}, {4, {4}, {4}, {4}}).message(),
            read_only("a box's destination"));
  EXPECT_EQ(device->pack(0, "", 0, at, {x, 0, nullptr}).message(), read_only("a packed operand"));
  const std::array<MemoryAddress, 1> results = {at};
  LibraryCallLaunch call;
  call.results = results;
  EXPECT_EQ(device->call(0, call).message(), read_only("a result"));
  EXPECT_EQ(launch({{memory, 4, nullptr}, {y, 0, nullptr}}).message(),
            "validate: B17: a buffer: 16 bytes at 4 of 16");
  EXPECT_EQ(device->import_memory(0, {}).error().message(), "validate: B28: an import of nothing");
  EXPECT_EQ(device->import_memory(7, host()).error().message(),
            "validate: B16: there is no space 7");
}

TEST_F(ImportMemory, ValidateFindsBytesThatChanged) {
  open_on(make_validate_layer(make_interpreter_backend()));
  const MemoryHandle memory = import().value();
  ASSERT_TRUE(launch({{memory, 0, nullptr}, {y, 0, nullptr}}).ok());
  device->free(memory);
  EXPECT_EQ(device->record(0).error().message(),
            "validate: B18: memory " + std::to_string(memory) + " is freed while work uses it");
  ASSERT_EQ(finish(*device).message(), "");
  const MemoryHandle again = import().value();
  from[2] = 7;
  device->free(again);
  EXPECT_EQ(device->record(0).error().message(), "validate: B28: the bytes of imported memory " +
                                                     std::to_string(again) + " have changed");
}

TEST_F(ImportMemory, FaultsOfIt) {
  open_on(
      make_faults_layer(make_interpreter_backend(), FaultPlan::parse("import@2").value()).backend);
  EXPECT_TRUE(import());
  EXPECT_EQ(import().error(), Status(ErrorCode::kInternal, "a planned fault: import"));
  EXPECT_TRUE(import());
}

// A recording contains the copied bytes, because a replay cannot access memory of this process.
class ImportInRecording : public RecordTest {};

TEST_F(ImportInRecording, IsDeclined) {
  open({add_one("add_one")});
  alignas(16) const Floats from = {};
  EXPECT_EQ(device->import_memory(0, std::as_bytes(std::span(from))).error().code(),
            ErrorCode::kUnimplemented);
  EXPECT_EQ(device->map(x).error().code(), ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace tenon::backend
