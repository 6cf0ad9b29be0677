// RNN, GRU, LSTM.
#include <algorithm>

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Lq = OnnxLowering;

Value activate(const OnnxEmitter& e, std::string word, Value x, double alpha, double beta) {
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (word == "sigmoid") return e.sigmoid(x);
  if (word == "tanh") return e.tanh(x);
  if (word == "relu") return e.max(x, 0);
  if (word == "softsign") return e.div(x, e.add(e.abs(x), 1));
  if (word == "affine") return e.add(e.mul(x, alpha), beta);
  if (word == "leakyrelu") return e.select(e.compare(Direction::kLt, x, 0), e.mul(x, alpha), x);
  if (word == "scaledtanh") return e.mul(e.tanh(e.mul(x, beta)), alpha);
  if (word == "hardsigmoid") return e.max(e.min(e.add(e.mul(x, alpha), beta), 1), 0);
  refuse_onnx("activation '{}' is not supported", word);
}

struct RecurrentCell {
  std::string kind;
  int64_t hidden = 0, gates = 1;
  std::vector<std::string> activations;  // Of this direction.
  std::vector<float> alphas, betas;
  double clip = 0;
  bool linear_before_reset = false, input_forget = false;
  Value weights, bias;             // [gates * hidden, hidden], [gates * hidden] of the recurrence.
  std::optional<Value> peepholes;  // [3 * hidden]

  Value activated(const OnnxEmitter& e, size_t i, Value x) const {
    if (clip > 0) x = e.min(e.max(x, -clip), clip);
    const auto number = [&](const std::vector<float>& all, double otherwise) {
      return i < all.size() ? static_cast<double>(all[i]) : otherwise;
    };
    std::string lower = activations[i];
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return activate(e, lower, x,
                    number(alphas, lower == "hardsigmoid" ? 0.2
                                   : lower == "leakyrelu" ? 0.01
                                                          : 1),
                    number(betas, lower == "hardsigmoid" ? 0.5 : 1));
  }
  // Gate `i` of [batch, gates * hidden].
  Value gate(const OnnxEmitter& e, Value x, int64_t i) const {
    return e.slice_of(x, e.rank_of(x) - 1, i * hidden, (i + 1) * hidden);
  }
  Value recurrent(const OnnxEmitter& e, Value h) const {
    return e.dot_general(h, weights, DotDims{{}, {}, {1}, {1}});
  }
};

// The next hidden state, and cell; `x` is the input's part, with the biases of the input.
std::pair<Value, Value> recurrent_step(const OnnxEmitter& e, const RecurrentCell& c, Value x,
                                       Value h, Value cell) {
  if (c.kind == "RNN") {
    return {c.activated(e, 0, e.add(x, e.add(c.recurrent(e, h), c.bias))), cell};
  }
  if (c.kind == "GRU") {
    const Value past = c.recurrent(e, h);
    const auto gate = [&](int64_t i) {
      return c.activated(e, 0,
                         e.add(c.gate(e, x, i), e.add(c.gate(e, past, i), c.gate(e, c.bias, i))));
    };
    const Value z = gate(0), r = gate(1);
    Value inner;
    if (c.linear_before_reset) {
      inner = e.mul(r, e.add(c.gate(e, past, 2), c.gate(e, c.bias, 2)));
    } else {
      const Value rows = e.slice_of(c.weights, 0, 2 * c.hidden, 3 * c.hidden);
      inner =
          e.add(e.dot_general(e.mul(r, h), rows, DotDims{{}, {}, {1}, {1}}), c.gate(e, c.bias, 2));
    }
    const Value candidate = c.activated(e, 1, e.add(c.gate(e, x, 2), inner));
    return {e.add(e.mul(e.sub(e.like(z, 1), z), candidate), e.mul(z, h)), cell};
  }
  const Value all = e.add(x, e.add(c.recurrent(e, h), c.bias));
  const auto gate = [&](int64_t i, std::optional<int64_t> peephole, Value seen) {
    Value sum = c.gate(e, all, i);
    if (c.peepholes && peephole) sum = e.add(sum, e.mul(c.gate(e, *c.peepholes, *peephole), seen));
    return sum;
  };
  const Value input = c.activated(e, 0, gate(0, 0, cell));
  const Value forget =
      c.input_forget ? e.sub(e.like(input, 1), input) : c.activated(e, 0, gate(2, 2, cell));
  const Value next = e.add(e.mul(forget, cell), e.mul(input, c.activated(e, 1, c.gate(e, all, 3))));
  const Value output = c.activated(e, 0, gate(1, 1, next));
  const Value squashed = c.activated(e, 2, next);
  return {e.mul(output, squashed), next};
}

