// Ops that move elements: exact on every type. Each result goes through an op that computes, since
// a device may pass on an array without running anything.
#include "conformance/cases/case_list.h"

namespace tenon::conformance {
namespace {

using hlo::AttrKey;
using hlo::GatherDims;
using hlo::I64s;
using hlo::OpCode;
using hlo::ScatterDims;
using hlo::Type;
using hlo::Value;
using enum ElementType;

constexpr Variant kBroadcastInDim[] = {
    {"row", [](ProgramMaker& m,
               ElementType t) { m.consume(m.b().broadcast_in_dim(m.data(t, {7}), {5, 7}, {1})); }},
    {"column",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().broadcast_in_dim(m.data(t, {5}), {5, 7}, {0}));
     }},
    {"scalar",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().broadcast_in_dim(m.data(t, {}), {3, 1, 11}, {}));
     }},
    {"size_one",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().broadcast_in_dim(m.data(t, {1, 6}), {4, 3, 6}, {1, 2}));
     }},
    {"transposed",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().broadcast_in_dim(m.data(t, {3, 4}), {4, 2, 3}, {2, 0}));
     }},
    {"rank6",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().broadcast_in_dim(m.data(t, {2, 3}), {2, 1, 2, 2, 3, 2}, {0, 4}));
     }},
    {"empty", [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().broadcast_in_dim(m.data(t, {4}), {0, 4}, {1}));
     }}};

constexpr Variant kConcatenate[] = {
    {"rows",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().concatenate({m.data(t, {3, 5}), m.data(t, {2, 5})}, 0));
     }},
    {"columns",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().concatenate({m.data(t, {3, 5}), m.data(t, {3, 1}), m.data(t, {3, 8})}, 1));
     }},
    {"with_empty",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().concatenate({m.data(t, {0}), m.data(t, {9}), m.data(t, {0})}, 0));
     }},
    {"many", [](ProgramMaker& m, ElementType t) {
       std::vector<Value> parts;
       for (int64_t i = 0; i < 19; ++i) parts.push_back(m.data(t, {1 + i % 3}));
       m.consume(m.b().concatenate(parts, 0));
     }}};

constexpr Variant kReshape[] = {
    {"flatten",
     [](ProgramMaker& m, ElementType t) { m.consume(m.b().reshape(m.data(t, {3, 7}), {21})); }},
    {"split",
     [](ProgramMaker& m, ElementType t) { m.consume(m.b().reshape(m.data(t, {24}), {2, 3, 4})); }},
    {"to_scalar",
     [](ProgramMaker& m, ElementType t) { m.consume(m.b().reshape(m.data(t, {1, 1}), {})); }},
    {"after_transpose", [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().reshape(m.b().transpose(m.data(t, {4, 6}), {1, 0}), {3, 8}));
     }}};

constexpr Variant kTranspose[] = {
    {"matrix",
     [](ProgramMaker& m, ElementType t) { m.consume(m.b().transpose(m.data(t, {5, 7}), {1, 0})); }},
    {"tiles", [](ProgramMaker& m,
                 ElementType t) { m.consume(m.b().transpose(m.data(t, {65, 67}), {1, 0})); }},
    {"cycle", [](ProgramMaker& m,
                 ElementType t) { m.consume(m.b().transpose(m.data(t, {2, 3, 5}), {2, 0, 1})); }},
    {"inner",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().transpose(m.data(t, {2, 3, 5, 4}), {0, 2, 1, 3}));
     }},
    {"rank6",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().transpose(m.data(t, {2, 1, 3, 2, 1, 2}), {5, 3, 1, 0, 4, 2}));
     }},
    {"empty", [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().transpose(m.data(t, {3, 0}), {1, 0}));
     }}};

