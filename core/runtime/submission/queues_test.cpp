// Devices of several queues: copies to and from the host overlap with other work, and nothing that
// depends on the order of work changes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/record/record.h"
#include "core/backend/layers/record/replay.h"
#include "core/backend/layers/trace/trace.h"
#include "core/backend/testing/held_device.h"
#include "core/base/file.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using backend::Holds;
using program::testing::four;
using program::testing::twice;
using program::testing::twice_in_place;

class QueuesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  QueuesTest() { open(0); }
  void open(int64_t space_bytes) {
    client = *Client::open(std::make_shared<backend::HeldBackend>(GetParam(), holds, space_bytes));
    device = client->devices()[0];
  }
  ~QueuesTest() override { holds->let_all_go(); }

  BufferPtr run(const Executable& executable, const BufferPtr& x) {
    auto made = executable.execute(std::vector{x});
    EXPECT_TRUE(made) << made.error().to_string();
    return made ? made->results[0] : nullptr;
  }
  // A program of one launch with that label.
  std::shared_ptr<Executable> labelled(const std::string& label, bool in_place = false) {
    program::Program p = in_place ? twice_in_place() : twice();
    p.sequences[0].steps.back().label = label;
    return load(*client, p);
  }
  static Event download(const BufferPtr& from, Literal& to) {
    return from->copy_to_host(to.mutable_data());
  }

  const std::shared_ptr<Holds> holds = std::make_shared<Holds>();
  std::shared_ptr<Client> client;
  std::shared_ptr<Device> device;
};
INSTANTIATE_TEST_SUITE_P(Of, QueuesTest, ::testing::Values(2, 3));

// --- What overlaps

TEST_P(QueuesTest, ADownloadPassesWorkThatWasGivenLater) {
  const auto first = labelled("first run");
  const auto second = labelled("second run");
  const BufferPtr x = put(device, four(1));
  holds->hold("first run");
  holds->hold("second run");
  const BufferPtr y = run(*first, x);
  const BufferPtr z = run(*second, x);
  Literal of_y(four(0).shape());
  const Event downloaded = download(y, of_y);
  holds->await_begun("first run");
  EXPECT_EQ(holds->begun("download"), 0);  // It comes behind what it reads.
  holds->let_go("first run");
  EXPECT_EQ(downloaded.await().to_string(), "OK");
  EXPECT_EQ(of_y, four(3));
  EXPECT_FALSE(z->defined().is_ready());
  EXPECT_EQ(get(x), four(1));  // It was there before.
  EXPECT_FALSE(z->defined().is_ready());
  holds->let_go("second run");
  EXPECT_EQ(get(z), four(3));
}

TEST_P(QueuesTest, AnUploadPassesWorkThatWasGivenBefore) {
  const auto executable = labelled("the run");
  const BufferPtr x = put(device, four(1));
  holds->hold("the run");
  const BufferPtr y = run(*executable, x);
  holds->await_begun("the run");
  const BufferPtr other = put(device, four(5));
  EXPECT_EQ(other->defined().await().to_string(), "OK");
  EXPECT_FALSE(y->defined().is_ready());
  EXPECT_EQ(get(other), four(5));  // And so does its way back.
  EXPECT_FALSE(y->defined().is_ready());
  holds->let_go("the run");
  EXPECT_EQ(get(y), four(3));
}

TEST(Queues, UploadsPassDownloadsThatWaitWhereEachHasAQueue) {
  const auto holds = std::make_shared<Holds>();
  const auto client = *Client::open(std::make_shared<backend::HeldBackend>(3, holds));
  const auto device = client->devices()[0];
  holds->hold("second");
  const auto run = *load(*client, twice())->execute(std::vector{put(device, four(1))});
  Literal of_y(four(0).shape());
  const Event downloaded = run.results[0]->copy_to_host(of_y.mutable_data());
  EXPECT_EQ(put(device, four(2))->defined().await().to_string(), "OK");
  EXPECT_FALSE(downloaded.is_ready());
  holds->let_go("second");
  EXPECT_TRUE(downloaded.await().ok());
  EXPECT_EQ(of_y, four(3));
}

