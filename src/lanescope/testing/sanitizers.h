// Is this built with a sanitizer? Everything takes ten to a hundred times longer then.
#pragma once

namespace lanescope::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitizers = true;
#else
inline constexpr bool kSanitizers = false;
#endif

// How often to repeat what is random or alike: under a sanitizer a quarter of the times.
constexpr int rounds(int plain) { return kSanitizers ? plain / 4 : plain; }

}  // namespace lanescope::testing
