#include "core/runtime/serial.h"

#include <gtest/gtest.h>

#include "core/backend/interpreter/interpreter.h"
#include "core/program/program_test_util.h"
#include "core/runtime/client.h"

namespace tenon::runtime {
namespace {

// A Program with a segment of two steps, one planned call, and one kernel that runs on the host.
CompiledProgram compiled() {
  CompiledProgram result;
  result.program = program::testing::twice();
  program::Program& p = result.program;
  p.kernels.push_back(p.kernels[0]);
  p.kernels.back().name = "other";
  p.sequences[0].steps.push_back({program::Launch{1, {0, 0, 2}, {}}, {}, "third"});
  program::find_dependencies(p);
  const program::StepRange range = {0, 0, 2};
  program::Segment segment = program::segment_of(p, range);
  result.segments.push_back({range, std::move(segment.memories), program::save(segment.program)});
  result.kernel_placements = {KernelPlacement::kInlined, KernelPlacement::kHost};
  EXPECT_EQ(validate_compiled(result).to_string(), "OK");
  return result;
}

TEST(CompiledSerial, IsReadAsItWasAndRuns) {
  const auto client = Client::open(backend::make_interpreter_backend()).value();
  const auto& device = client->devices()[0];
  const std::string target = compiled_for(client->backend(), device->info().target);
  const std::string bytes = save(compiled(), target);
  auto read = load_compiled_program(bytes, target);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(save(*read, target), bytes);
  const auto executable = Executable::load(device, *std::move(read), {}).value();
  const Literal x = program::testing::four(3);
  const auto buffer =
      buffer_from_host(device, MemoryKind::kDevice, {x.data().data(), x.shape(), {}, {}}).value();
  const auto run = executable->execute(std::vector{buffer.buffer});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_TRUE(run->done.await().ok());
  EXPECT_EQ(run->results[0]->to_literal().value(), program::testing::four(6));
}

TEST(CompiledSerial, IsForOneCompilerAndTarget) {
  const auto interp = backend::make_interpreter_backend();
  backend::TargetInfo target = interp->devices().value()[0].target;
  const std::string here = compiled_for(*interp, target);
  const std::string bytes = save(compiled(), here);
  target.compiler_id = "interp-2";
  EXPECT_EQ(load_compiled_program(bytes, compiled_for(*interp, target)).error().code(),
            ErrorCode::kFailedPrecondition);
  target.compiler_id = "interp-1";
  target.scratch_bytes = 7;
  EXPECT_EQ(load_compiled_program(bytes, compiled_for(*interp, target)).error().code(),
            ErrorCode::kFailedPrecondition);
}

TEST(CompiledSerial, ErrorsNameWhatDiffers) {
  const auto error = [](std::string_view was, std::string_view is) {
    return check_compiled_for(was, is).message();
  };
  const std::string here = "chip\n1.2\nname chip\ncompiler c\nvector_bytes 16\n";
  EXPECT_EQ(error(here, here), "");
  EXPECT_EQ(error("npu\n1.2\nname chip\n", here),
            "it was compiled for the backend 'npu', and this is 'chip'");
  EXPECT_EQ(error("chip\n1.1\nname chip\n", here),
            "it was compiled by version '1.1' of the backend chip, and this is version '1.2'");
  EXPECT_EQ(
      error("chip\n1.2\nname chip\ncompiler c\nvector_bytes 32\n", here),
      "it was compiled for another target: 'vector_bytes 32'; this device: 'vector_bytes 16'");
  EXPECT_EQ(error("chip\n1.2\nname chip\ncompiler c\n", here),
            "it was compiled for another target: without that; this device: 'vector_bytes 16'");
  EXPECT_EQ(error("chip\n1.2\nspace a\nspace a\nspace b\n", "chip\n1.2\nspace a\nspace b\n"),
            "it was compiled for another target: 'space a'; this device: 'space b'");
  EXPECT_EQ(error(std::string(119, 'n') + "é", here),
            fmt::format("it was compiled for the backend '{}…', and this is 'chip'",
                        std::string(119, 'n')));
  EXPECT_EQ(error("", here), "it was compiled for the backend '', and this is 'chip'");
  EXPECT_EQ(error(std::string(500, 'n'), here),
            fmt::format("it was compiled for the backend '{}…', and this is 'chip'",
                        std::string(120, 'n')));
}

TEST(CompiledSerial, NamesAreKept) {
  CompiledProgram named = compiled();
  named.parameter_names = {"x"};
  named.result_names = {"y"};
  named.made_by = "tenon 0";
  const auto read = load_compiled_program(save(named, "here\n1"), "here\n1");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->parameter_names, named.parameter_names);
  EXPECT_EQ(read->result_names, named.result_names);
  EXPECT_EQ(read->made_by, "tenon 0");
  named.result_names.push_back("z");
  EXPECT_EQ(load_compiled_program(save(named, "here"), "here").error().message(),
            "compiled program p: 2 names of 1 arrays");
}

// Files of version 3 end before the names.
TEST(CompiledSerial, OlderVersionsAreRead) {
  const std::string bytes = save(compiled(), "here");
  const auto file = serial::unseal(bytes, kCompiledProgramFormat).value();
  constexpr size_t kNames = 3;  // Three empty lists and texts.
  const std::string before =
      serial::seal(kCompiledProgramFormat, file.payload.substr(0, file.payload.size() - kNames), 3);
  const auto read = load_compiled_program(before, "here");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(save(*read, "here"), bytes);
}

// Truncated at any byte, or with any byte changed: an error, or a consistent Program.
TEST(CompiledSerial, DamageIsFound) {
  const std::string bytes = save(compiled(), "here");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(load_compiled_program(bytes.substr(0, size), "here", true));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    EXPECT_FALSE(load_compiled_program(damaged, "here")) << i;
    const auto read = load_compiled_program(damaged, "here", true);
    if (read) {
      EXPECT_EQ(validate_compiled(*read).to_string(), "OK");
    }
  }
}

TEST(CompiledSerial, RefersToWhatThereIs) {
  const auto error_of = [](const auto& change) {
    CompiledProgram program = compiled();
    change(program);
    return load_compiled_program(save(program, "here"), "here").error().message();
  };
  EXPECT_EQ(error_of([](auto& c) { c.kernel_placements.pop_back(); }),
            "compiled program p: 1 placements of 2 kernels");
  EXPECT_EQ(error_of([](auto& c) { c.kernel_placements[1] = KernelPlacement::kInlined; }),
            "compiled program p: @other is launched, but has no code");
  EXPECT_EQ(error_of([](auto& c) { c.segments[0].range.end = 4; }),
            "compiled program p: a segment of steps 0 to 4 of sequence 0");
  EXPECT_EQ(error_of([](auto& c) { c.segments[0].memories[0].index = 1; }),
            "compiled program p: a segment in a memory that does not exist");
  EXPECT_EQ(error_of([](auto& c) { c.segments.push_back(c.segments[0]); }),
            fmt::format("compiled program p: two segments with step {} of sequence 0",
                        compiled().segments[0].range.begin));
  EXPECT_EQ(error_of([](auto& c) { c.kernel_placements[1] = KernelPlacement::kDevice; }),
            "compiled program p: @other is launched, but has no code");
  EXPECT_EQ(error_of([](auto& c) { c.plans[0] = {}; }),
            "compiled program p: a plan of call 0, which does not exist");
}

}  // namespace
}  // namespace tenon::runtime
