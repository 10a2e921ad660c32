// Tensors that change their type, or the memory that they are in, and change back within one step.
// For pairs that follow each other closely, dtype-casts and cpu-round-trip have better advice; this
// rule finds the others.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/gloo_waits.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastBackAndForthShare = 0.05;
constexpr std::uint64_t kFewestPairs = 2;  // of a step: one may be its input or output
constexpr std::int64_t kLargestValueBytes = 4096;
// One pair of so many bytes, of the same shape, is a tensor that is swapped out: neither input nor output.
constexpr std::int64_t kLeastSwappedBytes = 4 << 20;

// A piece of GPU work that only changes the form of a tensor.
struct Change {
  std::string from, to;  // "float32", "CPU"
  std::string size;      // what both ways have in common: dimensions, or bytes
};

// aten::copy_(to, from) of one type into another.
std::optional<Change> change_of_type(const Trace& trace, SliceId op) {
  if (op == kNone<SliceId> || trace.name(op) != "aten::copy_") return std::nullopt;
  const ArgsView args = trace.slice_args(op);
  const auto types_text = args.text(ArgKey::kInputType), dims = args.text(ArgKey::kInputDims);
  const auto types = types_text ? parse_json(trace.text(*types_text)) : std::nullopt;
  if (!types || !dims || types->items.size() < 2) return std::nullopt;
  const std::string &to = types->items[0].text, &from = types->items[1].text;
  if (to.empty() || from.empty() || to == from || to == "Scalar" || from == "Scalar")
    return std::nullopt;
  return Change{analysis::python_type_name(from), analysis::python_type_name(to),
                std::string(trace.text(*dims))};
}

std::optional<Change> change_of_memory(const Facts& facts, SliceId work) {
  const std::int64_t size = bytes_of(facts, work);
  if (size <= kLargestValueBytes || is_copy_of_host_collective(facts, work)) return std::nullopt;
  const std::string_view label = facts.trace->name(work);
  if (label.starts_with("Memcpy DtoH")) return Change{"GPU", "CPU", std::to_string(size)};
  if (label.starts_with("Memcpy HtoD")) return Change{"CPU", "GPU", std::to_string(size)};
  return std::nullopt;
}

struct Pairs {
  std::uint64_t count = 0;
  std::int64_t time_ns = 0, most_ns = -1;
  SliceId first = kNone<SliceId>, back = kNone<SliceId>;  // of the longest
};

struct BackAndForth {
  // Keys: the form before, the form in between, and the size.
  std::map<std::tuple<std::string, std::string, std::string>, Pairs> pairs;
  std::uint64_t count = 0;
  Savings work;
  std::uint64_t swapped = 0;  // pairs of one tensor's size, out to the CPU and back
};

void add_pair(const LaunchedWork& first, const LaunchedWork& back, const Change& out,
              BackAndForth& found) {
  Pairs& pairs = found.pairs[{out.from, out.to, out.size}];
  std::int64_t time_ns = 0;
  for (const LaunchedWork* each : {&first, &back}) {
    const analysis::DeviceWork& work = *each->work;
    time_ns += work.end_ns - work.start_ns;
    found.work.add(work.slice, work.start_ns, work.end_ns, work.end_ns - work.start_ns);
  }
  ++found.count;
  ++pairs.count;
  pairs.time_ns += time_ns;
  if (time_ns <= pairs.most_ns) return;
  pairs.most_ns = time_ns;
  pairs.first = first.work->slice;
  pairs.back = back.work->slice;
}

enum class What { kType, kMemory };

// Copies of equal tensors, by the shapes and types of the operators that make them.
bool is_swap(const Facts& facts, SliceId out, SliceId back) {
  if (bytes_of(facts, out) < kLeastSwappedBytes) return false;
  const SliceId a = facts.links.op_of[raw(out)], b = facts.links.op_of[raw(back)];
  if (a == kNone<SliceId> || b == kNone<SliceId>) return false;
  const auto text = [&](SliceId op, ArgKey key) {
    const auto value = facts.trace->slice_args(op).text(key);
    return value ? facts.trace->text(*value) : std::string_view();
  };
  return facts.trace->name(a) == facts.trace->name(b) && !text(a, ArgKey::kInputDims).empty() &&
         text(a, ArgKey::kInputDims) == text(b, ArgKey::kInputDims) &&
         text(a, ArgKey::kInputType) == text(b, ArgKey::kInputType);
}

// The pairs in what a step launched. A change and the next one that undoes it are a pair.
void find_pairs(const Facts& facts, const LaunchSequence& sequence, What what,
                BackAndForth& found) {
  struct Open {
    const LaunchedWork* work;
    Change change;
  };
  std::map<std::string, std::vector<Open>> open;  // by size
  for (const LaunchedWork& each : sequence) {
    const bool is_copy = each.work->work == analysis::WorkClass::kCopy;
    auto change = is_copy ? change_of_memory(facts, each.work->slice) : std::nullopt;
    if ((what == What::kMemory) != change.has_value()) continue;
    if (!change) change = change_of_type(*facts.trace, facts.links.op_of[raw(each.work->slice)]);
    if (!change) continue;
    std::vector<Open>& waiting = open[change->size];
    const auto undone = std::find_if(waiting.rbegin(), waiting.rend(), [&](const Open& earlier) {
      return earlier.change.from == change->to && earlier.change.to == change->from;
    });
    if (undone == waiting.rend()) {
      // A batch that comes to the GPU and a result that goes to the CPU are no pair.
      if (change->from != "CPU") waiting.push_back({&each, *std::move(change)});
      continue;
    }
    add_pair(*undone->work, each, undone->change, found);
    if (what == What::kMemory && is_swap(facts, undone->work->work->slice, each.work->slice))
      ++found.swapped;
    waiting.erase(std::next(undone).base());
  }
}

