#include "backends/llvm/jit.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Target/TargetMachine.h>

#include "backends/llvm/host.h"

namespace tenon::codegen {
namespace {

// The object file of LLVM IR.
std::string object(const char* text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const auto module = llvm::parseAssemblyString(text, diagnostic, context);
  if (module == nullptr) {
    ADD_FAILURE() << diagnostic.getMessage().str();
    return "";
  }
  llvm::TargetMachine* const machine = host_machine().value();
  set_target(*module, *machine);
  return compile_to_object(*module, *machine).value();
}

// LLVM would take them for shuffles of bytes between instructions of AVX.
TEST(Host, HasNoInstructionsWithoutAFormOfAvx) {
  EXPECT_EQ(host().features.find("+sse4a"), std::string::npos);
  const TargetCpu with_avx = target_cpu("x86_64-linux-gnu", "znver3", "").value();
  EXPECT_TRUE(with_avx.features.ends_with("-sse4a")) << with_avx.features;
  const TargetCpu without = target_cpu("x86_64-linux-gnu", "amdfam10", "").value();
  EXPECT_EQ(without.features.find("sse4a"), std::string::npos) << without.features;
}

using Function = int64_t (*)(int64_t);

int64_t call(LoadedObjects& loaded, const char* name, int64_t argument) {
  return reinterpret_cast<Function>(loaded.address(name).value())(argument);
}

int64_t triple(int64_t x) { return 3 * x; }

constexpr const char* kEven = R"(
  declare i64 @odd(i64)
  define i64 @even(i64 %n) {
    %zero = icmp eq i64 %n, 0
    br i1 %zero, label %end, label %more
  more:
    %less = sub i64 %n, 1
    %r = call i64 @odd(i64 %less)
    ret i64 %r
  end:
    ret i64 1
  })";
constexpr const char* kOdd = R"(
  declare i64 @even(i64)
  define i64 @odd(i64 %n) {
    %zero = icmp eq i64 %n, 0
    br i1 %zero, label %end, label %more
  more:
    %less = sub i64 %n, 1
    %r = call i64 @even(i64 %less)
    ret i64 %r
  end:
    ret i64 0
  })";

// The option by which emission on x86 leaves loop strength reduction out is there, and is as before
// when the passes have been added: GPUs want that pass.
TEST(Jit, EmissionLeavesLlvmsOptionsAsTheyWere) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("disable-lsr");
  ASSERT_NE(found, options.end());
  const auto* const option = static_cast<llvm::cl::opt<bool>*>(found->second);
  EXPECT_FALSE(object(kEven).empty());
  EXPECT_FALSE(option->getValue());
}

TEST(Jit, ObjectsCallEachOther) {
  const std::string objects[] = {object(kEven), object(kOdd)};
  const auto loaded = load_objects(objects, {});
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(call(**loaded, "even", 10), 1);
  EXPECT_EQ(call(**loaded, "even", 7), 0);
  EXPECT_EQ(call(**loaded, "odd", 7), 1);
}

TEST(Jit, CodeCallsTheGivenFunctions) {
  const std::string objects[] = {object(R"(
    declare i64 @triple(i64)
    define i64 @twice(i64 %x) {
      %y = call i64 @triple(i64 %x)
      %z = call i64 @triple(i64 %y)
      ret i64 %z
    })")};
  const HostFunction functions[] = {{"triple", reinterpret_cast<void*>(triple)}};
  const auto loaded = load_objects(objects, functions);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(call(**loaded, "twice", 5), 45);
}

// Names of the process are not seen: code that calls one of them is an error, and names it.
TEST(Jit, AFunctionThatNothingDefinesIsAnError) {
  const std::string objects[] = {object(kEven), object(R"(
    declare i64 @getpid(i64)
    define i64 @odd(i64 %x) {
      %y = call i64 @getpid(i64 %x)
      ret i64 %y
    })")};
  const auto loaded = load_objects(objects, {});
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message().find("getpid"), std::string::npos) << loaded.error().message();
}

TEST(Jit, BytesThatAreNoObjectAreAnError) {
  const std::string whole = object(kEven);
  for (const std::string& bytes : {std::string(), std::string("no object"), whole.substr(0, 100)}) {
    const std::string objects[] = {object(kOdd), bytes};
    EXPECT_FALSE(load_objects(objects, {}));
  }
}

TEST(Jit, ASymbolThatIsNotThereIsNotFound) {
  const std::string objects[] = {object(kEven), object(kOdd)};
  const auto loaded = load_objects(objects, {});
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const auto found = (*loaded)->address("none");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kNotFound);
}

TEST(Jit, AWeakSymbolOfSeveralObjectsIsOne) {
  const std::string objects[] = {object(R"(
    define weak i64 @value(i64 %x) { ret i64 1 }
    define i64 @first(i64 %x) { %y = call i64 @value(i64 %x) ret i64 %y })"),
                                 object(R"(
    define weak i64 @value(i64 %x) { ret i64 1 }
    define i64 @second(i64 %x) { %y = call i64 @value(i64 %x) ret i64 %y })")};
  const auto loaded = load_objects(objects, {});
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(call(**loaded, "first", 0), 1);
  EXPECT_EQ(call(**loaded, "second", 0), 1);
}

}  // namespace
}  // namespace tenon::codegen
