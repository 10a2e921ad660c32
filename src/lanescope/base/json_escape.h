// What escapes inside JSON strings mean: the one decoder, for whole files and for small values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope {

enum class EscapePolicy : std::uint8_t {
  kStrict,   // unknown escapes and halves of surrogate pairs are refused
  kLenient,  // an unknown escape is the character behind its backslash, half a pair is U+FFFD
};

// `raw` is what stands between the quotes; `out` becomes its text, UTF-8 when `raw` is. False: a
// bad escape, by either policy a \u without four hex digits and a backslash at the end; `out` is
// then of no use. Cost: one pass. Any thread.
bool unescape_json(std::string_view raw, std::string& out,
                   EscapePolicy policy = EscapePolicy::kStrict);

// The value of the four hex digits of \uXXXX at text[at]; -1: they are not.
int hex4_value(std::string_view text, std::size_t at);

}  // namespace lanescope
