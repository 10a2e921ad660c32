// The events of a Perfetto trace until its end: begins and ends may come in any order in the file,
// and a track may be described after its events.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/format/perfetto/flow_pairs.h"
#include "lanescope/format/perfetto/track_slots.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct LoggedEvent {
  enum Type : std::uint8_t { kBegin, kEnd, kInstant, kWhole } type = kInstant;
  char scope = 't';
  StringId name = kNone<StringId>, category = kNone<StringId>;
  ArgsId args = kNone<ArgsId>;
  std::int64_t ns = 0;
  std::int64_t dur_ns = 0;  // kWhole
};

// Memory: 32 bytes a begin, an end or an instant; 24 a counter's value, 32 an end of an arrow.
class EventLog {
 public:
  void add(std::uint32_t slot, const LoggedEvent& event);
  void add_value(std::uint32_t slot, std::int64_t ns, double value) {
    values_.push_back({ns, value, slot});
  }
  void add_flow(FlowMark mark) {
    mark.order = static_cast<std::uint32_t>(flows_.size());
    flows_.push_back(mark);
  }

  // Pairs begins with ends and hands everything to the builder. A slice that never ends lasts to
  // the last event of the trace. Such slices, and ends without a begin, are counted.
  void finish(TrackSlots& slots, TraceBuilder& builder);
  // Flows and tracks of slots, once finished.
  const std::vector<FlowMark>& flows() const { return flows_; }
  TrackId track(std::uint32_t slot) const { return tracks_[slot]; }

 private:
  struct Value {
    std::int64_t ns;
    double value;
    std::uint32_t slot;
  };
  void finish_slot(std::uint32_t slot, TraceBuilder& builder);

  std::vector<std::vector<LoggedEvent>> events_;  // by slot
  std::vector<Value> values_;
  std::vector<FlowMark> flows_;
  std::vector<TrackId> tracks_;  // by slot
  std::int64_t last_ns_ = INT64_MIN;
};

}  // namespace lanescope::format
