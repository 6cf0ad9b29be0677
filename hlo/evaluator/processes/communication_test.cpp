// Channels, streams, programs without a grid and the calls of test programs; every wait that can
// never end must end in an error that says so.
#include <new>
#include <sstream>
#include <stdexcept>

#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/processes/grid_test_util.h"
#include "hlo/evaluator/processes/process.h"

namespace tenon::hlo {
namespace {

// Runs @main without a grid, as a test program that may call interpreter.* and check.*.
struct MainRun {
  Result<std::vector<EvalValue>> results = std::vector<EvalValue>{};
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  std::string printed;
  std::vector<std::vector<EvalValue>> outfeed;

  std::string error() const { return results ? "" : results.error().message(); }
};

MainRun run_main(const std::string& text, const std::vector<EvalValue>& arguments = {}) {
  MainRun run;
  const std::unique_ptr<Module> module = parse(text);
  if (module == nullptr) return run;
  Evaluator evaluator(*module);
  std::ostringstream out;
  install_checks(evaluator, &run.failures, &run.checks);
  install_run_parallel(evaluator, out);
  run.results = evaluator.run(*module->find_function("main"), arguments);
  run.printed = out.str();
  run.outfeed = evaluator.outfeed();
  return run;
}

// @a and @b, without arguments or results, as the two partitions of a grid.
std::string two_programs(const std::string& functions) {
  return functions +
         "\nfunc.func @main() {\n  \"interpreter.run_parallel\"() {programs = [[@a, @b]]} : () -> "
         "()"
         "\n  return\n}\n";
}

constexpr const char* kReduceOne = R"(
  %r = "stablehlo.all_reduce"(%x) ({
    ^bb0(%s: tensor<i64>, %t: tensor<i64>):
      %u = stablehlo.add %s, %t : tensor<i64>
      stablehlo.return %u : tensor<i64>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}
      : (tensor<i64>) -> tensor<i64>
)";

// --- send and recv

constexpr const char* kHostSend =
    "{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}"
    " : (tensor<i64>, !stablehlo.token) -> !stablehlo.token\n";
constexpr const char* kHostRecv =
    "{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}"
    " : (!stablehlo.token) -> (tensor<i64>, !stablehlo.token)\n";

TEST(SendRecv, AChannelKeepsItsOrder) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  %t = stablehlo.after_all : !stablehlo.token
  %x = stablehlo.constant dense<1> : tensor<i64>
  %y = stablehlo.constant dense<2> : tensor<i64>
  %t1 = "stablehlo.send"(%x, %t) {0}
  %t2 = "stablehlo.send"(%y, %t1) {0}
  %t3 = "stablehlo.send"(%x, %t2) {0}
  return
}}
func.func @b() {{
  %t = stablehlo.after_all : !stablehlo.token
  %x, %t1 = "stablehlo.recv"(%t) {1}
  %y, %t2 = "stablehlo.recv"(%t1) {1}
  %z, %t3 = "stablehlo.recv"(%t2) {1}
  check.expect_eq_const %x, dense<1> : tensor<i64>
  check.expect_eq_const %y, dense<2> : tensor<i64>
  check.expect_eq_const %z, dense<1> : tensor<i64>
  return
}})",
                                       kHostSend, kHostRecv);
  const MainRun run = run_main(two_programs(text));
  EXPECT_EQ(run.error(), "");
  EXPECT_EQ(run.checks, 3);
  EXPECT_TRUE(run.failures.empty());
}

constexpr const char* kShift = R"(
func.func @main(%x: tensor<1xi64>) -> tensor<1xi64> {
  %t = stablehlo.after_all : !stablehlo.token
  %t1 = "stablehlo.send"(%x, %t) {
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, is_host_transfer = false,
      source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}
      : (tensor<1xi64>, !stablehlo.token) -> !stablehlo.token
  %r, %t2 = "stablehlo.recv"(%t1) {
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, is_host_transfer = false,
      source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}
      : (!stablehlo.token) -> (tensor<1xi64>, !stablehlo.token)
  return %r : tensor<1xi64>
})";

TEST(SendRecv, BetweenDevicesFollowsThePairs) {
  EXPECT_EQ(run_one(kShift, {1, 3}, numbers({1, 2, 3})), (Lists{{0}, {1}, {2}}));
}