struct RecurrentRun {
  Value outputs, hidden, cell;  // [length, batch, hidden], [batch, hidden] …
};

RecurrentRun run_direction(Lq& n, const RecurrentCell& c, Value x, Value h, Value cell,
                           std::optional<Value> lengths, bool backward) {
  const int64_t length = n.dims_of(x)[0], batch = n.dims_of(x)[1];
  const Value zero = n.number(ElementType::kS64, 0);
  const Value empty = n.splat(n.type_of(x), {length, batch, c.hidden}, 0);
  const auto loop = n.builder().while_loop(
      {zero, h, cell, empty},
      [&](Builder& b, const Values& s) {
        return OnnxEmitter(b).compare(Direction::kLt, s[0], static_cast<double>(length));
      },
      [&](Builder& b, const Values& s) {
        const OnnxEmitter e(b);
        const Value start = e.number(ElementType::kS64, 0);
        const Value at =
            backward ? e.sub(e.number(ElementType::kS64, static_cast<double>(length - 1)), s[0])
                     : s[0];
        const Value row =
            e.checked(b.dynamic_slice(x, {at, start, start}, {1, batch, c.gates * c.hidden}));
        auto [next, next_cell] = recurrent_step(e, c, e.squeeze(row, {0}), s[1], s[2]);
        Value shown = next;
        if (lengths) {
          const Value runs = e.unsqueeze(e.compare(Direction::kLt, at, *lengths), {1});
          shown = e.select(runs, next, e.like(next, 0));
          next = e.select(runs, next, s[1]);
          next_cell = e.select(runs, next_cell, s[2]);
        }
        const Value outputs =
            e.checked(b.dynamic_update_slice(s[3], e.unsqueeze(shown, {0}), {at, start, start}));
        return Values{e.add(s[0], 1), next, next_cell, outputs};
      });
  n.checked({});
  return {loop[3], loop[1], loop[2]};
}

// Slice `i` of the first dimension.
Value row_of(Lq& n, Value x, int64_t i) { return n.squeeze(n.slice_of(x, 0, i, i + 1), {0}); }

std::vector<std::string> activations_of(Lq& n, const std::string& kind, size_t directions) {
  if (const OnnxAttribute* given = n.attribute("activations");
      given != nullptr && !given->texts.empty())
    return given->texts;
  std::vector<std::string> all;
  for (size_t d = 0; d < directions; ++d) {
    if (kind != "RNN") all.emplace_back("Sigmoid");
    all.emplace_back("Tanh");
    if (kind == "LSTM") all.emplace_back("Tanh");
  }
  return all;
}

