#include "lanescope/ranks/job_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/ranks/cpu_bound.h"
#include "lanescope/ranks/host_lateness.h"
#include "lanescope/ranks/late_host.h"
#include "lanescope/ranks/roster.h"
#include "lanescope/ranks/slow_links.h"

namespace lanescope::ranks {
namespace {

// Start values of docs/definitions/ranks.md#notes.
constexpr double kExposedShare = 0.10, kHiddenShare = 0.25, kNoOverlapShare = 0.03,
                 kSmallShare = 0.02, kWaitShare = 0.02, kSlowedShare = 0.02;
constexpr double kMostOfGroups = 0.6;
constexpr std::uint64_t kFewSteps = 3;
constexpr std::int64_t kUnequalEnds = 2;  // steps
constexpr double kHiddenCpuShare = 0.05;
constexpr std::int64_t kLeastHiddenCpuNs = 200'000;

double ms(double ns) { return ns / 1e6; }

struct Means {
  double wall = 0, transfer = 0, hidden = 0, wait = 0, exposed = 0;
};

Means means_of(const Job& job) {
  Means means;
  if (job.times.empty()) return means;
  const auto count = static_cast<double>(job.times.size());
  for (const RankTimes& times : job.times) {
    means.wall += static_cast<double>(times.wall_ns) / count;
    means.transfer += static_cast<double>(times.certain_transfer_ns()) / count;
    means.hidden += static_cast<double>(times.hidden_ns) / count;
    means.wait += static_cast<double>(times.exposed_wait_ns) / count;
    means.exposed += static_cast<double>(times.exposed_ns) / count;
  }
  return means;
}

void add(JobVerdict& verdict, NoteKind kind, std::string text) {
  verdict.notes.push_back({kind, std::move(text)});
}

void note_waits(const Means& means, JobVerdict& verdict) {
  if (means.wall <= 0 || means.wait < kWaitShare * means.wall || means.wait < 0.3 * means.exposed)
    return;
  add(verdict, NoteKind::kWaitIsNotNetwork,
      fmt::format(
          "Of the {:.2f} ms of communication in a step that no computation hides, {:.2f} ms "
          "or more are waiting for late ranks. The network is not the cause of that part.",
          ms(means.exposed), ms(means.wait)));
}

void note_overlap(const Means& means, JobVerdict& verdict) {
  const double all = means.transfer + means.hidden;
  const double least = means.hidden < kHiddenShare * all ? kNoOverlapShare : kExposedShare;
  if (means.wall <= 0 || means.transfer < least * means.wall) return;
  add(verdict, NoteKind::kNotHidden,
      fmt::format("Communication itself, without waits, takes {:.2f} ms or more of a step ({:.0f} "
                  "%) while nothing computes{}",
                  ms(means.transfer), 100 * means.transfer / means.wall,
                  means.hidden < kHiddenShare * all
                      ? "; hardly any of it overlaps. Start collectives while the backward pass "
                        "still runs: smaller buckets, prefetch, another stream."
                      : ". Larger messages, fewer bytes or more overlap would shorten it."));
}

void note_small(const Job& job, const Means& means, JobVerdict& verdict) {
  const std::uint64_t steps = job.steady_count();
  if (steps == 0 || job.compared.empty()) return;
  const RankSummary& rank = job.ranks[job.compared.front()];
  const std::uint64_t small = rank.totals.small_calls;
  const auto time = static_cast<double>(rank.totals.small_exposed_ns);
  std::uint64_t own_steps = 0;
  for (const RankStep& step : rank.steps) own_steps += step.steady ? 1 : 0;
  if (own_steps == 0 || small < analysis::kManySmallMessages * own_steps) return;
  const double exposed = std::min(time / static_cast<double>(own_steps), means.transfer);
  if (exposed < kSmallShare * means.wall) return;
  add(verdict, NoteKind::kSmallCollectives,
      fmt::format("A step makes {} collectives of less than 2 MiB, which cost {:.2f} ms that no "
                  "computation hides. Put them into larger buckets, or coalesce them.",
                  small / own_steps, ms(exposed)));
}

// A job has several kinds of communication: which of them to begin with.
void note_groups(const Job& job, const Means& means, JobVerdict& verdict) {
  if (job.groups.size() < 2 || means.wall <= 0) return;
  const GroupTimes& most = job.groups.front();
  double all = 0;
  for (const GroupTimes& each : job.groups) all += static_cast<double>(each.transfer_ns());
  const auto of_most = static_cast<double>(most.transfer_ns());
  if (means.transfer < kExposedShare * means.wall || of_most < kExposedShare * means.wall ||
      of_most < kMostOfGroups * all)
    return;
  add(verdict, NoteKind::kGroupNotHidden,
      fmt::format(
          "Of the {:.2f} ms of communication in a step that no computation hides, {:.2f} ms "
          "are in {}, in {} call{}. Begin with {}.",
          ms(all), ms(of_most), groups_name(most), most.calls, most.calls == 1 ? "" : "s",
          most.calls == 1 ? "it" : "these"));
}

// Equal kernels that take longer on the ranks that wait: the collectives they wait in hold a part of the
// GPU.
void note_slowed(JobVerdict& verdict) {
  if (verdict.kind != VerdictKind::kStraggler || !verdict.same_kernels.value_or(false)) return;
  for (const CausePart& part : verdict.causes)
    if (part.cause == LateCause::kCompute &&
        static_cast<double>(-part.longer_ns) > kSlowedShare * static_cast<double>(verdict.step_ns))
      add(verdict, NoteKind::kSlowedByWaits,
          fmt::format(
              "The other ranks run the same kernels, and {:.2f} ms longer: collectives that "
              "wait for the late rank take a part of their {}s.",
              ms(static_cast<double>(-part.longer_ns)), verdict.device));
}

void note_trust(const Job& job, JobVerdict& verdict) {
  const auto compared = static_cast<std::int64_t>(job.compared.size());
  if (job.world_size && *job.world_size > compared && compared > 0)
    add(verdict, NoteKind::kSample,
        fmt::format("{} of the job's {} ranks{}: a late one among the others looks like a slow "
                    "network here.",
                    compared == 1 ? "This is one" : std::to_string(compared), *job.world_size,
                    compared == 1 ? "" : " are compared"));
  if (!job.world_size && job.ranks.size() > 1)
    add(verdict, NoteKind::kSample,
        "The files do not say how many ranks the job has. If some are missing, a late one among "
        "them looks like a slow network here.");
  if (verdict.steps > 0 && verdict.steps < kFewSteps)
    add(verdict, NoteKind::kShortSteps,
        fmt::format("Only {} step{} could be compared; record at least {} for a firm verdict.",
                    verdict.steps, verdict.steps == 1 ? "" : "s", kFewSteps + 1));
  const bool late_host = verdict.kind == VerdictKind::kStraggler && !verdict.causes.empty() &&
                         verdict.causes.front().cause == LateCause::kHost;
  if (late_host &&
      (is_cpu_in_events(verdict) || static_cast<double>(verdict.late_ns) <
                                        kProfilerShare * static_cast<double>(verdict.step_ns)))
    add(verdict, NoteKind::kProfiler,
        verdict.profiler_ns > 0 && verdict.more_work_ns > 0
            ? fmt::format(
                  "Up to {:.2f} ms of that lateness may be the profiler's own work: it slows "
                  "every operator and call, and not equally on all ranks. Compare the step "
                  "times of a run without it before changing code.",
                  ms(static_cast<double>(
                      std::min({verdict.profiler_ns, verdict.more_work_ns, verdict.late_ns}))))
            : std::string("The profiler slows the CPU down, and not equally on all ranks. Compare "
                          "the step times of a run without it before changing code."));
}

// Without an end that most ranks have, as with two ranks: which of them is whole is unknown.
void note_different_ends(const std::map<std::int64_t, std::vector<std::int64_t>>& by_end,
                         JobVerdict& verdict) {
  const auto& [first, early] = *by_end.begin();
  const auto& [last, late] = *by_end.rbegin();
  if (first > last - kUnequalEnds) return;
  const auto text = [](const std::vector<std::int64_t>& ranks, std::int64_t step) {
    const bool one = ranks.size() == 1;
    return fmt::format("{} {} {} with step {}", one ? "rank" : "ranks", ranks_text(ranks),
                       one ? "ends" : "end", step);
  };
  add(verdict, NoteKind::kUnequalSteps,
      fmt::format("The recordings end with different steps: {}, {}. One recording is shorter, or a "
                  "process stopped; the files do not say which. Only steps that all have are "
                  "compared.",
                  text(early, first), text(late, last)));
}

// Recordings of one schedule may differ by a step at their ends.
void note_steps(const Job& job, JobVerdict& verdict) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_end;  // last step: ranks
  std::size_t known = 0;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const RankSummary& rank = job.ranks[i];
    if (rank.truncated || rank.steps.empty() || rank.steps.back().number < 0) continue;
    by_end[rank.steps.back().number].push_back(job.numbers[i]);
    ++known;
  }
  const auto usual = std::max_element(
      by_end.begin(), by_end.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (usual == by_end.end()) return;
  if (usual->second.size() * 2 <= known) return note_different_ends(by_end, verdict);
  std::vector<std::int64_t> early;
  std::int64_t last = usual->first;
  for (const auto& [end, ranks] : by_end) {
    if (end > usual->first - kUnequalEnds) continue;
    early.insert(early.end(), ranks.begin(), ranks.end());
    last = std::min(last, end);
  }
  if (early.empty()) return;
  std::sort(early.begin(), early.end());
  const bool one = early.size() == 1;
  add(verdict, NoteKind::kUnequalSteps,
      fmt::format(
          "{} {} {} with step {}{}, most ranks end with step {}: a shorter recording, or the "
          "process stopped. Only steps that all have are compared.",
          one ? "Rank" : "Ranks", ranks_text(early), one ? "ends" : "end", last,
          one ? "" : " or later", usual->first));
}

// A CPU that is late while its GPU has work queued: nobody waits, so it is no verdict.
void note_hidden_cpus(const Job& job, JobVerdict& verdict) {
  if (verdict.kind != VerdictKind::kBalanced && verdict.kind != VerdictKind::kStraggler) return;
  const std::int64_t least =
      std::max(kLeastHiddenCpuNs,
               static_cast<std::int64_t>(kHiddenCpuShare * static_cast<double>(verdict.step_ns)));
  const HostLateness lateness = measure_host_lateness(job, least);
  std::vector<std::int64_t> ranks;
  std::int64_t least_ns = INT64_MAX, most_ns = 0;
  std::uint64_t steps = verdict.steps;
  bool in_loader = true;
  for (const std::size_t i : find_late_hosts(job, lateness, least)) {
    const std::int64_t rank = job.numbers[job.compared[i]];
    if (std::find(verdict.ranks.begin(), verdict.ranks.end(), rank) != verdict.ranks.end()) return;
    ranks.push_back(rank);
    least_ns = std::min(least_ns, lateness.mean_ns[i]);
    most_ns = std::max(most_ns, lateness.mean_ns[i]);
    steps = std::min(steps, lateness.steps[i]);
    in_loader = in_loader && lateness.mostly_in_loader[i];
  }
  if (ranks.empty()) return;
  const bool one = ranks.size() == 1;
  add(verdict, NoteKind::kHiddenCpu,
      fmt::format(
          "The {} of {} {} {} {:.2f} ms longer a step than the others ({:.0f} % of it), in {} of "
          "{} steps: {}. {} {}{} had work queued, so no rank waited. A wait for the {} before that "
          "code, such as loss.item(), would make all ranks wait.",
          one ? "CPU" : "CPUs", one ? "rank" : "ranks", ranks_text(ranks),
          one ? "needs" : fmt::format("need {:.2f} to", ms(static_cast<double>(least_ns))),
          ms(static_cast<double>(most_ns)),
          100 * static_cast<double>(most_ns) / static_cast<double>(verdict.step_ns), steps,
          verdict.steps,
          in_loader ? "in the DataLoader" : "outside of operators and calls of the GPU's API",
          one ? "Its" : "Their", verdict.device, one ? "" : "s", verdict.device));
}

// Waiting for ranks without a file looks like communication.
bool has_all_ranks(const Job& job) {
  return job.world_size && *job.world_size == static_cast<std::int64_t>(job.compared.size());
}

}  // namespace

