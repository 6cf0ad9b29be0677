// Plug-ins: loading, errors of plug-ins that cannot be loaded, and lookup by name.
#include "core/backend/registry/registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>

#include "core/backend/adapter/c_types.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/registry/tuning_file.h"
#include "core/base/file.h"
#include "core/kernel/text/text.h"

namespace tenon::backend {
namespace {

const std::string kPluginFolder = TENON_PLUGINS;

std::string error_of(const std::string& file) {
  const auto backend = load_plugin(kPluginFolder + "/" + file);
  if (backend) return "OK";
  std::string text = backend.error().message();
  for (size_t at = text.find(kPluginFolder + "/"); at != std::string::npos;
       at = text.find(kPluginFolder + "/")) {
    text.erase(at, kPluginFolder.size() + 1);
  }
  return text;
}

TEST(Plugin, WhatIsWrongIsSaid) {
  EXPECT_EQ(error_of("libtenon_interp.so"), "OK");
  EXPECT_EQ(error_of("none.so"), "there is no plug-in none.so");
  EXPECT_EQ(error_of("libbroken1.so"),
            "libbroken1.so is not a plug-in: it does not export tenon_plugin");
  EXPECT_EQ(error_of("libbroken2.so"),
            fmt::format("libbroken2.so: the plug-in was built for version 77.{0} of the interface, "
                        "this is 1.{0} (B3)",
                        TENON_ABI_MINOR));
  EXPECT_EQ(error_of("libbroken3.so"),
            fmt::format("libbroken3.so: the plug-in was built for version 1.99 of the interface, "
                        "this is 1.{} (B3)",
                        TENON_ABI_MINOR));
  EXPECT_EQ(error_of("libbroken4.so"),
            "libbroken4.so: the plug-in lacks required functions: devices, open, close, compile, "
            "load, unload, allocate, free, copy, launch, record, wait, await, release");
  EXPECT_EQ(error_of("libbroken5.so"),
            "libbroken5.so cannot start: the chip's driver is not installed");
  EXPECT_EQ(error_of("libbroken6.so"), "libbroken6.so cannot start: it gives no reason");
  EXPECT_EQ(error_of("libbroken7.so"),
            "libbroken7.so: the plug-in lacks required functions: devices, open, close, compile, "
            "load, unload, allocate, free, copy, launch, record, wait, await, release");
  EXPECT_EQ(error_of("libbroken8.so"),
            "libbroken8.so: two calls of tenon_plugin give two tables (B2)");
  const std::string text = error_of("core_runtime_test.p");
  EXPECT_TRUE(text.starts_with("core_runtime_test.p cannot be loaded: ")) << text;
}

TEST(Registry, ByNameAndByPath) {
  Registry registry("");
  EXPECT_EQ(registry.get("interp").value()->name(), "interp");
  EXPECT_EQ(registry.get("interp").value(), registry.get("interp").value());
  EXPECT_EQ(registry.get("none").error().message(),
            "there is no backend 'none'; there are interp (TENON_PLUGIN_PATH names plug-ins, or "
            "give the path of one)");
  const std::string path = kPluginFolder + "/libtenon_interp.so";
  const auto plugin = registry.get(path);
  ASSERT_TRUE(plugin) << plugin.error().to_string();
  EXPECT_EQ((*plugin)->name(), "interp");
  EXPECT_TRUE((*plugin)->takes_segments());
  EXPECT_FALSE(registry.get(kPluginFolder + "/libcalls.so").value()->takes_segments());
  // One file that is loaded twice is one backend.
  EXPECT_EQ(registry.get(kPluginFolder + "/../core/libtenon_interp.so").value(), *plugin);
  EXPECT_EQ(registry.add("interp", nullptr).message(),
            "there is a backend interp already (built in)");
  EXPECT_TRUE(
      registry
          .add("mine", [] { return Result<std::shared_ptr<Backend>>(make_interpreter_backend()); })
          .ok());
  EXPECT_TRUE(registry.get("mine"));
  EXPECT_EQ(registry.get("/nowhere/lib.so").error().message(),
            "there is no plug-in /nowhere/lib.so");
}

// If a plug-in has the name of a built-in backend, it is an error of the plug-in; the built-in one
// stays.
TEST(Registry, ListsWhatFailsToo) {
  Registry registry("/nowhere:" + kPluginFolder + "/libbroken5.so:" + kPluginFolder +
                    "/libtenon_interp.so");
  std::vector<std::string> lines;
  for (const Listed& each : registry.list()) {
    lines.push_back(each.name + ": " + (each.backend ? "OK" : each.backend.error().message()));
  }
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "interp: OK");
  EXPECT_TRUE(lines[1].ends_with("cannot start: the chip's driver is not installed"));
  EXPECT_TRUE(lines[2].starts_with("libtenon_interp.so: backend interp is built in and in "));
  EXPECT_EQ(lines[3], "nowhere: there is no plug-in /nowhere");
  EXPECT_TRUE(registry.is_built_in("interp"));
  EXPECT_FALSE(registry.is_built_in("nowhere"));
}

TEST(DeviceName, Parses) {
  const auto name = [](std::string_view text) {
    const auto parsed = parse_device_name(text);
    return parsed ? parsed->backend + " " + std::to_string(parsed->index)
                  : parsed.error().message();
  };
  EXPECT_EQ(name("chip"), "chip 0");
  EXPECT_EQ(name("chip:3"), "chip 3");
  EXPECT_EQ(name("/opt/x.so:12"), "/opt/x.so 12");
  EXPECT_EQ(name("chip:"), "'chip:' is not a device: the text after the ':' is not a number");
  EXPECT_EQ(name("chip:1x"), "'chip:1x' is not a device: the text after the ':' is not a number");
}

// --- The adapter

// A host of a newer release, whose structs are longer.
struct LongerArrayInfo {
  TenonArrayInfo known;
  uint64_t what_came_later;
};
std::vector<LongerArrayInfo> longer(const TenonArrayInfo* infos, size_t count) {
  std::vector<LongerArrayInfo> list;
  for (size_t i = 0; i < count; ++i) list.push_back({infos[i], ~uint64_t{0}});
  for (LongerArrayInfo& each : list) each.known.size = sizeof each;
  return list;
}
TenonCode describe_call_later(const TenonCall* call, TenonCallInfo* info) {
  static std::vector<LongerArrayInfo> operands;
  static std::vector<LongerArrayInfo> results;
  const TenonCode code = host_services()->describe_call(call, info);
  operands = longer(info->operands, info->operand_count);
  results = longer(info->results, info->result_count);
  info->operands = &operands.data()->known;
  info->results = &results.data()->known;
  return code;
}

// Interp, with a plan function that describes the call, or throws.
class Planner final : public ForwardingBackend {
 public:
  Planner() : ForwardingBackend(make_interpreter_backend()) {}
  Result<LibraryCallPlan> plan(const TargetInfo&, const LibraryCallSite& site) override {
    LibraryCallPlan plan;
    for (const auto& list : {site.operands, site.results}) {
      for (const Shape& each : list) plan.plan += each.to_string() + " ";
    }
    for (const bool constant : site.constant) plan.plan += constant ? "c" : "v";
    if (site.operands.size() == 1) throw 7;
    return plan;
  }
};

// A process exports one backend.
const TenonBackend* exported_interp() {
  static TenonHost host = *host_services();
  host.describe_call = describe_call_later;
  return export_backend(
      &host, nullptr, [] { return Result<std::shared_ptr<Backend>>(std::make_shared<Planner>()); });
}

kernel::Kernel kernel_of(const std::string& text) { return kernel::parse(text, "k").value(); }

// The table of an exported backend reports the same target as the backend.
TEST(Adapter, ATargetSurvivesTheTable) {
  TargetInfo target;
  target.name = "t";
  target.compiler_id = "c";
  target.features = kernel::TargetFeatures::parse("bf16,s64,u64,fma,scans").value();
  target.features.atomics = {ElementType::kS32};
  target.flushed = {ElementType::kF32};
  target.math = {{"exp", ElementType::kF32, 2}};
  target.features.math = true;
  target.compute_units = 8;
  target.most_lanes = 256;
  target.spaces.push_back({SpaceKind::kPinnedHost, false, true, 1 << 20, 128, true});
  target.flops = 1e9;
  target.tuning = {{"tile_k", 64}, {"two-stage", 0}};
  const CTarget c_target(target);
  const auto back = target_of(*c_target.get());
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(to_string(*back), to_string(target));
  EXPECT_EQ(to_string(target).substr(0, 24), "name t\ncompiler c\ntypes ");
}

// A struct of an older release is shorter; members that it lacks have their defaults (B1).
TEST(Adapter, AnOldersStructsAreRead) {
  TenonSpaceInfo space{sizeof space, TENON_SPACE_DEVICE, 1, 0, 0, 64, 0};
  TenonTargetInfo info{};
  info.size = offsetof(TenonTargetInfo, queues);
  info.name = "old";
  info.compiler_id = "1";
  info.spaces = &space;
  info.space_count = 1;
  info.queues = 7;  // Beyond its size.
  const auto target = target_of(info);
  ASSERT_TRUE(target) << target.error().to_string();
  EXPECT_EQ(target->queues, 1u);
  EXPECT_EQ(target->scratch_bytes, 48 << 10);
  EXPECT_TRUE(target->features.computed.contains(ElementType::kF32));
  EXPECT_FALSE(target->features.fma);
  space.host_visible = 1;
  space.host_writable = 1;
  EXPECT_TRUE(target_of(info)->spaces[0].host_writable);
  space.size = offsetof(TenonSpaceInfo, host_writable);
  EXPECT_TRUE(target_of(info)->spaces[0].host_visible);
  EXPECT_FALSE(target_of(info)->spaces[0].host_writable);
}

// The least that a plug-in in C states; `space` has to outlive it.
TenonTargetInfo target_with(const TenonSpaceInfo& space) {
  TenonTargetInfo info{};
  info.size = sizeof info;
  info.name = "t";
  info.compiler_id = "1";
  info.spaces = &space;
  info.space_count = 1;
  return info;
}

// 0 has meant the host's choice since version 1.0; none is a number of its own.
TEST(Adapter, ATargetWithoutScratchSaysSo) {
  TenonSpaceInfo space{sizeof space, TENON_SPACE_DEVICE, 1, 0, 0, 64, 0};
  TenonTargetInfo info = target_with(space);
  EXPECT_EQ(target_of(info)->scratch_bytes, 48 << 10);
  info.scratch_bytes = TENON_NO_SCRATCH;
  const auto none = target_of(info);
  ASSERT_TRUE(none) << none.error().to_string();
  EXPECT_EQ(none->scratch_bytes, 0);
  EXPECT_NE(to_string(*none).find("scratch_bytes 0\n"), std::string::npos);
  EXPECT_EQ(CTarget(*none).get()->scratch_bytes, TENON_NO_SCRATCH);
  info.scratch_bytes = -2;
  EXPECT_EQ(target_of(info).error().message(), "the target 't' is invalid: -2 is negative");
}

// A plug-in of version 1.1 has no parameters.
TEST(Adapter, ATargetWithoutTuningIsRead) {
  TargetInfo full;
  full.name = "t";
  full.compiler_id = "c";
  full.launch_seconds = 1e-5;
  full.tuning = {{"tile_k", 64}};
  const CTarget c_target(full);
  TenonTargetInfo info = *c_target.get();
  info.size = offsetof(TenonTargetInfo, tuning);
  const auto target = target_of(info);
  ASSERT_TRUE(target) << target.error().to_string();
  EXPECT_TRUE(target->tuning.empty());
  EXPECT_EQ(target->launch_seconds, 1e-5);
  info.size = sizeof info;
  info.launch_seconds = -1;
  EXPECT_EQ(target_of(info).error().message(),
            "the target 't' is invalid: a cost is negative or not a number");
  info.launch_seconds = 0;
  info.tuning = "tile_k = many";
  EXPECT_EQ(target_of(info).error().to_string(),
            "error: tuning: line 1: 'tile_k = many' is not of the form NAME = NUMBER");
}

TEST(Tuning, IsReadByLines) {
  const auto tuning = parse_tuning("# of the large chip\n tile_k=64\r\n\nlanes = 128 # a warp\n");
  ASSERT_TRUE(tuning) << tuning.error().to_string();
  EXPECT_EQ(*tuning, (std::vector<TuningValue>{{"tile_k", 64}, {"lanes", 128}}));
  EXPECT_EQ(to_string(*tuning), "tile_k = 64\nlanes = 128\n");
  EXPECT_EQ(*parse_tuning(to_string(*tuning)), *tuning);
  EXPECT_TRUE(parse_tuning("")->empty());
  for (const char* wrong : {"tile_k", "= 3", "a =", "a = 3 4", "a = 99999999999999999999"}) {
    EXPECT_FALSE(parse_tuning(std::string("\n") + wrong)) << wrong;
  }
  EXPECT_EQ(parse_tuning("\na = x").error().message(),
            "line 2: 'a = x' is not of the form NAME = NUMBER");
}

TEST(Tuning, StandsBesideThePlugin) {
  EXPECT_EQ(tuning_file_of("/lib/libchip.so"), "/lib/libchip.tuning");
  EXPECT_EQ(tuning_file_of("/lib/libchip.so.1.2"), "/lib/libchip.tuning");
  EXPECT_EQ(tuning_file_of("chip"), "chip.tuning");
}

TEST(Tuning, FilesHaveRatesToo) {
  const auto file = parse_tuning_file("flops = 2.5e9 # measured\ntile_k = 8\nlaunch_seconds=1e-6");
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->rates.flops, 2.5e9);
  EXPECT_EQ(file->rates.bytes_per_second, 0);
  EXPECT_EQ(file->tuning, (std::vector<TuningValue>{{"tile_k", 8}}));
  EXPECT_EQ(to_string(*file), "flops = 2.5e+09\nlaunch_seconds = 1e-06\ntile_k = 8\n");
  for (const char* wrong : {"flops", "flops = ", "flops = many", "flops = -1", "flops = inf"})
    EXPECT_FALSE(parse_tuning_file(wrong)) << wrong;
  EXPECT_EQ(parse_tuning_file("flops = 1\n\ntile_k").error().message(),
            "line 3: 'tile_k' is not of the form NAME = NUMBER");
}

