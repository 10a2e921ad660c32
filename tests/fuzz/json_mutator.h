// Mutations of JSON by its tokens, so that what comes out is still nearly a trace.
#pragma once
#include <string>
#include <string_view>

#include "fuzz_support.h"

namespace lanescope::fuzz {

// One to four of: events copied, moved or taken out; numbers at their edges; keys and words that
// readers know; values nested; strings and brackets broken. Any bytes.
std::string mutate_json(std::string_view text, Random& random);

}  // namespace lanescope::fuzz