TEST_P(QueuesTest, WorkWaitsForWhatItReads) {
  const auto executable = labelled("the run");
  holds->hold("upload");
  const BufferPtr x = put(device, four(1));
  const BufferPtr y = run(*executable, x);
  holds->await_begun("upload");
  EXPECT_EQ(holds->begun("the run"), 0);
  holds->let_go("upload");
  EXPECT_EQ(get(y), four(3));
}

// --- Memory

// The allocator gives out again at once what an execution has let go; an upload comes behind it.
TEST_P(QueuesTest, AnUploadWaitsForTheLastUseOfItsMemory) {
  // So little memory that the allocator takes it from the device array by array.
  open(512);
  const auto executable = labelled("the run");
  BufferPtr x = put(device, four(1));
  ASSERT_EQ(x->defined().await().to_string(), "OK");
  holds->hold("the run");
  const BufferPtr y = run(*executable, x);
  holds->await_begun("the run");
  x = nullptr;
  // The free memory was an argument or a temporary of the run.
  const int64_t reserved = device->memory().statistics().bytes_reserved;
  const BufferPtr other = put(device, four(7));
  EXPECT_EQ(device->memory().statistics().bytes_reserved, reserved);
  EXPECT_FALSE(other->defined().is_ready());
  EXPECT_EQ(holds->begun("upload"), 1);
  holds->let_go("the run");
  EXPECT_EQ(get(y), four(3));
  EXPECT_EQ(get(other), four(7));
}

TEST_P(QueuesTest, DonatedMemoryIsWrittenBehindItsDownloads) {
  const auto executable = labelled("double", /*in_place=*/true);
  const BufferPtr x = put(device, four(2));
  ASSERT_EQ(x->defined().await().to_string(), "OK");
  holds->hold("download");
  Literal of_x(four(0).shape());
  const Event downloaded = download(x, of_x);
  holds->await_begun("download");
  const BufferPtr y = run(*executable, x);
  EXPECT_TRUE(x->is_deleted());
  EXPECT_EQ(holds->begun("double"), 0);
  holds->let_go("download");
  EXPECT_EQ(downloaded.await().to_string(), "OK");
  EXPECT_EQ(of_x, four(2));
  EXPECT_EQ(get(y), four(4));
}

TEST_P(QueuesTest, ARemovedBufferIsDownloadedWhole) {
  BufferPtr x = put(device, four(2));
  holds->hold("download");
  Literal of_x(four(0).shape());
  const Event downloaded = download(x, of_x);
  holds->await_begun("download");
  x = nullptr;
  for (int i = 0; i < 8; ++i) put(device, four(9));
  holds->let_go("download");
  EXPECT_EQ(downloaded.await().to_string(), "OK");
  EXPECT_EQ(of_x, four(2));
}

TEST_P(QueuesTest, TrimmingWaitsForEveryQueue) {
  holds->hold("upload");
  {
    const BufferPtr dropped = put(device, four(1));
  }
  holds->await_begun("upload");
  std::atomic<bool> trimmed = false;
  std::thread trimmer([&] {
    EXPECT_EQ(device->memory().trim().to_string(), "OK");
    trimmed = true;
  });
  EXPECT_FALSE(trimmed);
  holds->let_go("upload");
  trimmer.join();
  EXPECT_EQ(device->memory().statistics().bytes_reserved, 0);
}

// --- Errors

backend::FaultsLayer with_faults(uint32_t queues, const std::shared_ptr<Holds>& holds,
                                 const std::string& plan) {
  return make_faults_layer(std::make_shared<backend::HeldBackend>(queues, holds),
                           backend::FaultPlan::parse(plan).value());
}

constexpr auto kPlanned = "a planned fault: ";

