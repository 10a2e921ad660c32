// The gaps of the GPU: from their lanes at once, with causes on the CPU once the facts are there.
#include <algorithm>
#include <array>
#include <span>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/server/answers.h"

namespace lanescope::server {
namespace {

using explain::Explanation;
using explain::Finding;
using report::JsonWriter;

void write_slice_id(JsonWriter& json, const char* key, SliceId slice) {
  if (slice != kNone<SliceId>)
    json.integer(key, raw(slice));
  else
    json.null(key);
}

// A part of a gap as its lane has it, which needs no facts.
struct IdleTime {
  std::uint32_t lane = 0, index = 0;
  std::int64_t start_ns = 0, dur_ns = 0;
};

// In the order of their indices.
std::vector<IdleTime> idle_times(const view::Lanes& lanes) {
  std::vector<IdleTime> times;
  for (std::uint32_t number = 0; number < lanes.lanes().size(); ++number) {
    const view::Lane& lane = lanes.lanes()[number];
    if (lane.kind != view::LaneKind::kIdle) continue;
    for (std::size_t i = 0; i < lanes.index().size(lane.first_row); ++i) {
      const view::LevelSlice part = lanes.index().slice(lane.first_row, i);
      times.push_back({number, part.id, part.start_ns, part.dur_ns});
    }
  }
  sort_rows(times.begin(), times.end(),
            [](const IdleTime& a, const IdleTime& b) { return a.index < b.index; });
  return times;
}

// What the CPU did, and what the gap ended with, where the facts are there.
void write_gap_causes(JsonWriter& json, const TraceState& state, std::uint32_t index) {
  const view::Lanes& lanes = state.lanes();
  const analysis::IdlePart& part = lanes.idle_part(index);
  const analysis::Gap& gap = lanes.gap(index);
  write_slice_id(json, "ends_at", gap.next_work);
  write_slice_id(json, "launch", gap.launch);
  write_slice_id(json, "blame", part.blame);
  std::string cpu;
  if (part.thread != kNone<TrackId>) {
    const auto shares = explain::host_shares(
        state.facts(), {{part.thread, part.start_ns, part.end_ns, part.blame}});
    if (!shares.empty()) {
      json.text("cpu", report::rounded_sentence(describe(shares.front())));
      write_slice_id(json, "cpu_slice", shares.front().longest);
    }
  }
  // The finding that this gap is evidence of.
  const Explanation* explanation = state.known_explanation();
  if (!explanation) return;
  for (const Finding& finding : explanation->findings)
    for (const explain::Evidence& each : finding.evidence)
      if (each.slice != kNone<SliceId> &&
          (each.slice == gap.next_work || each.slice == part.blame || each.slice == gap.launch)) {
        json.text("finding", finding.rule);
        return;
      }
}

void write_gap(JsonWriter& json, const TraceState& state, const IdleTime& time, bool with_causes) {
  const analysis::IdleCause cause = state.lanes().idle_cause(time.index);
  json.begin_object().integer("index", time.index);
  json.integer("device", state.lanes().lanes()[time.lane].device.value_or(0));
  json.integer("lane", time.lane);
  json.integer("start_ns", time.start_ns - state.lanes().origin_ns())
      .integer("dur_ns", time.dur_ns);
  json.integer("cause", static_cast<unsigned>(cause)).text("text", report::idle_cause_text(cause));
  if (with_causes) write_gap_causes(json, state, time.index);
  json.end_object();
}

// The gaps, and whether more will be known about them later. The answer never waits for the rules.
void write_gaps(JsonWriter& json, const TraceState& state, std::span<const IdleTime> times) {
  const bool is_whole = state.known_explanation() != nullptr;  // before the facts: made of them
  const bool with_causes = state.known_facts() != nullptr;
  if (!is_whole) json.boolean("pending", true);
  json.begin_array("gaps");
  for (const IdleTime& time : times) write_gap(json, state, time, with_causes);
  json.end_array();
}

}  // namespace

std::string gaps_answer(const TraceState& state, bool by_cost, std::size_t limit) {
  std::vector<IdleTime> times = idle_times(state.lanes());
  std::array<std::pair<std::uint64_t, std::int64_t>, analysis::kIdleCauseCount> sums{};
  for (const IdleTime& time : times) {
    auto& sum = sums[static_cast<std::size_t>(state.lanes().idle_cause(time.index))];
    ++sum.first;
    sum.second += time.dur_ns;
  }
  const auto key = [&](const IdleTime& time) {
    return std::pair(by_cost ? -time.dur_ns : time.start_ns, time.index);
  };
  const std::size_t shown = std::min(limit, times.size());
  std::partial_sort(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(shown), times.end(),
                    [&](const IdleTime& a, const IdleTime& b) { return key(a) < key(b); });
  JsonWriter json("view");
  json.integer("total", times.size()).begin_array("by_cause");
  for (std::size_t cause = 0; cause < sums.size(); ++cause)
    if (sums[cause].first > 0)
      json.begin_object()
          .integer("cause", cause)
          .integer("count", sums[cause].first)
          .integer("ns", sums[cause].second)
          .end_object();
  json.end_array();
  write_gaps(json, state, std::span(times).first(shown));
  return json.take();
}

Answer gap_answer(const TraceState& state, const Request& request) {
  const std::vector<IdleTime> times = idle_times(state.lanes());
  if (times.empty()) return Error{Errc::kInvalidArgument, "the trace has no gaps"};
  const auto index = request.needed("index", 0, static_cast<std::int64_t>(times.size()) - 1);
  if (!index) return index.error();
  JsonWriter json("view");
  write_gaps(json, state, std::span(times).subspan(static_cast<std::size_t>(*index), 1));
  return json.take();
}

}  // namespace lanescope::server
