#include "lanescope/format/spool/counter_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::format {
namespace {

using counters::Device;
using counters::Samples;

constexpr std::int64_t kDeviceSortIndex = 5'000'000;  // Kineto's, as in activity_rows.cpp
constexpr std::string_view kActiveSeries = "SM active";

struct Series {
  std::string name, unit;
};

std::vector<Series> series_of(const JsonValue& description, std::string_view key) {
  std::vector<Series> all;
  const JsonValue* list = description.find(key);
  if (!list || !list->is_array()) return all;
  for (const JsonValue& item : list->items) {
    const JsonValue *name = item.find("name"), *unit = item.find("unit");
    all.push_back({name && name->is_string() ? name->text : "unnamed",
                   unit && unit->is_string() ? unit->text : ""});
  }
  return all;
}

// How a lane shows what the file counts in each sample.
struct Rate {
  std::string_view unit;  // "": the value itself
  double scale = 1;       // of a count in each nanosecond
};
Rate rate_of(std::string_view unit) {
  if (unit == "bytes") return {"GB/s", 1};
  if (unit == "cycles") return {"MHz", 1000};
  return {};
}

std::int64_t interval_of(const JsonValue& description) {
  const JsonValue* interval = description.find("interval_ns");
  return interval && interval->integer && *interval->integer > 0 ? *interval->integer : 1;
}

// When a device ran what makes its SMs active, united. Copies have engines of their own.
std::vector<BusySpan> busy_spans(const TraceBuilder& builder, std::int64_t device) {
  std::vector<BusySpan> spans;
  const auto& slices = builder.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Track& track = builder.tracks()[raw(slices.track[i])];
    if (track.kind != TrackKind::kStream || track.device != device) continue;
    const CategoryKind kind = builder.kind(slices.category[i]);
    if (kind == CategoryKind::kKernel || kind == CategoryKind::kGpuMemset)
      spans.push_back({slices.start_ns[i], slices.start_ns[i] + slices.dur_ns[i]});
  }
  sort_rows(spans.begin(), spans.end(),
            [](const BusySpan& a, const BusySpan& b) { return a.start_ns < b.start_ns; });
  std::size_t kept = 0;
  for (const BusySpan& span : spans) {
    if (kept > 0 && span.start_ns <= spans[kept - 1].end_ns)
      spans[kept - 1].end_ns = std::max(spans[kept - 1].end_ns, span.end_ns);
    else
      spans[kept++] = span;
  }
  spans.resize(kept);
  return spans;
}

class CounterRows {
 public:
  CounterRows(const CounterRowsContext& context, CounterCarry* carry)
      : context_(context), builder_(context.builder), carry_(*carry) {
    for (const SpoolWindows::Window& window : context.windows.all()) {
      const auto start = context.time_ns(window.start), stop = context.time_ns(window.stop);
      if (start && stop) windows_.push_back({*start, *stop});
    }
    const SpoolPiece& piece = context.piece;
    constexpr auto kFirst = std::numeric_limits<std::int64_t>::min(),
                   kLast = std::numeric_limits<std::int64_t>::max();
    from_ns_ = piece.from == 0 ? kFirst : context.time_ns(piece.from).value_or(kFirst);
    to_ns_ = piece.is_last() ? kLast : context.time_ns(piece.to).value_or(kLast);
  }

  void run() {
    if (!carry_.has_clocks) measure_clocks();
    std::string metadata;
    for (std::size_t i = 0; i < carry_.file.devices.size(); ++i) {
      const Device& device = carry_.file.devices[i];
      const JsonValue description = parse_json(device.description).value_or(JsonValue());
      add_samples(device, carry_.clocks[i], series_of(description, "series"));
      add_slow(device, series_of(description, "slow_series"));
      metadata += (metadata.empty() ? "" : ", ") + device_json(device, carry_.measured[i]);
      if (context_.piece.from == 0) count_losses(device);
    }
    if (context_.piece.from != 0) return;
    count(ImportIssue::kEventLost, carry_.file.bad_blocks);
    if (!metadata.empty()) builder_.add_metadata(kHardwareMetadata, "[" + metadata + "]");
  }

 private:
  void measure_clocks() {
    carry_.has_clocks = true;
    for (const Device& device : carry_.file.devices) {
      CounterClock clock(device.anchors, context_.time_ns);
      std::optional<EdgeShift> measured;
      if (clock.is_known()) measured = measure(device, clock);
      if (measured) clock.shift(measured->shift_ns);
      carry_.clocks.push_back(std::move(clock));
      carry_.measured.push_back(measured);
    }
  }

  std::optional<EdgeShift> measure(const Device& device, const CounterClock& clock) {
    const JsonValue description = parse_json(device.description).value_or(JsonValue());
    const std::vector<Series> series = series_of(description, "series");
    const auto active = std::find_if(series.begin(), series.end(),
                                     [](const Series& one) { return one.name == kActiveSeries; });
    const auto column = static_cast<std::size_t>(active - series.begin());
    if (column >= device.samples.width) return std::nullopt;
    std::vector<std::int64_t> start_ns;
    std::vector<float> values;
    for (std::size_t i = 0; i < device.samples.size(); ++i) {
      start_ns.push_back(clock.time_ns(device.samples.start_ns[i]));
      values.push_back(device.samples.values[i * device.samples.width + column]);
    }
    return measure_edges(busy_spans(builder_, device.number), start_ns, device.samples.length_ns,
                         values, interval_of(description));
  }

