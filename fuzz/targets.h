// fuzz/: fuzzers of every reader of outside bytes, and of modules drawn from the op table.
//
// One function each: libFuzzer gives it what it finds (scripts/fuzz), and a test the corpus and
// inputs damaged at random (replay_test.cpp).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tenon::fuzz {

// Each takes any bytes, and aborts if a promise of the code is broken. True if the reader accepts
// the bytes, so that what lies behind it ran.
bool fuzz_artifact(std::string_view bytes);
bool fuzz_compiled_program(std::string_view bytes);
bool fuzz_hlo_proto(std::string_view bytes);
bool fuzz_hlo_text(std::string_view bytes);
bool fuzz_kernel_serial(std::string_view bytes);
bool fuzz_kernel_text(std::string_view bytes);
bool fuzz_npy(std::string_view bytes);
bool fuzz_onnx(std::string_view bytes);
bool fuzz_program_serial(std::string_view bytes);
bool fuzz_raw_module(std::string_view bytes);
bool fuzz_recording(std::string_view bytes);
bool fuzz_target_text(std::string_view bytes);
bool fuzz_text(std::string_view bytes);

struct FuzzTarget {
  std::string_view name;  ///< Its corpus is fuzz/corpus/NAME.
  bool (*run)(std::string_view bytes);
  size_t most_bytes;  ///< Longer inputs are left out.
};

/// Every target, by name.
std::span<const FuzzTarget> fuzz_targets();

/// Null if no target has the name.
const FuzzTarget* find_fuzz_target(std::string_view name);

}  // namespace tenon::fuzz
