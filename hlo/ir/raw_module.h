// RawModule: the output of both readers (StableHLO text and portable artifact), before ops are
// interpreted.
//
// Names are StableHLO's ("stablehlo.dot_general", "func.func", "chlo.erf", "sdy.mesh"): the
// artifact reader upgrades and renames VHLO ops and gathers their fields into StableHLO's
// attributes; the text parser turns pretty forms into the same attributes. Attributes are as read:
// an index list may be I64s or a DenseAttr, a flag bool or Unit. hlo/import/convert.cpp converts
// them to the canonical form that the op table states. Both readers share one builder, so that
// their Modules are equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/types/attribute.h"
#include "hlo/types/location.h"

namespace tenon::hlo {

/// An index into RawModule::value_types, unique in the whole module.
using RawValue = uint32_t;

struct RawRegion;

/// An op of any dialect. "func.func" has its name and type in its attributes (sym_name,
/// function_type, sym_visibility, arg_attrs, res_attrs: ArrayAttr of Dict) and its body in
/// regions[0] (no region: a declaration). "builtin.module" has its name in sym_name.
struct RawOp {
  std::string name;
  std::vector<RawValue> operands;
  std::vector<RawValue> results;
  Dict attributes;  ///< Inherent and discardable attributes together.
  std::vector<RawRegion> regions;
  Location location;
};

/// A single block: regions of the dialects read here never have more.
struct RawRegion {
  std::vector<RawValue> arguments;
  std::vector<Location> argument_locations;  ///< Empty, or one per argument.
  std::vector<RawOp> ops;
};

struct RawModule {
  RawOp module;  ///< "builtin.module" with one region.
  std::vector<Type> value_types;
};

/// Limits on the resources that an input of a reader may request; each violation is an error, never
/// a crash.
struct ImportLimits {
  int max_depth = 256;  ///< Nesting of regions, types and attributes.
  /// The maximum size in bytes of one constant in an artifact. A text needs no limit: its memory is
  /// at most a fixed multiple of its length and, for aliases that it uses often, that of 2^22 types
  /// and attributes, because uses of a dense_resource, or of an alias of a constant, share the
  /// elements.
  int64_t max_constant_bytes = int64_t{4} << 30;
};

}  // namespace tenon::hlo
