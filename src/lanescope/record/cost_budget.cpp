#include "lanescope/record/cost_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace lanescope::record {

const char* thinned_word(Thinning thinning) {
  switch (thinning) {
    case Thinning::kInputs:
      return "input shapes";
    case Thinning::kStacks:
      return "stacks";
    case Thinning::kShortOperators:
      return "short operators";
    case Thinning::kOperatorsInParts:
      return "operators";
    case Thinning::kRangesInParts:
      return "operators and ranges";
    case Thinning::kNothing:
      break;
  }
  return "";
}

CostSum CostSum::since(const CostSum& before) const {
  return {cost_ns - before.cost_ns,
          calls - before.calls,
          ranges_ns - before.ranges_ns,
          memory_ns - before.memory_ns,
          gpu_calls_ns - before.gpu_calls_ns,
          left_out - before.left_out,
          left_out_ranges - before.left_out_ranges,
          gpu_moves_ns - before.gpu_moves_ns,
          gpu_credit_ns - before.gpu_credit_ns};
}

void CostSum::add(const CostSum& more) {
  cost_ns += more.cost_ns;
  calls += more.calls;
  ranges_ns += more.ranges_ns;
  memory_ns += more.memory_ns;
  gpu_calls_ns += more.gpu_calls_ns;
  left_out += more.left_out;
  left_out_ranges += more.left_out_ranges;
  gpu_moves_ns += more.gpu_moves_ns;
  gpu_credit_ns += more.gpu_credit_ns;
}

void CostBudget::account(std::int64_t now_ns, CostSum sum) {
  CostSum spent = sum.since(last_.sum);
  spent.gpu_credit_ns = std::min(spent.gpu_calls_ns, static_cast<std::int64_t>(gpu_credit_ns_));
  gpu_credit_ns_ -= static_cast<double>(spent.gpu_credit_ns);
  const std::int64_t cost = spent.judged_ns(), time = now_ns - last_.now_ns;
  spent_.add(spent);
  window_ns_ += time;
  const auto one_second = ratio_ * static_cast<double>(kSecond);
  owed_ns_ += static_cast<double>(cost) - gpu_.operators_ratio() * static_cast<double>(time);
  owed_ns_ = std::clamp(owed_ns_, -most_saved_ns_, one_second * (kMaxOwed / kSecond));
  gpu_.add(time, spent.total_ns());
  owed_for_memory_ns_ = std::max(owed_for_memory_ns_ + static_cast<double>(spent.memory_ns) -
                                     ratio_ * static_cast<double>(time),
                                 -one_second * (kMostSaved / kSecond));
  owed_for_gpu_ns_ = std::max(owed_for_gpu_ns_ + static_cast<double>(spent.gpu_calls_ns) -
                                  ratio_ * static_cast<double>(time),
                              -one_second * (kMostSaved / kSecond));
  last_ = {now_ns, sum};
}

void CostBudget::open(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum) {
  last_ = {now_ns, sum};
  window_ended_ = false;
  if (samples_.empty()) restart_samples();
  if (thinning_ == Thinning::kNothing) return;
  if (periods_.size() == kMostPeriods) {  // the last entry goes on
    periods_.back().to_ns.reset();
  } else {
    periods_.push_back({.from_ns = wall_ns,
                        .thinning = thinning_,
                        .share_ratio = periods_.empty() ? 0 : periods_.back().share_ratio,
                        .short_ns = thinning_ == Thinning::kShortOperators ? short_ns_ : 0});
    ++version_;
  }
  if (closed_in_pause_) pause(true, wall_ns);
}

void CostBudget::close(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum) {
  account(now_ns, sum);
  gpu_.close_window(wall_ns);
  closed_in_pause_ = paused_;
  if (paused_) pause(false, wall_ns);
  if (thinning_ == Thinning::kNothing || periods_.empty()) return;
  periods_.back().to_ns = wall_ns;
  ++version_;
}

std::optional<Thinning> CostBudget::next() const {
  if (thinning_ < Thinning::kInputs && has_inputs_) return Thinning::kInputs;
  if (thinning_ < Thinning::kStacks && has_stacks_) return Thinning::kStacks;
  if (thinning_ < Thinning::kShortOperators) return Thinning::kShortOperators;
  if (thinning_ < Thinning::kOperatorsInParts) return Thinning::kOperatorsInParts;
  return std::nullopt;
}

