// backends/cpu/aot/: a model compiled ahead of time: one object file with entries in C.
//
// Programs that were compiled for the backend of make_aot_backend() become one LLVM module, by the
// code of compile_segment: kernels, contractions, loops and branches as functions, constants as
// read-only data. entries.h adds the functions and the table that tenon_aot.h declares to C.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/program/program.h"

namespace tenon::cpu {

/// A processor as LLVM names it; empty: this process' triple, the least processor of the triple.
struct AotTarget {
  std::string triple;    ///< "x86_64-linux-gnu"
  std::string cpu;       ///< "x86-64-v3", "native"
  std::string features;  ///< "+avx2,-avx512f"
};

/// A function of a model.
struct AotFunction {
  std::string name;  ///< The C function's, behind the model's name.
  const program::Program* program = nullptr;
  std::vector<std::string> parameters;  ///< Names, by index.
  std::vector<std::string> results;
};

struct AotOptions {
  AotTarget target;
  std::string name;     ///< The model's; a C identifier.
  std::string version;  ///< The compiler's, for the descriptor.
  bool is_small = false;
  bool weights_in_file = false;
  bool stack_arena = false;  ///< The arena is on the stack of the function.
  int64_t threads = 0;       ///< Most threads of the caller's parallel-for; 0: none is called.
  std::vector<std::string> calls;  ///< Targets of custom calls that the caller gives, in order.
};

/// A compiled function.
struct AotEntry {
  std::string symbol;
  int64_t arena_bytes = 0;
  int64_t temporary_bytes = 0;    ///< The arena's part that holds arrays, not scratch memory.
  std::vector<uint32_t> aliases;  ///< program::parameters_of_results.
};

struct AotConstant {
  std::string name;
  Shape shape;
  int64_t bytes = 0;
  int64_t offset = -1;  ///< In the file; -1: in the object.
};

/// A function or object of an object file.
struct AotSymbol {
  std::string name;
  std::string section;
  int64_t bytes = 0;
  bool is_code = false;
};

struct AotModel {
  std::string object;
  std::string weights;       ///< The file's bytes.
  std::string hash;          ///< Identifies the sources of the object.
  std::string weights_hash;  ///< FNV-1a of 64 bits, in hexadecimal digits.
  AotTarget target;
  std::vector<AotEntry> entries;
  std::vector<AotConstant> constants;
};

/// The alignment of an arena and of weights; that of arguments and results for speed.
inline constexpr int64_t kAotAlignment = 64;
/// The least alignment of arguments and results; that of their type if it is greater.
inline constexpr int64_t kAotLeastAlignment = 4;

/// A backend with one device, which no process can open: Programs compiled for it are what
/// compile_ahead() takes. Errors: a target that LLVM does not have.
Result<std::shared_ptr<backend::Backend>> make_aot_backend(const AotTarget& target);

/// Errors: kUnimplemented for a step that needs a host, by its label; a custom call that is not
/// among AotOptions::calls; more constants than an object can hold.
Result<AotModel> compile_ahead(std::span<const AotFunction> functions, const AotOptions& options);

/// The symbols with a size of an ELF object, the largest first.
Result<std::vector<AotSymbol>> symbols_of(std::string_view object);

/// An archive of one object, with the index that linkers read.
Result<std::string> archive_of(std::string_view object, const std::string& member);

/// The object loaded into this process, for measurements and tests; the target is this machine.
class AotLoaded {
 public:
  AotLoaded() = default;
  AotLoaded(const AotLoaded&) = delete;
  AotLoaded& operator=(const AotLoaded&) = delete;
  virtual ~AotLoaded() = default;
  /// Null if there is no such symbol.
  virtual void* address(const std::string& symbol) = 0;
};
Result<std::unique_ptr<AotLoaded>> load_ahead(const AotModel& model);

}  // namespace tenon::cpu
