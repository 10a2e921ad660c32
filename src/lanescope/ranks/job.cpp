#include "lanescope/ranks/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/ranks/host_clocks.h"
#include "lanescope/ranks/job_files.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {
namespace {

constexpr std::size_t kMostUnmatchedRemarks = 4;

RankTimes times_of(const RankStep& step) {
  RankTimes times;
  times.wall_ns = step.wall_ns;
  times.compute_ns = step.compute_ns;
  times.exposed_ns = step.exposed_ns;
  times.hidden_ns = step.hidden_ns;
  times.copy_ns = step.copy_ns;
  times.idle = step.idle;
  times.host_work_ns = step.host_work_ns;
  times.host_loader_ns = step.host_loader_ns;
  times.host_outside_ns = step.host_outside_ns;
  times.host_recording_ns = step.host_recording_ns;
  return times;
}

void add(RankTimes& sum, const RankTimes& more) {
  sum.wall_ns += more.wall_ns;
  sum.compute_ns += more.compute_ns;
  sum.exposed_ns += more.exposed_ns;
  sum.hidden_ns += more.hidden_ns;
  sum.copy_ns += more.copy_ns;
  for (std::size_t i = 0; i < sum.idle.size(); ++i) sum.idle[i] += more.idle[i];
  sum.wait_ns += more.wait_ns;
  sum.exposed_wait_ns += more.exposed_wait_ns;
  sum.own_ns += more.own_ns;
  sum.host_work_ns += more.host_work_ns;
  sum.host_loader_ns += more.host_loader_ns;
  sum.host_outside_ns += more.host_outside_ns;
  sum.host_recording_ns += more.host_recording_ns;
  sum.stage.first_ns += more.stage.first_ns;
  sum.stage.between_ns += more.stage.between_ns;
  sum.stage.last_ns += more.stage.last_ns;
  sum.stage.receives += more.stage.receives;
}

void divide(RankTimes& sum, std::int64_t by) {
  for (std::int64_t* value :
       {&sum.wall_ns, &sum.compute_ns, &sum.exposed_ns, &sum.hidden_ns, &sum.copy_ns, &sum.wait_ns,
        &sum.exposed_wait_ns, &sum.own_ns, &sum.host_work_ns, &sum.host_loader_ns,
        &sum.host_outside_ns, &sum.host_recording_ns, &sum.stage.first_ns, &sum.stage.between_ns,
        &sum.stage.last_ns})
    *value /= by;
  sum.stage.receives /= static_cast<std::uint64_t>(by);
  for (std::int64_t& idle : sum.idle) idle /= by;
}

class JobMaker {
 public:
  explicit JobMaker(Job job) : job_(std::move(job)) {}

  Job run(const std::vector<StepWait>& waits, const std::vector<GroupStep>& groups) {
    choose_steps();
    add_waits(waits);
    add_groups(groups);
    for (JobStep& step : job_.steps) finish_step(step);
    average();
    remark_matching();
    return std::move(job_);
  }

 private:
  void remark(RemarkKind kind, std::string text) {
    job_.remarks.push_back({kind, std::move(text)});
  }

  // Steps by number; files without numbers count theirs.
  std::map<std::int64_t, std::size_t> steps_of(std::size_t rank) const {
    std::map<std::int64_t, std::size_t> out;
    const auto& steps = job_.ranks[rank].steps;
    for (std::size_t i = 0; i < steps.size(); ++i)
      out.emplace(steps[i].number >= 0 ? steps[i].number : static_cast<std::int64_t>(i), i);
    return out;
  }