// Each device of a plug-in has the parameters of the file next to the plug-in.
TEST(Tuning, IsReadFromAFileBesideThePlugin) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("tuning_{}", getpid());
  fs::create_directories(folder);
  const std::string plugin = (folder / "libtenon_interp.so").string();
  fs::copy_file(kPluginFolder + "/libtenon_interp.so", plugin,
                fs::copy_options::overwrite_existing);
  const auto tuning_of = [&]() -> Result<std::vector<TuningValue>> {
    TENON_ASSIGN(const auto backend, load_plugin(plugin));
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, backend->devices());
    return devices.back().target.tuning;
  };
  EXPECT_TRUE(tuning_of()->empty());
  ASSERT_TRUE(write_file((folder / "libtenon_interp.tuning").string(), "tile_k = 8\n").ok());
  EXPECT_EQ(*tuning_of(), (std::vector<TuningValue>{{"tile_k", 8}}));
  ASSERT_TRUE(write_file((folder / "libtenon_interp.tuning").string(), "flops = 4e9\n").ok());
  EXPECT_EQ(load_plugin(plugin).value()->devices()->back().target.flops, 4e9);
  ASSERT_TRUE(write_file((folder / "libtenon_interp.tuning").string(), "tile_k\n").ok());
  EXPECT_EQ(tuning_of().error().to_string(),
            "error: " + (folder / "libtenon_interp.tuning").string() +
                ": line 1: 'tile_k' is not of the form NAME = NUMBER");
  fs::remove_all(folder);
}

