// Rules of linear algebra, Fourier transforms and random numbers.
#include "hlo/inference/infer_util.h"
#include "hlo/inference/random_state.h"

namespace tenon::hlo::infer {

Types cholesky(const Instruction& op) {
  const Type& a = op.operand_type(0);
  const int64_t rank = a.rank();
  if (rank < 2) {
    return rule_error(op, "C2", "operand is {}, expected rank 2 or more", a.to_string());
  }
  if (!same_size(a.dims()[at(rank - 2)], a.dims()[at(rank - 1)])) {
    return rule_error(op, "C3", "operand is {}, expected square matrices", a.to_string());
  }
  return one(settle(op, 0, a));
}

Types triangular_solve(const Instruction& op) {
  const Type& a = op.operand_type(0);
  const Type& b = op.operand_type(1);
  const int64_t rank = a.rank();
  if (!same_element(a, b)) {
    return rule_error(op, "C1", "element types differ: {} and {}", element_to_string(a),
                      element_to_string(b));
  }
  if (rank < 2 || b.rank() != rank) {
    return rule_error(op, "C2", "operands are {} and {}, expected the same rank of 2 or more",
                      a.to_string(), b.to_string());
  }
  const int64_t size = a.dims()[at(rank - 1)];
  const bool is_left = op.flag(AttrKey::left_side);
  bool fits_b = same_size(a.dims()[at(rank - 2)], size) &&
                same_size(b.dims()[at(rank - (is_left ? 2 : 1))], size);
  std::vector<Dim> dims = dims_of(b);
  for (int64_t d = 0; d < rank - 2; ++d) {
    fits_b = fits_b && same_size(a.dims()[at(d)], b.dims()[at(d)]);
    dims[at(d)] = merge(dims[at(d)], dim_of(a, d));
  }
  if (!fits_b) {
    return rule_error(op, "C3",
                      "a is {}, b is {}, expected equal batch dimensions, square a and its "
                      "size in {} of b",
                      a.to_string(), b.to_string(), is_left ? "the rows" : "the columns");
  }
  if (op.enumeration<Transpose>(AttrKey::transpose_a) == Transpose::kInvalid) {
    return rule_error(
        op, "I6", "transpose_a is TRANSPOSE_INVALID, expected NO_TRANSPOSE, TRANSPOSE or ADJOINT");
  }
  return one(settle(op, 0, with_dims(b, dims)));
}

Types fft(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const I64s& fft_length = op.i64s(AttrKey::fft_length);
  const auto type = op.enumeration<FftType>(AttrKey::fft_type);
  const int64_t count = length(fft_length);
  if (count < 1 || count > 3) {
    return rule_error(op, "C3", "fft_length has length {}, expected 1 to 3", count);
  }
  if (count > operand.rank()) {
    return rule_error(op, "C1", "fft_length has length {}, expected at most the rank of {}", count,
                      operand.to_string());
  }
  const std::optional<ElementType> complex_type = complex_of(operand.element_type());
  const bool is_complex_operand = is_complex(operand.element_type());
  if (type == FftType::kRfft ? !complex_type.has_value() : !is_complex_operand) {
    return rule_error(op, "C2", "operand is {}, expected {}", operand.to_string(),
                      type == FftType::kRfft ? "f32 or f64" : "complex numbers");
  }
  const int64_t last = fft_length.back();
  for (int64_t size : fft_length) {
    if (size < 0) return rule_error(op, "C4", "fft_length contains {}, a negative size", size);
  }
  const int64_t first = operand.rank() - count;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = operand.dims()[at(first + i)];
    const bool is_last = i + 1 == count;
    // C4 covers only the real side. A complex transform whose sizes differ from its operand's would
    // have to pad or crop, which the specification does not define, so C4 is applied to every kind
    // here.
    if (type != FftType::kIrfft || !is_last) {
      if (!same_size(size, fft_length[at(i)])) {
        return rule_error(op, "C4", "dimension {} of {} is {}, expected {} as in fft_length",
                          first + i, operand.to_string(), size, fft_length[at(i)]);
      }
    }
  }
  std::vector<Dim> dims = dims_of(operand);
  if (type == FftType::kRfft) {
    dims.back() = {last == 0 ? 0 : last / 2 + 1, kDynamic};
    return one(with_dims(with_element(operand, *complex_type), dims));
  }
  if (type == FftType::kIrfft) {
    const int64_t expected = last == 0 ? 0 : last / 2 + 1;
    if (!same_size(dims.back().size, expected)) {
      return rule_error(op, "C5", "last dimension of {} is {}, expected {} for a result of {}",
                        operand.to_string(), dims.back().size, expected, last);
    }
    dims.back() = {last, kDynamic};
    return one(with_dims(with_element(operand, complex_part(operand.element_type())), dims));
  }
  return one(operand);
}

