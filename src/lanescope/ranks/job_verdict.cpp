// All ranks of a synchronous job have equal steps, because they wait for each other. A late rank shows in
// two ways: its own time (the step without exposed communication) is longer, or it comes late to a
// collective. The second is needed because waiting can hide. A collective that waits for others runs next
// to the backward pass and slows its kernels, so the own times of all ranks become alike (measured: 5.4 ms
// late, own times 0.3 ms apart). JobStep::late_ns is the larger of the two. A straggler is a group of at
// most half of the ranks. They are later than all others in nearly every step: by more than the clocks'
// error and 3 % of a step, and by more than half of the whole spread. And the others really wait for
// them.
#include "lanescope/ranks/job_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/job_notes.h"
#include "lanescope/ranks/late_causes.h"
#include "lanescope/ranks/lateness.h"
#include "lanescope/ranks/pipeline_waits.h"
#include "lanescope/ranks/roster.h"
#include "lanescope/ranks/straggler_doubt.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

constexpr double kShareOfStep = 0.03;
constexpr double kLateSteps = 0.75;  // of the steps, in which a straggler is late
constexpr std::int64_t kLeastNs = 50'000;

// The word for what ranks compute on. Makers' names are untrusted text, so only known ones count.
const char* device_word(const std::string& name) {
  if (name.find("NPU") != std::string::npos) return "NPU";
  return name.find("MTIA") != std::string::npos ? "device" : "GPU";
}

class Judge {
 public:
  explicit Judge(const Job& job) : job_(job) {}

  JobVerdict run() {
    if (!job_.compared.empty())
      verdict_.device = device_word(job_.ranks[job_.compared.front()].device);
    if (find_pipeline()) {
      add_job_notes(job_, verdict_);
      return std::move(verdict_);
    }
    if (const std::string reason = unknown_because(); !reason.empty()) {
      verdict_.reason = reason;
      add_job_notes(job_, verdict_);
      return std::move(verdict_);
    }
    measure();
    if (!find_late_ranks(arrival_lateness(job_), true))
      verdict_.kind = VerdictKind::kBalanced;
    else if (has_smaller_groups(job_))
      ask_own_times();
    if (std::string doubt = straggler_doubt(verdict_); !doubt.empty()) withdraw(std::move(doubt));
    add_job_notes(job_, verdict_);
    return std::move(verdict_);
  }

 private:
  std::string unknown_because() const {
    if (job_.ranks.size() < 2) return "there is the trace of one rank only";
    if (job_.compared.size() < 2) return "no two ranks hold the same whole steps";
    if (std::all_of(job_.ranks.begin(), job_.ranks.end(),
                    [](const RankSummary& rank) { return rank.groups_unknown; }))
      return "which ranks each collective belongs to is not in these traces";
    if (job_.matching.waited_count == 0)
      return "no collective in which ranks wait for each other was found on more than one rank";
    for (const std::uint32_t rank : job_.compared)
      if ((!job_.clocks[rank].known || job_.clocks[rank].by_pairs ||
           job_.clocks[rank].contradicts) &&
          measure_pipeline(job_))
        return fmt::format(
            "waits for neighbouring stages are too small for one, and no collective links the "
            "clock of rank {}",
            job_.numbers[rank]);
      else if (!job_.clocks[rank].known || job_.clocks[rank].contradicts)
        return fmt::format("the clock of rank {} could not be aligned", job_.numbers[rank]);
    return {};
  }

  // Before all others: stages differ by design, so a longer one is no straggler.
  bool find_pipeline() {
    if (job_.compared.size() < 2) return false;
    const std::optional<PipelineWaits> pipeline = measure_pipeline(job_);
    if (!pipeline || !is_pipeline_bubble(job_, *pipeline)) return false;
    std::int64_t walls = 0;
    for (const RankTimes& times : job_.times) walls += times.wall_ns;
    verdict_.kind = VerdictKind::kPipeline;
    verdict_.pipeline = *pipeline;
    verdict_.step_ns = walls / static_cast<std::int64_t>(job_.times.size());
    verdict_.late_ns = pipeline->waits.total_ns();
    verdict_.threshold_ns = least_difference_ns(verdict_.step_ns);
    verdict_.steps = verdict_.late_steps = job_.steady_count();
    for (const std::uint32_t rank : job_.compared)
      verdict_.on_cpu |= job_.ranks[rank].device_count == 0;
    // What equal stages would still wait is not the longest one's doing.
    if (pipeline->longer_ns * 2 > verdict_.late_ns) verdict_.ranks = {pipeline->longest_rank};
    return true;
  }

