// The extension Profiler, used as jaxlib does, and the message that it gives.
#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <thread>

#include "frameworks/pjrt/c_api/profiler_extension.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

// An XSpace as it was read: planes by name, and in them lines by name.
struct ReadEvent {
  std::string name;
  int64_t begin = 0;  // Picoseconds since 1970; rounded to nanoseconds.
  int64_t duration = 0;
  std::map<std::string, int64_t> integers;
  std::map<std::string, std::string> texts;
};
using ReadPlane = std::map<std::string, std::vector<ReadEvent>>;

std::map<int64_t, std::string> names_in(const std::vector<protozero::data_view>& entries) {
  std::map<int64_t, std::string> names;
  for (const protozero::data_view& entry : entries) {
    int64_t key = 0;
    std::string name;
    for (protozero::pbf_reader map(entry); map.next();) {
      if (map.tag() == 1) {
        key = map.get_int64();
        continue;
      }
      for (protozero::pbf_reader metadata(map.get_view()); metadata.next();) {
        if (metadata.tag() == 2) {
          name = metadata.get_string();
        } else {
          EXPECT_EQ(metadata.get_int64(), key);
        }
      }
    }
    names[key] = name;
  }
  return names;
}

ReadEvent event_in(protozero::data_view bytes, int64_t line_begin,
                   const std::map<int64_t, std::string>& events,
                   const std::map<int64_t, std::string>& stats) {
  ReadEvent event;
  for (protozero::pbf_reader reader(bytes); reader.next();) {
    if (reader.tag() == 1) {
      event.name = events.at(reader.get_int64());
    } else if (reader.tag() == 2) {
      event.begin = line_begin + reader.get_int64() / 1000;
    } else if (reader.tag() == 3) {
      event.duration = reader.get_int64();
    } else {
      std::string stat_name;
      for (protozero::pbf_reader stat(reader.get_view()); stat.next();) {
        if (stat.tag() == 1) {
          stat_name = stats.at(stat.get_int64());
        } else if (stat.tag() == 4) {
          event.integers[stat_name] = stat.get_int64();
        } else if (stat.tag() == 5) {
          event.texts[stat_name] = stat.get_string();
        } else {
          stat.skip();
        }
      }
    }
  }
  return event;
}

ReadPlane lines_in(const std::vector<protozero::data_view>& lines,
                   const std::map<int64_t, std::string>& events,
                   const std::map<int64_t, std::string>& stats) {
  ReadPlane read;
  for (const protozero::data_view& bytes : lines) {
    std::string name;
    int64_t begin = 0;
    std::vector<protozero::data_view> items;
    for (protozero::pbf_reader line(bytes); line.next();) {
      if (line.tag() == 2) {
        name = line.get_string();
      } else if (line.tag() == 3) {
        begin = line.get_int64();
      } else if (line.tag() == 4) {
        items.push_back(line.get_view());
      } else {
        line.skip();
      }
    }
    EXPECT_FALSE(read.contains(name)) << name;
    for (const protozero::data_view& item : items) {
      read[name].push_back(event_in(item, begin, events, stats));
    }
  }
  return read;
}

std::map<std::string, ReadPlane> planes_in(const std::string& space) {
  std::map<std::string, ReadPlane> planes;
  for (protozero::pbf_reader reader(space); reader.next(1);) {
    std::string name;
    std::vector<protozero::data_view> lines;
    std::vector<protozero::data_view> event_names;
    std::vector<protozero::data_view> stat_names;
    for (protozero::pbf_reader plane(reader.get_view()); plane.next();) {
      if (plane.tag() == 2) {
        name = plane.get_string();
      } else if (plane.tag() == 1) {
        plane.skip();
      } else {
        (plane.tag() == 3   ? lines
         : plane.tag() == 4 ? event_names
                            : stat_names)
            .push_back(plane.get_view());
      }
    }
    planes[name] = lines_in(lines, names_in(event_names), names_in(stat_names));
  }
  return planes;
}

const PLUGIN_Profiler_Api& profiler_api() {
  for (auto* each = api().extension_start; each != nullptr; each = each->next) {
    if (each->type == PJRT_Extension_Type_Profiler) {
      return *reinterpret_cast<const PJRT_Profiler_Extension*>(each)->profiler_api;
    }
  }
  ADD_FAILURE() << "there is no extension Profiler";
  abort();
}

