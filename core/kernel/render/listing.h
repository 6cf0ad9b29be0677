// Listings: the source of a kernel line by line, with the values that each line computes.
//
// For people who look for the first wrong value of a kernel: the listing shows what their compiler
// got, and beside each line what the interpreter computes there (annotate()).
#pragma once

#include <string>
#include <vector>

#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/render/render.h"

namespace tenon::kernel {

/// A value that a line computes, or an element to which it stores one.
struct LineValue {
  size_t line = 0;   ///< From 0.
  std::string name;  ///< In the source: "v3", "y[v1]"; in the text of kernels: "%3".
  ValueId value = 0;
  /// The node whose run gives the value; kNone for the indices of the grid.
  NodeId node = kNone;
};

struct Listing {
  Kernel kernel;  ///< The kernel of `lines`, on which the interpreter runs: the legal form.
  std::vector<std::string> lines;
  std::vector<LineValue> values;  ///< In the order of the lines.
};

/// The function of a kernel as render() writes it, without helper functions. The kernel must be
/// verified. Errors: those of render().
Result<Listing> list_source(const Kernel& kernel, const RenderOptions& options = {});

/// The text form of a kernel (core/kernel/text), with its tile statements expanded.
Listing list_text(const Kernel& kernel);

/// The lines, each with its values beside it, as a run of `listing.kernel` on the interpreter left
/// them in `watch`. `got`, if not empty, is what a device stored to the watched element instead.
///
///     const float v2 = x0[v1];  | v2 = 1.5
///     const float v4 = v2 + v3; | v4 = 2.5
///     y[v1] = v4;               | y[v1] = 2.5, the device: 0.5
///
/// If there are more than `most_lines`, only those on which the element depends are there, and "…"
/// for the others; if these are still too many, the first and the last of them.
std::string annotate(const Listing& listing, const Watch& watch, const std::string& got = {},
                     size_t most_lines = 200);

/// A value as annotate() shows it. `bits` as registers of the Interpreter hold them.
std::string value_text(ElementType type, uint64_t bits);

}  // namespace tenon::kernel
