// Every input of fuzz/corpus, and inputs damaged at random, through the target of each: the same in
// every run. scripts/fuzz searches further, guided by coverage and with sanitizers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "fuzz/targets.h"

namespace tenon::fuzz {
namespace {

constexpr int kDamagedInputs = 4000;
constexpr unsigned kMostSeconds = 60;  // Of one input: more is a hang.

// The input that runs, for the handler of signals.
std::string_view running;
std::string saved_path;

// Saves the input that ended the process; only functions that a handler may call.
extern "C" void save_input(int signal_number) {
  const int file = open(saved_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0 && write(file, running.data(), running.size()) >= 0 &&
      write(STDERR_FILENO, saved_path.data(), saved_path.size()) >= 0) {
    constexpr std::string_view kSaid = " has the input that ended the process\n";
    static_cast<void>(!write(STDERR_FILENO, kSaid.data(), kSaid.size()));
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

bool run(const FuzzTarget& target, std::string_view input) {
  running = input;
  alarm(kMostSeconds);
  const bool is_accepted = target.run(input);
  alarm(0);
  return is_accepted;
}

std::vector<std::string> read_corpus(std::string_view target) {
  std::vector<std::filesystem::path> paths;
  const auto folder = std::filesystem::path(TENON_SOURCE) / "fuzz/corpus" / target;
  for (const auto& file : std::filesystem::directory_iterator(folder)) paths.push_back(file.path());
  std::ranges::sort(paths);
  std::vector<std::string> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path.string()).value());
  return corpus;
}

// Inputs made of those of a corpus.
class Damager {
 public:
  explicit Damager(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string bytes = corpus_[below(corpus_.size())];
    for (size_t left = 1 + below(4); left > 0; --left) damage(bytes);
    return bytes;
  }

 private:
  size_t below(size_t end) { return end == 0 ? 0 : random_() % end; }

  void damage(std::string& bytes) {
    const size_t at = below(bytes.size());
    const size_t length = std::min(bytes.size() - at, 1 + below(16));
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(below(256));
        return;
      case 2:
        bytes.erase(at, length);
        return;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        return;
      case 4:
        bytes.resize(at);
        return;
      default: {
        const std::string& other = corpus_[below(corpus_.size())];
        bytes.replace(at, length, other.substr(below(other.size()), 1 + below(64)));
      }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_{1};
};

constexpr int kEnds[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};

// Memory beyond what the process has at the start, sanitizers' included.
void limit_memory(rlim_t bytes) {
  std::ifstream pages("/proc/self/statm");
  rlim_t count = 0;
  if (!(pages >> count)) return;
  rlimit limits = {};
  if (getrlimit(RLIMIT_AS, &limits) != 0) return;
  const rlim_t most = count * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  limits.rlim_cur = std::min(most, limits.rlim_max);
  static_cast<void>(setrlimit(RLIMIT_AS, &limits));
}

class Replay : public testing::TestWithParam<FuzzTarget> {
 protected:
  static void SetUpTestSuite() { limit_memory(rlim_t{3} << 30); }
  void SetUp() override {
    saved_path = testing::TempDir() + "tenon-fuzz-" + std::string(GetParam().name);
    // A stack that has overflowed has no place for the handler.
    const stack_t stack = {stack_.data(), 0, stack_.size()};
    ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
    struct sigaction action = {};
    action.sa_handler = save_input;
    action.sa_flags = SA_ONSTACK;
    for (const int number : kEnds) sigaction(number, &action, nullptr);
  }
  void TearDown() override {
    for (const int number : kEnds) signal(number, SIG_DFL);
    const stack_t none = {nullptr, SS_DISABLE, 0};
    sigaltstack(&none, nullptr);
  }

 private:
  std::vector<char> stack_ = std::vector<char>(size_t{64} << 10);
};

TEST_P(Replay, Corpus) {
  const std::vector<std::string> corpus = read_corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  int accepted = 0;
  for (const std::string& input : corpus) {
    EXPECT_LE(input.size(), GetParam().most_bytes);
    accepted += run(GetParam(), input) ? 1 : 0;
  }
  EXPECT_GT(accepted, 0) << "the reader refuses every input of the corpus";
}

TEST_P(Replay, Damaged) {
  const std::vector<std::string> corpus = read_corpus(GetParam().name);
  Damager damager(corpus);
  int accepted = 0;
  for (int i = 0; i < kDamagedInputs; ++i) accepted += run(GetParam(), damager.next()) ? 1 : 0;
  EXPECT_LT(accepted, kDamagedInputs) << "no input was damaged";
  EXPECT_GT(accepted, kDamagedInputs / 400) << "hardly an input comes past the reader";
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay,
                         testing::ValuesIn(fuzz_targets().begin(), fuzz_targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon::fuzz