  // The steps that most ranks have, and the ranks that have all of these.
  void choose_steps() {
    std::vector<std::map<std::int64_t, std::size_t>> own;
    std::map<std::int64_t, std::size_t> votes, steady_votes;
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      own.push_back(steps_of(rank));
      for (const auto& [number, index] : own.back()) {
        ++votes[number];
        if (job_.ranks[rank].steps[index].steady) ++steady_votes[number];
      }
    }
    std::size_t most = 0;
    for (const auto& [number, count] : votes) most = std::max(most, steady_votes[number]);
    std::vector<std::int64_t> numbers;
    for (const auto& [number, count] : votes)
      if (most > 0 && steady_votes[number] == most) numbers.push_back(number);
    std::vector<std::int64_t> without;
    for (std::uint32_t rank = 0; rank < own.size(); ++rank) {
      const bool has_all = std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) {
        return own[rank].contains(number) && job_.ranks[rank].steps[own[rank].at(number)].steady;
      });
      if (has_all && !numbers.empty())
        job_.compared.push_back(rank);
      else
        without.push_back(job_.numbers[rank]);
    }
    if (!without.empty())
      remark(RemarkKind::kNoSteps,
             fmt::format("{} {} not compared: {} not hold whole steps that the others have",
                         without.size() == 1 ? "rank" : "ranks",
                         ranks_text(without) + (without.size() == 1 ? " is" : " are"),
                         without.size() == 1 ? "its file does" : "their files do"));
    for (const auto& [number, count] : votes) add_step(number, own, numbers);
  }

  // Also steps that are not steady, such as the first, are kept: they say since when.
  void add_step(std::int64_t number, const std::vector<std::map<std::int64_t, std::size_t>>& own,
                const std::vector<std::int64_t>& steady) {
    JobStep step;
    step.number = number;
    step.steady = std::binary_search(steady.begin(), steady.end(), number);
    std::vector<std::size_t> places;
    for (const std::uint32_t rank : job_.compared) {
      const auto found = own[rank].find(number);
      if (found == own[rank].end()) return;
      places.push_back(found->second);
    }
    if (places.empty()) return;
    step.late_ns.assign(places.size(), 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint32_t rank = job_.compared[i];
      step.times.push_back(times_of(job_.ranks[rank].steps[places[i]]));
      place_of_[{rank, places[i]}] = {job_.steps.size(), i};
    }
    job_.steps.push_back(std::move(step));
  }

  void add_waits(const std::vector<StepWait>& waits) {
    for (const StepWait& wait : waits) {
      const auto found = place_of_.find({wait.rank, static_cast<std::size_t>(wait.step)});
      if (found == place_of_.end()) continue;
      JobStep& step = job_.steps[found->second.first];
      step.late_ns[found->second.second] = wait.late_ns;
      RankTimes& times = step.times[found->second.second];
      times.wait_ns = wait.wait_ns;
      times.exposed_wait_ns = wait.exposed_wait_ns;
      times.stage = wait.stage;
    }
  }

  void add_groups(const std::vector<GroupStep>& rows) {
    std::vector<GroupStep> compared;
    for (const GroupStep& row : rows) {
      const auto found = place_of_.find({row.rank, static_cast<std::size_t>(row.step)});
      if (found != place_of_.end() && job_.steps[found->second.first].steady)
        compared.push_back(row);
    }
    job_.groups = sum_groups(job_.matching, compared, job_.compared.size() * job_.steady_count());
  }

  static void finish_step(JobStep& step) {
    for (RankTimes& times : step.times) {
      times.exposed_wait_ns = std::min(times.exposed_wait_ns, times.exposed_ns);
      times.own_ns = times.wall_ns - times.exposed_ns;
    }
    std::vector<std::int64_t> own;
    for (const RankTimes& times : step.times) own.push_back(times.own_ns);
    const std::int64_t usual = analysis::lower_median(own);
    for (std::size_t i = 0; i < own.size(); ++i)
      step.late_ns[i] = std::max(step.late_ns[i], own[i] - usual);
  }

  void average() {
    job_.times.assign(job_.compared.size(), {});
    const auto count = static_cast<std::int64_t>(job_.steady_count());
    for (const JobStep& step : job_.steps)
      if (step.steady)
        for (std::size_t i = 0; i < step.times.size(); ++i) add(job_.times[i], step.times[i]);
    if (count > 0)
      for (RankTimes& times : job_.times) divide(times, count);
  }

  std::string group_text(std::uint32_t group) const {
    const MatchedGroup& what = job_.matching.groups[group];
    if (what.name.empty()) return "the job";
    return fmt::format("group {}{}", what.name,
                       what.description.empty() ? "" : " (" + what.description + ")");
  }

  void remark_matching() {
    std::vector<std::uint64_t> calls;
    for (const RankSummary& rank : job_.ranks) calls.push_back(rank.totals.calls);
    const std::vector<std::uint64_t>& matched = job_.matching.matched;
    std::vector<char> is_other(job_.ranks.size(), 0);
    remark_other_models(calls, matched, is_other);
    const std::vector<std::uint64_t> differing = remark_mismatches(is_other);
    std::size_t named = 0;
    for (std::size_t rank = 0; rank < job_.ranks.size() && job_.ranks.size() > 1; ++rank) {
      if (calls[rank] - matched[rank] <= differing[rank] || is_other[rank] != 0) continue;
      if (++named > kMostUnmatchedRemarks) continue;
      remark(RemarkKind::kUnmatched,
             fmt::format("rank {}: {} of {} collectives have no partner on other ranks, and are "
                         "not compared",
                         job_.numbers[rank], calls[rank] - matched[rank], calls[rank]));
    }
    if (named > kMostUnmatchedRemarks)
      remark(RemarkKind::kUnmatched, fmt::format("{} more ranks have collectives without partners",
                                                 named - kMostUnmatchedRemarks));
    remark_unknown_groups();
    remark_clocks(calls, is_other);
  }

  void remark_unknown_groups() {
    std::vector<std::int64_t> ranks;
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank)
      if (job_.ranks[rank].groups_unknown) ranks.push_back(job_.numbers[rank]);
    if (ranks.empty() || job_.ranks.size() < 2) return;
    remark(
        RemarkKind::kUnmatched,
        fmt::format("{} {} {} in several process groups, and Gloo's collectives do not say which "
                    "one they are of: they are not compared, and waits are unknown",
                    ranks.size() == 1 ? "rank" : "ranks", ranks_text(ranks),
                    ranks.size() == 1 ? "is" : "are"));
  }

  // A line for the first one of each rank. Returns how many are known, one per rank.
  std::vector<std::uint64_t> remark_mismatches(const std::vector<char>& is_other) {
    std::vector<std::uint64_t> known(job_.ranks.size(), 0);
    for (const Mismatch& mismatch : job_.matching.mismatches) ++known[mismatch.rank];
    std::vector<char> is_told = is_other;
    for (const Mismatch& mismatch : job_.matching.mismatches) {
      if (is_told[mismatch.rank] != 0) continue;
      is_told[mismatch.rank] = 1;
      remark_mismatch(mismatch, known[mismatch.rank] - 1);
    }
    return known;
  }

  // Hardly anything fits on this rank, while it fits on most others.
  void remark_other_models(const std::vector<std::uint64_t>& calls,
                           const std::vector<std::uint64_t>& matched, std::vector<char>& is_other) {
    std::size_t whole = 0;
    for (std::size_t rank = 0; rank < calls.size(); ++rank)
      whole += calls[rank] > 0 && matched[rank] * 10 >= calls[rank] * 9 ? 1 : 0;
    if (whole * 2 < calls.size() || whole < 2) return;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      if (calls[rank] < 4 || matched[rank] * 2 >= calls[rank]) continue;
      is_other[rank] = 1;
      remark(RemarkKind::kOtherModel,
             fmt::format("rank {} runs another program or model: only {} of its {} collectives are "
                         "those of the other ranks",
                         job_.numbers[rank], matched[rank], calls[rank]));
    }
  }

  void remark_mismatch(const Mismatch& mismatch, std::uint64_t more) {
    const std::string where =
        job_.matching.groups[mismatch.group].by_sequence
            ? fmt::format("collective {} of {}", mismatch.place, group_text(mismatch.group))
            : fmt::format("collective {}{} of {}", mismatch.place + 1,
                          mismatch.step >= 0 ? fmt::format(" in step {}", mismatch.step) : "",
                          group_text(mismatch.group));
    remark(RemarkKind::kMismatch,
           fmt::format(
               "{}: rank {} calls {}, the others {}{}: this ends in a hang or wrong results", where,
               job_.numbers[mismatch.rank], mismatch.found, mismatch.expected,
               more == 0
                   ? ""
                   : fmt::format(", and {}{} more of its collectives differ",
                                 job_.matching.mismatch_count > kMostMismatches ? "at least " : "",
                                 more)));
  }

  void remark_clocks(const std::vector<std::uint64_t>& calls, const std::vector<char>& is_other) {
    std::vector<std::int64_t> unlinked, wrong;
    for (std::size_t rank = 0; rank < job_.clocks.size(); ++rank) {
      if (is_other[rank] != 0) continue;
      if (!job_.clocks[rank].known && calls[rank] > 0) unlinked.push_back(job_.numbers[rank]);
      if (job_.clocks[rank].contradicts) wrong.push_back(job_.numbers[rank]);
    }
    if (!unlinked.empty())
      remark(
          RemarkKind::kClock,
          fmt::format("no collective that all ranks wait in links {} {} with rank {}: the clocks "
                      "cannot be compared, and waits in collectives are unknown",
                      unlinked.size() == 1 ? "rank" : "ranks", ranks_text(unlinked),
                      job_.numbers.front()));
    if (!wrong.empty())
      remark(RemarkKind::kClock,
             fmt::format("collectives of {} {} contradict each other in time: some of them are not "
                         "what they seem, and waits there are unknown",
                         wrong.size() == 1 ? "rank" : "ranks", ranks_text(wrong)));
  }

  Job job_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::pair<std::size_t, std::size_t>> place_of_;
};

}  // namespace

