// A step makes many equal results, but operators read few of them: previews that replace each other, clones of outputs that nothing takes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastUnreadShare = 0.05;
constexpr double kLeastUnreadElements = 4096;

// Name, shapes and types of a call, by the ids of their texts.
using ResultKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

ResultKey result_key_of(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto id = [&](ArgKey key) {
    const auto text = args.text(key);
    return text ? raw(*text) : ~std::uint32_t{0};
  };
  return {raw(trace.slices().name[raw(op)]), id(ArgKey::kInputDims), id(ArgKey::kInputType)};
}

bool is_clone(std::string_view op) { return op == "aten::clone"; }

// The size of a new tensor that the call makes; nothing: not known, or none is made.
std::optional<Sizes> new_size(const Trace& trace, SliceId op) {
  const std::string_view label = trace.name(op);
  // These may give the tensor that they take.
  constexpr std::string_view kPassing[] = {"aten::to", "aten::contiguous", "aten::detach",
                                           "aten::dropout", "aten::type_as"};
  if (label.ends_with('_') || is_view(label) || maker_kind(label) == MakerKind::kCompare ||
      std::find(std::begin(kPassing), std::end(kPassing), label) != std::end(kPassing))
    return std::nullopt;
  const auto shapes = first_input_shapes(trace, op);
  if (is_clone(label)) return shapes.size() == 1 ? std::optional(shapes[0]) : std::nullopt;
  if ((works_on_each_element(label) || result_kind(label) == ResultKind::kElementwise) &&
      input_shapes(trace, op).size() == 1)
    return shapes[0];
  return made_size(label, operator_inputs(trace, op));
}

// It may have made a tensor of this size, by its channels or its rows.
bool may_have_made(const Trace& trace, SliceId op, const Sizes& size) {
  const std::string_view label = trace.name(op);
  if (const auto made = new_size(trace, op)) return *made == size;
  const auto shapes = input_shapes(trace, op);
  if (shapes.empty() || shapes[0].size() != size.size() || size.size() < 2 ||
      shapes[0][0] != size[0])
    return false;
  if (label.starts_with("aten::conv"))
    return shapes.size() >= 2 && !shapes[1].empty() && shapes[1][0] == size[1];
  if (label.starts_with("aten::upsample_") || label.find("pool") != std::string_view::npos)
    return shapes[0][1] == size[1];
  return (works_on_each_element(label) || keeps_size(label) || is_view(label)) &&
         analysis::element_count(shapes[0]) == analysis::element_count(size);
}

// A tensor that a call takes. One of a list has no type.
struct TakenTensor {
  Sizes size;
  std::string type;
};

std::vector<TakenTensor> all_taken(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto dims_text = args.text(ArgKey::kInputDims), types_text = args.text(ArgKey::kInputType);
  const auto dims = dims_text ? parse_json(trace.text(*dims_text)) : std::nullopt;
  const auto types = types_text ? parse_json(trace.text(*types_text)) : std::nullopt;
  std::vector<TakenTensor> taken;
  if (!dims || !dims->is_array()) return taken;
  for (std::size_t i = 0; i < dims->items.size(); ++i) {
    const JsonValue& each = dims->items[i];
    if (auto size = analysis::sizes_of(each)) {
      if (!size->empty())
        taken.push_back({*std::move(size),
                         types && i < types->items.size() ? types->items[i].text : std::string()});
      continue;
    }
    if (!each.is_array()) continue;
    for (const JsonValue& listed : each.items)
      if (auto size = analysis::sizes_of(listed)) taken.push_back({*std::move(size), {}});
  }
  return taken;
}

// How many of them are of this size and type.
std::uint64_t count_of(const std::vector<TakenTensor>& taken, const TakenTensor& wanted) {
  return static_cast<std::uint64_t>(
      std::count_if(taken.begin(), taken.end(), [&](const TakenTensor& each) {
        return each.size == wanted.size &&
               (each.type == wanted.type || each.type.empty() || wanted.type.empty());
      }));
}

// Kernels that no operator launched may read anything. Graphs read only what was copied to where they look.
bool has_work_of_its_own(const Facts& facts) {
  for (const LaunchSequence& sequence : launch_sequences(facts))
    for (const LaunchedWork& each : sequence)
      if (facts.trace->kind(each.work->slice) == CategoryKind::kKernel &&
          outermost_operator_of(facts, each.call) == kNone<SliceId> &&
          facts.trace->name(each.call).find("GraphLaunch") == std::string_view::npos)
        return true;
  return false;
}

