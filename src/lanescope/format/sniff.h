// Says what a file is if it is not a trace, for people who picked the wrong file.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace lanescope::format {

// From the first bytes (64 are enough, up to a few KB help), unpacked. Empty: it may be JSON. Else
// a noun phrase: "an SQLite database (...)".
std::optional<std::string> describe_non_json(std::string_view head);

}  // namespace lanescope::format