constexpr Variant kSlice[] = {
    {"middle", [](ProgramMaker& m,
                  ElementType t) { m.consume(m.b().slice(m.data(t, {6, 9}), {1, 2}, {5, 9})); }},
    {"strided",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().slice(m.data(t, {11, 13}), {0, 1}, {11, 13}, {3, 5}));
     }},
    {"one",
     [](ProgramMaker& m, ElementType t) { m.consume(m.b().slice(m.data(t, {17}), {16}, {17})); }},
    {"nothing",
     [](ProgramMaker& m, ElementType t) { m.consume(m.b().slice(m.data(t, {17}), {4}, {4})); }}};

constexpr Variant kPad[] = {
    {"edges",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().pad(m.data(t, {3, 5}), m.data(t, {}), {1, 2}, {0, 3}));
     }},
    {"interior",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().pad(m.data(t, {3, 5}), m.data(t, {}), {0, 0}, {0, 1}, {2, 1}));
     }},
    {"negative",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().pad(m.data(t, {6, 7}), m.data(t, {}), {-1, 2}, {-2, -3}, {0, 1}));
     }},
    {"of_empty", [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().pad(m.data(t, {0}), m.data(t, {}), {3}, {4}));
     }}};

constexpr Variant kReverse[] = {
    {"vector",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().make(OpCode::kReverse, {m.data(t, {13})}, {{AttrKey::dimensions, I64s{0}}}));
     }},
    {"inner",
     [](ProgramMaker& m, ElementType t) {
       m.consume(
           m.b().make(OpCode::kReverse, {m.data(t, {3, 5, 2})}, {{AttrKey::dimensions, I64s{1}}}));
     }},
    {"all", [](ProgramMaker& m, ElementType t) {
       m.consume(
           m.b().make(OpCode::kReverse, {m.data(t, {4, 6})}, {{AttrKey::dimensions, I64s{1, 0}}}));
     }}};

// An iota has no operand: it is added to one, or a constant would remain.
void make_iota(ProgramMaker& m, ElementType t, const Dims& dims, int64_t dimension) {
  const Value counted = m.b().iota(t, dims, dimension);
  m.b().add(counted, m.data(t, dims));
}
constexpr Variant kIota[] = {
    {"vector", [](ProgramMaker& m, ElementType t) { make_iota(m, t, {29}, 0); }},
    {"rows", [](ProgramMaker& m, ElementType t) { make_iota(m, t, {5, 7}, 0); }},
    {"columns", [](ProgramMaker& m, ElementType t) { make_iota(m, t, {5, 7}, 1); }}};

// Some start indices are out of range on either side, and clamped.
constexpr Variant kDynamicSlice[] = {
    {"vector",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().dynamic_slice(m.data(t, {23}), {m.integers(kS32, {}, -4, 30)}, {7}));
     }},
    {"matrix",
     [](ProgramMaker& m, ElementType t) {
       const Value row = m.integers(kS64, {}, -2, 8);
       const Value column = m.integers(kS64, {}, -2, 12);
       m.consume(m.b().dynamic_slice(m.data(t, {6, 11}), {row, column}, {2, 5}));
     }},
    {"unsigned_index",
     [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().dynamic_slice(m.data(t, {9}), {m.integers(kU8, {}, 0, 255)}, {4}));
     }},
    {"whole", [](ProgramMaker& m, ElementType t) {
       m.consume(m.b().dynamic_slice(m.data(t, {5}), {m.integers(kS32, {}, -9, 9)}, {5}));
     }}};

constexpr Variant kDynamicUpdateSlice[] = {
    {"vector",
     [](ProgramMaker& m, ElementType t) {
       const Value start = m.integers(kS32, {}, -4, 30);
       m.consume(m.b().dynamic_update_slice(m.data(t, {23}), m.data(t, {7}), {start}));
     }},
    {"matrix",
     [](ProgramMaker& m, ElementType t) {
       const Value row = m.integers(kS64, {}, -2, 8);
       const Value column = m.integers(kS64, {}, -2, 12);
       m.consume(m.b().dynamic_update_slice(m.data(t, {6, 11}), m.data(t, {2, 5}), {row, column}));
     }},
    {"operand_used_again", [](ProgramMaker& m, ElementType t) {
       const Value x = m.data(t, {23});
       const Value start = m.integers(kS32, {}, 0, 16);
       m.consume(m.b().dynamic_update_slice(x, m.data(t, {3}), {start}));
       m.consume(x);
     }}};

