#include "backends/llvm/jit.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>

#include <atomic>
#include <cmath>
#include <cstring>

#include "backends/llvm/host.h"

namespace tenon::codegen {
namespace {

namespace orc = llvm::orc;

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

// Defines `functions`, and those that host code calls if there is no instruction.
void define_functions(orc::LLJIT& jit, orc::JITDylib& library,
                      std::span<const HostFunction> functions) {
  orc::SymbolMap symbols;
  const auto add = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                          llvm::JITSymbolFlags::Exported};
  };
  using One = double (*)(double);
  using OneF = float (*)(float);
  using Two = double (*)(double, double);
  using TwoF = float (*)(float, float);
  for (const HostFunction& each : functions) {
    symbols[jit.mangleAndIntern(each.name)] = {orc::ExecutorAddr::fromPtr(each.address),
                                               llvm::JITSymbolFlags::Exported};
  }
  add("memcpy", std::memcpy);
  add("memmove", std::memmove);
  add("memset", std::memset);
  add("fmod", static_cast<Two>(std::fmod));
  add("fmodf", static_cast<TwoF>(std::fmod));
  add("fma", static_cast<double (*)(double, double, double)>(std::fma));
  add("fmaf", static_cast<float (*)(float, float, float)>(std::fma));
  add("floor", static_cast<One>(std::floor));
  add("floorf", static_cast<OneF>(std::floor));
  add("ceil", static_cast<One>(std::ceil));
  add("ceilf", static_cast<OneF>(std::ceil));
  add("trunc", static_cast<One>(std::trunc));
  add("truncf", static_cast<OneF>(std::trunc));
  add("round", static_cast<One>(std::round));
  add("roundf", static_cast<OneF>(std::round));
  add("roundeven", static_cast<One>(std::nearbyint));
  add("roundevenf", static_cast<OneF>(std::nearbyint));
  llvm::cantFail(library.define(orc::absoluteSymbols(std::move(symbols))));
}

struct JitEngine {
  std::unique_ptr<orc::LLJIT> jit;
  std::string error;
  std::atomic<uint64_t> libraries = 0;
};

// The process-wide JIT; each load gets its own JITDylib.
JitEngine& engine() {
  static JitEngine* const the_engine = [] {
    auto* made = new JitEngine;
    static_cast<void>(host());  // Initialises the target.
    auto builder = orc::JITTargetMachineBuilder(llvm::Triple(host().triple));
    builder.setCPU(host().cpu);
    // Code must not depend on the symbols of a process: it calls only the functions defined here.
    auto jit = orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(std::move(builder))
                   .setPlatformSetUp(orc::setUpInactivePlatform)
                   .setLinkProcessSymbolsByDefault(false)
                   .create();
    if (jit) {
      made->jit = std::move(*jit);
      // Errors are returned to the caller instead.
      made->jit->getExecutionSession().setErrorReporter(
          [](llvm::Error error) { llvm::consumeError(std::move(error)); });
    } else {
      made->error = text_of(jit.takeError());
    }
    return made;
  }();
  return *the_engine;
}

class JitLibrary final : public LoadedObjects {
 public:
  ~JitLibrary() override {
    if (library_ == nullptr) return;
    llvm::consumeError(engine().jit->getExecutionSession().removeJITDylib(*library_));
  }

  Status load(std::span<const std::string> objects, std::span<const HostFunction> functions) {
    if (engine().jit == nullptr) return internal_error("{}", engine().error);
    orc::LLJIT& jit = *engine().jit;
    auto made = jit.createJITDylib(fmt::format("tenon.{}", engine().libraries++));
    if (!made) return internal_error("{}", text_of(made.takeError()));
    library_ = &*made;
    define_functions(jit, *library_, functions);
    for (const std::string& object : objects) {
      auto bytes = llvm::MemoryBuffer::getMemBufferCopy(object, "tenon");
      if (llvm::Error error = jit.addObjectFile(*library_, std::move(bytes))) {
        return internal_error("{}", text_of(std::move(error)));
      }
    }
    return {};
  }

  Result<void*> address(const std::string& symbol) override {
    auto found = engine().jit->lookup(*library_, symbol);
    if (!found) return not_found("{}", text_of(found.takeError()));
    return found->toPtr<void*>();
  }

 private:
  orc::JITDylib* library_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<LoadedObjects>> load_objects(std::span<const std::string> objects,
                                                    std::span<const HostFunction> functions) {
  auto loaded = std::make_unique<JitLibrary>();
  TENON_TRY(loaded->load(objects, functions));
  return loaded;
}

}  // namespace tenon::codegen
