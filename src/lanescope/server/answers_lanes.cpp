// The lanes of a trace: which are listed at first, the others in pages, their titles.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lanescope/analysis/thinning.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/text_format.h"
#include "lanescope/server/answers.h"
#include "lanescope/view/frame.h"

namespace lanescope::server {
namespace {

using report::JsonWriter;
using report::one_line;
using view::CounterSource;
using view::CounterUnit;
using view::Lane;
using view::LaneGroup;
using view::LaneKind;

constexpr std::size_t kLongestTitle = 120;
constexpr std::int64_t kMostLanesOfPage = 1000;

const char* lane_kind_key(LaneKind kind) {
  static constexpr std::array<const char*, view::kLaneKindCount> kKeys{
      "steps", "cpu", "python", "gpu", "annotation", "sync", "idle", "counter", "async", "device"};
  return kKeys[static_cast<std::size_t>(kind)];
}

std::string title_text(std::string_view text) {
  return report::shorten(one_line(text), kLongestTitle);
}

std::string scalar_text(const Trace& trace, const Scalar& scalar) {
  return scalar.is_text ? title_text(trace.text(scalar.text)) : fmt::format("{}", scalar.number);
}

std::string group_title(const TraceState& state, const LaneGroup& group) {
  const Trace& trace = state.trace();
  if (group.kind == LaneGroup::Kind::kTrace) return "Steps";
  if (group.device) return fmt::format("GPU {}", *group.device);
  const Process& process = trace.process(group.process);
  const std::string name = title_text(trace.text(process.name));
  const std::string pid = scalar_text(trace, process.pid);
  if (group.kind == LaneGroup::Kind::kGpu) return name.empty() ? fmt::format("GPU, {}", pid) : name;
  return name.empty() || name == pid ? fmt::format("process {}", pid)
                                     : fmt::format("{}, process {}", name, pid);
}

std::string thread_title(const TraceState& state, const Lane& lane) {
  const Trace& trace = state.trace();
  const Track& track = trace.track(lane.track);
  const std::string id = scalar_text(trace, track.tid);
  const std::string own = title_text(trace.text(track.name));
  const std::string place = track.tid.is_text ? id : fmt::format("thread {}", id);
  if (own.empty() || own == id) return place;
  // "thread 566 (python)" and "Thread 566" name themselves.
  if (own.starts_with(place) || (own.starts_with('T') && own.substr(1) == place.substr(1)))
    return own;
  return fmt::format("{} ({})", own, place);
}

std::string counter_title(const TraceState& state, const Lane& lane) {
  const Trace& trace = state.trace();
  switch (lane.source) {
    case CounterSource::kQueueDepth:
      return "GPU queue";
    case CounterSource::kAllocated:
      return "memory allocated";
    case CounterSource::kReserved:
      return "memory reserved";
    case CounterSource::kFile:
      break;
  }
  const Track& track = trace.track(lane.track);
  const std::string name = title_text(trace.text(track.name)),
                    series = title_text(trace.text(track.series));
  return series.empty() || series == name ? name : fmt::format("{}: {}", name, series);
}

std::string device_thread_title(const TraceState& state, const Lane& lane) {
  const std::string own = title_text(state.trace().text(state.trace().track(lane.track).name));
  return own.empty() ? thread_title(state, lane) : own;
}

// A recording with a budget may end its memory records before its own end.
std::string memory_subtitle(const TraceState& state) {
  const auto end = analysis::find_memory_end(state.trace());
  return end && *end < state.lanes().end_ns()
             ? fmt::format("recorded until {}: the budget ended it",
                           report::format_time_ns(*end - state.lanes().origin_ns()))
             : "";
}

// False: of a browser's trace, for example, whose categories say nothing to us.
bool has_program_events(const Trace& trace) {
  return std::any_of(trace.categories().begin(), trace.categories().end(),
                     [](const Category& each) {
                       return each.kind != CategoryKind::kNone && each.kind != CategoryKind::kOther;
                     });
}

std::string subtitle(const TraceState& state, const Lane& lane) {
  switch (lane.kind) {
    case LaneKind::kSteps:
      return "by the CPU's clock";
    case LaneKind::kCpu:
      return has_program_events(state.trace()) ? "operators and calls" : "events";
    case LaneKind::kPython:
      return "Python functions";
    case LaneKind::kGpu:
      return "GPU work";
    case LaneKind::kAnnotation:
      return "ranges of the program, as seen by the GPU";
    case LaneKind::kSync:
      return "waits and events";
    case LaneKind::kIdle:
      return "nothing ran, and why";
    case LaneKind::kCounter:
      if (lane.source == CounterSource::kQueueDepth) return "launched, not begun";
      return lane.source == CounterSource::kFile ? "" : memory_subtitle(state);
    case LaneKind::kAsync:
      return "asynchronous";
    case LaneKind::kDevice:
      return "device: " + title_text(state.trace().text(
                              state.trace().process(state.trace().track(lane.track).process).name));
  }
  return "";
}

void write_lane(JsonWriter& json, const TraceState& state, std::uint32_t number) {
  const Lane& lane = state.lanes().lanes()[number];
  json.begin_object().integer("lane", number).integer("group", lane.group);
  json.text("kind", lane_kind_key(lane.kind)).text("title", lane_title(state, lane));
  json.text("subtitle", subtitle(state, lane)).integer("rows", lane.row_count);
  json.integer("slice_count", lane.slice_count).integer("busy_ns", lane.busy_ns);
  json.boolean("quiet", lane.is_quiet).boolean("main", lane.is_main);
  if (lane.device) json.integer("device", *lane.device);
  if (lane.kind == LaneKind::kCounter) {
    const auto& series = state.lanes().counter(lane);
    json.begin_object("counter").real("min", series.smallest()).real("max", series.largest());
    json.text("unit", lane.unit == CounterUnit::kBytes   ? "bytes"
                      : lane.unit == CounterUnit::kCount ? "count"
                                                         : "");
    json.end_object();
  }
  json.end_object();
}

// The lanes that are listed at first, in their order. Too many: those that do most.
std::vector<std::uint32_t> listed_lanes(const TraceState& state) {
  const auto& lanes = state.lanes().lanes();
  std::vector<std::uint32_t> listed(lanes.size());
  std::iota(listed.begin(), listed.end(), 0U);
  if (listed.size() <= kMostListedLanes) return listed;
  std::nth_element(listed.begin(), listed.begin() + kMostListedLanes, listed.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     if (lanes[a].is_main != lanes[b].is_main) return lanes[a].is_main;
                     return std::pair(-lanes[a].busy_ns, a) < std::pair(-lanes[b].busy_ns, b);
                   });
  listed.resize(kMostListedLanes);
  std::sort(listed.begin(), listed.end());
  return listed;
}

void write_list(JsonWriter& json, const TraceState& state,
                const std::vector<std::uint32_t>& numbers) {
  const auto& groups = state.lanes().groups();
  std::vector<bool> used(groups.size(), false);
  for (const std::uint32_t lane : numbers) used[state.lanes().lanes()[lane].group] = true;
  json.begin_array("groups");
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    if (!used[i]) continue;
    json.begin_object().integer("id", i).text("title", group_title(state, groups[i]));
    json.text("kind", groups[i].kind == LaneGroup::Kind::kTrace ? "trace"
                      : groups[i].kind == LaneGroup::Kind::kGpu ? "gpu"
                                                                : "cpu");
    json.end_object();
  }
  json.end_array().begin_array("lanes");
  for (const std::uint32_t lane : numbers) write_lane(json, state, lane);
  json.end_array();
}

