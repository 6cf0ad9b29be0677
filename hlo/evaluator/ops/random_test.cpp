// rng and rng_bit_generator. The test vectors are the known answers of the generators' paper.
#include <cmath>
#include <set>

#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::constant;
using testing::eval;
using testing::run;

std::string bits(std::string_view algorithm, std::string_view state_type, std::string_view state,
                 std::string_view result) {
  const std::string types = fmt::format("{}, {}", state_type, result);
  return eval(constant("s", state_type, state) +
                  fmt::format("%r:2 = stablehlo.rng_bit_generator(%s) {{rng_algorithm = {}}} : {}",
                              algorithm, types),
              "%r#0, %r#1", types);
}
std::string list(const std::vector<uint64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
  return text + "]";
}
std::string answer(const std::vector<uint64_t>& state, const std::vector<uint64_t>& values) {
  return list(state) + "; " + list(values);
}

TEST(ThreeFry, KnownAnswersAsU64) {
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0, 0]", "u64[1]"), answer({0, 1}, {0x99BA4EFE6B200159u}));
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF]", "u64[1]"),
            answer({~uint64_t{0}, 0}, {0xBB002BE71CB996FCu}));
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0x0370734413198A2E, 0x85A308D3243F6A88]", "u64[1]"),
            answer({0x0370734413198A2Eu, 0x85A308D3243F6A89u}, {0x483DF7A0C4923A9Cu}));
}

TEST(ThreeFry, NarrowerOutputsShareABlock) {
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0, 0]", "u32[2]"),
            answer({0, 1}, {0x6B200159u, 0x99BA4EFEu}));
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0, 0]", "u8[2]"), answer({0, 1}, {0x59u, 0xFEu}));
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0, 0]", "u32[]"), "[0, 1]; 1797259609");
  EXPECT_EQ(bits("THREE_FRY", "u64[2]", "[0, 0]", "u32[0]"), "[0, 0]; []");
}

TEST(ThreeFry, TheFirstEvenDimensionIsSplitInPairs) {
  const auto flat =
      run(constant("s", "u64[2]", "[5, 7]") +
              "%r:2 = stablehlo.rng_bit_generator(%s) {rng_algorithm = THREE_FRY} : u64[2], u64[6]",
          "%r#1", "u64[6]");
  const auto split = run(
      constant("s", "u64[2]", "[5, 7]") +
          "%r:2 = stablehlo.rng_bit_generator(%s) {rng_algorithm = THREE_FRY} : u64[2], u32[3,4]",
      "%r#1", "u32[3,4]");
  ASSERT_TRUE(flat && split);
  for (int64_t block = 0; block < 6; ++block) {
    const auto both = static_cast<uint64_t>((*flat)[0].get_integer(block));
    EXPECT_EQ((*split)[0].get_integer(2 * block), static_cast<int64_t>(both & 0xFFFFFFFF));
    EXPECT_EQ((*split)[0].get_integer(2 * block + 1), static_cast<int64_t>(both >> 32));
  }
}

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(bits("PHILOX", "u64[3]", "[0, 0, 0]", "u32[4]"),
            answer({0, 1, 0}, {0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}));
  EXPECT_EQ(bits("PHILOX", "u64[3]", "[0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF]",
                 "u32[4]"),
            answer({~uint64_t{0}, 0, 0}, {0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}));
  EXPECT_EQ(bits("PHILOX", "u64[3]", "[0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E]",
                 "u32[4]"),
            answer({0x299F31D0A4093822u, 0x85A308D3243F6A89u, 0x0370734413198A2Eu},
                   {0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}));
}

TEST(Philox, TwoWordsOfStateAndOtherOutputs) {
  EXPECT_EQ(bits("PHILOX", "u64[2]", "[0, 0]", "u64[2]"),
            answer({0, 1}, {0xE169C58D6627E8D5u, 0x9B00DBD8BC57AC4Cu}));
  EXPECT_EQ(bits("PHILOX", "u64[2]", "[0, 0]", "u16[3]"),
            answer({0, 1}, {0xE8D5u, 0xC58Du, 0xAC4Cu}));
  EXPECT_EQ(bits("DEFAULT", "u64[2]", "[0, 0]", "u32[1]"), answer({0, 1}, {0x6627E8D5u}));
  // The numbers that JAX 0.10.2 draws on its CPU.
  EXPECT_EQ(bits("PHILOX", "u64[2]", "[0x200000001, 0x400000003]", "u32[5]"),
            answer({0x200000001u, 0x400000005u},
                   {512747620u, 1298009047u, 1267190206u, 761827841u, 1383286907u}));
}

