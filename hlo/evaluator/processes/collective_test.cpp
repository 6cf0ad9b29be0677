// Process groups and collectives, compared with values computed by hand.
#include "hlo/evaluator/processes/grid_test_util.h"

namespace tenon::hlo {
namespace {

std::string with_main(const std::string& op, const std::string& from, const std::string& to) {
  return fmt::format(
      "func.func @main(%x: {0}) -> {1} {{\n  %r = {2} : ({0}) -> {1}\n  return %r : {1}\n}}\n",
      from, to, op);
}

constexpr const char* kAdd =
    "({\n  ^bb0(%a: tensor<i64>, %b: tensor<i64>):\n"
    "  %s = stablehlo.add %a, %b : tensor<i64>\n  stablehlo.return %s : tensor<i64>\n})";
// Neither commutative nor associative, so that it reveals the order of combination.
constexpr const char* kTwiceLeftMinusRight =
    "({\n  ^bb0(%a: tensor<i64>, %b: tensor<i64>):\n"
    "  %d = stablehlo.add %a, %a : tensor<i64>\n"
    "  %s = stablehlo.subtract %d, %b : tensor<i64>\n  stablehlo.return %s : tensor<i64>\n})";

std::string all_reduce(const std::string& attributes, const char* body = kAdd) {
  return with_main(fmt::format("\"stablehlo.all_reduce\"(%x) {} {{{}}}", body, attributes),
                   "tensor<1xi64>", "tensor<1xi64>");
}

constexpr const char* kChannel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>";

// --- Process groups, as in the examples of the specification

std::vector<std::string> group_texts(GroupStrategy strategy, const I64Matrix& ids,
                                     const GridExtent& extent) {
  const auto groups = process_groups(strategy, ids, extent);
  if (!groups) return {groups.error().message()};
  std::vector<std::string> texts;
  for (const ProcessGroup& group : *groups) {
    texts.emplace_back();
    for (const ProcessId id : group) texts.back() += to_string(id);
  }
  return texts;
}

TEST(ProcessGroups, CrossReplica) {
  const auto texts =
      group_texts(GroupStrategy::kCrossReplica, {2, 2, {0, 1, 2, 3}}, GridExtent{4, 2});
  const std::vector<std::string> expected{"(0, 0)(1, 0)", "(0, 1)(1, 1)", "(2, 0)(3, 0)",
                                          "(2, 1)(3, 1)"};
  EXPECT_EQ(texts, expected);
}

TEST(ProcessGroups, CrossPartition) {
  const auto texts = group_texts(GroupStrategy::kCrossPartition, {1, 2, {0, 1}}, GridExtent{4, 2});
  const std::vector<std::string> expected{"(0, 0)(0, 1)", "(1, 0)(1, 1)", "(2, 0)(2, 1)",
                                          "(3, 0)(3, 1)"};
  EXPECT_EQ(texts, expected);
}

TEST(ProcessGroups, CrossReplicaAndPartition) {
  const auto texts =
      group_texts(GroupStrategy::kCrossReplicaAndPartition, {2, 2, {0, 1, 2, 3}}, GridExtent{4, 2});
  const std::vector<std::string> expected{"(0, 0)(1, 0)(0, 1)(1, 1)", "(2, 0)(3, 0)(2, 1)(3, 1)"};
  EXPECT_EQ(texts, expected);
}

TEST(ProcessGroups, FlattenedIds) {
  const auto texts =
      group_texts(GroupStrategy::kFlattenedIds, {2, 4, {0, 1, 2, 3, 4, 5, 6, 7}}, GridExtent{4, 2});
  const std::vector<std::string> expected{"(0, 0)(0, 1)(1, 0)(1, 1)", "(2, 0)(2, 1)(3, 0)(3, 1)"};
  EXPECT_EQ(texts, expected);
}

TEST(ProcessGroups, NoGroupsAreOneGroupOfAll) {
  const std::vector<std::string> replicas{"(0, 0)(1, 0)", "(0, 1)(1, 1)"};
  EXPECT_EQ(group_texts(GroupStrategy::kCrossReplica, {}, GridExtent{2, 2}), replicas);
  const std::vector<std::string> all{"(0, 0)(1, 0)(0, 1)(1, 1)"};
  EXPECT_EQ(group_texts(GroupStrategy::kCrossReplicaAndPartition, {1, 0, {}}, GridExtent{2, 2}),
            all);
}

TEST(ProcessGroups, MinusOneFillsShortRows) {
  const std::vector<std::string> expected{"(0, 0)(1, 0)", "(2, 0)"};
  EXPECT_EQ(group_texts(GroupStrategy::kCrossReplica, {2, 2, {0, 1, 2, -1}}, GridExtent{3, 1}),
            expected);
}

TEST(ProcessGroups, AnIdOutsideTheGridIsAnError) {
  const std::vector<std::string> expected{
      "replica_groups names partition 2, expected one in [0, 2) on a grid of 4 x 2"};
  EXPECT_EQ(group_texts(GroupStrategy::kCrossPartition, {1, 2, {1, 2}}, GridExtent{4, 2}),
            expected);
}

// --- all_reduce over each kind of group

TEST(AllReduce, CrossReplicaAddsWithinAPartition) {
  const std::string text = all_reduce("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
  EXPECT_EQ(run_one(text, {2, 2}, numbers({1, 10, 100, 1000})),
            (Lists{{101}, {1010}, {101}, {1010}}));
}

TEST(AllReduce, CrossReplicaAndPartitionAddsAll) {
  const std::string text =
      all_reduce(fmt::format("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {}", kChannel));
  EXPECT_EQ(run_one(text, {2, 2}, numbers({1, 10, 100, 1000})),
            (Lists{{1111}, {1111}, {1111}, {1111}}));
}

TEST(AllReduce, FlattenedIdsNameProcesses) {
  const std::string text =
      all_reduce(fmt::format("replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>, {}, "
                             "use_global_device_ids",
                             kChannel));
  EXPECT_EQ(run_one(text, {2, 2}, numbers({1, 10, 100, 1000})),
            (Lists{{1001}, {110}, {110}, {1001}}));
}

TEST(AllReduce, UnequalGroups) {
  const std::string text =
      all_reduce("replica_groups = dense<[[0, 2, 3], [1, -1, -1]]> : tensor<2x3xi64>");
  EXPECT_EQ(run_one(text, {4, 1}, numbers({1, 10, 100, 1000})),
            (Lists{{1101}, {10}, {1101}, {1101}}));
}

TEST(AllReduce, NoGroupsAreAllReplicas) {
  const std::string text = all_reduce("replica_groups = dense<> : tensor<0x0xi64>");
  EXPECT_EQ(run_one(text, {3, 1}, numbers({1, 10, 100})), (Lists{{111}, {111}, {111}}));
}

TEST(AllReduce, CombinesInTheOrderOfTheGroup) {
  const std::string text =
      all_reduce("replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>", kTwiceLeftMinusRight);
  // 2 * (2 * 7 - 1) - 3
  EXPECT_EQ(run_one(text, {3, 1}, numbers({1, 3, 7})), (Lists{{23}, {23}, {23}}));
}

TEST(AllReduce, TheBodyMayPromote) {
  const std::string text = R"(
func.func @main(%x: tensor<2xi8>) -> tensor<2xi32> {
  %r = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
})";
  const EvalValue x = array({2}, {100, -100}, ElementType::kS8);
  EXPECT_EQ(run_one(text, {2, 1}, {x, x}), (Lists{{200, -200}, {200, -200}}));
}

TEST(AllReduce, RegionsMayUseValuesFromAround) {
  const std::string text = R"(
func.func @main(%x: tensor<1xi64>) -> tensor<1xi64> {
  %k = stablehlo.constant dense<5> : tensor<i64>
  %r = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %s = stablehlo.add %a, %b : tensor<i64>
      %t = stablehlo.add %s, %k : tensor<i64>
      stablehlo.return %t : tensor<i64>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<1xi64>) -> tensor<1xi64>
  return %r : tensor<1xi64>
})";
  EXPECT_EQ(run_one(text, {2, 1}, numbers({1, 2})), (Lists{{8}, {8}}));
}

