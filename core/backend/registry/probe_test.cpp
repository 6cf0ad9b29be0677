// Plug-ins that end their process, and files that are not plug-ins.
#include "core/backend/registry/probe.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/backend/registry/plugin_file.h"
#include "core/backend/registry/registry.h"
#include "core/base/file.h"

namespace tenon::backend {
namespace {

const std::string kFolder = TENON_PLUGINS;
constexpr std::chrono::milliseconds kShort(200);

TEST(Probe, SaysHowTheChildEnded) {
  EXPECT_TRUE(probe([] {}).ok());
  EXPECT_EQ(probe([] { _exit(7); }).message(), "it ends the process with exit status 7");
  EXPECT_EQ(probe([] { _exit(0); }).message(), "it ends the process with exit status 0");
  EXPECT_EQ(probe([] { raise(SIGKILL); }).message(), "it ends the process by signal 9 (Killed)");
  const Status hangs = probe([] { pause(); }, kShort);
  EXPECT_EQ(hangs.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(hangs.message(), "it has not ended after 200 ms");
}

TEST(Probe, TellsWhatTheChildPrintedLast) {
  const Status status = probe([] {
    for (int i = 0; i < 10'000; ++i) dprintf(STDOUT_FILENO, "line %d of many\n", i);
    dprintf(STDERR_FILENO, "the driver is missing\n");
    _exit(3);
  });
  EXPECT_EQ(status.message(),
            "it ends the process with exit status 3; it printed: the driver is missing");
}

// Processes that a hanging child started end with it: none of them keeps the pipe open.
TEST(Probe, EndsWhatTheChildStarted) {
  int alive[2];
  ASSERT_EQ(pipe(alive), 0);
  const Status status = probe(
      [&] {
        if (fork() >= 0) {
          while (true) pause();
        }
      },
      kShort);
  EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded);
  close(alive[1]);
  char byte = 0;
  EXPECT_EQ(read(alive[0], &byte, 1), 0);  // Every writer has gone.
  close(alive[0]);
}

TEST(Probe, NamesThePlugin) {
  const std::string hangs = kFolder + "/libbroken10.so";
  EXPECT_EQ(probe_plugin(hangs, kShort).message(),
            hangs + " cannot start: it has not ended after 200 ms");
  EXPECT_TRUE(probe_plugin(kFolder + "/libtenon_interp.so").ok());
  EXPECT_TRUE(probe_plugin(kFolder + "/libbroken5.so").ok());  // It reports its own error.
}

// The other plug-ins are still listed.
TEST(Registry, ListsPluginsThatCrashOrExit) {
  Registry registry(kFolder + "/libbroken9.so:" + kFolder + "/libbroken11.so:" + kFolder +
                    "/libcalls.so");
  std::vector<std::string> lines;
  for (const Listed& each : registry.list()) {
    lines.push_back(each.name + ": " + (each.backend ? "OK" : each.backend.error().message()));
  }
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "calls: OK");
  EXPECT_EQ(lines[1], "interp: OK");
  EXPECT_EQ(lines[2],
            "libbroken11.so: " + kFolder +
                "/libbroken11.so cannot start: it ends the process with exit status 0; it "
                "printed: no licence was found");
  EXPECT_TRUE(lines[3].starts_with("libbroken9.so: " + kFolder + "/libbroken9.so cannot start: "));
  // AddressSanitizer takes the signal, reports it and ends the process.
  EXPECT_TRUE(lines[3].ends_with("it ends the process by signal 11 (Segmentation fault)") ||
              lines[3].ends_with("ABORTING"))
      << lines[3];
}

TEST(PluginFile, MustBeAWholeSharedLibrary) {
  const TemporaryFolder folder = TemporaryFolder::create("tenon-plugins").value();
  const std::string path = folder.file("x.so");
  const auto error_of = [&](std::string_view bytes) {
    EXPECT_TRUE(write_file(path, bytes).ok());
    const auto backend = load_plugin(path);
    const std::string text = backend ? "OK" : backend.error().message();
    EXPECT_TRUE(text.starts_with(path + " cannot be loaded: ")) << text;
    return text.substr(std::min(text.size(), path.size() + 19));
  };
  const std::string whole = read_file(kFolder + "/libbroken5.so").value();
  EXPECT_EQ(error_of(""), "it is not an ELF file");
  EXPECT_EQ(error_of("#!/bin/sh\n"), "it is not an ELF file");
  EXPECT_EQ(error_of(whole.substr(0, 20)), "it ends within its ELF header: it is truncated");
  EXPECT_EQ(error_of(whole.substr(0, 100)), "it ends before its program headers: it is truncated");
  EXPECT_EQ(error_of(whole.substr(0, whole.size() - 1)),
            "it ends before its section headers: it is truncated");
  std::string other = whole;
  other[4] = 3 - other[4];  // 32 bits for 64.
  EXPECT_EQ(error_of(other), "it is for machines of another word size");
  other = whole;
  other[16] = 2;  // A program.
  EXPECT_EQ(error_of(other), "it is not a shared library");
  // Every truncated file is refused or loads; none crashes the process.
  for (size_t size = 0; size < whole.size(); size += 997) {
    EXPECT_FALSE(check_plugin_file(path).ok() && write_file(path, whole.substr(0, size)).ok() &&
                 check_plugin_file(path).ok());
  }
}

TEST(PluginFile, APipeIsNotWaitedFor) {
  const TemporaryFolder folder = TemporaryFolder::create("tenon-plugins").value();
  const std::string path = folder.file("x.so");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Registry registry(folder.path());
  const auto backend = registry.get(path);
  ASSERT_FALSE(backend);
  EXPECT_TRUE(backend.error().message().ends_with("a pipe or device; a regular file is needed"))
      << backend.error().message();
  EXPECT_EQ(registry.list().size(), 2u);
}

TEST(Registry, WhatIsNotThereIsListedWithItsError) {
  Registry registry("/nowhere/plugins");
  EXPECT_EQ(registry.list().size(), 2u);  // interp, too
  const auto backend = registry.get("plugins");
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().message(), "there is no plug-in /nowhere/plugins");
}

}  // namespace
}  // namespace tenon::backend