Values lower_recurrent(Lq& n) {
  static constexpr std::string_view kKinds[] = {"RNN", "GRU", "LSTM"};
  static constexpr int64_t kGates[] = {1, 3, 4};
  const auto number = static_cast<size_t>(n.row().parameter);
  const std::string kind(kKinds[number]);
  const std::string direction = n.text("direction", "forward");
  const size_t directions = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = n.integer("layout", 0) == 1;
  Value x = n.in(0);
  if (n.rank_of(x) != 3 || n.rank_of(n.in(1)) != 3 || n.rank_of(n.in(2)) != 3 ||
      n.dims_of(n.in(1))[0] != static_cast<int64_t>(directions))
    bad_onnx("its input has rank {}", n.rank_of(x));
  if (batch_first) x = n.transpose(x, {1, 0, 2});
  const int64_t batch = n.dims_of(x)[1];
  std::optional<Value> lengths;
  if (n.has(4)) lengths = n.convert(n.in(4), ElementType::kS64);
  const std::vector<std::string> activations = activations_of(n, kind, directions);
  const size_t each = number + 1;
  if (activations.size() < each * directions)
    bad_onnx("{} activations, expected {}", activations.size(), each * directions);
  Values outputs, hiddens, cells;
  for (size_t d = 0; d < directions; ++d) {
    const auto i = static_cast<int64_t>(d);
    RecurrentCell c;
    c.kind = kind;
    c.gates = kGates[number];
    c.weights = row_of(n, n.in(2), i);
    c.hidden = n.dims_of(c.weights)[1];
    c.clip = n.real("clip", 0);
    c.linear_before_reset = n.flag("linear_before_reset");
    c.input_forget = n.flag("input_forget");
    const auto from = static_cast<std::ptrdiff_t>(d * each);
    c.activations.assign(activations.begin() + from,
                         activations.begin() + from + static_cast<std::ptrdiff_t>(each));
    const auto numbers = [&](const char* name) {
      const OnnxAttribute* given = n.attribute(name);
      return given == nullptr || given->reals.size() < (d + 1) * each
                 ? std::vector<float>{}
                 : std::vector<float>(
                       given->reals.begin() + from,
                       given->reals.begin() + from + static_cast<std::ptrdiff_t>(each));
    };
    c.alphas = numbers("activation_alpha");
    c.betas = numbers("activation_beta");
    const int64_t wide = c.gates * c.hidden;
    Value projected = n.dot_general(x, row_of(n, n.in(1), i), DotDims{{}, {}, {2}, {1}});
    c.bias = n.splat(n.type_of(x), {wide}, 0);
    if (n.has(3)) {
      const Value both = row_of(n, n.in(3), i);
      projected = n.add(projected, n.slice_of(both, 0, 0, wide));
      c.bias = n.slice_of(both, 0, wide, 2 * wide);
    }
    if (kind == "LSTM" && n.has(7)) c.peepholes = row_of(n, n.in(7), i);
    const auto initial = [&](size_t input) {
      if (!n.has(input)) return n.splat(n.type_of(x), {batch, c.hidden}, 0);
      return row_of(n, batch_first ? n.transpose(n.in(input), {1, 0, 2}) : n.in(input), i);
    };
    const Value h = initial(5),
                cell = kind == "LSTM" ? initial(6) : n.splat(n.type_of(x), {batch, c.hidden}, 0);
    const bool backward = direction == "reverse" || d == 1;
    const RecurrentRun run = run_direction(n, c, projected, h, cell, lengths, backward);
    outputs.push_back(n.unsqueeze(run.outputs, {1}));
    hiddens.push_back(n.unsqueeze(run.hidden, {0}));
    cells.push_back(n.unsqueeze(run.cell, {0}));
  }
  Values results = {n.concatenate(outputs, 1), n.concatenate(hiddens, 0), n.concatenate(cells, 0)};
  if (batch_first) {
    results[0] = n.transpose(results[0], {2, 0, 1, 3});
    for (const size_t i : {1, 2}) results[i] = n.transpose(results[i], {1, 0, 2});
  }
  return results;
}

constexpr OnnxRow kRecurrentRows[] = {
    {"GRU", 7, lower_recurrent, 1},
    {"LSTM", 7, lower_recurrent, 2},
    {"RNN", 7, lower_recurrent, 0},
};

}  // namespace

std::span<const OnnxRow> onnx_recurrent_rows() { return kRecurrentRows; }

}  // namespace tenon::hlo