TEST(AllReduce, QuantizedOperandsMeetAlthoughEachProcessWorksOnACopy) {
  const std::string text = R"(
func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5:1>>)
    -> tensor<2x!quant.uniform<i8:f32, 0.5:1>> {
  %r = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5:1>>, %b: tensor<!quant.uniform<i8:f32, 0.5:1>>):
      %s = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 0.5:1>>
      stablehlo.return %s : tensor<!quant.uniform<i8:f32, 0.5:1>>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<2x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<2x!quant.uniform<i8:f32, 0.5:1>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.5:1>>
})";
  // Values (q - 1) / 2: 1 + 2 = 3 and -1 + 0 = -1.
  EXPECT_EQ(run_one(text, {2, 1},
                    {array({2}, {3, -1}, ElementType::kS8), array({2}, {5, 1}, ElementType::kS8)}),
            (Lists{{7, -1}, {7, -1}}));
}

TEST(AllReduce, AProcessInNoGroupIsAnError) {
  std::string error;
  run_one(all_reduce("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"), {3, 1},
          numbers({1, 2, 3}), &error);
  EXPECT_EQ(
      error,
      "process (2, 0): stablehlo.all_reduce: process (2, 0) is in no group of replica_groups");
}

// A process that is not the root gets zeros: the zero point.
TEST(CollectiveReduce, QuantizedZeros) {
  const std::string text = R"(
func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 1.0:-100>>)
    -> tensor<2x!quant.uniform<i8:f32, 1.0:-100>> {
  %r = "stablehlo.collective_reduce"(%x) ({
    ^bb0(%a: tensor<!quant.uniform<i8:f32, 1.0:-100>>, %b: tensor<!quant.uniform<i8:f32, 1.0:-100>>):
      %s = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 1.0:-100>>
      stablehlo.return %s : tensor<!quant.uniform<i8:f32, 1.0:-100>>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<2x!quant.uniform<i8:f32, 1.0:-100>>) -> tensor<2x!quant.uniform<i8:f32, 1.0:-100>>
  return %r : tensor<2x!quant.uniform<i8:f32, 1.0:-100>>
})";
  // Values q + 100: 1 + 150, and 227 + 1, which saturates at 227.
  EXPECT_EQ(
      run_one(text, {2, 1},
              {array({2}, {-99, 127}, ElementType::kS8), array({2}, {50, -99}, ElementType::kS8)}),
      (Lists{{51, 127}, {-100, -100}}));
}

