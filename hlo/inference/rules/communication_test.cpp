#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

auto groups(int64_t rows, int64_t columns, I64s ids) {
  return set(AttrKey::replica_groups, I64Matrix{rows, columns, std::move(ids)});
}
const I64Matrix kPairs{2, 2, {0, 1, 2, 3}};
RegionDraft sum_of(const char* scalar) { return {{scalar, scalar}, {scalar}, true}; }

// Global device ids without a channel.
void ask_for_global_ids(Draft& d) { d.attributes[AttrKey::use_global_device_ids] = true; }
void use_channel(Draft& d) { d.attributes[AttrKey::channel_handle] = int64_t{1}; }

TEST(InferTokens, clauses) {
  check_clauses({OpCode::kAfterAll, {"token", "token"}, {}, {}, {}, {}}, "token",
                {{"no inputs", [](Draft& d) { d.operands = {}; }, "token"},
                 {"a tensor", [](Draft& d) { d.operands[1] = "f32[]"; },
                  "stablehlo.after_all: operand 1 is f32[], expected token"},
                 {"I1", [](Draft& d) { d.operands[1] = Type::tuple({}); },
                  "stablehlo.after_all: I1: operand 1 is tuple<>, expected a token"}});
  EXPECT_EQ(outcome({OpCode::kCreateToken, {}, {}, {}, {}, {}}), "token");
  for (const OpCode code : {OpCode::kPartitionId, OpCode::kReplicaId}) {
    EXPECT_EQ(outcome({code, {}, {}, {}, {}, {}}), "u32[]");
    EXPECT_EQ(outcome({code, {}, {}, {}, {"s32[]"}, {}}),
              fmt::format("{}: result type is s32[], expected u32[]", op_name(code)));
  }
}

TEST(InferInfeed, clauses) {
  check_clauses(
      {OpCode::kInfeed, {"token"}, {}, {}, {"f32[2]", "token"}, {}}, "f32[2], token",
      {{"I1", [](Draft& d) { d.operands = {"f32[]"}; },
        "stablehlo.infeed: I1: operand 0 is f32[], expected a token"},
       {"C1", [](Draft& d) { d.stated = {}; }, "stablehlo.infeed: C1: there are no results"},
       {"C2", [](Draft& d) { d.stated = {"token", "token"}; },
        "stablehlo.infeed: C2: result 0 is token, expected a tensor"},
       {"C3", [](Draft& d) { d.stated = {"f32[2]", "f32[2]"}; },
        "stablehlo.infeed: C3: the last result is f32[2], expected a token"},
       {"layout form", set(AttrKey::layout, ArrayAttr{int64_t{0}}),
        "stablehlo.infeed: layout holds something other than lists of integers"},
       {"layout", set(AttrKey::layout, ArrayAttr{I64s{0}, I64s{0}}),
        "stablehlo.infeed: layout has length 2, expected 1"}});
}

TEST(InferOutfeed, clauses) {
  check_clauses({OpCode::kOutfeed, {"f32[2]", "token"}, {}, {}, {}, {}}, "token",
                {{"I1", [](Draft& d) { d.operands[0] = "token"; },
                  "stablehlo.outfeed: I1: operand 0 is token, expected a tensor"},
                 {"I2", [](Draft& d) { d.operands.pop_back(); },
                  "stablehlo.outfeed: I2: operand 0 is f32[2], expected a token"},
                 {"no token", [](Draft& d) { d.operands = {}; },
                  "stablehlo.outfeed: has 0 operands, expected at least 1"}});
}

