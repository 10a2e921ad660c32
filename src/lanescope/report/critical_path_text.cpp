#include "lanescope/report/critical_path_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/names/kernel_name.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using simulate::Chain;
using simulate::ChainPart;
using simulate::ChainRow;
using simulate::Slack;
using simulate::SlackRow;

constexpr std::size_t kWhereWidth = 12, kInWidth = 46;
constexpr std::size_t kMostPlaces = 6, kMostNames = 3, kMostNamesInJson = 20,
                      kMostRowsInJson = 1'000;

std::string scalar_text(const Trace& trace, const Scalar& scalar) {
  return scalar.is_text ? std::string(trace.text(scalar.text)) : std::to_string(scalar.number);
}

// "main thread", "thread 77", "stream 7", "GPU 1 stream 7".
std::string place_text(const explain::Facts& facts, TrackId id) {
  if (id == kNone<TrackId>) return "";
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(id);
  if (track.kind == TrackKind::kStream) {
    const std::string stream =
        "stream " + (track.stream ? std::to_string(*track.stream) : scalar_text(trace, track.tid));
    const bool is_other =
        track.device && facts.main_device && *track.device != facts.device().timeline.device;
    return is_other ? fmt::format("GPU {} {}", *track.device, stream) : stream;
  }
  return id == facts.main_thread ? "main thread" : "thread " + scalar_text(trace, track.tid);
}

std::string short_name(std::string_view name, std::size_t width) {
  return shorten(one_line(names::readable_kernel_name(name)), width);
}

// Without the library of a kernel, which stands in brackets, and without what all names of a kind begin with.
std::string brief_name(std::string_view name, std::size_t width) {
  constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";
  if (name.starts_with(kNode)) name.remove_prefix(kNode.size());
  // A Python frame: without the folders of its file.
  if (const std::size_t file = name.find(".py("); file != std::string_view::npos)
    if (const std::size_t folder = name.rfind('/', file); folder != std::string_view::npos)
      name.remove_prefix(folder + 1);
  const std::string readable = names::readable_kernel_name(name);
  const std::size_t bracket = readable == name ? std::string::npos : readable.find(" (");
  return shorten(one_line(readable.substr(0, bracket)), width);
}

std::string percent_text(std::int64_t part, std::int64_t whole) {
  return whole == 0
             ? "0%"
             : fmt::format("{:.0f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string part_name(const ChainPart& part) {
  return part.name.empty() ? "code without events" : part.name;
}

// "forward: aten::addmm 40%, cudaLaunchKernel 22%, delays 5%".
std::string row_text(const explain::Facts& facts, const ChainRow& row) {
  const std::string event =
      row.event == kNone<SliceId> ? "" : std::string(facts.trace->name(row.event));
  std::string parts;
  const auto add = [&](std::string_view name, std::int64_t time_ns) {
    const std::string percent = percent_text(time_ns, row.time_ns);
    if (percent != "0%")
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", brief_name(name, 32), percent);
  };
  const bool is_one = row.parts.size() == 1 && (event.empty() || event == row.parts.front().name);
  if (!is_one)
    for (const ChainPart& part : row.parts) add(part_name(part), part.time_ns);
  add("delays", row.delay_ns);
  const std::string name = is_one          ? short_name(part_name(row.parts.front()), kInWidth)
                           : event.empty() ? ""
                                           : brief_name(event, 30);
  if (name.empty() || parts.empty()) return shorten(name + parts, kInWidth);
  return shorten(name + (is_one ? ", " : ": ") + parts, kInWidth);
}

std::string chain_line(const explain::Facts& facts, const Chain& chain, const ChainRow& row) {
  return fmt::format("{}{:>10}{:>6}{:>8}  {:<13}{} {}\n", row.loop == 0 ? "  " : " |",
                     format_time_ns(row.time_ns), percent_text(row.time_ns, chain.length_ns),
                     format_count(row.pieces), chain_link_text(row.link),
                     pad_right(shorten(place_text(facts, row.track), kWhereWidth), kWhereWidth),
                     row_text(facts, row));
}

// What a large row holds, where its own line does not say it.
std::string inside_line(const Chain& chain, const ChainRow& row) {
  constexpr double kLargeRow = 0.2;
  const bool says_no_more =
      std::all_of(row.inside.begin(), row.inside.end(), [&](const ChainPart& part) {
        return std::any_of(row.parts.begin(), row.parts.end(),
                           [&](const ChainPart& other) { return other.name == part.name; });
      });
  if (static_cast<double>(row.time_ns) < kLargeRow * static_cast<double>(chain.length_ns) ||
      says_no_more)
    return "";
  std::string parts;
  for (const ChainPart& part : row.inside)
    if (const std::string percent = percent_text(part.time_ns, row.time_ns); percent != "0%")
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", brief_name(part_name(part), 36),
                           percent);
  return fmt::format("{}{:>24}  of it: {}\n", row.loop == 0 ? "  " : " |", "", shorten(parts, 64));
}

std::string slack_line(const std::string& what, const SlackRow& row, std::size_t steps) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(steps, 1));
  return fmt::format("  {:>10}{:>8}{:>11}{:>11}  {}\n", format_time_ns(row.time_ns / count),
                     format_count(row.pieces / static_cast<std::size_t>(count)),
                     format_time_ns(row.least_ns), format_time_ns(row.median_ns), what);
}