// A plug-in of version 1.0 has a table without the members of later versions (B1, B3).
TEST(Adapter, AnOldersTableIsRead) {
  TenonBackend table = *exported_interp();
  alignas(16) const std::array<std::byte, 16> host = {};
  const auto import = [&] {
    const auto backend = import_backend(&table);
    EXPECT_TRUE(backend) << backend.error().to_string();
    return backend.value()->open(0).value()->import_memory(0, host);
  };
  EXPECT_TRUE(import());
  table.size = offsetof(TenonBackend, import_memory);
  table.abi_minor = 0;
  EXPECT_EQ(import().error().code(), ErrorCode::kUnimplemented);
}

// A table of version 1.4 tells the end of an event alone.
TEST(Adapter, AnOldersEventsHaveNoStart) {
  TenonBackend table = *exported_interp();
  const auto times = [&]() -> Result<EventTimes> {
    const auto device = import_backend(&table).value()->open(0).value();
    TENON_ASSIGN(const EventHandle event, device->record(0));
    TENON_ASSIGN(const bool done, device->await(event, -1));
    EXPECT_TRUE(done);
    const Result<EventTimes> told = device->event_times(event);
    device->release(event);
    return told;
  };
  EXPECT_TRUE(times().value().start.has_value());
  table.size = offsetof(TenonBackend, event_start);
  table.abi_minor = 4;
  EXPECT_FALSE(times().value().start.has_value());
  EXPECT_GT(times().value().end, 0);
  table.event_time = nullptr;
  EXPECT_EQ(times().error().code(), ErrorCode::kUnimplemented);
}

