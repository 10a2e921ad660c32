#include "lanescope/simulate/simulated_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/base/string_pool.h"
#include "lanescope/model/simulated_by.h"
#include "lanescope/simulate/changes.h"

namespace lanescope::simulate {
namespace {

// Recorded times of one track and what they become; both in order.
class TimeMap {
 public:
  void add(std::int64_t recorded_ns, std::int64_t simulated_ns) {
    if (!recorded_.empty()) simulated_ns = std::max(simulated_ns, simulated_.back());
    recorded_.push_back(recorded_ns);
    simulated_.push_back(simulated_ns);
  }
  bool empty() const { return recorded_.empty(); }
  std::int64_t operator()(std::int64_t time_ns) const {
    if (recorded_.empty()) return time_ns;
    const auto after = static_cast<std::size_t>(
        std::upper_bound(recorded_.begin(), recorded_.end(), time_ns) - recorded_.begin());
    if (after == 0) return simulated_[0] - (recorded_[0] - time_ns);
    const std::size_t before = after - 1;
    const std::int64_t into = time_ns - recorded_[before];
    if (after == recorded_.size()) return simulated_[before] + into;
    const std::int64_t was = recorded_[after] - recorded_[before];
    const std::int64_t now = simulated_[after] - simulated_[before];
    return simulated_[before] +
           static_cast<std::int64_t>(static_cast<double>(into) * static_cast<double>(now) /
                                     static_cast<double>(was));
  }

 private:
  std::vector<std::int64_t> recorded_, simulated_;
};

class SimulatedTrace {
 public:
  SimulatedTrace(const StepGraph& graph, const Replay& replay)
      : graph_(graph), replay_(replay), trace_(*graph.trace), maps_(trace_.tracks().size()) {
    const auto& tracks = trace_.slices().track;
    for (std::size_t i = 0; i < tracks.size(); ++i) track_of_.push_back(tracks[i]);
  }

  Result<Trace> run(const std::string& simulated_by) {
    map_threads();
    if (auto refused = map_streams()) return *std::move(refused);
    map_rest();
    TraceColumns columns = trace_.columns();
    move_slices(columns);
    if (!new_tracks_.empty()) add_tracks(columns);
    move_points(columns);
    add_metadata(columns, simulated_by);
    return Trace::from_columns(std::move(columns));
  }

 private:
  // Texts keep their ids: the new ones come after them.
  static void add_metadata(TraceColumns& columns, const std::string& simulated_by) {
    StringPool pool;
    for (std::uint32_t i = 0; i < columns.strings.size(); ++i)
      pool.intern(columns.strings.view(StringId{i}));
    std::string json = "\"";
    for (const char c : simulated_by) {
      if (c == '"' || c == '\\') json += '\\';
      json += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    const StringId key = pool.intern(kSimulatedBy), value = pool.intern(json + '"');
    StringPool::Parts parts = std::move(pool).take();
    columns.strings = {Column(std::move(parts.bytes)), Column(std::move(parts.starts)),
                       Column(std::move(parts.slots))};
    std::vector<Metadata> metadata(columns.metadata.begin(), columns.metadata.end());
    metadata.push_back({key, value});  // of equal keys, the last one counts
    columns.metadata = Column<Metadata>(std::move(metadata));
  }

  void map_threads() {
    for (const ThreadMoments& thread : graph_.threads)
      for (const std::uint32_t point : thread.points)
        maps_[raw(thread.track)].add(graph_.time_ns[point], replay_.time_ns[point]);
  }

  using Works = std::vector<std::uint32_t>;  // of one stream, in order

  // Work that would begin before the one before it ends, although it did not in the recording.
  const GpuWork* first_overlap(const Works& works) const {
    for (std::size_t i = 1; i < works.size(); ++i) {
      const GpuWork &before = graph_.works[works[i - 1]], &work = graph_.works[works[i]];
      if (graph_.time_ns[before.end] <= graph_.time_ns[work.start] &&
          replay_.time_ns[before.end] > replay_.time_ns[work.start])
        return &work;
    }
    return nullptr;
  }

  std::optional<Error> map_streams() {
    std::map<std::uint32_t, Works> by_track;
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i)
      by_track[raw(trace_.slices().track[raw(graph_.works[i].slice)])].push_back(i);
    for (auto& [track, works] : by_track) {
      if (!first_overlap(works)) {
        map_stream(maps_[track], works);
        continue;
      }
      // Copies that no longer wait for kernels have streams of their own, one for each direction.
      std::array<Works, 3> lanes;
      for (const std::uint32_t work : works) lanes.at(lane_of(graph_.works[work])).push_back(work);
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        if (const GpuWork* overlap = first_overlap(lanes.at(lane)))
          return Error{
              Errc::kUnsupported,
              fmt::format("expected work of a stream one after the other, found that {} would "
                          "overlap the work before it on the same stream: such a change has no "
                          "trace",
                          trace_.name(overlap->slice))};
        if (lane == 0)
          map_stream(maps_[track], lanes.at(lane));
        else if (!lanes.at(lane).empty())
          move_to_new_stream(track, lanes.at(lane));
      }
    }
    return std::nullopt;
  }

