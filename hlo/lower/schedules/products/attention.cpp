// The schedule `attention`: the scores of a block of queries and keys at a time.
//
// For each block of keys a workgroup computes scores[key, query], keeps the greatest score of each
// query so far and the sum of exp(score - greatest), and adds the weights' product with the values
// to sums[query, value], which it scales when a greater score comes (online softmax). Keys come
// first, so that lanes of neighbouring queries need nothing of each other, and both products read
// keys and values in rows, as they usually lie in memory.
#include "hlo/lower/schedules/products/attention.h"

#include <algorithm>
#include <array>
#include <limits>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/products/score_arrays.h"
#include "hlo/lower/schedules/products/tiled_product.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr TuningParameterInfo kAttentionParameters[] = {
    {"attention_queries", "queries of an attention in a workgroup", 256, {1, 3, 8, 32}},
    {"attention_keys",
     "keys of an attention whose scores a workgroup holds",
     1024,
     {1, 5, 16, 32}}};

struct AttentionBlock {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t parts = 1;               ///< Lanes that share the keys of a query.
  std::vector<ScoreArray> arrays;  ///< Blocks of these are in scratch too.
};

int64_t greatest_divisor(int64_t count, int64_t most) {
  for (int64_t d = std::min(count, most); d > 1; --d) {
    if (count % d == 0) return d;
  }
  return 1;
}

class AttentionKernel {
 public:
  AttentionKernel(KernelMaker& maker, const Attention& of, const AttentionBlock& block,
                  const LowerLimits& limits)
      : maker_(maker),
        b_(maker.b()),
        e_(maker.e()),
        of_(of),
        block_(block),
        is_native_(has_native_tiles(limits)),
        scores_(*of.scores),
        output_(*of.output),
        type_(of.output->result_type().element_type()),
        queries_(element_count(of.queries_side == 0 ? scores_.m : scores_.n)),
        keys_(element_count(of.queries_side == 0 ? scores_.n : scores_.m)),
        depth_(element_count(scores_.k)),
        values_(element_count(of.weights_side == 0 ? output_.n : output_.m)) {}

  void run() {
    maker_.inputs();
    const MemoryId result = maker_.result(0);
    Dims grid = scores_.batch;
    grid.push_back(tiles_of(queries_, block_.queries));
    Values group = b_.grid(grid);
    first_query_ = b_.mul(group.back(), b_.index(block_.queries));
    group.pop_back();
    batch_ = group;
    declare();
    begin();
    b_.for_loop(b_.index(0), b_.index(keys_), block_.keys, {}, [&](const Values& key) {
      first_key_ = key[0];
      add_block();
      return Values{};
    });
    finish(result);
  }

 private:
  // A product's sums: in scratch, or of the lanes' own until its end.
  MemoryId sums_memory(const char* name, int64_t rows, int64_t columns) {
    if (is_native_) return b_.scratch(name, type_, {rows, columns});
    const std::array<int64_t, 2> lanes = {greatest_divisor(rows, kLanesOfSide),
                                          greatest_divisor(columns, kLanesOfSide)};
    return b_.private_memory(name, type_, {lanes[0], lanes[1], rows / lanes[0], columns / lanes[1]},
                             2);
  }

  void declare() {
    const Side key_side = side_of_keys();
    const Side value_side = side_of_values();
    key_matrix_ = matrix(key_side);
    value_matrix_ = matrix(value_side);
    query_tile_ = b_.scratch("queries", type_, {depth_, block_.queries});
    if (key_matrix_ == kernel::kNone) key_tile_ = b_.scratch("keys", type_, {block_.keys, depth_});
    if (value_matrix_ == kernel::kNone) {
      const bool shares = key_matrix_ == kernel::kNone && depth_ == values_;
      value_tile_ = shares ? key_tile_ : b_.scratch("values", type_, {block_.keys, values_});
    }
    weights_ = b_.scratch("weights", type_, {block_.keys, block_.queries});
    if (!is_native_) found_ = sums_memory("scores", block_.keys, block_.queries);
    sums_ = sums_memory("sums", block_.queries, values_);
    greatest_ = b_.scratch("greatest", type_, {block_.queries});
    total_ = b_.scratch("total", type_, {block_.queries});
    scale_ = b_.scratch("scale", type_, {block_.queries});
    for (const ScoreArray& array : block_.arrays) declare(array);
    if (block_.parts > 1) {
      part_greatest_ = b_.scratch("part_greatest", type_, {block_.parts, block_.queries});
      part_total_ = b_.scratch("part_total", type_, {block_.parts, block_.queries});
    }
  }