TEST(SendRecv, WhatComesMustHaveTheStatedType) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  %t = stablehlo.after_all : !stablehlo.token
  %x = stablehlo.constant dense<1> : tensor<i64>
  %t1 = "stablehlo.send"(%x, %t) {}
  return
}}
func.func @b() {{
  %t = stablehlo.after_all : !stablehlo.token
  %x, %t1 = "stablehlo.recv"(%t) {{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}}
      : (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
  return
}})",
                                       kHostSend);
  EXPECT_EQ(run_main(two_programs(text)).error(),
            "interpreter.run_parallel: process (0, 1): stablehlo.recv: result 0 is s64[], "
            "expected s64[2]");
}

// --- Ends of waiting

TEST(Deadlock, EachWaitsForTheOther) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  %t = stablehlo.after_all : !stablehlo.token
  %x, %t1 = "stablehlo.recv"(%t) {0}
  %t2 = "stablehlo.send"(%x, %t1) {1}
  return
}}
func.func @b() {{
  %x = stablehlo.constant dense<1> : tensor<i64>
  {2}
  return
}})",
                                       kHostRecv, kHostSend, kReduceOne);
  EXPECT_EQ(
      run_main(two_programs(text)).error(),
      "interpreter.run_parallel: process (0, 0): stablehlo.recv: deadlock, all processes that "
      "run wait: process (0, 0) in stablehlo.recv for a message on channel 1; process (0, 1) "
      "in stablehlo.all_reduce for process (0, 0)");
}

TEST(Deadlock, NobodySendsAnyMore) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  return
}}
func.func @b() {{
  %t = stablehlo.after_all : !stablehlo.token
  %x, %t1 = "stablehlo.recv"(%t) {}
  return
}})",
                                       kHostRecv);
  EXPECT_EQ(
      run_main(two_programs(text)).error(),
      "interpreter.run_parallel: process (0, 1): stablehlo.recv: deadlock, all processes that "
      "run wait: process (0, 1) in stablehlo.recv for a message on channel 1");
}

TEST(Deadlock, AMemberEndsWithoutTakingPart) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  return
}}
func.func @b() {{
  %x = stablehlo.constant dense<1> : tensor<i64>
  {}
  return
}})",
                                       kReduceOne);
  EXPECT_EQ(run_main(two_programs(text)).error(),
            "interpreter.run_parallel: process (0, 1): stablehlo.all_reduce: process (0, 0) ended "
            "without taking part");
}

TEST(Deadlock, ASourceEndsWithoutSending) {
  const std::string text = R"(
func.func @a() {
  return
}
func.func @b() {
  %t = stablehlo.after_all : !stablehlo.token
  %r, %t2 = "stablehlo.recv"(%t) {
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, is_host_transfer = false,
      source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (!stablehlo.token) -> (tensor<1xi64>, !stablehlo.token)
  return
})";
  EXPECT_EQ(
      run_main(two_programs(text)).error(),
      "interpreter.run_parallel: process (0, 1): stablehlo.recv: process (0, 0) ended without "
      "sending on channel 3");
}

TEST(Deadlock, AnErrorInOneEndsAll) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  stablehlo.custom_call @nobody() : () -> ()
  return
}}
func.func @b() {{
  %x = stablehlo.constant dense<1> : tensor<i64>
  {}
  return
}})",
                                       kReduceOne);
  const MainRun run = run_main(two_programs(text));
  EXPECT_EQ(run.error(),
            "interpreter.run_parallel: process (0, 0): stablehlo.custom_call: target @nobody is "
            "unknown to this device");
  EXPECT_EQ(run.results.error().position().line, 3u);
}

TEST(Deadlock, DifferentCollectivesThatMeet) {
  const std::string text = fmt::format(R"(
func.func @a() {{
  %x = stablehlo.constant dense<[1]> : tensor<1xi64>
  %r = "stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}}
      : (tensor<1xi64>) -> tensor<2xi64>
  return
}}
func.func @b() {{
  %x = stablehlo.constant dense<1> : tensor<i64>
  {}
  return
}})",
                                       kReduceOne);
  // The second process detects the error.
  const std::string error = run_main(two_programs(text)).error();
  EXPECT_NE(error.find("all must execute the same collectives in the same order"), error.npos)
      << error;
  EXPECT_NE(error.find("stablehlo.all_gather (test.mlir:4)"), error.npos) << error;
}

