// Parts of the backward pass that take several times as long as their forward part.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_work.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

namespace {

// A backward part usually takes 1 to 2.6 times as long as its forward part, and up to 3.7 times if
// one kernel becomes several (docs/rules/slow-backward.md).
constexpr std::int64_t kUsual = 3;    // what it may cost
constexpr std::int64_t kUnusual = 5;  // from here on it is remarked on
// The engine's own time for each node, where times are those of the CPU.
constexpr std::int64_t kNodeOnCpuNs = 20'000;
constexpr double kLeastSlowBackwardShare = 0.05;

// What is known about nodes: data, one row per node.
struct NodeAdvice {
  std::string_view node;
  std::uint64_t least_calls;  // in a step: fewer are usual
  const char* meaning;        // "each {node} <meaning>"
  const char* action;
  // What takes the time, where the forward part is none to compare with; null: it is one.
  const char* brief = nullptr;
  bool is_bound = false;  // whether the action applies is not recorded, so no gain is predicted
  bool is_for_narrow_rows = false;  // not where recorded shapes say that the rows are wide
};
constexpr char kWholeGradient[] = "fills a gradient as large as the whole tensor with zeros";
constexpr char kTakeAllAtOnce[] =
    "Take all parts in one call (unbind, split, chunk): they get one gradient together";
// Corners of a tensor, such as the low frequencies of a spectrum, are no parts of a split.
constexpr char kSplitIfWhole[] =
    "If the slices together are the whole tensor: torch.split or chunk, with one gradient for all";
constexpr std::array kNodes = {
    NodeAdvice{"BackwardHookFunctionBackward", 1, "runs a module's full backward hooks",
               "Make those hooks cheaper (register_full_backward_hook), or hook fewer modules",
               "Full backward hooks of modules run in the backward pass"},
    NodeAdvice{"EmbeddingBackward0", 1, "fills a gradient as large as the table",
               "Use nn.Embedding(sparse=True) where the optimizer takes sparse gradients"},
    NodeAdvice{"EmbeddingBagBackward0", 1, "fills a gradient as large as the table",
               "Use nn.EmbeddingBag(sparse=True) where the optimizer takes sparse gradients"},
    NodeAdvice{"IndexBackward0", 1, "sorts the indices before it adds up the rows",
               "For rows of up to 16 numbers: x.index_select(0, index), which needs no sort",
               nullptr, false, true},
    NodeAdvice{"SelectBackward0", 4, kWholeGradient, kTakeAllAtOnce},
    NodeAdvice{"SliceBackward0", 4, kWholeGradient, kSplitIfWhole, nullptr, true},
    NodeAdvice{"TrilinearBackward0", 1, "multiplies for one output feature after the other",
               "Use one product: torch.einsum(\"bi,oij,bj->bo\", x1, weight, x2)"},
};

constexpr NodeAdvice kSteppedSlice{
    "SliceBackward0", 1,
    "fills a gradient as large as the whole tensor with zeros, where the slice's step skips most",
    "Compute only what x[::2] keeps: after a convolution, give it that stride"};

// Views whose backward part copies each gradient once, which is normal.
constexpr std::array<std::string_view, 8> kUsualViews = {
    "UnbindBackward0", "SplitBackward0",      "SplitWithSizesBackward0", "UnsafeSplitBackward0",
    "ExpandBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0",   "ViewBackward0"};

struct SlowPart {
  std::uint64_t calls = 0;
  std::int64_t forward_ns = 0, backward_ns = 0, excess_ns = 0;
  SliceId forward = kNone<SliceId>;  // of the call with most excess
  SliceId node = kNone<SliceId>;     // the longest of its nodes
  std::int64_t most_ns = -1;
  std::unordered_set<std::uint32_t> nodes;  // raw SliceIds
  // The name with most time among the kernels of its GPU work.
  SliceId top_kernel = kNone<SliceId>;
  std::int64_t top_kernel_ns = 0;
};

struct SlowBackward {
  std::vector<std::pair<std::string, SlowPart>> parts;  // by forward operator, most excess first
  Savings kernels;                                      // of the first
};

bool is_usual_view(const Trace& trace, const AutogradPair& pair) {
  return pair.forward_ns == 0 &&
         std::all_of(pair.nodes.begin(), pair.nodes.end(), [&](SliceId node) {
           return std::find(kUsualViews.begin(), kUsualViews.end(),
                            without_evaluate(trace.name(node))) != kUsualViews.end();
         });
}

void add_pair(const Facts& facts, const AutogradPair& pair, std::int64_t allowed_ns,
              SlowPart& part) {
  const Trace& trace = *facts.trace;
  ++part.calls;
  part.forward_ns += pair.forward_ns;
  part.backward_ns += pair.backward_ns;
  part.excess_ns += pair.backward_ns - allowed_ns;
  for (const SliceId node : pair.nodes) part.nodes.insert(raw(node));
  if (pair.backward_ns - allowed_ns <= part.most_ns) return;
  part.most_ns = pair.backward_ns - allowed_ns;
  part.forward = pair.forward;
  part.node = *std::max_element(pair.nodes.begin(), pair.nodes.end(), [&](SliceId a, SliceId b) {
    return trace.dur_ns(a) < trace.dur_ns(b);
  });
}

// Adds the longest kernels of a part, and the savings on them.
void add_kernels(const Facts& facts, SlowPart& part, Savings& savings) {
  const Trace& trace = *facts.trace;
  std::map<std::uint32_t, Named> by_name;
  for (const DeviceWork* work : steady_work(facts)) {
    if (work->work == analysis::WorkClass::kCommunication) continue;
    SliceId op = facts.links.op_of[raw(work->slice)];
    while (op != kNone<SliceId> && !part.nodes.contains(raw(op)))
      op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) continue;
    const std::int64_t time_ns = work->end_ns - work->start_ns;
    by_name[raw(trace.slices().name[raw(work->slice)])].add(work->slice, time_ns);
    const double saved = static_cast<double>(time_ns) * share_of(part.excess_ns, part.backward_ns);
    savings.add(work->slice, work->start_ns, work->end_ns, static_cast<std::int64_t>(saved));
  }
  savings.finish();
  for (const auto& [id, entry] : by_name)
    if (entry.time_ns > part.top_kernel_ns) {
      part.top_kernel_ns = entry.time_ns;
      part.top_kernel = entry.longest;
    }
}

