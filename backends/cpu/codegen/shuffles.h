// Vectors taken apart, joined and transposed by shuffles.
#pragma once

#include <cstdint>
#include <vector>

#include <llvm/IR/IRBuilder.h>

namespace tenon::cpu {

/// Elements x[0] y[0] x[1] y[1] … of equally many vectors each, as vectors.
std::vector<llvm::Value*> interleaved(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& x);

/// The inverse: vector i has elements i, i + count, … of the elements of `x`, count vectors.
std::vector<llvm::Value*> taken_apart(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& x);

/// The columns of a square of rows, as many vectors as each has elements, a power of two. On x86-64
/// a shuffle is one instruction: it interleaves halves of 128 bits, or moves such halves.
std::vector<llvm::Value*> transposed(llvm::IRBuilder<>& b, std::vector<llvm::Value*> rows);

/// The edge of the squares as which rows of `count` elements are transposed, one row in each of the
/// lanes of a register; 0 if it takes fewer instructions to take them apart or to interleave them.
int64_t edge_of_squares(int64_t count, int64_t lanes, int64_t vector_bytes);

}  // namespace tenon::cpu