TEST(InferSendRecv, clauses) {
  const auto channel = [](int64_t type, bool is_host) {
    return [=](Draft& d) {
      d.attributes[AttrKey::channel_handle] = ChannelHandle{5, type};
      d.attributes[AttrKey::is_host_transfer] = is_host;
    };
  };
  check_clauses(
      {OpCode::kSend,
       {"f32[2]", "token"},
       {{AttrKey::channel_handle, ChannelHandle{5, 1}}, {AttrKey::source_target_pairs, kPairs}},
       {},
       {},
       {}},
      "token",
      {{"host", channel(2, true), "token"},
       {"I1", [](Draft& d) { d.operands[0] = "token"; },
        "stablehlo.send: I1: operand 0 is token, expected a tensor"},
       {"I2", [](Draft& d) { d.operands[1] = "f32[2]"; },
        "stablehlo.send: I2: operand 1 is f32[2], expected a token"},
       {"C1", set(AttrKey::source_target_pairs, I64Matrix{1, 3, {0, 1, 2}}),
        "stablehlo.send: C1: source_target_pairs has 3 columns, expected 2"},
       {"C2", set(AttrKey::source_target_pairs, I64Matrix{2, 2, {0, 1, 0, 2}}),
        "stablehlo.send: C2: source_target_pairs has source 0 twice"},
       {"C3", set(AttrKey::source_target_pairs, I64Matrix{2, 2, {0, 1, 2, 1}}),
        "stablehlo.send: C3: source_target_pairs has target 1 twice"},
       {"C4", set(AttrKey::source_target_pairs, I64Matrix{1, 2, {0, -1}}),
        "stablehlo.send: C4: source_target_pairs contains -1"},
       {"C5", channel(2, false),
        "stablehlo.send: C5: channel type is 2, expected 1 (DEVICE_TO_DEVICE) for no host "
        "transfer"},
       {"C5 host", channel(3, true),
        "stablehlo.send: C5: channel type is 3, expected 2 (DEVICE_TO_HOST) for a host transfer"}});
  check_clauses(
      {OpCode::kRecv,
       {"token"},
       {{AttrKey::channel_handle, ChannelHandle{5, 1}}},
       {},
       {"f32[2]", "token"},
       {}},
      "f32[2], token",
      {{"host", channel(3, true), "f32[2], token"},
       {"I1", [](Draft& d) { d.operands = {"f32[]"}; },
        "stablehlo.recv: I1: operand 0 is f32[], expected a token"},
       {"C1", set(AttrKey::source_target_pairs, I64Matrix{1, 1, {0}}),
        "stablehlo.recv: C1: source_target_pairs has 1 columns, expected 2"},
       {"C2", set(AttrKey::source_target_pairs, I64Matrix{2, 2, {0, 1, 0, 2}}),
        "stablehlo.recv: C2: source_target_pairs has source 0 twice"},
       {"C3", set(AttrKey::source_target_pairs, I64Matrix{2, 2, {0, 1, 2, 1}}),
        "stablehlo.recv: C3: source_target_pairs has target 1 twice"},
       {"C4", set(AttrKey::source_target_pairs, I64Matrix{1, 2, {-3, 1}}),
        "stablehlo.recv: C4: source_target_pairs contains -3"},
       {"C5", channel(2, true),
        "stablehlo.recv: C5: channel type is 2, expected 3 (HOST_TO_DEVICE) for a host transfer"},
       {"no token", [](Draft& d) { d.stated = {"f32[2]"}; },
        "stablehlo.recv: results are (f32[2]), expected a token at the end"},
       {"no tensor", [](Draft& d) { d.stated = {"token", "token"}; },
        "stablehlo.recv: result 0 is token, expected a tensor"}});
}

