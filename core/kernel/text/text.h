// core/kernel/text/: the text form of kernels: parser and printer.
//
// docs/kernel-ir.md defines it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// The text form of the kernel; parse() returns an equal kernel. `lines`, if not null, receives the
/// line (from 1) on which each node begins, `names` the name of each value: "%3"; empty for
/// constants.
std::string print(const Kernel& kernel, std::vector<uint32_t>* lines = nullptr,
                  std::vector<std::string>* names = nullptr);

/// Reads one kernel. Errors carry the position in `file`. The parser checks only the grammar;
/// verify() checks the rest.
Result<Kernel> parse(std::string_view text, const std::string& file);
/// Reads any number of kernels.
Result<std::vector<Kernel>> parse_all(std::string_view text, const std::string& file);

/// A constant as text: "1", "-0.5", "inf", "0x7FC00001" for a NaN with a payload.
std::string constant_text(ElementType type, uint64_t bits);

}  // namespace tenon::kernel
