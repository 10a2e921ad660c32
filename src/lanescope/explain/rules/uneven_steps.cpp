// Steps come in two lengths. Often the slow ones do something that the others do not.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/extra_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

struct Medians {
  std::int64_t low_ns = 0, high_ns = 0;
};

Medians medians_of(const std::vector<std::int64_t>& lengths, std::size_t cut) {
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(cut);
  return {analysis::median_of_steps({lengths.begin(), middle}),
          analysis::median_of_steps({middle, lengths.end()})};
}

// Cuts the sorted lengths into [0, cut) and [cut, n), where two neighbours are farthest apart. Both
// parts must have at least two steps. The upper part's median must be at least 1.2 times the lower
// part's. The gap at the cut must be wider than either part. 0: there is no such cut.
std::size_t find_cut(const std::vector<std::int64_t>& lengths) {
  std::size_t cut = 0;
  std::int64_t widest = -1;
  for (std::size_t i = 2; i + 2 <= lengths.size(); ++i) {
    if (lengths[i] - lengths[i - 1] <= widest) continue;
    widest = lengths[i] - lengths[i - 1];
    cut = i;
  }
  if (cut == 0) return 0;
  const auto [low, high] = medians_of(lengths, cut);
  return wide(high) * 10 >= wide(low) * 12 && widest > lengths[cut - 1] - lengths.front() &&
                 widest > lengths.back() - lengths[cut]
             ? cut
             : 0;
}

// The index of the window that contains this time; nothing: no window does. The windows are disjoint and in order.
std::optional<std::size_t> window_at(const std::vector<Window>& windows, std::int64_t time_ns) {
  const auto after =
      std::upper_bound(windows.begin(), windows.end(), time_ns,
                       [](std::int64_t time, const Window& each) { return time < each.start_ns; });
  if (after == windows.begin() || time_ns >= std::prev(after)->end_ns) return std::nullopt;
  return static_cast<std::size_t>(after - windows.begin()) - 1;
}

struct StepEntry {
  std::int64_t time_ns[2] = {0, 0};  // [0]: in usual steps, [1]: in slow ones
  std::uint64_t count[2] = {0, 0};
  SliceId in_slow = kNone<SliceId>;
};
struct Extra {
  bool on_gpu = false;
  std::int64_t usual_ns = 0, slow_ns = 0;  // mean per step
  SliceId slice = kNone<SliceId>;
};

