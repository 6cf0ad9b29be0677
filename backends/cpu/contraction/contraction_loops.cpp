// Converts a contraction's dimensions to loops.
#include <algorithm>
#include <bit>

#include "backends/cpu/codegen/elements.h"
#include "backends/cpu/contraction/contraction.h"
#include "core/base/enumerators.h"
#include "core/base/sealed.h"
#include "core/types/serial.h"

namespace tenon::serial {
template <>
inline constexpr uint64_t kEnumEnd<cpu::MatrixUnit> = enumerator_count<cpu::MatrixUnit>();
}  // namespace tenon::serial

namespace tenon::cpu {

template <class A>
void serialize(A& a, serial::Of<A, ContractionLoop>& loop) {
  a(loop.extent, loop.lhs, loop.rhs, loop.result);
}
template <class A>
void serialize(A& a, serial::Of<A, ContractionLoops>& loops) {
  a(loops.lhs, loops.rhs, loops.result, loops.sum, loops.batch, loops.rows, loops.columns,
    loops.sums, loops.panel, loops.bytes, loops.unit, loops.multiplies_two);
}

namespace {

constexpr serial::Format kLoopsFormat = {"TNCL", "planned contraction", 4, 4};

using Loops = std::vector<ContractionLoop>;

// Merges adjacent loops over one contiguous range, and removes loops of one iteration.
Loops merged(const Loops& loops) {
  Loops list;
  for (const ContractionLoop& loop : loops) {
    if (loop.extent == 1) continue;
    if (!list.empty()) {
      ContractionLoop& outer = list.back();
      if (outer.lhs == loop.lhs * loop.extent && outer.rhs == loop.rhs * loop.extent &&
          outer.result == loop.result * loop.extent) {
        outer = {outer.extent * loop.extent, loop.lhs, loop.rhs, loop.result};
        continue;
      }
    }
    list.push_back(loop);
  }
  if (list.empty()) list.push_back({});
  return list;
}

// Makes a loop over panels and one over the columns of each one loop over columns.
void find_panels(ContractionLoops& loops) {
  constexpr int64_t kNarrowest = 64, kWidest = 512;  // bytes
  if (loops.columns.size() != 2 || loops.rhs != loops.sum) return;
  const ContractionLoop &panels = loops.columns[0], &columns = loops.columns[1];
  const int64_t bytes = columns.extent * static_cast<int64_t>(storage_bytes(loops.rhs));
  const bool fits = std::has_single_bit(static_cast<uint64_t>(columns.extent)) &&
                    bytes >= kNarrowest && bytes <= kWidest;
  const bool in_a_row = columns.rhs == 1 && columns.result == 1 &&
                        panels.result == columns.extent && loops.sums[0].rhs == columns.extent &&
                        panels.rhs % columns.extent == 0;
  if (!fits || !in_a_row) return;
  loops.panel = columns.extent;
  loops.columns = {{panels.extent * columns.extent, 0, panels.rhs / columns.extent, 1}};
}

}  // namespace

std::optional<ContractionLoops> loops_of(const program::Contraction& call,
                                         std::span<const Shape> operands, const Shape& result) {
  const Shape& lhs = operands[0];
  const Shape& rhs = operands[1];
  const auto sum = sum_type(lhs.element_type(), rhs.element_type(), result.element_type());
  if (!sum) return std::nullopt;
  if (lhs.byte_size() == 0 || rhs.byte_size() == 0) return std::nullopt;
  const Dims from_lhs = row_major_strides(lhs.dims());
  const Dims from_rhs = row_major_strides(rhs.dims());
  const Dims to = row_major_strides(result.dims());
  ContractionLoops loops;
  loops.lhs = lhs.element_type();
  loops.rhs = rhs.element_type();
  loops.result = result.element_type();
  loops.sum = *sum;
  loops.bytes = {lhs.byte_size(), rhs.byte_size(), result.byte_size()};
  size_t next = 0;
  const auto at = [](int64_t d) { return static_cast<size_t>(d); };
  for (size_t i = 0; i < call.lhs_batch.size(); ++i) {
    loops.batch.push_back({lhs.dim(at(call.lhs_batch[i])), from_lhs[at(call.lhs_batch[i])],
                           from_rhs[at(call.rhs_batch[i])], to[next++]});
  }
  const auto is_free = [](size_t d, const Dims& batch, const Dims& contracting) {
    return !contains(batch, static_cast<int64_t>(d)) &&
           !contains(contracting, static_cast<int64_t>(d));
  };
  for (size_t d = 0; d < lhs.dims().size(); ++d) {
    if (!is_free(d, call.lhs_batch, call.lhs_contracting)) continue;
    loops.rows.push_back({lhs.dim(d), from_lhs[d], 0, to[next++]});
  }
  for (size_t d = 0; d < rhs.dims().size(); ++d) {
    if (!is_free(d, call.rhs_batch, call.rhs_contracting)) continue;
    loops.columns.push_back({rhs.dim(d), 0, from_rhs[d], to[next++]});
  }
  for (size_t i = 0; i < call.lhs_contracting.size(); ++i) {
    loops.sums.push_back({lhs.dim(at(call.lhs_contracting[i])),
                          from_lhs[at(call.lhs_contracting[i])],
                          from_rhs[at(call.rhs_contracting[i])], 0});
  }
  for (Loops* list : {&loops.batch, &loops.rows, &loops.columns, &loops.sums})
    *list = merged(*list);
  if (loops.sums.size() > 1) return std::nullopt;
  find_panels(loops);
  return loops;
}

std::string save(const ContractionLoops& loops) { return serial::save_sealed(kLoopsFormat, loops); }

Result<ContractionLoops> load_loops(std::string_view text) {
  return serial::load_sealed<ContractionLoops>(kLoopsFormat, text);
}

}  // namespace tenon::cpu