  void declare(const ScoreArray& array) {
    const MemoryId source = e_.memory_of(e_.resolve(array.source));
    if (source == kernel::kNone) return;
    const ElementType type = b_.kernel().memory(source).type;
    arrays_.push_back({array, source, b_.scratch("mask", type, {block_.keys, block_.queries})});
  }

  void begin() {
    const Side side = side_of_queries();
    bring(side, query_tile_, block_.queries, first_query_, queries_, true);
    b_.lanes({block_.queries}, [&](const Values& query) {
      b_.store(e_.element(of_.least, {}).re, greatest_, query);
      b_.store(zero(), total_, query);
    });
    each_sum(sums_, block_.queries, values_,
             [&](const Values& at, ValueId, ValueId) { b_.store(zero(), sums_, at); });
  }

  void add_block() {
    const Values origin = {b_.index(0), b_.index(0)};
    const Side key_side = side_of_keys();
    if (key_matrix_ == kernel::kNone) {
      bring(key_side, key_tile_, block_.keys, first_key_, keys_, false);
    }
    const MemoryId products = is_native_ ? weights_ : found_;
    each_sum(products, block_.keys, block_.queries,
             [&](const Values& at, ValueId, ValueId) { b_.store(zero(), products, at); });
    const bool has_keys = key_matrix_ != kernel::kNone;
    b_.contract(block_.keys, block_.queries, depth_, products, origin,
                has_keys ? key_matrix_ : key_tile_, has_keys ? place(key_side) : origin,
                query_tile_, origin);
    if (!is_native_) {
      each_sum(found_, block_.keys, block_.queries,
               [&](const Values& at, ValueId row, ValueId column) {
                 b_.store(b_.load(found_, at), weights_, {row, column});
               });
    }
    for (const ArrayTile& tile : arrays_) bring(tile);
    block_.parts == 1 ? weigh() : weigh_in_parts();
    each_sum(sums_, block_.queries, values_, [&](const Values& at, ValueId query, ValueId) {
      b_.store(b_.mul(b_.load(sums_, at), b_.load(scale_, {query})), sums_, at);
    });
    const Side value_side = side_of_values();
    const bool has_values = value_matrix_ != kernel::kNone;
    if (!has_values) bring(value_side, value_tile_, block_.keys, first_key_, keys_, false);
    b_.contract(block_.queries, values_, block_.keys, sums_, origin, weights_, origin,
                has_values ? value_matrix_ : value_tile_, has_values ? place(value_side) : origin,
                true);
  }

  // --- Softmax

  ValueId zero() { return e_.constant(type_, 0).re; }

  // The logit of a key and a query, whose product lies in weights_.
  ValueId logit(ValueId key, ValueId query) {
    const ValueId in_keys = b_.add(first_key_, key);
    const ValueId in_queries = b_.add(first_query_, query);
    const auto make = [&] {
      const Values index = score_index(in_queries, in_keys);
      e_.provide(*of_.scores, index, {{b_.load(weights_, {key, query})}});
      for (const ArrayTile& tile : arrays_) {
        const Value value = tile.array.value;
        e_.provide(e_.resolve(value), index, e_.load(tile.tile, value.type(), {key, query}));
      }
      return e_.element(of_.logits, index);
    };
    const ValueId inside =
        is_inside(b_, {{in_keys, keys_, block_.keys}, {in_queries, queries_, block_.queries}});
    if (is_true(b_, inside)) return make().re;
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    return e_.if_else(inside, type_, make, [&] { return e_.constant(type_, kNone); }).re;
  }