// Sums up GPU work and the launching thread's self time by name, for usual and for slow steps.
class StepContents {
 public:
  StepContents(const Facts& facts, const std::vector<char>& is_slow)
      : facts_(facts), is_slow_(is_slow) {
    for (const std::size_t index : facts.selection.steady) {
      gpu_windows_.push_back(facts.step_window(index));
      const auto& step = facts.steps.steps[index];
      cpu_windows_.push_back({step.cpu_start_ns, step.cpu_end_ns});
    }
    if (facts.main_device)
      for (const auto& work : facts.device().timeline.work)
        add(true, window_at(gpu_windows_, work.start_ns), work.slice, work.end_ns - work.start_ns);
    const TrackId thread = facts.cpu ? facts.cpu->thread : facts.main_thread;
    if (thread == kNone<TrackId>) return;
    const Track& track = facts.trace->track(thread);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (facts.nesting.depth[i] == analysis::SliceNesting::kNotNested ||
          facts.trace->name(id).starts_with("ProfilerStep#"))
        continue;
      add(false, window_at(cpu_windows_, facts.trace->start_ns(id)), id, facts.nesting.self_ns[i]);
    }
  }

  // The names that cause more than a tenth of the difference, the largest first.
  std::vector<Extra> extras(std::int64_t difference_ns) const {
    const auto slow_steps =
        static_cast<std::int64_t>(std::count(is_slow_.begin(), is_slow_.end(), 1));
    const auto usual_steps = static_cast<std::int64_t>(is_slow_.size()) - slow_steps;
    std::vector<Extra> extras;
    for (const auto& [key, entry] : entries_) {
      const Extra extra{key.first, entry.time_ns[0] / usual_steps, entry.time_ns[1] / slow_steps,
                        entry.in_slow};
      if (wide(extra.slow_ns - extra.usual_ns) * 10 > difference_ns) extras.push_back(extra);
    }
    sort_rows(extras.begin(), extras.end(), [&](const Extra& a, const Extra& b) {
      const std::int64_t left = a.slow_ns - a.usual_ns, right = b.slow_ns - b.usual_ns;
      return left != right ? left > right
                           : facts_.trace->name(a.slice) < facts_.trace->name(b.slice);
    });
    return extras;
  }

  // True: the machine was slower, not the program. Slow and usual steps do the same work (is_same_work()). CPU events cause more
  // than half of the difference, and no single event name causes half of their part. A step with more work fails one of these tests.
  bool is_machine(std::int64_t difference_ns) const {
    const Longer longer = longer_in_slow();
    return is_same_work(difference_ns) && wide(longer.on_cpu_ns) * 2 > difference_ns &&
           wide(longer.most_on_cpu_ns) * 2 < longer.on_cpu_ns;
  }

  // True: slow and usual steps have the same calls and the same GPU work, and the GPU work takes about as long in both.
  bool is_same_work(std::int64_t difference_ns) const {
    const Longer longer = longer_in_slow();
    return facts_.main_device && longer.has_same_counts &&
           wide(longer.on_gpu_ns) * 10 < difference_ns;
  }

 private:
  // How much longer the events of a slow step take than those of a usual one: means per step.
  struct Longer {
    bool has_same_counts = true;
    std::int64_t on_gpu_ns = 0, on_cpu_ns = 0;
    std::int64_t most_on_cpu_ns = 0;  // the largest part that one name has
  };
  Longer longer_in_slow() const {
    const auto slow_steps =
        static_cast<std::int64_t>(std::count(is_slow_.begin(), is_slow_.end(), 1));
    const auto usual_steps = static_cast<std::int64_t>(is_slow_.size()) - slow_steps;
    Longer longer;
    for (const auto& [key, entry] : entries_) {
      longer.has_same_counts &= wide(entry.count[0]) * static_cast<std::uint64_t>(slow_steps) ==
                                wide(entry.count[1]) * static_cast<std::uint64_t>(usual_steps);
      const std::int64_t each = entry.time_ns[1] / slow_steps - entry.time_ns[0] / usual_steps;
      (key.first ? longer.on_gpu_ns : longer.on_cpu_ns) += each;
      if (!key.first) longer.most_on_cpu_ns = std::max(longer.most_on_cpu_ns, each);
    }
    return longer;
  }

  void add(bool on_gpu, std::optional<std::size_t> step, SliceId slice, std::int64_t time_ns) {
    if (!step) return;
    StepEntry& entry = entries_[{on_gpu, raw(facts_.trace->slices().name[raw(slice)])}];
    const bool slow = is_slow_[*step] != 0;
    entry.time_ns[slow ? 1 : 0] += time_ns;
    ++entry.count[slow ? 1 : 0];
    if (slow && entry.in_slow == kNone<SliceId>) entry.in_slow = slice;
  }

  const Facts& facts_;
  const std::vector<char>& is_slow_;
  std::vector<Window> gpu_windows_, cpu_windows_;
  std::map<std::pair<bool, std::uint32_t>, StepEntry> entries_;
};

std::string numbers_text(const Facts& facts, const std::vector<std::size_t>& slow) {
  std::string text;
  for (std::size_t i = 0; i < slow.size() && i < 8; ++i)
    text += (i == 0 ? "" : ", ") +
            std::to_string(facts.steps.steps[facts.selection.steady[slow[i]]].number.value_or(0));
  return slow.size() > 8 ? text + ", ..." : text;
}

constexpr Need kSixSteadySteps = {
    [](const Facts& facts) { return facts.steps.marked && facts.selection.steady.size() >= 6; },
    "six steps or more without start-up (schedule(warmup=1, active=8))"};

