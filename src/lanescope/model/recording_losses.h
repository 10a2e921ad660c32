// Import issues that say what a recording lacks, not what is wrong with one file of it. They travel
// with everything that is made from its Trace.
#pragma once
#include <array>

#include "lanescope/model/import_stats.h"

namespace lanescope {

inline constexpr std::array kRecordingLosses = {
    ImportIssue::kChecksumMismatch, ImportIssue::kDroppedRecords, ImportIssue::kLostBegin,
    ImportIssue::kUnmeasuredTime, ImportIssue::kLostSamples};

// For a Trace that is made from another one, or from several.
inline void add_recording_losses(const ImportStats& from, ImportStats* to) {
  for (const ImportIssue issue : kRecordingLosses)
    if (from[issue].count != 0) to->count(issue, std::nullopt, from[issue].count);
}

}  // namespace lanescope