  // Puts the logits of a part's keys into weights_. Returns the greatest of them and `least`.
  ValueId put_logits(ValueId part, ValueId query, ValueId least) {
    return b_.for_loop(b_.index(0), b_.index(block_.keys / block_.parts), 1, {least},
                       [&](const Values& turn) {
                         const ValueId key = key_of(turn[0], part);
                         const ValueId x = logit(key, query);
                         b_.store(x, weights_, {key, query});
                         return Values{b_.max(turn[1], x)};
                       })[0];
  }

  // The number that logits are reduced by: the greatest one, or 0 if all are -inf.
  ValueId subtrahend(ValueId greatest) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const ValueId none =
        b_.compare(kernel::OpCode::kEq, greatest, e_.constant(type_, -kInfinity).re);
    return b_.select(none, zero(), greatest);
  }

  // Puts exp(logit - by) of a part's keys into weights_. Returns their sum.
  ValueId put_weights(ValueId part, ValueId query, ValueId by) {
    return b_.for_loop(b_.index(0), b_.index(block_.keys / block_.parts), 1, {zero()},
                       [&](const Values& turn) {
                         const ValueId key = key_of(turn[0], part);
                         const ValueId x = b_.load(weights_, {key, query});
                         const ValueId weight = b_.unary(kernel::OpCode::kExp, b_.sub(x, by));
                         b_.store(weight, weights_, {key, query});
                         return Values{b_.add(turn[1], weight)};
                       })[0];
  }

  // Notes the greatest score so far, `by` and the sum of new weights.
  void note(ValueId query, ValueId before, ValueId greatest, ValueId by, ValueId sum) {
    const ValueId scale = b_.unary(kernel::OpCode::kExp, b_.sub(before, by));
    b_.store(greatest, greatest_, {query});
    b_.store(scale, scale_, {query});
    b_.store(b_.add(b_.mul(b_.load(total_, {query}), scale), sum), total_, {query});
  }

  void weigh() {
    b_.lanes({block_.queries}, [&](const Values& lane) {
      const ValueId query = lane[0];
      const ValueId before = b_.load(greatest_, {query});
      const ValueId greatest = put_logits(b_.index(0), query, before);
      const ValueId by = subtrahend(greatest);
      note(query, before, greatest, by, put_weights(b_.index(0), query, by));
    });
  }

  void weigh_in_parts() {
    const Dims lanes = {block_.parts, block_.queries};
    b_.lanes(lanes, [&](const Values& lane) {
      const ValueId before = b_.load(greatest_, {lane[1]});
      b_.store(put_logits(lane[0], lane[1], before), part_greatest_, lane);
    });
    const auto greatest_of = [&](ValueId query) {
      return over_parts(b_.load(part_greatest_, {b_.index(0), query}), part_greatest_, query,
                        kernel::OpCode::kMax);
    };
    b_.lanes(lanes, [&](const Values& lane) {
      const ValueId by = subtrahend(greatest_of(lane[1]));
      b_.store(put_weights(lane[0], lane[1], by), part_total_, lane);
    });
    b_.lanes({block_.queries}, [&](const Values& lane) {
      const ValueId query = lane[0];
      const ValueId greatest = greatest_of(query);
      const ValueId sum = over_parts(zero(), part_total_, query, kernel::OpCode::kAdd);
      note(query, b_.load(greatest_, {query}), greatest, subtrahend(greatest), sum);
    });
  }

  ValueId over_parts(ValueId init, MemoryId memory, ValueId query, kernel::OpCode combine) {
    return b_.for_loop(b_.index(0), b_.index(block_.parts), 1, {init}, [&](const Values& turn) {
      return Values{b_.binary(combine, turn[1], b_.load(memory, {turn[0], query}))};
    })[0];
  }

  ValueId key_of(ValueId turn, ValueId part) {
    return b_.add(b_.mul(turn, b_.index(block_.parts)), part);
  }

  // --- Results

  void finish(MemoryId result) {
    const auto store = [&](const Values& at, ValueId query, ValueId value) {
      const ValueId in_queries = b_.add(first_query_, query);
      if_inside(b_, {{in_queries, queries_, block_.queries}}, [&] {
        const ValueId y = b_.div(b_.load(sums_, at), b_.load(total_, {query}));
        b_.store(y, result, output_index(in_queries, value));
      });
    };
    const bool along_queries = of_.weights_side == 1;
    if (is_native_ && along_queries) {
      b_.lanes({values_, block_.queries},
               [&](const Values& lane) { store({lane[1], lane[0]}, lane[1], lane[0]); });
      return;
    }
    each_sum(sums_, block_.queries, values_, store);
  }

  Values output_index(ValueId query, ValueId value) {
    const Values scores = score_index(query, b_.index(0));
    Values index;
    for (const int64_t d : output_.batching[of_.weights_side]) {
      index.push_back(scores[static_cast<size_t>(d)]);
    }
    const Values queries = queries_index(query);
    const Values values = delinearize(b_, value, of_.weights_side == 0 ? output_.n : output_.m);
    const Values& first = of_.weights_side == 0 ? queries : values;
    const Values& second = of_.weights_side == 0 ? values : queries;
    index.insert(index.end(), first.begin(), first.end());
    index.insert(index.end(), second.begin(), second.end());
    return index;
  }

  Values queries_index(ValueId query) {
    return delinearize(b_, query, of_.queries_side == 0 ? scores_.m : scores_.n);
  }

  Values score_index(ValueId query, ValueId key) {
    Values index = batch_;
    const Values queries = queries_index(query);
    if (of_.queries_side == 1) index.push_back(key);
    index.insert(index.end(), queries.begin(), queries.end());
    if (of_.queries_side == 0) index.push_back(key);
    return index;
  }

  // --- Tiles of operands

  // An operand as rows (queries or keys) of columns (the depth or the values).
  struct Side {
    Value value;
    const DotShape& shape;
    size_t operand;
    bool are_rows_free;  ///< Rows are its free dimensions, columns those that are contracted.
    Values batch;

    const I64s& rows() const { return (are_rows_free ? shape.free : shape.contracting)[operand]; }
    const I64s& columns() const {
      return (are_rows_free ? shape.contracting : shape.free)[operand];
    }
  };

  Side side_of_queries() const {
    return {of_.scores->operand(of_.queries_side), scores_, of_.queries_side, true, batch_};
  }
  Side side_of_keys() const {
    const size_t operand = 1 - of_.queries_side;
    return {of_.scores->operand(operand), scores_, operand, true, batch_};
  }
  Side side_of_values() const {
    const size_t operand = 1 - of_.weights_side;
    Values in_batch;
    for (const int64_t d : output_.batching[of_.weights_side]) {
      in_batch.push_back(batch_[static_cast<size_t>(d)]);
    }
    return {of_.output->operand(operand), output_, operand, false, in_batch};
  }

  static Dims sizes_of(const Side& side, const I64s& dims) {
    Dims sizes;
    for (const int64_t d : dims) sizes.push_back(side.value.type().dims()[static_cast<size_t>(d)]);
    return sizes;
  }

  Values index_of(const Side& side, const Values& rows, const Values& columns) const {
    return side.shape.factor(side.operand, side.batch, side.are_rows_free ? rows : columns,
                             side.are_rows_free ? columns : rows);
  }

  // The memory of an operand whose last dimensions are rows and columns, if whole blocks of them
  // are read where they lie.
  MemoryId matrix(const Side& side) const {
    const auto rank = static_cast<int64_t>(side.value.type().dims().size());
    const bool lies_so = is_native_ && keys_ % block_.keys == 0 && side.rows() == I64s{rank - 2} &&
                         side.columns() == I64s{rank - 1};
    return lies_so ? e_.memory_of(e_.resolve(side.value)) : kernel::kNone;
  }
  Values place(const Side& side) { return index_of(side, {first_key_}, {b_.index(0)}); }

  // Copies `rows` rows, beginning at `first` of `all`, into `tile`, with zeros beyond the end.
  void bring(const Side& side, MemoryId tile, int64_t rows, ValueId first, int64_t all,
             bool transposed) {
    const Dims row_sizes = sizes_of(side, side.rows());
    const Dims column_sizes = sizes_of(side, side.columns());
    const int64_t columns = element_count(column_sizes);
    const MemoryId source = e_.memory_of(e_.resolve(side.value));
    if (source != kernel::kNone && row_sizes.size() == 1 && column_sizes.size() == 1) {
      const auto row = static_cast<uint32_t>(side.rows()[0]);
      const auto column = static_cast<uint32_t>(side.columns()[0]);
      const Values start = index_of(side, {first}, {b_.index(0)});
      const Dims box = transposed ? Dims{columns, rows} : Dims{rows, columns};
      const std::vector<uint32_t> by =
          transposed ? std::vector<uint32_t>{column, row} : std::vector<uint32_t>{row, column};
      b_.copy(box, tile, {b_.index(0), b_.index(0)}, {0, 1}, source, start, by, zero());
      return;
    }
    b_.lanes({rows, columns}, [&](const Values& lane) {
      const ValueId row = b_.add(first, lane[0]);
      const auto load = [&] {
        return e_.element(side.value, index_of(side, delinearize(b_, row, row_sizes),
                                               delinearize(b_, lane[1], column_sizes)));
      };
      const ValueId inside = is_inside(b_, {{row, all, rows}});
      const Element x = is_true(b_, inside) ? load() : e_.if_else(inside, type_, load, [&] {
        return e_.constant(type_, 0);
      });
      b_.store(x.re, tile, transposed ? Values{lane[1], lane[0]} : lane);
    });
  }

  // A block of an array that scores are combined with, keys first.
  struct ArrayTile {
    const ScoreArray& array;
    MemoryId source = kernel::kNone;
    MemoryId tile = kernel::kNone;
  };

  void bring(const ArrayTile& tile) {
    const Values first = score_index(first_query_, first_key_);
    Values start;
    for (const int64_t d : tile.array.dims) {
      start.push_back(d < 0 ? b_.index(0) : first[static_cast<size_t>(d)]);
    }
    const bool is_whole = keys_ % block_.keys == 0 && queries_ % block_.queries == 0;
    const ElementType type = b_.kernel().memory(tile.source).type;
    const ValueId pad = is_whole                     ? kernel::kNone
                        : type == ElementType::kPred ? b_.pred(false)
                                                     : e_.constant(type, 0).re;
    b_.copy({block_.keys, block_.queries}, tile.tile, {b_.index(0), b_.index(0)}, {0, 1},
            tile.source, start, {tile.array.keys_dim, tile.array.queries_dim}, pad);
  }

  // Calls body(place in `sums`, row, column) for each sum.
  void each_sum(MemoryId sums, int64_t rows, int64_t columns,
                const std::function<void(const Values&, ValueId, ValueId)>& body) {
    if (is_native_) {
      b_.lanes({rows, columns}, [&](const Values& lane) { body(lane, lane[0], lane[1]); });
      return;
    }
    const Dims dims = b_.kernel().memory(sums).dims;
    b_.lanes({dims[0], dims[1]}, [&](const Values& lane) {
      for_each_serially(b_, {dims[2], dims[3]}, [&](const Values& own) {
        body({lane[0], lane[1], own[0], own[1]}, b_.add(b_.mul(lane[0], b_.index(dims[2])), own[0]),
             b_.add(b_.mul(lane[1], b_.index(dims[3])), own[1]));
      });
    });
  }

  static constexpr int64_t kLanesOfSide = 16;

  KernelMaker& maker_;
  Builder& b_;
  ElementEmitter& e_;
  const Attention& of_;
  const AttentionBlock& block_;
  const bool is_native_;
  const DotShape scores_, output_;
  const ElementType type_;
  const int64_t queries_, keys_, depth_, values_;
  Values batch_;
  ValueId first_query_ = kernel::kNone, first_key_ = kernel::kNone;
  MemoryId key_matrix_ = kernel::kNone, value_matrix_ = kernel::kNone;
  MemoryId query_tile_ = kernel::kNone, key_tile_ = kernel::kNone, value_tile_ = kernel::kNone;
  MemoryId weights_ = kernel::kNone, found_ = kernel::kNone, sums_ = kernel::kNone;
  MemoryId greatest_ = kernel::kNone, total_ = kernel::kNone, scale_ = kernel::kNone;
  MemoryId part_greatest_ = kernel::kNone, part_total_ = kernel::kNone;
  std::vector<ArrayTile> arrays_;
};

