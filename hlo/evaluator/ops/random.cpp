// rng_bit_generator.
//
// The counter-based generators are those of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (2011), laid out over the result as in XLA, so that bits match.
#include <algorithm>
#include <array>

#include "hlo/evaluator/ops/rules.h"
#include "hlo/evaluator/scalars/real_math.h"
#include "hlo/inference/random_state.h"

namespace tenon::hlo {
namespace {

using U32x2 = std::array<uint32_t, 2>;
using U32x4 = std::array<uint32_t, 4>;

uint32_t rotate_left(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

// Threefry-2x32 with 20 rounds.
U32x2 threefry(U32x2 key, U32x2 counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::array<uint32_t, 3> keys = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  uint32_t x0 = counter[0] + keys[0];
  uint32_t x1 = counter[1] + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (const int rotation : kRotations[group % 2]) {
      x0 += x1;
      x1 = rotate_left(x1, rotation) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return {x0, x1};
}

// Philox-4x32 with 10 rounds.
U32x4 philox(U32x2 key, U32x4 x) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return x;
}

U32x2 halves(uint64_t x) { return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)}; }
uint64_t join(uint32_t low, uint32_t high) { return low | (uint64_t{high} << 32); }

// The words of the state as 64-bit integers, for every element type.
std::vector<uint64_t> state_words(const Tensor& state) {
  std::vector<uint64_t> words;
  if (bit_width(state.type()) == 64) {
    for (int64_t i = 0; i < state.count(); ++i)
      words.push_back(static_cast<uint64_t>(state.integer(i)));
  } else {
    for (int64_t i = 0; i + 1 < state.count(); i += 2) {
      words.push_back(join(static_cast<uint32_t>(state.integer(i)),
                           static_cast<uint32_t>(state.integer(i + 1))));
    }
  }
  return words;
}

Tensor state_tensor(const Tensor& like, const std::vector<uint64_t>& words) {
  Tensor state = like;
  for (int64_t i = 0; i < state.count(); ++i) {
    if (bit_width(state.type()) == 64) {
      state.set(i, Scalar(static_cast<int64_t>(words[static_cast<size_t>(i)])));
    } else {
      const U32x2 parts = halves(words[static_cast<size_t>(i / 2)]);
      state.set(i, Scalar(wrap_integer(state.type(), parts[static_cast<size_t>(i % 2)])));
    }
  }
  return state;
}

// 64-bit outputs take one block per element. Narrower outputs take two elements per block: the
// first even dimension (else the largest, rounded up) is split in pairs, with x0 and x1 of a block
// adjacent.
std::vector<uint64_t> threefry_bits(const std::vector<uint64_t>& state, const Dims& dims, int width,
                                    uint64_t& blocks) {
  const U32x2 key = halves(state[0]);
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<uint64_t> bits(static_cast<size_t>(count));
  if (width == 64) {
    blocks = static_cast<uint64_t>(count);
    for (size_t i = 0; i < bits.size(); ++i) {
      const U32x2 x = threefry(key, halves(state[1] + i));
      bits[i] = join(x[0], x[1]);
    }
    return bits;
  }
  size_t split = dims.size();
  for (size_t d = 0; d < dims.size() && split == dims.size(); ++d) {
    if (dims[d] % 2 == 0) split = d;
  }
  if (split == dims.size() && !dims.empty()) {
    split = 0;
    for (size_t d = 1; d < dims.size(); ++d) {
      if (dims[d] > dims[split]) split = d;
    }
  }
  const int64_t size = dims.empty() ? 1 : dims[split];
  const int64_t half = (size + 1) / 2;
  int64_t inner = 1;
  for (size_t d = split + 1; d < dims.size(); ++d) inner *= dims[d];
  const int64_t outer = count / std::max<int64_t>(size * inner, 1);
  blocks = static_cast<uint64_t>(outer * half * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t h = 0; h < half; ++h) {
      for (int64_t i = 0; i < inner; ++i) {
        const auto block = static_cast<uint64_t>((o * half + h) * inner + i);
        const U32x2 x = threefry(key, halves(state[1] + block));
        for (int64_t k = 0; k < 2 && 2 * h + k < size; ++k) {
          bits[static_cast<size_t>((o * size + 2 * h + k) * inner + i)] = x[static_cast<size_t>(k)];
        }
      }
    }
  }
  return bits;
}

// Block k yields elements 4k … 4k + 3, or two of 64 bits. In a state of two words, the first is
// also the upper half of the counter, as in XLA: keys of JAX's "rbg" give the same numbers here.
std::vector<uint64_t> philox_bits(const std::vector<uint64_t>& state, int64_t count, int width,
                                  uint64_t& blocks) {
  const U32x2 key = halves(state[0]);
  const size_t per_block = width == 64 ? 2 : 4;
  std::vector<uint64_t> bits(static_cast<size_t>(count));
  blocks = (bits.size() + per_block - 1) / per_block;
  for (uint64_t block = 0; block < blocks; ++block) {
    const unsigned __int128 base =
        (static_cast<unsigned __int128>(state[state.size() > 2 ? 2 : 0]) << 64) | state[1];
    const unsigned __int128 counter = base + block;
    const U32x2 low = halves(static_cast<uint64_t>(counter));
    const U32x2 high = halves(static_cast<uint64_t>(counter >> 64));
    const U32x4 x = philox(key, {low[0], low[1], high[0], high[1]});
    for (size_t k = 0; k < per_block && block * per_block + k < bits.size(); ++k) {
      bits[block * per_block + k] = width == 64 ? join(x[2 * k], x[2 * k + 1]) : x[k];
    }
  }
  return bits;
}

}  // namespace

Evaluator::Values evaluate::rng_bit_generator(const EvalCall& c) {
  const auto& [e, op, operands, frame] = c;
  if (const std::string fault = random_state_fault(op); !fault.empty()) {
    return unimplemented("{}: {}", op.name(), fault);
  }
  const Type& type = op.result_type(1);
  Tensor output = e.tensor(type.element_type(), type.dims());
  std::vector<uint64_t> state = state_words(*operands[0]);
  const int width = bit_width(type.element_type());
  const bool is_threefry =
      op.enumeration<RngAlgorithm>(AttrKey::rng_algorithm) == RngAlgorithm::kThreeFry;
  uint64_t blocks = 0;
  const std::vector<uint64_t> bits = is_threefry
                                         ? threefry_bits(state, type.dims(), width, blocks)
                                         : philox_bits(state, output.count(), width, blocks);
  for (int64_t i = 0; i < output.count(); ++i) {
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    output.set(i, scalar_from_bits(type.element_type(), output.storage(),
                                   bits[static_cast<size_t>(i)] & mask));
  }
  const uint64_t before = state[1];
  state[1] += blocks;
  if (!is_threefry && state.size() > 2 && state[1] < before) ++state[2];
  std::vector<EvalValue> values;
  values.push_back(EvalValue::of(state_tensor(*operands[0], state)));
  values.push_back(EvalValue::of(std::move(output)));
  return values;
}

}  // namespace tenon::hlo
