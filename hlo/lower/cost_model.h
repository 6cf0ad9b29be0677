// The cost model: the constants by which fusion and lowering choose schedules.
//
// It contains the break-even sizes of schedules and the rates of the target. A TargetInfo states
// some of them (hlo/driver/target_model.h); the rest are measured defaults. A wrong constant makes
// kernels slow, never wrong.
#pragma once

#include <cstdint>

namespace tenon::hlo::lower {

struct CostModel {
  // --- Rates of the target

  /// The time of a launch, of a byte of memory traffic and of an operation, in seconds.
  double launch_seconds = 5e-6;
  double byte_seconds = 1e-11;
  double operation_seconds = 1e-12;

  /// Whether the target scans over lanes itself, in the time of a loop over lanes.
  bool scans = false;

  // --- Workgroup sizes

  /// Elements per workgroup, one per lane.
  int64_t lanes = 256;
  /// The maximum number of lanes that share elements or a tile. (The backend divides other lanes
  /// loops.)
  int64_t most_lanes = 1024;
  /// Private memory of a workgroup (registers hardly hold more), and of a lane if the target states
  /// it (else 0).
  int64_t private_bytes = 256 << 10;
  int64_t lane_private_bytes = 0;
  /// The number of elements of an array, and of products of an op, up to which one workgroup is
  /// enough: a loop over them is one kernel.
  int64_t workgroup_elements = 1024;
  int64_t workgroup_products = 1 << 16;
  /// The leaves of a product in such a loop that one lane combines, on a device with many lanes.
  int64_t workgroup_leaves = 256;

  /// Lanes of a workgroup for each unit of the device; a GPU can run more. While an op has fewer
  /// results, its leaves are shared among lanes. 1: a unit runs one lane.
  int64_t busy_lanes = 1;

  // --- Break-even sizes of schedules, compared with one element per lane

  /// Leaves from which lanes share a reduction: below, combining their parts takes longer.
  int64_t shared_leaves = 64;
  /// Leaves from which that pays for rows, whose leaves are adjacent in memory; and for rows of
  /// each of which there is more to do, such as a math function, which lanes of many rows do
  /// together.
  int64_t shared_row = 64;
  int64_t shared_row_and_more = 64;
  /// The most elements of a row that a lane keeps in registers where lanes are wide vectors, which
  /// shuffles take from rows of memory; of a row with much to do for each element (a math function,
  /// several reductions); the most ops of such a row, and of one whose elements a workgroup would
  /// convert; and its time beside that of lanes that read their elements again.
  int64_t register_row = 8;
  int64_t register_row_and_more = 16;
  int64_t register_row_ops = 240;
  int64_t register_row_ops_converted = 400;
  double register_row_time = 0.4;
  /// Elements of a last dimension below which a reduction of those before it gives work to few
  /// vectors, so that it takes rows together and in parts (split-reductions); 0: never.
  int64_t short_columns = 0;
  /// Below this number of results, one workgroup per result leaves most of the device idle.
  int64_t few_results = 64;
  /// That number for results whose leaves are not adjacent; lanes that are vectors add rows of
  /// them.
  int64_t few_columns = 64;
  /// Leaves that a workgroup reduces in the time of a launch: from there on a second stage pays.
  int64_t long_reduction = int64_t{1} << 15;
  /// Leaves per workgroup in the first of two stages.
  int64_t leaves_a_part = 4096;
  /// Lanes of a device from which results that read adjacent elements share their leaves by
  /// columns; the adjacent results of a workgroup (a transaction of memory, the width of a warp),
  /// and the leaves that a lane should have.
  int64_t many_lanes = 1024;
  int64_t adjacent_results = 32;
  int64_t shortest_run = 8;
  /// Elements of a row from which a lane that scans them is as fast as lanes that each combine
  /// their prefix, and from which the lanes of a workgroup scan it together. A unit that runs one
  /// lane scans most rows faster.
  int64_t lane_scan = 2;
  int64_t workgroup_scan = 2;
  /// Rows, columns and depth of a product from which its factors are copied into scratch by tiles.
  int64_t tiled_product = 8;
  /// Tiles of a product's depth from which several workgroups share it on a device with idle units;
  /// each takes at least a quarter of as many.
  int64_t split_turns = 32;
  /// Scores of an attention from which it keeps none of them in memory: fewer stay in a cache.
  int64_t attention_scores = int64_t{1} << 18;
  /// Bytes of a block of rows of a large array, which is computed by blocks if they are several
  /// (row-blocks).
  int64_t row_block_bytes = int64_t{2} << 20;
  /// Dimensions of a transpose from which it goes through scratch by tiles.
  int64_t tiled_transpose = 16;
  /// Elements of short rows from which that pays where lanes are wide vectors and the rows of the
  /// result are long.
  int64_t tiled_short_rows = 8;
  /// Register size in bytes from which a lane computes several registers of a product's results.
  int64_t wide_register = 32;
  /// Register size in bytes from which lanes scatter elements by one instruction.
  int64_t scattering_register = 64;
  /// The most elements of a row that a lane gathers by one index and stores, without and with such
  /// instructions: more are a vector, one row at a time.
  int64_t gathered_row = 4;
  int64_t gathered_row_scattered = 7;
  /// Whether `contract` keeps sums in such registers: tiles of convolutions run along features.
  bool wide_tiles = false;
  /// Whether products of small integers are faster in floats, where those are exact
  /// (float-products): f32 is multiplied and added at once, integers are not.
  bool float_products = false;
  /// Rows and columns from which the target multiplies integers of up to 16 bits faster than
  /// floats: such products stay integers, of as few bits as their factors allow. 0: never.
  int64_t narrow_products = 0;
  /// Whether those of 8 bits are several times as fast as those of 16.
  bool byte_products = false;
  /// Bytes of a row of such a tile of several rows: a constant factor of a product is panels of
  /// columns as wide (factor-panels). 0: the target reads none in place.
  int64_t panel_bytes = 0;

  // --- Fusion

  /// The maximum number of ops of a fusion, and of arrays that it reads, which become buffers of
  /// its kernel.
  int64_t fused_ops = 64;
  int64_t fused_inputs = 24;
  /// The least number of bytes of arrays between fusions for which the later ones compute cheap
  /// values again (smaller arrays stay in a core's cache), and the most ops for each such array.
  int64_t rematerialized_bytes = 1 << 15;
  int64_t rematerialized_ops = 4;
  /// The maximum number of elements of a splat constant that is kept in memory; a larger one is
  /// stored by a kernel where it is used.
  int64_t kept_constant = 256;
  /// The most elements of a padded row that is not fused with what reads the array as longer rows:
  /// lanes know their places in short rows, and would divide indices in long ones.
  int64_t padded_row = 16;

  /// The time of one launch that moves `bytes` and computes `operations`.
  double seconds(double bytes, double operations) const {
    const double memory = bytes * byte_seconds;
    const double arithmetic = operations * operation_seconds;
    return launch_seconds + (memory > arithmetic ? memory : arithmetic);
  }
};

}  // namespace tenon::hlo::lower
