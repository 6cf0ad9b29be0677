// RawModule: the output of both readers (StableHLO text and portable artifact), before ops get a
// meaning.
//
// Names are StableHLO's ("stablehlo.dot_general", "func.func", "chlo.erf", "sdy.mesh"): the
// artifact reader upgrades and renames VHLO ops and gathers their fields into StableHLO's
// attributes, the text parser turns pretty forms into the same attributes. Attributes are as read:
// an index list may be I64s or a DenseAttr, a flag bool or Unit; hlo/import/convert.cpp brings them
// to the canonical form that the op table names. Both readers
// share one builder, so that their Modules are equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/types/attribute.h"
#include "hlo/types/location.h"

namespace tenon::hlo {

/// Index into RawModule::value_types. Unique in the whole module.
using RawValue = uint32_t;

struct RawRegion;

/// An op of any dialect. "func.func" keeps name and type in its attributes (sym_name,
/// function_type, sym_visibility, arg_attrs, res_attrs: ArrayAttr of Dict) and its body in
/// regions[0] (no region: a declaration). "builtin.module" keeps its name in sym_name.
struct RawOp {
  std::string name;
  std::vector<RawValue> operands;
  std::vector<RawValue> results;
  Dict attributes;  ///< Inherent and discardable ones together.
  std::vector<RawRegion> regions;
  Location location;
};

/// A single block; no region of the dialects read here has more.
struct RawRegion {
  std::vector<RawValue> arguments;
  std::vector<Location> argument_locations;  ///< Empty, or one an argument.
  std::vector<RawOp> ops;
};

struct RawModule {
  RawOp module;  ///< "builtin.module" with one region.
  std::vector<Type> value_types;
};

/// Limits on what an input of a reader may ask for; each violation is an error, never a crash.
struct ImportLimits {
  int max_depth = 256;  ///< Nesting of regions, types and attributes.
  /// The most bytes of one constant in an artifact. A text asks for no more memory than a fixed
  /// multiple of its length and, for aliases that it uses often, that of 2^22 types and attributes:
  /// a use of a dense_resource, or of an alias of a constant, shares the elements.
  int64_t max_constant_bytes = int64_t{4} << 30;
};

}  // namespace tenon::hlo
