// Attention, and what stands beside it in models of language.
#include <cmath>

#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using La = OnnxLowering;

ElementType at_least_f32(ElementType type) {
  return bit_width(type) < 32 ? ElementType::kF32 : type;
}

// [batch, length, heads * size] as [batch, heads, length, size].
Value split_heads(La& n, Value x, int64_t heads) {
  if (n.rank_of(x) == 4) return x;
  if (n.rank_of(x) != 3 || heads < 1 || n.dims_of(x)[2] % heads != 0)
    bad_onnx("{} heads of [{}]", heads, dims_to_string(n.dims_of(x)));
  const Dims& d = n.dims_of(x);
  return n.transpose(n.reshape(x, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}

Value merge_heads(La& n, Value x) {
  const Value turned = n.transpose(x, {0, 2, 1, 3});
  const Dims& d = n.dims_of(turned);
  return n.reshape(turned, {d[0], d[1], d[2] * d[3]});
}

// Each head `count` times.
Value repeat_heads(La& n, Value x, int64_t count) {
  if (count == 1) return x;
  Dims dims = n.dims_of(x);
  dims.insert(dims.begin() + 2, count);
  const Value repeated = n.broadcast_in_dim(x, dims, {0, 1, 3, 4});
  dims.erase(dims.begin() + 2);
  dims[1] *= count;
  return n.reshape(repeated, dims);
}

// Which keys a query sees: by the length of each batch's keys, by causality, by a window.
std::optional<Value> visible(La& n, const Dims& dims, Value offset, std::optional<Value> lengths) {
  const Value query = n.add(n.iota(ElementType::kS64, dims, 2), offset);
  const Value key = n.iota(ElementType::kS64, dims, 3);
  std::optional<Value> seen;
  const auto also = [&](Value condition) {
    seen = seen ? n.logical_and(*seen, condition) : condition;
  };
  const int64_t left = n.integer("left_window_size", -1),
                right = n.integer("right_window_size", -1);
  if (n.flag("is_causal")) also(n.compare(Direction::kLe, key, query));
  if (left >= 0) also(n.compare(Direction::kGe, key, n.sub(query, static_cast<double>(left))));
  if (right >= 0) also(n.compare(Direction::kLe, key, n.add(query, static_cast<double>(right))));
  if (lengths) also(n.compare(Direction::kLt, key, *lengths));
  return seen;
}

// Softmax of rows of which some see nothing: those are 0.
Value masked_softmax(La& n, Value x) {
  const int64_t axis = n.rank_of(x) - 1;
  const Value most = n.reduce(OpCode::kMaximum, x, {axis}, true);
  const Value base = n.select(n.unary(OpCode::kIsFinite, most), most, n.like(most, 0));
  const Value powers = n.exp(n.sub(x, base));
  const Value sum = n.sum(powers, {axis}, true);
  return n.div(powers, n.select(n.compare(Direction::kEq, sum, 0), n.like(sum, 1), sum));
}

Value with_mask(La& n, Value scores, Value mask) {
  const int64_t missing = n.dims_of(scores)[3] - n.dims_of(mask).back();
  const double nothing = -std::numeric_limits<double>::infinity();
  if (missing > 0) {
    I64s low(n.dims_of(mask).size(), 0), high(low.size(), 0);
    high.back() = missing;
    mask = n.pad(mask, n.like(mask, is_pred(n.type_of(mask)) ? 0 : nothing), low, high);
  }
  if (is_pred(n.type_of(mask))) return n.select(mask, scores, n.like(scores, nothing));
  return n.add(scores, n.convert(mask, n.type_of(scores)));
}

Values lower_attention(La& n) {
  const ElementType type = n.type_of(n.in(0)), wide = at_least_f32(type);
  const bool flat = n.rank_of(n.in(0)) == 3;
  const Value q = split_heads(n, n.in(0), n.integer("q_num_heads", 0));
  Value k = split_heads(n, n.in(1), n.integer("kv_num_heads", 0));
  Value v = split_heads(n, n.in(2), n.integer("kv_num_heads", 0));
  if (n.rank_of(q) != 4 || n.rank_of(k) != 4 || n.rank_of(v) != 4)
    bad_onnx("its inputs have rank {}", n.rank_of(q));
  int64_t past = 0;
  if (n.has(4)) {
    if (n.rank_of(n.in(4)) != 4) bad_onnx("past keys of rank {}", n.rank_of(n.in(4)));
    past = n.dims_of(n.in(4))[2];
    k = n.concatenate({n.in(4), k}, 2);
    v = n.concatenate({n.in(5), v}, 2);
  }
  const int64_t heads = n.dims_of(q)[1], kv_heads = n.dims_of(k)[1], length = n.dims_of(q)[2];
  if (kv_heads < 1 || heads % kv_heads != 0)
    bad_onnx("{} heads of queries for {} of keys", heads, kv_heads);
  const double scale =
      std::sqrt(n.real("scale", 1 / std::sqrt(static_cast<double>(n.dims_of(q)[3]))));
  const auto scaled = [&](Value x) { return n.mul(n.convert(x, wide), scale); };
  Value scores = n.dot_general(scaled(q), repeat_heads(n, scaled(k), heads / kv_heads),
                               DotDims{{0, 1}, {0, 1}, {3}, {3}});
  Value shown[4];
  shown[0] = scores;
  const double cap = n.real("softcap", 0);
  if (cap != 0) scores = n.mul(n.tanh(n.div(scores, cap)), cap);
  shown[1] = scores;
  Value offset = n.number(ElementType::kS64, static_cast<double>(past));
  std::optional<Value> lengths;
  if (n.has(6)) {
    Dims one = n.dims_of(scores);
    one[1] = one[2] = one[3] = 1;
    lengths = n.reshape(n.convert(n.in(6), ElementType::kS64), one);
    if (!n.has(4)) offset = n.sub(*lengths, static_cast<double>(length));
  }
  if (n.has(3)) scores = with_mask(n, scores, n.in(3));
  if (const auto seen = visible(n, n.dims_of(scores), offset, lengths)) {
    scores = n.select(*seen, scores, n.like(scores, -std::numeric_limits<double>::infinity()));
  }
  shown[2] = scores;
  const ElementType precision = n.type_attribute("softmax_precision", wide);
  const Value weights = n.convert(
      masked_softmax(n, n.convert(scores, bit_width(precision) < 32 ? wide : precision)), wide);
  shown[3] = weights;
  const Value y = n.dot_general(weights, repeat_heads(n, n.convert(v, wide), heads / kv_heads),
                                DotDims{{0, 1}, {0, 1}, {3}, {2}});
  const int64_t mode = n.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) bad_onnx("qk_matmul_output_mode is {}", mode);
  const Value result = n.convert(y, n.type_of(n.in(2)));
  return {flat ? merge_heads(n, result) : result, k, v, n.convert(shown[mode], type)};
}

Values lower_flex_attention(La& n) {
  const ElementType type = n.type_of(n.in(0)), wide = at_least_f32(type);
  const Value q = n.in(0), k = n.in(1), v = n.in(2);
  if (n.rank_of(q) != 4 || n.rank_of(k) != 4 || n.rank_of(v) != 4)
    bad_onnx("its inputs have rank {}", n.rank_of(q));
  const int64_t heads = n.dims_of(q)[1], kv_heads = n.dims_of(k)[1];
  if (kv_heads < 1 || heads % kv_heads != 0)
    bad_onnx("{} heads of queries for {} of keys", heads, kv_heads);
  const auto repeated = [&](Value x) {
    return repeat_heads(n, n.convert(x, wide), heads / kv_heads);
  };
  const ElementType precision = n.type_attribute("softmax_precision", wide);
  const auto modified = [&](const char* name, Value x) {
    if (!n.has_attribute(name)) return x;
    const Values results = n.scope().import_graph(n.graph(name), {x}, n.builder());
    if (results.size() != 1) bad_onnx("{} returns {} values", name, results.size());
    return results[0];
  };
  const double scale = n.real("scale", 1 / std::sqrt(static_cast<double>(n.dims_of(q)[3])));
  const Value scores = n.mul(
      n.dot_general(n.convert(q, wide), repeated(k), DotDims{{0, 1}, {0, 1}, {3}, {3}}), scale);
  const Value shown = modified("score_mod", n.convert(scores, precision));
  const Value weights = modified("prob_mod", masked_softmax(n, shown));
  const Value y =
      n.dot_general(n.convert(weights, wide), repeated(v), DotDims{{0, 1}, {0, 1}, {3}, {2}});
  return {n.convert(y, type)};
}

Values lower_rotary_embedding(La& n) {
  const bool flat = n.rank_of(n.in(0)) == 3;
  n.check_rank(n.in(0), 3, 4);
  // [batch, length, heads, size]
  Value x = n.in(0);
  if (flat) {
    const Dims d = n.dims_of(x);
    const int64_t heads = n.integer("num_heads", 0);
    if (heads < 1 || d[2] % heads != 0) bad_onnx("{} heads of {}", heads, d[2]);
    x = n.reshape(x, {d[0], d[1], heads, d[2] / heads});
  } else {
    x = n.transpose(x, {0, 2, 1, 3});
  }
  const int64_t size = n.dims_of(x)[3], given = n.integer("rotary_embedding_dim", 0);
  const int64_t turned = given == 0 ? size : given;
  if (turned > size || turned % 2 != 0) bad_onnx("{} of {} elements are turned", turned, size);
  const auto cache = [&](size_t input) {
    const Value all = n.has(3) ? n.take(n.in(input), n.in(3), 0) : n.in(input);
    return n.unsqueeze(all, {2});
  };
  const Value cosine = cache(1), sine = cache(2);
  const bool interleaved = n.flag("interleaved");
  const int64_t half = turned / 2;
  const Value part = n.slice_of(x, 3, 0, turned);
  const Value a = interleaved ? n.slice_of(part, 3, 0, turned, 2) : n.slice_of(part, 3, 0, half);
  const Value b =
      interleaved ? n.slice_of(part, 3, 1, turned, 2) : n.slice_of(part, 3, half, turned);
  const Value real = n.sub(n.mul(cosine, a), n.mul(sine, b));
  const Value imaginary = n.add(n.mul(sine, a), n.mul(cosine, b));
  Value result =
      interleaved
          ? n.reshape(n.concatenate({n.unsqueeze(real, {4}), n.unsqueeze(imaginary, {4})}, 4),
                      n.dims_of(part))
          : n.concatenate({real, imaginary}, 3);
  if (turned < size) result = n.concatenate({result, n.slice_of(x, 3, turned, size)}, 3);
  return {flat ? n.reshape(result, n.dims_of(n.in(0))) : n.transpose(result, {0, 2, 1, 3})};
}

Values lower_causal_convolution(La& n) {
  const Value x = n.in(0), weights = n.in(1);
  if (n.rank_of(x) != 3 || n.rank_of(weights) != 3) bad_onnx("its input has rank {}", n.rank_of(x));
  const int64_t channels = n.dims_of(x)[1], width = n.dims_of(weights)[2];
  const Value past =
      n.has(3) ? n.in(3) : n.splat(n.type_of(x), {n.dims_of(x)[0], channels, width - 1}, 0);
  const Value all = n.concatenate({past, x}, 2);
  const int64_t length = n.dims_of(all)[2];
  const OnnxWindow window{{width}, {1}, {1}, {0}, {0}, {length - width + 1}};
  const ElementType type = n.type_of(x), wide = at_least_f32(type);
  Value y = onnx_convolve(n, n.convert(all, wide), n.convert(weights, wide), window, channels);
  if (n.has(2)) y = n.add(y, n.broadcast_in_dim(n.convert(n.in(2), wide), n.dims_of(y), {1}));
  if (n.text("activation", "none") != "none") y = n.mul(y, n.sigmoid(y));
  return {n.convert(y, type), n.slice_of(all, 2, length - width + 1, length)};
}

// One step of the recurrence: the new state, and what the query reads from it.
struct LinearStep {
  Value query, key, value;
  std::optional<Value> decay, beta;
};

std::pair<Value, Value> linear_step(const OnnxEmitter& e, Value state, const LinearStep& s,
                                    int64_t group, double scale) {
  if (s.decay) state = e.mul(state, e.exp(*s.decay));
  Value value = s.value;
  const auto read = [&](Value q, Value from) {
    return e.dot_general(q, from, DotDims{{0, 1}, {0, 1}, {2}, {2}});
  };
  if (s.beta) value = e.mul(e.sub(value, read(s.key, state)), *s.beta);
  state = e.add(state, e.mul(e.unsqueeze(s.key, {3}), e.unsqueeze(value, {2})));
  Dims dims = e.dims_of(state);
  dims.insert(dims.begin() + 2, group);
  Value shared = e.broadcast_in_dim(state, dims, {0, 1, 3, 4});
  shared = e.reshape(shared, {dims[0], dims[1] * group, dims[3], dims[4]});
  return {state, e.mul(read(s.query, shared), scale)};
}

Values lower_linear_attention(La& n) {
  const ElementType type = n.type_of(n.in(0));
  const int64_t heads = n.integer("q_num_heads", 0), kv_heads = n.integer("kv_num_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    bad_onnx("{} heads of queries for {} of keys", heads, kv_heads);
  const std::string rule = n.text("update_rule", "gated_delta");
  const ElementType wide = at_least_f32(type);
  const auto heads_of = [&](size_t i, int64_t count) {
    return n.convert(split_heads(n, n.in(i), count), wide);
  };
  const Value q = heads_of(0, heads), k = heads_of(1, kv_heads), v = heads_of(2, kv_heads);
  const Dims& d = n.dims_of(k);
  const int64_t length = d[2];
  std::optional<Value> decay, beta;
  if (rule.starts_with("gated")) decay = heads_of(4, kv_heads);
  if (rule.ends_with("delta")) {
    const Value given = n.convert(n.in(5), wide);
    beta = n.transpose(n.broadcast_to(given, {d[0], length, kv_heads}), {0, 2, 1});
  }
  const Dims state_dims = {d[0], d[1], d[3], n.dims_of(v)[3]};
  const Value first = n.has(3) ? n.convert(n.in(3), wide) : n.splat(wide, state_dims, 0);
  const double stated = n.real("scale", 0);
  const double scale = stated != 0 ? stated : 1 / std::sqrt(static_cast<double>(n.dims_of(q)[3]));
  const Value empty = n.splat(wide, {d[0], heads, length, state_dims[3]}, 0);
  const Value zero = n.number(ElementType::kS64, 0);
  const auto loop = n.builder().while_loop(
      {zero, first, empty},
      [&](Builder& b, const Values& s) {
        return OnnxEmitter(b).compare(Direction::kLt, s[0], static_cast<double>(length));
      },
      [&](Builder& b, const Values& s) {
        const OnnxEmitter e(b);
        const Value start = e.number(ElementType::kS64, 0);
        const auto at = [&](Value x) {
          I64s sizes = e.dims_of(x);
          sizes[2] = 1;
          Values starts(sizes.size(), start);
          starts[2] = s[0];
          return e.squeeze(e.checked(b.dynamic_slice(x, starts, sizes)), {2});
        };
        LinearStep step{at(q), at(k), at(v), {}, {}};
        // [batch, heads, keys or 1] beside [batch, heads, keys, values].
        if (decay) step.decay = e.unsqueeze(at(*decay), {3});
        if (beta) step.beta = at(e.unsqueeze(*beta, {3}));
        const auto [state, read] = linear_step(e, s[1], step, heads / kv_heads, scale);
        const Value results = e.checked(
            b.dynamic_update_slice(s[2], e.unsqueeze(read, {2}), {start, start, s[0], start}));
        return Values{e.add(s[0], 1), state, results};
      });
  n.checked({});
  const ElementType state_type = n.has(3) ? n.type_of(n.in(3)) : type;
  return {n.convert(merge_heads(n, loop[2]), type), n.convert(loop[1], state_type)};
}

constexpr OnnxRow kAttentionRows[] = {
    {"Attention", 23, lower_attention},
    {"CausalConvWithState", 27, lower_causal_convolution},
    {"FlexAttention", 1, lower_flex_attention, 0, "ai.onnx.preview"},
    {"LinearAttention", 27, lower_linear_attention},
    {"RotaryEmbedding", 23, lower_rotary_embedding},
};

}  // namespace

std::span<const OnnxRow> onnx_attention_rows() { return kAttentionRows; }

}  // namespace tenon::hlo
