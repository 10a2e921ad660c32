#include "lanescope/server/trace_state.h"

#include <iterator>

#include "lanescope/base/check.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/server/give_way.h"
#include "lanescope/server/kept_view.h"
#include "lanescope/view/kept_lanes.h"

namespace lanescope::server {

Result<std::shared_ptr<const TraceState>> TraceState::make(Trace trace, std::string path,
                                                           std::string command) {
  if (command.empty()) command = "lanescope explain --full " + path;
  std::shared_ptr<TraceState> state(
      new TraceState(std::move(trace), std::move(path), std::move(command)));
  Result<explain::Facts> facts = explain::gather_facts(state->trace_);
  if (!facts) return facts.error();
  state->facts_.emplace(std::move(*facts));
  state->has_facts_.store(true, std::memory_order_release);
  state->lanes_ = std::make_unique<const view::Lanes>(*state->facts_);
  return std::shared_ptr<const TraceState>(std::move(state));
}

Result<std::shared_ptr<const TraceState>> TraceState::make(Trace trace, std::string path,
                                                           const format::KeptSections& kept) {
  if (!kept.was_checked || kept.sections.empty()) return make(std::move(trace), std::move(path));
  std::string command = "lanescope explain --full " + path;
  std::shared_ptr<TraceState> state(
      new TraceState(std::move(trace), std::move(path), std::move(command)));
  state->lanes_ = view::lanes_from(
      state->trace_, [raw = state.get()]() -> const explain::Facts& { return raw->facts(); },
      lane_sections_of(kept), kept.owner);
  if (!state->lanes_) return make(std::move(state->trace_), std::move(state->path_));
  return std::shared_ptr<const TraceState>(std::move(state));
}

const explain::Facts& TraceState::facts() const {
  std::call_once(gathered_, [this] {
    if (facts_) return;
    Result<explain::Facts> facts = explain::gather_facts(trace_);
    LANESCOPE_CHECK(facts.has_value());  // whoever kept its lanes had them
    facts_.emplace(std::move(*facts));
    has_facts_.store(true, std::memory_order_release);
  });
  return *facts_;
}

const explain::Explanation& TraceState::explanation() const {
  std::call_once(explained_, [this] {
    // Seconds of work for millions of events, while the reader moves the picture.
    run_giving_way([this] {
      // As the command does: its gains decide what to do first.
      Result<explain::Explanation> found = explain::run_rules_and_gains(facts());
      LANESCOPE_CHECK(found.has_value());  // no rules were named
      explanation_ = std::move(*found);
      has_explanation_.store(true, std::memory_order_release);
    });
  });
  return explanation_;
}

const analysis::KeyAverages& TraceState::key_averages() const {
  std::call_once(averaged_, [this] {
    analysis::KeyAveragesOptions options;
    options.style = analysis::TableStyle::kLanescope;
    Result<analysis::KeyAverages> found = analysis::compute_key_averages(trace_, options);
    LANESCOPE_CHECK(found.has_value());  // only grouping by stacks can be wrong
    key_averages_ = std::move(*found);
  });
  return key_averages_;
}

std::vector<analysis::KernelGroup> TraceState::kernel_groups_within(
    const analysis::Window& window) const {
  std::vector<analysis::KernelGroup> all;
  const auto add = [&](const analysis::LaunchLinks& links,
                       const analysis::DeviceTimeline& timeline) {
    auto own = analysis::compute_kernel_groups(trace_, links, timeline, {&window, 1});
    all.insert(all.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  };
  if (const explain::Facts* facts = known_facts()) {
    for (const auto& device : facts->devices) add(facts->links, device.timeline);
  } else {
    const analysis::LaunchLinks links = analysis::compute_launch_links(trace_, 0);
    for (const auto& timeline : analysis::compute_device_timelines(trace_, links))
      add(links, timeline);
  }
  sort_rows(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.busy_ns > b.busy_ns; });
  return all;
}

const std::vector<analysis::KernelGroup>& TraceState::kernel_groups() const {
  std::call_once(grouped_, [this] {
    kernel_groups_ = kernel_groups_within({lanes_->origin_ns(), lanes_->end_ns() + 1});
  });
  return kernel_groups_;
}

const analysis::MemoryTimeline& TraceState::memory() const {
  std::call_once(remembered_, [&] {
    if (known_facts())
      memory_is_of_facts_ = true;
    else
      memory_ = analysis::compute_memory_timeline(trace_);
  });
  return memory_is_of_facts_ ? facts_->memory : memory_;
}

}  // namespace lanescope::server