// Equal results of one step.
struct UnreadGroup {
  std::unordered_set<std::uint32_t> calls;  // that make them, and those that lead to them
  SliceId last = kNone<SliceId>;
  Sizes size;
  std::uint64_t made = 0, read = 0, length = 1;
};

class UnreadFinder {
 public:
  explicit UnreadFinder(const Facts& facts) : facts_(facts), trace_(*facts.trace) {
    for (const AutogradPair& pair : autograd_pairs(facts)) for_backward_.insert(raw(pair.forward));
  }

  std::vector<UnreadGroup> run() {
    for (const CallSequence& calls : call_sequences(facts_))
      if (!calls.empty() && !trace_.name(calls.front()).starts_with(kEvaluateNode)) find_in(calls);
    return std::move(groups_);
  }

 private:
  const std::vector<TakenTensor>& taken_by(const ResultKey& key, SliceId op) {
    const auto [at, is_new] = read_.try_emplace(key);
    if (is_new) at->second = all_taken(trace_, op);
    return at->second;
  }

  void find_in(const CallSequence& calls) {
    keys_.clear();
    taken_.clear();
    std::map<ResultKey, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      keys_.push_back(result_key_of(trace_, calls[i]));
      groups[keys_.back()].push_back(i);
      taken_.push_back(&taken_by(keys_.back(), calls[i]));
    }
    for (const auto& [key, at] : groups)
      if (at.size() >= 2) look_at(calls, at);
  }

  void look_at(const CallSequence& calls, const std::vector<std::size_t>& group) {
    const SliceId example = calls[group.back()];
    if (std::any_of(group.begin(), group.end(),
                    [&](std::size_t at) { return for_backward_.contains(raw(calls[at])); }))
      return;
    const auto size = new_size(trace_, example);
    if (!size || analysis::element_count(*size) < kLeastUnreadElements) return;
    const bool of_clones = is_clone(trace_.name(example));
    const std::unordered_set<std::size_t> own(group.begin(), group.end());
    // What it makes has the type of what it takes.
    const TakenTensor result{
        *size, taken_[group.back()]->empty() ? std::string() : taken_[group.back()]->front().type};
    std::uint64_t read = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::uint64_t taken = count_of(*taken_[i], result);
      // A call of the group takes what the call before it has made.
      const bool takes_other =
          own.contains(i) && taken == 1 && (of_clones || takes_what_precedes(calls, i, own, *size));
      if (!takes_other) read += taken;
    }
    if (read * 2 > group.size() || (read == 0 && !of_clones)) return;
    add(calls, group, *size, read);
  }

  // The call just before it, which is none of these, may have made the tensor of this size that it takes.
  bool takes_what_precedes(const CallSequence& calls, std::size_t at,
                           const std::unordered_set<std::size_t>& others, const Sizes& size) const {
    return at > 0 && !others.contains(at - 1) && may_have_made(trace_, calls[at - 1], size);
  }

  // Calls before those of the group that are the same for each, and whose results only the next of them takes.
  std::size_t lead_up(const CallSequence& calls, const std::vector<std::size_t>& group,
                      const Sizes& size) const {
    std::size_t length = 1;
    while (is_only_for_next(calls, group, size, length)) ++length;
    return length;
  }

  bool is_only_for_next(const CallSequence& calls, const std::vector<std::size_t>& group,
                        const Sizes& size, std::size_t back) const {
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t first_free = i == 0 ? 0 : group[i - 1] + 1;
      if (group[i] < first_free + back || keys_[group[i] - back] != keys_[group[0] - back])
        return false;
    }
    const SliceId maker = calls[group[0] - back];
    const auto taken = input_shapes(trace_, calls[group[0] - back + 1]);
    if (taken.empty() || trace_.name(maker).ends_with('_') ||
        !may_have_made(trace_, maker, taken[0]))
      return false;
    if (taken[0] == size) return true;  // all who take one have been counted
    // No call outside of these chains takes such a tensor, if not from another call.
    std::unordered_set<std::size_t> makers;
    for (const std::size_t end : group) makers.insert(end - back);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::uint64_t count = count_of(*taken_[i], {taken[0], {}});
      const bool is_in_chain = std::any_of(
          group.begin(), group.end(), [&](std::size_t end) { return i <= end && i + back >= end; });
      if (count > 0 && !is_in_chain &&
          !(count == 1 && takes_what_precedes(calls, i, makers, taken[0])))
        return false;
    }
    return true;
  }

  void add(const CallSequence& calls, const std::vector<std::size_t>& group, const Sizes& size,
           std::uint64_t read) {
    const std::size_t length =
        is_clone(trace_.name(calls[group[0]])) ? 1 : lead_up(calls, group, size);
    std::unordered_set<std::uint32_t> chain;
    for (const std::size_t end : group)
      for (std::size_t back = 0; back < length; ++back) chain.insert(raw(calls[end - back]));
    groups_.push_back({std::move(chain), calls[group.back()], size, group.size(), read, length});
  }

  const Facts& facts_;
  const Trace& trace_;
  std::unordered_set<std::uint32_t> for_backward_;
  // About the sequence that is looked at.
  std::vector<ResultKey> keys_;
  std::vector<const std::vector<TakenTensor>*> taken_;
  std::map<ResultKey, std::vector<TakenTensor>> read_;  // equal calls are read once
  std::vector<UnreadGroup> groups_;
};