  bool is_wanted(std::int64_t start_ns, std::int64_t end_ns) const {
    if (start_ns < from_ns_ || start_ns >= to_ns_) return false;
    const auto next = std::upper_bound(
        windows_.begin(), windows_.end(), start_ns,
        [](std::int64_t time, const BusySpan& window) { return time < window.start_ns; });
    return next != windows_.begin() && end_ns <= (next - 1)->end_ns;
  }

  std::vector<TrackId> tracks_of(const Device& device, const std::vector<Series>& series,
                                 std::uint32_t width) {
    Scalar pid;
    pid.number = device.number;
    builder_.set_process_name(pid, builder_.intern(context_.process_name));
    builder_.set_process_labels(pid, builder_.intern(fmt::format("GPU {}", device.number)));
    builder_.set_process_sort_index(pid, kDeviceSortIndex + device.number);
    std::vector<TrackId> tracks;
    for (std::uint32_t i = 0; i < width; ++i) {
      const Series one = i < series.size() ? series[i] : Series{fmt::format("series {}", i), ""};
      const std::string name = codec::valid_utf8(one.name);
      const Rate rate = rate_of(one.unit);
      tracks.push_back(builder_.counter_track(
          pid, name, rate.unit.empty() ? codec::valid_utf8(one.unit) : std::string(rate.unit)));
    }
    return tracks;
  }

  void add(TrackId track, std::int64_t time_ns, double value) {
    if (std::isfinite(value))
      builder_.add_counter(track, time_ns, value);
    else
      builder_.stats().count(ImportIssue::kFieldLost);
  }

  void add_samples(const Device& device, const CounterClock& clock,
                   const std::vector<Series>& series) {
    const Samples& samples = device.samples;
    if (!clock.is_known() || samples.size() == 0) return;
    std::vector<TrackId> tracks;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int64_t start_ns = clock.time_ns(samples.start_ns[i]);
      const std::int64_t length_ns = samples.length_ns[i];
      if (length_ns == 0 || !is_wanted(start_ns, start_ns + length_ns)) continue;
      if (tracks.empty()) tracks = tracks_of(device, series, samples.width);
      for (std::uint32_t column = 0; column < samples.width; ++column) {
        const double value = samples.values[i * samples.width + column];
        const Rate rate = column < series.size() ? rate_of(series[column].unit) : Rate{};
        add(tracks[column], start_ns,
            rate.unit.empty() ? value : value * rate.scale / static_cast<double>(length_ns));
      }
    }
  }

  void add_slow(const Device& device, const std::vector<Series>& series) {
    std::vector<TrackId> tracks;
    for (std::size_t i = 0; i < device.slow.size(); ++i) {
      const auto time = context_.time_ns(device.slow.start_ns[i]);
      if (!time || !is_wanted(*time, *time)) continue;
      if (tracks.empty()) tracks = tracks_of(device, series, device.slow.width);
      for (std::uint32_t column = 0; column < device.slow.width; ++column)
        add(tracks[column], *time, device.slow.values[i * device.slow.width + column]);
    }
  }

  void count_losses(const Device& device) {
    count(ImportIssue::kLostSamples, device.losses.gaps + device.losses.refused);
  }
  void count(ImportIssue issue, std::uint64_t times) {
    if (times != 0) builder_.stats().count(issue, std::nullopt, times);
  }

  static std::string device_json(const Device& device, const std::optional<EdgeShift>& measured) {
    const std::string& own = device.description;
    const bool is_object = own.starts_with('{') && own.ends_with('}') && codec::is_strict_json(own);
    std::string json = is_object ? own : fmt::format("{{\"device\": {}}}", device.number);
    json.pop_back();  // the closing brace
    json += fmt::format(
        "{}\"samples\": {}, \"slow_samples\": {}, \"overflows\": {}, "
        "\"refused_samples\": {}, \"gaps\": {}, \"gap_ns\": {}, \"size_limit_reached\": {}",
        json.size() > 1 ? ", " : "", device.samples.size(), device.slow.size(),
        device.losses.overflows, device.losses.refused, device.losses.gaps, device.losses.gap_ns,
        device.losses.size_limit_reached != 0);
    if (measured)
      json += fmt::format(", \"clock_edges\": {}, \"clock_shift_ns\": {}, \"clock_error_ns\": {}",
                          measured->edges, measured->shift_ns, measured->error_ns);
    return json + "}";
  }

  const CounterRowsContext& context_;
  TraceBuilder& builder_;
  CounterCarry& carry_;
  std::vector<BusySpan> windows_;
  std::int64_t from_ns_ = 0, to_ns_ = 0;
};

}  // namespace

void add_counter_rows(const CounterRowsContext& context, CounterCarry* carry) {
  if (!carry->file.devices.empty()) CounterRows(context, carry).run();
}

}  // namespace lanescope::format