std::optional<Thinning> CostBudget::previous() const {
  if (thinning_ > Thinning::kShortOperators) return Thinning::kShortOperators;
  if (thinning_ > Thinning::kStacks && has_stacks_) return Thinning::kStacks;
  if (thinning_ > Thinning::kInputs && has_inputs_) return Thinning::kInputs;
  if (thinning_ > Thinning::kNothing) return Thinning::kNothing;
  return std::nullopt;
}

// Over the kept samples: the last second, or the time since the last change.
std::optional<CostBudget::Rate> CostBudget::rate() const {
  if (samples_.empty()) return std::nullopt;
  const CostSample& first = samples_.front();
  Rate found;
  found.span_ns = window_ns_ - first.window_ns;
  if (found.span_ns < kShortSpan) return std::nullopt;
  const CostSum spent = spent_.since(first.spent);
  const auto cost = static_cast<double>(spent.cost_ns), calls = static_cast<double>(spent.calls);
  const auto span = static_cast<double>(found.span_ns);
  found.share = static_cast<double>(spent.judged_ns()) / span;
  found.kept_share = static_cast<double>(spent.judged_ns() - spent.cost_ns) / span;
  found.ranges_share = static_cast<double>(spent.ranges_ns) / span;
  found.gpu_share = static_cast<double>(spent.gpu_calls_ns) / span;
  found.calls_per_ns = calls / span;
  if (calls > 0) found.ns_per_call = cost / calls;
  return found;
}

// Whether the level before this one would fit, with a margin.
bool CostBudget::fits(const Rate& rate) const {
  const double limit = kMargin * gpu_.operators_ratio();
  const double before =
      rate.kept_share +
      rate.calls_per_ns * ns_per_call_[static_cast<std::size_t>(previous().value_or(thinning_))];
  // The recorded parts include short operators, too: what fits with them fits without.
  if (thinning_ >= Thinning::kOperatorsInParts) return std::min(rate.share, before) <= limit;
  return std::max(rate.share, before) <= limit;
}

bool CostBudget::is_too_much(const Rate& rate) const {
  const double ratio = gpu_.operators_ratio();
  if (rate.span_ns >= kLongSpan) return rate.share > ratio;
  const double beyond_ns = (rate.share - ratio) * static_cast<double>(rate.span_ns);
  return beyond_ns > ratio * static_cast<double>(std::clamp(window_ns_, kLeastAhead, kMostAhead));
}

double CostBudget::debt_unit_ns() const {
  return std::max(ratio_ * static_cast<double>(kDebtTime), static_cast<double>(kLeastDebt));
}

// The balance counts from the start, the part of this level from the last change.
bool CostBudget::is_in_debt(const Rate& rate) const {
  const double beyond_ns =
      (rate.share - gpu_.operators_ratio()) * static_cast<double>(rate.span_ns);
  return owed_ns_ > kFirstDebt * debt_unit_ns() && beyond_ns > kDebtOfLevel * debt_unit_ns();
}

// In a pause of operators.
bool CostBudget::has_too_many_ranges(const Rate& rate) const {
  const double ratio = gpu_.operators_ratio();
  if (rate.span_ns >= kRangesSpan && rate.ranges_share > kMostRanges * ratio) return true;
  const double ranges_ns = rate.ranges_share * static_cast<double>(rate.span_ns);
  if (rate.ranges_share > ratio && ranges_ns > kRangesDebt * debt_unit_ns()) return true;
  return is_too_much(rate) && rate.ranges_share > rate.share / 2;
}

// A pause of operators could not pay for them.
bool CostBudget::has_too_many_allocations() const {
  return has_memory_ && !memory_end_ns_ &&
         owed_for_memory_ns_ >
             std::max(ratio_ * static_cast<double>(kLeastAhead), static_cast<double>(kLeastDebt));
}

bool CostBudget::has_too_much_gpu(const std::optional<Rate>& rate) const {
  if (gpu_.is_wanted()) {  // operators have made all the room that they can
    if (gpu_.state() != GpuParts::State::kOn || !paused_ || owed_ns_ <= 0 || !rate) return false;
    return (rate->gpu_share - ratio_) * static_cast<double>(rate->span_ns) >
           static_cast<double>(kGpuBeyond);
  }
  return owed_for_gpu_ns_ > ratio_ * static_cast<double>(kGpuDebt);
}

// What is saved up before a part is recorded. At the start it is little: a recording may end at
// any time.
double CostBudget::burst_ns() const {
  return std::max(ratio_ * static_cast<double>(std::min(window_ns_ / kTimePerBurst, kMostBurst)),
                  debt_unit_ns());
}