Types rng(const Instruction& op) {
  const Type& a = op.operand_type(0);
  const Type& b = op.operand_type(1);
  TENON_TRY(check_scalar(op, "I1", 0));
  TENON_TRY(check_scalar(op, "I2", 1));
  TENON_TRY(check_rank1(op, "I3", 2));
  TENON_TRY(check_integer(op, "I3", 2));
  if (!same_element(a, b)) {
    return rule_error(op, "C1", "element types differ: {} and {}", element_to_string(a),
                      element_to_string(b));
  }
  const auto distribution = op.enumeration<RngDistribution>(AttrKey::rng_distribution);
  if (distribution == RngDistribution::kNone) {
    return rule_error(op, "I4", "rng_distribution has no meaning, expected UNIFORM or NORMAL");
  }
  if (distribution == RngDistribution::kNormal && type_class(a) != kTypesFloat) {
    return rule_error(op, "C2", "a is {}, expected floats for a NORMAL distribution",
                      a.to_string());
  }
  const std::optional<I64s> sizes = constant_integers(op.operand(2));
  const int64_t rank = op.operand_type(2).dims()[0];
  if (sizes) {
    std::vector<Dim> dims;
    for (int64_t size : *sizes) {
      if (size < 0) return rule_error(op, "C3", "shape contains {}, a negative size", size);
      dims.push_back({size, kDynamic});
    }
    return one(with_dims(a, dims));
  }
  if (op.result_count() == 1 && op.result_type().is_tensor()) {
    const Type& stated = op.result_type();
    if (!same_size(stated.rank(), rank)) {
      return rule_error(op, "C3", "result is {}, expected rank {}", stated.to_string(), rank);
    }
    return one(with_dims(a, dims_of(stated)));
  }
  constexpr int64_t kMostDimensions = 1024;
  if (rank == kDynamic || rank > kMostDimensions) {
    return rule_error(op, "C3", "shape is {}, from which no rank follows",
                      op.operand_type(2).to_string());
  }
  return one(with_dims(a, std::vector<Dim>(at(rank))));
}

// Integers that hold the words of a state, in one dimension.
bool has_state_type(const Type& state) {
  return is_integer(state.element_type()) && !state.is_quantized() && state.rank() == 1 &&
         bit_width(state.element_type()) >= 32;
}

Types rng_bit_generator(const Instruction& op) {
  const Type& state = op.operand_type(0);
  TENON_ASSIGN(const Type output, stated_tensor(op, 1));
  const bool is_of_compatibility_artifact =
      state.rank() == 0 && state.element_type() == ElementType::kF32;
  if (!is_of_compatibility_artifact) {
    const std::string fault = random_state_fault(op);
    if (!fault.empty()) return rule_error(op, has_state_type(state) ? "C2" : "I2", "{}", fault);
  }
  return std::vector<Type>{state, output};
}

}  // namespace tenon::hlo::infer

namespace tenon::hlo {

std::string random_state_fault(const Instruction& op) {
  const Type& state = op.operand_type(0);
  if (!infer::has_state_type(state)) {
    return fmt::format("initial_state is {}, expected u64[2] or u64[3]", state.to_string());
  }
  const bool is_threefry =
      op.enumeration<RngAlgorithm>(AttrKey::rng_algorithm) == RngAlgorithm::kThreeFry;
  const int64_t words = bit_width(state.element_type()) / 32;
  const auto has_words = [&](int64_t count) {
    return infer::same_size(state.dims()[0], 2 * count / words);
  };
  if (has_words(2) || (!is_threefry && has_words(3))) return {};
  const int64_t elements = words == 2 ? 1 : 2;
  const std::string expected = is_threefry ? fmt::format("{}", 2 * elements)
                                           : fmt::format("{} or {}", 2 * elements, 3 * elements);
  return fmt::format("initial_state is {}, expected {} elements for {}", state.to_string(),
                     expected, is_threefry ? "THREE_FRY" : "PHILOX and DEFAULT");
}

}  // namespace tenon::hlo