// Arrays of a newer host are traversed by the size of its structs (B1).
TEST(Adapter, ANewersArraysAreRead) {
  const auto backend = import_backend(exported_interp()).value();
  const TargetInfo target = backend->devices().value()[0].target;
  const program::LibraryCall call = program::Contraction{{}, {}, {1}, {0}};
  const std::vector<Shape> operands = {Shape(ElementType::kF32, {2, 3}),
                                       Shape(ElementType::kBF16, {3, 5})};
  const std::vector<Shape> results = {Shape(ElementType::kF32, {2, 5})};
  const auto plan = backend->plan(target, {call, operands, results, {false, true}});
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->plan, "f32[2,3] bf16[3,5] f32[2,5] vc");
  const auto thrown = backend->plan(target, {call, {operands.data(), 1}, results, {false}});
  EXPECT_EQ(thrown.error(),
            Status(ErrorCode::kInternal, "the backend threw an object that is not an exception"));
}

// Impossible sizes, and answers that the rules forbid, are reported as errors.
TEST(Adapter, WhatAPluginMayNotSay) {
  TenonSpaceInfo space{0, TENON_SPACE_DEVICE, 1, 0, 0, 64};
  TenonTargetInfo info = target_with(space);
  EXPECT_EQ(target_of(info).error().message(), "B1: an element of an array states a size of 0");
  space.size = offsetof(TenonSpaceInfo, alignment);  // So it has no alignment.
  EXPECT_FALSE(target_of(info));

  static TenonEventState state;
  TenonBackend table = *exported_interp();
  table.await = [](TenonDevice, TenonEvent, int64_t, TenonEventState* to, const TenonSink*) {
    *to = state;
    return TENON_OK;
  };
  const auto device = (*import_backend(&table))->open(0).value();
  const EventHandle event = device->record(0).value();
  state = TENON_EVENT_ERROR;
  EXPECT_EQ(device->await(event, 0).error().message(), "B25: await answers OK of a failed event");
  state = TENON_EVENT_PENDING;
  EXPECT_FALSE(device->await(event, 0).value());
  EXPECT_FALSE(device->await(event, -1).value());
  state = TENON_EVENT_DONE;
  EXPECT_TRUE(device->await(event, -1).value());
}

