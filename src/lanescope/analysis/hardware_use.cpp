#include "lanescope/analysis/hardware_use.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lanescope/analysis/hardware_lanes.h"
#include "lanescope/base/json_value.h"

namespace lanescope::analysis {
namespace {

constexpr double kLeastCovered = 0.5;

struct SeriesPlace {
  std::string_view name, unit;
  std::vector<double> HardwareSamples::*column;
};
constexpr SeriesPlace kPlaces[] = {{"SM active", "%", &HardwareSamples::sm_active},
                                   {"Tensor active", "%", &HardwareSamples::tensor_active},
                                   {"DRAM read", "GB/s", &HardwareSamples::dram_read},
                                   {"DRAM write", "GB/s", &HardwareSamples::dram_write},
                                   {"SM clock counted", "MHz", &HardwareSamples::sm_clock}};

void take_lengths(HardwareSamples* samples) {
  for (std::size_t i = 0; i < samples->start_ns.size(); ++i) {
    const std::int64_t next =
        i + 1 < samples->start_ns.size() ? samples->start_ns[i + 1] - samples->start_ns[i] : 0;
    // Samples follow each other without gaps; a long distance is a gap.
    samples->length_ns.push_back(next <= samples->interval_ns * 3 / 2 ? next : 0);
  }
}

struct Sums {
  std::uint64_t samples = 0;
  double covered_ns = 0, length_ns = 0, active = 0, tensor = 0, read = 0, write = 0, clock = 0;
  std::uint64_t calls = 0;
  double call_ns = 0;
};

// Which group alone ran in [start, end), and for how long.
struct Alone {
  std::uint32_t group = 0;
  std::int64_t covered_ns = 0;  // 0: none, or several
};

class Coverage {
 public:
  explicit Coverage(std::span<const MeasuredPiece> pieces) : pieces_(pieces) {}

  // Ask in order of time.
  Alone at(std::int64_t start_ns, std::int64_t end_ns) {
    // A piece that ended may be kept by one that lasts, which only costs time.
    while (first_ < pieces_.size() && pieces_[first_].end_ns <= start_ns) ++first_;
    Alone found;
    std::int64_t covered_to = start_ns;
    for (std::size_t i = first_; i < pieces_.size() && pieces_[i].start_ns < end_ns; ++i) {
      const MeasuredPiece& piece = pieces_[i];
      if (piece.end_ns <= start_ns) continue;
      if (found.covered_ns != 0 && piece.group != found.group) return {};
      found.group = piece.group;
      const std::int64_t from = std::max(piece.start_ns, covered_to),
                         to = std::min(piece.end_ns, end_ns);
      if (to > from) {
        found.covered_ns += to - from;
        covered_to = to;
      }
    }
    return found;
  }

 private:
  std::span<const MeasuredPiece> pieces_;
  std::size_t first_ = 0;
};

HardwareUse use_of(const Sums& sums, const HardwareSamples& samples) {
  HardwareUse use;
  use.sample_count = sums.samples;
  use.sampled_ns = static_cast<std::int64_t>(sums.covered_ns);
  if (sums.samples < kFewestHardwareSamples) return use;
  const auto share = [&](double sum) { return std::min(1.0, sum / 100 / sums.covered_ns); };
  if (!samples.sm_active.empty()) use.sm_active_ratio = share(sums.active);
  if (!samples.tensor_active.empty()) use.tensor_active_ratio = share(sums.tensor);
  if (!samples.dram_read.empty())
    use.dram_read_bytes_per_second = sums.read / sums.covered_ns * 1e9;
  if (!samples.dram_write.empty())
    use.dram_write_bytes_per_second = sums.write / sums.covered_ns * 1e9;
  if (!samples.sm_clock.empty()) use.sm_clock_mhz = sums.clock / sums.length_ns;
  if (!use.dram_read_bytes_per_second || !use.dram_write_bytes_per_second) return use;
  const double rate = *use.dram_read_bytes_per_second + *use.dram_write_bytes_per_second;
  if (samples.dram_peak_bytes_per_second > 0)
    use.dram_peak_ratio = rate / samples.dram_peak_bytes_per_second;
  if (sums.calls > 0)
    use.dram_bytes_per_call = rate / 1e9 * sums.call_ns / static_cast<double>(sums.calls);
  return use;
}

}  // namespace

std::optional<HardwareSamples> find_hardware_samples(const Trace& trace, std::int64_t device) {
  const auto description = hardware_description(trace, device);
  if (!description) return std::nullopt;
  HardwareSamples samples;
  const JsonValue *interval = description->find("interval_ns"),
                  *peak = description->find("dram_peak_bytes_per_second");
  if (!interval || !interval->integer || *interval->integer <= 0) return std::nullopt;
  samples.interval_ns = *interval->integer;
  if (peak) samples.dram_peak_bytes_per_second = peak->number;
  const CounterColumns& counters = trace.counters();
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < counters.size();) {  // by track
    const TrackId id = counters.track[i];
    const Track& track = trace.track(id);
    const Scalar& pid = trace.processes()[raw(track.process)].pid;
    const auto place = std::find_if(std::begin(kPlaces), std::end(kPlaces), [&](const auto& one) {
      return one.name == trace.text(track.name) && one.unit == trace.text(track.series);
    });
    const bool is_wanted = !pid.is_text && pid.number == device && place != std::end(kPlaces);
    times.clear();
    std::vector<double> values;
    for (; i < counters.size() && counters.track[i] == id; ++i)
      if (is_wanted) {
        times.push_back(counters.time_ns[i]);
        values.push_back(counters.value[i]);
      }
    if (!is_wanted) continue;
    if (samples.start_ns.empty()) samples.start_ns = times;
    if (times == samples.start_ns) samples.*(place->column) = std::move(values);
  }
  if (samples.start_ns.empty()) return std::nullopt;
  take_lengths(&samples);
  return samples;
}

