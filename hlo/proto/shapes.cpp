#include "hlo/proto/shapes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace tenon::hlo {
namespace {

// Fields of ShapeProto, LayoutProto, and LiteralProto (xla_data.proto).
namespace shape_field {
constexpr uint32_t kElementType = 2, kDimensions = 3, kTupleShapes = 4, kLayout = 5, kDynamic = 6;
constexpr uint32_t kMinorToMajor = 1;
constexpr uint32_t kOfLiteral = 1;
}  // namespace shape_field
constexpr int64_t kTuplePrimitive = 13, kTokenPrimitive = 17;

// How elements of a type are kept in a LiteralProto.
enum class LiteralForm : uint8_t { kBytes, kIntegers, kReals };

struct ElementRow {
  int64_t primitive;  ///< PrimitiveType of xla_data.proto.
  ElementType type;
  uint32_t field;  ///< The field of LiteralProto.
  LiteralForm form;
};

constexpr ElementRow kElements[] = {
    {1, ElementType::kPred, 2, LiteralForm::kIntegers},
    {2, ElementType::kS8, 15, LiteralForm::kBytes},
    {3, ElementType::kS16, 17, LiteralForm::kBytes},
    {4, ElementType::kS32, 4, LiteralForm::kIntegers},
    {5, ElementType::kS64, 5, LiteralForm::kIntegers},
    {6, ElementType::kU8, 3, LiteralForm::kBytes},
    {7, ElementType::kU16, 16, LiteralForm::kBytes},
    {8, ElementType::kU32, 6, LiteralForm::kIntegers},
    {9, ElementType::kU64, 7, LiteralForm::kIntegers},
    {10, ElementType::kF16, 11, LiteralForm::kBytes},
    {11, ElementType::kF32, 8, LiteralForm::kReals},
    {12, ElementType::kF64, 9, LiteralForm::kReals},
    {15, ElementType::kC64, 12, LiteralForm::kReals},
    {16, ElementType::kBF16, 13, LiteralForm::kBytes},
    {18, ElementType::kC128, 18, LiteralForm::kReals},
    {19, ElementType::kF8E5M2, 19, LiteralForm::kBytes},
    {20, ElementType::kF8E4M3FN, 20, LiteralForm::kBytes},
    {21, ElementType::kS4, 21, LiteralForm::kBytes},
    {22, ElementType::kU4, 22, LiteralForm::kBytes},
    {23, ElementType::kF8E4M3B11FNUZ, 23, LiteralForm::kBytes},
    {24, ElementType::kF8E5M2FNUZ, 24, LiteralForm::kBytes},
    {25, ElementType::kF8E4M3FNUZ, 25, LiteralForm::kBytes},
    {26, ElementType::kS2, 26, LiteralForm::kBytes},
    {27, ElementType::kU2, 27, LiteralForm::kBytes},
    {28, ElementType::kF8E4M3, 28, LiteralForm::kBytes},
    {29, ElementType::kF8E3M4, 29, LiteralForm::kBytes},
};

Result<const ElementRow*> element_row(int64_t primitive) {
  const auto* const found = std::ranges::find(kElements, primitive, &ElementRow::primitive);
  if (found != std::end(kElements)) return found;
  return unimplemented("element type {} of HLO", primitive);
}

// Packed numbers of `width` bytes each.
Status read_reals(const ProtoMessage& literal, uint32_t field, std::span<std::byte> to) {
  size_t count = 0;
  for (const ProtoMessage& each : literal.messages(field)) {
    const std::string_view bytes = each.bytes();
    if (bytes.size() > to.size() - count) return damaged("a literal has too many elements");
    std::memcpy(to.data() + count, bytes.data(), bytes.size());
    count += bytes.size();
  }
  if (count != to.size())
    return damaged("a literal has {} bytes, {} are missing", count, to.size() - count);
  return {};
}

Status read_elements(const ProtoMessage& literal, const ElementRow& row, Literal& to) {
  if (row.form == LiteralForm::kIntegers) {
    const std::vector<int64_t> values = literal.integers(row.field);
    if (static_cast<int64_t>(values.size()) != to.element_count()) {
      return damaged("a literal has {} elements, its shape {}", values.size(), to.element_count());
    }
    for (size_t i = 0; i < values.size(); ++i) to.set_integer(static_cast<int64_t>(i), values[i]);
    return {};
  }
  if (row.form == LiteralForm::kReals) return read_reals(literal, row.field, to.mutable_data());
  const std::string_view bytes = literal.text(row.field);
  if (bytes.size() != to.data().size()) {
    return damaged("a literal has {} bytes, its shape {}", bytes.size(), to.data().size());
  }
  std::memcpy(to.mutable_data().data(), bytes.data(), bytes.size());
  return {};
}

// From the order of the layout to rows.
Literal in_rows(const Literal& from, const std::vector<int64_t>& minor_to_major) {
  const Dims& dims = from.shape().dims();
  Literal rows(from.shape());
  const size_t width = from.data().size() / static_cast<size_t>(from.element_count());
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = 1;
  for (const int64_t d : minor_to_major) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= dims[static_cast<size_t>(d)];
  }
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < from.element_count(); ++i) {
    const int64_t at = std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
    std::memcpy(rows.mutable_data().data() + static_cast<size_t>(i) * width,
                from.data().data() + static_cast<size_t>(at) * width, width);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return rows;
}

}  // namespace