// An error of the call says nothing about the event, which may be pending.
TEST(Adapter, AnErrorOfAwaitIsTheEventsIfItSaysSo) {
  static TenonEventState state;
  static TenonCode code;
  TenonBackend table = *exported_interp();
  table.await = [](TenonDevice, TenonEvent, int64_t, TenonEventState* to, const TenonSink* error) {
    *to = state;
    write(error, "the driver is busy");
    return code;
  };
  std::vector<std::string> logged;
  set_log([&](std::string_view line) { logged.emplace_back(line); });
  const auto device = (*import_backend(&table))->open(0).value();
  const EventHandle event = device->record(0).value();
  const auto answer = [&](TenonEventState of, TenonCode with) {
    state = of;
    code = with;
    const auto done = device->await(event, -1);
    return !done ? done.error().message() : *done ? "done" : "pending";
  };
  EXPECT_EQ(answer(TENON_EVENT_PENDING, TENON_INTERNAL), "pending");
  EXPECT_EQ(answer(TENON_EVENT_PENDING, TENON_RESOURCE_EXHAUSTED), "pending");
  EXPECT_EQ(answer(TENON_EVENT_ERROR, TENON_INTERNAL),
            "the driver is busy [interp:0: await, queue 0]");
  EXPECT_EQ(answer(TENON_EVENT_DONE, TENON_INTERNAL),
            "the driver is busy [interp:0: await, queue 0]");
  EXPECT_EQ(answer(TENON_EVENT_PENDING, TENON_UNAVAILABLE),
            "the driver is busy [interp:0: await, queue 0]");
  EXPECT_EQ(answer(TENON_EVENT_DONE, TENON_OK), "done");
  set_log([](std::string_view) {});
  EXPECT_EQ(logged,
            std::vector<std::string>{
                "interp: await fails: the driver is busy [interp:0: await, queue 0] (B25)"});
}

