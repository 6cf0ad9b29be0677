#include "backends/llvm/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#if defined(__x86_64__)
#include <llvm/ExecutionEngine/JITLink/ELF_x86_64.h>
#elif defined(__aarch64__)
#include <llvm/ExecutionEngine/JITLink/ELF_aarch64.h>
#endif
#include <llvm/Support/Process.h>

#include <cmath>
#include <cstring>
#include <unordered_map>

namespace tenon::codegen {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;
using llvm::orc::ExecutorSymbolDef;

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

// The linker of the host's object files alone: the one that asks for the format links those of
// every format and processor into the binary.
auto read_object(llvm::MemoryBufferRef bytes) {
#if defined(__x86_64__)
  return jitlink::createLinkGraphFromELFObject_x86_64(bytes);
#elif defined(__aarch64__)
  return jitlink::createLinkGraphFromELFObject_aarch64(bytes);
#else
  return jitlink::createLinkGraphFromObject(bytes);
#endif
}

void link_graph(std::unique_ptr<jitlink::LinkGraph> graph,
                std::unique_ptr<jitlink::JITLinkContext> context) {
#if defined(__x86_64__)
  jitlink::link_ELF_x86_64(std::move(graph), std::move(context));
#elif defined(__aarch64__)
  jitlink::link_ELF_aarch64(std::move(graph), std::move(context));
#else
  jitlink::link(std::move(graph), std::move(context));
#endif
}

using Symbols = std::unordered_map<std::string, ExecutorAddr>;

// Functions of the C library that code of the host calls where there is no instruction. Code must
// not depend on the symbols of a process: it calls only these and those that the caller gives.
const Symbols& c_library() {
  static const Symbols* const functions = [] {
    auto* symbols = new Symbols;
    const auto add = [&](const char* name, auto* function) {
      symbols->emplace(name, ExecutorAddr::fromPtr(function));
    };
    using One = double (*)(double);
    using OneF = float (*)(float);
    using Two = double (*)(double, double);
    using TwoF = float (*)(float, float);
    add("memcpy", std::memcpy);
    add("memmove", std::memmove);
    add("memset", std::memset);
    add("fmod", static_cast<Two>(std::fmod));
    // LLVM makes them of comparisons of halves with constants.
    add("fmaxf", static_cast<TwoF>(std::fmax));
    add("fminf", static_cast<TwoF>(std::fmin));
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
    return symbols;
  }();
  return *functions;
}

jitlink::JITLinkMemoryManager& memory() {
  static auto* const manager =
      new jitlink::InProcessMemoryManager(llvm::sys::Process::getPageSizeEstimate());
  return *manager;
}

// The state of one link of several objects, which may name each other's symbols: each object is
// placed and says what it defines and needs; when all are placed, needs are answered.
struct Link {
  struct Need {
    std::vector<std::string> names;
    std::vector<bool> required;
    std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> answer;
  };

  Symbols defined;
  std::vector<Need> needs;
  std::vector<jitlink::JITLinkMemoryManager::FinalizedAlloc> memory;
  std::string error;  // The first one.
};

class ObjectContext final : public jitlink::JITLinkContext {
 public:
  explicit ObjectContext(Link& link) : JITLinkContext(nullptr), link_(link) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory(); }

  void notifyFailed(llvm::Error error) override {
    std::string text = text_of(std::move(error));
    if (link_.error.empty()) link_.error = std::move(text);
  }

  void lookup(const LookupMap& symbols,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> answer) override {
    Link::Need& need = link_.needs.emplace_back();
    for (const auto& [name, flags] : symbols) {
      need.names.push_back(name.str());
      need.required.push_back(flags == jitlink::SymbolLookupFlags::RequiredSymbol);
    }
    need.answer = std::move(answer);
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    // Where several objects define a symbol weakly, the first definition holds.
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || symbol->getScope() == jitlink::Scope::Local) continue;
      link_.defined.emplace(symbol->getName().str(), symbol->getAddress());
    }
    return llvm::Error::success();
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc memory) override {
    link_.memory.push_back(std::move(memory));
  }

 private:
  Link& link_;
};

class LinkedObjects final : public LoadedObjects {
 public:
  ~LinkedObjects() override {
    if (!link_.memory.empty()) {
      llvm::consumeError(memory().deallocate(std::move(link_.memory)));
    }
  }

  Status load(std::span<const std::string> objects, std::span<const HostFunction> functions) {
    for (const std::string& object : objects) {
      auto graph = read_object(llvm::MemoryBufferRef(object, "tenon"));
      if (!graph) {
        link_.error = text_of(graph.takeError());
        break;
      }
      link_graph(std::move(*graph), std::make_unique<ObjectContext>(link_));
    }
    // Each need is answered, by an error too: the answer ends the link of its object.
    for (Link::Need& need : std::exchange(link_.needs, {})) {
      need.answer->run(found(need, functions));
    }
    if (!link_.error.empty()) return internal_error("{}", link_.error);
    return {};
  }

  Result<void*> address(const std::string& symbol) override {
    const auto found = link_.defined.find(symbol);
    if (found == link_.defined.end()) return not_found("no symbol {}", symbol);
    return found->second.toPtr<void*>();
  }

 private:
  llvm::Expected<jitlink::AsyncLookupResult> found(const Link::Need& need,
                                                   std::span<const HostFunction> functions) const {
    const auto failed = [](const std::string& text) {
      return llvm::createStringError(llvm::inconvertibleErrorCode(), text.c_str());
    };
    if (!link_.error.empty()) return failed(link_.error);
    jitlink::AsyncLookupResult result;
    for (size_t i = 0; i < need.names.size(); ++i) {
      const ExecutorAddr address = find(need.names[i], functions);
      if (!address && need.required[i]) {
        return failed(fmt::format("no function {} in the code or the host", need.names[i]));
      }
      result[need.names[i]] = ExecutorSymbolDef(address, llvm::JITSymbolFlags::Exported);
    }
    return result;
  }

  // 0 if nothing has the name.
  ExecutorAddr find(const std::string& name, std::span<const HostFunction> functions) const {
    for (const HostFunction& each : functions) {
      if (name == each.name) return ExecutorAddr::fromPtr(each.address);
    }
    for (const Symbols* symbols : {&link_.defined, &c_library()}) {
      if (const auto at = symbols->find(name); at != symbols->end()) return at->second;
    }
    return {};
  }

  Link link_;
};

}  // namespace

Result<std::unique_ptr<LoadedObjects>> load_objects(std::span<const std::string> objects,
                                                    std::span<const HostFunction> functions) {
  auto loaded = std::make_unique<LinkedObjects>();
  TENON_TRY(loaded->load(objects, functions));
  return loaded;
}

}  // namespace tenon::codegen
