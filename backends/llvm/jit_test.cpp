#include "backends/llvm/jit.h"

#include <gtest/gtest.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <sstream>

#include "backends/llvm/abreast.h"
#include "backends/llvm/host.h"

namespace tenon::codegen {
namespace {

// The module of LLVM IR; null after a failure.
std::unique_ptr<llvm::Module> parsed(const std::string& text, llvm::LLVMContext& context) {
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(text, diagnostic, context);
  EXPECT_NE(module, nullptr) << diagnostic.getMessage().str();
  return module;
}

// The object file of LLVM IR.
std::string object(const char* text) {
  llvm::LLVMContext context;
  const auto module = parsed(text, context);
  if (module == nullptr) return "";
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

constexpr int kSteps = 16;

// The code for `cpu` of a polynomial of four vectors of AVX2.
std::string polynomial_of_four_vectors(const TargetCpu& cpu, bool keeps_order) {
  std::string text = "define void @f(ptr %p, ptr %q, ptr %c, i64 %n) {\nentry:\n";
  for (int i = 0; i < kSteps; ++i) {
    text += fmt::format(
        "%p{0} = getelementptr float, ptr %c, i64 {0}\n%c{0} = load float, ptr %p{0}\n"
        "%i{0} = insertelement <32 x float> poison, float %c{0}, i64 0\n"
        "%s{0} = shufflevector <32 x float> %i{0}, <32 x float> poison, <32 x i32> "
        "zeroinitializer\n",
        i);
  }
  text +=
      "br label %loop\nloop:\n%i = phi i64 [0, %entry], [%next, %loop]\n"
      "%from = getelementptr float, ptr %p, i64 %i\n%x = load <32 x float>, ptr %from\n"
      "%to = getelementptr float, ptr %q, i64 %i\n%y0 = load <32 x float>, ptr %to\n";
  for (int i = 0; i < kSteps; ++i) {
    text += fmt::format(
        "%m{0} = fmul <32 x float> %y{0}, %x\n%y{1} = fadd <32 x float> %m{0}, %s{0}\n", i, i + 1);
  }
  text += fmt::format(
      "store <32 x float> %y{}, ptr %to\n%next = add i64 %i, 32\n"
      "%more = icmp slt i64 %next, %n\nbr i1 %more, label %loop, label %end\nend:\nret void }}",
      kSteps);
  llvm::LLVMContext context;
  const auto module = parsed(text, context);
  if (module == nullptr) return "";
  if (keeps_order) keep_abreast(*module->getFunction("f"));
  const auto machine = make_object_machine(cpu).value();
  set_target(*module, *machine);
  llvm::SmallString<0> code;
  llvm::raw_svector_ostream out(code);
  llvm::legacy::PassManager passes;
  EXPECT_TRUE(add_emission_passes(*machine, passes, out, llvm::CodeGenFileType::AssemblyFile));
  passes.run(*module);
  return std::string(code);
}

// How often an addition follows a multiplication, or the other way round.
int changes_of_operation(const std::string& code) {
  std::istringstream lines(code);
  std::string last;
  int changes = 0;
  for (std::string line; std::getline(lines, line);) {
    for (const char* name : {"vmulps", "vaddps"}) {
      if (line.find(name) == std::string::npos) continue;
      changes += last != name ? 1 : 0;
      last = name;
    }
  }
  return changes;
}

// LLVM's own order is one vector after the other.
TEST(Host, KeepsTheOrderOfVectorsAbreast) {
  const auto cpu = target_cpu("x86_64-linux-gnu", "znver3", "");
  if (!cpu) GTEST_SKIP() << "this LLVM has no code for x86";
  EXPECT_EQ(changes_of_operation(polynomial_of_four_vectors(*cpu, true)), 2 * kSteps);
  EXPECT_GT(changes_of_operation(polynomial_of_four_vectors(*cpu, false)), 4 * kSteps);
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
