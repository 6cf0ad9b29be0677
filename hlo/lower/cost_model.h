// The cost model: the constants by which fusion and lowering choose among ways to run an op.
//
// One place for what used to be thresholds: sizes from which a way pays, and the rates of the
// target. A TargetInfo states some (hlo/driver/target_model.h); the rest are measured defaults. A
// wrong constant makes kernels slow, never wrong.
#pragma once

#include <cstdint>

namespace tenon::hlo::lower {

struct CostModel {
  // --- Rates of the target

  /// Time of a launch, of a byte of memory and of an operation, in seconds.
  double launch_seconds = 5e-6;
  double byte_seconds = 1e-11;
  double operation_seconds = 1e-12;

  // --- Sizes of a workgroup

  /// Elements that a workgroup takes, one a lane.
  int64_t lanes = 256;
  /// The most lanes that share elements or a tile. (Other lanes loops the backend cuts.)
  int64_t most_lanes = 1024;
  /// Private memory of a workgroup: registers hardly hold more; and of a lane, if the target states
  /// it (else 0).
  int64_t private_bytes = 256 << 10;
  int64_t lane_private_bytes = 0;
  /// Elements of one array, and products of one op, that one workgroup is enough for: a loop over
  /// them is one kernel.
  int64_t workgroup_elements = 1024;
  int64_t workgroup_products = 1 << 16;

  // --- Sizes from which a schedule takes less time than one element a lane

  /// Leaves of a reduction from which lanes share it: below, joining their parts takes longer.
  int64_t shared_leaves = 64;
  /// Results below which a workgroup each leaves most of the device idle.
  int64_t few_results = 64;
  /// Leaves that a workgroup reduces in the time of a launch: from there on a second stage pays.
  int64_t long_reduction = int64_t{1} << 15;
  /// Leaves that are worth a workgroup in the first of two stages.
  int64_t leaves_a_part = 4096;
  /// Rows, columns and depth of a product from which its factors are brought into scratch by tiles.
  int64_t tiled_product = 8;
  /// Dimensions of a transpose from which it goes through scratch by tiles.
  int64_t tiled_transpose = 16;
  /// Bytes of a register from which a lane holds several registers of results of a product.
  int64_t wide_register = 32;

  // --- Fusion

  /// Ops of one fusion, and arrays that it reads, which become buffers of its kernel.
  int64_t fused_ops = 64;
  int64_t fused_inputs = 24;
  /// Elements up to which a constant of one repeated number lies in memory; a larger one is stored
  /// by a kernel where it is used.
  int64_t kept_constant = 256;

  /// The time of one launch that moves `bytes` and computes `operations`.
  double seconds(double bytes, double operations) const {
    const double memory = bytes * byte_seconds;
    const double arithmetic = operations * operation_seconds;
    return launch_seconds + (memory > arithmetic ? memory : arithmetic);
  }
};

}  // namespace tenon::hlo::lower
