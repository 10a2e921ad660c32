// Answers to the questions of the page: a request in, JSON or bytes out. docs/formats/view_api.md.
// Each becomes one call of a lower folder; the numbers come from analysis, explain and view.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/server/rank_set.h"
#include "lanescope/server/request.h"
#include "lanescope/server/trace_state.h"

namespace lanescope::server {

using Answer = Result<std::string>;

inline constexpr std::size_t kMostListedLanes = 4096, kMostListedSteps = 2000, kMostNames = 4096,
                             kLongestName = 5000;

// A part of the trace, in nanoseconds of the trace.
struct Span {
  std::int64_t start_ns = 0, end_ns = 0;
  bool is_whole = false;
};

// All traces of the page: one, or two that are compared.
// `ranks`: of whose run the first trace is; nullptr: none are known.
std::string meta_answer(const std::vector<const TraceState*>& traces, std::uint64_t generation,
                        bool is_live, std::string_view version, const RankSet* ranks = nullptr);
// Lanes that the meta leaves out because there are too many.
Answer lanes_answer(const TraceState& state, const Request& request);
Answer frame_answer(const TraceState& state, const Request& request);
// A page of the steps: from an index, or the page that has a time or a number.
Answer steps_answer(const TraceState& state, const Request& request);
std::string steps_within(const TraceState& state, const Span& span);  // at most 10,000
Answer names_answer(const TraceState& state, const Request& request);
Answer event_answer(const TraceState& state, const Request& request);
Answer at_answer(const TraceState& state, const Request& request);
Answer area_answer(const TraceState& state, const Request& request);
Answer search_answer(const TraceState& state, const Request& request);
Answer table_answer(const TraceState& state, const Request& request);
Answer flame_answer(const TraceState& state, const Request& request);
Answer gap_answer(const TraceState& state, const Request& request);
std::string explain_answer(const TraceState& state);
std::string gaps_answer(const TraceState& state, bool by_cost, std::size_t limit);
std::string memory_answer(const TraceState& state);
std::string tour_answer(const TraceState& state);
// A Chrome trace of the range, for the page to hand to Perfetto.
Answer perfetto_answer(const TraceState& state, const Request& request);
Answer compare_answer(const TraceState& a, const TraceState& b);

// Shared by the answers.

// A name as a label: the readable form of kernels, the short line of Python frames; one line, cut.
std::string short_name(const TraceState& state, StringId name);
std::string full_name(const TraceState& state, StringId name);
std::string event_json(const TraceState& state, SliceId slice);  // the answer of event_answer()
// slice, lane, row, start_ns, dur_ns, short into the open object.
void write_place(report::JsonWriter& json, const TraceState& state, SliceId slice);
// groups, lanes, lanes_left_out into the open object.
void write_lanes(report::JsonWriter& json, const TraceState& state);
// step_count, steps, typical_step and, of too many steps, a summary into the open object.
void write_steps(report::JsonWriter& json, const TraceState& state);
// "main thread", "stream 7", ...
std::string lane_title(const TraceState& state, const view::Lane& lane);
std::string error_json(std::string_view message);
Result<SliceId> needed_slice(const TraceState& state, const Request& request);
// By the members t0 and t1, in nanoseconds since the origin; without them, all of it.
Result<Span> span_of(const TraceState& state, const Request& request);

}  // namespace lanescope::server
