#include "lanescope/explain/rules/row_loops.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

std::vector<std::vector<RowRound>> row_loops_of(const CallSequence& calls, const RowRounds& kind) {
  std::vector<std::vector<RowRound>> loops;
  std::vector<RowRound> rounds;
  const auto finish = [&] {
    if (rounds.size() >= kind.fewest_rounds) loops.push_back(rounds);
    rounds.clear();
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!rounds.empty() && i - rounds.back().last > kind.longest_pause) finish();
    const auto round = kind.round_at(calls, i);
    if (!round) continue;
    rounds.push_back(*round);
    i = round->last;
  }
  finish();
  return loops;
}

// Sequences of one thread, in the order of time.
std::vector<CallSequence> calls_by_thread(const Facts& facts) {
  std::map<std::uint32_t, CallSequence> by_track;
  for (const CallSequence& calls : call_sequences(facts))
    if (!calls.empty()) {
      CallSequence& all = by_track[raw(facts.trace->slices().track[raw(calls.front())])];
      all.insert(all.end(), calls.begin(), calls.end());
    }
  std::vector<CallSequence> result;
  for (auto& [track, calls] : by_track) result.push_back(std::move(calls));
  return result;
}

}  // namespace

std::optional<RowLoops> measure_row_loops(const Facts& facts, const RowRounds& kind) {
  const Trace& trace = *facts.trace;
  RowLoops found;
  std::vector<Window> later, finding, others;
  std::unordered_set<std::uint32_t> later_calls;
  for (const CallSequence& calls :
       kind.across_steps ? calls_by_thread(facts) : call_sequences(facts))
    for (const std::vector<RowRound>& rounds : row_loops_of(calls, kind)) {
      ++found.loops;
      found.rounds += rounds.size();
      if (rounds.size() > found.longest) {
        found.longest = rounds.size();
        found.find = calls[rounds.front().find];
        found.last = calls[rounds.front().last];
      }
      later.push_back(
          {trace.start_ns(calls[rounds[1].first]), trace.end_ns(calls[rounds.back().last])});
      for (std::size_t i = rounds[1].first; i <= rounds.back().last; ++i)
        later_calls.insert(raw(calls[i]));
      for (const RowRound& round : rounds) {
        const std::int64_t found_ns = trace.end_ns(calls[round.find]);
        finding.push_back({trace.start_ns(calls[round.first]), found_ns});
        others.push_back({found_ns, trace.end_ns(calls[round.last])});
      }
    }
  if (found.loops == 0) return std::nullopt;
  for (const std::uint32_t node : with_backward_nodes(facts, later_calls))
    if (!later_calls.contains(node))
      later.push_back({trace.start_ns(SliceId{node}), trace.end_ns(SliceId{node})});
  const auto lost = [&](std::vector<Window> windows) {
    return lost_in(facts, steady_parts(facts, joined(std::move(windows))));
  };
  found.waiting_ns = lost(std::move(later)).waiting_for_cpu_ns;
  found.after_waits_ns =
      lost(std::move(finding)).waiting_for_cpu_ns + lost(std::move(others)).after_waits_ns;
  return found;
}

}  // namespace lanescope::explain::rules