struct UnevenSteps {
  std::vector<std::size_t> slow;  // indices into Facts::selection.steady, ascending
  Medians medians;
  std::int64_t over_ns = 0;          // sum over slow steps: length minus the median of the others
  std::optional<std::size_t> every;  // one step in this many is slow
  std::vector<Extra> extras;
  bool is_machine = false;    // StepContents::is_machine
  bool is_same_work = false;  // StepContents::is_same_work
  ExtraWork work;             // what slow steps do and the others do not
};

// The distance from one slow step to the next, if it is always the same. Nothing: it varies, there are fewer than three slow
// steps, or no usual steps lie between them.
std::optional<std::size_t> period_of(const Facts& facts, const std::vector<std::size_t>& slow) {
  if (slow.size() < 3) return std::nullopt;
  const auto place = [&](std::size_t i) { return facts.selection.steady[slow[i]]; };
  for (std::size_t i = 2; i < slow.size(); ++i)
    if (place(i) - place(i - 1) != place(1) - place(0)) return std::nullopt;
  return place(1) - place(0) > 1 ? std::optional(place(1) - place(0)) : std::nullopt;
}

// True: at least two steps are slow, and they are the first ones. They may belong to the start-up.
bool are_first(const UnevenSteps& found) {
  return found.slow.size() >= 2 && found.slow.back() + 1 == found.slow.size();
}

void tell_first_steps(const UnevenSteps& found, Finding& finding) {
  append(finding.verdict, say(" The first {} are the slow ones.", {count(found.slow.size())}));
  finding.kind = FindingKind::kTrust;
  finding.try_next = {
      "warm up for more steps before you record (schedule(warmup=...)): memory, clocks and the "
      "choice of kernels settle in the first ones",
      "if they are no start-up: look at what they do that the others do not"};
  finding.action = say("Warm up for more steps before you record");
  finding.confidence = Confidence::kMedium;
}