std::vector<HardwareUse> measure_use(const HardwareSamples& samples,
                                     std::span<const MeasuredPiece> pieces,
                                     std::size_t group_count) {
  std::vector<Sums> sums(group_count);
  for (const MeasuredPiece& piece : pieces)
    if (piece.group < group_count) {
      ++sums[piece.group].calls;
      sums[piece.group].call_ns += static_cast<double>(piece.end_ns - piece.start_ns);
    }
  Coverage coverage(pieces);
  for (std::size_t i = 0; i < samples.start_ns.size(); ++i) {
    const std::int64_t length_ns = samples.length_ns[i];
    if (length_ns == 0) continue;
    const Alone alone = coverage.at(samples.start_ns[i], samples.start_ns[i] + length_ns);
    const auto length = static_cast<double>(length_ns);
    if (alone.group >= group_count ||
        static_cast<double>(alone.covered_ns) < kLeastCovered * length)
      continue;
    Sums& sum = sums[alone.group];
    ++sum.samples;
    sum.covered_ns += static_cast<double>(alone.covered_ns);
    sum.length_ns += length;
    const auto value = [&](const std::vector<double>& column) {
      return column.empty() ? 0 : column[i] * length;
    };
    sum.active += value(samples.sm_active);
    sum.tensor += value(samples.tensor_active);
    sum.read += value(samples.dram_read);
    sum.write += value(samples.dram_write);
    sum.clock += value(samples.sm_clock);
  }
  std::vector<HardwareUse> uses;
  uses.reserve(group_count);
  for (const Sums& sum : sums) uses.push_back(use_of(sum, samples));
  return uses;
}

std::vector<HardwareUse> measure_kernel_groups(const Trace& trace, const LaunchLinks& links,
                                               const DeviceTimeline& timeline,
                                               std::span<const KernelGroup> groups) {
  const auto samples = find_hardware_samples(trace, timeline.device);
  if (!samples) return {};
  std::map<KernelKey, std::uint32_t> number_of;
  for (std::size_t i = 0; i < groups.size(); ++i)
    number_of.emplace(kernel_key(trace, links, groups[i].median_call),
                      static_cast<std::uint32_t>(i));
  std::vector<MeasuredPiece> pieces;
  pieces.reserve(timeline.work.size());
  for (const DeviceWork& work : timeline.work) {
    const auto known = number_of.find(kernel_key(trace, links, work.slice));
    // Work of no group, such as that outside of the windows, is a group of its own.
    const auto group =
        known != number_of.end() ? known->second : static_cast<std::uint32_t>(groups.size());
    pieces.push_back({work.start_ns, work.end_ns, group});
  }
  std::vector<HardwareUse> uses = measure_use(*samples, pieces, groups.size());
  return uses;
}

}  // namespace lanescope::analysis
