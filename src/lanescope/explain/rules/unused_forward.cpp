// Operators run with gradients on, and no backward pass goes through them.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastUnusedForwardShare = 0.05;
constexpr std::size_t kFewestUnusedCalls = 3;  // of a step
constexpr std::size_t kFewestEqual = 4;  // neighbours that a backward pass goes through elsewhere
constexpr std::size_t kMostCompared = 2000;  // of a step

struct Call {
  SliceId op{};
  std::int64_t number = 0;  // of the next node when it began
  bool makes_nodes = false, is_used = false;
  bool is_detached = false;   // its result is used without its gradients
  bool is_chosen_by = false;  // its result is only used to choose, as for argmax
};

// Numbers of the nodes that ran, if one thread made them all.
std::optional<std::unordered_set<std::int64_t>> nodes_that_ran(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::unordered_set<std::int64_t> ran;
  std::optional<std::int64_t> thread;
  for (const SliceId id : backward_nodes(facts)) {
    const ArgsView args = trace.slice_args(id);
    const std::int64_t number = args.integer(ArgKey::kSequenceNumber).value_or(-1);
    if (number < 0) continue;
    const std::int64_t made_by = args.integer(ArgKey::kFwdThreadId).value_or(0);
    if (thread && *thread != made_by) return std::nullopt;
    thread = made_by;
    ran.insert(number);
  }
  if (ran.empty()) return std::nullopt;
  return ran;
}

// By thread, in order of time: outermost operators with a number, outside of the backward pass.
std::map<std::uint32_t, std::vector<Call>> numbered_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::uint32_t, std::vector<Call>> by_thread;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || trace.name(id).starts_with(kEvaluateNode))
      continue;
    const ArgsView args = trace.slice_args(id);
    const std::int64_t number = args.integer(ArgKey::kSequenceNumber).value_or(-1);
    if (number < 0 || args.integer(ArgKey::kFwdThreadId).value_or(0) != 0) continue;
    bool is_inside = false;
    for (SliceId up = facts.nesting.parent[i]; up != kNone<SliceId> && !is_inside;
         up = facts.nesting.parent[raw(up)])
      is_inside = trace.kind(up) == CategoryKind::kCpuOp &&
                  trace.slice_args(up).integer(ArgKey::kSequenceNumber).value_or(-1) >= 0;
    if (!is_inside) by_thread[raw(trace.slices().track[i])].push_back({id, number});
  }
  for (auto& [thread, calls] : by_thread)
    sort_rows(calls.begin(), calls.end(), [&](const Call& a, const Call& b) {
      return trace.start_ns(a.op) < trace.start_ns(b.op);
    });
  return by_thread;
}

// An operator that makes nodes advances the number; one that makes none leaves it to the next.
std::size_t find_uses(std::vector<Call>& calls, const std::unordered_set<std::int64_t>& ran) {
  constexpr std::int64_t kMostNodes = 4096;  // of one call; more is a gap in the recording
  std::size_t used = 0;
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    const std::int64_t end = calls[i + 1].number;
    if (end <= calls[i].number || end - calls[i].number > kMostNodes) continue;
    calls[i].makes_nodes = true;
    for (std::int64_t n = calls[i].number; n < end && !calls[i].is_used; ++n)
      calls[i].is_used = ran.contains(n);
    used += calls[i].is_used ? 1 : 0;
  }
  return used;
}