struct UnreadResults {
  UnreadGroup most;  // the group whose results cost most
  std::uint64_t made = 0, groups = 0;
  std::unordered_set<std::uint32_t> calls;
  std::int64_t whole_ns = 0, cost_ns = 0;
};

std::int64_t unread_part(std::int64_t whole_ns, const UnreadGroup& group) {
  return static_cast<std::int64_t>(static_cast<double>(whole_ns) *
                                   static_cast<double>(group.made - group.read) /
                                   static_cast<double>(group.made));
}

std::optional<UnreadResults> measure_unread_results(const Facts& facts) {
  if (!facts.main_device || has_work_of_its_own(facts)) return std::nullopt;
  UnreadResults found;
  std::int64_t most_ns = -1;
  for (const UnreadGroup& group : UnreadFinder(facts).run()) {
    // The results of one group may be parts of another's lead-up.
    if (std::any_of(group.calls.begin(), group.calls.end(),
                    [&](std::uint32_t call) { return found.calls.contains(call); }))
      continue;
    const std::int64_t whole_ns = cost_of_calls(facts, group.calls);
    const std::int64_t cost_ns = unread_part(whole_ns, group);
    ++found.groups;
    found.made += group.made;
    found.whole_ns += whole_ns;
    found.cost_ns += cost_ns;
    found.calls.insert(group.calls.begin(), group.calls.end());
    if (cost_ns <= most_ns) continue;
    most_ns = cost_ns;
    found.most = group;
  }
  if (found.groups < facts.selection.steady.size() || found.groups == 0 ||
      share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnreadShare)
    return std::nullopt;
  return found;
}

Finding tell_unread_results(const Facts& facts, const UnreadResults& found) {
  const UnreadGroup& most = found.most;
  const Value op = name(facts.trace->name(most.last)), size = text(analysis::shape_text(most.size));
  const bool of_clones = is_clone(facts.trace->name(most.last));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} makes {} results of {} in a step, and later operators read at most {} of them: {} [per "
      "step] ({}) go into the others.",
      {op, count(most.made), size, count(most.read), ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.made, finding);
  finding.arithmetic.push_back(
      say("counted: equal calls of a step that make a tensor of one size, against the tensors of "
          "that size that other operators of the step take; where more are made than taken, the "
          "others are unread, unless the program keeps or returns them"));
  if (most.length > 1)
    finding.arithmetic.push_back(
        say(facts, "with the {} [call|calls] before each that are the same and lead to it alone",
            {count(most.length - 1)}));
  finding.evidence.push_back(called_at(facts, most.last, say("the last of these results")));
  finding.try_next = {
      of_clones ? "clone only the outputs that are read after the next replay or the next change; "
                  "the others may be read where they are"
                : "make the result where it is read: the last one only, or every n steps",
      "what no operator reads may still be returned, or kept for later than the recording"};
  for (const char* covered : {"exposed-copy", "hotspot-kernel", "unfused-chain", "costly-operator",
                              "memory-roof", "no-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} makes {} results of {}, and operators read {} of them",
          {op, count(most.made), size, most.read == 0 ? text("none") : count(most.read)});
  finding.action = of_clones ? say("Clone only the outputs that are read later")
                             : say("If the others are only replaced: make the one that is read");
  return finding;
}

}  // namespace

extern constinit const Rule unread_results_rule = {
    .id = "unread-results",
    .question = "are there results that nothing reads?",
    .meant_by = "unused result clone preview output discarded overwritten replaced",
    .order = 469,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_unread_results, tell_unread_results>,
};

}  // namespace lanescope::explain::rules
