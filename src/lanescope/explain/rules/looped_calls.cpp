// A loop of the program takes much of the step: many short calls, each with its launch. Its time is the CPU's.
#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastLoopedCallsShare = 0.1;  // of the critical path

bool is_move(std::string_view op) {
  constexpr std::string_view kMoves[] = {"aten::select", "aten::slice",     "aten::narrow",
                                         "aten::copy_",  "aten::unsqueeze", "aten::view",
                                         "aten::to",     "aten::item",      "aten::index_put_"};
  return std::find(std::begin(kMoves), std::end(kMoves), op) != std::end(kMoves);
}

// True: more than three fifths of the calls take a tensor apart or put it together, and no other call takes two fifths of
// the time. python-indexing reports such loops.
bool takes_apart(const Owner& owner) {
  constexpr std::uint64_t kMostCalls = 24;  // of a round that is about indexing
  if (owner.cell_size > kMostCalls) return false;
  if (!owner.parts.empty() && !is_move(owner.parts.front().name) &&
      owner.parts.front().time_ns * 5 >= owner.total_ns * 2)
    return false;
  const auto indexes = [](const std::string& call) {
    return call == "aten::select" || call == "aten::slice" || call == "aten::narrow";
  };
  const auto moves = std::count_if(owner.cell.begin(), owner.cell.end(), is_move);
  return std::any_of(owner.cell.begin(), owner.cell.end(), indexes) &&
         moves * 5 > static_cast<std::ptrdiff_t>(owner.cell.size()) * 3;
}

// True: each round waits, and not for a copy to the GPU that goes with the round. Copies alone are what other rules report.
bool waits_in_rounds(const Owner& owner) {
  const OwnerWork& work = owner.work;
  const bool has_kernels = work.launches - std::min(work.copies, work.launches) >= owner.rounds;
  return work.waits - (has_kernels ? work.upload_waits : 0) >= owner.rounds;
}

// True: some of its launch calls took much longer than others. Then these launches delay the CPU, not the loop.
bool has_slow_launches(const Owner& owner) {
  return owner.work.launch_spread.excess_ns * 20 >= owner.total_ns * 3;
}

// Does the loop begin after this place of the sequence? As many equal rounds follow, with the names of its cell.
bool begins_after(const Trace& trace, const CallSequence& calls, std::size_t place,
                  const Owner& owner) {
  const auto size = static_cast<std::size_t>(owner.cell_size);
  const std::size_t first = place + 1, end = first + size * rounds_of(owner);
  if (size == 0 || end > calls.size()) return false;
  const auto name_at = [&](std::size_t i) { return trace.slices().name[raw(calls[i])]; };
  for (std::size_t i = first + size; i < end; ++i)
    if (name_at(i) != name_at(i - size)) return false;
  std::set<std::string_view> round;
  for (std::size_t i = first; i < first + size; ++i) round.insert(trace.name(calls[i]));
  return round.contains("aten::item") && !round.contains("aten::unbind") &&
         std::all_of(owner.cell.begin(), owner.cell.end(),
                     [&](const std::string& each) { return round.contains(each); });
}

// The rounds work on the rows of one tensor, as in `for row in x` (aten::unbind directly before them), and one value is read in
// each: they need nothing of each other but the Python that puts these values into a list. A round that does not fit ends the
// comparison, so this is O(calls) for the loops of real programs.
bool reads_a_value_of_each_row(const Facts& facts, const Owner& owner) {
  if (owner.work.waits != owner.rounds) return false;
  const Trace& trace = *facts.trace;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (trace.name(calls[i]) == "aten::unbind" && begins_after(trace, calls, i, owner))
        return true;
  return false;
}

struct LoopedCalls {
  const Owner* loop = nullptr;
  std::vector<const Owner*> others;  // loops with the same remedy: its backward pass, equal rounds
  bool has_its_backward = false;     // `others` is its backward pass alone
  Sentence remedy;
  std::int64_t total_ns = 0, path_ns = 0;  // of these loops, of all steps
  std::int64_t saved_ns = 0;               // what all rounds but one cost the CPU
  std::uint64_t launches = 0, all_launches = 0;
};

std::int64_t saved_by_one_round(const Owner& owner) {
  const std::uint64_t rounds = rounds_of(owner);
  return rounds == 0 ? 0 : owner.cpu_ns() - owner.cpu_ns() / static_cast<std::int64_t>(rounds);
}

void add(const Owner& owner, LoopedCalls& found) {
  found.total_ns += owner.total_ns;
  found.saved_ns += saved_by_one_round(owner);
  found.launches += owner.work.launches;
}