// An upload that fails, at its call or later, is an error of that buffer and of what needs it.
TEST_P(QueuesTest, AnUploadThatFailsIsAnErrorOfItsBuffer) {
  for (const char* fault : {"copy", "event"}) {
    client = *Client::open(with_faults(GetParam(), holds, fmt::format("{}@2", fault)).backend);
    device = client->devices()[0];
    const auto executable = labelled("the run");
    const BufferPtr first = put(device, four(1));
    ASSERT_EQ(first->defined().await().to_string(), "OK");
    const BufferPtr second = put(device, four(2));
    EXPECT_EQ(second->defined().await().message(), kPlanned + std::string(fault));
    const BufferPtr third = put(device, four(3));
    const BufferPtr of_first = run(*executable, first);
    const BufferPtr of_second = run(*executable, second);
    const BufferPtr of_third = run(*executable, third);
    EXPECT_EQ(second->to_literal().error(), second->defined().await());
    EXPECT_EQ(of_second->defined().await(), second->defined().await());
    EXPECT_EQ(run(*executable, of_second)->defined().await(), second->defined().await());
    EXPECT_EQ(get(of_first), four(3));
    EXPECT_EQ(get(of_third), four(9));
  }
}

TEST_P(QueuesTest, ADownloadThatFailsIsAnErrorOfItsEvent) {
  for (const char* fault : {"copy", "event"}) {
    client = *Client::open(with_faults(GetParam(), holds, fmt::format("{}@2", fault)).backend);
    device = client->devices()[0];
    const BufferPtr x = put(device, four(1));
    ASSERT_EQ(x->defined().await().to_string(), "OK");
    EXPECT_EQ(x->to_literal().error().message(), kPlanned + std::string(fault));
    EXPECT_EQ(get(x), four(1));
    EXPECT_EQ(get(run(*labelled("the run"), x)), four(3));
  }
}

// Work whose queue cannot be made to wait is not done.
TEST_P(QueuesTest, AWaitThatFailsIsAnErrorOfTheWorkThatNeedsIt) {
  const auto layer = with_faults(GetParam(), holds, "wait@1");
  client = *Client::open(layer.backend);
  device = client->devices()[0];
  const auto executable = labelled("double", /*in_place=*/true);
  const BufferPtr x = put(device, four(2));
  const BufferPtr other = put(device, four(5));
  ASSERT_EQ(other->defined().await().to_string(), "OK");
  holds->hold("download");
  Literal of_x(four(0).shape());
  const Event downloaded = download(x, of_x);
  holds->await_begun("download");
  const BufferPtr y = run(*executable, x);
  while (layer.counts->calls(backend::FaultKind::kWait) == 0) std::this_thread::yield();
  holds->let_go("download");
  EXPECT_EQ(y->defined().await().message(), "a planned fault: wait");
  EXPECT_EQ(holds->begun("double"), 0);
  EXPECT_EQ(downloaded.await().to_string(), "OK");
  EXPECT_EQ(of_x, four(2));
  EXPECT_EQ(get(run(*executable, other)), four(10));
}

// The work behind it still begins after what it should have waited for: the download of its
// result behind the upload of its donated argument.
TEST(Queues, AWaitThatFailsKeepsTheOrderOfWhatFollows) {
  const auto holds = std::make_shared<Holds>();
  const auto layer = make_faults_layer(
      backend::make_validate_layer(std::make_shared<backend::HeldBackend>(3, holds)),
      backend::FaultPlan::parse("wait@1").value());
  const auto client = *Client::open(layer.backend);
  const auto executable = load(*client, twice_in_place());
  holds->hold("upload");
  const BufferPtr x = put(client->devices()[0], four(2));
  const auto made = executable->execute(std::vector{x});
  ASSERT_TRUE(made) << made.error().to_string();
  Literal result(four(0).shape());
  const Event downloaded = made->results[0]->copy_to_host(result.mutable_data());
  while (layer.counts->calls(backend::FaultKind::kWait) == 0) std::this_thread::yield();
  // Long enough for a download that does not wait.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  holds->let_all_go();
  EXPECT_EQ(made->done.await().message(), "a planned fault: wait");
  EXPECT_EQ(downloaded.await().message(), "a planned fault: wait");
}

