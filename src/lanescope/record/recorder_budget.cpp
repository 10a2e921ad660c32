// Keeps the recorder within its budget: sums what the sources measured (cost_meter.h), asks
// CostBudget, passes its decisions to the sources, and writes them into the recording.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "lanescope/record/active_recorder.h"
#include "lanescope/record/record_abi.h"
#include "lanescope/record/unseen_cost.h"

namespace lanescope::record {
namespace {

constexpr std::uint32_t kInputDetails = LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_FLOPS;
// There are more Python frames than operators, so modules go with stacks.
constexpr std::uint32_t kStackDetails = LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MODULES;
// The list is written again after a change, but not more often than kWriteInterval and than
// kWritesPerDuration times in the time so far, because each write takes room in the file.
constexpr std::int64_t kWriteInterval = CostBudget::kSecond;
constexpr std::int64_t kWritesPerDuration = 20;

std::int64_t budget_clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * CostBudget::kSecond + now.tv_nsec;
}

std::string percent(double ratio) { return fmt::format("{:.2g} %", ratio * 100); }

}  // namespace

CostSum ActiveRecorder::sum_cost() {
  const ThreadCosts sum = writers_.cost();
  const auto rate = static_cast<double>(spool_->file().header().ticks_per_second);
  const auto ns = [&](LanescopeCostKind kind) {
    return static_cast<std::int64_t>(static_cast<double>(sum.ticks[kind]) / rate *
                                     static_cast<double>(CostBudget::kSecond));
  };
  return {ns(kLanescopeOperators) + ns(kLanescopeFrames),
          sum.calls,
          ns(kLanescopeRanges),
          ns(kLanescopeMemory),
          ns(kLanescopeGpuCalls),
          sum.left_out,
          sum.left_out_ranges,
          gpu_moves_ns_,
          0};
}

void ActiveRecorder::make_budget(const RecorderOptions& options) {
  // Once, before anything is measured. A call that takes longer than 20 us was interrupted.
  constexpr std::uint64_t kMostCallsPerSecond = 50'000;
  if (lanescope_cost_scale.most == ~std::uint64_t{0}) {
    const std::uint64_t rate = spool_->file().header().ticks_per_second;
    for (int kind = 0; kind < kLanescopeCostKinds; ++kind)
      lanescope_cost_scale.unseen[kind] =
          unseen_ns(static_cast<LanescopeCostKind>(kind)) * rate / CostBudget::kSecond;
    lanescope_cost_scale.most = rate / kMostCallsPerSecond;
  }
  budget_.emplace(options.budget_ratio,
                  (options.options & (LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_FLOPS)) != 0,
                  (options.options & (LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MODULES)) != 0,
                  (options.options & LANESCOPE_RECORD_MEMORY) != 0,
                  options.gpu_in_parts && options.last_ns == 0 &&
                      (options.activities & LANESCOPE_ACTIVITY_CUDA) != 0);
}

// What the budget could not prevent, such as many calls of the GPU's API.
void ActiveRecorder::note_budget_exceeded(Session& session) {
  constexpr double kMargin = 1.25;
  if (!budget_ || session.budget_ratio == 0 || budget_->share() < kMargin * budget_->ratio() ||
      budget_->window_ns() < CostBudget::kSecond)
    return;
  const CostBudget& budget = *budget_;  // Clang's check does not follow the lock into lambdas
  const CostSum& spent = budget.spent();
  const auto part = [&](std::int64_t ns) { return percent(budget.share_of(ns)); };
  note(session,
       fmt::format("recording cost {} of the time, its budget is {}: operators {}, ranges of the "
                   "program {}, allocations {}, calls of the GPU's API {}",
                   percent(budget_->share()), percent(budget_->ratio()), part(spent.cost_ns),
                   part(spent.ranges_ns), part(spent.memory_ns), part(spent.gpu_calls_ns)));
}

std::uint32_t ActiveRecorder::thinned(std::uint32_t options) const {
  if (!budget_is_open_) return options;
  if (budget_->thinning() >= Thinning::kInputs) options &= ~kInputDetails;
  if (budget_->thinning() >= Thinning::kStacks) options &= ~kStackDetails;
  if (budget_->memory_end_ns()) options &= ~std::uint32_t{LANESCOPE_RECORD_MEMORY};
  if (budget_->is_paused()) options |= LANESCOPE_RECORD_PAUSED;
  if (budget_->is_paused() && budget_->thinning() == Thinning::kRangesInParts)
    options |= LANESCOPE_RECORD_PAUSED_RANGES;
  if (windows_ended_)
    options |= LANESCOPE_RECORD_PAUSED | LANESCOPE_RECORD_PAUSED_RANGES | LANESCOPE_RECORD_ENDED;
  return options;
}

