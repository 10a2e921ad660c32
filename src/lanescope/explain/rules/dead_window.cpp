// At the first entry of a range, nothing happens for long before its first operator.
#include <algorithm>
#include <map>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::int64_t kShortestWindowNs = 50'000;

struct Entry {
  std::int64_t start_ns = 0, lead_ns = 0;
  SliceId range{}, first_child{};
};

struct LateFirstOperator {
  Entry entry;                // with the longest wait
  std::int64_t usual_ns = 0;  // the median of the later ones
  std::int64_t lost_ns = 0;   // of the wait, in which the GPU was idle
  std::uint64_t samples = 0;
};

Measurement<LateFirstOperator> measure_dead_window(const Facts& facts) {
  const Trace& trace = *facts.trace;
  // The first child of each range, of those that have one.
  std::map<std::uint32_t, Entry> first_child;  // by raw range
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i}, parent = facts.nesting.parent[i];
    if (parent == kNone<SliceId> || trace.kind(parent) != CategoryKind::kUserAnnotation) continue;
    // A wait for a batch belongs to dataloader-wait.
    if (trace.name(parent).starts_with("ProfilerStep#") ||
        trace.name(parent).starts_with("enumerate(DataLoader)"))
      continue;
    const auto [entry, is_new] = first_child.try_emplace(raw(parent));
    if (is_new || trace.start_ns(id) < trace.start_ns(entry->second.first_child))
      entry->second = {trace.start_ns(parent), trace.start_ns(id) - trace.start_ns(parent), parent,
                       id};
  }
  std::map<std::string, std::vector<Entry>> by_name;
  for (const auto& [range, entry] : first_child)
    by_name[std::string(trace.name(entry.range))].push_back(entry);
  bool enough = false;
  const Entry* worst = nullptr;
  std::int64_t usual_ns = 0;
  std::uint64_t samples = 0;
  for (auto& [label, entries] : by_name) {
    if (entries.size() < 3) continue;
    enough = true;
    sort_rows(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.start_ns < b.start_ns; });
    std::vector<std::int64_t> others;
    for (std::size_t i = 1; i < entries.size(); ++i) others.push_back(entries[i].lead_ns);
    const std::int64_t median = analysis::lower_median(std::move(others));
    if (entries[0].lead_ns < kShortestWindowNs || entries[0].lead_ns < 5 * median) continue;
    if (worst && entries[0].lead_ns <= worst->lead_ns) continue;
    worst = &entries[0];
    usual_ns = median;
    samples = entries.size();
  }
  if (!enough) return NotChecked{"a range (record_function) that is entered three times or more"};
  if (!worst) return Quiet{};
  const analysis::Window lead{worst->start_ns, worst->start_ns + worst->lead_ns};
  const std::int64_t lost_ns =
      facts.main_device ? device_idle_during(facts, {lead}) : worst->lead_ns;
  if (lost_ns < kShortestWindowNs) return Quiet{};  // the GPU had work meanwhile
  return LateFirstOperator{
      .entry = *worst, .usual_ns = usual_ns, .lost_ns = lost_ns, .samples = samples};
}

Finding tell_dead_window(const Facts& facts, const LateFirstOperator& found) {
  const Trace& trace = *facts.trace;
  const Entry& worst = found.entry;
  const analysis::Window lead{worst.start_ns, worst.start_ns + worst.lead_ns};
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say("{} was entered {} before its first operator {} began; later this takes {}: CPU time in "
          "which no operator ran.",
          {name(trace.name(worst.range)), ns(worst.lead_ns), name(trace.name(worst.first_child)),
           ns(found.usual_ns)});
  finding.at_stake_ns = std::min(found.lost_ns, worst.lead_ns - found.usual_ns);
  explain_long_step(facts, {lead}, {}, finding);
  finding.evidence.push_back({worst.range, say("the first time the range is entered")});
  finding.arithmetic.push_back(
      say("no operator was open: the time was spent in Python, in dispatch, or in the profiler's "
          "first use of the thread"));
  finding.try_next = {"warm up: it happens once",
                      advise_python_frames(trace,
                                           "the Python frames inside show what it was: lanescope "
                                           "tree --stacks",
                                           "the Python frames show what happens inside")};
  finding.once =
      say(has_python_frames(trace)
              ? "Once: {} took {} before its first operator {} when it was first entered. Warm up."
              : "Once: {} took {} before its first operator {} when it was first entered. Warm up; "
                "with_stack=True shows its code.",
          {name(trace.name(worst.range)), ns(worst.lead_ns), name(trace.name(worst.first_child))});
  finding.sample_count = found.samples;
  finding.sample_noun = "entry";
  finding.confidence = found.samples >= 10 ? Confidence::kHigh : Confidence::kMedium;
  return finding;
}

}  // namespace

extern constinit const Rule dead_window_rule = {
    .id = "dead-window",
    .question = "what is the wait before the first operator of a range?",
    .order = 190,
    .run = measure_and_tell<measure_dead_window, tell_dead_window>,
};

}  // namespace lanescope::explain::rules
