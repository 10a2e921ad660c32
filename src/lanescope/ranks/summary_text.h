// A rank's summary as text, for shard files and for other processes.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

inline constexpr std::size_t kMostSummaryBytes = 200'000;
inline constexpr std::string_view kSummaryMark = R"({"lanescope_rank_summary":1)";

// One JSON object on one line, without a line break, at most kMostSummaryBytes: later collectives are
// dropped and counted to make it fit. docs/formats/rank_summary.md.
std::string write_summary(const RankSummary& summary);

// Checks every size and index, and that times are less than 104 days apart. kCorruptInput says
// what was expected; kLimit: longer than kMostSummaryBytes. Any thread.
Result<RankSummary> read_summary(std::string_view text);

// A hash of the sources that decide what a summary holds. A stored summary with another hash is not used.
std::string summary_version();

// A JSON string with its quotes.
std::string json_text(std::string_view text);

}  // namespace lanescope::ranks
