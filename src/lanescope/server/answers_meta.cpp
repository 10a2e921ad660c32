// What a trace holds: lanes, steps, kinds of time, quality; and names.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/trace_info.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/idle_cause_sentence.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/thinning_text.h"
#include "lanescope/server/answers.h"
#include "lanescope/view/frame.h"
#include "lanescope/view/search.h"

namespace lanescope::server {
namespace {

using report::JsonWriter;
using report::one_line;
using view::Lane;
using view::LaneKind;
using view::TimeKind;

constexpr std::size_t kLongestShort = 120;

const char* time_kind_title(TimeKind kind) {
  static constexpr std::array<const char*, view::kTimeKindCount> kTitles{
      "operators", "ranges of the program", "Python functions", "CUDA or HIP calls",
      "compute",   "communication",         "copies",           "waiting",
      "other"};
  return kTitles[static_cast<std::size_t>(kind)];
}

// `is_live`: ranges that are open now are none that were cut.
void write_quality(JsonWriter& json, const TraceState& state, const analysis::TraceInfo& info,
                   bool is_live) {
  json.begin_array("quality");
  for (const auto& issue : info.issues) {
    const ImportIssueInfo& about = import_issue_info(issue.issue);
    json.begin_object().text("text", about.description).integer("count", issue.count);
    const bool is_normal = is_live && issue.issue == ImportIssue::kOpenRange;
    json.text("severity", is_normal                               ? "note"
                          : about.severity == Severity::kLost     ? "lost"
                          : about.severity == Severity::kRepaired ? "repaired"
                                                                  : "note");
    json.end_object();
  }
  const auto note = [&](std::string_view text, std::uint64_t count) {
    if (count > 0)
      json.begin_object()
          .text("text", text)
          .integer("count", count)
          .text("severity", "note")
          .end_object();
  };
  const view::LaneSummary& summary = state.lanes().summary();
  note("GPU work whose launch call is not in the trace: no arrow leads to it",
       summary.work_count - summary.launched_count);
  std::uint64_t overlapping = 0;
  for (const Lane& lane : state.lanes().lanes())
    if (lane.kind == LaneKind::kGpu)
      for (std::uint32_t row = 1; row < lane.row_count; ++row)
        overlapping += state.lanes().index().size(lane.first_row + row);
  note("GPU work that overlaps other work of its stream: drawn in rows of its own", overlapping);
  note("GPU work that begins before its launch call: the clocks of CPU and GPU differ",
       summary.early_count);
  if (info.thinning)
    json.begin_object()
        .text("text", "Recorded with a budget: " + report::thinning_text(*info.thinning))
        .integer("count", 1)
        .text("severity", "note")
        .end_object();
  json.end_array();
}

// Without steps, the part to show first: the work of the main device, where it is a small part of the
// recording. What a profiler records around it would else push it into a few pixels.
std::optional<Span> first_view(const TraceState& state) {
  constexpr std::int64_t kSmallPart = 5;
  const view::Lanes& lanes = state.lanes();
  if (!lanes.steps().empty() || !lanes.summary().main_device) return std::nullopt;
  Span work{lanes.end_ns(), lanes.origin_ns()};
  for (const Lane& lane : lanes.lanes()) {
    if (lane.kind != LaneKind::kGpu || lane.is_quiet || lane.device != lanes.summary().main_device)
      continue;
    for (std::uint32_t row = lane.first_row; row < lane.first_row + lane.row_count; ++row) {
      const std::size_t size = lanes.index().size(row);
      if (size == 0) continue;
      const view::LevelSlice last = lanes.index().slice(row, size - 1);
      work.start_ns = std::min(work.start_ns, lanes.index().slice(row, 0).start_ns);
      work.end_ns = std::max(work.end_ns, last.start_ns + last.dur_ns);
    }
  }
  const std::int64_t length = work.end_ns - work.start_ns;
  if (length <= 0 || length > (lanes.end_ns() - lanes.origin_ns()) / kSmallPart)
    return std::nullopt;
  return work;
}

void write_trace(JsonWriter& json, const TraceState& state, bool is_live) {
  const analysis::TraceInfo info = analysis::describe_trace(state.trace());
  const view::Lanes& lanes = state.lanes();
  json.begin_object().text("path", state.path());
  const std::size_t slash = state.path().rfind('/');
  json.text("title",
            one_line(slash == std::string::npos ? state.path() : state.path().substr(slash + 1)));
  json.text("writer", one_line(info.producer));
  json.text("origin_ns", fmt::format("{}", lanes.origin_ns()));
  json.text("base_time_ns", fmt::format("{}", state.trace().base_time_ns()));
  json.integer("span_ns", lanes.end_ns() - lanes.origin_ns());
  json.integer("slice_count", state.trace().slices().size());
  if (const auto view = first_view(state))
    json.begin_object("first_view")
        .integer("t0", view->start_ns - lanes.origin_ns())
        .integer("t1", view->end_ns - lanes.origin_ns())
        .end_object();
  if (lanes.summary().main_device)
    json.integer("main_device", *lanes.summary().main_device);
  else
    json.null("main_device");
  json.begin_array("devices");
  for (const auto& device : info.devices) json.text({}, one_line(device.name));
  json.end_array();
  write_lanes(json, state);
  write_steps(json, state);
  write_quality(json, state, info, is_live);
  json.end_object();
}

}  // namespace

std::string short_name(const TraceState& state, StringId name) {
  const std::string_view text = state.trace().text(name);
  switch (state.lanes().name_use(name)) {
    case view::NameUse::kWork:
      return report::shorten(one_line(names::readable_kernel_name(text)), kLongestShort);
    case view::NameUse::kFrame:
      return report::shorten(one_line(explain::short_line(text)), kLongestShort);
    case view::NameUse::kOther:
      break;
  }
  return report::shorten(one_line(text.substr(0, kLongestName)), kLongestShort);
}

std::string full_name(const TraceState& state, StringId name) {
  const std::string_view text = state.trace().text(name);
  return text.size() <= kLongestName ? one_line(text)
                                     : one_line(text.substr(0, kLongestName)) + "...";
}

void write_place(JsonWriter& json, const TraceState& state, SliceId slice) {
  const Trace& trace = state.trace();
  json.integer("slice", raw(slice));
  if (const auto place = state.lanes().place(slice))
    json.integer("lane", place->lane).integer("row", place->row);
  json.integer("start_ns", trace.start_ns(slice) - state.lanes().origin_ns());
  json.integer("dur_ns", trace.dur_ns(slice));
  json.text("short", short_name(state, trace.slices().name[raw(slice)]));
  json.integer("kind", static_cast<unsigned>(state.lanes().kind(slice)));
}

std::string error_json(std::string_view message) {
  return fmt::format("{{\"error\": \"{}\"}}\n", report::json_escaped(message));
}

Result<SliceId> needed_slice(const TraceState& state, const Request& request) {
  const Result<std::int64_t> slice = request.needed("slice", 0, 0xFFFFFFFE);
  if (!slice) return slice.error();
  if (static_cast<std::size_t>(*slice) >= state.trace().slices().size())
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected a slice below {}", state.trace().slices().size())};
  return SliceId{static_cast<std::uint32_t>(*slice)};
}

Result<Span> span_of(const TraceState& state, const Request& request) {
  const std::int64_t origin = state.lanes().origin_ns(), end = state.lanes().end_ns();
  const std::int64_t most = std::int64_t{1} << 53;
  const auto t0 = request.number("t0", -most, most), t1 = request.number("t1", -most, most);
  if (!t0) return t0.error();
  if (!t1) return t1.error();
  Span span{origin + t0->value_or(0), t1->has_value() ? origin + **t1 : end + 1,
            !t0->has_value() && !t1->has_value()};
  if (span.start_ns >= span.end_ns)
    return Error{Errc::kInvalidArgument, "expected an area with t0 < t1, in nanoseconds"};
  return span;
}

std::string meta_answer(const std::vector<const TraceState*>& traces, std::uint64_t generation,
                        bool is_live, std::string_view version, const RankSet* ranks) {
  JsonWriter json("view");
  json.integer("api", 1).integer("generation", generation).boolean("live", is_live);
  json.text("version", version).begin_array("traces");
  for (const TraceState* state : traces) write_trace(json, *state, is_live);
  json.end_array();
  if (ranks && ranks->has(traces[0]->path())) ranks->write_list(json, traces[0]->path());
  json.begin_array("kinds");
  for (std::size_t i = 0; i < view::kTimeKindCount; ++i) {
    const auto kind = static_cast<TimeKind>(i);
    json.begin_object().integer("kind", i).text("key", view::time_kind_key(kind));
    json.text("title", time_kind_title(kind)).end_object();
  }
  json.end_array().begin_array("causes");
  for (std::size_t i = 0; i < analysis::kIdleCauseCount; ++i) {
    const auto cause = static_cast<analysis::IdleCause>(i);
    json.begin_object().integer("cause", i).text("key", report::idle_cause_key(cause));
    json.text("title", report::idle_cause_text(cause))
        .text("text", report::idle_cause_sentence(cause))
        .end_object();
  }
  json.end_array();
  return json.take();
}

Answer frame_answer(const TraceState& state, const Request& request) {
  const std::int64_t most = std::int64_t{1} << 53;
  const auto t0 = request.needed("t0", -most, most), t1 = request.needed("t1", -most, most);
  const auto step = request.needed("step", 0, most);
  const auto generation = request.number("gen", 0, 0xFFFFFFFF);
  const auto lanes = request.list("lanes", view::kMostFrameLanes);
  for (const auto* number : {&t0, &t1, &step})
    if (!*number) return number->error();
  if (!generation) return generation.error();
  if (!lanes) return lanes.error();
  view::FrameRequest frame{*t0, *t1, std::max<std::int64_t>(*step, 1), *lanes,
                           static_cast<std::uint32_t>(generation->value_or(0))};
  return view::make_frame(state.lanes(), frame);
}

Answer names_answer(const TraceState& state, const Request& request) {
  const auto ids = request.list("names", kMostNames);
  if (!ids) return ids.error();
  JsonWriter json("view");
  json.begin_array("names");
  for (const std::uint32_t id : *ids) {
    if (id >= state.trace().strings().size()) continue;
    json.begin_object().integer("id", id).text("short", short_name(state, StringId{id}));
    json.text("full", full_name(state, StringId{id})).end_object();
  }
  return json.end_array().take();
}

}  // namespace lanescope::server