  // Late ranks differ from others by more than this, or are not late.
  void measure() {
    std::vector<std::int64_t> walls;
    for (const RankTimes& times : job_.times) walls.push_back(times.wall_ns);
    for (const std::uint32_t rank : job_.compared) {
      verdict_.error_ns = std::max(verdict_.error_ns, job_.clocks[rank].error_ns);
      verdict_.on_cpu |= job_.ranks[rank].device_count == 0;
    }
    verdict_.step_ns = std::accumulate(walls.begin(), walls.end(), std::int64_t{0}) /
                       static_cast<std::int64_t>(walls.size());
    verdict_.threshold_ns = std::max(verdict_.error_ns, least_difference_ns(verdict_.step_ns));
    verdict_.steps = job_.steady_count();
  }

  bool find_late_ranks(Lateness lateness, bool needs_arrivals) {
    needs_arrivals_ = needs_arrivals;
    lateness_ = std::move(lateness);
    late_ = mean_lateness(job_, lateness_);
    return find_straggler() || find_rotating() || find_uneven();
  }

  // Collectives of a smaller group make its ranks late to those of all ranks, by a slow link, by more data, or because
  // one of them is late. Own times are free of that.
  void ask_own_times() {
    const JobVerdict by_arrival = verdict_;
    withdraw({});
    if (find_late_ranks(own_lateness(job_), false)) return;
    verdict_ = by_arrival;
    if (std::string doubt = smaller_groups_doubt(job_, verdict_); !doubt.empty())
      withdraw(std::move(doubt));
  }

  std::vector<std::size_t> by_lateness() const {
    std::vector<std::size_t> order(job_.times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    sort_rows(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return late_[a] < late_[b]; });
    return order;
  }

  // Lateness counts from the median, so it does not tell early ranks apart; own times do.
  std::int64_t own_spread() const {
    std::int64_t least = INT64_MAX, most = INT64_MIN;
    for (const RankTimes& times : job_.times) {
      least = std::min(least, times.own_ns);
      most = std::max(most, times.own_ns);
    }
    return most - least;
  }

  void withdraw(std::string reason) {
    verdict_.reason = std::move(reason);
    verdict_.kind = VerdictKind::kUnknown;
    verdict_.ranks.clear();
    verdict_.causes.clear();
    verdict_.host_part.clear();
    verdict_.late_ns = verdict_.host_part_ns = verdict_.profiler_ns = 0;
    verdict_.more_work_ns = verdict_.more_outside_ns = 0;
    verdict_.host_work_ns = verdict_.others_work_ns = 0;
    verdict_.late_steps = 0;
    verdict_.since_step = -1;
    verdict_.since_start = false;
    verdict_.same_kernels.reset();
  }

  // In this step, the least lateness of the late ones minus the most of the others.
  std::int64_t lead(std::size_t step, const std::set<std::size_t>& late) const {
    std::int64_t least = INT64_MAX, most = INT64_MIN;
    for (std::size_t i = 0; i < lateness_[step].size(); ++i)
      if (late.contains(i))
        least = std::min(least, lateness_[step][i]);
      else
        most = std::max(most, lateness_[step][i]);
    return least - most;
  }

  bool find_straggler() {
    const std::vector<std::size_t> order = by_lateness();
    std::size_t cut = 0;
    std::int64_t widest = 0;
    for (std::size_t i = (order.size() + 1) / 2; i < order.size(); ++i) {
      const std::int64_t gap = late_[order[i]] - late_[order[i - 1]];
      if (gap > widest) {
        widest = gap;
        cut = i;
      }
    }
    const std::int64_t spread = std::max(late_[order.back()] - late_[order.front()], own_spread());
    if (widest <= verdict_.threshold_ns || widest * 2 <= spread) return false;
    const std::set<std::size_t> late(order.begin() + static_cast<std::ptrdiff_t>(cut), order.end());
    std::uint64_t late_steps = 0;
    for (std::size_t step = 0; step < job_.steps.size(); ++step)
      if (job_.steps[step].steady && lead(step, late) > verdict_.threshold_ns / 2) ++late_steps;
    if (static_cast<double>(late_steps) < kLateSteps * static_cast<double>(verdict_.steps))
      return false;
    const std::int64_t late_ns = late_[order.back()] - late_[order[cut - 1]];
    if (!others_wait_for(late, late_ns)) return false;
    verdict_.kind = VerdictKind::kStraggler;
    verdict_.late_ns = late_ns;
    verdict_.late_steps = late_steps;
    for (const std::size_t i : late) verdict_.ranks.push_back(job_.numbers[job_.compared[i]]);
    std::sort(verdict_.ranks.begin(), verdict_.ranks.end());
    find_since(late);
    find_causes(job_, late, verdict_);
    return true;
  }

