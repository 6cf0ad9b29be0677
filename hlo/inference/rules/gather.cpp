// Rules of gather, dynamic_gather and scatter.
#include <algorithm>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

// In the specification dynamic_gather lacks gather's batching dimensions, so its labels differ.
struct GatherLabels {
  std::string_view rank = "C1", index_dim = "C2", index_map_size = "C3", offset_list = "C4",
                   offset_range = "C5", collapsed_unique = "C6", collapsed_sorted = "C7",
                   collapsed_range = "C8", collapsed_size = "C9", batching_sorted = "C10",
                   batching_range = "C11", batching_size = "C12", start_unique = "C13",
                   start_range = "C14", index_not_batching = "C15", batching_count = "C16",
                   batching_sizes = "C17", map_unique = "C18", map_range = "C19",
                   slice_count = "C20", slice_range = "C21";
};
constexpr GatherLabels kGather;
constexpr GatherLabels kDynamicGather{.collapsed_sorted = "C6",
                                      .collapsed_range = "C7",
                                      .collapsed_size = "C8",
                                      .batching_sorted = "",
                                      .batching_range = "",
                                      .batching_size = "",
                                      .start_unique = "",
                                      .start_range = "",
                                      .index_not_batching = "",
                                      .batching_count = "",
                                      .batching_sizes = "",
                                      .map_unique = "C9",
                                      .map_range = "C10",
                                      .slice_count = "C11",
                                      .slice_range = "C12"};

// The size of the index vectors; 1 if index_vector_dim is past the end.
int64_t index_vector_size(const Type& indices, int64_t index_vector_dim) {
  return index_vector_dim == indices.rank() ? 1 : indices.dims()[at(index_vector_dim)];
}

// The dimensions of the indices without the index vectors.
std::vector<Dim> batch_dims(const Type& indices, int64_t index_vector_dim) {
  std::vector<Dim> dims;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != index_vector_dim) dims.push_back(dim_of(indices, d));
  }
  return dims;
}

Status check_slices_of_one(const Instruction& op, std::string_view label, std::string_view name,
                           const I64s& sizes, const I64s& dimensions) {
  for (int64_t d : dimensions) {
    const int64_t size = sizes[at(d)];
    if (size != kDynamic && size > 1) {
      return rule_error(op, label, "slice size of dimension {} in {} is {}, expected at most 1", d,
                        name, size);
    }
  }
  return {};
}

// Batching dimensions of operand and indices must correspond, with equal sizes.
Status check_batching(const Instruction& op, const GatherLabels& labels, const I64s& operand_dims,
                      const I64s& index_dims, const Type& operand, const Type& indices,
                      int64_t index_vector_dim, std::string_view index_name) {
  TENON_TRY(check_unique(op, labels.start_unique, index_name, index_dims));
  TENON_TRY(check_range(op, labels.start_range, index_name, index_dims, indices.rank()));
  if (contains(index_dims, index_vector_dim)) {
    return rule_error(op, labels.index_not_batching, "{} contains index_vector_dim {}", index_name,
                      index_vector_dim);
  }
  TENON_TRY(check_length(op, labels.batching_count, index_name, length(index_dims),
                         length(operand_dims)));
  for (size_t i = 0; i < operand_dims.size(); ++i) {
    const int64_t a = operand.dims()[at(operand_dims[i])];
    const int64_t b = indices.dims()[at(index_dims[i])];
    if (!same_size(a, b)) {
      return rule_error(op, labels.batching_sizes, "batching dimension sizes differ: {} and {}", a,
                        b);
    }
  }
  return {};
}

}  // namespace