TEST(InferAllGather, clauses) {
  check_clauses(
      {OpCode::kAllGather,
       {"f32[2,3]", "s32[2,?]"},
       {{AttrKey::all_gather_dim, int64_t{1}},
        {AttrKey::replica_groups, I64Matrix{2, 2, {0, 2, 1, 3}}}},
       {},
       {},
       {}},
      "f32[2,6], s32[2,?]",
      {{"groups that span partitions",
        [](Draft& d) {
          use_channel(d);
          d.stated = {"f32[2,12]", "s32[2,8]"};
        },
        "f32[2,12], s32[2,8]"},
       {"mesh axes",
        [](Draft& d) {
          d.attributes[AttrKey::replica_groups] = OpaqueAttr{"#stablehlo.axes"};
          d.stated = {"f32[2,6]", "s32[2,8]"};
        },
        "f32[2,6], s32[2,8]"},
       {"C1", set(AttrKey::all_gather_dim, int64_t{2}),
        "stablehlo.all_gather: C1: all_gather_dim is 2, expected a value in [0, 2)"},
       {"C2", groups(2, 2, {0, 1, 1, 3}),
        "stablehlo.all_gather: C2: replica_groups contains 1 twice"},
       {"C4", groups(2, 2, {0, 1, 2, 4}),
        "stablehlo.all_gather: C4: replica_groups names 4 processes, but not 3"},
       {"C4 padded", groups(2, 2, {0, 1, 2, -1}),
        "stablehlo.all_gather: C4: replica_groups contains -1"},
       {"C5",
        [](Draft& d) {
          ask_for_global_ids(d);
          d.attributes[AttrKey::channel_handle] = int64_t{-1};
        },
        "stablehlo.all_gather: C5: use_global_device_ids is set and channel_id is -1, expected at "
        "least 0"},
       {"C6 multiple",
        [](Draft& d) {
          use_channel(d);
          d.stated = {"f32[2,4]", "s32[2,?]"};
        },
        "stablehlo.all_gather: C6: result 0 is f32[2,4], expected a multiple of 3 in dimension 1"},
       {"C6 overflow", [](Draft& d) { d.operands = {Type::tensor(ElementType::kS8, {1, kHuge})}; },
        "stablehlo.all_gather: C6: the size of dimension 1 overflows"},
       {"I1", [](Draft& d) { d.operands = {}; },
        "stablehlo.all_gather: I1: there are no operands"}});
}

TEST(InferAllReduce, clauses) {
  check_clauses(
      {OpCode::kAllReduce,
       {"f32[2]", "f32[3]"},
       {{AttrKey::replica_groups, I64Matrix{2, 2, {0, 1, 2, -1}}}},
       {sum_of("f32[]")},
       {},
       {}},
      "f32[2], f32[3]",
      {{"wider", [](Draft& d) { d.regions = {sum_of("f64[]")}; }, "f64[2], f64[3]"},
       {"C1", groups(1, 2, {0, 0}), "stablehlo.all_reduce: C1: replica_groups contains 0 twice"},
       {"C3", groups(1, 2, {1, 2}),
        "stablehlo.all_reduce: C3: replica_groups names 2 processes, but not 0"},
       {"C4", ask_for_global_ids,
        "stablehlo.all_reduce: C4: use_global_device_ids is set and channel_id is 0, expected at "
        "least 1"},
       {"C3 empty",
        [](Draft& d) {
          ask_for_global_ids(d);
          use_channel(d);
          groups(0, 0, {})(d);
        },
        "stablehlo.all_reduce: C3: use_global_device_ids is set and replica_groups is empty"},
       {"C5", [](Draft& d) { d.regions = {sum_of("s32[]")}; },
        "stablehlo.all_reduce: C5: region 0 returns s32[] as result 0, which f32 does not promote "
        "to"},
       {"C6", [](Draft& d) { d.stated = {"f32[2]", "f32[2]"}; },
        "stablehlo.all_reduce: C6: type of result 1 is f32[2], expected f32[3]"},
       {"C7", [](Draft& d) { d.stated = {"f64[2]", "f32[3]"}; },
        "stablehlo.all_reduce: C7: type of result 0 is f64[2], expected f32[2]"},
       {"matrix", groups(2, 2, {0, 1, 2}),
        "stablehlo.all_reduce: attribute replica_groups has the wrong form"}});
}

TEST(InferCrossReplicaSum, clauses) {
  check_clauses({OpCode::kCrossReplicaSum,
                 {"f32[2]"},
                 {{AttrKey::replica_groups, I64Matrix{1, 2, {0, 1}}}},
                 {},
                 {},
                 {}},
                "f32[2]",
                {{"twice", groups(1, 2, {1, 1}),
                  "stablehlo.cross-replica-sum: replica_groups contains 1 twice"}});
}