// The device counts as lost while a copy is on its way: all who wait hear of it.
TEST_P(QueuesTest, LossWhileACopyIsOnItsWay) {
  for (const char* held : {"upload", "download"}) {
    const auto all_held = std::make_shared<backend::HeldBackend>(GetParam(), holds);
    client = *Client::open(all_held, limit_of(100));
    device = client->devices()[0];
    const auto executable = labelled("double", /*in_place=*/true);
    const BufferPtr x = put(device, four(2));
    ASSERT_EQ(x->defined().await().to_string(), "OK");
    holds->hold(held);
    const BufferPtr other = put(device, four(3));
    Literal of_x(four(0).shape());
    const Event downloaded = download(x, of_x);
    const BufferPtr y = run(*executable, x);
    const BufferPtr z = run(*executable, other);
    const Status lost(ErrorCode::kUnavailable,
                      "held:0: work took longer than the time limit of 100 ms; the device counts "
                      "as lost");
    // Work that came first on another queue may be done.
    const auto is_lost = [&](const Status& status) { return status == lost; };
    EXPECT_TRUE(is_lost(std::string_view(held) == "upload" ? other->defined().await()
                                                           : downloaded.await()));
    EXPECT_TRUE(
        is_lost(std::string_view(held) == "upload" ? z->defined().await() : y->defined().await()));
    for (const Event& each : {other->defined(), downloaded, y->defined(), z->defined()}) {
      const Status status = each.await();
      EXPECT_TRUE(status.ok() || is_lost(status)) << status.to_string();
    }
    EXPECT_EQ(device->drain(), lost);
    holds->let_go(held);
    client = *Client::open(all_held, limit_of(10'000));
    device = client->devices()[0];
    EXPECT_EQ(get(run(*labelled("the run"), put(device, four(1)))), four(3));
  }
}

// --- Any order

// Programs of uploads, executions, donations, copies and downloads on arrays whose values are
// known, on a device whose work takes random times.
class RandomRun {
 public:
  RandomRun(const std::shared_ptr<Client>& client, uint64_t seed)
      : device_(client->devices()[0]),
        random_(seed),
        reads_(load(*client, twice())),
        takes_(load(*client, twice_in_place())) {}

  // The first error of anything, and the number of wrong values.
  std::pair<Status, int> run(int steps) {
    for (int i = 0; i < steps && status_.ok(); ++i) step();
    while (!downloads_.empty()) finish_download();
    return {status_, wrong_};
  }

 private:
  struct Known {
    BufferPtr buffer;
    double value = 0;
  };
  struct Download {
    std::unique_ptr<Literal> to;
    Event done;
    double value = 0;
  };

  void step() {
    switch (random_.below(arrays_.empty() ? 1 : 7)) {
      case 0:
        return upload();
      case 1:
        return execute(*reads_, 3);
      case 2:
        return execute(*takes_, 2);
      case 3: {
        Known& from = any();
        auto copy = from.buffer->copy_to(device_, MemoryKind::kDevice);
        if (!copy) return note(copy.error());
        return keep({*copy, from.value});
      }
      case 4:
        std::swap(any(), arrays_.back());
        return arrays_.pop_back();
      case 5:
        return finish_download();
      default:
        return download();
    }
  }
  void upload() {
    const auto value = static_cast<double>(random_.between(1, 9));
    const Literal literal = four(value);
    HostArray array;
    array.data = literal.data().data();
    array.shape = literal.shape();
    auto made = buffer_from_host(device_, MemoryKind::kDevice, array);
    if (!made) return note(made.error());
    keep({made->buffer, value});
  }
  void execute(const Executable& executable, double factor) {
    Known& from = any();
    auto made = executable.execute(std::vector{from.buffer});
    if (!made) return note(made.error());
    const Known result = {made->results[0], from.value * factor};
    if (from.buffer->is_deleted()) {
      from = result;
    } else {
      keep(result);
    }
  }
  void download() {
    const Known& from = any();
    auto to = std::make_unique<Literal>(four(0).shape());
    const Event done = from.buffer->copy_to_host(to->mutable_data());
    downloads_.push_back({std::move(to), done, from.value});
  }
  void finish_download() {
    if (downloads_.empty()) return;
    const Download download = std::move(downloads_.front());
    downloads_.pop_front();
    note(download.done.await());
    if (status_.ok() && *download.to != four(download.value)) ++wrong_;
  }

  Known& any() { return arrays_[static_cast<size_t>(random_.below(std::ssize(arrays_)))]; }
  void keep(Known made) {
    // Values stay exact.
    if (made.value > 1e6) return;
    if (arrays_.size() > 8) {
      any() = std::move(made);
    } else {
      arrays_.push_back(std::move(made));
    }
  }
  void note(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const std::shared_ptr<Device> device_;
  Random random_;
  const std::shared_ptr<Executable> reads_;
  const std::shared_ptr<Executable> takes_;
  std::vector<Known> arrays_;
  std::deque<Download> downloads_;
  Status status_;
  int wrong_ = 0;
};

TEST(Queues, RandomProgramsGiveWhatOneQueueGives) {
  for (const uint32_t queues : {1U, 2U, 3U}) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(fmt::format("{} queues, seed {}", queues, seed));
      const auto holds = std::make_shared<Holds>();
      holds->delay(seed);
      const auto client = *Client::open(
          backend::make_validate_layer(std::make_shared<backend::HeldBackend>(queues, holds)));
      const auto [status, wrong] = RandomRun(client, seed).run(60);
      ASSERT_EQ(status.to_string(), "OK");
      ASSERT_EQ(wrong, 0);
    }
  }
}

// A host that makes no queue wait.
class Forgetful final : public backend::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    class Forgetting final : public backend::ForwardingDevice {
     public:
      using ForwardingDevice::ForwardingDevice;
      Status wait(uint32_t, backend::EventHandle) override { return {}; }
    };
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<Forgetting>(std::move(device));
  }
};

