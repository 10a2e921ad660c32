#include "lanescope/view/kept_lanes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lanescope/view/sources_hash.h"  // made by hash_sources.cmake

namespace lanescope::view {
namespace {

constexpr std::size_t kValues = 9, kGroupNumbers = 6, kLaneNumbers = 15;

std::uint64_t number(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// A row of 64-bit numbers that is written, or read again.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint64_t> row) : row_(row) {}
  template <typename T>
  T next() {
    return static_cast<T>(row_[at_++]);
  }
  template <typename T>
  std::optional<T> next_optional() {
    const bool has = next<std::uint64_t>() != 0;
    const T value = next<T>();
    return has ? std::optional<T>(value) : std::nullopt;
  }

 private:
  std::span<const std::uint64_t> row_;
  std::size_t at_ = 0;
};

template <typename T>
void put(std::vector<std::uint64_t>& into, const std::optional<T>& value) {
  into.push_back(value ? 1 : 0);
  into.push_back(value ? number(static_cast<std::int64_t>(*value)) : 0);
}

}  // namespace

// Hands out sections in one order, and takes them in the same.
struct LevelSections {
  template <typename Index, typename Each>
  static void each(Index& index, const Each& each) {
    static_assert(sizeof(LevelIndex::Row) == 64 && sizeof(LevelIndex::Cell) == 24 &&
                  sizeof(LevelIndex::LongDur) == 16);
    each("view.start_ns", index.start_ns_);
    each("view.dur_ns", index.dur_ns_);
    each("view.id", index.id_);
    each("view.long", index.long_);
    each("view.rows", index.rows_);
    each("view.busy_ns", index.busy_);
    each("view.longest", index.longest_);
    each("view.cells", index.cells_);
  }
};

struct CounterSections {
  static std::size_t block_count(std::size_t values) {
    return (values + CounterSeries::kBlock - 1) / CounterSeries::kBlock;
  }
  // Times, values and ranges of all series, one after the other.
  static void put(const std::vector<CounterSeries>& all, std::vector<std::uint64_t>& counts,
                  std::vector<std::uint64_t>& times, std::vector<std::uint64_t>& values,
                  std::vector<std::uint64_t>& ranges) {
    for (const CounterSeries& series : all) {
      counts.push_back(series.size());
      for (const std::int64_t time : series.time_ns_) times.push_back(number(time));
      for (const double value : series.value_)
        values.push_back(std::bit_cast<std::uint64_t>(value));
      for (const auto& range : series.blocks_) {
        ranges.push_back(std::bit_cast<std::uint64_t>(range.smallest));
        ranges.push_back(std::bit_cast<std::uint64_t>(range.largest));
      }
    }
  }
  // False: the lengths do not fit each other.
  static bool take(std::span<const std::uint64_t> counts, std::span<const std::int64_t> times,
                   std::span<const double> values, std::span<const std::byte> ranges,
                   const std::shared_ptr<const void>& owner, std::vector<CounterSeries>& into) {
    static_assert(sizeof(CounterSeries::Range) == 16);
    const std::span blocks(reinterpret_cast<const CounterSeries::Range*>(ranges.data()),
                           ranges.size() / sizeof(CounterSeries::Range));
    if (times.size() != values.size()) return false;
    std::size_t first = 0, first_block = 0;
    for (const std::uint64_t count : counts) {
      if (count > times.size() - first || block_count(count) > blocks.size() - first_block)
        return false;
      CounterSeries series;
      series.time_ns_ = ViewColumn(times.subspan(first, count), owner);
      series.value_ = ViewColumn(values.subspan(first, count), owner);
      series.blocks_ = ViewColumn(blocks.subspan(first_block, block_count(count)), owner);
      series.find_range();
      into.push_back(std::move(series));
      first += count;
      first_block += block_count(count);
    }
    return first == times.size() && first_block == blocks.size();
  }
};

// Takes sections one after the other; a name or a size that is not expected ends it.
class SectionReader {
 public:
  SectionReader(std::span<const LaneSection> sections, std::shared_ptr<const void> owner)
      : sections_(sections), owner_(std::move(owner)) {}