TEST(AllReduce, RegionsOfQuantizedOpsMayUseValuesFromAround) {
  const std::string text = R"(
func.func @main(%x: tensor<1x!quant.uniform<i8:f32, 0.5:1>>, %k: tensor<!quant.uniform<i8:f32, 0.5:1>>)
    -> tensor<1x!quant.uniform<i8:f32, 0.5:1>> {
  %r = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5:1>>, %b: tensor<!quant.uniform<i8:f32, 0.5:1>>):
      %s = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 0.5:1>>
      %t = stablehlo.add %s, %k : tensor<!quant.uniform<i8:f32, 0.5:1>>
      stablehlo.return %t : tensor<!quant.uniform<i8:f32, 0.5:1>>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<1x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<1x!quant.uniform<i8:f32, 0.5:1>>
  return %r : tensor<1x!quant.uniform<i8:f32, 0.5:1>>
})";
  const EvalValue k = array({}, {21}, ElementType::kS8);
  const auto outcomes =
      run_grid(text, {2, 1},
               {{array({1}, {3}, ElementType::kS8), k}, {array({1}, {5}, ElementType::kS8), k}});
  ASSERT_TRUE(outcomes) << outcomes.error().to_string();
  // 1 + 2 + 10 = 13 = (27 - 1) / 2
  EXPECT_EQ(integers((*outcomes)[0].results[0]), Integers{27});
  EXPECT_EQ(integers((*outcomes)[1].results[0]), Integers{27});
}

TEST(AllReduce, MeshAxesAreNotEvaluated) {
  std::string error;
  run_one(all_reduce("replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = "
                     "[#stablehlo.axis_ref<name = \"x\">]>"),
          {1, 1}, numbers({1}), &error);
  EXPECT_EQ(error, "stablehlo.all_reduce: replica_groups over mesh axes are not evaluated");
}

