// rng_bit_generator: counter-based generators, so that each element computes its own block.
//
// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011); the
// assignment of blocks to elements is as in hlo/evaluator/ops/random.cpp.
#include <array>

#include "hlo/inference/random_state.h"
#include "hlo/lower/elements/bit_patterns.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/rules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
constexpr ElementType kU32 = ElementType::kU32;
constexpr ElementType kU64 = ElementType::kU64;

using Pair = std::array<ValueId, 2>;
using Four = std::array<ValueId, 4>;

ValueId u32(Builder& b, uint32_t x) { return b.constant(kU32, x); }

Pair halves(Builder& b, ValueId x) {
  return {b.convert(x, kU32), b.convert(b.binary(K::kShr, x, b.constant(kU64, 32)), kU32)};
}

ValueId join(Builder& b, ValueId low, ValueId high) {
  return b.logical_or(b.convert(low, kU64),
                      b.binary(K::kShl, b.convert(high, kU64), b.constant(kU64, 32)));
}

// Threefry-2x32 with 20 rounds.
Pair threefry(Builder& b, const Pair& key, const Pair& counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const ValueId third = b.binary(K::kXor, b.binary(K::kXor, key[0], key[1]), u32(b, 0x1BD11BDA));
  const std::array<ValueId, 3> keys = {key[0], key[1], third};
  ValueId x0 = b.add(counter[0], keys[0]);
  ValueId x1 = b.add(counter[1], keys[1]);
  for (uint32_t group = 0; group < 5; ++group) {
    for (const int rotation : kRotations[group % 2]) {
      x0 = b.add(x0, x1);
      x1 = b.binary(K::kXor, b.binary(K::kRotl, x1, u32(b, static_cast<uint32_t>(rotation))), x0);
    }
    x0 = b.add(x0, keys[(group + 1) % 3]);
    x1 = b.add(b.add(x1, keys[(group + 2) % 3]), u32(b, group + 1));
  }
  return {x0, x1};
}

// Philox-4x32 with 10 rounds.
Four philox(Builder& b, Pair key, Four x) {
  for (uint32_t round = 0; round < 10; ++round) {
    const ValueId m0 = u32(b, 0xD2511F53);
    const ValueId m1 = u32(b, 0xCD9E8D57);
    const auto mixed = [&](ValueId high, ValueId word, ValueId k) {
      return b.binary(K::kXor, b.binary(K::kXor, high, word), k);
    };
    x = {mixed(b.binary(K::kMulHi, x[2], m1), x[1], key[0]), b.mul(x[2], m1),
         mixed(b.binary(K::kMulHi, x[0], m0), x[3], key[1]), b.mul(x[0], m0)};
    key = {b.add(key[0], u32(b, 0x9E3779B9)), b.add(key[1], u32(b, 0xBB67AE85))};
  }
  return x;
}

// How the elements of an output share blocks of Threefry: the first even dimension (else the
// largest, rounded up) is split in pairs.
struct ThreefrySplit {
  size_t axis = 0;
  int64_t size = 1;
  int64_t half = 1;
};

ThreefrySplit split_of(const Dims& dims) {
  ThreefrySplit s;
  if (dims.empty()) return s;
  s.axis = dims.size();
  for (size_t d = 0; d < dims.size() && s.axis == dims.size(); ++d) {
    if (dims[d] % 2 == 0) s.axis = d;
  }
  if (s.axis == dims.size()) {
    s.axis = 0;
    for (size_t d = 1; d < dims.size(); ++d) {
      if (dims[d] > dims[s.axis]) s.axis = d;
    }
  }
  s.size = dims[s.axis];
  s.half = (s.size + 1) / 2;
  return s;
}

class RandomBitsEmitter {
 public:
  RandomBitsEmitter(ElementEmitter& emitter, const Instruction& instruction)
      : e_(emitter),
        b_(emitter.b),
        op_(instruction),
        threefry_(op_.enumeration<RngAlgorithm>(AttrKey::rng_algorithm) == RngAlgorithm::kThreeFry),
        output_(op_.result_type(1)),
        wide_(bit_width(output_.element_type()) == 64) {
    const Type& state = op_.operand_type(0);
    const bool pairs = bit_width(state.element_type()) != 64;
    for (int64_t i = 0; i + (pairs ? 1 : 0) < element_count(state.dims()); i += pairs ? 2 : 1) {
      const auto word = [&](int64_t at) {
        const ValueId x = e_.element(op_.operand(0), {b_.index(at)}).re;
        const ElementType bits = pairs ? kU32 : kU64;
        return b_.type_of(x) == bits ? x : b_.bitcast(x, bits);
      };
      words_.push_back(pairs ? join(b_, word(i), word(i + 1)) : word(i));
    }
  }

