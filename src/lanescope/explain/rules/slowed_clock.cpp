// The GPU lowered its clock while it worked: its power limit or its temperature.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/hardware.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kOftenSlowed = 0.2;  // of the samples
constexpr double kLowClock = 0.85;    // of the highest clock
constexpr double kFullClock = 0.97;   // of it: what is slowed less loses nothing worth a finding
constexpr std::int64_t kUsualIntervalNs = 100'000'000;

struct SlowedClock {
  std::uint64_t samples = 0, by_power = 0, by_heat = 0;
  std::uint64_t clock_mhz = 0, highest_mhz = 0;  // mean in these samples; 0: unknown
  std::uint64_t named_mhz = 0;                   // what NVML says where the SMs counted; else 0
  bool highest_is_known = false;                 // by the driver; else the highest that was seen
  std::uint64_t most_degrees = 0, watts = 0, limit_watts = 0;
  double lost = 0;  // of the clock
};

double value_at(const analysis::HardwareSeries* series, std::size_t i, std::int64_t time_ns) {
  const bool is_same = series && i < series->value.size() && series->start_ns[i] == time_ns;
  return is_same ? series->value[i] : 0;
}

// The mean of the samples that begin in that time; nothing: there is none.
std::optional<double> mean_between(const analysis::HardwareSeries& series, std::int64_t from_ns,
                                   std::int64_t to_ns) {
  const auto place = [&](std::int64_t time_ns) {
    return std::lower_bound(series.start_ns.begin(), series.start_ns.end(), time_ns) -
           series.start_ns.begin();
  };
  const auto first = series.value.begin() + place(from_ns),
             last = series.value.begin() + place(to_ns);
  if (first == last) return std::nullopt;
  return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

// Kernels ran in at least half of the time since the sample before, inside steady steps.
bool was_busy(const Facts& facts, std::int64_t time_ns, std::int64_t interval_ns) {
  if (!inside(facts.steady_windows, time_ns - 1)) return false;
  std::int64_t from_ns = time_ns - interval_ns;
  for (const analysis::Window& window : facts.steady_windows)
    if (window.start_ns < time_ns && time_ns <= window.end_ns)
      from_ns = std::max(from_ns, window.start_ns);
  const auto busy = facts.device().timeline.time_within(from_ns, time_ns);
  return busy[static_cast<std::size_t>(analysis::WorkClass::kCompute)] * 2 >= time_ns - from_ns;
}

Measurement<SlowedClock> measure_slowed_clock(const Facts& facts) {
  const auto lanes = analysis::find_hardware_lanes(*facts.trace, facts.device().timeline.device);
  const analysis::HardwareSeries* clock = lanes ? lanes->find("SM clock") : nullptr;
  if (!clock) return NotChecked{need::kRecordHardware};
  const std::int64_t interval_ns =
      lanes->slow_interval_ns > 0 ? lanes->slow_interval_ns : kUsualIntervalNs;
  const auto *by_power = lanes->find("slowed by power limit"),
             *by_heat = lanes->find("slowed by heat"), *degrees = lanes->find("temperature"),
             *watts = lanes->find("power"), *counted = lanes->find("SM clock counted");
  SlowedClock found;
  double clocks = 0, named = 0, power = 0, highest = lanes->highest_sm_clock_mhz;
  found.highest_is_known = highest > 0;
  if (!found.highest_is_known && !clock->value.empty())
    highest = *std::max_element(clock->value.begin(), clock->value.end());
  bool has_own = true;
  for (std::size_t i = 0; i < clock->start_ns.size(); ++i) {
    const std::int64_t time_ns = clock->start_ns[i];
    if (clock->value[i] <= 0 || !was_busy(facts, time_ns, interval_ns)) continue;
    ++found.samples;
    found.by_power += value_at(by_power, i, time_ns) != 0 ? 1 : 0;
    found.by_heat += value_at(by_heat, i, time_ns) != 0 ? 1 : 0;
    found.most_degrees =
        std::max(found.most_degrees,
                 static_cast<std::uint64_t>(std::max(0.0, value_at(degrees, i, time_ns))));
    // Under a power limit NVML's clock is higher than the one at which the SMs count.
    const auto own =
        counted ? mean_between(*counted, time_ns - interval_ns, time_ns) : std::nullopt;
    has_own = has_own && own;
    clocks += own.value_or(clock->value[i]);
    named += clock->value[i];
    power += std::max(0.0, value_at(watts, i, time_ns));
  }
  if (found.samples < kFewestSlowSamples)
    return NotChecked{
        "five samples of the clocks (they come each 100 ms) while kernels ran: record longer"};
  const auto number = static_cast<double>(found.samples);
  const double mean = clocks / number;
  const auto is_often = [&](std::uint64_t times) {
    return static_cast<double>(times) >= kOftenSlowed * number;
  };
  found.lost = highest > 0 ? 1 - mean / highest : 0;
  if (mean >= kFullClock * highest ||
      (!is_often(found.by_power) && !is_often(found.by_heat) && mean >= kLowClock * highest))
    return Quiet{};
  found.clock_mhz = static_cast<std::uint64_t>(std::llround(mean));
  if (has_own) found.named_mhz = static_cast<std::uint64_t>(std::llround(named / number));
  found.highest_mhz = static_cast<std::uint64_t>(std::llround(highest));
  found.watts = static_cast<std::uint64_t>(std::llround(power / number));
  found.limit_watts = static_cast<std::uint64_t>(std::llround(lanes->power_limit_watts));
  return found;
}

Sentence cause_of(const SlowedClock& found) {
  const Value samples = count(found.samples);
  if (found.by_heat >= found.by_power && found.by_heat > 0)
    return say("The GPU is too hot: it lowered its clock in {} of {} samples while kernels ran",
               {count(found.by_heat), samples});
  if (found.by_power > 0)
    return say("The GPU's power limit held its clock down in {} of {} samples while kernels ran",
               {count(found.by_power), samples});
  return say(
      "The GPU's clock was low in {} samples while kernels ran, and the driver names "
      "neither power nor heat as the reason",
      {samples});
}

Finding tell_slowed_clock(const Facts& facts, const SlowedClock& found) {
  const std::int64_t compute_ns = facts.wall.partition.compute_ns;
  const auto lost_ns = static_cast<std::int64_t>(found.lost * static_cast<double>(compute_ns));
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict = cause_of(found);
  append(finding.verdict,
         say(found.highest_is_known ? ": {} MHz on average, of {} MHz at most."
                                    : ": {} MHz on average, {} MHz was the highest seen.",
             {count(found.clock_mhz), count(found.highest_mhz)}));
  finding.arithmetic.push_back(
      say(facts,
          "{} of kernels [per step] x (1 - {} MHz / {} MHz) = {} at most; kernels limited "
          "by memory do not follow the SMs' clock",
          {ns(facts.per_step(compute_ns)), count(found.clock_mhz), count(found.highest_mhz),
           ns(facts.per_step(lost_ns))}));
  if (found.named_mhz > 0)
    finding.arithmetic.push_back(
        say("this is the clock that the SMs counted; NVML says {} MHz on average",
            {count(found.named_mhz)}));
  if (found.watts > 0 && found.limit_watts > 0)
    finding.arithmetic.push_back(say("power: {} W on average, the limit is {} W",
                                     {count(found.watts), count(found.limit_watts)}));
  if (found.most_degrees > 0)
    finding.arithmetic.push_back(say("at most {} C", {count(found.most_degrees)}));
  finding.at_stake_ns = facts.per_step(lost_ns);
  finding.at_stake_ratio = wall_share(facts, lost_ns);
  finding.brief = cause_of(found);
  if (found.by_heat >= found.by_power && found.by_heat > 0)
    finding.try_next = {"look at the machine's cooling; compare runs only at equal clocks"};
  else if (found.by_power > 0)
    finding.try_next = {
        "usual for large matmuls at full load: compare runs only at equal clocks; `nvidia-smi -q "
        "-d POWER` shows whether the limit was set below the board's own"};
  else
    finding.try_next = {
        "`nvidia-smi -q -d CLOCK,PERFORMANCE` shows whether somebody set the clocks"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.samples;
  finding.sample_noun = "sample";
  return finding;
}

}  // namespace

extern constinit const Rule slowed_clock_rule = {
    .id = "slowed-clock",
    .question = "did the GPU lower its clock because of heat or a power limit?",
    .meant_by = "throttle throttling throttled clock power heat hot temperature thermal",
    .order = 588,
    .needs = {need::kGpuWork, need::kHardware},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_slowed_clock, tell_slowed_clock>,
};

}  // namespace lanescope::explain::rules