std::optional<SlowBackward> measure_slow_backward(const Facts& facts) {
  std::map<std::string, SlowPart> parts;
  const auto allowed_ns = [&](const AutogradPair& pair, std::int64_t times) {
    return times * pair.forward_ns +
           (facts.main_device ? 0 : kNodeOnCpuNs * static_cast<std::int64_t>(pair.nodes.size()));
  };
  std::vector<AutogradPair> pairs = autograd_pairs(facts);
  if (!facts.main_device) take_shortest_of_equals(facts, pairs);
  std::erase_if(pairs, [&](const AutogradPair& pair) {
    return pair.backward_ns <= allowed_ns(pair, kUnusual) || is_usual_view(*facts.trace, pair);
  });
  erase_other_work(facts, pairs);
  for (const AutogradPair& pair : pairs)
    add_pair(facts, pair, allowed_ns(pair, kUsual),
             parts[std::string(facts.trace->name(pair.forward))]);
  SlowBackward found;
  for (auto& [label, part] : parts)
    if (share_of(part.excess_ns, facts.steady_wall_ns()) >= kLeastSlowBackwardShare)
      found.parts.emplace_back(label, std::move(part));
  if (found.parts.empty()) return std::nullopt;
  sort_rows(found.parts.begin(), found.parts.end(),
            [](const auto& a, const auto& b) { return a.second.excess_ns > b.second.excess_ns; });
  if (facts.main_device) add_kernels(facts, found.parts.front().second, found.kernels);
  return found;
}

// The recorded shape of a lookup says that its rows have more than 16 numbers.
bool takes_wide_rows(const Facts& facts, SliceId lookup) {
  constexpr double kNarrow = 16;
  const auto table = operator_inputs(*facts.trace, lookup).tensor(0);
  return table && table->rank() > 0 &&
         table->elements() > kNarrow * static_cast<double>(table->dims[0]);
}

const NodeAdvice* known_node(const Facts& facts, const SlowPart& part) {
  constexpr std::size_t kStepArgument = 4;  // of aten::slice(input, dim, start, end, step)
  const auto steps = step_count(facts);
  if (without_evaluate(facts.trace->name(part.node)) == kSteppedSlice.node)
    if (const auto step = operator_inputs(*facts.trace, part.forward).value(kStepArgument);
        step && step->integer && *step->integer >= 2)
      return &kSteppedSlice;
  for (const NodeAdvice& row : kNodes)
    if (row.node == without_evaluate(facts.trace->name(part.node)) &&
        part.calls >= row.least_calls * steps)
      return row.is_for_narrow_rows && takes_wide_rows(facts, part.forward) ? nullptr : &row;
  return nullptr;
}

// "takes 12 times its forward part", or only its time if the forward part does no GPU work.
Sentence against_forward(const Facts& facts, const std::string& label, const SlowPart& part) {
  const std::int64_t wall_ns = facts.steady_wall_ns();
  if (part.forward_ns == 0)
    return say(
        facts,
        "The backward part of {} takes {} [per step] ({}), and its forward part does no GPU "
        "work",
        {name(label), ns(facts.per_step(part.backward_ns)), ratio(part.backward_ns, wall_ns)});
  return say(
      facts,
      facts.main_device
          ? "The backward part of {} takes {} times as much GPU time as its forward part: {} "
            "against {} [per step] ({} of the time)"
          : "The backward part of {} takes {} times as long as its forward part: {} against {} "
            "[per step] ({} of the time)",
      {name(label), factor(part.backward_ns, part.forward_ns), ns(facts.per_step(part.backward_ns)),
       ns(facts.per_step(part.forward_ns)), ratio(part.backward_ns, wall_ns)});
}