  Element bits(const Values& index) {
    const ValueId x = threefry_ ? threefry_bits(index) : philox_bits(index);
    const ElementType type = output_.element_type();
    return {from_bits(b_, b_.convert(x, bits_type(type)), type)};
  }

  Element next_state(const Values& index) {
    const int64_t blocks = block_count();
    std::vector<ValueId> next = words_;
    next[1] = b_.add(next[1], b_.constant(kU64, static_cast<uint64_t>(blocks)));
    if (!threefry_ && next.size() > 2) {
      const ValueId carry = b_.convert(b_.compare(K::kLt, next[1], words_[1]), kU64);
      next[2] = b_.add(next[2], carry);
    }
    const ElementType type = op_.result_type(0).element_type();
    Values elements;
    for (const ValueId word : next) {
      if (bit_width(type) == 64) {
        elements.push_back(word);
      } else {
        const Pair parts = halves(b_, word);
        elements.insert(elements.end(), parts.begin(), parts.end());
      }
    }
    ValueId value = elements[0];
    for (size_t i = 1; i < elements.size(); ++i) {
      const ValueId here = b_.compare(K::kEq, index[0], b_.index(static_cast<int64_t>(i)));
      value = b_.select(here, elements[i], value);
    }
    return {b_.bitcast(value, type)};
  }

 private:
  int64_t block_count() const {
    const int64_t count = element_count(output_.dims());
    if (threefry_ && !wide_) {
      const ThreefrySplit s = split_of(output_.dims());
      return s.size == 0 ? 0 : count / s.size * s.half;
    }
    const int64_t per_block = threefry_ ? 1 : (wide_ ? 2 : 4);
    return (count + per_block - 1) / per_block;
  }

  ValueId counter(ValueId block) { return b_.add(words_[1], b_.convert(block, kU64)); }

  ValueId threefry_bits(const Values& index) {
    const Pair key = halves(b_, words_[0]);
    const Dims& dims = output_.dims();
    if (wide_) {
      const ValueId at = counter(linear_index(b_, index, dims));
      const Pair x = threefry(b_, key, halves(b_, at));
      return join(b_, x[0], x[1]);
    }
    if (dims.empty()) return threefry(b_, key, halves(b_, words_[1]))[0];
    const ThreefrySplit s = split_of(dims);
    Dims blocks = dims;
    blocks[s.axis] = s.half;
    Values block = index;
    block[s.axis] = b_.div(index[s.axis], b_.index(2));
    const Pair x = threefry(b_, key, halves(b_, counter(linear_index(b_, block, blocks))));
    const ValueId odd = b_.rem(index[s.axis], b_.index(2));
    return b_.select(b_.compare(K::kEq, odd, b_.index(0)), x[0], x[1]);
  }

  ValueId philox_bits(const Values& index) {
    const ValueId linear = linear_index(b_, index, output_.dims());
    const ValueId per_block = b_.index(wide_ ? 2 : 4);
    const ValueId place = b_.rem(linear, per_block);
    const ValueId low = counter(b_.div(linear, per_block));
    const ValueId carry = b_.convert(b_.compare(K::kLt, low, words_[1]), kU64);
    const ValueId high = b_.add(words_[words_.size() > 2 ? 2 : 0], carry);
    const Pair l = halves(b_, low);
    const Pair h = halves(b_, high);
    const Four x = philox(b_, halves(b_, words_[0]), {l[0], l[1], h[0], h[1]});
    const auto is = [&](int64_t k) { return b_.compare(K::kEq, place, b_.index(k)); };
    if (wide_) return b_.select(is(0), join(b_, x[0], x[1]), join(b_, x[2], x[3]));
    return b_.select(is(0), x[0], b_.select(is(1), x[1], b_.select(is(2), x[2], x[3])));
  }

  ElementEmitter& e_;
  Builder& b_;
  const Instruction& op_;
  bool threefry_;
  const Type& output_;
  bool wide_;
  std::vector<ValueId> words_;
};

// Result 0 is the next state, result 1 the bits.
Element emit_random(ElementEmitter& e, const Instruction& op, uint32_t result,
                    const Values& index) {
  if (std::string fault = random_state_fault(op); !fault.empty()) {
    e.fail(op, std::move(fault));
    return {e.b.constant(op.result_type(result).element_type(), 0)};
  }
  RandomBitsEmitter generator(e, op);
  return result == 0 ? generator.next_state(index) : generator.bits(index);
}

}  // namespace

namespace emit {
constinit const ElementRule rng_bit_generator = {.result = emit_random};
}  // namespace emit

}  // namespace tenon::hlo::lower
