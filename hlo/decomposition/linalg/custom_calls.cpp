#include "hlo/decomposition/linalg/custom_calls.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/linalg/eigenvalues.h"
#include "hlo/decomposition/linalg/householder.h"
#include "hlo/decomposition/linalg/lu.h"
#include "hlo/decomposition/math_builder.h"
#include "hlo/inference/infer_util.h"

namespace tenon::hlo::decomposition {
namespace {

// Shapes of matrices [batch…, rows, columns].
struct Frame {
  ElementType type = ElementType::kF32;
  Dims batch;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t least() const { return std::min(rows, columns); }
  int64_t count() const { return element_count(batch); }
  ElementType real() const { return is_complex(type) ? complex_part(type) : type; }
  Type matrix(int64_t r, int64_t c) const { return array(type, {r, c}); }
  Type vector(ElementType of, int64_t size) const { return array(of, {size}); }

 private:
  Type array(ElementType of, const Dims& own) const {
    Dims dims = batch;
    dims.insert(dims.end(), own.begin(), own.end());
    return Type::tensor(of, std::move(dims));
  }
};

using ResultTypes = std::vector<Type>;

// A call whose operands and results are as its row says.
class Expansion {
 public:
  Expansion(Builder& b, const Instruction& op, Frame frame, ResultTypes results)
      : b_(b), op_(op), frame_(std::move(frame)), results_(std::move(results)) {}

  Builder& builder() const { return b_; }
  const ResultTypes& results() const { return results_; }
  std::string_view configuration() const {
    const auto* text = op_.attr<std::string>(AttrKey::backend_config);
    return text == nullptr ? std::string_view() : *text;
  }
  /// An operand with one batch dimension, in the type that is computed in.
  Value operand(size_t i) const {
    if (!b_.ok()) return {};
    const Value x = op_.operand(i);
    const Dims& dims = x.type().dims();
    Dims flat(dims.begin() + static_cast<std::ptrdiff_t>(frame_.batch.size()), dims.end());
    flat.insert(flat.begin(), frame_.count());
    return b_.reshape(b_.convert(x, computing_type(frame_.type)), std::move(flat));
  }
  /// The results as the call has them.
  Values finish(const std::vector<Value>& values) const {
    std::vector<Value> shaped;
    for (size_t i = 0; b_.ok() && i < values.size(); ++i) {
      const Value x = b_.reshape(values[i], results_[i].dims());
      shaped.push_back(b_.convert(x, results_[i].element_type()));
    }
    if (b_.ok() && op_.result_count() == 1 && op_.result_type().is_tuple()) {
      shaped = {b_.make(OpCode::kTuple, shaped)};
    }
    return finished(b_, std::move(shaped));
  }
  bool is_empty() const { return frame_.count() * frame_.rows * frame_.columns == 0; }
  /// Results of matrices without elements.
  Values zeros() const {
    std::vector<Value> values;
    for (size_t i = 0; i < results_.size(); ++i) values.push_back(zero(i));
    return finish(values);
  }
  /// Result i of matrices with 1 on the diagonal.
  Value unit(size_t i) const {
    return identity(b_, results_[i].element_type(), results_[i].dims());
  }
  Value zero(size_t i) const { return b_.splat(results_[i].shape(), 0); }

