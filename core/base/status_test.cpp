#include "core/base/status.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.to_string(), "OK");
}

TEST(Status, IsAsLargeAsAPointer) { EXPECT_EQ(sizeof(Status), sizeof(void*)); }

TEST(Status, CopiesShareTheirTextUntilOneChanges) {
  const Status first(ErrorCode::kInternal, "a text that no string keeps within itself");
  Status second = first;
  EXPECT_EQ(&first.message(), &second.message());
  second = std::move(second).with_context("c");
  EXPECT_EQ(first.message(), "a text that no string keeps within itself");
  EXPECT_EQ(second.message(), "c: a text that no string keeps within itself");
  second = first;
  EXPECT_EQ(second, first);
  const Status moved = std::move(second);
  EXPECT_EQ(moved, first);
}

TEST(Status, AnErrorNeedsNoText) {
  const Status bare(ErrorCode::kResourceExhausted, "");
  EXPECT_FALSE(bare.ok());
  EXPECT_EQ(bare.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(bare.message(), "");
  EXPECT_EQ(bare, Status(ErrorCode::kResourceExhausted, ""));
  EXPECT_NE(bare, Status(ErrorCode::kInternal, ""));
  const Status placed = Status(bare).at({"f", 1, 2}).in_stage("parse");
  EXPECT_EQ(placed.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(placed.stage(), "parse");
  EXPECT_EQ(placed.to_string(), "f:1:2: error: ");
  EXPECT_EQ(Status(ErrorCode::kOk, "a text"), Status());
}

TEST(Status, TextNamesThePosition) {
  const Status bare(ErrorCode::kInvalidArgument, "bad");
  EXPECT_EQ(bare.to_string(), "error: bad");
  EXPECT_EQ(Status(bare).at({"f.mlir", 3, 7}).to_string(), "f.mlir:3:7: error: bad");
}

TEST(Status, TheInnermostPositionWins) {
  const Status status = Status(ErrorCode::kInternal, "x").at({"a", 1, 2}).at({"b", 3, 4});
  EXPECT_EQ(status.position(), (SourcePosition{"a", 1, 2}));
}

TEST(Status, AnUnknownPositionMayBeReplaced) {
  const Status status = Status(ErrorCode::kInternal, "x").at({}).at({"b", 3, 4});
  EXPECT_EQ(status.position(), (SourcePosition{"b", 3, 4}));
}

TEST(Status, AFileWithoutALineIsNamedAlone) {
  const Status status = Status(ErrorCode::kInternal, "x").at({"a", 0, 0});
  EXPECT_FALSE(status.position().known());
  EXPECT_EQ(status.to_string(), "a: error: x");
}

TEST(Status, TheFirstStageStays) {
  const Status status = Status(ErrorCode::kInternal, "x").in_stage("parse").in_stage("import");
  EXPECT_EQ(status.stage(), "parse");
}

TEST(Status, ContextGoesBeforeTheMessage) {
  EXPECT_EQ(Status(ErrorCode::kInternal, "x").with_context("a.npy").message(), "a.npy: x");
}

TEST(Status, OkTakesNoContext) {
  EXPECT_EQ(Status().at({"a", 1, 1}).in_stage("s").with_context("c"), Status());
}

TEST(Status, CodesHaveTheNamesOfThePjrtApi) {
  EXPECT_EQ(error_code_name(ErrorCode::kOk), "OK");
  EXPECT_EQ(error_code_name(ErrorCode::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(error_code_name(ErrorCode::kUnimplemented), "UNIMPLEMENTED");
  EXPECT_EQ(error_code_name(ErrorCode::kUnauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(error_code_name(static_cast<ErrorCode>(99)), "UNKNOWN");
}

TEST(Status, MakersSetCodeAndText) {
  EXPECT_EQ(invalid_argument("{} of {}", 1, "x").status(),
            Status(ErrorCode::kInvalidArgument, "1 of x"));
  EXPECT_EQ(unimplemented("n").status().code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(not_found("n").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(resource_exhausted("n").status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(failed_precondition("n").status().code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(internal_error("n").status().code(), ErrorCode::kInternal);
}

Result<int> half(int x) {
  if (x % 2 != 0) return invalid_argument("{} is odd", x);
  return x / 2;
}
Result<int> quarter(int x) {
  TENON_ASSIGN(const int once, half(x));
  TENON_ASSIGN(const int twice, half(once));
  return twice;
}
Status check_quarter(int x) {
  TENON_TRY(quarter(x));
  return {};
}

TEST(Status, MacrosPassErrorsOn) {
  EXPECT_EQ(quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
  EXPECT_TRUE(check_quarter(8).ok());
  EXPECT_EQ(check_quarter(5).message(), "5 is odd");
}

}  // namespace
}  // namespace tenon
