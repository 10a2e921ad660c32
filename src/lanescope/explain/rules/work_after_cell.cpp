// A loop over time steps in which the loss of each step is computed right after its recurrent cell.
//
// Problem: a cell needs the state that the one before it left, so the rounds must follow each other. What only the loss needs does
// not: projections, a distribution, its checks. The trace does not show which tensor is which. Idea: after a round's last cell
// follow many calls that end in a mean, a sum or a loss, and none of them chooses a value for the next round. Example:
// 20 x (cat, lstm_cell, linear, softplus, lgamma, mean, sub): linear to mean may run once, on 20 states.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/operator_advice.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastAfterCellShare = 0.1;
constexpr std::size_t kFewestCellRounds = 4, kFewestCallsAfter = 4, kMostCallsOfRound = 512;

bool reduces_to_loss(std::string_view op) {
  return op == "aten::mean" || op == "aten::sum" || op.ends_with("_loss") ||
         op.find("nll_loss") != op.npos || op == "aten::binary_cross_entropy_with_logits";
}

// The next round may take the value that these choose or draw.
bool chooses_for_next_round(std::string_view op) {
  static constexpr std::string_view kChoosing[] = {
      "aten::argmax", "aten::argmin",    "aten::multinomial", "aten::topk",   "aten::sort",
      "aten::item",   "aten::bernoulli", "aten::randn",       "aten::normal", "aten::randn_like"};
  return std::find(std::begin(kChoosing), std::end(kChoosing), op) != std::end(kChoosing) ||
         op.find("Backward") != op.npos;
}

// Before the loss: an attention, whose result often is an input of the next round.
bool reads_for_next_round(std::string_view op) {
  return op == "aten::softmax" || op == "aten::bmm" || op == "aten::baddbmm" ||
         op == "aten::embedding" || op.find("attention") != op.npos;
}

// The calls of each round from its last cell to the loss.
struct CellLoop {
  SliceId cell = kNone<SliceId>;
  std::vector<std::vector<SliceId>> rounds;
};

// Where a round's last cell is: calls follow that are no cells.
std::vector<std::size_t> last_cells(const Trace& trace, const CallSequence& calls) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i + 1 < calls.size(); ++i)
    if (is_recurrent_cell(trace.name(calls[i])) && !is_recurrent_cell(trace.name(calls[i + 1])))
      places.push_back(i);
  return places;
}

// How many calls lead from this cell to the last mean, sum or loss before the next cell; 0: none, or one of them may feed
// the next round.
std::size_t calls_to_loss(const Trace& trace, const CallSequence& calls, std::size_t cell,
                          std::size_t next_cell) {
  std::size_t found = 0;
  bool reads = false;
  for (std::size_t i = cell + 1; i < next_cell; ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (chooses_for_next_round(op)) return 0;
    reads = reads || reads_for_next_round(op);
    if (!reads && reduces_to_loss(op)) found = i - cell;
  }
  return found;
}

// Do the calls from this place on have the names of these?
bool are_called_at(const Trace& trace, const std::vector<SliceId>& wanted,
                   const CallSequence& calls, std::size_t place) {
  return wanted.size() <= calls.size() - place &&
         std::equal(wanted.begin(), wanted.end(),
                    calls.begin() + static_cast<std::ptrdiff_t>(place),
                    [&](SliceId one, SliceId other) {
                      return trace.slices().name[raw(one)] == trace.slices().name[raw(other)];
                    });
}

// The loops of one sequence. Rounds of different cells, of an encoder and a decoder, are two loops.
std::vector<CellLoop> cell_loops(const Trace& trace, const CallSequence& calls) {
  std::vector<CellLoop> loops;
  const std::vector<std::size_t> cells = last_cells(trace, calls);
  for (std::size_t k = 0; k < cells.size(); ++k) {
    std::size_t next_cell = cells[k] + 1, size = 0;
    while (next_cell < calls.size() && !is_recurrent_cell(trace.name(calls[next_cell])))
      ++next_cell;
    // After the last round other work follows, which may end in a mean, too.
    if (!loops.empty() && are_called_at(trace, loops.back().rounds.front(), calls, cells[k] + 1))
      size = loops.back().rounds.front().size();
    else if (next_cell < calls.size() && next_cell - cells[k] <= kMostCallsOfRound)
      size = calls_to_loss(trace, calls, cells[k], next_cell);
    if (size < kFewestCallsAfter) continue;
    const auto first = calls.begin() + static_cast<std::ptrdiff_t>(cells[k] + 1);
    std::vector<SliceId> round(first, first + static_cast<std::ptrdiff_t>(size));
    if (loops.empty() || loops.back().rounds.front().size() != size ||
        !are_called_at(trace, loops.back().rounds.front(), calls, cells[k] + 1))
      loops.push_back({calls[cells[k]], {}});
    loops.back().rounds.push_back(std::move(round));
  }
  std::erase_if(loops, [](const CellLoop& loop) { return loop.rounds.size() < kFewestCellRounds; });
  return loops;
}