TEST(Queues, RandomProgramsWithoutWaitsAreFoundOut) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto holds = std::make_shared<Holds>();
    holds->delay(seed);
    const auto client = *Client::open(std::make_shared<Forgetful>(
        backend::make_validate_layer(std::make_shared<backend::HeldBackend>(2, holds))));
    const Status status = RandomRun(client, seed).run(60).first;
    found += static_cast<int>(status.message().find("validate: B20") != std::string::npos);
  }
  EXPECT_GE(found, 8);
}

// --- Layers

TEST(Queues, ARecordingReplaysOnOneQueue) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto holds = std::make_shared<Holds>();
    backend::RecordOptions options;
    options.path = fmt::format("{}/tenon_queues_test_{}.record", ::testing::TempDir(), getpid());
    {
      holds->delay(seed);
      auto layer = make_record_layer(std::make_shared<backend::HeldBackend>(3, holds), options);
      auto client = *Client::open(*std::move(layer));
      const auto [status, wrong] = RandomRun(client, seed).run(60);
      ASSERT_EQ(status.to_string(), "OK");
      ASSERT_EQ(wrong, 0);
    }
    ASSERT_TRUE(await_all_closed(10'000 * kMillisecond));
    const std::string file = read_file(options.path).value();
    const auto recording = backend::read_recording(file);
    ASSERT_TRUE(recording) << recording.error().to_string();
    backend::HeldBackend one_queue(1, holds);
    const auto report = backend::replay(*recording, one_queue, 0);
    ASSERT_TRUE(report) << report.error().to_string();
    EXPECT_GT(report->compared, 10);
    EXPECT_TRUE(report->differences.empty()) << report->differences[0].to_string();
    std::filesystem::remove(options.path);
  }
}

TEST(Queues, ATraceHasATrackForEach) {
  backend::TraceOptions options;
  options.path = fmt::format("{}/tenon_queues_test_{}.json", ::testing::TempDir(), getpid());
  const auto holds = std::make_shared<Holds>();
  {
    holds->delay(1);
    auto layer = make_trace_layer(
        backend::make_validate_layer(std::make_shared<backend::HeldBackend>(3, holds)), options);
    const auto client = *Client::open(*std::move(layer));
    const auto [status, wrong] = RandomRun(client, 1).run(60);
    ASSERT_EQ(status.to_string(), "OK");
    ASSERT_EQ(wrong, 0);
  }
  ASSERT_TRUE(await_all_closed(10'000 * kMillisecond));
  const std::string text = read_file(options.path).value();
  for (const char* track : {"queue 0", "queue 1", "queue 2", "copy host to device"}) {
    EXPECT_NE(text.find(track), std::string::npos) << track;
  }
  std::filesystem::remove(options.path);
}

}  // namespace
}  // namespace tenon::runtime
