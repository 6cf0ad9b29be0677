// Shapes and literals of HLO protos.
#pragma once

#include "hlo/ir/raw_module.h"
#include "hlo/proto/message.h"

namespace tenon::hlo {

/// A ShapeProto: an array, a token, or a tuple of these.
struct ProtoShape {
  Type type;                         ///< For an array or a token.
  std::vector<ProtoShape> elements;  ///< For a tuple.
  bool is_tuple = false;
  size_t leaf_count = 1;       ///< Arrays and tokens in it.
  std::vector<size_t> begins;  ///< For each element of a tuple, how many come before it.

  /// Adds the types of its arrays and tokens, in order.
  void append_leaves(std::vector<Type>& leaves) const;
};

/// Errors: types that StableHLO lacks; dimensions without a size; tuples nested deeper than
/// `depth`.
Result<ProtoShape> shape_of(const ProtoMessage& shape, int depth);

/// A LiteralProto of an array. Errors: a tuple; a number of elements that is not the shape's; more
/// than `limit` bytes.
Result<DenseAttr> literal_of(const ProtoMessage& literal, int64_t limit);

}  // namespace tenon::hlo
