// A child that the process forks has none of the runtime's threads: its calls return errors.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/base/process/sanitizers.h"
#include "core/runtime/runtime_test_util.h"
#include "core/runtime/submission/forked.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::four;
using program::testing::twice;

constexpr std::string_view kForked = "this process was forked from one that had opened the device";

// The number of the first of the child's checks that does not hold, 0 if all do. A child that hangs
// is ended by the alarm.
int in_child(const std::function<int()>& checks) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(checks());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool is_refusal(const Status& status) {
  return status.code() == ErrorCode::kFailedPrecondition && status.message().starts_with(kForked);
}

TEST(Fork, TheChildHearsThatItHasNoThreads) {
  auto client = client_of();
  auto executable = load(*client, twice());
  const auto device = client->devices()[0];
  const BufferPtr x = put(device, four(1));
  ASSERT_EQ(get(x), four(1));
  Promise never(device->pool());
  EXPECT_EQ(in_child([&] {
              if (!is_refusal(x->to_literal().error())) return 1;
              const auto run = executable->execute(std::vector{x});
              const Status status = run ? run->results[0]->to_literal().error() : run.error();
              if (!is_refusal(status)) return 2;
              if (!is_refusal(never.event().await())) return 3;
              if (!is_refusal(device->drain())) return 4;
              const Literal literal = four(2);
              const auto sent = buffer_from_host(device, MemoryKind::kDevice,
                                                 {literal.data().data(), literal.shape(), {}, {}});
              if (!is_refusal(sent ? sent->buffer->defined().await() : sent.error())) return 5;
              executable = nullptr;  // Nothing waits for threads that are not there.
              client = nullptr;
              return await_all_closed(1'000'000'000) ? 0 : 6;
            }),
            0);
  expect_runs(client);
}

// A child that opens a device of its own has it.
TEST(Fork, TheChildMayOpenWhatItsParentHasNot) {
  if (TENON_TSAN == 1) GTEST_SKIP() << "TSan allows no threads behind a fork";
  const std::shared_ptr<backend::Backend> backend = backend::make_interpreter_backend();
  EXPECT_EQ(in_child([&] {
              const auto client = Client::open(backend);
              if (!client) return 1;
              const auto executable = load(**client, twice());
              const auto run =
                  executable->execute(std::vector{put((*client)->devices()[0], four(1))});
              return run && get(run->results[0]) == four(3) ? 0 : 2;
            }),
            0);
  const auto client = Client::open(backend);
  ASSERT_TRUE(client);
  EXPECT_EQ(in_child([&] { return is_refusal(Client::open(backend).error()) ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace tenon::runtime