void CostBudget::restart_samples() { samples_.assign(1, {window_ns_, spent_}); }

void CostBudget::change_thinning(Thinning thinning, const Rate& rate, std::int64_t wall_ns) {
  // Two calls per operator: begin and end. The calls of the level before are those that would
  // be recorded again.
  if (thinning == Thinning::kShortOperators && (thinning_ < thinning || after_pause_))
    short_ns_ = std::clamp(static_cast<std::int64_t>(2 * rate.ns_per_call / ratio_), kLeastShort,
                           kMostShort);
  thinning_ = thinning;
  restart_samples();
  calm_since_ns_.reset();
  ++version_;
  // The list is full: its last entry goes on, and names the most that was left out in its time.
  if (periods_.size() == kMostPeriods) {
    Period& last = periods_.back();
    last.to_ns.reset();
    last.thinning = std::max(last.thinning, thinning);
    last.short_ns = std::max(last.short_ns, short_ns_);
    return;
  }
  if (!periods_.empty() && !periods_.back().to_ns) periods_.back().to_ns = wall_ns;
  if (thinning != Thinning::kNothing)
    periods_.push_back({.from_ns = wall_ns,
                        .thinning = thinning,
                        .share_ratio = rate.share,
                        .short_ns = thinning == Thinning::kShortOperators ? short_ns_ : 0});
}

void CostBudget::pause(bool on, std::int64_t wall_ns) {
  paused_ = on;
  if (on && !start_is_paid_) owed_ns_ += static_cast<double>(kUnseenStart);
  start_is_paid_ = start_is_paid_ || on;
  restart_samples();
  ++version_;
  if (periods_.empty()) return;
  Period& period = periods_.back();
  if (on) {
    ++period.pause_count;
    pause_began_ns_ = wall_ns;
    pause_is_listed_ = listed_pauses_ < kMostPauses;
    if (!pause_is_listed_) return;
    ++listed_pauses_;
    period.pauses.push_back({wall_ns, std::nullopt});
    return;
  }
  period.paused_ns += std::max<std::int64_t>(wall_ns - pause_began_ns_, 0);
  if (pause_is_listed_) period.pauses.back().to_ns = wall_ns;
}

std::optional<CostBudget::Change> CostBudget::update_in_pause(const std::optional<Rate>& rate,
                                                              Change change, std::int64_t wall_ns) {
  // Ranges of the program go on in a pause of operators.
  if (thinning_ == Thinning::kOperatorsInParts && rate && has_too_many_ranges(*rate)) {
    pause(false, wall_ns);
    change.after = Thinning::kRangesInParts;
    change_thinning(change.after, *rate, wall_ns);
    pause(true, wall_ns);
    return change;
  }
  if (owed_ns_ > -burst_ns()) return std::nullopt;
  pause(false, wall_ns);
  if (after_pause_) {
    change = {thinning_, after_pause_->thinning, after_pause_->rate.share, true};
    change_thinning(change.after, after_pause_->rate, wall_ns);
    after_pause_.reset();
  }
  return change;
}

std::optional<CostBudget::Change> CostBudget::update(std::int64_t now_ns, std::int64_t wall_ns,
                                                     CostSum sum) {
  account(now_ns, sum);
  while (samples_.size() > 1 && window_ns_ - samples_[1].window_ns >= kLongSpan)
    samples_.pop_front();
  const auto found = rate();
  samples_.push_back({window_ns_, spent_});
  Change change{thinning_, thinning_, found ? found->share : 0};
  if (gpu_.can_begin()) {
    change.begins_gpu = true;
    return change;
  }
  if (window_ended_) return std::nullopt;
  if (has_too_much_gpu(found)) {
    window_ended_ = change.ends_recording = true;
    gpu_.end(wall_ns);
    end_ns_ = wall_ns;
    end_share_ = share_of(spent_.gpu_calls_ns);
    ++version_;
    return change;
  }
  if (has_too_many_allocations()) {
    memory_end_ns_ = wall_ns;
    memory_share_ = share_of(spent_.memory_ns);
    change.ends_memory = true;
    restart_samples();
    ++version_;
    return change;
  }
  if (paused_) return update_in_pause(found, change, wall_ns);
  if (!found) return std::nullopt;
  if (found->ns_per_call > 0)
    ns_per_call_[static_cast<std::size_t>(thinning_)] = found->ns_per_call;
  if (thinning_ >= Thinning::kOperatorsInParts) {
    if (owed_ns_ > 0) {
      pause(true, wall_ns);
      return change;
    }
  } else if (owed_ns_ > debt_limit_ns()) {
    if (*next() < Thinning::kOperatorsInParts) after_pause_ = NextLevel{*next(), *found};
    // A pause of operators alone would not pay the debt.
    change.after = found->ranges_share > gpu_.operators_ratio() ? Thinning::kRangesInParts
                                                                : Thinning::kOperatorsInParts;
    change_thinning(change.after, *found, wall_ns);
    pause(true, wall_ns);
    return change;
  } else if (is_too_much(*found) || is_in_debt(*found)) {
    change.after = *next();
    change_thinning(change.after, *found, wall_ns);
    if (thinning_ == Thinning::kOperatorsInParts) pause(true, wall_ns);
    return change;
  }
  if (!previous() || !fits(*found)) {
    calm_since_ns_.reset();
    return std::nullopt;
  }
  if (!calm_since_ns_) calm_since_ns_ = window_ns_;
  if (window_ns_ - *calm_since_ns_ < calm_time_ns_) return std::nullopt;
  calm_time_ns_ = std::min(2 * calm_time_ns_, kMostCalm);
  change.after = *previous();
  change_thinning(change.after, *found, wall_ns);
  return change;
}