// A profiler of the plug-in; like jaxlib's, without sizes in its arguments.
class Profiler {
 public:
  explicit Profiler(std::string options = "") {
    auto args = uninitialized<Create>();
    args.options = options.data();
    args.options_size = options.size();
    EXPECT_EQ(profiler_api().create(&args), nullptr);
    profiler_ = args.profiler;
  }
  ~Profiler() {
    PLUGIN_Profiler_Destroy_Args args = {0, profiler_};
    EXPECT_EQ(profiler_api().destroy(&args), nullptr);
  }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void start() {
    PLUGIN_Profiler_Start_Args args = {0, profiler_};
    EXPECT_EQ(profiler_api().start(&args), nullptr);
  }
  void stop() {
    PLUGIN_Profiler_Stop_Args args = {0, profiler_};
    EXPECT_EQ(profiler_api().stop(&args), nullptr);
  }
  // The data as one kind of caller copies it and the other takes it, which are the same.
  std::string data() {
    PLUGIN_Profiler_CollectData_Args args = {0, profiler_, nullptr, 77};
    EXPECT_EQ(profiler_api().collect_data(&args), nullptr);
    if (args.buffer_size_in_bytes == 0) return "";
    std::string taken(reinterpret_cast<const char*>(args.buffer), args.buffer_size_in_bytes);
    std::string copied(args.buffer_size_in_bytes, '\0');
    args.buffer = reinterpret_cast<uint8_t*>(copied.data());
    EXPECT_EQ(profiler_api().collect_data(&args), nullptr);
    EXPECT_EQ(args.buffer_size_in_bytes, copied.size());
    EXPECT_EQ(copied, taken);
    return copied;
  }
  std::map<std::string, ReadPlane> planes() { return planes_in(data()); }

 private:
  // Without a member of the type's size, uninitialized() would set what callers do not.
  using Create = PLUGIN_Profiler_Create_Args;
  template <class Args>
  static Args uninitialized() {
    Args args;
    std::memset(static_cast<void*>(&args), 0xa5, sizeof args);
    return args;
  }

  PLUGIN_Profiler* profiler_ = nullptr;
};

constexpr const char* kProfiled = R"(
module @jit_profiled {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    %1 = stablehlo.custom_call @Sharding(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.sine %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
})";

void run_often(PJRT_LoadedExecutable* executable, PJRT_Buffer* x, int times) {
  for (int i = 0; i < times; ++i) {
    std::vector<PJRT_Buffer*> results(1);
    PJRT_Event* done = nullptr;
    ASSERT_EQ(execute(executable, {x}, results, {}, &done), "");
    EXPECT_EQ(outcome(done), "");
    destroy(results[0]);
  }
}

std::vector<std::string> names_of(const std::vector<ReadEvent>& events) {
  std::vector<std::string> names;
  for (const ReadEvent& event : events) names.push_back(event.name);
  return names;
}

// jaxlib up to 0.10 crashes with a table of another size.
TEST(ProfilerTable, HasTheSizeThatEveryVersionTakes) {
  EXPECT_EQ(profiler_api().struct_size, 80u);
  EXPECT_EQ(sizeof(PLUGIN_Profiler_Api), 80u);
}

TEST(Profile, HasProgramsTransfersAndCompilations) {
  Client client("interp");
  Profiler profiler;
  PJRT_LoadedExecutable* before = client.compiled(kProfiled);
  profiler.start();
  PJRT_LoadedExecutable* executable = client.compiled(kProfiled);
  PJRT_Buffer* x = client.floats({1, 2, 3, 4}, {4});
  run_often(executable, x, 3);
  EXPECT_EQ(values<float>(x).size(), 4u);
  profiler.stop();
  run_often(executable, x, 2);  // Not recorded.
  const auto planes = profiler.planes();
  ASSERT_EQ(planes.size(), 1u);
  EXPECT_EQ(planes.begin()->first, "/device:CUSTOM:interp:0");
  const ReadPlane& plane = planes.begin()->second;
  EXPECT_EQ(names_of(plane.at("XLA Modules")), std::vector<std::string>(3, "jit_profiled"));
  EXPECT_EQ(names_of(plane.at("Compilations")), std::vector<std::string>{"jit_profiled"});
  std::multiset<std::string> transfers;
  for (const auto& [line, events] : plane) {
    if (!line.starts_with("Transfers")) continue;
    for (const ReadEvent& event : events) {
      transfers.insert(event.name);
      EXPECT_EQ(event.integers.at("bytes_accessed"), 16);
    }
  }
  EXPECT_EQ(transfers, (std::multiset<std::string>{"device to host", "host to device"}));
  EXPECT_FALSE(plane.contains("XLA Ops"));
  destroy(x);
  destroy(before);
  destroy(executable);
}