std::uint64_t ActiveRecorder::short_operator_ticks() const {
  if (!budget_is_open_ || budget_->thinning() != Thinning::kShortOperators) return 0;
  const auto rate = static_cast<double>(spool_->file().header().ticks_per_second);
  return static_cast<std::uint64_t>(static_cast<double>(budget_->short_ns()) * rate /
                                    static_cast<double>(CostBudget::kSecond));
}

void ActiveRecorder::follow_budget() {
  const auto opens = [](const auto& session) { return session->open; };
  const auto lacks = [](const auto& session) {
    return session->open && session->budget_ratio == 0;
  };
  const bool wanted = budget_ && std::any_of(sessions_.begin(), sessions_.end(), opens) &&
                      std::none_of(sessions_.begin(), sessions_.end(), lacks);
  if (wanted == budget_is_open_) return;
  const std::int64_t now = budget_clock_ns(CLOCK_MONOTONIC);
  if (budget_began_ns_ == 0) {
    budget_began_ns_ = now;
    budget_wall_offset_ns_ = budget_clock_ns(CLOCK_REALTIME) - now;
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
  if (open_windows_ != 0) sources_.change(lanescope_record_options.load(std::memory_order_relaxed));
}

bool ActiveRecorder::check_cost() noexcept {
  if (!has_budget_.load(std::memory_order_relaxed)) return false;
  if (!control_.try_lock()) return true;
  try {
    if (spool_ && budget_is_open_) judge_cost();
  } catch (...) {  // no memory: nothing changes
  }
  control_.unlock();
  return true;
}

void ActiveRecorder::judge_cost() {
  const std::int64_t now = budget_clock_ns(CLOCK_MONOTONIC);
  const auto change = budget_->update(now, now + budget_wall_offset_ns_, sum_cost());
  if (change) {
    if (change->begins_gpu) return begin_gpu_part();
    if (change->ends_recording) end_windows();
    change_sources();
    if (change->ends_recording && budget_->gpu().is_wanted()) {
      gpu_moves_ns_ += GpuParts::kDetachNs;
      write_budget();
    } else if (change->before != change->after || change->ends_memory || change->ends_recording) {
      note_thinning(*change);
    }
  }
  const std::int64_t interval =
      std::max(kWriteInterval, (now - budget_began_ns_) / kWritesPerDuration);
  if (budget_version_ != budget_->version() && now - budget_written_ns_ >= interval) write_budget();
}

// The sessions stay open, so that starts and stops mean what they did.
void ActiveRecorder::end_windows() {
  lanescope_recording.store(0, std::memory_order_seq_cst);
  writers_.wait_until_outside();
  for (const auto& session : sessions_) {
    if (!session->open || session->ended) continue;
    mark_window(spool::RecordKind::kWindowStop, *session);
    session->ended = true;
  }
  windows_ended_ = true;
}

// Ends a window of the CPU alone, or follows a part that ended; each part is a window of its own. CUPTI
// comes first: if it cannot, the window goes on.
void ActiveRecorder::begin_gpu_part() {
  const auto in_parts = [](const auto& session) { return session->open && session->gpu_in_parts; };
  const auto asking = std::find_if(sessions_.begin(), sessions_.end(), in_parts);
  if (asking == sessions_.end()) return budget_->gpu_failed();
  sources_.stop(LANESCOPE_ACTIVITY_CUDA);  // of the part before; reads what came late
  sources_.start(LANESCOPE_ACTIVITY_CUDA, (*asking)->options, note_for(**asking));
  if (!sources_.is_running(LANESCOPE_ACTIVITY_CUDA)) return budget_->gpu_failed();
  if (!windows_ended_) end_windows();
  for (const auto& session : sessions_) {
    if (!session->open) continue;
    mark_window(spool::RecordKind::kWindowStart, *session, LANESCOPE_RECORD_GPU_PART);
    session->ended = false;
  }
  windows_ended_ = false;
  const std::int64_t now = budget_clock_ns(CLOCK_MONOTONIC);
  gpu_moves_ns_ += GpuParts::kAttachNs;
  budget_->gpu_began(now, now + budget_wall_offset_ns_, sum_cost());
  update_options();
  lanescope_recording.store(next_window_++, std::memory_order_release);  // pairs as in start()
  if (spool_->file().is_cut()) lanescope_recording.store(0, std::memory_order_relaxed);
  change_sources();
  write_budget();
}

// One line, at the end.
void ActiveRecorder::note_gpu_parts(Session& session) {
  if (!budget_ || !session.gpu_in_parts || !budget_->gpu().is_wanted()) return;
  const GpuParts& gpu = budget_->gpu();
  const auto seconds = [](std::int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(CostBudget::kSecond);
  };
  const std::string what = percent(budget_->ratio());
  if (gpu.parts().empty())
    return note(
        session,
        fmt::format("the GPU was not recorded: the budget of {} pays for it after {:.1f} s or "
                    "more, and this recording ended before; without --budget, or with a "
                    "larger one, the GPU is recorded earlier",
                    what, seconds(gpu.wait_ns() + budget_->window_ns())));
  std::int64_t from_ns = 0, longest_ns = -1;
  for (const GpuParts::Part& part : gpu.parts()) {
    const std::int64_t length = part.to_ns.value_or(part.from_ns) - part.from_ns;
    if (length <= longest_ns) continue;
    longest_ns = length;
    from_ns = part.from_ns - (budget_began_ns_ + budget_wall_offset_ns_);
  }
  note(session,
       fmt::format("the budget of {} paid for {} with the GPU; the trace is {}, from {:.2f} s "
                   "to {:.2f} s after the start",
                   what,
                   gpu.parts().size() == 1 ? std::string("one part")
                                           : fmt::format("{} parts", gpu.parts().size()),
                   gpu.parts().size() == 1 ? "that part" : "the longest of them", seconds(from_ns),
                   seconds(from_ns + longest_ns)));
}

void ActiveRecorder::note_thinning(const CostBudget::Change& change) {
  const double seconds = static_cast<double>(budget_clock_ns(CLOCK_MONOTONIC) - budget_began_ns_) /
                         CostBudget::kSecond;
  std::string line;
  if (change.ends_recording) {
    line = fmt::format(
        "from {:.1f} s on nothing is recorded: recording the GPU cost {} of the time, the budget "
        "is {}; --schedule records some steps only, --activities cpu leaves the GPU out",
        seconds, percent(budget_->share_of(budget_->spent().gpu_calls_ns)),
        percent(budget_->ratio()));
  } else if (change.ends_memory) {
    line = fmt::format(
        "from {:.1f} s on without allocations: recording them cost {} of the time, the whole "
        "budget is {}; memory numbers are those of the time before",
        seconds, percent(budget_->share_of(budget_->spent().memory_ns)), percent(budget_->ratio()));
  } else if (change.after < change.before && !change.is_next_level) {
    line =
        fmt::format("from {:.1f} s on with {} again: recording cost only {} of the time", seconds,
                    change.before == Thinning::kRangesInParts ? "operators and ranges all the time"
                    : change.before == Thinning::kOperatorsInParts ? "operators all the time"
                                                                   : thinned_word(change.before),
                    percent(change.share_ratio));
  } else {
    std::string without = fmt::format("without {}", thinned_word(change.after));
    if (change.after == Thinning::kOperatorsInParts) without = "with operators in parts only";
    if (change.after == Thinning::kRangesInParts)
      without = "with operators and ranges of the program in parts only";
    if (change.after == Thinning::kShortOperators)
      without += fmt::format(" (under {:.0f} us)", static_cast<double>(budget_->short_ns()) / 1e3);
    line = fmt::format("from {:.1f} s on {}: recording cost {} of the time, its budget is {}",
                       seconds, without, percent(change.share_ratio), percent(budget_->ratio()));
  }
  for (const auto& session : sessions_)
    if (session->open) note(*session, line);
}

void ActiveRecorder::write_budget() {
  if (budget_->has_left_out_anything())
    sources_.write_metadata("lanescope_thinned", budget_->thinned_json());
  sources_.write_metadata("lanescope_cost", budget_->cost_json());
  if (budget_->gpu().is_wanted())
    sources_.write_metadata("lanescope_gpu_parts",
                            budget_->gpu().json(budget_began_ns_ + budget_wall_offset_ns_));
  budget_version_ = budget_->version();
  budget_written_ns_ = budget_clock_ns(CLOCK_MONOTONIC);
}

}  // namespace lanescope::record