  // Kernels; copies to the GPU; copies from it.
  std::size_t lane_of(const GpuWork& work) const {
    if (work.work != analysis::WorkClass::kCopy) return 0;
    const std::string_view name = trace_.name(work.slice);
    if (is_copy_to_device(name)) return 1;
    return name.find("DtoH") != std::string_view::npos ||
                   name.find("DeviceToHost") != std::string_view::npos
               ? 2
               : 0;
  }

  // Starts and ends of its work, which do not overlap more than they did.
  void map_stream(TimeMap& map, const Works& works) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> times;
    for (const std::uint32_t i : works) {
      const GpuWork& work = graph_.works[i];
      times.emplace_back(graph_.time_ns[work.start], replay_.time_ns[work.start]);
      times.emplace_back(graph_.time_ns[work.end], replay_.time_ns[work.end]);
    }
    std::sort(times.begin(), times.end());
    for (const auto& [recorded, simulated] : times) map.add(recorded, simulated);
  }

  // A stream of the same device with the next number that is free.
  void move_to_new_stream(std::uint32_t track, const Works& works) {
    Track added = trace_.track(TrackId{track});
    std::int64_t last = 0;
    const auto see = [&](const Track& each) {
      if (each.kind != TrackKind::kStream || each.process != added.process) return;
      last = std::max({last, each.stream.value_or(0), each.tid.is_text ? 0 : each.tid.number});
    };
    for (const Track& each : trace_.tracks()) see(each);
    for (const Track& each : new_tracks_) see(each);
    added.tid = Scalar{false, last + 1};
    added.stream = last + 1;
    added.name = kNone<StringId>;
    const TrackId id{static_cast<std::uint32_t>(trace_.tracks().size() + new_tracks_.size())};
    new_tracks_.push_back(added);
    for (const std::uint32_t i : works) {
      const GpuWork& work = graph_.works[i];
      moved_works_[{track, graph_.time_ns[work.start]}] = {id, replay_.time_ns[work.start]};
      track_of_[raw(work.slice)] = id;
    }
  }

  // Counters, asynchronous rows and threads without moments follow the main thread.
  void map_rest() {
    if (graph_.main_thread == kNone<TrackId>) return;
    for (std::size_t i = 0; i < maps_.size(); ++i)
      if (maps_[i].empty() && i != raw(graph_.main_thread))
        maps_[i] = maps_[raw(graph_.main_thread)];
  }

  std::int64_t moved(TrackId track, std::int64_t time_ns) const {
    return maps_[raw(track)](time_ns);
  }

  // Shorter events may change the order of those that begin at the same time.
  void move_slices(TraceColumns& columns) {
    const SliceColumns& slices = trace_.slices();
    std::vector<std::int64_t> start(slices.size()), dur(slices.size());
    for (std::size_t i = 0; i < slices.size(); ++i) {
      start[i] = moved(slices.track[i], slices.start_ns[i]);
      dur[i] = std::max<std::int64_t>(
          0, moved(slices.track[i], slices.start_ns[i] + slices.dur_ns[i]) - start[i]);
    }
    for (const GpuWork& work : graph_.works) {  // work that overlaps others has its own times
      start[raw(work.slice)] = replay_.time_ns[work.start];
      dur[raw(work.slice)] = replay_.time_ns[work.end] - replay_.time_ns[work.start];
    }
    std::vector<std::uint32_t> order(slices.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(raw(track_of_[a]), start[a], -dur[a]) <
             std::tuple(raw(track_of_[b]), start[b], -dur[b]);
    });
    const auto in_order = [&](const auto& column) {
      using Row = std::decay_t<decltype(column[0])>;
      std::vector<Row> rows;
      rows.reserve(order.size());
      for (const std::uint32_t i : order) rows.push_back(column[i]);
      return Column<Row>(std::move(rows));
    };
    columns.slices.start_ns = in_order(start);
    DurationColumn<GrowingColumn> durations;
    TrackColumn<GrowingColumn> tracks;
    for (const std::uint32_t i : order) {
      durations.push_back(dur[i]);
      tracks.push_back(track_of_[i]);
    }
    columns.slices.dur_ns = {Column(std::move(durations.short_ns)),
                             Column(std::move(durations.long_ns))};
    columns.slices.track = {Column(std::move(tracks.low)), Column(std::move(tracks.high))};
    columns.slices.name = in_order(slices.name);
    columns.slices.category = in_order(slices.category);
    columns.slices.args = in_order(slices.args);
    columns.slices.event_index = in_order(slices.event_index);
    std::vector<std::uint32_t> place(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<Step> steps(trace_.steps().begin(), trace_.steps().end());
    for (Step& step : steps) step.slice = SliceId{place[raw(step.slice)]};
    columns.steps = Column<Step>(std::move(steps));
  }

