// Samples of ops that move elements.
#include "hlo/sample/sampler.h"

namespace tenon::hlo::sample {
namespace {

using enum ElementType;

bool has_elements(const Type& type) { return type.rank() >= 1 && element_count(type.dims()) > 0; }

}  // namespace

// Not from integers to floats, because the evaluator has a single NaN and does not keep payloads.
Instruction* bitcast_convert(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  if (s.is_trivial()) return s.b().bitcast(x, x.type()).def;
  const ElementType from = x.type().element_type();
  const ElementType to = s.element_type();
  const bool keeps_nans = !is_float(to) || is_float(from);
  if (bit_width(to) != bit_width(from) || is_pred(to) || is_pred(from) || is_complex(to) ||
      is_complex(from) || !keeps_nans) {
    return nullptr;
  }
  return s.b().bitcast(x, Type::tensor(to, x.type().dims())).def;
}

Instruction* broadcast_in_dim(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  const Dims& dims = x.type().dims();
  if (s.is_trivial()) return s.b().broadcast_in_dim(x, dims, Sampler::counting(dims.size())).def;
  Dims to;
  I64s map;
  for (const int64_t size : dims) {
    if (s.random.one_in(3)) to.push_back(s.random.between(1, 5));
    map.push_back(static_cast<int64_t>(to.size()));
    to.push_back(size == 1 ? s.random.between(1, 4) : size);
  }
  if (s.random.one_in(2)) to.push_back(s.random.between(1, 3));
  if (element_count(to) > s.max_elements) return nullptr;
  return s.b().broadcast_in_dim(x, to, map).def;
}

Instruction* concatenate(Sampler& s, OpCode) {
  const Value x = s.array(0, [](const Type& type) { return type.rank() > 0; });
  if (!x) return nullptr;
  const auto axis = static_cast<size_t>(s.random.below(x.type().rank()));
  const auto fits = [&](const Type& type) {
    if (type.rank() != x.type().rank()) return false;
    Dims dims = type.dims();
    dims[axis] = x.type().dims()[axis];
    return Type::tensor(type.element_type(), dims) == x.type();
  };
  std::vector<Value> parts = {x};
  for (int64_t n = s.random.between(0, 2); n > 0; --n) {
    const Value part = s.array(parts.size(), fits);
    if (part) parts.push_back(part);
  }
  return s.b().concatenate(parts, static_cast<int64_t>(axis)).def;
}

Instruction* constant(Sampler& s, OpCode) {
  Literal values(Shape(s.element_type(), s.dims()));
  const ElementType type = values.element_type();
  for (int64_t i = 0; i < values.element_count(); ++i) {
    const double number = s.random.unit() - 0.5;
    if (is_complex(type)) values.set_complex(i, {number, 0});
    if (is_float(type)) values.set_double(i, number);
  }
  return values.element_count() == 0 ? nullptr : s.b().constant(std::move(values)).def;
}

Instruction* dynamic_slice(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  I64s sizes = x.type().dims();
  if (!s.is_trivial()) {
    for (int64_t& size : sizes) size = s.random.between(0, size);
  }
  return s.b().dynamic_slice(x, s.starts(x.type().dims()), sizes).def;
}

Instruction* dynamic_update_slice(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  Dims sizes = x.type().dims();
  if (!s.is_trivial()) {
    for (int64_t& size : sizes) size = s.random.between(0, size);
  }
  const Value update = s.of_type(1, Type::tensor(x.type().element_type(), sizes));
  if (!update) return nullptr;
  return s.b().dynamic_update_slice(x, update, s.starts(x.type().dims())).def;
}

// Gathers rows of the operand by an array of indices.
Instruction* gather(Sampler& s, OpCode code) {
  const Value x = s.array(0, has_elements);
  const Value indices = s.array(
      1, [](const Type& type) { return is_integer(type.element_type()) && type.rank() <= 2; });
  if (!x || !indices) return nullptr;
  GatherDims numbers;
  const auto axis = s.random.below(x.type().rank());
  numbers.start_index_map = {axis};
  numbers.index_vector_dim = indices.type().rank();
  numbers.collapsed_slice_dims = {axis};
  I64s sizes = x.type().dims();
  sizes[static_cast<size_t>(axis)] = 1;
  for (int64_t i = 0; i + 1 < x.type().rank(); ++i) {
    numbers.offset_dims.push_back(indices.type().rank() + i);
  }
  if (element_count(sizes) * element_count(indices.type().dims()) > s.max_elements) return nullptr;
  return s.b().create(code, {x, indices},
                      {{AttrKey::dimension_numbers, numbers}, {AttrKey::slice_sizes, sizes}});
}

Instruction* iota(Sampler& s, OpCode) {
  const ElementType type = s.element_type();
  const Dims dims = s.dims();
  if (dims.empty() || is_pred(type)) return nullptr;
  return s.b().iota(type, dims, s.random.below(static_cast<int64_t>(dims.size()))).def;
}

Instruction* pad(Sampler& s, OpCode) {
  const Value x = s.array(0);
  const Value value = x ? s.of_type(1, Type::tensor(x.type().element_type(), {})) : Value();
  if (!value) return nullptr;
  I64s low, high, interior;
  const bool trivial = s.is_trivial();
  for (const int64_t d : x.type().dims()) {
    const auto edge = [&] {
      return trivial ? int64_t{0} : s.random.between(-std::min<int64_t>(d, 1), 2);
    };
    low.push_back(edge());
    high.push_back(edge());
    interior.push_back(trivial ? 0 : s.random.of({0, 0, 1, 2}));
  }
  const Value padded = s.b().pad(x, value, low, high, interior);
  return padded ? padded.def : nullptr;
}

Instruction* reshape(Sampler& s, OpCode code) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  const Dims& dims = x.type().dims();
  const Dims to = s.is_trivial() ? dims : s.refactored(element_count(dims));
  return s.b().create(code, {x}, {}, {Type::tensor(x.type().element_type(), to)});
}

