#include "backends/llvm/masked_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <array>

#include "backends/llvm/host.h"
#include "backends/llvm/jit.h"

namespace tenon::codegen {
namespace {

constexpr int kLanes = 16;
using Lanes = std::array<int16_t, kLanes>;

// from, to, off and a mask of bits; "%places" are the pointers of `from` (gather) or `to`
// (scatter), every third element backwards.
constexpr const char* kAccess = R"(
declare <16 x i16> @llvm.masked.load.v16i16.p0(ptr, i32, <16 x i1>, <16 x i16>)
declare void @llvm.masked.store.v16i16.p0(<16 x i16>, ptr, i32, <16 x i1>)
declare <16 x i16> @llvm.masked.gather.v16i16.v16p0(<16 x ptr>, i32, <16 x i1>, <16 x i16>)
declare void @llvm.masked.scatter.v16i16.v16p0(<16 x i16>, <16 x ptr>, i32, <16 x i1>)
define void @access(ptr %from, ptr %to, ptr %off, i16 %bits) {{
  %mask = bitcast i16 %bits to <16 x i1>
  %other = load <16 x i16>, ptr %off, align 2
  {}
  ret void
}})";
constexpr const char* kContiguous = R"(
  %x = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %from, i32 2, <16 x i1> %mask, <16 x i16> %other)
  call void @llvm.masked.store.v16i16.p0(<16 x i16> %x, ptr %to, i32 2, <16 x i1> %mask))";
constexpr const char* kPlaces =
    "getelementptr i16, ptr {}, <16 x i64> <i64 45, i64 42, i64 39, i64 36, i64 33, i64 30, i64 "
    "27, i64 24, "
    "i64 21, i64 18, i64 15, i64 12, i64 9, i64 6, i64 3, i64 0>";

// The code of `body`, its masked accesses expanded as for a machine that has none.
std::unique_ptr<LoadedObjects> expanded(const std::string& body, std::string* text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const auto module = llvm::parseAssemblyString(fmt::format(kAccess, body), diagnostic, context);
  if (module == nullptr) {
    ADD_FAILURE() << diagnostic.getMessage().str();
    return nullptr;
  }
  llvm::FunctionAnalysisManager analyses;
  analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return llvm::TargetIRAnalysis(); });
  ExpandMaskedMemoryPass().run(*module->getFunction("access"), analyses);
  llvm::raw_string_ostream(*text) << *module;
  llvm::TargetMachine* const machine = host_machine().value();
  set_target(*module, *machine);
  const std::string objects[] = {compile_to_object(*module, *machine).value()};
  return std::move(load_objects(objects, {}).value());
}

void run(LoadedObjects& code, const int16_t* from, int16_t* to, const Lanes& off, uint16_t bits) {
  using Access = void (*)(const int16_t*, int16_t*, const int16_t*, uint16_t);
  reinterpret_cast<Access>(code.address("access").value())(from, to, off.data(), bits);
}

constexpr uint16_t kMasks[] = {0, 1, 0x8000, 0x00ff, 0xfff8, 0x5555, 0x7fff, 0xffff};

std::array<int16_t, 48> counted(int16_t first) {
  std::array<int16_t, 48> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int16_t>(first + i);
  return numbers;
}

TEST(MaskedMemory, ContiguousLanesThatAreOff) {
  std::string text;
  const auto code = expanded(kContiguous, &text);
  EXPECT_EQ(text.find("call <16 x i16> @llvm.masked"), std::string::npos) << text;
  EXPECT_EQ(text.find("call void @llvm.masked"), std::string::npos) << text;
  for (const uint16_t mask : kMasks) {
    const auto from = counted(100);
    auto to = counted(1000);
    run(*code, from.data(), to.data(), {}, mask);
    for (size_t i = 0; i < to.size(); ++i) {
      const bool on = i < kLanes && (mask >> i & 1) != 0;
      EXPECT_EQ(to[i], (on ? 100 : 1000) + static_cast<int>(i)) << mask << ", lane " << i;
    }
  }
}

// Lanes that are off of a load have the other value; none of the memory there is touched.
TEST(MaskedMemory, LoadsReadOnlyWhatIsOn) {
  std::string text;
  const auto code = expanded(R"(
  %x = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %from, i32 2, <16 x i1> %mask, <16 x i16> %other)
  store <16 x i16> %x, ptr %to, align 2)",
                             &text);
  Lanes off;
  off.fill(-7);
  std::array<int16_t, 48> to{};
  run(*code, nullptr, to.data(), off, 0);
  EXPECT_EQ(to[0], -7);
  const auto from = counted(5);
  run(*code, from.data(), to.data(), off, 0x0006);
  EXPECT_EQ(to[0], -7);
  EXPECT_EQ(to[1], 6);
  EXPECT_EQ(to[2], 7);
  EXPECT_EQ(to[3], -7);
}

TEST(MaskedMemory, GathersAndScatters) {
  std::string text;
  const auto gather = expanded(fmt::format(R"(
  %places = {}
  %x = call <16 x i16> @llvm.masked.gather.v16i16.v16p0(<16 x ptr> %places, i32 2, <16 x i1> %mask, <16 x i16> %other)
  store <16 x i16> %x, ptr %to, align 2)",
                                           fmt::format(fmt::runtime(kPlaces), "%from")),
                               &text);
  const auto scatter = expanded(fmt::format(R"(
  %places = {}
  call void @llvm.masked.scatter.v16i16.v16p0(<16 x i16> %other, <16 x ptr> %places, i32 2, <16 x i1> %mask))",
                                            fmt::format(fmt::runtime(kPlaces), "%to")),
                                &text);
  Lanes off;
  off.fill(-7);
  for (const uint16_t mask : kMasks) {
    const auto from = counted(100);
    std::array<int16_t, 48> to{};
    run(*gather, from.data(), to.data(), off, mask);
    for (size_t i = 0; i < kLanes; ++i) {
      EXPECT_EQ(to[i], (mask >> i & 1) != 0 ? 145 - 3 * static_cast<int>(i) : -7) << mask;
    }
    auto spread = counted(1000);
    run(*scatter, from.data(), spread.data(), off, mask);
    for (size_t i = 0; i < spread.size(); ++i) {
      const bool on = i <= 45 && i % 3 == 0 && (mask >> ((45 - i) / 3) & 1) != 0;
      EXPECT_EQ(spread[i], on ? -7 : 1000 + static_cast<int>(i)) << mask << ", place " << i;
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