// The attention that the fusion consists of.
std::optional<Attention> attention_in(const FusedOp& fused) {
  if (fused.op.code() != OpCode::kFusion || fused.results.size() != 1) return {};
  auto attention = attention_of(*fused.results[0].def);
  const bool is_all = attention && attention->ops.size() == fused.inner.size();
  return is_all ? attention : std::nullopt;
}

std::optional<double> estimate_attention(const ScheduleInput& input) {
  const auto attention = attention_in(input.fused);
  if (!attention || !input.limits.fma) return std::nullopt;
  // One element per lane would compute the softmax of a row again for each element.
  const double row =
      static_cast<double>(attention->logits.type().dims()[static_cast<size_t>(attention->axis)]);
  return input.elements_seconds / (1 + row);
}

int64_t block_bytes(const Attention& attention, const AttentionBlock& block,
                    const LowerLimits& limits) {
  const DotShape scores(*attention.scores);
  const DotShape output(*attention.output);
  const int64_t depth = element_count(scores.k);
  const int64_t values = element_count(attention.weights_side == 0 ? output.n : output.m);
  const bool is_private = limits.private_memory && !has_native_tiles(limits);
  int64_t elements = block.queries * (depth + block.keys + 3 + 2 * block.parts);
  elements += block.keys * (depth == values ? depth : depth + values);
  if (!is_private) elements += block.queries * values;
  if (!limits.private_memory) elements += block.queries * block.keys;
  int64_t bytes =
      elements * static_cast<int64_t>(storage_bytes(attention.logits.type().element_type()));
  for (const ScoreArray& array : block.arrays) {
    const auto size = static_cast<int64_t>(storage_bytes(array.value.type().element_type()));
    bytes += block.queries * block.keys * size;
  }
  return bytes;
}