struct WorkAfterCell {
  CellLoop longest;
  std::uint64_t rounds = 0, calls = 0;  // of all loops
  std::int64_t waiting_ns = 0;          // of the GPU, in all rounds but one
  std::uint64_t waits = 0;              // of the CPU, in these rounds
};

std::uint64_t waits_in(const Facts& facts, const std::vector<Window>& windows) {
  const Trace& trace = *facts.trace;
  std::uint64_t waits = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (const SliceId call{i}; is_api_call(trace.kind(call)) &&
                               inside(windows, trace.start_ns(call)) &&
                               analysis::is_blocking_call(trace, facts.links, call))
      ++waits;
  return waits;
}

std::optional<WorkAfterCell> measure_work_after_cell(const Facts& facts) {
  const Trace& trace = *facts.trace;
  WorkAfterCell found;
  std::unordered_set<std::uint32_t> spared;
  std::vector<Window> windows;
  for (const CallSequence& calls : call_sequences(facts))
    for (CellLoop& loop : cell_loops(trace, calls)) {
      for (std::size_t round = 1; round < loop.rounds.size(); ++round) {
        const std::vector<SliceId>& its = loop.rounds[round];
        windows.push_back({trace.start_ns(its.front()), trace.end_ns(its.back())});
        found.calls += its.size();
        for (const SliceId call : its) spared.insert(raw(call));
      }
      found.rounds += loop.rounds.size();
      if (loop.rounds.size() > found.longest.rounds.size()) found.longest = std::move(loop);
    }
  if (found.rounds == 0) return std::nullopt;
  windows = joined(std::move(windows));
  found.waits = waits_in(facts, windows);
  const std::unordered_set<std::uint32_t> with_nodes = with_backward_nodes(facts, spared);
  if (with_nodes.size() == spared.size()) return std::nullopt;  // no loss is trained
  for (const std::uint32_t node : with_nodes)
    if (!spared.contains(node))
      windows.push_back({trace.start_ns(SliceId{node}), trace.end_ns(SliceId{node})});
  found.waiting_ns =
      lost_in(facts, steady_parts(facts, joined(std::move(windows)))).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastAfterCellShare)
    return std::nullopt;
  return found;
}

Finding tell_work_after_cell(const Facts& facts, const WorkAfterCell& found) {
  const Trace& trace = *facts.trace;
  const CellLoop& loop = found.longest;
  const std::vector<SliceId>& round = loop.rounds.front();
  Finding finding;
  finding.brief = say("In each of {} rounds, {} calls follow {}, {} to {}",
                      {count(loop.rounds.size()), count(round.size()), name(trace.name(loop.cell)),
                       name(trace.name(round.front())), name(trace.name(round.back()))});
  finding.verdict = finding.brief;
  append(finding.verdict,
         say(facts, ": in all rounds but one the GPU waits {} [per step] for them.",
             {ns(facts.per_step(found.waiting_ns))}));
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.steady_wall_ns());
  finding.waiting_ns = finding.at_stake_ns;
  finding.arithmetic.push_back(
      say("counted: calls from a round's last cell to the last mean, sum or loss of the round, "
          "with their backward parts; none of them chooses a value or reads one"));
  if (found.waits > 0)
    finding.arithmetic.push_back(
        say(facts, "the CPU waits for the GPU {} [time|times] in the recorded rounds but one",
            {count(found.waits)}));
  finding.arithmetic.push_back(
      say("the trace does not show whether the next round takes one of their results"));
  finding.evidence.push_back(called_at(facts, round.front(), say("the first of these calls")));
  finding.evidence.push_back(called_at(facts, round.back(), say("the last of them")));
  finding.try_next = {
      "if the next round takes none of their results: append the cell's output to a list in the "
      "loop, torch.stack the list after it, and call the rest once",
      "if all inputs are known ahead, nn.LSTM or nn.GRU replaces the loop itself"};
  finding.action =
      say("If only the loss needs them: collect the cell's outputs, torch.stack them after the "
          "loop, and call the rest once");
  finding.confidence = facts.confidence();
  finding.sample_count = found.rounds;
  finding.sample_noun = "round";
  finding.explains.push_back({"looped-calls", finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule work_after_cell_rule = {
    .id = "work-after-cell",
    .question = "does a loop over time steps compute in each round what could follow it once?",
    .meant_by = "rnn lstm gru loop time likelihood",
    .order = 131,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kMarkedSteps},
    .run = measure_and_tell<measure_work_after_cell, tell_work_after_cell>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