void ProtoShape::append_leaves(std::vector<Type>& leaves) const {
  if (!is_tuple) return leaves.push_back(type);
  for (const ProtoShape& each : elements) each.append_leaves(leaves);
}

Result<ProtoShape> shape_of(const ProtoMessage& shape, int depth) {
  ProtoShape read;
  const int64_t primitive = shape.integer(shape_field::kElementType);
  if (primitive == kTuplePrimitive) {
    if (depth <= 0) return damaged("tuples are nested too deeply");
    read.is_tuple = true;
    read.leaf_count = 0;
    for (const ProtoMessage& each : shape.messages(shape_field::kTupleShapes)) {
      TENON_ASSIGN(ProtoShape element, shape_of(each, depth - 1));
      read.begins.push_back(read.leaf_count);
      read.leaf_count += element.leaf_count;
      read.elements.push_back(std::move(element));
    }
    return read;
  }
  if (primitive == kTokenPrimitive) {
    read.type = Type::token();
    return read;
  }
  TENON_ASSIGN(const ElementRow* row, element_row(primitive));
  Dims dims;
  for (const int64_t size : shape.integers(shape_field::kDimensions)) {
    if (size < 0) return unimplemented("a dimension without a size");
    dims.push_back(size);
  }
  for (const int64_t is_dynamic : shape.integers(shape_field::kDynamic)) {
    if (is_dynamic != 0)
      return unimplemented("a dimension whose size is found when the program runs");
  }
  TENON_TRY(checked_element_count(dims));
  read.type = Type::tensor(row->type, std::move(dims));
  return read;
}

Result<DenseAttr> literal_of(const ProtoMessage& literal, int64_t limit) {
  TENON_ASSIGN(const ProtoShape shape, shape_of(literal.message(shape_field::kOfLiteral), 0));
  if (!shape.type.is_tensor()) return unimplemented("a constant that is no array");
  TENON_ASSIGN(
      const ElementRow* row,
      element_row(literal.message(shape_field::kOfLiteral).integer(shape_field::kElementType)));
  const Shape& array = shape.type.shape();
  if (array.byte_size() > limit) {
    return resource_exhausted("a constant of {} bytes, at most {} are read", array.byte_size(),
                              limit);
  }
  // The bytes are there, before memory is taken for them.
  if (array.byte_size() > 64 * static_cast<int64_t>(literal.bytes().size())) {
    return damaged("a constant of {} without its elements", array.to_string());
  }
  Literal values(array);
  TENON_TRY(read_elements(literal, *row, values));
  std::vector<int64_t> order = literal.message(shape_field::kOfLiteral)
                                   .message(shape_field::kLayout)
                                   .integers(shape_field::kMinorToMajor);
  std::vector<int64_t> rows(array.dims().size());
  std::iota(rows.rbegin(), rows.rend(), 0);
  if (!order.empty() && order != rows && array.element_count() > 0) {
    if (!std::ranges::is_permutation(order, rows))
      return damaged("a layout that is no permutation");
    values = in_rows(values, order);
  }
  return DenseAttr::of(std::move(values));
}

}  // namespace tenon::hlo