// Operators whose result has no gradient: the largest or smallest, a draw by probabilities, indices, or true and false.
bool is_choice(std::string_view op) {
  constexpr std::string_view kOps[] = {"aten::argmax",    "aten::argmin",  "aten::multinomial",
                                       "aten::bernoulli", "aten::argsort", "aten::searchsorted",
                                       "aten::bucketize", "aten::nonzero", "aten::gt",
                                       "aten::ge",        "aten::lt",      "aten::le",
                                       "aten::eq",        "aten::ne"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Their second result is the places of the values: integers, for which no node of autograd is made.
bool returns_places(std::string_view op) {
  return op == "aten::topk" || op == "aten::sort" || op == "aten::kthvalue";
}

// A result that is detached is used: of the calls before it, in a row, nothing could be left out. The same holds where the result
// decides what is chosen, as the nearest points by topk() of distances.
void mark_uses(const Trace& trace, std::vector<Call>& calls) {
  bool is_detached = false, is_chosen_by = false;
  for (std::size_t i = calls.size(); i-- > 0;) {
    if (!calls[i].makes_nodes || calls[i].is_used) {
      is_detached = trace.name(calls[i].op) == "aten::detach";
      is_chosen_by = is_choice(trace.name(calls[i].op));
    } else {
      is_chosen_by = is_chosen_by || returns_places(trace.name(calls[i].op));
      calls[i].is_detached = is_detached;
      calls[i].is_chosen_by = is_chosen_by;
    }
  }
}

struct StepCalls {
  std::vector<SliceId> used, unused;
};

// Names and shapes: the longest stretch that both have.
std::size_t longest_equal(const Trace& trace, const StepCalls& step) {
  const auto symbols = [&](const std::vector<SliceId>& calls) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (std::size_t i = 0; i < calls.size() && i < kMostCompared; ++i) {
      const auto dims = trace.slice_args(calls[i]).text(ArgKey::kInputDims);
      found.emplace_back(raw(trace.slices().name[raw(calls[i])]), dims ? raw(*dims) + 1 : 0);
    }
    return found;
  };
  const auto a = symbols(step.used), b = symbols(step.unused);
  std::size_t longest = 0;
  std::vector<std::size_t> row(b.size() + 1, 0);
  for (const auto& each : a)
    for (std::size_t k = b.size(); k-- > 0;) {
      row[k + 1] = each.second != 0 && each == b[k] ? row[k] + 1 : 0;
      longest = std::max(longest, row[k + 1]);
    }
  return longest;
}

struct UnusedForward {
  std::uint64_t calls = 0;
  std::size_t equal = 0;  // as longest_equal(), of the first such step
  std::int64_t cost_ns = 0;
  std::int64_t calls_ns = 0, choosing_ns = 0;  // times of the calls; of those whose result chooses
  std::map<std::string, Named> by_name;
};

std::optional<UnusedForward> measure_unused_forward(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto ran = nodes_that_ran(facts);
  if (!ran) return std::nullopt;
  auto by_thread = numbered_calls(facts);
  std::vector<Call>* calls = nullptr;  // of the thread that made the nodes
  std::size_t most = 0;
  for (auto& [thread, each] : by_thread)
    if (const std::size_t used = find_uses(each, *ran); used > most) {
      most = used;
      calls = &each;
    }
  if (!calls) return std::nullopt;
  mark_uses(trace, *calls);
  std::map<std::size_t, StepCalls> steps;
  UnusedForward found;
  for (const Call& call : *calls) {
    const std::size_t step = steady_step_at(facts, trace.start_ns(call.op));
    if (step != ~std::size_t{0} && call.makes_nodes && !call.is_detached)
      (call.is_used ? steps[step].used : steps[step].unused).push_back(call.op);
    if (step == ~std::size_t{0} || !call.makes_nodes || call.is_detached || call.is_used) continue;
    found.calls_ns += trace.dur_ns(call.op);
    if (call.is_chosen_by) found.choosing_ns += trace.dur_ns(call.op);
  }
  std::unordered_set<std::uint32_t> unused;
  std::size_t such_steps = 0;
  for (const auto& [index, step] : steps) {
    // A step without its own backward pass may be one of several whose gradients come later.
    if (step.used.empty() || step.unused.size() < kFewestUnusedCalls) continue;
    if (such_steps++ == 0) found.equal = longest_equal(trace, step);
    if (found.equal * 5 < step.used.size() * 3)
      found.equal = 0;  // a part of what is used, by chance
    for (const SliceId op : step.unused) {
      unused.insert(raw(op));
      found.by_name[std::string(trace.name(op))].add(op, trace.dur_ns(op));
    }
  }
  if (such_steps * 2 <= facts.selection.steady.size()) return std::nullopt;
  found.calls = unused.size();
  found.cost_ns = cost_of_calls(facts, unused);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnusedForwardShare)
    return std::nullopt;
  return found;
}

