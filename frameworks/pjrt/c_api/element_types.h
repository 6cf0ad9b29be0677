// Element types of the PJRT C API and of Tenon, for both sides of the API: C++, unlike the other
// headers of this folder.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <array>

#include "core/base/status.h"
#include "core/types/element_type.h"
#include "frameworks/pjrt/c_api/base.h"

namespace tenon::pjrt {

struct BufferTypePair {
  ElementType type;
  PJRT_Buffer_Type buffer_type;
};
inline constexpr std::array<BufferTypePair, kElementTypeCount> kBufferTypes = {{
    {ElementType::kPred, PJRT_Buffer_Type_PRED},
    {ElementType::kS2, PJRT_Buffer_Type_S2},
    {ElementType::kS4, PJRT_Buffer_Type_S4},
    {ElementType::kS8, PJRT_Buffer_Type_S8},
    {ElementType::kS16, PJRT_Buffer_Type_S16},
    {ElementType::kS32, PJRT_Buffer_Type_S32},
    {ElementType::kS64, PJRT_Buffer_Type_S64},
    {ElementType::kU2, PJRT_Buffer_Type_U2},
    {ElementType::kU4, PJRT_Buffer_Type_U4},
    {ElementType::kU8, PJRT_Buffer_Type_U8},
    {ElementType::kU16, PJRT_Buffer_Type_U16},
    {ElementType::kU32, PJRT_Buffer_Type_U32},
    {ElementType::kU64, PJRT_Buffer_Type_U64},
    {ElementType::kF4E2M1FN, PJRT_Buffer_Type_F4E2M1FN},
    {ElementType::kF6E2M3FN, PJRT_Buffer_Type_F6E2M3FN},
    {ElementType::kF6E3M2FN, PJRT_Buffer_Type_F6E3M2FN},
    {ElementType::kF8E3M4, PJRT_Buffer_Type_F8E3M4},
    {ElementType::kF8E4M3, PJRT_Buffer_Type_F8E4M3},
    {ElementType::kF8E4M3FN, PJRT_Buffer_Type_F8E4M3FN},
    {ElementType::kF8E4M3FNUZ, PJRT_Buffer_Type_F8E4M3FNUZ},
    {ElementType::kF8E4M3B11FNUZ, PJRT_Buffer_Type_F8E4M3B11FNUZ},
    {ElementType::kF8E5M2, PJRT_Buffer_Type_F8E5M2},
    {ElementType::kF8E5M2FNUZ, PJRT_Buffer_Type_F8E5M2FNUZ},
    {ElementType::kF8E8M0FNU, PJRT_Buffer_Type_F8E8M0FNU},
    {ElementType::kBF16, PJRT_Buffer_Type_BF16},
    {ElementType::kF16, PJRT_Buffer_Type_F16},
    {ElementType::kF32, PJRT_Buffer_Type_F32},
    {ElementType::kF64, PJRT_Buffer_Type_F64},
    {ElementType::kC64, PJRT_Buffer_Type_C64},
    {ElementType::kC128, PJRT_Buffer_Type_C128},
}};

/// Errors: kUnimplemented for types that Tenon lacks (tokens, one-bit integers).
inline Result<ElementType> element_type_of(PJRT_Buffer_Type type) {
  const auto* found = std::ranges::find(kBufferTypes, type, &BufferTypePair::buffer_type);
  if (found != kBufferTypes.end()) return found->type;
  return unimplemented("element type {} of the PJRT C API is not supported",
                       static_cast<int>(type));
}

inline PJRT_Buffer_Type buffer_type_of(ElementType type) {
  return std::ranges::find(kBufferTypes, type, &BufferTypePair::type)->buffer_type;
}

/// The minor version of the API that added `type`; 0 for those of every version in use.
constexpr int first_minor_of(PJRT_Buffer_Type type) {
  switch (type) {
    case PJRT_Buffer_Type_F8E8M0FNU:
    case PJRT_Buffer_Type_F4E2M1FN:
      return 63;
    case PJRT_Buffer_Type_S1:
    case PJRT_Buffer_Type_U1:
      return 94;
    case PJRT_Buffer_Type_F6E2M3FN:
    case PJRT_Buffer_Type_F6E3M2FN:
      return 114;
    default:
      return 0;
  }
}

}  // namespace tenon::pjrt