  template <typename T>
  std::span<const T> next(std::string_view name, std::optional<std::size_t> count = {}) {
    if (failed_ || at_ == sections_.size()) return fail<T>();
    const LaneSection& section = sections_[at_++];
    const std::size_t rows = section.rows.size() / sizeof(T);
    if (section.name != name || section.rows.size() % sizeof(T) != 0 || (count && rows != *count))
      return fail<T>();
    return {reinterpret_cast<const T*>(section.rows.data()), rows};
  }
  template <typename T>
  ViewColumn<T> column(std::string_view name, std::optional<std::size_t> count = {}) {
    return ViewColumn<T>(next<T>(name, count), owner_);
  }
  bool is_whole() const { return !failed_ && at_ == sections_.size(); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  template <typename T>
  std::span<const T> fail() {
    failed_ = true;
    return {};
  }
  std::span<const LaneSection> sections_;
  std::shared_ptr<const void> owner_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

struct LaneSections {
  static_assert(std::has_unique_object_representations_v<LaneStep>);

  static std::vector<std::uint64_t> values_of(const LaneSummary& summary) {
    std::vector<std::uint64_t> values{number(summary.origin_ns), number(summary.end_ns)};
    put(values, summary.main_device);
    put(values, summary.typical_step);
    values.insert(values.end(), {summary.work_count, summary.launched_count, summary.early_count});
    return values;
  }
  static LaneSummary summary_of(std::span<const std::uint64_t> row) {
    Numbers in(row);
    LaneSummary summary;
    summary.origin_ns = in.next<std::int64_t>();
    summary.end_ns = in.next<std::int64_t>();
    summary.main_device = in.next_optional<std::int64_t>();
    summary.typical_step = in.next_optional<std::uint32_t>();
    summary.work_count = in.next<std::uint64_t>();
    summary.launched_count = in.next<std::uint64_t>();
    summary.early_count = in.next<std::uint64_t>();
    return summary;
  }

  static std::vector<std::uint64_t> groups_of(const Lanes& lanes) {
    std::vector<std::uint64_t> rows;
    for (std::size_t i = 0; i < lanes.groups_.size(); ++i) {
      const LaneGroup& group = lanes.groups_[i];
      rows.insert(rows.end(), {static_cast<std::uint64_t>(group.kind), raw(group.process)});
      put(rows, group.device);
      put(rows, i < lanes.rank_of_group_.size() ? lanes.rank_of_group_[i] : std::nullopt);
    }
    return rows;
  }
  static std::vector<std::uint64_t> lanes_of(const Lanes& lanes) {
    std::vector<std::uint64_t> rows;
    for (const Lane& lane : lanes.lanes_) {
      rows.insert(rows.end(), {static_cast<std::uint64_t>(lane.kind), lane.group, raw(lane.track)});
      put(rows, lane.device);
      rows.insert(
          rows.end(),
          {lane.first_row, lane.row_count, lane.slice_count, number(lane.busy_ns),
           std::uint64_t{lane.is_main}, std::uint64_t{lane.is_quiet}, lane.counter,
           static_cast<std::uint64_t>(lane.source), static_cast<std::uint64_t>(lane.unit), 0});
    }
    return rows;
  }
  static Lane lane_of(std::span<const std::uint64_t> row) {
    Numbers in(row);
    Lane lane;
    lane.kind = in.next<LaneKind>();
    lane.group = in.next<std::uint32_t>();
    lane.track = in.next<TrackId>();
    lane.device = in.next_optional<std::int64_t>();
    lane.first_row = in.next<std::uint32_t>();
    lane.row_count = in.next<std::uint32_t>();
    lane.slice_count = in.next<std::uint64_t>();
    lane.busy_ns = in.next<std::int64_t>();
    lane.is_main = in.next<std::uint64_t>() != 0;
    lane.is_quiet = in.next<std::uint64_t>() != 0;
    lane.counter = in.next<std::uint32_t>();
    lane.source = in.next<CounterSource>();
    lane.unit = in.next<CounterUnit>();
    return lane;
  }

  static KeptLanes keep(const Lanes& lanes) {
    KeptLanes kept;
    const auto add_made = [&](std::string_view name, std::size_t numbers,
                              std::vector<std::uint64_t> rows) {
      kept.made.push_back(std::move(rows));
      kept.sections.push_back({name, numbers * sizeof(std::uint64_t),
                               std::as_bytes(std::span<const std::uint64_t>(kept.made.back()))});
    };
    const auto add = [&](std::string_view name, const auto& column) {
      kept.sections.push_back({name, sizeof(column[0]), std::as_bytes(column.rows())});
    };
    add_made("view.values", kValues, values_of(lanes.summary_));
    add_made("view.groups", kGroupNumbers, groups_of(lanes));
    add_made("view.lanes", kLaneNumbers, lanes_of(lanes));
    std::vector<std::uint64_t> tracks, counts, times, values, ranges;
    for (const auto& parts : lanes.lanes_of_track_)
      tracks.insert(tracks.end(), parts.begin(), parts.end());
    add_made("view.tracks", Lanes::kParts, std::move(tracks));
    add("view.steps", lanes.steps_);
    add("view.kinds", lanes.kinds_);
    add("view.name_uses", lanes.name_uses_);
    add("view.idle_causes", lanes.idle_causes_);
    LevelSections::each(lanes.index_, add);
    CounterSections::put(lanes.counters_, counts, times, values, ranges);
    add_made("view.counters", 1, std::move(counts));
    add_made("view.counter_times", 1, std::move(times));
    add_made("view.counter_values", 1, std::move(values));
    add_made("view.counter_ranges", 2, std::move(ranges));
    return kept;
  }

  static std::unique_ptr<const Lanes> take(const Trace& trace, Lanes::GetFacts get_facts,
                                           SectionReader reader) {
    std::unique_ptr<Lanes> lanes(new Lanes(trace, std::move(get_facts)));
    const auto values = reader.next<std::uint64_t>("view.values", kValues);
    const auto groups = reader.next<std::uint64_t>("view.groups");
    const auto rows = reader.next<std::uint64_t>("view.lanes");
    const std::size_t track_count = trace.tracks().size();
    const auto tracks = reader.next<std::uint64_t>("view.tracks", track_count * Lanes::kParts);
    lanes->steps_ = reader.column<LaneStep>("view.steps");
    lanes->kinds_ = reader.column<TimeKind>("view.kinds", trace.slices().size());
    lanes->name_uses_ = reader.column<NameUse>("view.name_uses", trace.strings().size());
    lanes->idle_causes_ = reader.column<std::uint8_t>("view.idle_causes");
    LevelSections::each(lanes->index_, [&](std::string_view name, auto& column) {
      column = std::remove_reference_t<decltype(column)>(
          reader.next<std::remove_cvref_t<decltype(column[0])>>(name), reader.owner());
    });
    const auto counts = reader.next<std::uint64_t>("view.counters");
    const auto times = reader.next<std::int64_t>("view.counter_times");
    const auto counted = reader.next<double>("view.counter_values");
    const auto ranges = reader.next<std::byte>("view.counter_ranges");
    if (!reader.is_whole() || groups.size() % kGroupNumbers != 0 ||
        rows.size() % kLaneNumbers != 0 ||
        !CounterSections::take(counts, times, counted, ranges, reader.owner(), lanes->counters_))
      return nullptr;
    lanes->summary_ = summary_of(values);
    for (std::size_t at = 0; at < groups.size(); at += kGroupNumbers) {
      Numbers in(groups.subspan(at, kGroupNumbers));
      LaneGroup group;
      group.kind = in.next<LaneGroup::Kind>();
      group.process = in.next<ProcessId>();
      group.device = in.next_optional<std::int64_t>();
      lanes->groups_.push_back(group);
      lanes->rank_of_group_.push_back(in.next_optional<std::int64_t>());
    }
    for (std::size_t at = 0; at < rows.size(); at += kLaneNumbers)
      lanes->lanes_.push_back(lane_of(rows.subspan(at, kLaneNumbers)));
    lanes->lanes_of_track_.resize(track_count);
    for (std::size_t i = 0; i < tracks.size(); ++i)
      lanes->lanes_of_track_[i / Lanes::kParts][i % Lanes::kParts] =
          static_cast<std::uint32_t>(tracks[i]);
    return lanes;
  }
};

KeptLanes keep_lanes(const Lanes& lanes) { return LaneSections::keep(lanes); }

std::string_view lanes_build() { return std::string_view(LANESCOPE_SOURCES_HASH).substr(0, 16); }

bool are_sections_of(std::span<const LaneSection> sections, const Lanes& lanes) {
  const KeptLanes kept = keep_lanes(lanes);
  return std::equal(
      sections.begin(), sections.end(), kept.sections.begin(), kept.sections.end(),
      [](const LaneSection& a, const LaneSection& b) {
        return a.name == b.name && a.row_bytes == b.row_bytes && a.rows.size() == b.rows.size() &&
               (a.rows.empty() || std::memcmp(a.rows.data(), b.rows.data(), a.rows.size()) == 0);
      });
}

std::unique_ptr<const Lanes> lanes_from(const Trace& trace, Lanes::GetFacts get_facts,
                                        std::span<const LaneSection> sections,
                                        std::shared_ptr<const void> owner) {
  return LaneSections::take(trace, std::move(get_facts), SectionReader(sections, std::move(owner)));
}

}  // namespace lanescope::view