// Twenty rounds of adding over four replicas.
constexpr const char* kTwentyRounds = R"(
func.func @main(%x: tensor<1xi64>) -> tensor<1xi64> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i64>, tensor<1xi64>
    cond {
      %n = stablehlo.constant dense<20> : tensor<i64>
      %c = stablehlo.compare LT, %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = "stablehlo.all_reduce"(%v) ({
        ^bb0(%a: tensor<i64>, %b: tensor<i64>):
          %t = stablehlo.add %a, %b : tensor<i64>
          stablehlo.return %t : tensor<i64>
      }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}
          : (tensor<1xi64>) -> tensor<1xi64>
      %one = stablehlo.constant dense<1> : tensor<i64>
      %j = stablehlo.add %i, %one : tensor<i64>
      stablehlo.return %j, %s : tensor<i64>, tensor<1xi64>
    }
  return %r#1 : tensor<1xi64>
})";

TEST(AllReduce, ManyRoundsOnOneGroup) {
  const int64_t expected = 10 * (int64_t{1} << 38);  // (1 + 2 + 3 + 4) * 4^19
  EXPECT_EQ(run_one(kTwentyRounds, {4, 1}, numbers({1, 2, 3, 4})),
            (Lists{{expected}, {expected}, {expected}, {expected}}));
}

TEST(Grid, ProgressIsReportedByOneProcessAtATime) {
  const std::unique_ptr<Module> module = parse(kTwentyRounds);
  ASSERT_NE(module, nullptr);
  EvaluatorOptions options;
  int64_t calls = 0;  // not atomic: a race here would be the grid's
  options.progress = [&](int64_t) { return ++calls < 1000; };
  const std::vector<std::vector<ProcessProgram>> programs(
      4, {{module->find_function("main"), numbers({1})}});
  EXPECT_TRUE(run_processes(Evaluator(*module, options), programs));
  EXPECT_GE(calls, 4);

  options.progress = [](int64_t) { return false; };
  const auto cancelled = run_processes(Evaluator(*module, options), programs);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), ErrorCode::kCancelled);
}

TEST(Grid, SizesAreBounded) {
  const std::unique_ptr<Module> module = parse(kTwentyRounds);
  ASSERT_NE(module, nullptr);
  const ProcessProgram program{module->find_function("main"), numbers({1})};
  const Evaluator model(*module);
  const auto huge = run_processes(model, std::vector<std::vector<ProcessProgram>>(
                                             64, std::vector<ProcessProgram>(64, program)));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().message(), "a grid of 64 x 64 has more than 1024 processes");
  const auto ragged = run_processes(model, {{program, program}, {program}});
  ASSERT_FALSE(ragged);
  EXPECT_EQ(ragged.error().message(), "programs of 2 partitions for one replica and 1 for another");
}

// --- The other collectives

TEST(AllGather, ConcatenatesInTheOrderOfTheGroup) {
  const std::string text = with_main(
      R"("stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64,
          replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>})",
      "tensor<2x1xi64>", "tensor<2x2xi64>");
  EXPECT_EQ(run_one(text, {2, 1}, {array({2, 1}, {1, 2}), array({2, 1}, {3, 4})}),
            (Lists{{3, 1, 4, 2}, {3, 1, 4, 2}}));
}

TEST(AllGather, CrossReplicaAndPartition) {
  const std::string text =
      with_main(fmt::format(R"("stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {}}})",
                            kChannel),
                "tensor<1xi64>", "tensor<4xi64>");
  // By partition; each partition with all its replicas.
  const Integers expected{1, 3, 2, 4};
  EXPECT_EQ(run_one(text, {2, 2}, numbers({1, 2, 3, 4})),
            (Lists{expected, expected, expected, expected}));
}

TEST(AllGather, AResultThatDoesNotFitTheGridIsAnError) {
  const std::string text =
      with_main(fmt::format(R"("stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {}}})",
                            kChannel),
                "tensor<1xi64>", "tensor<4xi64>");
  std::string error;
  run_one(text, {2, 1}, numbers({1, 2}), &error);
  EXPECT_EQ(error, "process (0, 0): stablehlo.all_gather: result 0 is s64[2], expected s64[4]");
}