void parts_json(JsonWriter& json, const char* key, const std::vector<ChainPart>& parts) {
  json.begin_array(key);
  for (const ChainPart& part : parts) {
    json.begin_object();
    json.text("name", part_name(part));
    json.integer("time_ns", part.time_ns);
    json.end_object();
  }
  json.end_array();
}

void slack_rows_json(JsonWriter& json, const char* key, const explain::Facts& facts,
                     const std::vector<SlackRow>& rows) {
  json.begin_array(key);
  for (std::size_t i = 0; i < rows.size() && i < kMostNamesInJson; ++i) {
    const SlackRow& row = rows[i];
    json.begin_object();
    json.text(row.track == kNone<TrackId> ? "name" : "place",
              row.track == kNone<TrackId> ? row.name : place_text(facts, row.track));
    json.integer("time_ns", row.time_ns);
    json.integer("critical_ns", row.critical_ns);
    json.integer("pieces_count", row.pieces);
    json.integer("least_slack_ns", row.least_ns);
    json.integer("median_slack_ns", row.median_ns);
    json.end_object();
  }
  json.end_array();
}

std::optional<std::int64_t> step_number(const explain::Facts& facts, const Chain& chain) {
  if (!facts.steps.marked || chain.step >= facts.steps.steps.size()) return std::nullopt;
  return facts.steps.steps[chain.step].number;
}

}  // namespace

CriticalPathReport critical_path_report(const explain::Facts& facts,
                                        const simulate::Simulation& simulation) {
  const simulate::StepGraph& graph = *simulation.graph;
  const simulate::Replay recorded = simulate::replay(graph, graph.edges);
  const analysis::SliceNesting nesting =
      analysis::compute_slice_nesting(*facts.trace, {.python_frames = true});
  return {simulate::critical_chain(graph, recorded, nesting), simulate::slack_of(graph, recorded)};
}

std::string chain_text(const explain::Facts& facts, const Chain& chain) {
  if (chain.rows.empty()) return "";
  const std::optional<std::int64_t> number = step_number(facts, chain);
  std::string out =
      number ? fmt::format("  The chain of step {}, {}, in order of time:\n", *number,
                           format_time_ns(chain.length_ns))
             : fmt::format("  The chain, {}, in order of time:\n", format_time_ns(chain.length_ns));
  out += fmt::format("  {:>10}{:>6}{:>8}  {:<13}{:<{}} {}\n", "time", "share", "pieces", "comes by",
                     "on", kWhereWidth, "in");
  std::size_t loop = 0;
  for (const ChainRow& row : chain.rows) {
    if (!row.is_shown) continue;
    if (row.loop != loop && row.loop != 0)
      out += fmt::format(" | {} rounds of\n", format_count(row.rounds));
    loop = row.loop;
    out += chain_line(facts, chain, row) + inside_line(chain, row);
  }
  if (chain.other_rows > 0)
    out += fmt::format("  {:>10}{:>6}  in {} shorter {}\n", format_time_ns(chain.other_ns),
                       percent_text(chain.other_ns, chain.length_ns),
                       format_count(chain.other_rows), chain.other_rows == 1 ? "row" : "rows");
  return out + "\n";
}

std::string slack_text(const explain::Facts& facts, const Slack& slack) {
  if (slack.places.empty()) return "  All that the steps hold is on the critical path.\n\n";
  std::string out =
      "  Off the path, a step: how much longer one piece may take before a step ends later\n";
  out += fmt::format("  {:>10}{:>8}{:>11}{:>11}  {}\n", "time", "pieces", "least", "median", "of");
  for (std::size_t i = 0; i < slack.places.size() && i < kMostPlaces; ++i)
    if (slack.places[i].pieces >= slack.steps)
      out += slack_line(place_text(facts, slack.places[i].track), slack.places[i], slack.steps);
  for (const std::vector<SlackRow>* rows : {&slack.kernels, &slack.operators})
    for (std::size_t i = 0; i < rows->size() && i < kMostNames; ++i)
      out += slack_line(short_name((*rows)[i].name, 52), (*rows)[i], slack.steps);
  return out + "\n";
}

void critical_path_json(JsonWriter& json, const explain::Facts& facts,
                        const CriticalPathReport& report) {
  const Chain& chain = report.chain;
  json.begin_object("chain");
  if (const auto number = step_number(facts, chain)) json.integer("step", *number);
  json.integer("length_ns", chain.length_ns);
  json.integer("rows_count", chain.rows.size());
  json.begin_array("rows");
  for (std::size_t i = 0; i < chain.rows.size() && i < kMostRowsInJson; ++i) {
    const ChainRow& row = chain.rows[i];
    json.begin_object();
    json.text("comes_by", chain_link_name(row.link));
    json.text("place", place_text(facts, row.track));
    if (row.event != kNone<SliceId>) json.text("event", facts.trace->name(row.event));
    json.integer("time_ns", row.time_ns);
    json.integer("delay_ns", row.delay_ns);
    json.integer("pieces_count", row.pieces);
    json.boolean("is_shown", row.is_shown);
    if (row.loop != 0) {
      json.integer("loop", row.loop);
      json.integer("rounds_count", row.rounds);
    }
    parts_json(json, "parts", row.parts);
    parts_json(json, "inside", row.inside);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.begin_object("slack");
  json.integer("steps_count", report.slack.steps);
  slack_rows_json(json, "places", facts, report.slack.places);
  slack_rows_json(json, "kernels", facts, report.slack.kernels);
  slack_rows_json(json, "operators", facts, report.slack.operators);
  json.end_object();
}

}  // namespace lanescope::report