// True: the node is of a class that the program derives from autograd.Function. Such names have no number at the end.
bool is_of_program(const Trace& trace, const SlowPart& part) {
  const std::string_view label = without_evaluate(trace.name(part.node));
  return label.ends_with("Backward") && !trace.name(part.forward).starts_with("aten::") &&
         !label.starts_with("Compiled");
}

void add_advice(const Facts& facts, const SlowPart& part, Finding& finding) {
  const std::string_view label = without_evaluate(facts.trace->name(part.node));
  if (const NodeAdvice* row = known_node(facts, part)) {
    finding.arithmetic.push_back(say("each {} {}", {name(label), text(row->meaning)}));
    finding.action = say(row->action);
    finding.try_next.emplace_back(row->action);
    finding.gain_is_bound = row->is_bound;
    return;
  }
  if (is_of_program(*facts.trace, part)) {
    finding.action = say("Make the backward() of {} cheaper: it is code of the program",
                         {name(facts.trace->name(part.forward))});
    finding.try_next.emplace_back(
        "it is the backward() of an autograd.Function that the program or a library defines");
    return;
  }
  // On a CPU, times of single calls differ by so much that a ratio alone is nothing to act on.
  if (!facts.main_device) finding.kind = FindingKind::kWhere;
  finding.action = say("To learn more: lanescope tree TRACE --op \"{}\"", {name(label)});
  finding.try_next.emplace_back(
      "look at what this node runs (lanescope tree --op), and whether another operator gives the "
      "same result");
}

Finding tell_slow_backward(const Facts& facts, const SlowBackward& found) {
  const auto& [label, part] = found.parts.front();
  Finding finding;
  finding.verdict = against_forward(facts, label, part);
  append(finding.verdict, say("."));
  if (facts.main_device) {
    rate_finding(facts, found.kernels, finding);
  } else {
    finding.at_stake_ns = facts.per_step(part.excess_ns);
    finding.at_stake_ratio = share_of(part.excess_ns, facts.steady_wall_ns());
  }
  finding.arithmetic.push_back(
      facts.main_device
          ? say(facts,
                "usual is at most 3 times the forward part, so {} - 3 x {} = {} [per step] is at "
                "stake",
                {ns(facts.per_step(part.backward_ns)), ns(facts.per_step(part.forward_ns)),
                 ns(facts.per_step(part.excess_ns))})
          : say(facts,
                "usual is at most 3 times the forward part and 20 us for each node, {} [per step] "
                "are more than that",
                {ns(facts.per_step(part.excess_ns))}));
  if (!facts.main_device)
    finding.arithmetic.push_back(say(
        "of calls with equal shapes the shortest counts for all: other work may hold the core in "
        "the others"));
  Sentence longest =
      say(facts, "{}, for {} [call|calls] of {}: the call with the most time",
          {name(without_evaluate(facts.trace->name(part.node))), count(part.calls), name(label)});
  add_line(facts, part.forward, longest);
  finding.evidence.push_back({part.node, std::move(longest)});
  finding.evidence.push_back({part.forward, say("its forward part")});
  if (part.top_kernel != kNone<SliceId>)
    finding.evidence.push_back(
        {part.top_kernel, say(facts, "{} of its backward is {}",
                              {ratio(part.top_kernel_ns, part.backward_ns),
                               kernel(facts.trace->name(part.top_kernel))})});
  for (std::size_t i = 1; i < found.parts.size() && i < 3; ++i)
    finding.evidence.push_back(
        {found.parts[i].second.node,
         against_forward(facts, found.parts[i].first, found.parts[i].second)});
  add_advice(facts, part, finding);
  finding.confidence = facts.confidence();
  finding.sample_count = part.calls;
  finding.sample_noun = "call";
  const NodeAdvice* row = known_node(facts, part);
  finding.brief =
      row != nullptr && row->brief != nullptr ? say(row->brief)
      : part.forward_ns == 0
          ? say(part.forward != kNone<SliceId> && is_view(facts.trace->name(part.forward))
                    ? "The backward pass of {} is costly, though its forward pass only makes a view"
                    : "The backward pass of {} is costly",
                {name(label)})
          : say(facts.main_device
                    ? "The backward part of {} takes {} times the GPU time of its forward"
                    : "The backward part of {} takes {} times its forward part",
                {name(label), factor(part.backward_ns, part.forward_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule slow_backward_rule = {
    .id = "slow-backward",
    .question = "do parts of the backward pass take many times as long as their forward part?",
    .meant_by = "backward gradient autograd node hook",
    .order = 446,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_slow_backward, tell_slow_backward>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