  // The late ones are last at most collectives whose last arrival is certain, and the others wait for
  // them a good part of the time, hidden or not. By own times, others may come last because they waited for the late
  // ones before, in a smaller group.
  bool others_wait_for(const std::set<std::size_t>& late, std::int64_t late_ns) const {
    std::uint64_t last = 0, all = 0;
    std::int64_t wait = 0;
    for (std::size_t i = 0; i < job_.times.size(); ++i) {
      const std::uint64_t arrivals = job_.last_arrivals[job_.compared[i]];
      all += arrivals;
      if (late.contains(i))
        last += arrivals;
      else
        wait += job_.times[i].wait_ns;
    }
    const auto others = static_cast<std::int64_t>(job_.times.size() - late.size());
    // Late ranks that come together, such as those of one host, leave open which of them was last.
    const bool is_last = !needs_arrivals_ || last * 2 > all || (all == 0 && late.size() > 1);
    return is_last && wait * 4 > late_ns * others;
  }

  void find_since(const std::set<std::size_t>& late) {
    verdict_.since_start = true;
    for (std::size_t step = job_.steps.size(); step-- > 0;) {
      if (lead(step, late) <= verdict_.threshold_ns / 2) {
        verdict_.since_start = false;
        break;
      }
      verdict_.since_step = job_.steps[step].number;
    }
  }

  bool find_rotating() {
    std::set<std::size_t> slowest;
    std::uint64_t late_steps = 0;
    std::int64_t lost = 0;
    for (std::size_t step = 0; step < job_.steps.size(); ++step) {
      if (!job_.steps[step].steady) continue;
      const std::vector<std::int64_t>& late = lateness_[step];
      const auto most = std::max_element(late.begin(), late.end());
      const std::int64_t mean = std::accumulate(late.begin(), late.end(), std::int64_t{0}) /
                                static_cast<std::int64_t>(late.size());
      lost += *most - mean;
      if (*most - lower_median(late) <= verdict_.threshold_ns) continue;
      ++late_steps;
      slowest.insert(static_cast<std::size_t>(most - late.begin()));
    }
    const auto steps = static_cast<double>(verdict_.steps);
    if (verdict_.steps < 3 || slowest.size() < 2 || static_cast<double>(late_steps) < 0.6 * steps)
      return false;
    verdict_.kind = VerdictKind::kRotating;
    verdict_.late_steps = late_steps;
    verdict_.late_ns = lost / static_cast<std::int64_t>(verdict_.steps);
    for (const std::size_t i : slowest) verdict_.ranks.push_back(job_.numbers[job_.compared[i]]);
    return verdict_.late_ns > verdict_.threshold_ns;
  }

  bool find_uneven() {
    verdict_.ranks.clear();
    verdict_.kind = VerdictKind::kUnknown;
    verdict_.late_ns = 0;
    verdict_.late_steps = 0;
    const std::vector<std::size_t> order = by_lateness();
    const std::int64_t most = late_[order.back()];
    const std::int64_t sum = std::accumulate(late_.begin(), late_.end(), std::int64_t{0});
    const std::int64_t lost = most - sum / static_cast<std::int64_t>(job_.times.size());
    if (lost <= verdict_.threshold_ns || job_.times.size() < 3) return false;
    std::uint64_t late_steps = 0;
    for (std::size_t step = 0; step < job_.steps.size(); ++step) {
      if (!job_.steps[step].steady) continue;
      const std::vector<std::int64_t>& late = lateness_[step];
      const std::int64_t longest = *std::max_element(late.begin(), late.end());
      late_steps += late[order.back()] >= longest - verdict_.threshold_ns / 2 ? 1 : 0;
    }
    if (static_cast<double>(late_steps) < kLateSteps * static_cast<double>(verdict_.steps))
      return false;
    verdict_.kind = VerdictKind::kUneven;
    verdict_.late_ns = lost;
    verdict_.late_steps = late_steps;
    verdict_.ranks = {job_.numbers[job_.compared[order.back()]]};
    find_causes(job_, {order.back()}, verdict_);
    return true;
  }

  const Job& job_;
  Lateness lateness_;               // that the verdict is from
  bool needs_arrivals_ = true;      // late ranks come last
  std::vector<std::int64_t> late_;  // its means over the steady steps, one a compared rank
  JobVerdict verdict_;
};

}  // namespace

const char* verdict_name(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kUnknown:
      return "unknown";
    case VerdictKind::kBalanced:
      return "balanced";
    case VerdictKind::kStraggler:
      return "straggler";
    case VerdictKind::kRotating:
      return "rotating";
    case VerdictKind::kUneven:
      return "uneven";
    case VerdictKind::kPipeline:
      return "pipeline";
  }
  return "";
}

const char* cause_name(LateCause cause) {
  switch (cause) {
    case LateCause::kCompute:
      return "compute";
    case LateCause::kHost:
      return "cpu";
    case LateCause::kInput:
      return "input";
    case LateCause::kCopies:
      return "copies";
    case LateCause::kOtherIdle:
      return "other-idle";
  }
  return "";
}

std::int64_t least_difference_ns(std::int64_t step_ns) {
  return std::max(kLeastNs, static_cast<std::int64_t>(kShareOfStep * static_cast<double>(step_ns)));
}

JobVerdict judge_job(const Job& job) { return Judge(job).run(); }

}  // namespace lanescope::ranks
