// The domain com.microsoft: attention as models of language have it.
//
// ONNX Runtime's page ContribOperators defines them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hlo/onnx/ops/quantized.h"

namespace tenon::hlo {
namespace {

using Lh = OnnxLowering;
constexpr double kLowest = std::numeric_limits<float>::lowest();

// --- Heads

// [batch, length, heads * size] as [batch, heads, length, size].
Value heads_apart(Lh& n, Value x, int64_t heads) {
  n.check_rank(x, 3, 3);
  const Dims d = n.dims_of(x);
  if (heads < 1 || d[2] % heads != 0) bad_onnx("{} heads of [{}]", heads, dims_to_string(d));
  return n.transpose(n.reshape(x, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}

Value heads_together(Lh& n, Value x) {
  const Value turned = n.transpose(x, {0, 2, 1, 3});
  const Dims d = n.dims_of(turned);
  return n.reshape(turned, {d[0], d[1], d[2] * d[3]});
}

/// Queries, keys and values as [batch, heads, length, size].
struct Heads {
  Value query, key, value;
};

/// Changes of scores before their softmax.
struct ScoreForm {
  double scale = 0;  ///< 0: one by the root of the size.
  std::vector<Value> added;
  std::optional<Value> seen;  ///< Others become the lowest number.
  double cap = 0;
  bool is_smooth = false;  ///< One more score, of 0, whose weight goes to nothing.
};

Value attend(Lh& n, const Heads& heads, const ScoreForm& form) {
  const Dims& query = n.dims_of(heads.query);
  const Dims& key = n.dims_of(heads.key);
  if (query[0] != key[0] || key[1] < 1 || query[1] % key[1] != 0 || query[3] != key[3])
    bad_onnx("queries [{}] for keys [{}]", dims_to_string(query), dims_to_string(key));
  const int64_t shared = query[1] / key[1];
  const auto repeated = [&](Value x) {
    if (shared == 1) return x;
    Dims dims = n.dims_of(x);
    dims.insert(dims.begin() + 2, shared);
    const Value all = n.broadcast_in_dim(x, dims, {0, 1, 3, 4});
    return n.reshape(all, {dims[0], query[1], dims[3], dims[4]});
  };
  const double scale = form.scale != 0 ? form.scale : 1 / std::sqrt(static_cast<double>(query[3]));
  Value scores = n.mul(
      n.dot_general(heads.query, repeated(heads.key), DotDims{{0, 1}, {0, 1}, {3}, {3}}), scale);
  if (form.cap != 0) scores = n.mul(n.tanh(n.div(scores, form.cap)), form.cap);
  for (const Value each : form.added) scores = n.add(scores, n.convert(each, n.type_of(scores)));
  if (form.seen)
    scores =
        n.select(n.broadcast_to(*form.seen, n.dims_of(scores)), scores, n.like(scores, kLowest));
  Value weights;
  if (form.is_smooth) {
    const Value most = n.max(n.reduce(OpCode::kMaximum, scores, {3}, true), 0);
    const Value powers = n.exp(n.sub(scores, most));
    weights = n.div(powers, n.add(n.sum(powers, {3}, true), n.exp(n.neg(most))));
  } else {
    weights = n.softmax(scores, 3);
  }
  return n.dot_general(weights, repeated(heads.value), DotDims{{0, 1}, {0, 1}, {3}, {2}});
}

// Whether a key is not behind its query, of which `past` keys come before the first: [1, 1, S, T].
Value causal(Lh& n, int64_t length, int64_t total, int64_t past) {
  const Dims dims = {1, 1, length, total};
  const Value query = n.iota(ElementType::kS64, dims, 2);
  return n.compare(Direction::kLe, n.iota(ElementType::kS64, dims, 3),
                   n.add(query, static_cast<double>(past)));
}

// 0 for keys that count and mask_filter_value for others, beside scores [B, N, S, T]. A mask of a
// dimension has the length of each batch, or its end and then its start; others have an element for
// each key.
Value padding(Lh& n, Value mask, int64_t batch, int64_t total) {
  Value counts;
  const Dims& d = n.dims_of(mask);
  if (d == Dims{batch} || d == Dims{2 * batch}) {
    const Value key = n.iota(n.type_of(mask), {batch, total}, 1);
    const auto bound = [&](int64_t first) {
      return n.reshape(n.slice_of(mask, 0, first, first + batch), {batch, 1});
    };
    counts = n.compare(Direction::kLt, key, bound(0));
    if (d[0] != batch) counts = n.logical_and(counts, n.compare(Direction::kGe, key, bound(batch)));
    counts = n.unsqueeze(counts, {1, 2});
  } else if (d == Dims{batch, total}) {
    counts = n.unsqueeze(n.convert(mask, ElementType::kPred), {1, 2});
  } else if (d.size() == 3 && d[0] == batch && d[2] == total) {
    counts = n.unsqueeze(n.convert(mask, ElementType::kPred), {1});
  } else {
    refuse_onnx("a mask of [{}] is not supported", dims_to_string(d));
  }
  const Value zero = n.splat(ElementType::kF32, n.dims_of(counts), 0);
  return n.select(counts, zero, n.like(zero, n.real("mask_filter_value", -10000)));
}

// --- Attention, MultiHeadAttention

struct Projected {
  Value query, key, value;  ///< [batch, length, hidden]
};

// Inputs of Attention: its array times weights for queries, keys and values, side by side.
Projected projected(Lh& n, Value product) {
  n.check_rank(product, 3, 3);
  const int64_t width = n.dims_of(product)[2];
  I64s sizes = n.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes = {width / 3, width / 3, width / 3};
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width ||
      std::ranges::any_of(sizes, [](int64_t each) { return each < 1; }))
    bad_onnx("{} columns of weights", width);
  return {n.slice_of(product, 2, 0, sizes[0]),
          n.slice_of(product, 2, sizes[0], sizes[0] + sizes[1]),
          n.slice_of(product, 2, sizes[0] + sizes[1], width)};
}

// The results of Attention and QAttention, whose masks and past have inputs of these numbers; -1
// is none.
Values self_attention(Lh& n, const Projected& parts, int mask, int past, int bias) {
  const auto is_given = [&](int i) { return i >= 0 && n.has(static_cast<size_t>(i)); };
  const auto input = [&](int i) { return n.in(static_cast<size_t>(i)); };
  if (n.flag("do_rotary")) refuse_onnx("do_rotary is not supported");
  if (n.flag("past_present_share_buffer"))
    refuse_onnx("past_present_share_buffer is not supported");
  const int64_t count = n.integer("num_heads", 0);
  Heads heads{heads_apart(n, parts.query, count), heads_apart(n, parts.key, count),
              heads_apart(n, parts.value, count)};
  int64_t before = 0;
  if (is_given(past)) {
    n.check_rank(input(past), 5, 5);
    before = n.dims_of(input(past))[3];
    const auto half = [&](int64_t i) {
      return n.squeeze(n.slice_of(input(past), 0, i, i + 1), {0});
    };
    heads.key = n.concatenate({half(0), heads.key}, 2);
    heads.value = n.concatenate({half(1), heads.value}, 2);
  }
  const int64_t batch = n.dims_of(heads.query)[0], length = n.dims_of(heads.query)[2];
  const int64_t total = n.dims_of(heads.key)[2];
  ScoreForm form;
  form.scale = n.real("scale", 0);
  if (is_given(mask)) form.added.push_back(padding(n, input(mask), batch, total));
  if (is_given(bias)) form.added.push_back(input(bias));
  if (n.flag("unidirectional")) form.seen = causal(n, length, total, before);
  const Value y = heads_together(n, attend(n, heads, form));
  if (!n.wants(1)) return {y};
  return {y, n.concatenate({n.unsqueeze(heads.key, {0}), n.unsqueeze(heads.value, {0})}, 0)};
}

Values lower_microsoft_attention(Lh& n) {
  Value product = n.matmul(n.in(0), n.in(1));
  if (n.has(2)) product = n.add(product, n.in(2));
  return self_attention(n, projected(n, product), 3, 4, 5);
}

// Inputs: the array, weights, a bias, their scales, a mask, their zero points, the past.
Values lower_quantized_attention(Lh& n) {
  const auto scale = [&](size_t i) {
    return n.count_of(n.in(i)) == 1 ? n.reshape(n.in(i), {}) : n.in(i);
  };
  const Value sum = n.matmul(onnx_centered(n, n.in(0), 6, -1), onnx_centered(n, n.in(1), 7, -1));
  const Value real = n.mul(n.convert(sum, ElementType::kF32), n.mul(scale(3), scale(4)));
  return self_attention(n, projected(n, n.add(real, n.in(2))), 5, 8, -1);
}

// Inputs: queries, keys, values, a bias, a padding mask, a bias of scores, past keys and values.
Values lower_multi_head_attention(Lh& n) {
  if (n.has(8) || n.has(9)) refuse_onnx("caches of a given length are not supported");
  if (!n.has(1) || !n.has(2)) refuse_onnx("packed queries, keys and values are not supported");
  const int64_t count = n.integer("num_heads", 0);
  Value query = n.in(0), key = n.in(1), value = n.in(2);
  if (n.has(3)) {
    int64_t at = 0;
    const auto with_bias = [&](Value x) {
      if (n.rank_of(x) != 3) return x;  // Of another attention: it has had its bias.
      const int64_t width = n.dims_of(x)[2];
      const Value part = n.slice_of(n.in(3), 0, at, at + width);
      at += width;
      return n.add(x, part);
    };
    query = with_bias(query);
    key = with_bias(key);
    value = with_bias(value);
  }
  const auto apart = [&](Value x) { return n.rank_of(x) == 4 ? x : heads_apart(n, x, count); };
  Heads heads{apart(query), apart(key), apart(value)};
  int64_t before = 0;
  if (n.has(6) && n.has(7)) {
    n.check_rank(n.in(6), 4, 4);
    n.check_rank(n.in(7), 4, 4);
    before = n.dims_of(n.in(6))[2];
    heads.key = n.concatenate({n.in(6), heads.key}, 2);
    heads.value = n.concatenate({n.in(7), heads.value}, 2);
  }
  const int64_t total = n.dims_of(heads.key)[2];
  ScoreForm form;
  form.scale = n.real("scale", 0);
  if (n.has(4)) form.added.push_back(padding(n, n.in(4), n.dims_of(query)[0], total));
  if (n.has(5)) form.added.push_back(n.in(5));
  if (n.flag("unidirectional")) form.seen = causal(n, n.dims_of(heads.query)[2], total, before);
  return {heads_together(n, attend(n, heads, form)), heads.key, heads.value};
}

// --- GroupQueryAttention

// Keys or values of the past with new ones from place `first` of each batch on, [batch, 1, 1, 1].
Value extended(Lh& n, std::optional<Value> past, Value fresh, Value first, int64_t total) {
  Dims dims = n.dims_of(fresh);
  const int64_t length = dims[2];
  dims[2] = total;
  Value old = past ? *past : n.splat(n.type_of(fresh), dims, 0);
  if (n.dims_of(old)[2] < total) {
    old = n.pad(old, n.like(old, 0), {0, 0, 0, 0}, {0, 0, total - n.dims_of(old)[2], 0});
  }
  const Value place = n.sub(n.iota(ElementType::kS64, {dims[0], 1, total, 1}, 2), first);
  const Value is_new = n.logical_and(n.compare(Direction::kGe, place, 0),
                                     n.compare(Direction::kLt, place, static_cast<double>(length)));
  Value spread = fresh;
  if (length == 1) {
    spread = n.broadcast_to(fresh, dims);
  } else {
    const Value within = n.min(n.max(place, 0), static_cast<double>(length - 1));
    spread = n.take_along(fresh, n.broadcast_to(within, dims), 2);
  }
  return n.select(n.broadcast_to(is_new, dims), spread, old);
}

// Which keys the queries see, whose first stands at place `first` of its batch: [B, 1, S, T].
Value visible_keys(Lh& n, Value first, int64_t length, int64_t total) {
  const Dims dims = {n.dims_of(first)[0], 1, length, total};
  const Value query = n.add(n.iota(ElementType::kS64, dims, 2), first);
  const Value key = n.iota(ElementType::kS64, dims, 3);
  Value seen = n.compare(Direction::kLe, key, query);
  const int64_t window = n.integer("local_window_size", -1);
  if (window > 0) {
    const Value start = n.sub(query, static_cast<double>(window));
    seen = n.logical_and(seen, n.compare(Direction::kGt, key, start));
  }
  return seen;
}

// Queries, keys and values, apart or side by side.
Heads grouped_heads(Lh& n) {
  const int64_t count = n.integer("num_heads", 0), shared = n.integer("kv_num_heads", 0);
  if (count < 1 || shared < 1) bad_onnx("{} heads of queries for {} of keys", count, shared);
  if (n.has(1) && n.has(2))
    return {heads_apart(n, n.in(0), count), heads_apart(n, n.in(1), shared),
            heads_apart(n, n.in(2), shared)};
  n.check_rank(n.in(0), 3, 3);
  const int64_t width = n.dims_of(n.in(0))[2];
  if (width % (count + 2 * shared) != 0) bad_onnx("{} columns for {} heads", width, count);
  const int64_t size = width / (count + 2 * shared);
  const int64_t keys = count * size, values = keys + shared * size;
  return {heads_apart(n, n.slice_of(n.in(0), 2, 0, keys), count),
          heads_apart(n, n.slice_of(n.in(0), 2, keys, values), shared),
          heads_apart(n, n.slice_of(n.in(0), 2, values, width), shared)};
}

// Inputs: queries, keys, values, past keys, past values, the last key of each batch, the length of
// all, caches of cosines and sines, positions, a bias of scores.
Values lower_group_query_attention(Lh& n) {
  for (const size_t each : {11U, 12U, 13U, 14U, 15U, 16U}) {
    if (n.has(each)) refuse_onnx("its input {} is not supported", each);
  }
  for (const size_t each : {3U, 4U, 10U}) {
    if (n.has(each)) n.check_rank(n.in(each), 4, 4);
  }
  for (const size_t each : {7U, 8U}) {
    if (n.has(each)) n.check_rank(n.in(each), 2, 2);
  }
  Heads heads = grouped_heads(n);
  const int64_t batch = n.dims_of(heads.query)[0], length = n.dims_of(heads.query)[2];
  const int64_t whole = n.known_integer(6);
  const int64_t past = n.has(3) ? n.dims_of(n.in(3))[2] : 0;
  const int64_t total = std::max(whole, past);
  Value first = n.splat(ElementType::kS64, {batch, 1, 1, 1}, 0);
  if (length != whole) {
    const Value last = n.reshape(n.convert(n.in(5), ElementType::kS64), {batch, 1, 1, 1});
    first = n.sub(last, static_cast<double>(length - 1));
  }
  if (n.flag("do_rotary")) {
    const Value steps = n.iota(ElementType::kS64, {batch, length}, 1);
    const Value places = n.has(9) ? n.in(9) : n.add(steps, n.reshape(first, {batch, 1}));
    OnnxAttributes attributes;
    attributes["interleaved"].integer = n.integer("rotary_interleaved", 0);
    attributes["rotary_embedding_dim"].integer = 2 * n.dims_of(n.in(7)).back();
    for (Value* each : {&heads.query, &heads.key}) {
      *each = n.scope().lower("RotaryEmbedding", {*each, n.in(7), n.in(8), places}, attributes, 1,
                              n.builder(), 23)[0];
    }
  }
  const auto old = [&](size_t i) { return n.has(i) ? std::optional(n.in(i)) : std::nullopt; };
  heads.key = extended(n, old(3), heads.key, first, total);
  heads.value = extended(n, old(4), heads.value, first, total);
  const Heads used{heads.query, n.slice_of(heads.key, 2, 0, whole),
                   n.slice_of(heads.value, 2, 0, whole)};
  ScoreForm form;
  form.scale = n.real("scale", 0);
  form.cap = n.real("softcap", 0);
  form.is_smooth = n.integer("smooth_softmax", 0) == 1;
  form.seen = visible_keys(n, first, length, whole);
  if (n.has(10)) form.added.push_back(n.slice_of(n.in(10), 3, 0, whole));
  return {heads_together(n, attend(n, used, form)), heads.key, heads.value};
}

// Inputs: the array, positions (or the first one), caches of cosines and sines.
Values lower_microsoft_rotary_embedding(Lh& n) {
  if (n.flag("is_packed_batching")) refuse_onnx("packed batches are not supported");
  const double scale = n.real("scale", 1);
  if (scale != 1) refuse_onnx("a scale of {} is not supported", scale);
  const Value x = n.in(0);
  n.check_rank(x, 3, 4);
  n.check_rank(n.in(2), 2, 2);
  const Dims& d = n.dims_of(x);
  const int64_t batch = d[0], length = d[d.size() == 4 ? 2 : 1];
  Value places = n.convert(n.in(1), ElementType::kS64);
  if (n.count_of(places) == 1 && batch * length != 1) {
    places = n.add(n.iota(ElementType::kS64, {batch, length}, 1), n.reshape(places, {}));
  }
  places = n.reshape(places, {batch, length});
  OnnxAttributes attributes;
  const int64_t turned = n.integer("rotary_embedding_dim", 0);
  const int64_t width = turned > 0 ? turned : 2 * n.dims_of(n.in(2)).back();
  int64_t heads = n.integer("num_heads", 0);
  if (heads == 0 && d.size() == 3 && width > 0) heads = d[2] / width;
  attributes["num_heads"].integer = heads;
  attributes["rotary_embedding_dim"].integer = turned;
  attributes["interleaved"].integer = n.integer("interleaved", 0);
  return n.scope().lower("RotaryEmbedding", {x, n.in(2), n.in(3), places}, attributes, 1,
                         n.builder(), 23);
}

constexpr OnnxRow kMicrosoftAttentionRows[] = {
    {"Attention", 1, lower_microsoft_attention, 0, kMicrosoftDomain},
    {"GroupQueryAttention", 1, lower_group_query_attention, 0, kMicrosoftDomain},
    {"MultiHeadAttention", 1, lower_multi_head_attention, 0, kMicrosoftDomain},
    {"QAttention", 1, lower_quantized_attention, 0, kMicrosoftDomain},
    {"RotaryEmbedding", 1, lower_microsoft_rotary_embedding, 0, kMicrosoftDomain},
};

}  // namespace

std::span<const OnnxRow> onnx_microsoft_attention_rows() { return kMicrosoftAttentionRows; }

}  // namespace tenon::hlo