TEST(RngBitGenerator, LaterCallsGoOnWhereTheFirstEnded) {
  for (const char* algorithm : {"THREE_FRY", "PHILOX"}) {
    const std::string one = fmt::format(
        "%r:2 = stablehlo.rng_bit_generator(%s) {{rng_algorithm = {}}} : u64[2], u32[8]\n",
        algorithm);
    const std::string two = fmt::format(
        "%a:2 = stablehlo.rng_bit_generator(%s) {{rng_algorithm = {}}} : u64[2], u32[4]\n"
        "%b:2 = stablehlo.rng_bit_generator(%a#0) {{rng_algorithm = {}}} : u64[2], u32[4]\n"
        "%r = stablehlo.concatenate(%a#1, %b#1) {{dimension = 0}} : u32[8]",
        algorithm, algorithm);
    const std::string state = constant("s", "u64[2]", "[3, 4]");
    EXPECT_EQ(eval(state + one, "%r#1", "u32[8]"), eval(state + two, "%r", "u32[8]")) << algorithm;
  }
}

// --- rng

Result<std::vector<Literal>> rng(std::string_view type, std::string_view a, std::string_view b,
                                 std::string_view distribution, uint64_t seed = 0) {
  const std::string scalar = fmt::format("{}[]", type);
  EvaluatorOptions options;
  options.rng_seed = seed;
  return run(constant("a", scalar, a) + constant("b", scalar, b) +
                 constant("n", "s64[1]", "[2000]") +
                 fmt::format("%r = stablehlo.rng(%a, %b, %n) {{rng_distribution = {}}} : {}[2000]",
                             distribution, type),
             "%r", fmt::format("{}[2000]", type), options);
}

TEST(Rng, UniformStaysInItsHalfOpenRange) {
  for (const char* type : {"f32", "f64", "f16", "bf16", "s32", "u8", "s64"}) {
    const auto values = rng(type, "2", "5", "UNIFORM");
    ASSERT_TRUE(values) << values.error().to_string();
    double sum = 0;
    for (int64_t i = 0; i < 2000; ++i) {
      const double x = (*values)[0].get_double(i);
      ASSERT_GE(x, 2) << type;
      ASSERT_LT(x, 5) << type;
      sum += x;
    }
    const double mean = type[0] == 's' || type[0] == 'u' ? 3 : 3.5;
    EXPECT_NEAR(sum / 2000, mean, 0.1) << type;
  }
}

TEST(Rng, EveryIntegerOfTheRangeOccurs) {
  const auto values = rng("s8", "-128", "127", "UNIFORM");
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 2000; ++i) seen.insert((*values)[0].get_integer(i));
  EXPECT_GT(seen.size(), 240u);
  EXPECT_EQ(seen.count(127), 0u);
}

TEST(Rng, AnEmptyRangeGivesItsBound) {
  EXPECT_EQ((*rng("s32", "5", "5", "UNIFORM"))[0].get_integer(7), 5);
  EXPECT_EQ((*rng("f32", "5", "5", "UNIFORM"))[0].get_double(7), 5);
}

TEST(Rng, NormalHasMeanAndDeviation) {
  const auto values = rng("f32", "10", "2", "NORMAL");
  ASSERT_TRUE(values) << values.error().to_string();
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    const double x = (*values)[0].get_double(i) - 10;
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 2000, 0, 0.2);
  EXPECT_NEAR(std::sqrt(squares / 2000), 2, 0.2);
}

TEST(Rng, TheSeedDecides) {
  EXPECT_TRUE((*rng("f32", "0", "1", "UNIFORM", 1))[0] == (*rng("f32", "0", "1", "UNIFORM", 1))[0]);
  EXPECT_FALSE((*rng("f32", "0", "1", "UNIFORM", 1))[0] ==
               (*rng("f32", "0", "1", "UNIFORM", 2))[0]);
}

TEST(Rng, EveryDrawIsFresh) {
  const std::string draw = "stablehlo.rng(%a, %b, %n) {rng_distribution = UNIFORM} : f32[4]\n";
  const auto values = run(constant("a", "f32[]", "0") + constant("b", "f32[]", "1") +
                              constant("n", "s64[1]", "[4]") + "%x = " + draw + "%y = " + draw +
                              "%r = stablehlo.concatenate(%x, %y) {dimension = 0} : f32[8]",
                          "%r", "f32[8]");
  ASSERT_TRUE(values) << values.error().to_string();
  std::set<double> seen;
  for (int64_t i = 0; i < 8; ++i) seen.insert((*values)[0].get_double(i));
  EXPECT_EQ(seen.size(), 8u);
}

}  // namespace
}  // namespace tenon::hlo
