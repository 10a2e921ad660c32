// Says whether this build has a sanitizer. With one, everything takes ten to a hundred times longer.
#pragma once

namespace lanescope::testing {

// gcc defines macros, clang 16 has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitizers = true;
#elif defined(__has_feature)
inline constexpr bool kSanitizers =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitizers = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// How often a test repeats: under a sanitizer, a quarter of `plain`.
constexpr int rounds(int plain) { return kSanitizers ? plain / 4 : plain; }

}  // namespace lanescope::testing