Types gather_with(const Instruction& op, const GatherDims& dims, const I64s* known_sizes,
                  bool is_dynamic) {
  const GatherLabels& labels = is_dynamic ? kDynamicGather : kGather;
  const Type& operand = op.operand_type(0);
  const Type& indices = op.operand_type(1);
  TENON_TRY(check_integer(op, "I2", 1));
  const int64_t rank = operand.rank();
  const int64_t named = length(dims.offset_dims) + length(dims.collapsed_slice_dims) +
                        length(dims.operand_batching_dims);
  if (named != rank) {
    return rule_error(op, labels.rank,
                      "offset, collapsed and batching dimensions are {}, expected {}, "
                      "the rank of {}",
                      named, rank, operand.to_string());
  }
  TENON_TRY(check_dimension(op, labels.index_dim, "index_vector_dim", dims.index_vector_dim,
                            indices.rank() + 1));
  const int64_t vector_size = index_vector_size(indices, dims.index_vector_dim);
  if (!same_size(vector_size, length(dims.start_index_map))) {
    return rule_error(op, labels.index_map_size, "start_index_map has length {}, expected {}",
                      dims.start_index_map.size(), vector_size);
  }
  TENON_TRY(check_unique(op, labels.offset_list, "offset_dims", dims.offset_dims));
  TENON_TRY(check_sorted(op, labels.offset_list, "offset_dims", dims.offset_dims));
  const std::vector<Dim> batch = batch_dims(indices, dims.index_vector_dim);
  const int64_t result_rank = length(batch) + length(dims.offset_dims);
  TENON_TRY(check_range(op, labels.offset_range, "offset_dims", dims.offset_dims, result_rank));
  const I64s not_offset = concatenated(dims.collapsed_slice_dims, dims.operand_batching_dims);
  TENON_TRY(check_unique(op, labels.collapsed_unique,
                         "collapsed_slice_dims + operand_batching_dims", not_offset));
  TENON_TRY(
      check_sorted(op, labels.collapsed_sorted, "collapsed_slice_dims", dims.collapsed_slice_dims));
  TENON_TRY(check_range(op, labels.collapsed_range, "collapsed_slice_dims",
                        dims.collapsed_slice_dims, rank));
  TENON_TRY(check_sorted(op, labels.batching_sorted, "operand_batching_dims",
                         dims.operand_batching_dims));
  TENON_TRY(check_range(op, labels.batching_range, "operand_batching_dims",
                        dims.operand_batching_dims, rank));
  TENON_TRY(check_batching(op, labels, dims.operand_batching_dims, dims.start_indices_batching_dims,
                           operand, indices, dims.index_vector_dim, "start_indices_batching_dims"));
  TENON_TRY(check_unique(op, labels.map_unique, "start_index_map + operand_batching_dims",
                         concatenated(dims.start_index_map, dims.operand_batching_dims)));
  TENON_TRY(check_range(op, labels.map_range, "start_index_map", dims.start_index_map, rank));
  const I64s slice_sizes = known_sizes != nullptr ? *known_sizes : I64s(at(rank), kDynamic);
  TENON_TRY(check_length(op, labels.slice_count, "slice_sizes", length(slice_sizes), rank));
  TENON_TRY(check_slices_of_one(op, labels.collapsed_size, "collapsed_slice_dims", slice_sizes,
                                dims.collapsed_slice_dims));
  TENON_TRY(check_slices_of_one(op, labels.batching_size, "operand_batching_dims", slice_sizes,
                                dims.operand_batching_dims));
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = slice_sizes[at(d)];
    const int64_t most = operand.dims()[at(d)];
    if (known_sizes == nullptr) continue;
    if (size < 0 || (most != kDynamic && size > most)) {
      return rule_error(op, labels.slice_range,
                        "slice size of dimension {} is {}, expected 0 to the "
                        "size in {}",
                        d, size, operand.to_string());
    }
  }
  std::vector<Dim> result;
  size_t next_batch = 0;
  int64_t next_offset = 0;
  for (int64_t d = 0; d < result_rank; ++d) {
    if (!contains(dims.offset_dims, d)) {
      result.push_back(batch[next_batch++]);
      continue;
    }
    while (contains(not_offset, next_offset)) ++next_offset;
    result.push_back({slice_sizes[at(next_offset++)], kDynamic});
  }
  const bool has_elements =
      std::all_of(result.begin(), result.end(), [](const Dim& dim) { return dim.size > 0; });
  for (int64_t d : not_offset) {
    if (has_elements && slice_sizes[at(d)] == 0) {
      return rule_error(op, "",
                        "the slices have size 0 in dimension {}, which the result has not, "
                        "expected 1: they have no elements for it",
                        d);
    }
  }
  return one(settle(op, 0, with_dims(operand, result)));
}

Types gather(const Instruction& op) {
  return gather_with(op, *op.attr<GatherDims>(AttrKey::dimension_numbers),
                     &op.i64s(AttrKey::slice_sizes), false);
}