TEST(AllToAll, SplitsAndConcatenates) {
  const std::string text = with_main(
      R"("stablehlo.all_to_all"(%x) {split_dimension = 1 : i64, concat_dimension = 0 : i64,
          split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>})",
      "tensor<1x4xi64>", "tensor<2x2xi64>");
  EXPECT_EQ(run_one(text, {2, 1}, {array({1, 4}, {1, 2, 3, 4}), array({1, 4}, {5, 6, 7, 8})}),
            (Lists{{1, 2, 5, 6}, {3, 4, 7, 8}}));
}

TEST(AllToAll, CrossPartitionOnOneDimension) {
  const std::string text =
      with_main(fmt::format(R"("stablehlo.all_to_all"(%x) {{split_dimension = 0 : i64,
          concat_dimension = 0 : i64, split_count = 2 : i64,
          replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, {}}})",
                            kChannel),
                "tensor<2xi64>", "tensor<2xi64>");
  // Partition 1 is first in the group: it gets the first parts, its own before partition 0's.
  EXPECT_EQ(run_one(text, {1, 2}, {array({2}, {1, 2}), array({2}, {3, 4})}),
            (Lists{{4, 2}, {3, 1}}));
}

TEST(ReduceScatter, EachKeepsItsPart) {
  const std::string text =
      with_main(fmt::format(R"("stablehlo.reduce_scatter"(%x) {} {{scatter_dimension = 1 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}})",
                            kAdd),
                "tensor<2x4xi64>", "tensor<2x2xi64>");
  // The example of the specification.
  EXPECT_EQ(run_one(text, {2, 1},
                    {array({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}),
                     array({2, 4}, {9, 10, 11, 12, 13, 14, 15, 16})}),
            (Lists{{10, 12, 18, 20}, {14, 16, 22, 24}}));
}

TEST(CollectiveBroadcast, OthersGetZeros) {
  const std::string text = with_main(
      R"("stablehlo.collective_broadcast"(%x) {
          replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>})",
      "tensor<1xi64>", "tensor<1xi64>");
  EXPECT_EQ(run_one(text, {4, 1}, numbers({1, 2, 3, 4})), (Lists{{0}, {3}, {3}, {0}}));
}

TEST(CollectiveBroadcast, ZeroOfAQuantizedTypeIsItsZeroPoint) {
  const std::string text = with_main(
      R"("stablehlo.collective_broadcast"(%x) {
          replica_groups = dense<[[0]]> : tensor<1x1xi64>})",
      "tensor<1x!quant.uniform<i8:f32, 0.5:7>>", "tensor<1x!quant.uniform<i8:f32, 0.5:7>>");
  const EvalValue x = array({1}, {3}, ElementType::kS8);
  EXPECT_EQ(run_one(text, {2, 1}, {x, x}), (Lists{{3}, {7}}));
}

std::string dynamic_root_program(const std::string& op) {
  return fmt::format(R"(
func.func @main(%x: tensor<1xi64>, %y: tensor<1xi64>, %root: tensor<2xi32>)
    -> (tensor<1xi64>, tensor<1xi64>) {{
  %r:2 = {} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi32>) -> (tensor<1xi64>, tensor<1xi64>)
  return %r#0, %r#1 : tensor<1xi64>, tensor<1xi64>
}})",
                     op);
}

std::string run_dynamic_root(const std::string& op, const std::vector<Integers>& roots) {
  std::vector<std::vector<EvalValue>> arguments;
  for (size_t i = 0; i < roots.size(); ++i) {
    const auto x = static_cast<int64_t>(i) + 1;
    arguments.push_back(
        {array({1}, {x}), array({1}, {10 * x}), array({2}, roots[i], ElementType::kS32)});
  }
  const auto outcomes =
      run_grid(dynamic_root_program(op), {static_cast<int64_t>(roots.size()), 1}, arguments);
  if (!outcomes) return outcomes.error().message();
  std::string text;
  for (const ProcessOutcome& outcome : *outcomes) {
    text += fmt::format("{} {};", outcome.results[0]->integer(0), outcome.results[1]->integer(0));
  }
  return text;
}

constexpr const char* kDynamicBroadcast = R"("stablehlo.collective_broadcast"(%x, %y, %root) {
    replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>, has_dynamic_root})";

TEST(CollectiveBroadcast, DynamicRootsArePlacesInTheGroup) {
  EXPECT_EQ(run_dynamic_root(kDynamicBroadcast, {{0, 2}, {0, 2}, {0, 2}}), "3 20;3 20;3 20;");
}