TEST(Profile, HasTheTimesOfTheWork) {
  Client client("interp");
  PJRT_LoadedExecutable* executable = client.compiled(kProfiled);
  PJRT_Buffer* x = client.floats({1, 2, 3, 4}, {4});
  Profiler profiler;
  const auto since_1970 = [] {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  profiler.start();
  const int64_t begin = since_1970();
  run_often(executable, x, 4);
  const int64_t end = since_1970();
  profiler.stop();
  const auto planes = profiler.planes();
  const std::vector<ReadEvent>& events = planes.begin()->second.at("XLA Modules");
  ASSERT_EQ(events.size(), 4u);
  constexpr int64_t kAllowed = 1'000'000'000;  // A host's clock may be set meanwhile.
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_GE(events[i].begin, begin - kAllowed);
    EXPECT_LE(events[i].begin + events[i].duration / 1000, end + kAllowed);
    EXPECT_GE(events[i].duration, 0);
    if (i == 0) continue;
    EXPECT_GE(events[i].begin, events[i - 1].begin + events[i - 1].duration / 1000);
  }
  destroy(x);
  destroy(executable);
}

TEST(Profile, HasTheStepsOfADeviceThatWasOpenedForIt) {
  Client client("interp", "", "1", {option("profile", "steps")});
  PJRT_LoadedExecutable* executable = client.compiled(kProfiled);
  PJRT_Buffer* x = client.floats({1, 2, 3, 4}, {4});
  Profiler profiler;
  profiler.start();
  run_often(executable, x, 5);
  profiler.stop();
  const auto planes = profiler.planes();
  ASSERT_EQ(planes.size(), 1u);
  const ReadPlane& plane = planes.begin()->second;
  const std::vector<ReadEvent>& programs = plane.at("XLA Modules");
  const std::vector<ReadEvent>& steps = plane.at("XLA Ops");
  ASSERT_EQ(programs.size(), 5u);
  ASSERT_EQ(steps.size() % 5, 0u);
  ASSERT_GE(steps.size(), 5u);
  for (const ReadEvent& step : steps) {
    EXPECT_FALSE(step.texts.at("kernel").empty());
    EXPECT_EQ(step.integers.at("bytes_accessed"), 32) << step.name;
    const auto of_program = [&](const ReadEvent& program) {
      return step.begin >= program.begin && step.begin <= program.begin + program.duration / 1000;
    };
    EXPECT_TRUE(std::ranges::any_of(programs, of_program)) << step.name;
  }
  destroy(x);
  destroy(executable);
}

TEST(Profile, RefusesAnUnknownKind) {
  std::vector<PJRT_NamedValue> options = {option("device", "interp"), option("profile", "all")};
  auto args = uninitialized<PJRT_Client_Create_Args>();
  args.create_options = options.data();
  args.num_options = options.size();
  EXPECT_EQ(take(api().PJRT_Client_Create(&args)),
            "3: a profile of 'all'; there are 'programs' and 'steps'");
}

TEST(Profile, OfTwoProfilersAtOnceHasEachPieceOfWorkOnce) {
  Client client("interp");
  PJRT_LoadedExecutable* executable = client.compiled(kProfiled);
  PJRT_Buffer* x = client.floats({1, 2, 3, 4}, {4});
  Profiler first;
  Profiler second;
  first.start();
  run_often(executable, x, 1);
  second.start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { run_often(executable, x, 10); });
  for (std::thread& thread : threads) thread.join();
  first.stop();
  run_often(executable, x, 1);
  second.stop();
  second.stop();
  EXPECT_EQ(first.planes().begin()->second.at("XLA Modules").size(), 41U);
  EXPECT_EQ(second.planes().begin()->second.at("XLA Modules").size(), 1U);
  destroy(x);
  destroy(executable);
}

TEST(Profile, BeginsAnew) {
  Client client("interp");
  PJRT_LoadedExecutable* executable = client.compiled(kProfiled);
  PJRT_Buffer* x = client.floats({1, 2, 3, 4}, {4});
  Profiler profiler;
  EXPECT_EQ(profiler.data(), "");
  for (int times = 1; times <= 2; ++times) {
    profiler.start();
    run_often(executable, x, times);
    profiler.stop();
    const auto planes = profiler.planes();
    EXPECT_EQ(planes.begin()->second.at("XLA Modules").size(), static_cast<size_t>(times));
  }
  profiler.start();  // Without a stop.
  destroy(x);
  destroy(executable);
}

// Options as JAX sends them: a version, and a level of devices, which 0 leaves out.
TEST(Profile, IsEmptyIfTheOptionsAskForNoDevices) {
  const std::string version = {5 << 3, 1};
  const std::string level = {3 << 3, 1};
  Client client("interp");
  PJRT_LoadedExecutable* executable = client.compiled(kProfiled);
  PJRT_Buffer* x = client.floats({1, 2, 3, 4}, {4});
  for (const auto& [options, is_wanted] :
       {std::pair(version, false), std::pair(version + level, true), std::pair(level, true),
        std::pair(std::string("\xff"), true)}) {
    Profiler profiler(options);
    profiler.start();
    run_often(executable, x, 1);
    profiler.stop();
    EXPECT_EQ(!profiler.data().empty(), is_wanted);
  }
  destroy(x);
  destroy(executable);
}

}  // namespace
}  // namespace tenon::pjrt::testing
