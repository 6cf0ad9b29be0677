// tools/aot/: `tenon aot`: a model as an object file, and the files with which programs in C and
// C++ use it.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/aot/aot.h"
#include "tools/new_backend/new_backend.h"

namespace tenon::tools {

enum class AotLibrary { kObject, kStatic, kShared, kSource };

/// An argument or result, as C sees it.
struct AotArray {
  std::string name;  ///< An identifier that no other array of the function has.
  Shape shape;
  int64_t shared = -1;  ///< The number of the result, or argument, that may have the same memory.

  /// Elements of the C type: two for a complex number.
  int64_t count() const;
};

struct AotSignature {
  std::string name;    ///< "main"
  std::string symbol;  ///< "lstm_main"
  std::vector<AotArray> arguments;
  std::vector<AotArray> results;
  int64_t arena_bytes = 0;
  bool waits = false;  ///< For a GPU: it has loops or branches.
};

/// A custom call: the member of NAME_calls.
struct AotCall {
  std::string target;
  std::string member;
};

/// The facts from which the files of a model are made.
struct AotProject {
  std::string name;
  std::string target;  ///< For people: "x86_64-linux-gnu znver4".
  std::string hash;
  std::string version;  ///< The version of Tenon.
  AotLibrary library = AotLibrary::kStatic;
  bool is_cpp = false;
  bool is_gpu = false;
  int64_t kernels = 0;  ///< For a GPU: the functions of NAME_gpu.
  bool stack_arena = false;
  int64_t threads = 0;
  int64_t weights_bytes = 0;  ///< Size of the file; 0: there is none.
  std::string weights_hash;
  std::vector<AotCall> calls;
  std::vector<AotSignature> functions;

  bool takes_context() const {
    return !is_gpu && (weights_bytes > 0 || threads > 0 || !calls.empty());
  }
  /// "lstm.o", "liblstm.a", "liblstm.so", "lstm.c"
  std::string library_file() const;
  std::string weights_file() const { return name + ".weights"; }
};

/// Text as a C identifier: other characters become '_', and a digit in front gets one.
std::string c_identifier(std::string_view text);
/// "float", "uint16_t" …: of an element; of a complex number, of each of its two parts.
std::string_view c_type(ElementType type);
/// "LSTM_MAIN_X": what the macros of an array begin with.
std::string macro_of(const AotSignature& function, const AotArray& array);
std::string upper(std::string_view text);
/// "f32[1,60]"
std::string description_of(const AotArray& array);

/// "main" as a class: "Main".
std::string class_of(std::string_view name);
/// The parameters of NAME_FUNCTION: "const float* x, float* y, void* arena".
std::string parameters_of(const AotProject& project, const AotSignature& function);
/// Statements that set the arguments to ones.
std::string example_ones(const AotSignature& function);
/// Prints what results begin with.
std::string example_results(const AotSignature& function);
/// A function that reads the file of weights, if there is one.
std::string read_weights_function(const AotProject& project);

/// NAME.h
std::string c_header(const AotProject& project);
/// NAME.hpp
std::string cpp_header(const AotProject& project);
/// Those of a model for a GPU.
std::string gpu_cpp_header(const AotProject& project);
std::string gpu_example(const AotProject& project);
/// NAME_example.c
std::string example_source(const AotProject& project);
/// All files but the library and the weights.
std::vector<ProjectFile> aot_files_of(const AotProject& project);

}  // namespace tenon::tools
