// Files of recordings: damaged, cut and crafted ones are answers, of the reader and of a replay.
#include "core/backend/layers/record/record_test_util.h"
#include "core/kernel/serial/serial.h"

namespace tenon::backend {
namespace {

TEST_F(RecordTest, ACutFileEndsWithItsLastWholeEntry) {
  run_chain();
  const std::string file = closed();
  const size_t whole = read_recording(file)->entries.size();
  size_t last = 0;
  for (size_t size = 0; size < file.size(); ++size) {
    const auto read = read_recording(std::string_view(file).substr(0, size));
    if (!read) {
      EXPECT_LT(size, 13u) << read.error().to_string();
      continue;
    }
    EXPECT_GE(read->entries.size(), last);
    EXPECT_LT(read->entries.size(), whole);
    last = read->entries.size();
    EXPECT_LT(read->cut, size);
  }
  EXPECT_EQ(last, whole - 1);
}

TEST_F(RecordTest, NoChangeOfABitBreaksTheReader) {
  run_chain();
  const std::string file = closed();
  size_t taken = 0;
  for (size_t i = 13; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = file;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const auto read = read_recording(bytes, true);
      if (!read) {
        EXPECT_TRUE(read.error().message().starts_with("entry ")) << read.error().to_string();
        continue;
      }
      ++taken;
      for (const recorded::Entry& entry : read->entries) {
        EXPECT_FALSE(to_string(*read, entry).empty());
      }
      InterpreterConfig config;  // Any answer of the replay will do, but it must give one.
      config.memory_bytes = 1 << 16;
      const auto report = replay(*read, *make_interpreter_backend(config), 0);
      EXPECT_TRUE(report || !report.error().message().empty());
    }
  }
  EXPECT_GT(taken, 100u);
}

TEST_F(RecordTest, ReadsFilesOfEveryVersion) {
  const std::string folder = std::string(TENON_SOURCE) + "/core/backend/layers/record/testdata/";
  for (uint32_t v = kRecordingFormat.oldest; v <= kRecordingFormat.newest; ++v) {
    const auto file = read_file(folder + fmt::format("chain.v{}.tnrc", v));
    ASSERT_TRUE(file) << file.error().to_string();
    OtherBackend others;
    const ReplayReport report = replayed(*file, others);
    EXPECT_EQ(report.compared, 5);
    EXPECT_TRUE(report.differences.empty());
  }
}

std::string error_of(const std::vector<recorded::Entry>& entries) {
  const auto read = read_recording(save_entries(entries));
  return read ? "" : read.error().message();
}

TEST(Recording, EntriesAreChecked) {
  const std::string kernel = kernel::save(add_one("add_one"));
  const std::vector<recorded::Entry> begin = {
      recorded::RecordedOpen{1, "interp", "1", "interp:0", "interp-1", "t"},
      recorded::RecordedBytes{kernel},
      recorded::RecordedLoad{1, 2, 0, {0}},
      recorded::RecordedAllocate{1, 3, 0, 64},
  };
  const auto after = [&](recorded::Entry entry) {
    std::vector<recorded::Entry> all = begin;
    all.push_back(std::move(entry));
    return error_of(all);
  };
  EXPECT_EQ(error_of(begin), "");
  EXPECT_EQ(after(recorded::RecordedOpen{1, "", "", "", "", ""}),
            "entry 4: device 1 is open already");
  EXPECT_EQ(after(recorded::RecordedClose{2}), "entry 4: there is no device 2");
  EXPECT_EQ(after(recorded::RecordedLoad{1, 3, 0, {0}}), "entry 4: the number 3 again");
  EXPECT_EQ(after(recorded::RecordedLoad{1, 4, 0, {1}}), "entry 4: there are no bytes 1");
  EXPECT_EQ(after(recorded::RecordedCompile{"t", {0}, 0, {{1, 1, ""}}}),
            "entry 4: kernel 1 of 1 is declined for reason 1");
  EXPECT_EQ(after(recorded::RecordedUnload{3}), "entry 4: there is no module 3");
  EXPECT_EQ(after(recorded::RecordedAllocate{1, 4, 0, 0}), "entry 4: 0 bytes are allocated");
  EXPECT_EQ(after(recorded::RecordedFree{2}), "entry 4: there is no memory 2");
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {}, {}, 4, 0}), "entry 4: a copy from host to host");
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {3, 0}, {}, 4, 0}),
            fmt::format("entry 4: bytes 0 are {}, not 4", kernel.size()));
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {}, {3, 62}, 4, 0}), "entry 4: 4 bytes at 62 of 64");
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {}, {3, -1}, 4, 0}), "entry 4: 4 bytes at -1 of 64");
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {}, {9, 0}, 4, 0}),
            "entry 4: device 1 has no memory 9");
  EXPECT_EQ(after(recorded::RecordedFill{1, 0, {3, 0}, 4, 0}),
            fmt::format("entry 4: 4 bytes are filled with {}", kernel.size()));
  EXPECT_EQ(after(recorded::RecordedLaunch{1, 0, 2, 1, {}, {}, ""}), "entry 4: kernel 1 of 1");
  EXPECT_EQ(after(recorded::RecordedLaunch{1, 0, 3, 0, {}, {}, ""}),
            "entry 4: device 1 has no module 3");
  EXPECT_EQ(after(recorded::RecordedLaunch{1, 0, 2, 0, {{3, 0}}, {}, ""}),
            "entry 4: @add_one takes 2 buffers and 0 scalars, not 1 and 0");
  EXPECT_EQ(after(recorded::RecordedLaunch{1, 0, 2, 0, {{3, 0}, {3, 52}}, {}, ""}),
            "entry 4: 16 bytes at 52 of 64");
  EXPECT_EQ(after(recorded::RecordedLaunch{1, 0, 2, 0, {{3, 0}, {3, 12}}, {}, ""}),
            "entry 4: @add_one: buffers 1 and 0 overlap");
  EXPECT_EQ(after(recorded::RecordedLaunch{1, 0, 2, 0, {{3, 0}, {3, 16}}, {}, ""}), "");
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {3, 0}, {3, 8}, 12, 0}),
            "entry 4: the ends of a copy of 12 bytes overlap");
  EXPECT_EQ(after(recorded::RecordedCopy{1, 0, {3, 0}, {3, 8}, 8, 0}), "");
  EXPECT_EQ(after(recorded::RecordedWait{1, 0, 3}), "entry 4: there is no event 3");
  EXPECT_EQ(after(recorded::RecordedValues{9, {}}), "entry 4: there is no entry 9 yet");
  EXPECT_EQ(after(recorded::RecordedValues{3, {{0, 0}}}), "entry 4: entry 3 writes no buffer 0");
  EXPECT_EQ(after(recorded::RecordedFailure{3, false, 3, ""}), "entry 4: entry 3 is no work");
  std::vector<recorded::Entry> launched = begin;
  launched.emplace_back(recorded::RecordedLaunch{1, 0, 2, 0, {{3, 0}, {3, 16}}, {}, ""});
  launched.emplace_back(recorded::RecordedFailure{4, false, 0, ""});
  EXPECT_EQ(error_of(launched), "entry 5: 0 is no code of an error");
  launched.back() = recorded::RecordedValues{4, {{0, 0}}};  // A buffer that it only reads.
  EXPECT_EQ(error_of(launched), "entry 5: entry 4 writes no buffer 0");
  EXPECT_EQ(read_recording("TNKN").error().message(),
            "this is no recording: it does not begin with 'TNRC'");
  std::string damaged = save_entries(begin);
  damaged.back() ^= 1;
  EXPECT_EQ(read_recording(damaged).error().message(),
            "entry 3: the entry of a recording is damaged: its checksum differs");
}

TEST(Recording, APathThatCannotBeWritten) {
  const auto layer = make_record_layer(make_interpreter_backend(), {"/nowhere/at/all", true});
  ASSERT_FALSE(layer);
  EXPECT_EQ(layer.error().message(), "cannot write /nowhere/at/all: No such file or directory");
}

}  // namespace
}  // namespace tenon::backend
