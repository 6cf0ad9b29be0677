#include "hlo/evaluator/work.h"

#include <algorithm>
#include <cmath>

namespace tenon::hlo {
namespace {

double elements_of(const Type& type) {
  double elements = 1;
  if (!type.is_tensor()) return elements;
  for (const int64_t size : type.dims())
    elements *= static_cast<double>(std::max<int64_t>(size, 0));
  return elements;
}

}  // namespace

double work_of_element(const Instruction& op) {
  double work = 1;
  if (const auto* dot = op.attr<DotDims>(AttrKey::dot_dimension_numbers)) {
    for (const int64_t d : dot->lhs_contracting) {
      work *= static_cast<double>(
          std::max<int64_t>(op.operand_type(0).dims()[static_cast<size_t>(d)], 0));
    }
  } else if (op.code() == OpCode::kConvolution) {
    work = elements_of(op.operand_type(1));
  }
  for (const int64_t size : op.i64s(AttrKey::window_dimensions)) work *= static_cast<double>(size);
  return work;
}

double work_of(const Instruction& op) {
  double read = 0, written = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) read += elements_of(op.operand_type(i));
  for (const Type& type : op.result_types()) written += elements_of(type);
  if (op.code() == OpCode::kSort) read *= std::log2(std::max(read, 2.0));
  return read + written * work_of_element(op);
}

}  // namespace tenon::hlo
