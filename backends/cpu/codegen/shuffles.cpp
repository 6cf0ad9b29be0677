#include "backends/cpu/codegen/shuffles.h"

#include <algorithm>
#include <bit>

namespace tenon::cpu {

namespace {

constexpr int64_t kLeastEdge = 4;
constexpr unsigned kLaneBits = 128;  // Within which x86-64 interleaves by one instruction.

size_t elements_of(const llvm::Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

// The low, or the high halves of each 128 bits of two vectors, an element of each in turn.
llvm::Value* half_interleaved(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, size_t within,
                              bool high) {
  const size_t width = elements_of(x);
  std::vector<int> which;
  for (size_t l = 0; l < width; ++l) {
    const size_t place = l / within * within + (high ? within / 2 : 0) + l % within / 2;
    which.push_back(static_cast<int>(l % 2 * width + place));
  }
  return b.CreateShuffleVector(x, y, which);
}

// Blocks of `within` elements of two vectors, those whose number lacks the bit `apart`, or has it.
llvm::Value* blocks_of(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, size_t within,
                       size_t apart, bool high) {
  const size_t width = elements_of(x);
  std::vector<int> which;
  for (size_t l = 0; l < width; ++l) {
    const size_t block = l / within;
    const bool second = (block & apart) != 0;
    const size_t from = high ? block | apart : block & ~apart;
    which.push_back(static_cast<int>((second ? width : 0) + from * within + l % within));
  }
  return b.CreateShuffleVector(x, y, which);
}

// Instructions that take rows of `count` elements apart, for the lanes of one register: halves of
// pairs of vectors, which are two where registers have two parts of 128 bits, then element by
// element.
int64_t halving_cost(int64_t count, int64_t vector_bytes) {
  const int64_t each = vector_bytes == 32 ? 2 : 1;
  const int halvings = std::countr_zero(static_cast<uint64_t>(count));
  return each * count * (halvings + (count >> halvings) - 1);
}

}  // namespace

std::vector<llvm::Value*> interleaved(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& x) {
  const size_t count = x.size();
  if (count == 1) return x;
  const auto width =
      static_cast<size_t>(llvm::cast<llvm::FixedVectorType>(x[0]->getType())->getNumElements());
  std::vector<llvm::Value*> result;
  if (count % 2 == 0) {
    std::vector<llvm::Value*> sides[2];
    for (size_t i = 0; i < count; ++i) sides[i % 2].push_back(x[i]);
    for (std::vector<llvm::Value*>& side : sides) side = interleaved(b, side);
    for (size_t i = 0; i < count; ++i) {
      std::vector<int> which;
      for (size_t l = 0; l < width; ++l) {
        which.push_back(static_cast<int>(l % 2 * width + (i % 2 * width + l) / 2));
      }
      result.push_back(b.CreateShuffleVector(sides[0][i / 2], sides[1][i / 2], which));
    }
    return result;
  }
  for (size_t i = 0; i < count; ++i) {
    llvm::Value* piece = x[0];
    for (size_t from = 1; from < count; ++from) {
      std::vector<int> which;
      for (size_t l = 0; l < width; ++l) {
        const size_t place = i * width + l;
        const size_t lane = place / count;
        const bool taken = place % count == from;
        const size_t before = from == 1 ? lane : l;
        which.push_back(static_cast<int>(taken ? width + lane : before));
      }
      piece = b.CreateShuffleVector(piece, x[from], which);
    }
    result.push_back(piece);
  }
  return result;
}

std::vector<llvm::Value*> taken_apart(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& x) {
  const size_t count = x.size();
  if (count == 1) return x;
  const auto width =
      static_cast<size_t>(llvm::cast<llvm::FixedVectorType>(x[0]->getType())->getNumElements());
  std::vector<llvm::Value*> result(count);
  if (count % 2 == 0) {
    for (size_t side = 0; side < 2; ++side) {
      std::vector<int> which;
      for (size_t l = 0; l < width; ++l) which.push_back(static_cast<int>(2 * l + side));
      std::vector<llvm::Value*> half;
      for (size_t i = 0; i < count; i += 2)
        half.push_back(b.CreateShuffleVector(x[i], x[i + 1], which));
      half = taken_apart(b, half);
      for (size_t i = 0; i < half.size(); ++i) result[2 * i + side] = half[i];
    }
    return result;
  }
  for (size_t first = 0; first < count; ++first) {
    result[first] = x[0];
    for (size_t from = 1; from < count; ++from) {
      std::vector<int> which;
      for (size_t l = 0; l < width; ++l) {
        const size_t place = l * count + first;
        const bool taken = place / width == from;
        const size_t before = from == 1 ? place % width : l;
        which.push_back(static_cast<int>(taken ? width + place % width : before));
      }
      result[first] = b.CreateShuffleVector(result[first], x[from], which);
    }
  }
  return result;
}

// Rows i and i + half interleaved, as many times as halves the rows of 128 bits: a perfect shuffle
// of places that moves the bits of a row's number into those of its elements. Then blocks change
// places.
std::vector<llvm::Value*> transposed(llvm::IRBuilder<>& b, std::vector<llvm::Value*> rows) {
  const size_t edge = rows.size();
  const unsigned bits = rows[0]->getType()->getScalarSizeInBits();
  const size_t within = std::min<size_t>(edge, std::max<size_t>(1, kLaneBits / bits));
  for (size_t first = 0; first < edge; first += within) {
    for (size_t size = 1; size < within; size *= 2) {
      std::vector<llvm::Value*> next;
      for (size_t i = first; i < first + within / 2; ++i) {
        for (const bool high : {false, true})
          next.push_back(half_interleaved(b, rows[i], rows[i + within / 2], within, high));
      }
      std::ranges::copy(next, rows.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
  for (size_t apart = 1; apart < edge / within; apart *= 2) {
    for (size_t i = 0; i < edge; ++i) {
      if ((i / within & apart) != 0) continue;
      llvm::Value* const x = rows[i];
      llvm::Value* const y = rows[i + apart * within];
      rows[i] = blocks_of(b, x, y, within, apart, false);
      rows[i + apart * within] = blocks_of(b, x, y, within, apart, true);
    }
  }
  return rows;
}

int64_t edge_of_squares(int64_t count, int64_t lanes, int64_t vector_bytes) {
  const auto edge =
      std::min(lanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count))));
  if (edge < kLeastEdge) return 0;
  const int64_t groups = lanes / edge;
  const int64_t squares = (count + edge - 1) / edge;
  const int64_t shuffles = edge * std::countr_zero(static_cast<uint64_t>(edge));
  const int64_t cost = groups * squares * shuffles + (groups - 1) * count;
  return cost < halving_cost(count, vector_bytes) ? edge : 0;
}

}  // namespace tenon::cpu