TEST(Deadlock, TwoCollectivesOfOneFunctionDoNotMeet) {
  const std::string text = fmt::format(R"(
func.func @main(%x: tensor<i64>) -> tensor<i64> {{
  %p = stablehlo.partition_id : tensor<ui32>
  %zero = stablehlo.constant dense<0> : tensor<ui32>
  %first = stablehlo.compare EQ, %p, %zero : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %y = "stablehlo.if"(%first) ({{
    {0}
    stablehlo.return %r : tensor<i64>
  }}, {{
    {0}
    stablehlo.return %r : tensor<i64>
  }}) : (tensor<i1>) -> tensor<i64>
  return %y : tensor<i64>
}})",
                                       kReduceOne);
  std::string error;
  run_one(text, {1, 2}, {array({}, {1}), array({}, {2})}, &error);
  EXPECT_NE(error.find("all must execute the same collectives in the same order"), error.npos)
      << error;
}

TEST(Programs, DifferentFunctionsMayMeet) {
  const std::string text = fmt::format(R"(
func.func @a() -> tensor<i64> {{
  %x = stablehlo.constant dense<1> : tensor<i64>
  {0}
  return %r : tensor<i64>
}}
func.func @b() -> tensor<i64> {{
  %x = stablehlo.constant dense<2> : tensor<i64>
  {0}
  return %r : tensor<i64>
}}
func.func @main() -> (tensor<i64>, tensor<i64>) {{
  %r:2 = "interpreter.run_parallel"() {{programs = [[@a, @b]]}} : () -> (tensor<i64>, tensor<i64>)
  return %r#0, %r#1 : tensor<i64>, tensor<i64>
}})",
                                       kReduceOne);
  const MainRun run = run_main(text);
  ASSERT_EQ(run.error(), "");
  EXPECT_EQ(integers((*run.results)[0]), Integers{3});
  EXPECT_EQ(integers((*run.results)[1]), Integers{3});
}

// --- Streams

constexpr const char* kDoubleInfeed = R"(
func.func @main() -> tensor<1xi64> {
  %t = stablehlo.after_all : !stablehlo.token
  %x, %t1 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<1xi64>, !stablehlo.token)
  %y, %t2 = "stablehlo.infeed"(%t1) : (!stablehlo.token) -> (tensor<1xi64>, !stablehlo.token)
  %s = stablehlo.subtract %y, %x : tensor<1xi64>
  %t3 = "stablehlo.outfeed"(%x, %y, %t2)
      : (tensor<1xi64>, tensor<1xi64>, !stablehlo.token) -> !stablehlo.token
  %t4 = "stablehlo.outfeed"(%s, %t3) : (tensor<1xi64>, !stablehlo.token) -> !stablehlo.token
  return %s : tensor<1xi64>
})";

TEST(Streams, EveryProcessReadsTheInfeedFromItsBeginning) {
  const auto outcomes = run_grid(kDoubleInfeed, {2, 1}, {}, {numbers({3}), numbers({10})});
  ASSERT_TRUE(outcomes) << outcomes.error().to_string();
  for (const ProcessOutcome& outcome : *outcomes) {
    EXPECT_EQ(integers(outcome.results[0]), Integers{7});
    ASSERT_EQ(outcome.outfeed.size(), 2u);
    ASSERT_EQ(outcome.outfeed[0].size(), 2u);
    EXPECT_EQ(integers(outcome.outfeed[0][0]), Integers{3});
    EXPECT_EQ(integers(outcome.outfeed[0][1]), Integers{10});
    ASSERT_EQ(outcome.outfeed[1].size(), 1u);
    EXPECT_EQ(integers(outcome.outfeed[1][0]), Integers{7});
  }
}

TEST(Streams, AnEmptyInfeedIsAnError) {
  const auto outcomes = run_grid(kDoubleInfeed, {1, 1}, {}, {numbers({3})});
  ASSERT_FALSE(outcomes);
  EXPECT_EQ(outcomes.error().message(),
            "stablehlo.infeed: the infeed is empty, all 1 elements were read");
  EXPECT_EQ(outcomes.error().code(), ErrorCode::kOutOfRange);
}