Value gather(ProgramMaker& m, Value x, Value indices, const GatherDims& dims, const I64s& sizes) {
  return m.b().make(OpCode::kGather, {x, indices},
                    {{AttrKey::dimension_numbers, dims}, {AttrKey::slice_sizes, sizes}});
}
constexpr Variant kGather[] = {
    {"rows",
     [](ProgramMaker& m, ElementType t) {
       const GatherDims dims{{1}, {0}, {}, {}, {0}, 1};
       m.consume(gather(m, m.data(t, {6, 5}), m.integers(kS32, {7, 1}, -3, 9), dims, {1, 5}));
     }},
    {"elements",
     [](ProgramMaker& m, ElementType t) {
       const GatherDims dims{{}, {0, 1}, {}, {}, {0, 1}, 1};
       m.consume(gather(m, m.data(t, {6, 5}), m.integers(kS64, {11, 2}, -2, 8), dims, {1, 1}));
     }},
    {"windows",
     [](ProgramMaker& m, ElementType t) {
       const GatherDims dims{{1, 2}, {}, {}, {}, {1, 0}, 1};
       m.consume(gather(m, m.data(t, {6, 7}), m.integers(kS32, {4, 2}, -2, 8), dims, {2, 3}));
     }},
    {"batch",
     [](ProgramMaker& m, ElementType t) {
       const GatherDims dims{{2}, {1}, {0}, {0}, {1}, 2};
       m.consume(
           gather(m, m.data(t, {3, 6, 4}), m.integers(kS32, {3, 5, 1}, 0, 7), dims, {1, 1, 4}));
     }},
    {"unsigned_index", [](ProgramMaker& m, ElementType t) {
       const GatherDims dims{{1}, {0}, {}, {}, {0}, 1};
       m.consume(gather(m, m.data(t, {6, 5}), m.integers(kU8, {7, 1}, 0, 255), dims, {1, 5}));
     }}};

// The body returns the update: with indices that differ, no order matters.
Value scatter(ProgramMaker& m, Value x, Value indices, Value updates, const ScatterDims& dims,
              OpCode combiner) {
  const Type scalar = Type::tensor(x.type().element_type(), {});
  std::vector<std::unique_ptr<hlo::Computation>> regions;
  regions.push_back(hlo::binary_region(combiner, scalar));
  hlo::Instruction* const op =
      m.b().create(OpCode::kScatter, {x, indices, updates},
                   {{AttrKey::scatter_dimension_numbers, dims}}, {}, std::move(regions));
  return op == nullptr ? Value() : op->result();
}
constexpr Variant kScatter[] = {
    {"max_rows",
     [](ProgramMaker& m, ElementType t) {
       const ScatterDims dims{{1}, {0}, {}, {}, {0}, 1};
       m.consume(scatter(m, m.data(t, {6, 5}), m.integers(kS32, {7, 1}, -2, 8), m.data(t, {7, 5}),
                         dims, OpCode::kMaximum));
     }},
    {"max_elements",
     [](ProgramMaker& m, ElementType t) {
       const ScatterDims dims{{}, {0, 1}, {}, {}, {0, 1}, 1};
       m.consume(scatter(m, m.data(t, {6, 5}), m.integers(kS64, {13, 2}, -1, 7), m.data(t, {13}),
                         dims, OpCode::kMaximum));
     }},
    {"min_windows",
     [](ProgramMaker& m, ElementType t) {
       const ScatterDims dims{{1, 2}, {}, {}, {}, {1, 0}, 1};
       m.consume(scatter(m, m.data(t, {6, 7}), m.integers(kS32, {4, 2}, -2, 8),
                         m.data(t, {4, 2, 3}), dims, OpCode::kMinimum));
     }},
    {"batch",
     [](ProgramMaker& m, ElementType t) {
       const ScatterDims dims{{2}, {1}, {0}, {0}, {1}, 2};
       m.consume(scatter(m, m.data(t, {3, 6, 4}), m.integers(kS32, {3, 5, 1}, 0, 7),
                         m.data(t, {3, 5, 4}), dims, OpCode::kMaximum));
     }},
    {"one_add", [](ProgramMaker& m, ElementType t) {
       const ScatterDims dims{{}, {0}, {}, {}, {0}, 0};
       m.consume(scatter(m, m.data(t, {9}), m.integers(kS32, {1}, 0, 8), m.data(t, {}), dims,
                         OpCode::kAdd));
     }}};

