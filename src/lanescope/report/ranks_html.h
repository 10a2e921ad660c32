// `lanescope ranks --html`: the answer about a job as one page that needs no other file.
#pragma once
#include <string>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::report {

// The verdict, how late each rank was in each step, what each rank did in a step, the collectives that
// ranks waited in longest, what the late ranks did longer than the others. UTF-8, well-formed XML as well
// as HTML; loads nothing and has no script; every text of the files is escaped and cut. Its size is
// bounded for any job: kMostHeatRows x kMostHeatColumns cells, kMostRankRows rows. Any thread.
std::string ranks_html(const ranks::Job& job, const ranks::JobVerdict& verdict);

inline constexpr std::size_t kMostHeatRows = 48, kMostHeatColumns = 64, kMostRankRows = 64,
                             kMostRankBars = 16, kMostCollectivePictures = 3;

// The pictures; each is drawn for a wide and for a narrow screen. Empty: nothing is known.
std::string heat_map_html(const ranks::Job& job, const ranks::JobVerdict& verdict);
std::string rank_bars_html(const ranks::Job& job);
std::string critical_collectives_html(const ranks::Job& job);

}  // namespace lanescope::report
