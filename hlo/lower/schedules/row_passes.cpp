#include "hlo/lower/schedules/row_passes.h"

#include <array>
#include <bit>

#include "hlo/lower/elements/index_math.h"

namespace tenon::hlo::lower {
namespace {

using kernel::MemoryId;

Values with_axis(const Values& rest, size_t axis, ValueId position) {
  Values index = rest;
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), position);
  return index;
}

// Scratch for one row of each array.
std::vector<MemoryId> row_scratch(KernelMaker& maker, const RowPasses& rows, int side) {
  std::vector<MemoryId> memories;
  for (const ElementType type : rows.types) {
    const Type row = Type::tensor(type, {rows.dims[rows.axis]});
    memories.push_back(
        maker.b().scratch(fmt::format("row{}", side), memory_type(row), memory_dims(row)));
  }
  return memories;
}

Elements load_all(KernelMaker& maker, const RowPasses& rows, const std::vector<MemoryId>& memories,
                  const Values& index) {
  Elements elements;
  for (size_t k = 0; k < memories.size(); ++k) {
    const Type type = Type::tensor(rows.types[k], {});
    elements.push_back(maker.e().load(memories[k], type, index));
  }
  return elements;
}

void store_all(KernelMaker& maker, const std::vector<MemoryId>& memories, const Elements& elements,
               const Values& index) {
  for (size_t k = 0; k < memories.size(); ++k) maker.e().store(elements[k], memories[k], index);
}

Status in_scratch(LoweredOp& lowered, const Instruction& op, const RowPasses& rows,
                  const std::string& suffix) {
  return add_kernel(lowered, op, suffix, [&](KernelMaker& maker) {
    maker.inputs();
    rows.declare(maker);
    const RowPasses::Writer write = rows.output(maker);
    Dims rest = rows.dims;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(rows.axis));
    const Values row = maker.b().grid(rest);
    std::array<std::vector<MemoryId>, 2> scratch;
    for (int side = 0; side < 2 && side < rows.passes - 1; ++side) {
      scratch[static_cast<size_t>(side)] = row_scratch(maker, rows, side);
    }
    const auto at = [&](ValueId position) { return with_axis(row, rows.axis, position); };
    for (int pass = 0; pass < std::max(rows.passes, 1); ++pass) {
      maker.b().lanes({rows.dims[rows.axis]}, [&](const Values& i) {
        if (rows.passes == 0) return write(rows.input(maker, at(i[0])), at(i[0]));
        const RowReader read = [&](ValueId position) {
          if (pass == 0) return rows.input(maker, at(position));
          return load_all(maker, rows, scratch[static_cast<size_t>(pass - 1) % 2], {position});
        };
        const Elements elements = rows.step(maker, pass, read, i[0]);
        if (pass == rows.passes - 1) return write(elements, at(i[0]));
        store_all(maker, scratch[static_cast<size_t>(pass) % 2], elements, i);
      });
    }
  });
}

Status in_temporaries(LoweredOp& lowered, const Instruction& op, const RowPasses& rows,
                      const std::string& suffix, TuningParameters& tuning) {
  std::array<std::vector<uint32_t>, 2> sides;
  for (int side = 0; side < 2 && side < rows.passes - 1; ++side) {
    for (const ElementType type : rows.types) {
      sides[static_cast<size_t>(side)].push_back(static_cast<uint32_t>(lowered.temporaries.size()));
      lowered.temporaries.emplace_back(type, rows.dims);
    }
  }
  for (int pass = 0; pass < rows.passes; ++pass) {
    const bool last = pass == rows.passes - 1;
    const auto make = [&](KernelMaker& maker) {
      maker.inputs();
      rows.declare(maker);
      std::vector<MemoryId> from;
      std::vector<MemoryId> to;
      if (pass > 0) {
        for (const uint32_t t : sides[static_cast<size_t>(pass - 1) % 2]) {
          from.push_back(maker.temporary(t, kernel::Access::kIn));
        }
      }
      RowPasses::Writer write;
      if (last) {
        write = rows.output(maker);
      } else {
        for (const uint32_t t : sides[static_cast<size_t>(pass) % 2]) {
          to.push_back(maker.temporary(t, kernel::Access::kOut));
        }
        write = [&maker, to](const Elements& elements, const Values& index) {
          store_all(maker, to, elements, index);
        };
      }
      for_each_index(maker.b(), rows.dims, tuning, [&](const Values& index) {
        const auto at = [&](ValueId position) {
          Values moved = index;
          moved[rows.axis] = position;
          return moved;
        };
        const RowReader read = [&](ValueId position) {
          if (pass == 0) return rows.input(maker, at(position));
          return load_all(maker, rows, from, at(position));
        };
        write(rows.step(maker, pass, read, index[rows.axis]), index);
      });
    };
    TENON_TRY(add_kernel(lowered, op, fmt::format("{}_pass{}", suffix, pass), make));
  }
  return {};
}

}  // namespace

int log2_ceil(int64_t n) { return n <= 1 ? 0 : std::bit_width(static_cast<uint64_t>(n - 1)); }

Status lower_row_passes(LoweredOp& lowered, const Instruction& op, const RowPasses& rows,
                        const std::string& suffix, TuningParameters& tuning,
                        const LowerLimits& limits) {
  int64_t bytes = 0;
  for (const ElementType type : rows.types) {
    bytes += 2 * Shape(type, {rows.dims[rows.axis]}).byte_size();
  }
  const bool fits = rows.passes <= 1 || bytes <= limits.scratch_bytes;
  if (fits && (rows.passes == 0 || tuning.choose_flag(parameters::kRowScratch, true))) {
    return in_scratch(lowered, op, rows, suffix);
  }
  return in_temporaries(lowered, op, rows, suffix, tuning);
}

}  // namespace tenon::hlo::lower