template <bool kDescending>
void make_sort(ProgramMaker& m, ElementType t, const Dims& dims, int64_t dimension, bool stable) {
  // Complex numbers with a NaN have no order.
  const bool ordered = !is_complex(t);
  const Value keys = m.argument(
      random_values(Shape(t, dims), ordered ? m.values() : ValueClass::kOrdinary, m.random()));
  const Value positions = m.b().iota(kS32, dims, dimension);
  auto region = std::make_unique<hlo::Computation>();
  const Value a = region->add_parameter(Type::tensor(t, {}));
  const Value b = region->add_parameter(Type::tensor(t, {}));
  region->add_parameter(Type::tensor(kS32, {}));
  region->add_parameter(Type::tensor(kS32, {}));
  hlo::Builder body(*region);
  const auto direction =
      kDescending ? hlo::ComparisonDirection::kGt : hlo::ComparisonDirection::kLt;
  const auto by = is_float(t) ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNoType;
  m.b().fail(body.finish({body.compare(direction, a, b, by)}));
  std::vector<std::unique_ptr<hlo::Computation>> regions;
  regions.push_back(std::move(region));
  m.b().create(OpCode::kSort, {keys, positions},
               {{AttrKey::dimension, dimension}, {AttrKey::is_stable, stable}}, {},
               std::move(regions));
}
constexpr Variant kSort[] = {
    {"vector", [](ProgramMaker& m, ElementType t) { make_sort<false>(m, t, {37}, 0, true); }},
    {"descending", [](ProgramMaker& m, ElementType t) { make_sort<true>(m, t, {37}, 0, true); }},
    {"rows", [](ProgramMaker& m, ElementType t) { make_sort<false>(m, t, {5, 16}, 1, true); }},
    {"columns", [](ProgramMaker& m, ElementType t) { make_sort<false>(m, t, {17, 3}, 0, true); }},
    {"long", [](ProgramMaker& m, ElementType t) { make_sort<false>(m, t, {1025}, 0, true); }}};

}  // namespace

void add_movement_cases(CaseList& list) {
  add_variants(list, OpCode::kBroadcastInDim, kBroadcastInDim);
  add_variants(list, OpCode::kConcatenate, kConcatenate);
  add_variants(list, OpCode::kDynamicSlice, kDynamicSlice);
  add_variants(list, OpCode::kDynamicUpdateSlice, kDynamicUpdateSlice);
  add_variants(list, OpCode::kGather, kGather);
  add_variants(list, OpCode::kIota, kIota, kOrdinaryValues);
  add_variants(list, OpCode::kPad, kPad);
  add_variants(list, OpCode::kReshape, kReshape);
  add_variants(list, OpCode::kReverse, kReverse);
  add_variants(list, OpCode::kScatter, kScatter);
  add_variants(list, OpCode::kSlice, kSlice);
  add_variants(list, OpCode::kSort, kSort);
  add_variants(list, OpCode::kTranspose, kTranspose);
}

}  // namespace tenon::conformance
