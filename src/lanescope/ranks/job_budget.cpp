#include "lanescope/ranks/job_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace lanescope::ranks {
namespace {

using explain::BudgetState;
using explain::Measure;
using explain::MeasureUnit;

constexpr Measure rank_time(const char* key, const char* meaning, bool has_share = true) {
  return {key, MeasureUnit::kTime, has_share, true, meaning};
}
constexpr Measure job_count(const char* key, const char* meaning) {
  return {key, MeasureUnit::kCount, false, false, meaning};
}

constexpr Measure kMeasures[] = {
    rank_time("wall", "the mean step of a rank", false),
    rank_time("own", "its step without exposed communication"),
    rank_time("compute", "kernels that are no communication"),
    rank_time("idle", "its device has nothing to do"),
    rank_time("waiting_for_cpu", "idle because its CPU was late"),
    rank_time("exposed_copy", "copies that nothing hides"),
    rank_time("exposed_communication", "communication while nothing computes"),
    rank_time("hidden_communication", "communication while it computes"),
    rank_time("transfer", "exposed communication without waits"),
    rank_time("waits", "exposed waits for ranks that come later"),
    rank_time("late", "how late the rank is in a step"),
    {"own_spread", MeasureUnit::kTime, false, true, "the longest own time minus the shortest"},
    {"clock_error", MeasureUnit::kTime, false, false, "the largest error of the clocks"},
    job_count("ranks", "ranks that are compared"),
    job_count("steps", "steady steps that all of these have"),
    job_count("missing_ranks", "ranks of the job without a file"),
    job_count("mismatches", "collectives on which ranks disagree"),
    job_count("unmatched_calls", "collective calls without a partner"),
};

using RankValue = std::function<std::int64_t(const RankTimes&)>;

// The measures that are a part of RankTimes.
std::optional<RankValue> part_of_times(std::string_view key) {
  if (key == "wall") return [](const RankTimes& t) { return t.wall_ns; };
  if (key == "own") return [](const RankTimes& t) { return t.own_ns; };
  if (key == "compute") return [](const RankTimes& t) { return t.compute_ns; };
  if (key == "idle") return [](const RankTimes& t) { return t.idle_ns(); };
  if (key == "waiting_for_cpu") return [](const RankTimes& t) { return t.cpu_idle_ns(); };
  if (key == "exposed_copy") return [](const RankTimes& t) { return t.copy_ns; };
  if (key == "exposed_communication") return [](const RankTimes& t) { return t.exposed_ns; };
  if (key == "hidden_communication") return [](const RankTimes& t) { return t.hidden_ns; };
  if (key == "transfer") return [](const RankTimes& t) { return t.certain_transfer_ns(); };
  if (key == "waits") return [](const RankTimes& t) { return t.exposed_wait_ns; };
  return std::nullopt;
}

bool needs_clocks(std::string_view key) {
  return key == "transfer" || key == "waits" || key == "late" || key == "clock_error";
}

class Checker {
 public:
  Checker(const Job& job, const JobVerdict& verdict) : job_(job), verdict_(verdict) {}

  JobBudgetReport run(const JobBudget& budget) {
    if (!budget.allow_damage) add_damage();
    for (const explain::Limit& limit : budget.limits) out_.lines.push_back(check(limit));
    if (!budget.must_not_be.empty()) add_verdict(budget.must_not_be);
    for (const JobBudgetLine& line : out_.lines) {
      out_.broken += line.state == BudgetState::kBroken ? 1 : 0;
      out_.missing += line.state == BudgetState::kMissing ? 1 : 0;
    }
    return std::move(out_);
  }

 private:
  static JobBudgetLine missing_line(std::string key, std::string missing) {
    JobBudgetLine line;
    line.key = std::move(key);
    line.state = BudgetState::kMissing;
    line.missing = std::move(missing);
    return line;
  }

  // What a file lacks may be what is over the limit.
  void add_damage() {
    std::size_t unreadable = 0, truncated = 0, incomparable = 0;
    for (const Remark& remark : job_.remarks) {
      unreadable += remark.kind == RemarkKind::kUnreadable ? 1 : 0;
      truncated += remark.kind == RemarkKind::kTruncated ? 1 : 0;
    }
    incomparable = job_.ranks.size() - job_.compared.size();
    if (unreadable + truncated + incomparable == 0) return;
    out_.lines.push_back(missing_line(
        "damage",
        fmt::format("all files whole: {} could not be read, {} cut, {} without the steps that the "
                    "others have (lanescope ranks names them); allow_damage = true checks the rest",
                    unreadable, truncated, incomparable)));
  }

  std::string clocks_missing() const {
    for (const std::uint32_t rank : job_.compared)
      if (!job_.clocks[rank].known || job_.clocks[rank].contradicts)
        return fmt::format("collectives that link the clock of rank {} with the others",
                           job_.numbers[rank]);
    return {};
  }

