// What a file is when it is no trace: the words that tell a person which file they picked by
// mistake.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace lanescope::format {

// From the first bytes (64 are enough, up to a few KB help), unpacked. Empty: it may be JSON. Else
// a noun phrase: "an SQLite database (...)".
std::optional<std::string> describe_non_json(std::string_view head);

}  // namespace lanescope::format
