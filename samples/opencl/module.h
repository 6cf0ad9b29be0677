// The binary of a module: how its kernels are launched, a line each, and the program as the driver
// saves it.
#pragma once

#include "core/kernel/render/render.h"

namespace tenon::opencl {

struct ModuleBinary {
  std::vector<kernel::RenderedKernel> kernels;
  std::string program;

  std::string save() const {
    std::string text;
    for (const kernel::RenderedKernel& k : kernels) {
      text += fmt::format("{} {} {}\n", k.function, k.workgroups, k.lanes);
    }
    return text + "\n" + program;
  }

  static Result<ModuleBinary> load(std::string_view bytes) {
    ModuleBinary module;
    while (!bytes.starts_with('\n')) {
      const size_t end = bytes.find('\n');
      char function[256];
      kernel::RenderedKernel k;
      if (end == std::string_view::npos ||
          std::sscanf(std::string(bytes.substr(0, end)).c_str(), "%255s %ld %ld", function,
                      &k.workgroups, &k.lanes) != 3) {
        return make_error(ErrorCode::kDataLoss, "not a module of this plug-in");
      }
      k.function = function;
      module.kernels.push_back(std::move(k));
      bytes.remove_prefix(end + 1);
    }
    module.program = bytes.substr(1);
    return module;
  }
};

}  // namespace tenon::opencl