TEST(Streams, InfeedMustHaveTheStatedType) {
  const auto outcomes =
      run_grid(kDoubleInfeed, {1, 1}, {}, {{array({2}, {3, 4})}, {array({2}, {3, 4})}});
  ASSERT_FALSE(outcomes);
  EXPECT_EQ(outcomes.error().message(), "stablehlo.infeed: result 0 is s64[2], expected s64[1]");
}

// --- Without a grid

TEST(Alone, CollectivesOfOneAreIdentities) {
  const std::string text = R"(
func.func @main(%x: tensor<2xi64>)
    -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<ui32>) {
  %0 = "stablehlo.all_reduce"(%x) ({
    ^bb0(%s: tensor<i64>, %t: tensor<i64>):
      %u = stablehlo.add %s, %t : tensor<i64>
      stablehlo.return %u : tensor<i64>
  }) {replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<2xi64>) -> tensor<2xi64>
  %1 = "stablehlo.all_gather"(%0) {all_gather_dim = 0 : i64,
      replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<2xi64>) -> tensor<2xi64>
  %2 = "stablehlo.all_to_all"(%1) {split_dimension = 0 : i64, concat_dimension = 0 : i64,
      split_count = 1 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}
      : (tensor<2xi64>) -> tensor<2xi64>
  %3 = "stablehlo.collective_permute"(%2) {
      source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>} : (tensor<2xi64>) -> tensor<2xi64>
  %4 = "stablehlo.collective_permute"(%2) {
      source_target_pairs = dense<> : tensor<0x2xi64>} : (tensor<2xi64>) -> tensor<2xi64>
  %5 = stablehlo.partition_id : tensor<ui32>
  return %0, %1, %2, %3, %4, %5
      : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<ui32>
})";
  const MainRun run = run_main(text, {array({2}, {3, 4})});
  ASSERT_EQ(run.error(), "");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(integers((*run.results)[i]), (Integers{3, 4})) << i;
  EXPECT_EQ(integers((*run.results)[4]), (Integers{0, 0}));
  EXPECT_EQ(integers((*run.results)[5]), Integers{0});
}

TEST(Alone, ChannelsHaveNoPeer) {
  const std::string text = fmt::format(R"(
func.func @main(%x: tensor<i64>) {{
  %t = stablehlo.after_all : !stablehlo.token
  %t1 = "stablehlo.send"(%x, %t) {}
  return
}})",
                                       kHostSend);
  EXPECT_EQ(run_main(text, {array({}, {1})}).error(),
            "stablehlo.send: channel 1 has no peer, as this program runs alone");
}

TEST(Alone, ThereIsNoInfeed) {
  EXPECT_EQ(run_main(kDoubleInfeed).error(),
            "stablehlo.infeed: there is no infeed, as this program runs alone");
}

TEST(Alone, OutfeedIsKept) {
  const MainRun run = run_main(R"(
func.func @main(%x: tensor<1xi64>) {
  %t = stablehlo.after_all : !stablehlo.token
  %t1 = "stablehlo.outfeed"(%x, %t) : (tensor<1xi64>, !stablehlo.token) -> !stablehlo.token
  return
})",
                               numbers({5}));
  ASSERT_EQ(run.error(), "");
  ASSERT_EQ(run.outfeed.size(), 1u);
  EXPECT_EQ(integers(run.outfeed[0][0]), Integers{5});
}

// --- interpreter.* and check.* calls

TEST(RunParallel, ChecksAndPrintsWorkInsideProcesses) {
  const MainRun run = run_main(R"(
func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
  check.expect_eq_const %x, dense<[1, 2]> : tensor<2xi64>
  interpreter.print %x : tensor<2xi64>
  return %x : tensor<2xi64>
}
func.func @main(%x: tensor<2xi64>, %y: tensor<2xi64>) {
  %r:2 = "interpreter.run_parallel"(%x, %y) {programs = [[@f], [@f]]}
      : (tensor<2xi64>, tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
  return
})",
                               {array({2}, {1, 2}), array({2}, {1, 2})});
  ASSERT_EQ(run.error(), "");
  EXPECT_EQ(run.checks, 2);
  EXPECT_TRUE(run.failures.empty());
  EXPECT_EQ(run.printed, "tensor<2xi64> [1, 2]\ntensor<2xi64> [1, 2]\n");
}

