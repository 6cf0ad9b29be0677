// libFuzzer's entry points for every target: `--target=NAME` chooses one, `--targets` prints all.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

namespace {

const tenon::fuzz::FuzzTarget* chosen_target = nullptr;

}  // namespace

// libFuzzer leaves alone what begins with two dashes.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word.starts_with(kOption)) {
      chosen_target = tenon::fuzz::find_fuzz_target(word.substr(kOption.size()));
    }
    if (word != "--targets") continue;
    for (const tenon::fuzz::FuzzTarget& target : tenon::fuzz::fuzz_targets()) {
      std::printf("%.*s\n", static_cast<int>(target.name.size()), target.name.data());
    }
    std::exit(0);
  }
  if (chosen_target != nullptr) return 0;
  std::fprintf(stderr, "error: no target: --target=NAME, one of those that --targets prints\n");
  std::exit(1);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= chosen_target->most_bytes) {
    chosen_target->run({reinterpret_cast<const char*>(data), size});
  }
  return 0;
}