std::optional<LoopedCalls> measure_looped_calls(const Facts& facts) {
  const Owners* owners = step_owners(facts);
  if (!owners) return std::nullopt;
  LoopedCalls best;
  best.path_ns = owners->total_ns;
  std::vector<std::pair<const Owner*, Sentence>> loops;
  const auto& phases = training_phases(facts);
  const auto is_of_optimizer = [&](const Owner& owner) {
    const SliceId call = cpu_side(facts, owner.example);
    return call != kNone<SliceId> && phases[raw(call)] == analysis::Phase::kOptimizer;
  };
  for (const Owner& owner : owners->owners) {
    // Other rules report waits for the GPU in each round, the optimizer's loop, and operators with advice of their own.
    if (owner.kind != OwnerKind::kLoop ||
        is_most(owner.total_ns - owner.cpu_ns(), owner.total_ns) || takes_apart(owner) ||
        has_slow_launches(owner) || is_of_optimizer(owner) || !is_cpu_time(mechanism_of(owner)))
      continue;
    if (reads_a_value_of_each_row(facts, owner) && !remedy_of_loop(facts, owner).pattern.empty()) {
      loops.emplace_back(&owner, say("Each round takes a row of one tensor: call the body once for "
                                     "all rows, and read all results in one copy"));
      continue;
    }
    if ((waits_in_rounds(owner) && !may_narrow_by_mask(facts, owner) &&
         !accumulates_gradients(facts, owner)) ||
        known_operator(facts, owner))
      continue;
    if (Sentence remedy = remedy_of_loop(facts, owner); !remedy.pattern.empty())
      loops.emplace_back(&owner, std::move(remedy));
  }
  for (const auto& [loop, remedy] : loops) {
    LoopedCalls found;
    found.path_ns = owners->total_ns;
    found.loop = loop;
    found.remedy = remedy;
    add(*loop, found);
    const Owner* backward = backward_of_loop(*owners, *loop);
    for (const auto& [other, other_remedy] : loops)
      if (other != loop && other != backward && other_remedy.pattern == remedy.pattern &&
          other->rounds == loop->rounds)
        found.others.push_back(other);
    if (backward && backward != loop) found.others.push_back(backward);
    found.has_its_backward = backward && found.others.size() == 1;
    for (const Owner* other : found.others) add(*other, found);
    if (found.saved_ns > best.saved_ns) best = std::move(found);
  }
  if (!best.loop || share_of(best.saved_ns, best.path_ns) < kLeastLoopedCallsShare)
    return std::nullopt;
  best.all_launches = steady_work(facts).size();
  return best;
}

Finding tell_looped_calls(const Facts& facts, const LoopedCalls& found) {
  const Owner& loop = *found.loop;
  const Value share = ratio(found.total_ns, found.path_ns);
  Finding finding;
  finding.verdict = say(facts, "{} of [a step's] time is ", {share});
  append(finding.verdict, owner_sentence(facts, loop));
  if (!found.others.empty()) append(finding.verdict, say("; with "));
  for (std::size_t i = 0; i < found.others.size(); ++i) {
    if (i > 0) append(finding.verdict, say(" and "));
    append(finding.verdict, owner_name(facts, *found.others[i]));
  }
  append(finding.verdict, say("."));
  finding.at_stake_ns = facts.per_step(found.saved_ns);
  finding.at_stake_ratio = share_of(found.saved_ns, found.path_ns);
  finding.arithmetic.push_back(say(
      facts,
      "{} of the critical path of {} [per step]; {} of it are the CPU's time in all rounds but one",
      {ns(facts.per_step(found.total_ns)), ns(facts.per_step(found.path_ns)),
       ns(finding.at_stake_ns)}));
  finding.arithmetic.push_back(say(
      facts, "{} of {} pieces of GPU work [per step] are launched in it",
      {count(found.launches / step_count(facts)), count(found.all_launches / step_count(facts))}));
  finding.evidence.push_back({loop.example, say("the longest of its calls")});
  for (const Owner* other : found.others)
    finding.evidence.push_back({other->example, say("the longest call of the other loop")});
  finding.try_next = {
      "where no round needs the one before it: make one call over all rounds (a batched operator, "
      "torch._foreach_*, torch.func.vmap)",
      "where each round needs the one before it: torch.compile its body, one fused operator "
      "(nn.LSTM), or a CUDA graph"};
  finding.confidence = facts.confidence();
  finding.sample_count = loop.rounds;
  finding.sample_noun = "round";
  finding.brief = say(facts, "{} of [a step's] time is ", {share});
  append(finding.brief, owner_name(facts, loop));
  if (!found.others.empty())
    append(finding.brief, say(found.has_its_backward     ? ", and its backward pass"
                              : found.others.size() == 1 ? ", and another loop like it"
                                                         : ", and other loops like it"));
  finding.action = found.remedy;
  // How much of a round's work is left is unknown.
  finding.gain_is_bound = may_narrow_by_mask(facts, loop);
  finding.explains.push_back({"python-indexing", finding.at_stake_ns});
  if (loop.repeats_graph) finding.explains.push_back({"repeated-backward", finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule looped_calls_rule = {
    .id = "looped-calls",
    .question = "could one call replace a loop of short ones?",
    .meant_by = "loop python calls launches rounds batch",
    .order = 125,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kMarkedSteps},
    .run = measure_and_tell<measure_looped_calls, tell_looped_calls>,
    .fix = Fix::kCpu,
    .covered_from = 0.5,
};

}  // namespace lanescope::explain::rules
