// A pipeline of p stages and m micro-batches leaves each stage idle for (p - 1) / (m + p - 1) of a step,
// when all stages take the same time: the bubble of GPipe and 1F1B alike. Stages of different length add
// the difference to the longest. Which of the two is larger decides the advice.
#include "lanescope/ranks/pipeline_waits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace lanescope::ranks {
namespace {

constexpr double kBubbleShare = 0.10, kBubbleSteps = 0.75;

bool receives(const RankTimes& times) { return times.stage.receives > 0; }

// Ranks that sends and receives link, directly or through others: the largest such set.
std::uint64_t longest_chain(const Job& job) {
  std::vector<std::size_t> root(job.ranks.size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t at) {
    while (root[at] != at) at = root[at] = root[root[at]];
    return at;
  };
  std::vector<char> linked(job.ranks.size(), 0);
  for (const MatchedGroup& group : job.matching.groups) {
    if (group.pairs == 0 || group.ranks.size() != 2) continue;
    root[find(group.ranks[0])] = find(group.ranks[1]);
    linked[group.ranks[0]] = linked[group.ranks[1]] = 1;
  }
  std::map<std::size_t, std::uint64_t> sizes;
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < root.size(); ++i)
    if (linked[i] != 0) largest = std::max(largest, ++sizes[find(i)]);
  return largest;
}

}  // namespace

std::optional<PipelineWaits> measure_pipeline(const Job& job) {
  PipelineWaits out;
  std::int64_t count = 0, own = 0, longest = -1;
  std::uint64_t fewest = UINT64_MAX, most = 0;
  for (std::size_t i = 0; i < job.times.size(); ++i) {
    const RankTimes& times = job.times[i];
    if (!receives(times)) continue;
    ++count;
    out.waits.first_ns += times.stage.first_ns;
    out.waits.between_ns += times.stage.between_ns;
    out.waits.last_ns += times.stage.last_ns;
    own += times.own_ns;
    fewest = std::min(fewest, times.stage.receives);
    most = std::max(most, times.stage.receives);
    if (times.own_ns <= longest) continue;
    longest = times.own_ns;
    out.longest_rank = job.numbers[job.compared[i]];
  }
  if (count < 2) return std::nullopt;
  out.waits.first_ns /= count;
  out.waits.between_ns /= count;
  out.waits.last_ns /= count;
  out.longer_ns = longest - own / count;
  out.stages = longest_chain(job);
  // The first and the last stage receive once a micro-batch, those between twice. Of two stages, the first may receive less: one
  // result of a step.
  out.micro_batches = out.stages == 2 ? most : fewest;
  if (out.stages >= 2)
    out.least_ratio = static_cast<double>(out.stages - 1) /
                      static_cast<double>(out.micro_batches + out.stages - 1);
  return out;
}

bool is_pipeline_bubble(const Job& job, const PipelineWaits& pipeline) {
  std::int64_t wall = 0;
  for (const RankTimes& times : job.times) wall += times.wall_ns;
  const auto ranks = static_cast<double>(job.times.size());
  const double step = static_cast<double>(wall) / ranks;
  const auto total = static_cast<double>(pipeline.waits.total_ns());
  if (total < kBubbleShare * step ||
      pipeline.waits.total_ns() < least_difference_ns(static_cast<std::int64_t>(step)))
    return false;
  std::uint64_t steps = 0, with_bubble = 0;
  for (const JobStep& each : job.steps) {
    if (!each.steady) continue;
    ++steps;
    double waits = 0, walls = 0, count = 0;
    for (const RankTimes& times : each.times) {
      if (!receives(times)) continue;
      waits += static_cast<double>(times.stage.total_ns());
      walls += static_cast<double>(times.wall_ns);
      ++count;
    }
    with_bubble += count > 0 && waits >= kBubbleShare * walls ? 1 : 0;
  }
  return steps > 0 && static_cast<double>(with_bubble) >= kBubbleSteps * static_cast<double>(steps);
}

}  // namespace lanescope::ranks
