// How the recorder keeps to its budget: sums what the sources measured (cost_meter.h), asks
// CostBudget, hands its decisions to the sources, and writes them into the recording.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "lanescope/record/active_recorder.h"
#include "lanescope/record/record_abi.h"

namespace lanescope::record {
namespace {

constexpr std::uint32_t kInputDetails = LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_FLOPS;
// The list is written again when something changed, but not more often than this, and the longer
// the recording is the more seldom: each time takes room in the file.
constexpr std::int64_t kWriteInterval = CostBudget::kSecond;
constexpr std::int64_t kWritesInALifetime = 20;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * CostBudget::kSecond + now.tv_nsec;
}

std::string percent(double ratio) { return fmt::format("{:.2g} %", ratio * 100); }

}  // namespace

CostSum ActiveRecorder::sum_cost() {
  std::uint64_t ticks = 0, calls = 0;
  {
    const MutexLock lock(registry_);
    ticks = ended_cost_ticks_;
    calls = ended_calls_;
    for (const LanescopeWriter* writer : writers_) {
      ticks += writer->cost.ticks.load(std::memory_order_relaxed);
      calls += writer->cost.calls.load(std::memory_order_relaxed);
    }
  }
  const auto rate = static_cast<double>(spool_->file().header().ticks_per_second);
  const double ns = static_cast<double>(ticks) / rate * static_cast<double>(CostBudget::kSecond);
  return {static_cast<std::int64_t>(ns), calls};
}

std::uint32_t ActiveRecorder::thinned(std::uint32_t options) const {
  if (!budget_is_open_) return options;
  if (budget_->thinning() >= Thinning::kInputs) options &= ~kInputDetails;
  if (budget_->thinning() >= Thinning::kStacks) options &= ~LANESCOPE_RECORD_STACK;
  if (budget_->is_paused()) options |= LANESCOPE_RECORD_PAUSED;
  return options;
}

void ActiveRecorder::follow_budget() {
  const auto opens = [](const auto& session) { return session->open; };
  const auto lacks = [](const auto& session) {
    return session->open && session->budget_ratio == 0;
  };
  const bool wanted = budget_ && std::any_of(sessions_.begin(), sessions_.end(), opens) &&
                      std::none_of(sessions_.begin(), sessions_.end(), lacks);
  if (wanted == budget_is_open_) return;
  const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
  if (budget_began_ns_ == 0) {
    budget_began_ns_ = now;
    budget_wall_offset_ns_ = clock_ns(CLOCK_REALTIME) - now;
  }
  const std::int64_t wall = now + budget_wall_offset_ns_;
  budget_is_open_ = wanted;
  has_budget_.store(wanted, std::memory_order_relaxed);
  if (!wanted) {
    budget_->close(now, wall, sum_cost());
    change_sources();
    return write_budget();
  }
  budget_->open(now, wall, sum_cost());
  change_sources();
}

void ActiveRecorder::change_sources() {
  update_options();
  if (open_windows_ == 0) return;
  std::vector<Source> sources;
  {
    const MutexLock lock(registry_);
    sources = sources_;
  }
  const std::uint32_t options = lanescope_record_options.load(std::memory_order_relaxed);
  for (const Source& source : sources)
    if (source.running && source.table->change) source.table->change(source.table->self, options);
}

void ActiveRecorder::look_at_cost() noexcept {
  if (!has_budget_.load(std::memory_order_relaxed)) return;
  if (!control_.try_lock()) return;
  try {
    if (spool_ && budget_is_open_) judge_cost();
  } catch (...) {  // no memory: things stay as they are
  }
  control_.unlock();
}

void ActiveRecorder::judge_cost() {
  const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
  const auto change = budget_->look(now, now + budget_wall_offset_ns_, sum_cost());
  if (change) {
    change_sources();
    if (change->before != change->after) note_thinning(*change);
  }
  const std::int64_t interval =
      std::max(kWriteInterval, (now - budget_began_ns_) / kWritesInALifetime);
  if (budget_version_ != budget_->version() && now - budget_written_ns_ >= interval) write_budget();
}

void ActiveRecorder::note_thinning(const CostBudget::Change& change) {
  const double seconds =
      static_cast<double>(clock_ns(CLOCK_MONOTONIC) - budget_began_ns_) / CostBudget::kSecond;
  std::string line;
  if (change.after < change.before) {
    line =
        fmt::format("from {:.1f} s on with {} again: recording cost only {} of the time", seconds,
                    change.before == Thinning::kOperatorsInParts ? "all operators"
                                                                 : thinned_word(change.before),
                    percent(change.share_ratio));
  } else {
    const std::string without = change.after == Thinning::kOperatorsInParts
                                    ? "with operators in parts only"
                                    : fmt::format("without {}", thinned_word(change.after));
    line = fmt::format("from {:.1f} s on {}: recording cost {} of the time, its budget is {}",
                       seconds, without, percent(change.share_ratio), percent(budget_->ratio()));
  }
  for (const auto& session : sessions_)
    if (session->open) note(*session, line);
}

void ActiveRecorder::write_budget() {
  if (!budget_->periods().empty()) source_metadata("lanescope_thinned", budget_->thinned_json());
  source_metadata("lanescope_cost", budget_->cost_json());
  budget_version_ = budget_->version();
  budget_written_ns_ = clock_ns(CLOCK_MONOTONIC);
}

}  // namespace lanescope::record