TEST(CollectiveBroadcast, RootsMustAgreeAndBeInTheGroup) {
  // Each process detects the error; the report depends on which one fails first.
  EXPECT_NE(run_dynamic_root(kDynamicBroadcast, {{0, 2}, {1, 2}, {0, 2}})
                .find("stablehlo.collective_broadcast: root 0 is 0 in process (2, 0) and 1 in "
                      "process (1, 0)"),
            std::string::npos);
  EXPECT_NE(run_dynamic_root(kDynamicBroadcast, {{0, 3}, {0, 3}, {0, 3}})
                .find("stablehlo.collective_broadcast: root 1 is 3, expected one in [0, 3)"),
            std::string::npos);
}

TEST(CollectiveReduce, OnlyTheRootGetsTheResult) {
  const std::string text = with_main(fmt::format(R"("stablehlo.collective_reduce"(%x) {} {{
          replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}})",
                                                 kAdd),
                                     "tensor<1xi64>", "tensor<1xi64>");
  EXPECT_EQ(run_one(text, {3, 1}, numbers({1, 2, 4})), (Lists{{0}, {3}, {0}}));
}

TEST(CollectiveReduce, DynamicRoots) {
  const std::string op = fmt::format(R"("stablehlo.collective_reduce"(%x, %y, %root) {} {{
      replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>, has_dynamic_root}})",
                                     kAdd);
  EXPECT_EQ(run_dynamic_root(op, {{2, 1}, {2, 1}, {2, 1}}), "0 0;0 60;6 0;");
}

std::string permute(const std::string& attributes) {
  return with_main("\"stablehlo.collective_permute\"(%x) {" + attributes + "}", "tensor<1xi64>",
                   "tensor<1xi64>");
}

TEST(CollectivePermute, ProcessesWithoutASourceGetZeros) {
  EXPECT_EQ(run_one(permute("source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>"),
                    {3, 1}, numbers({1, 2, 3})),
            (Lists{{0}, {1}, {2}}));
}

TEST(CollectivePermute, ARing) {
  EXPECT_EQ(
      run_one(permute("source_target_pairs = dense<[[2, 0], [0, 1], [1, 2]]> : tensor<3x2xi64>"),
              {3, 1}, numbers({1, 2, 3})),
      (Lists{{3}, {1}, {2}}));
}

TEST(CollectivePermute, CrossPartitionWithinAReplica) {
  EXPECT_EQ(
      run_one(permute(fmt::format(
                  "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, {}", kChannel)),
              {2, 2}, numbers({1, 2, 3, 4})),
      (Lists{{2}, {1}, {4}, {3}}));
}

TEST(ProcessIds, ReplicaAndPartition) {
  const std::string text = R"(
func.func @main() -> (tensor<ui32>, tensor<ui32>) {
  %r = stablehlo.replica_id : tensor<ui32>
  %p = stablehlo.partition_id : tensor<ui32>
  return %r, %p : tensor<ui32>, tensor<ui32>
})";
  const auto outcomes = run_grid(text, {2, 3}, {});
  ASSERT_TRUE(outcomes) << outcomes.error().to_string();
  ASSERT_EQ(outcomes->size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ((*outcomes)[i].results[0]->integer(0), static_cast<int64_t>(i / 3));
    EXPECT_EQ((*outcomes)[i].results[1]->integer(0), static_cast<int64_t>(i % 3));
  }
}

TEST(Async, TheFutureHoldsTheResult) {
  const std::string text = R"(
func.func @main(%x: tensor<1xi64>) -> tensor<2xi64> {
  %f = "stablehlo.async_start"(%x) ({
    ^bb0(%a: tensor<1xi64>):
      %g = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<1xi64>) -> tensor<2xi64>
      "stablehlo.return"(%g) : (tensor<2xi64>) -> ()
  }) : (tensor<1xi64>) -> !stablehlo.future<tensor<2xi64>>
  %r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2xi64>>) -> tensor<2xi64>
  return %r : tensor<2xi64>
})";
  EXPECT_EQ(run_one(text, {2, 1}, numbers({1, 2})), (Lists{{1, 2}, {1, 2}}));
}

}  // namespace
}  // namespace tenon::hlo
