#include "lanescope/format/perfetto/event_log.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "lanescope/model/nearly_sorted.h"

namespace lanescope::format {
namespace {

void add_slice(TrackId track, const LoggedEvent& begin, std::int64_t dur_ns,
               TraceBuilder& builder) {
  StringId name = begin.name;
  if (name == kNone<StringId>) {
    name = builder.intern("");
    builder.stats().count(ImportIssue::kMissingName);
  }
  const CategoryId category = begin.category == kNone<StringId>
                                  ? builder.no_category()
                                  : builder.category(std::string(builder.text(begin.category)));
  if (begin.type == LoggedEvent::kInstant)
    builder.add_instant(track, category, name, begin.ns, begin.scope, begin.args);
  else
    builder.add_slice(track, category, name, begin.ns, dur_ns, begin.args);
}

}  // namespace

void EventLog::add(std::uint32_t slot, const LoggedEvent& event) {
  if (slot >= events_.size()) events_.resize(slot + std::size_t{1});
  events_[slot].push_back(event);
  last_ns_ = std::max(last_ns_, saturating_end(event.ns, std::max<std::int64_t>(event.dur_ns, 0)));
}

void EventLog::finish(TrackSlots& slots, TraceBuilder& builder) {
  const auto count = static_cast<std::uint32_t>(slots.size());
  std::vector<bool> has_flow(count);
  for (const FlowMark& mark : flows_) has_flow[mark.slot] = true;
  events_.resize(count);
  tracks_.resize(count);
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    if (events_[slot].empty() && !has_flow[slot]) continue;
    const auto first =
        std::find_if(events_[slot].begin(), events_[slot].end(),
                     [](const LoggedEvent& event) { return event.type != LoggedEvent::kEnd; });
    tracks_[slot] =
        slots.track(slot, first == events_[slot].end() ? kNone<StringId> : first->category);
    finish_slot(slot, builder);
    std::vector<LoggedEvent>().swap(events_[slot]);
  }
  std::vector<std::optional<TrackId>> counters(count);
  for (const Value& value : values_) {
    if (!std::isfinite(value.value)) {  // JSON has no such number, and means have no sense with it
      builder.stats().count(ImportIssue::kFieldLost);
      continue;
    }
    std::optional<TrackId>& track = counters[value.slot];
    if (!track) track = slots.counter(value.slot);
    builder.add_counter(*track, value.ns, value.value);
  }
  slots.name_processes();
}

void EventLog::finish_slot(std::uint32_t slot, TraceBuilder& builder) {
  std::vector<LoggedEvent>& events = events_[slot];
  const auto is_earlier = [](const LoggedEvent& a, const LoggedEvent& b) { return a.ns < b.ns; };
  if (!std::is_sorted(events.begin(), events.end(), is_earlier))
    std::stable_sort(events.begin(), events.end(), is_earlier);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].type == LoggedEvent::kBegin) open.push_back(i);
    if (events[i].type != LoggedEvent::kEnd) continue;
    if (open.empty()) {
      builder.skip_event();
      builder.stats().count(ImportIssue::kEndWithoutBegin);
      continue;
    }
    LoggedEvent& begin = events[open.back()];
    begin.dur_ns = saturating_length(begin.ns, events[i].ns);
    open.pop_back();
  }
  for (const std::size_t i : open) {
    builder.stats().count(ImportIssue::kBeginWithoutEnd);
    events[i].dur_ns = saturating_length(events[i].ns, last_ns_);
  }
  // In the order of their begins: slices of equal extent keep which one is the outer one.
  for (const LoggedEvent& event : events)
    if (event.type != LoggedEvent::kEnd) add_slice(tracks_[slot], event, event.dur_ns, builder);
}

}  // namespace lanescope::format