TEST(InferReduceScatter, clauses) {
  check_clauses(
      {OpCode::kReduceScatter,
       {"f32[2,6]"},
       {{AttrKey::scatter_dimension, int64_t{1}},
        {AttrKey::replica_groups, I64Matrix{1, 3, {0, 1, 2}}}},
       {sum_of("f32[]")},
       {},
       {}},
      "f32[2,2]",
      {{"groups that span partitions",
        [](Draft& d) {
          use_channel(d);
          d.stated = {"f32[2,1]"};
        },
        "f32[2,1]"},
       {"C1", [](Draft& d) { d.operands = {"f32[2,5]"}; },
        "stablehlo.reduce_scatter: C1: dimension 1 of f32[2,5] is not a multiple of the group size "
        "3"},
       {"C2", set(AttrKey::scatter_dimension, int64_t{-1}),
        "stablehlo.reduce_scatter: C2: scatter_dimension is -1, expected a value in [0, 2)"},
       {"C3", groups(1, 3, {0, 1, 1}),
        "stablehlo.reduce_scatter: C3: replica_groups contains 1 twice"},
       {"C5", groups(1, 3, {0, 1, 3}),
        "stablehlo.reduce_scatter: C5: replica_groups names 3 processes, but not 2"},
       {"C6", ask_for_global_ids,
        "stablehlo.reduce_scatter: C6: use_global_device_ids is set and channel_id is 0, expected "
        "at least 1"},
       {"C7", [](Draft& d) { d.regions = {sum_of("pred[]")}; },
        "stablehlo.reduce_scatter: C7: region 0 returns pred[] as result 0, which f32 does not "
        "promote to"},
       {"C8", [](Draft& d) { d.stated = {"f32[2,6]"}; },
        "stablehlo.reduce_scatter: C8: result type is f32[2,6], expected f32[2,2]"},
       {"C8 part",
        [](Draft& d) {
          use_channel(d);
          d.stated = {"f32[2,4]"};
        },
        "stablehlo.reduce_scatter: C8: result is f32[2,4], expected a part of f32[2,6] in "
        "dimension 1"},
       {"C9", [](Draft& d) { d.stated = {"f64[2,2]"}; },
        "stablehlo.reduce_scatter: C9: result type is f64[2,2], expected f32[2,2]"}});
}

TEST(InferAllToAll, clauses) {
  check_clauses(
      {OpCode::kAllToAll,
       {"f32[4,3]", "f32[2,?]"},
       {{AttrKey::split_dimension, int64_t{0}},
        {AttrKey::concat_dimension, int64_t{1}},
        {AttrKey::split_count, int64_t{2}},
        {AttrKey::replica_groups, I64Matrix{1, 2, {0, 1}}}},
       {},
       {},
       {}},
      "f32[2,6], f32[1,?]",
      {{"same dimension", set(AttrKey::concat_dimension, int64_t{0}), "f32[4,3], f32[2,?]"},
       {"C1", set(AttrKey::split_dimension, int64_t{2}),
        "stablehlo.all_to_all: C1: split_dimension is 2, expected a value in [0, 2)"},
       {"C2", [](Draft& d) { d.operands[1] = "f32[3,2]"; },
        "stablehlo.all_to_all: C2: dimension 0 of f32[3,2] is not a multiple of split_count 2"},
       {"C3", set(AttrKey::concat_dimension, int64_t{-1}),
        "stablehlo.all_to_all: C3: concat_dimension is -1, expected a value in [0, 2)"},
       {"C4", set(AttrKey::split_count, int64_t{0}),
        "stablehlo.all_to_all: C4: split_count is 0, expected at least 1"},
       {"C5", groups(1, 2, {0, 0}), "stablehlo.all_to_all: C5: replica_groups contains 0 twice"},
       {"C7", groups(1, 2, {0, 2}),
        "stablehlo.all_to_all: C7: replica_groups names 2 processes, but not 1"},
       {"C8 empty", groups(0, 2, {}),
        "stablehlo.all_to_all: C8: replica_groups has 0 groups of 2, expected split_count 2"},
       {"C8", groups(1, 3, {0, 1, 2}),
        "stablehlo.all_to_all: C8: replica_groups has 1 groups of 3, expected split_count 2"},
       {"C9", [](Draft& d) { d.stated = {"f32[4,3]", "f32[1,?]"}; },
        "stablehlo.all_to_all: C9: type of result 0 is f32[4,3], expected f32[2,6]"},
       {"C9 overflow",
        [](Draft& d) { d.operands = {Type::tensor(ElementType::kS8, {kDynamic, kHuge})}; },
        "stablehlo.all_to_all: C9: the size of dimension 1 overflows"}});
}

