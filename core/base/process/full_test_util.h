// Whether tests take all of a long list, which `scripts/test --full` asks for, or a part of it.
#pragma once

#include <cstdlib>

namespace tenon {

inline bool tests_take_all() { return std::getenv("TENON_FULL") != nullptr; }

}  // namespace tenon
