// The interface of a custom call beside its name: how its arrays lie, which share memory, and typed
// attributes. It is what handlers of XLA's FFI expect (frameworks/pjrt/ffi).
//
// A call keeps it in its configuration, where the serial form has it too. A call whose arrays are
// all row-major, with neither tokens, aliases nor attributes, keeps nothing.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/program/program.h"

namespace tenon::program {

/// An operand or result of the call, tokens included. A token has no buffer.
struct ForeignArray {
  bool is_token = false;
  /// The dimensions that the function sees, the fastest first. The call's buffer is row-major: its
  /// dimension i is the i-th slowest of these. Empty: the function sees the buffer's dimensions.
  Dims minor_to_major;
  bool operator==(const ForeignArray&) const = default;

  /// The dimensions that the function sees, of a buffer with these.
  Dims dims_of(const Dims& buffer) const;
};

/// A text, or a number (rank 0) or several (rank 1).
struct ForeignAttribute {
  /// The names of the dictionaries around it and its own, separated by kWithin.
  std::string path;
  std::variant<std::string, Literal> value;
  bool operator==(const ForeignAttribute&) const = default;
};
inline constexpr char kWithin = '\x1f';

struct ForeignCall {
  std::vector<ForeignArray> operands;
  std::vector<ForeignArray> results;
  /// (result, operand), numbered without the tokens: the function gets one memory for both, which
  /// holds the operand when it is called.
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  std::vector<ForeignAttribute> attributes;  ///< In the order of their paths.
  bool operator==(const ForeignCall&) const = default;
};

/// Adds what differs from a call of row-major arrays alone.
void add_foreign(Config& config, const ForeignCall& foreign);

/// The interface of a call of `program`. Errors: one that does not fit the call's buffers.
Result<ForeignCall> foreign_of(const Program& program, const CustomCall& call);

}  // namespace tenon::program