TEST(InferCollectiveBroadcast, clauses) {
  const auto make_dynamic = set(AttrKey::has_dynamic_root, true);
  check_clauses(
      {OpCode::kCollectiveBroadcast,
       {"f32[2]"},
       {{AttrKey::replica_groups, I64Matrix{1, 2, {2, 1}}}},
       {},
       {},
       {}},
      "f32[2]",
      {{"dynamic root",
        [=](Draft& d) {
          make_dynamic(d);
          d.operands.emplace_back("s32[1]");
        },
        "f32[2]"},
       {"C1", groups(1, 2, {2, 2}),
        "stablehlo.collective_broadcast: C1: replica_groups contains 2 twice"},
       {"C2", groups(1, 2, {2, -1}),
        "stablehlo.collective_broadcast: C2: replica_groups contains -1"},
       {"C3", [](Draft& d) { d.stated = {"f32[3]"}; },
        "stablehlo.collective_broadcast: C3: result type is f32[3], expected f32[2]"},
       {"C3 no operands", [](Draft& d) { d.operands = {}; },
        "stablehlo.collective_broadcast: C3: there are no operands"},
       {"C4", make_dynamic,
        "stablehlo.collective_broadcast: C4: there are 1 operands, expected data and roots"},
       {"C4 root",
        [=](Draft& d) {
          make_dynamic(d);
          d.operands.emplace_back("s32[2]");
        },
        "stablehlo.collective_broadcast: C4: the last operand is s32[2], expected s32[1], one root "
        "an operand"}});
}

TEST(InferCollectiveReduce, clauses) {
  check_clauses({OpCode::kCollectiveReduce,
                 {"f32[2]"},
                 {{AttrKey::replica_groups, I64Matrix{1, 2, {0, 1}}}},
                 {sum_of("f32[]")},
                 {},
                 {}},
                "f32[2]",
                {{"C1", groups(1, 2, {0, 0}),
                  "stablehlo.collective_reduce: C1: replica_groups contains 0 twice"},
                 {"C2", groups(1, 2, {0, 2}),
                  "stablehlo.collective_reduce: C2: replica_groups names 2 processes, but not 1"},
                 {"C3", [](Draft& d) { d.stated = {"f32[3]"}; },
                  "stablehlo.collective_reduce: C3: result type is f32[3], expected f32[2]"},
                 {"C3 roots",
                  [](Draft& d) {
                    d.attributes[AttrKey::has_dynamic_root] = true;
                    d.operands.emplace_back("s64[1]");
                  },
                  "stablehlo.collective_reduce: C3: the last operand is s64[1], expected s32[1], "
                  "one root an operand"},
                 {"C4", [](Draft& d) { d.regions = {sum_of("s32[]")}; },
                  "stablehlo.collective_reduce: C4: region 0 returns s32[] as result 0, which f32 "
                  "does not promote to"},
                 {"C4 result", [](Draft& d) { d.stated = {"f64[2]"}; },
                  "stablehlo.collective_reduce: C4: result type is f64[2], expected f32[2]"}});
}