bool is_cpu_in_events(const JobVerdict& verdict) {
  return !verdict.causes.empty() && verdict.causes.front().cause == LateCause::kHost &&
         !verdict.host_part.starts_with("code without events");
}

const char* note_name(NoteKind kind) {
  switch (kind) {
    case NoteKind::kNotHidden:
      return "not-hidden";
    case NoteKind::kSmallCollectives:
      return "small-collectives";
    case NoteKind::kWaitIsNotNetwork:
      return "wait-is-not-network";
    case NoteKind::kProfiler:
      return "profiler";
    case NoteKind::kSample:
      return "sample";
    case NoteKind::kSlowedByWaits:
      return "slowed-by-waits";
    case NoteKind::kShortSteps:
      return "few-steps";
    case NoteKind::kUnequalSteps:
      return "unequal-steps";
    case NoteKind::kGroupNotHidden:
      return "group-not-hidden";
    case NoteKind::kSlowLink:
      return "slow-link";
    case NoteKind::kCpuBound:
      return "cpu-bound";
    case NoteKind::kLateHost:
      return "late-host";
    case NoteKind::kHiddenCpu:
      return "hidden-cpu";
  }
  return "";
}

void add_job_notes(const Job& job, JobVerdict& verdict) {
  const Means means = means_of(job);
  if (verdict.kind == VerdictKind::kPipeline) {
    // What sends and receives cost besides the waits is not known well enough for more notes.
  } else if (verdict.steps > 0) {  // something was compared
    note_waits(means, verdict);
    if (has_all_ranks(job)) {
      note_overlap(means, verdict);
      note_groups(job, means, verdict);
      note_small(job, means, verdict);
      if (std::string text = slow_links_text(job); !text.empty())
        add(verdict, NoteKind::kSlowLink, std::move(text));
    }
  }
  if (std::string text = late_host_text(job, verdict); !text.empty())
    add(verdict, NoteKind::kLateHost, std::move(text));
  note_slowed(verdict);
  note_hidden_cpus(job, verdict);
  if (std::string text = cpu_bound_text(job, verdict); !text.empty())
    add(verdict, NoteKind::kCpuBound, std::move(text));
  note_trust(job, verdict);
  note_steps(job, verdict);
}

}  // namespace lanescope::ranks
