// Characters as UTF-8.
#pragma once
#include <cstdint>
#include <string>

namespace lanescope {

// Adds 1 to 4 bytes. A number that is no character (half of a surrogate pair, above U+10FFFF) becomes U+FFFD.
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace lanescope
