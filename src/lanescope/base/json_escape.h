// Decodes the escapes inside JSON strings. The one decoder, for whole files and for small values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope {

enum class EscapePolicy : std::uint8_t {
  kStrict,   // refuses unknown escapes and halves of surrogate pairs
  kLenient,  // \q becomes q, and half a surrogate pair becomes U+FFFD
};

// `raw` is the text between the quotes; `out` becomes its meaning, UTF-8 if `raw` is. False: a bad
// escape, and `out` is of no use. Both policies refuse a \u without four hex digits and a backslash
// at the end. Cost: one pass. Any thread.
bool unescape_json(std::string_view raw, std::string& out,
                   EscapePolicy policy = EscapePolicy::kStrict);

// The value of the four hex digits at text[at]; -1: they are not four hex digits.
int hex4_value(std::string_view text, std::size_t at);

}  // namespace lanescope
