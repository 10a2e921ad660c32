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
    case Thinning::kNothing:
      break;
  }
  return "";
}

void CostBudget::account(std::int64_t now_ns, CostSum sum) {
  const std::int64_t cost = sum.cost_ns - last_.sum.cost_ns, time = now_ns - last_.now_ns;
  cost_ns_ += cost;
  window_ns_ += time;
  const auto one_second = ratio_ * static_cast<double>(kSecond);
  owed_ns_ += static_cast<double>(cost) - ratio_ * static_cast<double>(time);
  owed_ns_ =
      std::clamp(owed_ns_, -one_second * (kBurst / kSecond), one_second * (kMaxOwed / kSecond));
  calls_ += sum.calls - last_.sum.calls;
  left_out_ += sum.left_out - last_.sum.left_out;
  last_ = {now_ns, sum};
}

void CostBudget::open(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum) {
  last_ = {now_ns, sum};
  if (samples_.empty()) restart_samples();
  if (thinning_ == Thinning::kNothing) return;
  if (periods_.size() == kMostPeriods) {  // the last entry goes on
    periods_.back().to_ns.reset();
    return;
  }
  periods_.push_back({.from_ns = wall_ns,
                      .thinning = thinning_,
                      .share_ratio = periods_.empty() ? 0 : periods_.back().share_ratio,
                      .short_ns = thinning_ == Thinning::kShortOperators ? short_ns_ : 0});
  ++version_;
}

void CostBudget::close(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum) {
  account(now_ns, sum);
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
  const auto cost = static_cast<double>(cost_ns_ - first.cost_ns);
  const auto calls = static_cast<double>(calls_ - first.calls);
  const auto span = static_cast<double>(found.span_ns);
  found.share = cost / span;
  found.calls_per_ns = calls / span;
  if (calls > 0) found.ns_per_call = cost / calls;
  return found;
}

// Whether the level before this one would fit, with a margin.
bool CostBudget::fits(const Rate& rate) const {
  const double limit = kMargin * ratio_;
  const double before =
      rate.calls_per_ns * ns_per_call_[static_cast<std::size_t>(previous().value_or(thinning_))];
  // The recorded parts include short operators, too: what fits with them fits without.
  if (thinning_ == Thinning::kOperatorsInParts) return std::min(rate.share, before) <= limit;
  return std::max(rate.share, before) <= limit;
}

void CostBudget::restart_samples() { samples_.assign(1, {window_ns_, cost_ns_, calls_}); }

void CostBudget::change_thinning(Thinning thinning, const Rate& rate, std::int64_t wall_ns) {
  // Two calls per operator: begin and end. The calls of the level before are those that would
  // be recorded again.
  if (thinning == Thinning::kShortOperators && thinning_ < thinning)
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

std::optional<CostBudget::Change> CostBudget::update(std::int64_t now_ns, std::int64_t wall_ns,
                                                     CostSum sum) {
  account(now_ns, sum);
  while (samples_.size() > 1 && window_ns_ - samples_[1].window_ns >= kLongSpan)
    samples_.pop_front();
  const auto found = rate();
  samples_.push_back({window_ns_, cost_ns_, calls_});
  Change change{thinning_, thinning_, found ? found->share : 0};
  if (paused_) {
    if (owed_ns_ > 0) return std::nullopt;
    pause(false, wall_ns);
    return change;
  }
  if (!found) return std::nullopt;
  if (found->ns_per_call > 0)
    ns_per_call_[static_cast<std::size_t>(thinning_)] = found->ns_per_call;
  if (thinning_ == Thinning::kOperatorsInParts) {
    if (owed_ns_ > ratio_ * static_cast<double>(kBurst)) {
      pause(true, wall_ns);
      return change;
    }
  } else if ((found->span_ns >= kLongSpan && found->share > ratio_) ||
             found->share > kFarAboveFactor * ratio_) {
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
  if (window_ns_ - *calm_since_ns_ < kCalmTime) return std::nullopt;
  change.after = *previous();
  change_thinning(change.after, *found, wall_ns);
  return change;
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
    if (period.thinning == Thinning::kOperatorsInParts) {
      json += fmt::format(R"(, "paused_ns": {}, "pause_count": {}, "pauses": [)", period.paused_ns,
                          period.pause_count);
      for (const Pause& pause : period.pauses)
        json += fmt::format("{}[{}, {}]", &pause == &period.pauses.front() ? "" : ", ",
                            pause.from_ns, time(pause.to_ns));
      json += "]";
    }
    json += "}";
  }
  return json + "]";
}

std::string CostBudget::cost_json() const {
  return fmt::format(
      R"({{"budget_ratio": {}, "share_ratio": {:.6f}, "cost_ns": {}, "window_ns": {}, "left_out_operators": {}}})",
      ratio_, share(), cost_ns_, window_ns_, left_out_);
}

}  // namespace lanescope::record