std::optional<UnevenSteps> measure_uneven_steps(const Facts& facts) {
  const std::size_t steps = facts.selection.steady.size();
  std::vector<std::size_t> order(steps);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto length = [&](std::size_t i) {
    return facts.step_window(facts.selection.steady[i]).length_ns();
  };
  sort_rows(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
  std::vector<std::int64_t> lengths;
  for (const std::size_t i : order) lengths.push_back(length(i));
  const std::size_t cut = find_cut(lengths);
  if (cut == 0) return std::nullopt;
  UnevenSteps found;
  found.slow.assign(order.begin() + static_cast<std::ptrdiff_t>(cut), order.end());
  std::sort(found.slow.begin(), found.slow.end());
  found.medians = medians_of(lengths, cut);
  std::vector<char> is_slow(steps, 0);
  for (const std::size_t i : found.slow) {
    is_slow[i] = 1;
    found.over_ns += length(i) - found.medians.low_ns;
  }
  found.every = period_of(facts, found.slow);
  const StepContents contents(facts, is_slow);
  found.extras = contents.extras(found.medians.high_ns - found.medians.low_ns);
  found.is_machine = contents.is_machine(found.medians.high_ns - found.medians.low_ns);
  found.is_same_work = contents.is_same_work(found.medians.high_ns - found.medians.low_ns);
  std::vector<std::size_t> slow, usual;
  for (std::size_t i = 0; i < steps; ++i)
    (is_slow[i] != 0 ? slow : usual).push_back(facts.selection.steady[i]);
  found.work = find_extra_work(facts, slow, usual, found.medians.high_ns - found.medians.low_ns);
  return found;
}

void add_extras(const Facts& facts, const UnevenSteps& found, Finding& finding) {
  for (std::size_t i = 0; i < found.extras.size() && i < 4; ++i) {
    const Extra& extra = found.extras[i];
    const std::string_view label = facts.trace->name(extra.slice);
    finding.evidence.push_back(
        {extra.slice,
         say(extra.on_gpu ? "GPU: {}: {} in a slow step, {} in another"
                          : "CPU: {}, its own time: {} in a slow step, {} in another",
             {extra.on_gpu ? kernel(label) : name(label), ns(extra.slow_ns), ns(extra.usual_ns)})});
  }
  if (found.extras.empty())
    finding.evidence.push_back(
        {facts.steps.steps[facts.selection.steady[found.slow.front()]].slice,
         say("a slow step; no event by name explains it: time without events, or waiting")});
}

// True: a slow step spends the extra time waiting for its batch.
bool waits_for_batch(const Facts& facts, const Extra& extra) {
  return facts.trace->name(extra.slice).starts_with("enumerate(DataLoader)#");
}

void tell_extra_work(const Facts& facts, const ExtraWork& work, Finding& finding) {
  append(finding.brief, say(": "));
  append(finding.brief, words_of(facts, work));
  append(finding.verdict, say(" In a slow one, "));
  append(finding.verdict, words_of(facts, work));
  finding.verdict.pattern += ".";
  finding.evidence.insert(finding.evidence.begin(),
                          called_at(facts, work.example, say("the first of this work")));
  finding.try_next = ways_out_of(work);
  finding.action = remedy_of(work);
  finding.names_cause = true;
}

Finding tell_uneven_steps(const Facts& facts, const UnevenSteps& found) {
  const std::size_t steps = facts.selection.steady.size();
  const auto [low, high] = found.medians;
  const auto& slow = found.slow;
  Finding finding;
  finding.verdict = say("Steps come in two lengths: {} of {} take {}, the others {}.",
                        {count(slow.size()), count(steps), ns(high), ns(low)});
  if (found.every) append(finding.verdict, say(" One step in {} is slow.", {count(*found.every)}));
  finding.at_stake_ns = facts.per_step(found.over_ns);
  finding.at_stake_ratio = share_of(found.over_ns, facts.steady_wall_ns());
  finding.arithmetic.push_back(
      say("the slow ones: {}; if they were like the others, the mean step would be {} shorter",
          {text(numbers_text(facts, slow)), ns(finding.at_stake_ns)}));
  add_extras(facts, found, finding);
  finding.try_next = {
      "do logging, evaluation, checkpoints and garbage collection less often, or outside of the "
      "steps",
      "sort or pad inputs of varying size"};
  finding.confidence = slow.size() >= 3 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = steps;
  finding.brief = say("{} of {} steps take {}, the others {}",
                      {count(slow.size()), count(steps), ns(high), ns(low)});
  finding.action = say("Log, evaluate and save less often; sort or pad inputs of varying size");
  if (!found.extras.empty() && waits_for_batch(facts, found.extras.front())) {
    finding.try_next = {
        "keep workers between epochs (persistent_workers=True); more of them (num_workers) or a "
        "larger prefetch_factor bridge a batch that takes longer"};
    finding.action = say("The slow ones wait for a batch: more workers, persistent_workers=True");
  }
  if (found.work) tell_extra_work(facts, found.work, finding);
  // The usual advice does not fit: logging, evaluation or larger inputs would show as other calls or other GPU work.
  if ((found.extras.empty() || found.is_same_work) && !found.is_machine && !found.work) {
    finding.try_next = {
        "find out what runs in the slow ones: garbage collection, logging, another program on this "
        "machine; `lanescope record --sample-python` shows Python's part"};
    finding.action =
        say("Find out what runs then: garbage collection, logging, another program on the machine");
    finding.confidence = Confidence::kMedium;
  }
  if (found.is_machine) {
    append(
        finding.verdict,
        say(" All of them do the same work, so the machine was slower in some, not the program."));
    finding.kind = FindingKind::kTrust;
    finding.try_next = {
        "look at what else ran on this machine: other jobs on these cores, a CPU whose clock "
        "changes",
        "record more steps, or on a quiet machine, before you believe small differences"};
    finding.action = say("Measure again while nothing else runs on this machine");
  } else if (are_first(found)) {
    tell_first_steps(found, finding);
  }
  return finding;
}

}  // namespace

extern constinit const Rule uneven_steps_rule = {
    .id = "uneven-steps",
    .question = "why are some steps slower than others?",
    .meant_by = "spike jitter variance vary",
    .order = 350,
    .needs = {need::kAnyWork, kSixSteadySteps},
    .run = measure_and_tell<measure_uneven_steps, tell_uneven_steps>,
    .names_no_cause = true,
    .is_about_single_steps = true,
};

}  // namespace lanescope::explain::rules
