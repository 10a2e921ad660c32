// The process that samples hardware counters for `lanescope record --hardware` and
// profile(hardware=True): record_cupti/hardware_sampler.h.
#pragma once
#include <string>
#include <vector>

namespace lanescope::cli {

inline constexpr char kHardwareProcess[] = "_hardware";

// `lanescope _hardware FILE INTERVAL_NS DEVICES MOST_BYTES`, started by other processes only.
// Returns the exit code. The first line of standard output says whether it samples.
int run_hardware_process(const std::vector<std::string>& arguments);

}  // namespace lanescope::cli
