// A worker's program that is a shell script.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>

namespace tenon::conformance {

inline std::function<int()> shell_program(const std::string& script) {
  return [script] {
    execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    return 127;
  };
}

}  // namespace tenon::conformance
