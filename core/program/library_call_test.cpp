// Library calls: their text, and their checks against arrays.
#include "core/program/library_call.h"

#include <gtest/gtest.h>

#include "core/program/interpreter.h"
#include "core/program/program_test_util.h"

namespace tenon::program {
namespace {

Shape f32(Dims dims) { return {ElementType::kF32, std::move(dims)}; }

struct Case {
  LibraryCall call;
  std::vector<Shape> operands;
  std::vector<Shape> results;
  std::string error = "OK";
};

void expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Status status = check(c.call, c.operands, c.results);
    EXPECT_EQ(status.ok() ? "OK" : status.message(), c.error) << to_string(c.call);
  }
}

// A window of 3 x 3, the features last.
const Convolution kSame = [] {
  Convolution c;
  c.input = c.output = {0, 3, {1, 2}};
  c.kernel = {3, 2, {0, 1}};
  c.strides = c.padding_low = c.padding_high = c.input_dilation = c.kernel_dilation = {1, 1};
  return c;
}();

TEST(LibraryCall, Text) {
  EXPECT_EQ(to_string(Contraction{{0}, {0}, {2}, {1}}),
            "contraction lhs_batch=[0] rhs_batch=[0] lhs_contracting=[2] rhs_contracting=[1]");
  EXPECT_EQ(to_string(kSame),
            "convolution input=(0,3,[1,2]) kernel=(3,2,[0,1]) output=(0,3,[1,2]) strides=[1,1] "
            "padding_low=[1,1] padding_high=[1,1] input_dilation=[1,1] kernel_dilation=[1,1]");
  EXPECT_EQ(to_string(Sort{1, 2, true, false}), "sort dimension=1 key=2 descending");
  EXPECT_EQ(to_string(Scan{0, true, Combiner::kMinimum}),
            "scan combiner=minimum dimension=0 reverse");
  EXPECT_EQ(to_string(Fft{FftKind::kRealInverse, {8}}), "fft kind=real_inverse lengths=[8]");
  EXPECT_EQ(to_string(Composite{"vendor.op",
                                2,
                                {{"axes", Dims{1, -1}},
                                 {"causal", Dims{1}},
                                 {"mode", std::string("fast \"so\"")},
                                 {"scale", std::vector<double>{0.25}},
                                 {"weights", std::vector<double>{0.5, 2}}}}),
            "composite vendor.op version=2 axes=[1,-1] causal=1 mode=\"fast \\\"so\\\"\" "
            "scale=0.25 weights=[0.5,2]");
  EXPECT_EQ(to_string(Composite{"vendor.none"}), "composite vendor.none");
  EXPECT_EQ(library_call_names()[5], "composite");
}

TEST(LibraryCall, ContractionsFit) {
  const Contraction batched = {{0}, {0}, {2}, {1}};
  expect({{batched, {f32({2, 3, 4}), f32({2, 4, 5})}, {f32({2, 3, 5})}},
          {batched,
           {f32({2, 3, 4})},
           {f32({2, 3, 5})},
           "contraction: 1 operands and 1 results, expected 2 and 1"},
          {batched,
           {f32({2, 3, 4}), f32({2, 6, 5})},
           {f32({2, 3, 5})},
           "contraction: dimension 2 of lhs is 4, dimension 1 of rhs 6"},
          {batched,
           {f32({2, 3, 4}), f32({2, 4, 5})},
           {f32({3, 2, 5})},
           "contraction: the result is f32[3,2,5], expected dimensions [2,3,5]"},
          {Contraction{{0}, {0}, {0}, {1}},
           {f32({2, 3}), f32({2, 2})},
           {f32({})},
           "contraction: lhs_batch and lhs_contracting [0,0] are no dimensions of an array of rank "
           "2"},
          {Contraction{{}, {}, {7}, {0}},
           {f32({2}), f32({2})},
           {f32({})},
           "contraction: lhs_batch and lhs_contracting [7] are no dimensions of an array of rank "
           "1"},
          {Contraction{{0}, {}, {}, {0}},
           {f32({2}), f32({2})},
           {f32({})},
           "contraction: lhs and rhs have different numbers of batch or contracting dimensions"}});
}

TEST(LibraryCall, ConvolutionsFit) {
  const std::vector<Shape> operands = {f32({2, 8, 8, 3}), f32({3, 3, 3, 4})};
  Convolution strided = kSame;
  strided.strides = {2, 2};
  Convolution still = kSame;
  still.strides = {0, 1};
  Convolution grouped = kSame;
  grouped.feature_groups = 2;
  Convolution vast = kSame;
  vast.kernel_dilation = {int64_t{1} << 40, 1};
  Convolution short_of_one = kSame;
  short_of_one.strides = {1};
  Convolution twice = kSame;
  twice.input.spatial = {1, 1};
  expect({{kSame, operands, {f32({2, 8, 8, 4})}},
          {strided, operands, {f32({2, 4, 4, 4})}},
          {strided,
           operands,
           {f32({2, 8, 8, 4})},
           "convolution: spatial dimension 0 of the result is 8, expected 4"},
          {still, operands, {f32({2, 8, 8, 4})}, "convolution: 0 in a window"},
          {grouped,
           operands,
           {f32({2, 8, 8, 4})},
           "convolution: the groups do not divide the features or the batch"},
          {vast, operands, {f32({2, 8, 8, 4})}, "convolution: a window of 3 in 8 is too large"},
          {short_of_one, operands, {f32({2, 8, 8, 4})}, "convolution: 1 entries for 2 dimensions"},
          {twice,
           operands,
           {f32({2, 8, 8, 4})},
           "convolution: input [0,1,1,3] are no dimensions of an array of rank 4"},
          {kSame,
           operands,
           {f32({2, 8, 8, 5})},
           "convolution: the result's batch or features differ: f32[2,8,8,5]"}});
}

