// A CUDA graph that was captured for many rows replays with few: before it only the first rows of its input are written, after
// it only the first rows of its output are read.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastPaddingShare = 0.05;
constexpr std::int64_t kLeastPadding = 2;  // rows of the graph for each row that is used

// x[:n] of the first dimension, or of another one: the sizes before and after.
struct RowCut {
  std::int64_t whole = 0, part = 0;
};

// What the call after a slice takes shows what is left.
std::optional<RowCut> cut_at(const Trace& trace, const CallSequence& calls, std::size_t at) {
  if (trace.name(calls[at]) != "aten::slice" || at + 1 >= calls.size()) return std::nullopt;
  const auto before = first_input_shapes(trace, calls[at]),
             after = first_input_shapes(trace, calls[at + 1]);
  if (before.size() != 1 || after.size() != 1 || before[0].size() != after[0].size())
    return std::nullopt;
  std::optional<RowCut> cut;
  for (std::size_t i = 0; i < before[0].size(); ++i) {
    if (before[0][i] == after[0][i]) continue;
    if (cut || after[0][i] > before[0][i]) return std::nullopt;
    cut = RowCut{before[0][i], after[0][i]};
  }
  return cut;
}

struct PaddedReplay {
  std::uint64_t replays = 0;
  std::int64_t rows = 0, used = 0;  // of the graph, and of them, in the last replay
  double padding_ns = 0;
  std::int64_t graph_ns = 0;
  SliceId launch = kNone<SliceId>, write = kNone<SliceId>, read = kNone<SliceId>;
};

bool replays_graph(const Trace& trace, SliceId id) {
  return is_api_call(trace.kind(id)) &&
         trace.name(id).find("GraphLaunch") != std::string_view::npos;
}

// The calls of a step before a moment end in a slice that is copied into; those after it begin with a slice.
std::optional<PaddedReplay> padded_at(const Facts& facts, const CallSequence& calls,
                                      SliceId launch) {
  const Trace& trace = *facts.trace;
  const auto after = static_cast<std::size_t>(
      std::partition_point(calls.begin(), calls.end(),
                           [&](SliceId op) { return trace.end_ns(op) <= trace.start_ns(launch); }) -
      calls.begin());
  constexpr std::size_t kNear = 8;  // inputs of a graph that are written one after the other
  for (std::size_t back = 2; back <= kNear && back <= after; ++back) {
    const std::size_t at = after - back;
    if (trace.name(calls[at + 1]) != "aten::copy_") continue;
    const auto written = cut_at(trace, calls, at);
    if (!written || written->part * kLeastPadding > written->whole || written->part == 0) continue;
    for (std::size_t i = after; i < calls.size() && i < after + kNear; ++i) {
      const auto read = cut_at(trace, calls, i);
      if (!read || read->whole != written->whole || read->part != written->part) continue;
      PaddedReplay found;
      found.rows = written->whole;
      found.used = written->part;
      found.write = calls[at];
      found.read = calls[i];
      found.launch = launch;
      return found;
    }
  }
  return std::nullopt;
}

std::optional<PaddedReplay> measure_padded_replay(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::pair<std::uint32_t, std::size_t>, std::vector<SliceId>> launches;  // thread, step
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (const SliceId id{i}; replays_graph(trace, id))
      launches[{raw(trace.slices().track[i]), steady_step_at(facts, trace.start_ns(id))}].push_back(
          id);
  PaddedReplay total;
  if (launches.empty()) return std::nullopt;
  for (const CallSequence& calls : call_sequences(facts)) {
    if (calls.empty()) continue;
    const auto own = launches.find({raw(trace.slices().track[raw(calls.front())]),
                                    steady_step_at(facts, trace.start_ns(calls.front()))});
    if (own == launches.end()) continue;
    for (const SliceId id : own->second) {
      const auto found = padded_at(facts, calls, id);
      if (!found) continue;
      std::int64_t graph_ns = 0;
      for (const SliceId work : facts.links.launched_by(id)) graph_ns += trace.dur_ns(work);
      const std::uint64_t replays = total.replays + 1;
      const double padding_ns =
          total.padding_ns + static_cast<double>(graph_ns) *
                                 static_cast<double>(found->rows - found->used) /
                                 static_cast<double>(found->rows);
      graph_ns += total.graph_ns;
      total = *found;
      total.replays = replays;
      total.padding_ns = padding_ns;
      total.graph_ns = graph_ns;
    }
  }
  if (total.replays == 0 || total.replays < facts.selection.steady.size() ||
      share_of(static_cast<std::int64_t>(total.padding_ns), facts.steady_wall_ns()) <
          kLeastPaddingShare)
    return std::nullopt;
  return total;
}

Finding tell_padded_replay(const Facts& facts, const PaddedReplay& found) {
  const auto padding_ns = static_cast<std::int64_t>(found.padding_ns);
  const Value rows = count(static_cast<std::uint64_t>(found.rows)),
              used = count(static_cast<std::uint64_t>(found.used));
  Finding finding;
  finding.verdict = say(facts,
                        "A CUDA graph for {} rows replays with {}: the rest is padding. Its work "
                        "takes {} [per step] ({}).",
                        {rows, used, ns(facts.per_step(found.graph_ns)),
                         ratio(found.graph_ns, facts.steady_wall_ns())});
  rate_cost(facts, padding_ns, found.replays, finding);
  finding.sample_noun = "replay";
  finding.arithmetic.push_back(
      say("counted: replays before which a slice of that many rows is written, and after which a "
          "slice of the same rows is read; their GPU work times the share of the other rows, which "
          "is what goes if each kernel's time follows its rows"));
  finding.evidence.push_back({found.launch, say("the replay")});
  finding.evidence.push_back(called_at(facts, found.write, say("the rows that are written")));
  finding.evidence.push_back({found.read, say("the rows that are read")});
  finding.try_next = {
      "capture a graph for each of some sizes, such as 8, 16, 32, 64 and 128 rows, and replay the "
      "smallest that holds what is there; they can share a memory pool",
      "put more requests into one replay, where there are more"};
  finding.brief =
      say(facts, "A CUDA graph for {} rows replays with {}: the rest is padding", {rows, used});
  finding.action = say("Capture graphs for several sizes, and replay the smallest that fits");
  return finding;
}

}  // namespace

extern constinit const Rule padded_replay_rule = {
    .id = "padded-replay",
    .question = "does a CUDA graph run for more rows than are used?",
    .meant_by = "cuda graph padding batch size capture bucket rows",
    .order = 466,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_padded_replay, tell_padded_replay>,
};

}  // namespace lanescope::explain::rules