  JobBudgetLine check(const explain::Limit& limit) const {
    const std::string_view key = limit.measure->key;
    if (limit.measure->unit == MeasureUnit::kCount) return check_count(limit);
    if (job_.times.empty())
      return missing_line(std::string(key), "whole steps that ranks have in common");
    if (needs_clocks(key))
      if (std::string missing = clocks_missing(); !missing.empty())
        return missing_line(std::string(key), std::move(missing));
    if (key == "own_spread" || key == "clock_error") {
      const std::int64_t value = key == "own_spread" ? own_spread() : clock_error();
      return judged(limit, static_cast<double>(value), -1);
    }
    return check_ranks(limit);
  }

  // The rank that comes closest to breaking the limit decides.
  JobBudgetLine check_ranks(const explain::Limit& limit) const {
    const std::string_view key = limit.measure->key;
    const std::optional<RankValue> part = part_of_times(key);
    std::optional<double> worst;
    std::int64_t rank = -1;
    for (std::size_t i = 0; i < job_.times.size(); ++i) {
      const auto wall = static_cast<double>(job_.times[i].wall_ns);
      double value = part ? static_cast<double>((*part)(job_.times[i])) : mean_lateness(i);
      if (limit.is_share) value = wall > 0 ? value / wall : 0;
      if (worst && (limit.at_most ? value <= *worst : value >= *worst)) continue;
      worst = value;
      rank = job_.numbers[job_.compared[i]];
    }
    JobBudgetLine line = judged(limit, *worst, rank);
    if (needs_clocks(key)) line.error_ns = clock_error();
    return line;
  }

  JobBudgetLine check_count(const explain::Limit& limit) const {
    const std::string_view key = limit.measure->key;
    std::uint64_t value = 0;
    if (key == "ranks") value = job_.compared.size();
    if (key == "steps") value = job_.steady_count();
    if (key == "mismatches") value = job_.matching.mismatch_count;
    if (key == "unmatched_calls") {
      for (const MatchedGroup& group : job_.matching.groups) value += group.unmatched;
      for (const RankSummary& rank : job_.ranks)
        if (rank.groups_unknown) value += rank.unlinked_collectives;
    }
    if (key == "missing_ranks") {
      if (!job_.world_size)
        return missing_line(std::string(key), "the number of the job's ranks (distributedInfo)");
      value = static_cast<std::uint64_t>(std::max<std::int64_t>(
          0, *job_.world_size - static_cast<std::int64_t>(job_.ranks.size())));
    }
    return judged(limit, static_cast<double>(value), -1);
  }

  static JobBudgetLine judged(const explain::Limit& limit, double value, std::int64_t rank) {
    JobBudgetLine line;
    line.key = limit.measure->key;
    line.has_value = true;
    line.value = value;
    line.limit = limit.value;
    line.at_most = limit.at_most;
    line.rank = rank;
    line.unit = limit.is_share                              ? "ratio"
                : limit.measure->unit == MeasureUnit::kTime ? "ns"
                                                            : "count";
    const bool kept = limit.at_most ? value <= limit.value : value >= limit.value;
    line.state = kept ? BudgetState::kKept : BudgetState::kBroken;
    return line;
  }

  void add_verdict(const std::vector<std::string>& must_not_be) {
    const std::string kind = verdict_name(verdict_.kind);
    if (verdict_.kind == VerdictKind::kUnknown) {
      out_.lines.push_back(missing_line("verdict", "a verdict; there is none: " + verdict_.reason));
      return;
    }
    JobBudgetLine line;
    line.key = "verdict";
    line.text = kind;
    if (std::find(must_not_be.begin(), must_not_be.end(), kind) != must_not_be.end())
      line.state = BudgetState::kBroken;
    out_.lines.push_back(std::move(line));
  }

  double mean_lateness(std::size_t compared) const {
    std::int64_t late = 0;
    for (const JobStep& step : job_.steps)
      if (step.steady) late += step.late_ns[compared];
    return static_cast<double>(late) /
           static_cast<double>(std::max<std::uint64_t>(1, job_.steady_count()));
  }

  std::int64_t own_spread() const {
    const auto [least, most] = std::minmax_element(
        job_.times.begin(), job_.times.end(),
        [](const RankTimes& a, const RankTimes& b) { return a.own_ns < b.own_ns; });
    return most->own_ns - least->own_ns;
  }

  std::int64_t clock_error() const {
    std::int64_t error = 0;
    for (const std::uint32_t rank : job_.compared)
      error = std::max(error, job_.clocks[rank].error_ns);
    return error;
  }

  const Job& job_;
  const JobVerdict& verdict_;
  JobBudgetReport out_;
};

}  // namespace

std::span<const Measure> job_measures() { return kMeasures; }

std::vector<std::string> job_verdict_names() {
  return {verdict_name(VerdictKind::kStraggler), verdict_name(VerdictKind::kRotating),
          verdict_name(VerdictKind::kUneven), verdict_name(VerdictKind::kPipeline)};
}

JobBudgetReport check_job(const Job& job, const JobVerdict& verdict, const JobBudget& budget) {
  return Checker(job, verdict).run(budget);
}

}  // namespace lanescope::ranks
