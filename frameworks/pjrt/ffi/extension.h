// The extensions of the plug-in's table by which frameworks register handlers.
#pragma once

#include "frameworks/pjrt/c_api/ffi_extension.h"

namespace tenon::pjrt {

/// FFI, and behind it Gpu_Custom_Call. They stay for the process.
PJRT_Extension_Base* ffi_extensions();

}  // namespace tenon::pjrt