 private:
  Builder& b_;
  const Instruction& op_;
  Frame frame_;
  ResultTypes results_;
};

// The types of a call's results, where its operands fit; of a call whose results may have several
// forms, that of `stated`.
using ResultRule = std::optional<ResultTypes> (*)(const Instruction& op, const Frame& f,
                                                  const ResultTypes& stated);
using MaybeTypes = std::optional<ResultTypes>;

bool is_array(const Instruction& op, size_t i, const Type& type) {
  return op.operand_count() > i && op.operand_type(i) == type;
}
// The factors of `k` reflections, which operand 1 has.
bool has_taus(const Instruction& op, const Frame& f) {
  if (op.operand_count() < 2 || !op.operand_type(1).is_tensor()) return false;
  const Type& type = op.operand_type(1);
  if (type.rank() != static_cast<int64_t>(f.batch.size()) + 1) return false;
  const int64_t k = type.dims().back();
  return k <= f.least() && type == f.vector(f.type, k);
}

MaybeTypes qr_results(const Instruction& op, const Frame& f, const ResultTypes&) {
  if (op.operand_count() != 1) return {};
  return ResultTypes{f.matrix(f.rows, f.columns), f.vector(f.type, f.least())};
}
Values expand_qr(const Expansion& e) {
  if (e.is_empty()) return e.zeros();
  const Reflections q = qr_of(e.builder(), e.operand(0));
  return e.finish({q.matrix, q.taus});
}

MaybeTypes householder_results(const Instruction& op, const Frame& f, const ResultTypes&) {
  if (op.operand_count() != 2 || !has_taus(op, f)) return {};
  return ResultTypes{f.matrix(f.rows, f.columns)};
}
Values expand_householder(const Expansion& e) {
  if (e.is_empty()) return e.zeros();
  const Reflections q = {e.operand(0), e.operand(1)};
  Builder& b = e.builder();
  if (!b.ok()) return Error(b.status());
  const Type& type = q.matrix.type();
  const Value unit = identity(b, type.element_type(), type.dims());
  return e.finish({q.taus.type().dims()[1] == 0 ? unit : reflected(b, q, unit, false)});
}

MaybeTypes multiply_results(const Instruction& op, const Frame& f, const ResultTypes& stated) {
  if (op.operand_count() != 3 || stated.size() != 1 || !has_taus(op, f)) return {};
  if (!stated[0].is_tensor() || stated[0].rank() < 2) return {};
  const Type x = f.matrix(f.rows, stated[0].dims().back());
  if (!is_array(op, 2, x)) return {};
  return ResultTypes{x};
}
Values expand_multiply(const Expansion& e) {
  if (e.is_empty()) return e.finish({e.operand(2)});
  const Reflections q = {e.operand(0), e.operand(1)};
  const Value x = e.operand(2);
  Builder& b = e.builder();
  if (!b.ok()) return Error(b.status());
  const bool is_nothing = q.taus.type().dims()[1] == 0 || x.type().dims().back() == 0;
  return e.finish({is_nothing ? x : reflected(b, q, x, e.configuration() == "adjoint")});
}

MaybeTypes eigen_results(const Instruction& op, const Frame& f, const ResultTypes&) {
  if (op.operand_count() != 1 || f.rows != f.columns) return {};
  return ResultTypes{f.matrix(f.rows, f.rows), f.vector(f.real(), f.rows)};
}
// The configuration is "lower,sorts,sweeps,tolerance"; sweeps end when rounding is reached.
Values expand_eigen(const Expansion& e) {
  if (e.is_empty()) return e.zeros();
  const std::string_view configuration = e.configuration();
  const bool lower = !configuration.starts_with("0");
  const bool sorts = configuration.substr(0, 3).find(",0") == std::string_view::npos;
  const Eigen eigen = eigen_of(e.builder(), e.operand(0), lower, sorts);
  return e.finish({eigen.vectors, eigen.values});
}

MaybeTypes singular_results(const Instruction& op, const Frame& f, const ResultTypes& stated) {
  if (op.operand_count() != 1 || stated.size() != 3 || !stated[0].is_tensor()) return {};
  const bool full = stated[0].rank() > 0 && stated[0].dims().back() != f.least();
  const bool full_rows = stated[2].is_tensor() && stated[2].rank() > 1 &&
                         stated[2].dims()[at(stated[2].rank() - 2)] != f.least();
  const bool all = full || full_rows;
  return ResultTypes{f.matrix(f.rows, all ? f.rows : f.least()), f.vector(f.real(), f.least()),
                     f.matrix(all ? f.columns : f.least(), f.columns)};
}
Values expand_singular(const Expansion& e) {
  if (e.is_empty()) return e.finish({e.unit(0), e.zero(1), e.unit(2)});
  const auto is_square = [&](size_t i) {
    const Dims& dims = e.results()[i].dims();
    return dims.back() == dims[dims.size() - 2];
  };
  const SingularValues all =
      singular_values_of(e.builder(), e.operand(0), is_square(0) && is_square(2));
  return e.finish({all.u, all.s, all.vh});
}

MaybeTypes lu_results(const Instruction& op, const Frame& f, const ResultTypes&) {
  if (op.operand_count() != 1) return {};
  return ResultTypes{f.matrix(f.rows, f.columns), f.vector(ElementType::kS32, f.least()),
                     f.vector(ElementType::kS32, f.rows)};
}
Values expand_lu(const Expansion& e) {
  if (e.is_empty()) return e.zeros();
  const LuFactors lu = lu_of(e.builder(), e.operand(0));
  return e.finish({lu.matrix, lu.pivots, lu.order});
}

MaybeTypes plain_lu_results(const Instruction& op, const Frame& f, const ResultTypes&) {
  if (op.operand_count() != 1) return {};
  return ResultTypes{f.matrix(f.rows, f.columns)};
}
Values expand_plain_lu(const Expansion& e) {
  if (e.is_empty()) return e.zeros();
  return e.finish({lu_of(e.builder(), e.operand(0), false).matrix});
}

bool is_no_text(std::string_view text) { return text.empty(); }
bool is_adjoint_or_none(std::string_view text) { return text.empty() || text == "adjoint"; }
// "1,0,100,1e-6": two flags, and numbers that are not used.
bool is_of_eigenvalues(std::string_view text) {
  const auto is_flag = [](char each) { return each == '0' || each == '1'; };
  return text.empty() || (text.size() > 3 && is_flag(text[0]) && text[1] == ',' &&
                          is_flag(text[2]) && text[3] == ',');
}

struct Row {
  LinalgCall call;
  ResultRule results;
  bool (*takes)(std::string_view configuration);
  std::string_view configuration;  ///< Those that it takes, for errors.
  Values (*expand)(const Expansion& e);
};

constexpr std::string_view kExpander = "XLA";
constexpr Row kRows[] = {
    {{"Eigh", "a [n, n]", "vectors [n, n], values [n]",
      "Eigenvectors, in columns, and eigenvalues of Hermitian matrices. The configuration is "
      "\"lower,sorts,sweeps,tolerance\": which triangle is read (1: the lower one), whether values "
      "ascend; Jacobi's sweeps end when rounding is reached.",
      kExpander},
     eigen_results,
     is_of_eigenvalues,
     "\"lower,sorts,sweeps,tolerance\", the first two 0 or 1",
     expand_eigen},
    {{"LuDecomposition", "a [m, n]", "lu [m, n], pivots s32 [least], order s32 [m]",
      "LU factors in one matrix, the rows that rows were exchanged with, from 0 on, and the rows "
      "of "
      "`a` that those of the product are.",
      kExpander},
     lu_results,
     is_no_text,
     "none",
     expand_lu},
    {{"ProductOfElementaryHouseholderReflectors", "a [m, n], taus [k]", "q [m, n]",
      "The first columns of the product of k reflections as Qr gives them.", kExpander},
     householder_results,
     is_no_text,
     "none",
     expand_householder},
    {{"Qr", "a [m, n]", "a [m, n], taus [least]",
      "R in the upper triangle, below it the vectors of Householder's reflections, and their "
      "factors, as LAPACK's geqrf.",
      kExpander},
     qr_results,
     is_no_text,
     "none",
     expand_qr},
    {{"tenon.apply_reflections", "a [m, n], taus [k], x [m, c]", "y [m, c]",
      "The product of k reflections times x; with the configuration \"adjoint\" its adjoint.",
      "Tenon"},
     multiply_results,
     is_adjoint_or_none,
     "\"adjoint\" or none",
     expand_multiply},
    {{"tenon.lu_without_exchanges", "a [m, n]", "lu [m, n]",
      "LU factors in one matrix; a pivot of 0 leaves its column as it is.", "Tenon"},
     plain_lu_results,
     is_no_text,
     "none",
     expand_plain_lu},
    {{"tenon.svd", "a [m, n]", "u [m, m or least], s [least], vh [n or least, n]",
      "Singular values in descending order, and their vectors, by Jacobi's method on R of Q R.",
      "Tenon"},
     singular_results,
     is_no_text,
     "none",
     expand_singular},
};

const Row* row_of(const Instruction& op) {
  if (op.code() != OpCode::kCustomCall) return nullptr;
  const std::string_view name = op.text(AttrKey::call_target_name);
  const Row* const found = std::ranges::find(kRows, name, [](const Row& r) { return r.call.name; });
  return found == std::end(kRows) ? nullptr : found;
}

std::optional<Frame> frame_of(const Instruction& op) {
  if (op.operand_count() == 0 || !op.operand_type(0).is_tensor()) return {};
  const Type& type = op.operand_type(0);
  const ElementType element = type.element_type();
  if (type.rank() < 2 || !(is_float(element) || is_complex(element))) return {};
  Frame frame = {element, type.dims(), 0, 0};
  frame.columns = frame.batch.back();
  frame.batch.pop_back();
  frame.rows = frame.batch.back();
  frame.batch.pop_back();
  return frame;
}

ResultTypes operand_types(const Instruction& op) {
  ResultTypes types;
  for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
  return types;
}

ResultTypes stated_results(const Instruction& op) {
  const bool is_tuple = op.result_count() == 1 && op.result_type().is_tuple();
  return is_tuple ? op.result_type().elements() : op.result_types();
}

}  // namespace

std::vector<LinalgCall> linalg_calls() {
  std::vector<LinalgCall> calls;
  for (const Row& row : kRows) calls.push_back(row.call);
  return calls;
}

const LinalgCall* linalg_call(const Instruction& op) {
  const Row* const row = row_of(op);
  return row == nullptr ? nullptr : &row->call;
}

Instruction* without_tuple(Instruction& call) {
  if (call.result_count() != 1 || !call.result_type().is_tuple()) return &call;
  Computation& parent = *call.parent();
  auto copy = std::make_unique<Instruction>(OpCode::kCustomCall, call.operands(),
                                            call.result_type().elements());
  copy->mutable_attributes() = call.attributes();
  copy->mutable_attributes().erase(AttrKey::result_layouts);
  copy->mutable_attributes().erase(AttrKey::operand_layouts);
  copy->set_location(call.location());
  Instruction* const placed = parent.insert(std::move(copy), &call);
  auto tuple = std::make_unique<Instruction>(OpCode::kTuple, placed->results(),
                                             std::vector<Type>{call.result_type()});
  tuple->set_location(call.location());
  call.replace_all_uses(parent.insert(std::move(tuple), &call)->results());
  parent.erase(&call);
  return placed;
}

namespace {

// The results that the row of the call has for its operands.
Result<ResultTypes> checked_results(const Row& row, const Instruction& op) {
  TENON_TRY(check_static(op));
  const auto refused = [&](const std::string& what) {
    return invalid_argument("custom_call @{}: {}; expected {} -> {} of batched matrices of floats",
                            row.call.name, what, row.call.operands, row.call.results)
        .at(position_of(op.location()));
  };
  const ResultTypes stated = stated_results(op);
  const std::optional<Frame> frame = frame_of(op);
  const MaybeTypes results = frame ? row.results(op, *frame, stated) : MaybeTypes();
  if (!results) return refused(fmt::format("operands are {}", types_to_string(operand_types(op))));
  if (*results != stated) return refused(fmt::format("results are {}", types_to_string(stated)));
  const Attribute* const configuration = op.attribute(AttrKey::backend_config);
  const auto* const text = op.attr<std::string>(AttrKey::backend_config);
  if (configuration != nullptr && (text == nullptr || !row.takes(*text))) {
    return invalid_argument("custom_call @{}: the configuration is {}, expected {}", row.call.name,
                            text == nullptr ? "no text" : fmt::format("\"{}\"", *text),
                            row.configuration)
        .at(position_of(op.location()));
  }
  return *results;
}

}  // namespace

Status check_linalg_call(const Instruction& op) {
  const Row* const row = row_of(op);
  if (row == nullptr) return Status(internal_error("{} is no call of linear algebra", op.name()));
  TENON_ASSIGN(const ResultTypes results, checked_results(*row, op));
  static_cast<void>(results);
  return {};
}

Values expand_linalg_call(Builder& b, const Instruction& op) {
  const Row* const row = row_of(op);
  if (row == nullptr) return internal_error("{} is no call of linear algebra", op.name());
  TENON_ASSIGN(ResultTypes results, checked_results(*row, op));
  return row->expand(Expansion(b, op, *frame_of(op), std::move(results)));
}

}  // namespace tenon::hlo::decomposition
