// Finds names that the user may have meant, for "did you mean" messages.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::analysis {

// Up to `most` of `names`, best first: names that contain the text (whatever the case), then names
// within a few edits of it. Names over 200 characters are skipped. O(names * length^2) for short
// names; meant for one error message.
std::vector<std::string> find_close_names(std::string_view text,
                                          const std::vector<std::string_view>& names,
                                          std::size_t most = 3);

}  // namespace lanescope::analysis
