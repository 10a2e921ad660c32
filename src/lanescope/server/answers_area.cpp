// Sums: what is folded at a place, a selected area, a search, a tree of calls.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/server/answers.h"
#include "lanescope/view/area.h"
#include "lanescope/view/search.h"

namespace lanescope::server {
namespace {

using report::JsonWriter;

constexpr std::size_t kMostAreaNames = 500, kMostLongest = 10, kMostLanes = 100'000;

Result<std::vector<std::uint32_t>> lanes_of(const TraceState& state, const Request& request) {
  Result<std::vector<std::uint32_t>> lanes = request.list("lanes", kMostLanes);
  if (!lanes) return lanes.error();
  for (const std::uint32_t lane : *lanes)
    if (lane >= state.lanes().lanes().size())
      return Error{Errc::kInvalidArgument, "expected numbers of lanes, found another"};
  return lanes;
}

void write_name(JsonWriter& json, const TraceState& state, StringId name) {
  json.integer("id", raw(name))
      .text("short", short_name(state, name))
      .text("name", full_name(state, name));
}

}  // namespace

Answer at_answer(const TraceState& state, const Request& request) {
  const auto lane =
      request.needed("lane", 0, static_cast<std::int64_t>(state.lanes().lanes().size()) - 1);
  if (!lane) return lane.error();
  const view::Lane& found = state.lanes().lanes()[static_cast<std::size_t>(*lane)];
  const auto row = request.needed("row", 0, static_cast<std::int64_t>(found.row_count) - 1);
  if (!row) return row.error();
  const auto span = span_of(state, request);
  if (!span) return span.error();
  const view::LevelIndex& index = state.lanes().index();
  const std::size_t number = found.first_row + static_cast<std::size_t>(*row);
  const auto [first, last] = index.range(number, span->start_ns, span->end_ns);
  JsonWriter json("view");
  json.integer("count", last - first)
      .integer("busy_ns", index.busy_within_ns(number, span->start_ns, span->end_ns));
  json.begin_array("longest");
  if (view::Lanes::has_slices(found.kind)) {
    // The longest, then the longest left and right of it, and so on.
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    if (first < last) parts.emplace_back(first, last);
    for (std::size_t i = 0; i < kMostLongest && !parts.empty(); ++i) {
      std::size_t best = 0;
      std::vector<std::size_t> longest;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        longest.push_back(index.longest(number, parts[p].first, parts[p].second));
        if (index.slice(number, longest[p]).dur_ns > index.slice(number, longest[best]).dur_ns)
          best = p;
      }
      const std::size_t at = longest[best];
      const auto part = parts[best];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best));
      if (part.first < at) parts.emplace_back(part.first, at);
      if (at + 1 < part.second) parts.emplace_back(at + 1, part.second);
      const SliceId slice{index.slice(number, at).id};
      json.begin_object();
      write_place(json, state, slice);
      json.text("name", full_name(state, state.trace().slices().name[raw(slice)])).end_object();
    }
  }
  return json.end_array().take();
}