// The number of rows up to `most` that a tile has: one that divides `all`, unless all of those are
// small.
int64_t rows_of_tile(int64_t all, int64_t most) {
  const int64_t exact = greatest_divisor(all, most);
  return all <= most ? all : exact >= most / 2 ? exact : most;
}

Taken emit_attention(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                     const LowerLimits& limits) {
  const auto attention = attention_in(fused);
  if (!attention || !limits.fma) return false;
  const DotShape scores(*attention->scores);
  const int64_t queries = element_count(attention->queries_side == 0 ? scores.m : scores.n);
  const int64_t keys = element_count(attention->queries_side == 0 ? scores.n : scores.m);
  const bool native = has_native_tiles(limits);
  AttentionBlock block;
  int64_t preferred = native ? 64 : 32;
  while (preferred / 2 >= queries) preferred /= 2;
  block.queries = tuning.choose(kAttentionParameters[0], preferred);
  block.keys = tuning.choose(kAttentionParameters[1], rows_of_tile(keys, 64));
  while (block.keys > 8 && block_bytes(*attention, block, limits) > limits.scratch_bytes) {
    block.keys = (block.keys + 1) / 2;
  }
  while (block.queries > 1 && block_bytes(*attention, block, limits) > limits.scratch_bytes) {
    block.queries = (block.queries + 1) / 2;
  }
  if (!native)
    block.parts =
        greatest_divisor(block.keys, std::max<int64_t>(limits.cost.lanes / block.queries, 1));
  const int64_t lanes = block.parts * block.queries;
  if (block_bytes(*attention, block, limits) > limits.scratch_bytes ||
      lanes > limits.cost.most_lanes) {
    return false;
  }
  for (ScoreArray& array : arrays_along_keys(*attention)) {
    block.arrays.push_back(std::move(array));
    if (block_bytes(*attention, block, limits) > limits.scratch_bytes) block.arrays.pop_back();
  }
  return try_kernel(lowered, fused.op, "_blocks", [&](KernelMaker& maker) {
    AttentionKernel(maker, *attention, block, limits).run();
  });
}

}  // namespace

constinit const Schedule kAttention = {
    "attention",
    "softmax of a dot_general's results, also with elementwise ops before it (scale, mask, bias), "
    "and the dot_general of it and values",
    "a workgroup has a block of queries and goes through the keys by blocks, with the scores of "
    "one block in scratch: `contract`, online softmax, `contract`; the scores are never in memory",
    kAttentionParameters,
    estimate_attention,
    emit_attention};

}  // namespace tenon::hlo::lower