namespace {

constexpr GatherLabels kScatterBatching{.start_unique = "C14",
                                        .start_range = "C15",
                                        .index_not_batching = "C16",
                                        .batching_count = "C17",
                                        .batching_sizes = "C18"};

// Checks the shapes of inputs and updates by the dimension numbers; all inputs have one shape, and
// so have all updates.
Status check_scatter_shapes(const Instruction& op, const Type& input, const Type& indices,
                            const Type& update) {
  const auto& dims = *op.attr<ScatterDims>(AttrKey::scatter_dimension_numbers);
  const int64_t rank = input.rank();
  const int64_t named = length(dims.update_window_dims) + length(dims.inserted_window_dims) +
                        length(dims.input_batching_dims);
  if (named != rank) {
    return rule_error(op, "C2",
                      "window, inserted and batching dimensions are {}, expected {}, the "
                      "rank of {}",
                      named, rank, input.to_string());
  }
  TENON_TRY(
      check_dimension(op, "C22", "index_vector_dim", dims.index_vector_dim, indices.rank() + 1));
  TENON_TRY(check_unique(op, "C7", "update_window_dims", dims.update_window_dims));
  TENON_TRY(check_sorted(op, "C7", "update_window_dims", dims.update_window_dims));
  TENON_TRY(check_range(op, "C8", "update_window_dims", dims.update_window_dims, update.rank()));
  TENON_TRY(check_unique(op, "C9", "inserted_window_dims + input_batching_dims",
                         concatenated(dims.inserted_window_dims, dims.input_batching_dims)));
  TENON_TRY(check_sorted(op, "C10", "inserted_window_dims", dims.inserted_window_dims));
  TENON_TRY(check_range(op, "C11", "inserted_window_dims", dims.inserted_window_dims, rank));
  TENON_TRY(check_sorted(op, "C12", "input_batching_dims", dims.input_batching_dims));
  TENON_TRY(check_range(op, "C13", "input_batching_dims", dims.input_batching_dims, rank));
  TENON_TRY(check_batching(op, kScatterBatching, dims.input_batching_dims,
                           dims.scatter_indices_batching_dims, input, indices,
                           dims.index_vector_dim, "scatter_indices_batching_dims"));
  const int64_t vector_size = index_vector_size(indices, dims.index_vector_dim);
  if (!same_size(vector_size, length(dims.scatter_dims_to_operand_dims))) {
    return rule_error(op, "C19", "scatter_dims_to_operand_dims has length {}, expected {}",
                      dims.scatter_dims_to_operand_dims.size(), vector_size);
  }
  TENON_TRY(
      check_unique(op, "C20", "scatter_dims_to_operand_dims + input_batching_dims",
                   concatenated(dims.scatter_dims_to_operand_dims, dims.input_batching_dims)));
  TENON_TRY(check_range(op, "C21", "scatter_dims_to_operand_dims",
                        dims.scatter_dims_to_operand_dims, rank));

  const std::vector<Dim> scatter = batch_dims(indices, dims.index_vector_dim);
  const int64_t update_rank = length(scatter) + length(dims.update_window_dims);
  if (update.rank() != update_rank) {
    return rule_error(op, "C4", "updates are {}, expected rank {}", update.to_string(),
                      update_rank);
  }
  size_t next_scatter = 0;
  int64_t next_window = 0;
  for (int64_t d = 0; d < update_rank; ++d) {
    const int64_t size = update.dims()[at(d)];
    if (!contains(dims.update_window_dims, d)) {
      const int64_t expected = scatter[next_scatter++].size;
      if (!same_size(size, expected)) {
        return rule_error(op, "C4",
                          "dimension {} of updates {} is {}, expected {} as in the indices", d,
                          update.to_string(), size, expected);
      }
      continue;
    }
    while (contains(dims.inserted_window_dims, next_window) ||
           contains(dims.input_batching_dims, next_window)) {
      ++next_window;
    }
    const int64_t most = input.dims()[at(next_window++)];
    if (size != kDynamic && most != kDynamic && size > most) {
      return rule_error(op, "C4",
                        "dimension {} of updates {} is {}, expected at most {} as in the "
                        "inputs",
                        d, update.to_string(), size, most);
    }
  }
  return {};
}

}  // namespace

Types scatter(const Instruction& op) {
  const size_t count = op.operand_count() / 2;
  if (count == 0 || op.operand_count() % 2 == 0) {
    return rule_error(op, "C5",
                      "there are {} operands, expected inputs, indices and as many updates",
                      op.operand_count());
  }
  TENON_TRY(check_integer(op, "I2", count));
  Type input = op.operand_type(0);
  Type update = op.operand_type(count + 1);
  std::vector<Type> inputs;
  std::vector<Type> updates;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(op.operand_type(i));
    updates.push_back(op.operand_type(count + 1 + i));
    if (!same_shape(inputs[i], input)) {
      return rule_error(op, "C1", "input shapes differ: {} and {}", input.to_string(),
                        inputs[i].to_string());
    }
    if (!same_shape(updates[i], update)) {
      return rule_error(op, "C3", "update shapes differ: {} and {}", update.to_string(),
                        updates[i].to_string());
    }
    if (!same_element(inputs[i], updates[i]) && !promotable(updates[i], inputs[i])) {
      return rule_error(op, "C6", "update {} is {}, its input is {}", i,
                        element_to_string(updates[i]), element_to_string(inputs[i]));
    }
    input = most_specific(input, inputs[i]);
    update = most_specific(update, updates[i]);
  }
  TENON_TRY(check_scatter_shapes(op, input, op.operand_type(count), update));
  TENON_ASSIGN(const std::vector<Type> elements, check_reducer(op, 0, "C23", inputs, updates));
  std::vector<Type> results;
  for (size_t i = 0; i < count; ++i) {
    results.push_back(settle(op, i, with_dims(elements[i], dims_of(input))));
  }
  return results;
}

}  // namespace tenon::hlo::infer