TEST(InferCollectivePermute, clauses) {
  check_clauses(
      {OpCode::kCollectivePermute,
       {"f32[2]"},
       {{AttrKey::source_target_pairs, kPairs}},
       {},
       {},
       {}},
      "f32[2]",
      {{"C1", set(AttrKey::source_target_pairs, I64Matrix{1, 3, {0, 1, 2}}),
        "stablehlo.collective_permute: C1: source_target_pairs has 3 columns, expected 2"},
       {"C2", set(AttrKey::source_target_pairs, I64Matrix{2, 2, {0, 1, 0, 2}}),
        "stablehlo.collective_permute: C2: source_target_pairs has source 0 twice"},
       {"C3", set(AttrKey::source_target_pairs, I64Matrix{2, 2, {0, 1, 2, 1}}),
        "stablehlo.collective_permute: C3: source_target_pairs has target 1 twice"},
       {"C4", set(AttrKey::source_target_pairs, I64Matrix{1, 2, {-1, 1}}),
        "stablehlo.collective_permute: C4: source_target_pairs contains -1"},
       {"C5", [](Draft& d) { d.stated = {"f64[2]"}; },
        "stablehlo.collective_permute: C5: result type is f64[2], expected f32[2]"}});
}

TEST(InferAsyncDone, clauses) {
  check_clauses({OpCode::kAsyncDone, {Type::future({type_of("f32[2]")})}, {}, {}, {}, {}}, "f32[2]",
                {{"I1", [](Draft& d) { d.operands = {"f32[2]"}; },
                  "stablehlo.async_done: I1: operand is f32[2], expected a future"},
                 {"C1", [](Draft& d) { d.stated = {"f32[3]"}; },
                  "stablehlo.async_done: C1: result type is f32[3], expected f32[2]"}});
}

// async_start of `code` in a body over one operand.
std::string start_outcome(OpCode code, size_t count, const TypeArg& parameter,
                          const TypeArgs& stated = {}, const TypeArg& given = "f32[2]") {
  Module module;
  Computation& function = module.add_function("main");
  const Value operand = function.add_parameter(given.type);
  auto op = std::make_unique<Instruction>(OpCode::kAsyncStart, std::vector<Value>{operand},
                                          types_of(stated));
  Computation& body = op->add_region();
  Value value = body.add_parameter(parameter.type);
  for (size_t i = 0; i < count; ++i) {
    value = body.insert(std::make_unique<Instruction>(code, std::vector<Value>{value},
                                                      std::vector<Type>{value.type()}))
                ->result();
  }
  body.insert(
      std::make_unique<Instruction>(OpCode::kReturn, std::vector{value}, std::vector<Type>{}));
  const Instruction* made = function.insert(std::move(op));
  const Result<std::vector<Type>> types = infer_types(*made);
  if (!types) return types.error().message();
  const Status status = stated.empty() ? Status() : verify(*made);
  return status.ok() ? types_to_string(*types) : status.message();
}

TEST(InferAsyncStart, clauses) {
  EXPECT_EQ(start_outcome(OpCode::kCollectivePermute, 1, "f32[2]"), "future<f32[2]>");
  EXPECT_EQ(start_outcome(OpCode::kCollectivePermute, 0, "f32[2]"),
            "stablehlo.async_start: C1: body does not consist of one operation and a return");
  EXPECT_EQ(start_outcome(OpCode::kCollectivePermute, 2, "f32[2]"),
            "stablehlo.async_start: C1: body does not consist of one operation and a return");
  EXPECT_EQ(
      start_outcome(OpCode::kTanh, 1, "f32[2]"),
      "stablehlo.async_start: C2: body holds stablehlo.tanh, expected a collective or a slice");
  EXPECT_EQ(start_outcome(OpCode::kCollectivePermute, 1, "f32[3]"),
            "stablehlo.async_start: C3: region 0 takes (f32[3]), expected (f32[2])");
  EXPECT_EQ(
      start_outcome(OpCode::kCollectivePermute, 1, quantized({2}, 0.5), {}, quantized({2}, 2)),
      "stablehlo.async_start: C3: operand 0 is q<s8:f32, 2.0>[2], the body takes q<s8:f32, "
      "0.5>[2]");
  EXPECT_EQ(start_outcome(OpCode::kSlice, 1, "f32[2]", {"f32[2]"}),
            "stablehlo.async_start: C4: result type is f32[2], expected future<f32[2]>");
}

}  // namespace
}  // namespace tenon::hlo::testing
