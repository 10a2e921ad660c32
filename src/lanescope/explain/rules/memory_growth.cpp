// GPU memory grows from step to step, and what grew is never freed.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "lanescope/explain/memory_end.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::MemoryDevice;
using analysis::MemoryStep;

namespace {

constexpr std::int64_t kLeastBytes = 64 * 1024;  // a step; a list of loss values stays below it

constexpr std::size_t kEnoughMemorySteps = 4;

struct MemoryGrowth {
  std::vector<MemoryStep> steps;  // without the first one
  std::size_t growing = 0;
  std::int64_t growth = 0;
  bool are_few = false;  // steps: two, which is no proof
};

// Two steps, after a first one, show little: both must grow by about as much.
bool grow_alike(const std::vector<std::int64_t>& growths) {
  const auto [least, most] = std::minmax_element(growths.begin(), growths.end());
  return *least > 0 && *most * 4 <= *least * 5;
}

Measurement<MemoryGrowth> measure_memory_growth(const Facts& facts) {
  const MemoryDevice* device = main_memory(facts);
  std::vector<MemoryStep> steps = analysis::compute_memory_steps(*facts.trace, *device);
  const NotChecked too_few{
      "four steps or more with memory records (prof.step(), profile_memory=True)"};
  if (steps.size() + 1 < kEnoughMemorySteps) return too_few;
  const bool are_few = steps.size() < kEnoughMemorySteps;
  // The first step fills optimizer state and gradients.
  steps.erase(steps.begin());
  std::vector<std::int64_t> growths, kept;
  std::size_t growing = 0;
  for (const MemoryStep& step : steps) {
    growths.push_back(step.end_bytes - step.start_bytes);
    if (step.end_bytes > step.start_bytes) ++growing;
    // What the last step allocated may be freed by the next one.
    if (&step != &steps.back()) kept.push_back(step.never_freed_bytes);
  }
  const std::int64_t growth = analysis::median_of_steps(growths);
  const std::int64_t never_freed = analysis::median_of_steps(kept);
  // A buffer that each step replaces by a larger one also grows, but nothing is lost.
  const bool is_lost = !device->has_blocks || never_freed * 2 >= growth;
  if (growing * 10 < steps.size() * 8 || growth < kLeastBytes || !is_lost ||
      (are_few && !(device->has_blocks && grow_alike(growths)))) {
    if (are_few) return too_few;
    if (!has_memory_to_the_end(facts)) return NotChecked{kMemoryToTheEnd};
    return Quiet{};
  }
  return MemoryGrowth{std::move(steps), growing, growth, are_few};
}

void tell_growth_in_few_steps(const MemoryDevice& device, const MemoryGrowth& found,
                              Finding& finding) {
  finding.arithmetic.push_back(
      say("two steps after the first are no proof: buffers that some steps fill, and what a later "
          "step frees, look the same"));
  finding.try_next.insert(finding.try_next.begin(),
                          "record six steps or more with profile_memory=True to see whether it "
                          "goes on; lanescope memory lists what each step keeps");
  finding.brief = say("{} grows by {} in each of {} steps; these are few, so it may end",
                      {text(memory_name(device)), bytes(found.growth), count(found.steps.size())});
  finding.action =
      say("Record six steps to be sure; then keep no tensors from step to step (loss.detach())");
}

Finding tell_memory_growth(const Facts& facts, const MemoryGrowth& measured) {
  const auto& [steps, growing, growth, are_few] = measured;
  const MemoryDevice* device = main_memory(facts);
  Finding finding;
  finding.kind = device->has_blocks && !are_few ? FindingKind::kEnds : FindingKind::kMemory;
  finding.verdict =
      say("{} grows by {} per step: {} of {} steps end with more than they began with{}.",
          {text(memory_name(*device)), bytes(growth), count(growing), count(steps.size()),
           text(device->has_blocks ? ", and what they keep is not freed" : "")});
  finding.arithmetic.push_back(
      say("allocated {} at the start of step {} and {} at the end of step {}",
          {bytes(steps.front().start_bytes), text(std::to_string(steps.front().number)),
           bytes(steps.back().end_bytes), text(std::to_string(steps.back().number))}));
  if (!device->has_totals)
    finding.arithmetic.push_back(say("counted from 0 at the start of the recording"));
  const std::int64_t most = device_memory_bytes(facts, device->id);
  const std::int64_t used =
      std::max(device->peak_reserved, device->samples[device->peak].allocated);
  if (most > used && device->has_totals)
    finding.arithmetic.push_back(say(
        facts, "the device has {} more than was used: enough for about {} [step|steps] like these",
        {bytes(most - used), count(static_cast<std::uint64_t>((most - used) / growth))}));
  if (device->has_blocks)
    add_owners(facts, analysis::never_freed(*device, steps.front().start_ns, steps.back().start_ns),
               finding);
  finding.try_next = {
      "look for what keeps tensors: lists of losses or outputs (append loss.item() or "
      "loss.detach()), graphs kept by retain_graph, caches without a limit"};
  const bool any_line =
      std::any_of(facts.memory.owners.begin(), facts.memory.owners.end(),
                  [](const auto& owner) { return owner.frame != kNone<StringId>; });
  if (!device->has_blocks)
    finding.try_next.push_back(
        "record with a newer torch: addresses show which blocks are never freed");
  else if (!any_line && !has_python_frames(*facts.trace))
    finding.try_next.push_back(
        "record with with_stack=True to see which functions of the program allocate");
  finding.confidence = are_few                                   ? Confidence::kLow
                       : steps.size() >= 6 && device->has_blocks ? Confidence::kHigh
                                                                 : Confidence::kMedium;
  finding.sample_count = steps.size();
  if (are_few) {
    tell_growth_in_few_steps(*device, measured, finding);
    return finding;
  }
  finding.brief =
      say("{} grows by {} per step until it runs out", {text(memory_name(*device)), bytes(growth)});
  finding.action = say("Keep no tensors from step to step: append loss.item() or loss.detach()");
  return finding;
}

}  // namespace

std::optional<std::int64_t> growth_of_a_step(const Facts& facts) {
  if (!main_memory(facts)) return std::nullopt;
  const auto measured = measure_memory_growth(facts);
  if (std::holds_alternative<NotChecked>(measured)) return std::nullopt;
  const auto* found = std::get_if<MemoryGrowth>(&measured);
  return found ? found->growth : 0;
}

extern constinit const Rule memory_growth_rule = {
    .id = "memory-growth",
    .question = "does GPU memory grow from step to step?",
    .meant_by = "leak oom memory",
    .order = 360,
    .needs = {need::kMemoryRecords},
    .run = measure_and_tell<measure_memory_growth, tell_memory_growth>,
    .is_regression = true,
};

}  // namespace lanescope::explain::rules