Instruction* reverse(Sampler& s, OpCode code) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  return s.b().create(code, {x}, {{AttrKey::dimensions, s.some_dimensions(x.type().rank())}});
}

// Combines updates into rows of the operand.
Instruction* scatter(Sampler& s, OpCode code) {
  const Value x = s.array(0, has_elements);
  const Value indices = s.array(
      1, [](const Type& type) { return is_integer(type.element_type()) && type.rank() <= 1; });
  if (!x || !indices) return nullptr;
  ScatterDims numbers;
  const auto axis = s.random.below(x.type().rank());
  numbers.scatter_dims_to_operand_dims = {axis};
  numbers.inserted_window_dims = {axis};
  numbers.index_vector_dim = indices.type().rank();
  Dims update_dims = indices.type().dims();
  for (int64_t d = 0; d < x.type().rank(); ++d) {
    if (d == axis) continue;
    numbers.update_window_dims.push_back(static_cast<int64_t>(update_dims.size()));
    update_dims.push_back(x.type().dims()[static_cast<size_t>(d)]);
  }
  if (element_count(update_dims) > s.max_elements) return nullptr;
  const ElementType type = x.type().element_type();
  const Value updates = s.of_type(2, Type::tensor(type, update_dims));
  if (!updates) return nullptr;
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(binary_region(s.combiner(type), Type::tensor(type, {})));
  return s.b().create(code, {x, indices, updates}, {{AttrKey::scatter_dimension_numbers, numbers}},
                      {}, std::move(regions));
}

Instruction* slice(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  const bool trivial = s.is_trivial();
  I64s start, limit, strides;
  for (const int64_t d : x.type().dims()) {
    start.push_back(trivial ? 0 : s.random.between(0, d));
    limit.push_back(trivial ? d : s.random.between(start.back(), d));
    strides.push_back(trivial ? 1 : s.random.between(1, 3));
  }
  return s.b().slice(x, start, limit, strides).def;
}

Instruction* transpose(Sampler& s, OpCode) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  const I64s order = Sampler::counting(x.type().dims().size());
  return s.b().transpose(x, s.is_trivial() ? order : s.shuffled(order)).def;
}

}  // namespace tenon::hlo::sample
