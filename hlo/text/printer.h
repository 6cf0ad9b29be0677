// Printers of both text forms.
//
// HLO text is Tenon's own: one form for every op,
//   %2 = stablehlo.dot_general(%0, %1) {dot_dimension_numbers = …} : f32[4,8]
// StableHLO text is for other tools; ops are printed in their pretty form if they have one. Both
// can be read back to an equal Module (hlo/text/parser.h).
#pragma once

#include <string>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

enum class TextForm : uint8_t { kHlo, kStableHlo };

struct PrintOptions {
  TextForm form = TextForm::kHlo;
  bool locations = false;
};

std::string print_module(const Module& module, const PrintOptions& options = {});
/// One instruction with its regions; operands from other computations are numbered in order of
/// occurrence.
std::string print_instruction(const Instruction& op, const PrintOptions& options = {});

}  // namespace tenon::hlo