TEST(Host, ServicesForPlugins) {
  const TenonHost& host = *host_services();
  const kernel::Kernel kernel = kernel_of(
      "kernel @k(%x: in f32[4], %y: out f64[2,3], %n: scalar s32) index s32 grid(%i: 4, %j: 2) "
      "label \"of\" {\n}");
  TenonKernel handle;
  handle.kernel = &kernel;
  TenonKernelInfo info{};
  info.size = sizeof info;
  ASSERT_EQ(host.describe(&handle, &info), TENON_OK);
  EXPECT_STREQ(info.name, "k");
  EXPECT_STREQ(info.label, "of");
  ASSERT_EQ(info.buffer_count, 2u);
  EXPECT_STREQ(info.buffers[1].type, "f64");
  EXPECT_EQ(info.buffers[1].bytes, 48);
  EXPECT_EQ(info.buffers[1].reads, 0);
  EXPECT_EQ(info.scalar_count, 1u);
  EXPECT_EQ(info.grid_rank, 2u);
  EXPECT_EQ(info.grid[1], 2);
  // The kernel's name is reserved in OpenCL C: the source has the name that describe returns.
  kernel::Kernel constant = kernel;
  constant.name = "constant";
  TenonKernel named;
  named.kernel = &constant;
  ASSERT_EQ(host.describe(&named, &info), TENON_OK);
  EXPECT_STREQ(info.name, "k_constant");
  const TenonKernel* kernels[] = {&handle};
  SinkText source;
  SinkText error;
  EXPECT_EQ(host.render(kernels, 1, TENON_C, 0, source.sink(), error.sink()), TENON_OK);
  EXPECT_NE(source.take().find("void k("), std::string::npos);
  SinkText text;
  host.print(&handle, text.sink());
  EXPECT_EQ(text.take(), kernel::print(kernel));
  std::string logged;
  set_log([&](std::string_view line) { logged = line; });
  host.log("hello");
  set_log([](std::string_view) {});
  EXPECT_EQ(logged, "hello");
  std::atomic<size_t> sum = 0;
  host.parallel_for(
      100, [](void* context, size_t i) { *static_cast<std::atomic<size_t>*>(context) += i; }, &sum);
  EXPECT_EQ(sum, 4950u);
}

}  // namespace
}  // namespace tenon::backend
