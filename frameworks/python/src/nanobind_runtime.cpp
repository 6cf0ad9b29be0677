// nanobind's own sources, which every module compiles for itself.
#include "nb_combined.cpp"  // NOLINT(bugprone-suspicious-include)
