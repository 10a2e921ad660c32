// Search over the whole trace: words in names, and filters.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {

// "gemm kind:compute >100us": words must all be in the name (of GPU work: or in its readable form),
// in any case. kind:operator, kind:copy, ...; lane:12; >100us, <1ms.
struct SearchQuery {
  std::vector<std::string> words;  // lower case
  std::optional<TimeKind> kind;
  std::optional<std::uint32_t> lane;
  std::int64_t longer_than_ns = -1;
  std::optional<std::int64_t> shorter_than_ns;
};
// kInvalidArgument: an unknown kind, or a length that cannot be read.
Result<SearchQuery> parse_search(std::string_view text);

struct SearchResult {
  std::uint64_t total = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> lanes;  // lane, count; in order of lanes
  std::vector<SliceId> hits;                                   // the first `limit` by time
  std::vector<StringId> names;                                 // with a hit, at most kMostNames
};
inline constexpr std::size_t kMostSearchNames = 10'000;

// `in_lanes`: empty: all. O(slices + text of distinct names). Any thread.
SearchResult search(const Lanes& lanes, const SearchQuery& query,
                    const std::vector<std::uint32_t>& in_lanes, std::size_t limit);

// "100us", "1.5ms", "20ns", "2s". Nothing: anything else.
std::optional<std::int64_t> parse_length_ns(std::string_view text);

// The word in kind:..., also the key of a kind in JSON: "operator", "copy", ...
const char* time_kind_key(TimeKind kind);

}  // namespace lanescope::view