bool is_bound_by_gpu(const Facts& facts) {
  return facts.main_device && find_bound(facts) == Bound::kCompute;
}

Finding tell_unused_forward(const Facts& facts, const UnusedForward& found) {
  const bool is_again = found.equal >= kFewestEqual;
  const std::uint64_t calls = found.calls / step_count(facts);
  const auto largest = std::max_element(
      found.by_name.begin(), found.by_name.end(),
      [](const auto& a, const auto& b) { return a.second.time_ns < b.second.time_ns; });
  Finding finding;
  finding.verdict =
      say(facts,
          "{} operators [per step], mostly {}, run with gradients on, and no backward "
          "pass goes through them: {} [per step] ({}).",
          {count(calls), name(largest->first), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.arithmetic.push_back(say(
      "counted: operators that made nodes of autograd of which none ran in the whole recording; "
      "without its result all of this time goes, under torch.no_grad() the operators still run"));
  if (is_again)
    finding.arithmetic.push_back(
        say("{} of them in a row have names and shapes of operators that a backward pass of the "
            "same step goes through; the trace does not show whether their values are equal, too",
            {count(found.equal)}));
  add_named(facts, found.by_name, finding);
  // They are needed, and without nodes of autograd they take nearly as long.
  if (!is_again && found.choosing_ns * 2 > found.calls_ns) {
    finding.kind = FindingKind::kWhere;
    finding.at_stake_ns = 0;
    finding.at_stake_ratio = 0;
    finding.arithmetic.push_back(
        say("{} of their time leads to a choice (argmax, topk, a comparison, a draw), which uses "
            "the result",
            {ratio(found.choosing_ns, found.calls_ns)}));
    finding.try_next = {"compute what only chooses under torch.no_grad(): this saves memory"};
    return finding;
  }
  // The trace does not show whether something uses the result, and without gradients the GPU works as long.
  if (!is_again && is_bound_by_gpu(facts)) {
    finding.kind = FindingKind::kWhere;
    finding.at_stake_ns = 0;
    finding.at_stake_ratio = 0;
    finding.arithmetic.push_back(
        say("the GPU is the limit: under torch.no_grad() its work stays, so only a call whose "
            "result nothing uses gives time back"));
  }
  finding.try_next = {"leave the call out if nothing uses its result",
                      "for validation, metrics and targets compute it under torch.no_grad() or "
                      "torch.inference_mode(): then nothing is kept for a backward pass"};
  if (is_again)
    finding.try_next.insert(finding.try_next.begin(),
                            "if model and input are the same, use the first result again "
                            "(detach() it)");
  finding.brief =
      say(is_again
              ? "{} operators, mostly {}, look like the loss's forward pass once more, and no "
                "backward pass goes through them"
              : "No backward pass goes through {} operators, mostly {}, that run with gradients on",
          {count(calls), name(largest->first)});
  finding.action =
      say(is_again ? "Same input: use the first result again. Validation: torch.no_grad()"
                   : "Leave them out if nothing uses the result; else torch.no_grad()");
  return finding;
}

}  // namespace

extern constinit const Rule unused_forward_rule = {
    .id = "unused-forward",
    .question = "do operators prepare for a backward pass that never runs?",
    .meant_by = "no_grad inference_mode validation unused twice gradients record",
    .order = 441,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unused_forward, tell_unused_forward>,
    .fix = Fix::kNone,
};

}  // namespace lanescope::explain::rules