std::int64_t RankTimes::idle_ns() const {
  return std::accumulate(idle.begin(), idle.end(), std::int64_t{0});
}

std::int64_t RankTimes::cpu_idle_ns() const {
  std::int64_t sum = 0;
  for (const analysis::IdleCause cause :
       {analysis::IdleCause::kHostLate, analysis::IdleCause::kAfterSync,
        analysis::IdleCause::kLaunchLatency, analysis::IdleCause::kBeforeFirstWork,
        analysis::IdleCause::kAfterLastWork})
    sum += idle[static_cast<std::size_t>(cause)];
  return sum;
}

std::int64_t RankTimes::most_exposed_wait_ns() const {
  return std::max(exposed_wait_ns, std::min(wait_ns, exposed_ns));
}

bool Job::knows_waits(std::size_t rank) const {
  const auto is_known = [](const RankClock& clock) { return clock.known && !clock.contradicts; };
  if (ranks[rank].groups_unknown || !is_known(clocks[rank])) return false;
  return std::count_if(clocks.begin(), clocks.end(), is_known) > 1;
}

std::uint64_t Job::steady_count() const {
  return static_cast<std::uint64_t>(
      std::count_if(steps.begin(), steps.end(), [](const JobStep& step) { return step.steady; }));
}

Result<Job> build_job(std::vector<RankFile> files) {
  std::vector<PlacedFile> placed;
  for (std::size_t i = 0; i < files.size(); ++i) placed.push_back({i, std::move(files[i])});
  SingleWorker worker;
  return build_job(std::move(placed), worker);
}

Result<Job> build_job(std::vector<PlacedFile> files, Communicator& workers) {
  LANESCOPE_TRY(DividedJob divided, divide_job(std::move(files), workers));
  Job job = std::move(divided.job);
  job.matching = match_collectives(divided.own, divided.layout.home.size(), workers);
  divided.own.clear();
  job.clocks = compute_clock_offsets(divided.layout, job.matching, workers);
  std::vector<std::string> hosts;
  for (const RankSummary& rank : job.ranks) hosts.push_back(rank.host_name);
  share_host_clocks(hosts, divided.layout.on_cpu, workers, job.clocks);
  job.rates = compute_collective_rates(job.matching, job.clocks, workers);
  JobWaits waits = compute_waits(divided.layout, job.matching, job.clocks, workers);
  if (workers.worker() != 0) return Job();
  if (workers.workers() > 1) job.matching.collectives.clear();
  job.last_arrivals = std::move(waits.last_arrivals);
  job.critical = std::move(waits.critical);
  return JobMaker(std::move(job)).run(waits.steps, waits.groups);
}

}  // namespace lanescope::ranks
