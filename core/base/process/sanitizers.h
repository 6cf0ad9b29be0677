// The sanitizers with which this is built: TENON_ASAN and TENON_TSAN, 0 or 1. GCC defines macros,
// Clang features.
#pragma once

#if defined(__has_feature)
#define TENON_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TENON_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TENON_HAS_FEATURE(address_sanitizer)
#define TENON_ASAN 1
#else
#define TENON_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || TENON_HAS_FEATURE(thread_sanitizer)
#define TENON_TSAN 1
#else
#define TENON_TSAN 0
#endif
