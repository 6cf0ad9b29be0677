// Samples of ops that combine elements, of control flow and of random numbers.
#include "hlo/sample/sampler.h"

namespace tenon::hlo::sample {
namespace {

using enum ElementType;

}  // namespace

// Up to two spatial dimensions, each operand's dimensions in any order; a trivial one has windows
// of one element and nothing else.
Instruction* convolution(Sampler& s, OpCode code) {
  const auto number = [](const Type& type) {
    return type.rank() >= 2 && type.rank() <= 4 && !is_pred(type.element_type());
  };
  const Value x = s.array(0, number);
  if (!x) return nullptr;
  const bool trivial = s.is_trivial();
  const auto rank = static_cast<size_t>(x.type().rank());
  const auto permutation = [&] {
    I64s axes;
    for (size_t i = 0; i < rank; ++i) {
      const auto at = s.random.below(static_cast<int64_t>(axes.size()) + 1);
      axes.insert(axes.begin() + at, static_cast<int64_t>(i));
    }
    return axes;
  };
  const I64s input = permutation();
  const I64s kernel = permutation();
  const I64s output = permutation();
  const auto size = [](const Type& type, int64_t axis) {
    return type.dims()[static_cast<size_t>(axis)];
  };
  const Value y = s.array(1, [&](const Type& type) {
    if (type.rank() != x.type().rank() || type.element_type() != x.type().element_type() ||
        size(type, kernel[1]) != size(x.type(), input[1])) {
      return false;
    }
    return !trivial || std::all_of(kernel.begin() + 2, kernel.end(),
                                   [&](int64_t axis) { return size(type, axis) == 1; });
  });
  if (!y) return nullptr;
  const I64s spatial(input.begin() + 2, input.end());
  ConvDims dims = {input[0],  input[1],  spatial,
                   kernel[1], kernel[0], I64s(kernel.begin() + 2, kernel.end()),
                   output[0], output[1], I64s(output.begin() + 2, output.end())};
  const auto count = static_cast<int64_t>(spatial.size());
  // Drawn numbers, or those of a trivial one.
  const auto each = [&](int64_t least, int64_t most, int64_t plain, int64_t values) {
    I64s list;
    for (int64_t i = 0; i < values; ++i) {
      list.push_back(trivial ? plain : s.random.between(least, most));
    }
    return list;
  };
  const int64_t products = element_count(x.type().dims()) * element_count(y.type().dims());
  if (products > 20 * s.max_elements || products == 0) return nullptr;
  const Value result =
      s.b().make(code, {x, y},
                 {{AttrKey::window_strides, each(1, 2, 1, count)},
                  {AttrKey::padding, I64Matrix{count, 2, each(-1, 2, 0, 2 * count)}},
                  {AttrKey::lhs_dilation, each(1, 2, 1, count)},
                  {AttrKey::rhs_dilation, each(1, 2, 1, count)},
                  {AttrKey::dimension_numbers, dims},
                  {AttrKey::feature_group_count, IntegerAttr{1, kS64}},
                  {AttrKey::batch_group_count, IntegerAttr{1, kS64}}});
  return result ? result.def : nullptr;
}

// Each dimension of both factors is contracted or a batch dimension.
Instruction* dot_without_free(Sampler& s, Value x) {
  const Value y = s.of_type(1, x.type());
  if (!y) return nullptr;
  DotDims dims;
  for (int64_t d = 0; d < x.type().rank(); ++d)
    (s.random.one_in(2) ? dims.lhs_contracting : dims.lhs_batching).push_back(d);
  dims.rhs_contracting = dims.lhs_contracting;
  dims.rhs_batching = dims.lhs_batching;
  const Value product = s.b().dot_general(x, y, dims, x.type().element_type());
  return product ? product.def : nullptr;
}

Instruction* dot_general(Sampler& s, OpCode) {
  const auto number = [](const Type& type) {
    return type.rank() >= 1 && type.rank() <= 3 && !is_pred(type.element_type());
  };
  const Value x = s.array(0, number);
  if (!x) return nullptr;
  if (s.random.one_in(4)) return dot_without_free(s, x);
  const Value y = s.array(1, [&](const Type& type) {
    return number(type) && type.element_type() == x.type().element_type();
  });
  if (!y) return nullptr;
  DotDims dims;
  // Contracts a pair of dimensions of equal size, batches another pair.
  std::vector<bool> used_x(x.type().dims().size());
  std::vector<bool> used_y(y.type().dims().size());
  for (int64_t role = 0; role < 2; ++role) {
    for (size_t i = 0; i < used_x.size(); ++i) {
      for (size_t j = 0; j < used_y.size(); ++j) {
        if (used_x[i] || used_y[j] || x.type().dims()[i] != y.type().dims()[j]) continue;
        if (s.random.one_in(2)) continue;
        used_x[i] = used_y[j] = true;
        (role == 0 ? dims.lhs_contracting : dims.lhs_batching).push_back(static_cast<int64_t>(i));
        (role == 0 ? dims.rhs_contracting : dims.rhs_batching).push_back(static_cast<int64_t>(j));
      }
    }
  }
  int64_t products = 1;
  for (size_t i = 0; i < used_x.size(); ++i) products *= x.type().dims()[i];
  for (size_t j = 0; j < used_y.size(); ++j) products *= used_y[j] ? 1 : y.type().dims()[j];
  if (products > 20 * s.max_elements || products == 0) return nullptr;
  const Value product = s.b().dot_general(x, y, dims, x.type().element_type());
  return product ? product.def : nullptr;
}

Instruction* reduce(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  I64s over;
  for (int64_t d = 0; d < x.type().rank(); ++d) {
    if (s.random.one_in(2)) over.push_back(d);
  }
  const ElementType type = x.type().element_type();
  const OpCode combiner = s.combiner(type);
  return s.b().reduce(combiner, x, s.neutral(combiner, type), over).def;
}

Instruction* reduce_window(Sampler& s, OpCode code) {
  const Value x = s.array(0, [](const Type& type) { return type.rank() >= 1 && type.rank() <= 3; });
  if (!x) return nullptr;
  const ElementType type = x.type().element_type();
  const OpCode combiner = s.combiner(type);
  I64s window, strides, dilations;
  I64Matrix padding{x.type().rank(), 2, {}};
  for (int64_t d = 0; d < x.type().rank(); ++d) {
    window.push_back(s.random.between(1, 3));
    strides.push_back(s.random.between(1, 2));
    dilations.push_back(s.random.of({1, 1, 2}));
    padding.values.push_back(s.random.between(0, 2));
    padding.values.push_back(s.random.between(0, 2));
  }
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(binary_region(combiner, Type::tensor(type, {})));
  const AttrKey dilated = s.random.one_in(2) ? AttrKey::window_dilations : AttrKey::base_dilations;
  return s.b().create(code, {x, s.neutral(combiner, type)},
                      {{AttrKey::window_dimensions, window},
                       {AttrKey::window_strides, strides},
                       {dilated, dilations},
                       {AttrKey::padding, padding}},
                      {}, std::move(regions));
}

Instruction* sort(Sampler& s, OpCode code) {
  const Value x = s.array(
      0, [](const Type& type) { return type.rank() >= 1 && !is_complex(type.element_type()); });
  if (!x) return nullptr;
  std::vector<Value> operands = {x};
  if (s.random.one_in(2)) {
    const Value other =
        s.array(1, [&](const Type& type) { return type.dims() == x.type().dims(); });
    if (other) operands.push_back(other);
  }
  auto region = std::make_unique<Computation>();
  std::vector<Value> sides;
  for (const Value operand : operands) {
    for (int side = 0; side < 2; ++side) {
      const Value p = region->add_parameter(Type::tensor(operand.type().element_type(), {}));
      if (sides.size() < 2) sides.push_back(p);
    }
  }
  Builder inner(*region);
  const bool total = is_float(x.type().element_type());
  const auto direction = s.random.of({ComparisonDirection::kLt, ComparisonDirection::kGt});
  const Value less = inner.compare(direction, sides[0], sides[1],
                                   total ? ComparisonType::kTotalOrder : ComparisonType::kNoType);
  if (!inner.finish({less}).ok()) return nullptr;
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(std::move(region));
  return s.b().create(
      code, operands,
      {{AttrKey::dimension, s.random.below(x.type().rank())}, {AttrKey::is_stable, true}}, {},
      std::move(regions));
}

Instruction* rng_bit_generator(Sampler& s, OpCode code) {
  Literal state(Shape(kU64, {2}));
  state.set_integer(0, static_cast<int64_t>(s.random.bits()));
  state.set_integer(1, s.random.one_in(2) ? -1 : 3);
  const ElementType bits = s.random.of({kU8, kU32, kU64, kS32});
  const Attribute algorithm =
      EnumAttr{EnumKind::kRngAlgorithm, static_cast<uint8_t>(s.random.between(1, 2))};
  return s.b().create(code, {s.b().constant(state)}, {{AttrKey::rng_algorithm, algorithm}},
                      {Type::tensor(kU64, {2}), Type::tensor(bits, s.dims())});
}

// --- Control flow

Instruction* while_op(Sampler& s, OpCode) {
  const Value x = s.array(1);
  const Value y = x ? s.of_type(2, x.type()) : Value();
  if (!y) return nullptr;
  const int64_t trips = s.random.between(0, 4);
  const Value zero = s.b().constant(Literal::scalar_integer(kS32, 0));
  const auto state = s.b().while_loop(
      {zero, x, y},
      [&](Builder& c, const std::vector<Value>& carried) {
        return c.compare(ComparisonDirection::kLt, carried[0],
                         c.constant(Literal::scalar_integer(kS32, trips)));
      },
      [&](Builder& c, const std::vector<Value>& carried) {
        const Value one = c.constant(Literal::scalar_integer(kS32, 1));
        // The two also change places.
        return std::vector<Value>{c.add(carried[0], one), s.exact(c, carried[1], carried[2]),
                                  carried[1]};
      });
  return s.b().ok() && !state.empty() ? state[0].def : nullptr;
}

namespace {

Instruction* branches(Sampler& s, OpCode code, ElementType index, int64_t count) {
  const Value chosen =
      s.array(0, [&](const Type& type) { return type == Type::tensor(index, {}); });
  const Value x = chosen ? s.array(1) : Value();
  const Value y = x ? s.of_type(2, x.type()) : Value();
  if (!y) return nullptr;
  std::vector<std::unique_ptr<Computation>> regions;
  for (int64_t i = 0; i < count; ++i) {
    auto branch = std::make_unique<Computation>();
    Builder inner(*branch);
    const Value first = s.exact(inner, x, y);
    if (!inner.finish({first, s.random.one_in(2) ? first : y}).ok()) return nullptr;
    regions.push_back(std::move(branch));
  }
  return s.b().create(code, {chosen}, {}, {}, std::move(regions));
}

}  // namespace

Instruction* case_op(Sampler& s, OpCode code) {
  return branches(s, code, kS32, s.random.between(1, 4));
}

Instruction* if_op(Sampler& s, OpCode code) { return branches(s, code, kPred, 2); }

}  // namespace tenon::hlo::sample
