// Cases of a folder of StableHLO test programs, as StableHLO's own testdata and interpreter tests
// are: `tenon conform --data DIR`.
#pragma once

#include "conformance/cases/case.h"

namespace tenon::conformance {

/// A case for each part of each file *.mlir in `folder` and the folders in it, in the order of
/// their names: "data/FILE/PART", where parts are separated by lines "// -----" and counted from 0.
/// A part runs with its constants as arguments, so that no pass computes it beforehand. Its checks
/// (check.expect_eq and the like) are made on the host, on the values that the device computed. A
/// part without checks, or whose checks do not hold, is judged op by op. A part without @main is a
/// list of functions, each of which runs, but for those that wait for other processes or the host,
/// or make custom calls. A part whose @main has parameters of unknown sizes, or that has no
/// function of the dialect func (VHLO), is left out. Errors: the folder or a file cannot be read.
Result<std::vector<ConformanceCase>> data_cases(const std::string& folder);

}  // namespace tenon::conformance
