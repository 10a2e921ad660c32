#include "lanescope/record/gpu_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace lanescope::record {

double GpuParts::part_ns() const {
  return std::max(ratio_ * static_cast<double>(kFirstPart), static_cast<double>(kLeastPart)) *
         static_cast<double>(1 << std::min(begun_, kDoublings));
}

void GpuParts::add(std::int64_t time_ns, std::int64_t cost_ns) {
  saved_ns_ += ratio_ * static_cast<double>(time_ns) - static_cast<double>(cost_ns);
  if (state_ != State::kOn) return;
  // A part of few launches saves more than it needs: enough is kept for the next one.
  saved_ns_ = std::min(saved_ns_, needed_ns());
}

std::int64_t GpuParts::wait_ns() const {
  const double per_ns = ratio_ - (state_ == State::kWaiting ? kShareBefore * ratio_ : 0);
  return static_cast<std::int64_t>(std::max(needed_ns() - saved_ns_, 0.0) / per_ns);
}

double GpuParts::begin(std::int64_t wall_ns) {
  state_ = State::kOn;
  ++begun_;
  if (parts_.size() < kMostListed) parts_.push_back({wall_ns, std::nullopt});
  return std::max(saved_ns_ - reserve_ns(), 0.0);
}

void GpuParts::end(std::int64_t wall_ns) {
  if (state_ != State::kOn) return;
  state_ = begun_ > kDoublings ? State::kOver : State::kResting;
  if (!parts_.back().to_ns) parts_.back().to_ns = wall_ns;
}

void GpuParts::close_window(std::int64_t wall_ns) {
  if (!is_wanted()) return;
  end(wall_ns);
  state_ = State::kWaiting;
}

std::string GpuParts::json(std::int64_t recording_from_ns) const {
  std::string json = fmt::format(R"({{"recording_from_ns": {}, "parts": [)", recording_from_ns);
  for (const Part& part : parts_)
    json += fmt::format(R"({}{{"from_ns": {}, "to_ns": {}}})", &part == &parts_.front() ? "" : ", ",
                        part.from_ns, part.to_ns ? std::to_string(*part.to_ns) : "null");
  return json + "]}";
}

}  // namespace lanescope::record
