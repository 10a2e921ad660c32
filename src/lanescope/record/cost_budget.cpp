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
      std::clamp(owed_ns_, -one_second * (kBurst / kSecond), one_second * (kMostOwed / kSecond));
  calls_ += sum.calls - last_.sum.calls;
  last_ = {now_ns, sum};
}

void CostBudget::open(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum) {
  last_ = {now_ns, sum};
  if (looks_.empty()) look_anew();
  if (thinning_ == Thinning::kNothing) return;
  if (periods_.size() == kMostPeriods) {  // the last one goes on
    periods_.back().to_ns.reset();
    return;
  }
  periods_.push_back({.from_ns = wall_ns,
                      .thinning = thinning_,
                      .share_ratio = periods_.empty() ? 0 : periods_.back().share_ratio});
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
  if (thinning_ < Thinning::kOperatorsInParts) return Thinning::kOperatorsInParts;
  return std::nullopt;
}

std::optional<Thinning> CostBudget::previous() const {
  if (thinning_ > Thinning::kStacks && has_stacks_) return Thinning::kStacks;
  if (thinning_ > Thinning::kInputs && has_inputs_) return Thinning::kInputs;
  if (thinning_ > Thinning::kNothing) return Thinning::kNothing;
  return std::nullopt;
}

// Of the looks that are kept: the last second, or what there is since the last change.
std::optional<CostBudget::Rate> CostBudget::rate() const {
  if (looks_.empty()) return std::nullopt;
  const Look& first = looks_.front();
  Rate found;
  found.span_ns = window_ns_ - first.window_ns;
  if (found.span_ns < kShortLook) return std::nullopt;
  const auto cost = static_cast<double>(cost_ns_ - first.cost_ns);
  const auto calls = static_cast<double>(calls_ - first.calls);
  const auto span = static_cast<double>(found.span_ns);
  found.share = cost / span;
  found.calls_per_ns = calls / span;
  if (calls > 0) found.ns_per_call = cost / calls;
  return found;
}

// Whether recording what the thinning before this one does would fit with a margin. Whole operators
// cost in each part what they cost without pauses.
bool CostBudget::fits(const Rate& rate) const {
  const double limit = kMargin * ratio_;
  if (thinning_ == Thinning::kOperatorsInParts) return rate.share <= limit;
  const double ns_per_call = ns_per_call_[static_cast<std::size_t>(previous().value_or(thinning_))];
  return std::max(rate.share, rate.calls_per_ns * ns_per_call) <= limit;
}

void CostBudget::look_anew() {
  looks_.assign(1, {window_ns_, cost_ns_, calls_});
  calm_since_ns_.reset();
}

void CostBudget::go_to(Thinning thinning, double share, std::int64_t wall_ns) {
  thinning_ = thinning;
  look_anew();
  ++version_;
  // A list that is full: its last entry goes on, and names the most that was left out in its time.
  if (periods_.size() == kMostPeriods) {
    Period& last = periods_.back();
    last.to_ns.reset();
    last.thinning = std::max(last.thinning, thinning);
    return;
  }
  if (!periods_.empty() && !periods_.back().to_ns) periods_.back().to_ns = wall_ns;
  if (thinning != Thinning::kNothing)
    periods_.push_back({.from_ns = wall_ns, .thinning = thinning, .share_ratio = share});
}

void CostBudget::pause(bool on, std::int64_t wall_ns) {
  paused_ = on;
  look_anew();
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

std::optional<CostBudget::Change> CostBudget::look(std::int64_t now_ns, std::int64_t wall_ns,
                                                   CostSum sum) {
  account(now_ns, sum);
  while (looks_.size() > 1 && window_ns_ - looks_[1].window_ns >= kLongLook) looks_.pop_front();
  const auto found = rate();
  looks_.push_back({window_ns_, cost_ns_, calls_});
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
  } else if ((found->span_ns >= kLongLook && found->share > ratio_) ||
             found->share > kFarAbove * ratio_) {
    change.after = *next();
    go_to(change.after, found->share, wall_ns);
    if (thinning_ == Thinning::kOperatorsInParts) pause(true, wall_ns);
    return change;
  }
  if (!previous() || !fits(*found)) {
    calm_since_ns_.reset();
    return std::nullopt;
  }
  if (!calm_since_ns_) calm_since_ns_ = window_ns_;
  if (window_ns_ - *calm_since_ns_ < kCalm) return std::nullopt;
  change.after = *previous();
  go_to(change.after, found->share, wall_ns);
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
      R"({{"budget_ratio": {}, "share_ratio": {:.6f}, "cost_ns": {}, "window_ns": {}}})", ratio_,
      share(), cost_ns_, window_ns_);
}

}  // namespace lanescope::record