TEST(LibraryCall, RowsFit) {
  const Shape keys(ElementType::kS32, {3, 4});
  expect({{Sort{1, 1, false, false}, {f32({3, 4}), keys}, {f32({3, 4}), keys}},
          {Sort{2, 0, false, false}, {keys}, {keys}, "sort: there is no dimension 2 of s32[3,4]"},
          {Sort{0, 1, false, false}, {keys}, {keys}, "sort: there is no array 1 to sort by"},
          {Sort{0, 0, false, false}, {}, {}, "sort: 0 operands and 0 results, expected 1 and 0"},
          {Sort{0, 0, false, false},
           {keys},
           {f32({3, 4})},
           "sort: array 0 is s32[3,4] and becomes f32[3,4]"},
          {Scan{0, false, Combiner::kAdd}, {f32({5}), f32({})}, {f32({5})}},
          {Scan{0, false, Combiner::kAdd},
           {f32({5}), keys},
           {f32({5})},
           "scan: f32[5] with s32[3,4] becomes f32[5]"},
          {Fft{FftKind::kRealForward, {8}}, {f32({2, 8})}, {Shape(ElementType::kC64, {2, 5})}},
          {Fft{FftKind::kRealForward, {8}},
           {f32({2, 8})},
           {Shape(ElementType::kC64, {2, 8})},
           "fft: f32[2,8] becomes c64[2,8] by lengths [8]"},
          {Fft{FftKind::kForward, {8}}, {f32({8})}, {f32({8})}, "fft: f32[8] becomes f32[8]"},
          {Fft{FftKind::kForward, {}}, {f32({8})}, {f32({8})}, "fft: 0 lengths of f32[8]"}});
}

// Calls that no op gives, but a file might.
TEST(LibraryCall, TypesFit) {
  const Shape c64(ElementType::kC64, {8});
  const Shape u64(ElementType::kU64, {1});
  const Shape f64(ElementType::kF64, {2, 2});
  Convolution padded = kSame;
  padded.padding_low = {INT64_MIN, 1};
  padded.padding_high = {INT64_MIN, 1};
  expect({{Fft{FftKind::kForward, {8}},
           {Shape(ElementType::kC128, {8})},
           {c64},
           "fft: c128[8] becomes c64[8]"},
          {Contraction{{}, {}, {1}, {0}},
           {f32({2, 2}), f64},
           {f32({2, 2})},
           "contraction: operands of f32 and f64"},
          {Sort{0, 0, false, false}, {c64}, {c64}, "sort: c64 have no such order"},
          {Sort{0, 0, false, true}, {u64}, {u64}, "sort: u64 have no such order"},
          {Scan{0, false, Combiner::kXor},
           {f32({5}), f32({})},
           {f32({5})},
           "scan: f32 cannot be combined so"},
          {Scan{0, false, Combiner::kMinimum},
           {c64, Shape(ElementType::kC64, {})},
           {c64},
           "scan: c64 cannot be combined so"},
          {padded,
           {f32({2, 8, 8, 3}), f32({3, 3, 3, 4})},
           {f32({2, 6, 8, 4})},
           "convolution: padding of -9223372036854775808"}});
}

// A composite means what its name means to a backend, on any arrays.
TEST(LibraryCall, CompositesFit) {
  expect({{Composite{"vendor.op"}, {f32({2, 3}), f32({})}, {f32({7})}},
          {Composite{}, {f32({2})}, {f32({2})}, "composite: it has no name"}});
}

// A backend that does not take a call runs its lowered steps.
TEST(LibraryCall, IsRunAsItIsLowered) {
  Program p = testing::twice();
  p.sequences.push_back(std::move(p.sequences[0]));
  p.sequences[0] = {
      {{LibraryCallStep{Scan{0, false, Combiner::kAdd}, {0, 3}, {2}, 1}, {}, "scan"}}};
  p.constants = {Literal::scalar(ElementType::kF32, 0)};
  Buffer zero = testing::buffer(BufferKind::kConstant, 0);
  zero.dims = {};
  p.buffers.push_back(zero);
  find_dependencies(p);
  ASSERT_EQ(validate(p).to_string(), "OK");
  EXPECT_NE(print(p).find("0: scan combiner=add dimension=0 (%0, %3) -> (%2)  // scan\n  lowered\n"
                          "      0: launch @add"),
            std::string::npos)
      << print(p);
  const std::vector<Literal> arguments = {testing::four(2)};
  const auto results = ProgramInterpreter(p).run(arguments);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ(results->front(), testing::four(6));
  Program other = p;
  other.sequences[1].steps = {{CustomCall{"mine", {}, {0}, {2}}, {}, ""}};
  find_dependencies(other);
  EXPECT_EQ(validate(other).message(), "program p: scan: it is lowered to more than kernels");
  other = p;
  std::get<LibraryCallStep>(other.sequences[0].steps[0].action).operands[0] = 2;
  EXPECT_EQ(validate(other).message(), "program p: scan: result 0 lies in the memory of buffer 2");
  std::get<LibraryCallStep>(p.sequences[0].steps[0].action).operands = {0, 0};
  EXPECT_EQ(validate(p).message(), "program p: scan: f32[4] with f32[4] becomes f32[4]");
}

}  // namespace
}  // namespace tenon::program
