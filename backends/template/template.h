// backends/template/: the template backend: where a vendor starts.
//
// See template.cpp.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Settings, from the environment: TENON_CHIP (the chip's program), TENON_CHIPS (number of chips),
/// TENON_CHIP_MEMORY (bytes of each), TENON_TEMPLATE_CC (the C compiler).
std::shared_ptr<Backend> make_template_backend();

}  // namespace tenon::backend
