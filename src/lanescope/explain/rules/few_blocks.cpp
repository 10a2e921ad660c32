// Kernels with fewer blocks than the GPU has multiprocessors.
#include <algorithm>
#include <cmath>
#include <map>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/plurals.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

Outcome check_few_blocks(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  struct Group {
    std::uint64_t calls = 0;
    std::int64_t total_ns = 0, blocks = 0;
    SliceId longest = kNone<SliceId>;
  };
  Savings found;
  std::map<std::string_view, Group> by_name;
  bool has_grids = false, has_long = false;
  for (const KernelCall& kernel : kernels.kernels) {
    if (kernel.dur_ns() < 10'000 || !kernel.is_alone) continue;
    const auto shape = kernels.shape(*facts.trace, kernel);
    has_long = true;
    has_grids |= shape.has_value();
    if (!shape || shape->blocks * 4 > shape->sm_count * 3) continue;
    const double used = static_cast<double>(shape->blocks) / static_cast<double>(shape->sm_count);
    found.add(kernel, std::llround(static_cast<double>(kernel.dur_ns()) * (1 - used)));
    Group& group = by_name[facts.trace->name(kernel.slice)];
    ++group.calls;
    group.total_ns += kernel.dur_ns();
    if (group.longest == kNone<SliceId> || kernel.dur_ns() > facts.trace->dur_ns(group.longest)) {
      group.longest = kernel.slice;
      group.blocks = shape->blocks;
    }
  }
  if (has_long && !has_grids) return NotChecked{kNeedsGrids};
  found.finish();
  if (found.calls() == 0 || wall_share(facts, found.saved_ns()) < 0.02) return Quiet{};
  Finding finding;
  finding.verdict =
      say_counted(facts,
                  "Kernels have too few blocks to fill the GPU: {} [call|calls], {} per step, with "
                  "at most three quarters of its {} multiprocessors busy.",
                  {count(found.calls()), ns(facts.per_step(found.time_ns())),
                   count(static_cast<std::uint64_t>(*kernels.roofline.device.sm_count))});
  std::vector<std::pair<std::string_view, Group>> ranked(by_name.begin(), by_name.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const Group& group = ranked[i].second;
    finding.evidence.push_back(
        {group.longest, say_counted(facts, "{} x{}: {} per step; the longest has {} [block|blocks]",
                                    {kernel(ranked[i].first), count(group.calls),
                                     ns(facts.per_step(group.total_ns)),
                                     count(static_cast<std::uint64_t>(group.blocks))})});
  }
  rate_finding(facts, found, finding);
  finding.try_next = {"a larger batch, or work of several calls in one (grouped, foreach, batched)",
                      "independent work on a second stream; channels_last for batch norm"};
  finding.brief = say("Kernels have too few blocks to fill the GPU");
  finding.action = say("A larger batch, or several calls in one (grouped, foreach, batched)");
  return finding;
}

}  // namespace

extern constinit const Rule few_blocks_rule = {
    .id = "few-blocks",
    .question = "do kernels have too few blocks to fill the GPU?",
    .order = 560,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .then_needs = {need::kMultiprocessors},
    .run = check_few_blocks,
};

}  // namespace lanescope::explain::rules