  void add_tracks(TraceColumns& columns) const {
    std::vector<Track> tracks(trace_.tracks().begin(), trace_.tracks().end());
    tracks.insert(tracks.end(), new_tracks_.begin(), new_tracks_.end());
    for (Track& track : tracks) track.slice_count = 0;
    for (std::uint32_t i = 0; i < columns.slices.size(); ++i) {
      Track& track = tracks[raw(columns.slices.track[i])];
      if (track.slice_count++ == 0) track.first_slice = i;
    }
    columns.tracks = Column<Track>(std::move(tracks));
  }

  void move_points(TraceColumns& columns) {
    const InstantColumns& instants = trace_.instants();
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < instants.size(); ++i)
      times.push_back(moved(instants.track[i], instants.time_ns[i]));
    // Instants are in order of time over all tracks.
    std::vector<std::uint32_t> order(times.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return times[a] < times[b]; });
    const auto in_order = [&](const auto& column) {
      using Row = std::decay_t<decltype(column[0])>;
      std::vector<Row> rows;
      for (const std::uint32_t i : order) rows.push_back(column[i]);
      return Column<Row>(std::move(rows));
    };
    columns.instants = {in_order(times),          in_order(instants.name),
                        in_order(instants.track), in_order(instants.category),
                        in_order(instants.args),  in_order(instants.event_index),
                        in_order(instants.scope)};
    std::vector<std::int64_t> samples;
    for (std::size_t i = 0; i < trace_.counters().size(); ++i)
      samples.push_back(moved(trace_.counters().track[i], trace_.counters().time_ns[i]));
    columns.counters.time_ns = Column<std::int64_t>(std::move(samples));
    std::vector<Flow> flows(trace_.flows().begin(), trace_.flows().end());
    for (Flow& flow : flows) {
      flow.from_ns = moved(flow.from_track, flow.from_ns);
      const auto work = moved_works_.find({raw(flow.to_track), flow.to_ns});
      if (work == moved_works_.end()) {
        flow.to_ns = moved(flow.to_track, flow.to_ns);
        continue;
      }
      flow.to_track = work->second.first;
      flow.to_ns = work->second.second;
    }
    columns.flows = Column<Flow>(std::move(flows));
    if (graph_.main_thread == kNone<TrackId>) return;
    columns.values.window_end_ns = std::max(
        columns.values.window_start_ns, moved(graph_.main_thread, columns.values.window_end_ns));
  }

  const StepGraph& graph_;
  const Replay& replay_;
  const Trace& trace_;
  std::vector<TimeMap> maps_;      // by recorded track
  std::vector<TrackId> track_of_;  // of each slice
  std::vector<Track> new_tracks_;  // after the recorded ones
  // By recorded track and start: where work of a new track is now.
  std::map<std::pair<std::uint32_t, std::int64_t>, std::pair<TrackId, std::int64_t>> moved_works_;
};

}  // namespace

Result<Trace> simulated_trace(const StepGraph& graph, const Replay& replay,
                              std::string_view changes) {
  const std::string before = simulated_by(*graph.trace);
  return SimulatedTrace(graph, replay)
      .run((before.empty() ? "lanescope whatif: " : before + "; ") + std::string(changes));
}

std::string simulated_by(const Trace& trace) {
  const auto json = trace.metadata_json(kSimulatedBy);
  const auto value = json ? parse_json(*json) : std::nullopt;
  return value && value->is_string() ? std::string(value->text) : "";
}

}  // namespace lanescope::simulate