TEST(RunParallel, ItsCallMustFitThePrograms) {
  const auto error_of = [](const std::string& call) {
    return run_main(
               "func.func @f(%x: tensor<i64>) -> tensor<i64> {\n  return %x : tensor<i64>\n}\n"
               "func.func @main(%x: tensor<i64>, %y: tensor<2xi64>) {\n  " +
                   call + "\n  return\n}\n",
               {array({}, {1}), array({2}, {1, 2})})
        .error();
  };
  const std::string prefix = "interpreter.run_parallel: ";
  EXPECT_EQ(error_of("\"interpreter.run_parallel\"() {programs = [[@f]]} : () -> ()"),
            prefix + "0 operands, expected more for @f");
  EXPECT_EQ(error_of("%r = \"interpreter.run_parallel\"(%y) {programs = [[@f]]} : "
                     "(tensor<2xi64>) -> tensor<i64>"),
            prefix + "operand 0 is s64[2], expected s64[] as argument 0 of @f");
  EXPECT_EQ(error_of("\"interpreter.run_parallel\"(%x) {programs = [[@f]]} : (tensor<i64>) -> ()"),
            prefix + "results are , expected s64[], those of all programs");
  EXPECT_EQ(error_of("\"interpreter.run_parallel\"() {programs = [[@g]]} : () -> ()"),
            prefix + "function @g is not defined");
  EXPECT_EQ(error_of("\"interpreter.run_parallel\"() {programs = []} : () -> ()"),
            prefix + "no programs to run");
}

TEST(RunParallel, AGridWithinAGridIsAnError) {
  EXPECT_EQ(run_main(R"(
func.func @f() {
  "interpreter.run_parallel"() {programs = [[@f]]} : () -> ()
  return
}
func.func @main() {
  "interpreter.run_parallel"() {programs = [[@f]]} : () -> ()
  return
})")
                .error(),
            "interpreter.run_parallel: interpreter.run_parallel: called by a process of "
            "interpreter.run_parallel");
}

TEST(Probe, ComparesWithWhatWasKept) {
  const MainRun run = run_main(R"(
func.func @main(%x: tensor<1xi64>, %y: tensor<1xi64>) {
  %a = interpreter.probe %x, probe_id = "p" : tensor<1xi64>
  %b = interpreter.probe %y, probe_id = "p" : tensor<1xi64>
  check.expect_serialized_eq %x, probe_id = "p" : tensor<1xi64>
  check.expect_serialized_eq %y, probe_id = "p", iter = 1 : tensor<1xi64>
  check.expect_serialized_eq %x, probe_id = "p", iter = 1 : tensor<1xi64>
  check.expect_serialized_eq %x, probe_id = "q" : tensor<1xi64>
  return
})",
                               numbers({1, 2}));
  ASSERT_EQ(run.error(), "");
  EXPECT_EQ(run.checks, 4);
  ASSERT_EQ(run.failures.size(), 2u);
  EXPECT_EQ(run.failures[0].text, "check.expect_serialized_eq: element [0] is 1, expected 2");
  EXPECT_EQ(run.failures[1].text,
            "check.expect_serialized_eq: probe \"q\" has kept 0 values, none for iter 0");
}

// An exception on a thread would end the program; the other processes get an error.
TEST(ProcessGrid, ABodyThatThrowsHasFailed) {
  const auto error_of = [](const std::function<Status(Process&)>& body) {
    return ProcessGrid({1, 2}).run(body).message();
  };
  EXPECT_EQ(error_of([](Process& process) -> Status {
              if (process.id().partition == 1) throw std::bad_alloc();
              return {};
            }),
            "process (0, 1): the host is out of memory");
  EXPECT_EQ(error_of([](Process& process) -> Status {
              if (process.id().partition == 0) throw std::runtime_error("no way");
              return {};
            }),
            "process (0, 0): an exception has left the process: no way");
}

}  // namespace
}  // namespace tenon::hlo
