// What hardware counters measured on the main device in the steady steps. Several rules use it.
// docs/definitions/hardware.md#explain.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/hardware_lanes.h"
#include "lanescope/analysis/hardware_use.h"
#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/explain/rule.h"

namespace lanescope::explain::rules {

// With fewer samples no rule gives a verdict.
inline constexpr std::uint64_t kFewestVerdictSamples = 20;
// The same for clocks, power and temperature: they are sampled only ten times a second.
inline constexpr std::uint64_t kFewestSlowSamples = 5;

// A group of equal kernels, and what the counters measured while it ran.
struct KernelUse {
  analysis::KernelGroup group;
  analysis::HardwareUse use;
};

struct MeasuredKernels {
  std::vector<KernelUse> kernels;  // most busy time first
  std::int64_t measured_ns = 0;    // durations of all their calls
  std::int64_t all_ns = 0;         // of all kernels, also of those without measurements
  std::uint64_t sample_count = 0;
};

// The kernels whose numbers reach a limit, as a rule reports them.
struct KernelsAbove {
  std::int64_t time_ns = 0;
  std::uint64_t sample_count = 0, calls = 0;
  double mean = 0;                 // mean of the number, weighted by time
  std::vector<KernelUse> largest;  // at most three
};

// Nothing: no samples of the main device. Each call computes it again, in O(n log n).
std::optional<MeasuredKernels> measure_kernels(const Facts& facts);

using UseNumber = std::optional<double> analysis::HardwareUse::*;
KernelsAbove kernels_above(const MeasuredKernels& measured, UseNumber number, double limit);

// True: at least half of the kernels' time was measured, with enough samples.
bool has_enough_samples(const MeasuredKernels& measured);

// Kernels that reach one measured limit and have at least half of the measured time, in enough
// samples. Rules that are about one limit use this.
struct MeasuredLimit {
  KernelsAbove above;
  std::int64_t measured_ns = 0, all_ns = 0;
};
Measurement<MeasuredLimit> measure_limit(const Facts& facts, UseNumber number, double limit);
// Makes the part of a finding that all these rules share. Each rule adds its texts and evidence.
Finding limit_finding(const Facts& facts, const MeasuredLimit& found);

// Adds the kernels as evidence: "{} of {}: {} of the peak from {} samples".
void add_kernel_uses(const Facts& facts, const std::vector<KernelUse>& kernels, UseNumber number,
                     const char* of_what, Finding* finding);

// The time that one sample of a series covers.
struct SampleSpan {
  std::int64_t start_ns = 0, end_ns = 0;
  double value = 0;
};
// A sample before a gap has no known end and is left out. `interval_ns`: the usual time between samples.
std::vector<SampleSpan> sample_spans(const analysis::HardwareSeries& series,
                                     std::int64_t interval_ns);

namespace need {
inline constexpr char kRecordHardware[] =
    "hardware lanes (lanescope record --hardware, or profile(hardware=True))";
inline constexpr char kMoreSamples[] =
    "more samples of the hardware counters: fewer than 20, or less than half of the kernels' time "
    "has 5 (record more steps, or a shorter --hardware interval)";
bool has_hardware(const Facts& facts);
inline constexpr Need kHardware = {has_hardware, kRecordHardware};
}  // namespace need

}  // namespace lanescope::explain::rules