// Those that are not listed and have `text` in their title, in any case.
std::vector<std::uint32_t> other_lanes(const TraceState& state, const std::string& text) {
  const auto lower = [](std::string word) {
    for (char& c : word)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return word;
  };
  const std::string wanted = lower(text);
  const auto& lanes = state.lanes().lanes();
  const std::vector<std::uint32_t> listed = listed_lanes(state);
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < lanes.size(); ++i)
    if (!std::binary_search(listed.begin(), listed.end(), i) &&
        (wanted.empty() || lower(lane_title(state, lanes[i])).find(wanted) != std::string::npos))
      others.push_back(i);
  return others;
}

// `of_rank`: the number of its device names the rank, which the title says already.
std::string own_title(const TraceState& state, const Lane& lane, bool of_rank) {
  const Trace& trace = state.trace();
  switch (lane.kind) {
    case LaneKind::kSteps:
      return "steps";
    case LaneKind::kIdle:
      return of_rank ? "GPU idle" : fmt::format("GPU {} idle", lane.device.value_or(0));
    case LaneKind::kCounter:
      return counter_title(state, lane);
    case LaneKind::kCpu:
    case LaneKind::kPython:
      return thread_title(state, lane);
    case LaneKind::kDevice:
      return device_thread_title(state, lane);
    case LaneKind::kAsync: {
      const std::string name = title_text(trace.text(trace.track(lane.track).series));
      return name.empty() ? "async" : name;
    }
    case LaneKind::kGpu:
    case LaneKind::kAnnotation:
    case LaneKind::kSync: {
      const std::string place = title_text(report::track_place(trace.track(lane.track)));
      return lane.kind == LaneKind::kAnnotation ? place + ", ranges"
             : lane.kind == LaneKind::kSync     ? place + ", waits"
                                                : place;
    }
  }
  return "";
}

}  // namespace

void write_lanes(JsonWriter& json, const TraceState& state) {
  const std::vector<std::uint32_t> listed = listed_lanes(state);
  write_list(json, state, listed);
  json.integer("lanes_left_out", state.lanes().lanes().size() - listed.size());
}

Answer lanes_answer(const TraceState& state, const Request& request) {
  const std::size_t count = state.lanes().lanes().size();
  JsonWriter json("view");
  if (request.has("lanes")) {
    const auto numbers = request.list("lanes", view::kMostFrameLanes);
    if (!numbers) return numbers.error();
    for (const std::uint32_t lane : *numbers)
      if (lane >= count)
        return Error{Errc::kInvalidArgument, fmt::format("expected lanes below {}", count)};
    write_list(json, state, *numbers);
    return json.take();
  }
  const auto text = request.text("text", "");
  const auto offset = request.number("offset", 0, 0xFFFFFFFF),
             limit = request.number("limit", 0, kMostLanesOfPage);
  if (!text) return text.error();
  for (const auto* number : {&offset, &limit})
    if (!*number) return number->error();
  const std::vector<std::uint32_t> others = other_lanes(state, *text);
  const std::size_t from = std::min<std::size_t>(offset->value_or(0), others.size());
  const std::size_t to = std::min<std::size_t>(from + limit->value_or(100), others.size());
  json.integer("total", others.size());
  write_list(json, state,
             {others.begin() + static_cast<std::ptrdiff_t>(from),
              others.begin() + static_cast<std::ptrdiff_t>(to)});
  return json.take();
}

std::string lane_title(const TraceState& state, const Lane& lane) {
  const auto rank = state.lanes().rank_of(lane);
  return rank ? fmt::format("rank {}: {}", *rank, own_title(state, lane, true))
              : own_title(state, lane, false);
}

}  // namespace lanescope::server
