// Shardings on one device: erased if they split nothing, refused if they require partitioning.
#pragma once

#include <string>
#include <unordered_map>

#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// The meshes of a module (sdy.mesh), and checks of shardings that use their axes.
class Shardings {
 public:
  /// Records the axes and sizes of an sdy.mesh op.
  void add_mesh(const RawOp& op);

  /// Returns an error that names `what` and the sharding if `text` (sdy attribute text) splits a
  /// dimension over an axis of more than one device.
  Status check_sdy(std::string_view what, std::string_view text) const;

  /// The same for mhlo.sharding: "{replicated}", "{maximal device=0}" and tilings of one device
  /// pass.
  static Status check_mhlo(std::string_view what, std::string_view text);

  /// Checks the sharding attributes in `attributes`.
  Status check(std::string_view what, const Dict& attributes) const;

 private:
  std::unordered_map<std::string, int64_t> axis_sizes_;
};

}  // namespace tenon::hlo