// A part has all the details, and its savings pay for half of the GPU's calls and half of the rest.
void CostBudget::gpu_began(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum) {
  account(now_ns, sum);
  if (paused_) pause(false, wall_ns);
  after_pause_.reset();
  if (thinning_ != Thinning::kNothing) change_thinning(Thinning::kNothing, {}, wall_ns);
  restart_samples();
  calm_since_ns_.reset();
  calm_time_ns_ = kLeastCalm;
  window_ended_ = false;
  end_ns_.reset();
  const double savings_ns = gpu_.begin(wall_ns);
  gpu_credit_ns_ = savings_ns / 2;
  owed_ns_ = -gpu_credit_ns_;
  most_saved_ns_ = std::max(most_saved_ns_, savings_ns);
  ++version_;
}

std::string CostBudget::thinned_json() const {
  const auto time = [](const std::optional<std::int64_t>& ns) {
    return ns ? std::to_string(*ns) : std::string("null");
  };
  std::string json = "[";
  for (const Period& period : periods_) {
    json += fmt::format(
        R"({}{{"from_ns": {}, "to_ns": {}, "level": {}, "what": "{}", "share_ratio": {:.4f})",
        json.size() == 1 ? "" : ", ", period.from_ns, time(period.to_ns),
        static_cast<int>(period.thinning), thinned_word(period.thinning), period.share_ratio);
    if (period.short_ns > 0) json += fmt::format(R"(, "shorter_than_ns": {})", period.short_ns);
    if (period.thinning >= Thinning::kOperatorsInParts) {
      json += fmt::format(R"(, "paused_ns": {}, "pause_count": {}, "pauses": [)", period.paused_ns,
                          period.pause_count);
      for (const Pause& pause : period.pauses)
        json += fmt::format("{}[{}, {}]", &pause == &period.pauses.front() ? "" : ", ",
                            pause.from_ns, time(pause.to_ns));
      json += "]";
    }
    json += "}";
  }
  if (memory_end_ns_)
    json += fmt::format(
        R"({}{{"from_ns": {}, "to_ns": null, "what": "allocations", "share_ratio": {:.4f}}})",
        json.size() == 1 ? "" : ", ", *memory_end_ns_, memory_share_);
  if (end_ns_)
    json += fmt::format(
        R"({}{{"from_ns": {}, "to_ns": null, "what": "everything", "share_ratio": {:.4f}}})",
        json.size() == 1 ? "" : ", ", *end_ns_, end_share_);
  return json + "]";
}

std::string CostBudget::cost_json() const {
  return fmt::format(
      R"({{"budget_ratio": {}, "share_ratio": {:.6f}, "cost_ns": {}, "window_ns": {}, )"
      R"("operators_ns": {}, "ranges_ns": {}, "memory_ns": {}, "gpu_calls_ns": {}, "gpu_moves_ns": {}, )"
      R"("left_out_operators": {}, "left_out_ranges": {}}})",
      ratio_, share(), spent_.total_ns(), window_ns_, spent_.cost_ns, spent_.ranges_ns,
      spent_.memory_ns, spent_.gpu_calls_ns, spent_.gpu_moves_ns, spent_.left_out,
      spent_.left_out_ranges);
}

}  // namespace lanescope::record