// Those of all threads: what the forward pass copies to the CPU may come back on autograd's thread. A type
// may change in both passes for good reasons (autocast), so threads are apart there.
std::vector<LaunchSequence> by_step(const Facts& facts, std::vector<LaunchSequence> sequences) {
  std::map<std::size_t, LaunchSequence> steps;
  for (const LaunchSequence& sequence : sequences)
    for (const LaunchedWork& each : sequence)
      steps[steady_step_at(facts, facts.trace->start_ns(each.call))].push_back(each);
  std::vector<LaunchSequence> joined;
  for (auto& [step, sequence] : steps) {
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](const LaunchedWork& a, const LaunchedWork& b) {
                       return facts.trace->start_ns(a.call) < facts.trace->start_ns(b.call);
                     });
    joined.push_back(std::move(sequence));
  }
  return joined;
}

bool is_in_backward(const Facts& facts, SliceId work) {
  return ancestor_named(facts, facts.links.op_of[raw(work)], kEvaluateNode) != kNone<SliceId>;
}

std::optional<BackAndForth> measure_back_and_forth(const Facts& facts) {
  if (is_host_bound(facts)) return std::nullopt;  // shorter kernels would not shorten the step
  BackAndForth found;
  const std::vector<LaunchSequence>& sequences = launch_sequences(facts);
  for (const LaunchSequence& sequence : sequences) find_pairs(facts, sequence, What::kType, found);
  for (const LaunchSequence& sequence : by_step(facts, sequences))
    find_pairs(facts, sequence, What::kMemory, found);
  found.work.finish();
  const auto steps = step_count(facts);
  if ((found.count < kFewestPairs * steps && found.swapped < steps) ||
      wall_share(facts, found.work.time_ns()) < kLeastBackAndForthShare)
    return std::nullopt;
  return found;
}

Finding tell_back_and_forth(const Facts& facts, const BackAndForth& found) {
  std::vector<std::pair<std::tuple<std::string, std::string, std::string>, Pairs>> ranked(
      found.pairs.begin(), found.pairs.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  const auto& [from, to, size] = ranked.front().first;
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict =
      say(facts,
          "Tensors change their type or memory and change back, {} [time|times] [per step]: these "
          "conversions take {} [per step] ({}), most of them from {} to {} and back.",
          {count(found.count / steps), ns(facts.per_step(found.work.time_ns())),
           ratio(found.work.time_ns(), facts.wall.partition.wall_ns), text(from), text(to)});
  rate_finding(facts, found.work, finding);
  finding.arithmetic.push_back(
      say("counted: a conversion, and the next one of the same size in the step that undoes it"));
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const auto& [key, pairs] = ranked[i];
    Sentence line = say(facts, "{} to {} and back x{}, size {}: {} [per step]",
                        {text(std::get<0>(key)), text(std::get<1>(key)), count(pairs.count),
                         name(std::get<2>(key)), ns(facts.per_step(pairs.time_ns))});
    if (const Sentence place = user_code(facts, pairs.first); !place.pattern.empty()) {
      append(line, say(", "));
      append(line, place);
    }
    finding.evidence.push_back({pairs.first, std::move(line)});
    finding.evidence.push_back({pairs.back, say("the way back")});
  }
  finding.try_next = {
      "look at what runs between the two conversions: where it takes the first form "
      "as well, both can go",
      "where only one operator needs the other form, convert around the whole part "
      "that it belongs to, once"};
  finding.sample_count = found.count;
  finding.sample_noun = "pair";
  finding.brief = say(facts, "Tensors go from {} to {} and back, {} [time|times] [per step]",
                      {text(from), text(to), count(found.count / steps)});
  finding.action = say("Keep them in {} if the operators in between allow it", {text(from)});
  const Pairs& most = ranked.front().second;
  if (to == "CPU") {
    finding.explains.push_back({"pageable-copy", finding.at_stake_ns});
    finding.explains.push_back({"exposed-copy", finding.at_stake_ns});
    finding.action = say("Keep them on the GPU; what is seldom used may stay on the CPU");
    if (found.swapped >= steps && found.count < kFewestPairs * steps) {
      finding.brief = say(facts, "A tensor of {} goes to the CPU and comes back in each step",
                          {bytes(bytes_of(facts, ranked.front().second.first))});
      finding.action =
          say("If it is one tensor: copy only what is used or changed, or keep it on the GPU");
    }
  }
  if (to == "CPU" && is_in_backward(facts, most.back) && !is_in_backward(facts, most.first)) {
    finding.brief =
        say(facts,
            "Tensors go to the CPU and come back for the backward pass, {} [time|times] [per step]",
            {count(found.count / steps)});
    finding.action =
        say("Keep what is saved for the backward pass on the GPU, or checkpoint some layers");
    finding.try_next.insert(
        finding.try_next.begin(),
        "save_on_cpu and other hooks for saved tensors trade time for memory: use them only "
        "for the layers that do not fit, with pin_memory=True, or use torch.utils.checkpoint");
  }
  return finding;
}

}  // namespace

extern constinit const Rule back_and_forth_rule = {
    .id = "back-and-forth",
    .question = "do tensors change their type or memory and change back?",
    .meant_by = "conversion convert",
    .order = 667,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_back_and_forth, tell_back_and_forth>,
    .covered_from = 0.5,
};

}  // namespace lanescope::explain::rules