Answer area_answer(const TraceState& state, const Request& request) {
  const auto span = span_of(state, request);
  if (!span) return span.error();
  auto lanes = lanes_of(state, request);
  if (!lanes) return lanes.error();
  if (!request.has("lanes")) {
    lanes->resize(state.lanes().lanes().size());
    for (std::uint32_t i = 0; i < lanes->size(); ++i) (*lanes)[i] = i;
  }
  const view::Area area =
      view::sum_area(state.lanes(), {span->start_ns, span->end_ns, *lanes}, state.known_facts());
  JsonWriter json("view");
  json.integer("t0", span->start_ns - state.lanes().origin_ns());
  json.integer("t1", span->end_ns - state.lanes().origin_ns()).begin_array("lanes");
  for (const view::AreaLane& lane : area.lanes)
    if (lane.count > 0)
      json.begin_object()
          .integer("lane", lane.lane)
          .integer("count", lane.count)
          .integer("busy_ns", lane.busy_ns)
          .end_object();
  json.end_array().integer("names_total", area.names.size()).begin_array("names");
  for (std::size_t i = 0; i < std::min(area.names.size(), kMostAreaNames); ++i) {
    const view::AreaName& name = area.names[i];
    json.begin_object();
    write_name(json, state, name.name);
    json.integer("kind", static_cast<unsigned>(name.kind)).integer("count", name.count);
    json.integer("total_ns", name.total_ns).integer("self_ns", name.self_ns);
    json.integer("longest", raw(name.longest)).end_object();
  }
  json.end_array().begin_array("kinds");
  for (std::size_t i = 0; i < area.kinds.size(); ++i)
    if (area.kinds[i].count > 0)
      json.begin_object()
          .integer("kind", i)
          .integer("count", area.kinds[i].count)
          .integer("total_ns", area.kinds[i].total_ns)
          .end_object();
  json.end_array().begin_array("gaps");
  for (const view::AreaGaps& gaps : area.gaps)
    json.begin_object()
        .integer("device", gaps.device)
        .integer("cause", static_cast<unsigned>(gaps.cause))
        .integer("count", gaps.count)
        .integer("ns", gaps.ns)
        .end_object();
  json.end_array();
  if (area.launch_delay)
    json.begin_object("launch_delay")
        .integer("count", area.launch_delay->count)
        .integer("median_ns", area.launch_delay->median_ns)
        .integer("min_ns", area.launch_delay->smallest_ns)
        .integer("max_ns", area.launch_delay->largest_ns)
        .end_object();
  return json.take();
}

Answer search_answer(const TraceState& state, const Request& request) {
  const auto text = request.text("text", "");
  if (!text) return text.error();
  const auto limit = request.number("limit", 0, 1000);
  if (!limit) return limit.error();
  const auto lanes = lanes_of(state, request);
  if (!lanes) return lanes.error();
  const auto query = view::parse_search(*text);
  if (!query) return query.error();
  const view::SearchResult result =
      view::search(state.lanes(), *query, *lanes, static_cast<std::size_t>(limit->value_or(100)));
  JsonWriter json("view");
  json.integer("total", result.total).begin_array("lanes");
  for (const auto& [lane, count] : result.lanes)
    json.begin_object().integer("lane", lane).integer("count", count).end_object();
  json.end_array().begin_array("hits");
  for (const SliceId slice : result.hits) {
    json.begin_object();
    write_place(json, state, slice);
    json.text("name", full_name(state, state.trace().slices().name[raw(slice)])).end_object();
  }
  json.end_array().begin_array("names");
  for (const StringId name : result.names) json.integer({}, raw(name));
  return json.end_array().take();
}

Answer flame_answer(const TraceState& state, const Request& request) {
  const auto lane =
      request.needed("lane", 0, static_cast<std::int64_t>(state.lanes().lanes().size()) - 1);
  if (!lane) return lane.error();
  const auto number = static_cast<std::uint32_t>(*lane);
  if (!view::Lanes::has_slices(state.lanes().lanes()[number].kind))
    return Error{Errc::kInvalidArgument,
                 "expected a lane with slices, such as a thread or a stream"};
  const auto span = span_of(state, request);
  if (!span) return span.error();
  JsonWriter json("view");
  json.begin_array("nodes");
  for (const view::FlameNode& node :
       view::make_flame(state.lanes(), number, span->start_ns, span->end_ns)) {
    json.begin_object();
    write_name(json, state, node.name);
    json.integer("parent", node.parent).integer("kind", static_cast<unsigned>(node.kind));
    json.integer("total_ns", node.total_ns)
        .integer("self_ns", node.self_ns)
        .integer("count", node.count);
    json.integer("longest", raw(node.longest)).end_object();
  }
  return json.end_array().take();
}

}  // namespace lanescope::server
