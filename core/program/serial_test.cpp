// Saving and loading Programs; files of every version; damaged files.
#include "core/program/serial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/file.h"
#include "core/program/foreign_call.h"
#include "core/program/interpreter.h"
#include "core/program/program_test_util.h"

namespace tenon::program {
namespace {

bool may_run(const Program& program) {
  constexpr int64_t kMost = 1 << 16;
  if (program.temporary_bytes > kMost) return false;
  for (const Buffer& b : program.buffers) {
    if (b.bytes() > kMost) return false;
  }
  for (const kernel::Kernel& kernel : program.kernels) {
    if (element_count(kernel.grid) > 100) return false;
  }
  return std::ranges::none_of(program.sequences, [](const Sequence& sequence) {
    return std::ranges::any_of(sequence.steps, [](const Step& step) {
      return std::holds_alternative<While>(step.action);
    });
  });
}

TEST(ProgramSerial, RoundTrips) {
  for (const Program& program : {testing::twice(), testing::everything()}) {
    ASSERT_EQ(validate(program).to_string(), "OK");
    const std::string bytes = save(program);
    const auto read = load_program(bytes);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(print(*read), print(program));
    EXPECT_EQ(read->constants, program.constants);
    EXPECT_EQ(read->buffers, program.buffers);
    EXPECT_EQ(read->sequences, program.sequences);
    EXPECT_EQ(read->parameters, program.parameters);
    EXPECT_EQ(read->results, program.results);
    EXPECT_EQ(read->donated, program.donated);
    EXPECT_EQ(read->temporary_bytes, program.temporary_bytes);
    EXPECT_EQ(save(*read), bytes);
  }
}

// A custom call with what version 2 cannot hold.
Program with_foreign_call() {
  Program p = testing::twice();
  CustomCall call{"foreign", {{"text", std::string("t")}}, {0}, {2}};
  add_foreign(call.config, {{{true, {}}, {false, {0}}},
                            {{}},
                            {{0, 0}},
                            {{"a", testing::four(0.5)}, {std::string("b") + kWithin + "c", "d"}}});
  p.sequences[0].steps = {{std::move(call), {}, "call"}};
  find_dependencies(p);
  return p;
}

TEST(ProgramSerial, ForeignCalls) {
  const Program program = with_foreign_call();
  const std::string bytes = save(program);
  EXPECT_EQ(bytes[4], 3);
  const auto file =
      read_file(std::string(TENON_SOURCE) + "/core/program/testdata/foreign_call.v3.tnpr");
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(*file, bytes);
  const auto read = load_program(*file);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->sequences, program.sequences);
  const auto foreign = foreign_of(*read, std::get<CustomCall>(read->sequences[0].steps[0].action));
  ASSERT_TRUE(foreign) << foreign.error().to_string();
  EXPECT_TRUE(foreign->operands[0].is_token);
  EXPECT_EQ(foreign->operands[1].minor_to_major, Dims{0});
  EXPECT_EQ(foreign->attributes[1].path, std::string("b") + kWithin + "c");
}

TEST(ProgramSerial, LoadsFilesOfEveryVersion) {
  const std::string folder = std::string(TENON_SOURCE) + "/core/program/testdata/";
  for (uint32_t version = kProgramFormat.oldest; version <= 2; ++version) {
    const auto bytes = read_file(folder + fmt::format("everything.v{}.tnpr", version));
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    const auto read = load_program(*bytes);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(print(*read), print(testing::everything()));
    EXPECT_EQ(read->sequences, testing::everything().sequences);
    EXPECT_EQ(read->donated, testing::everything().donated);
  }
}

// Plug-ins of earlier releases read what they know.
TEST(ProgramSerial, CallsAreSavedInTheOldestVersionThatHoldsThem) {
  const LibraryCall fused = Composite{"vendor.op",
                                      3,
                                      {{"axes", Dims{1, -1}},
                                       {"mode", std::string("fast")},
                                       {"none", Dims{}},
                                       {"scale", std::vector<double>{0.25, -1e300}}}};
  const LibraryCall plain = Sort{1, 0, true, false};
  for (const auto& [call, version] : {std::pair{fused, 2}, std::pair{plain, 1}}) {
    const std::string bytes = save_call(call);
    EXPECT_EQ(bytes[4], version);
    const auto read = load_call(bytes);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, call) << to_string(*read);
  }
  EXPECT_EQ(save(testing::twice())[4], 1);
  EXPECT_EQ(save(testing::everything())[4], 2);
}

TEST(ProgramSerial, NoChangeOfABitBreaksTheReader) {
  int64_t runs = 0;
  for (const Program& program : {testing::twice(), testing::everything()}) {
    const std::string whole = save(program);
    for (size_t i = 13; i < whole.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = whole;
        bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
        const auto read = load_program(bytes, true);
        if (!read) {
          EXPECT_FALSE(read.error().message().empty());
          continue;
        }
        EXPECT_FALSE(print(*read).empty());
        // Run on zeros, if it is small and has no loop that might not end.
        if (!may_run(*read)) continue;
        ++runs;
        std::vector<Literal> arguments;
        for (const BufferId id : read->parameters) {
          arguments.emplace_back(Shape(read->buffer(id).type, read->buffer(id).dims));
        }
        static_cast<void>(ProgramInterpreter(*read).run(arguments));
      }
    }
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(load_program(std::string_view(whole).substr(0, size), true)) << size;
    }
  }
  EXPECT_GT(runs, 100);
}

TEST(ProgramSerial, DamageIsFound) {
  std::string bytes = save(testing::twice());
  EXPECT_EQ(load_program("TNKN").error().message(),
            "this is no program: it does not begin with 'TNPR'");
  bytes.back() ^= 1;
  EXPECT_EQ(load_program(bytes).error().message(), "the program is damaged: its checksum differs");
}

}  // namespace
}  // namespace tenon::program
