// One TrackEvent of a Perfetto trace: its fields, with what its sequence said before.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/format/perfetto/event_log.h"
#include "lanescope/format/perfetto/sequence_state.h"
#include "lanescope/format/perfetto/track_slots.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

class EventDecoder {
 public:
  // Borrows all of them.
  EventDecoder(TraceBuilder& builder, TrackSlots& slots, EventLog& log)
      : builder_(builder), slots_(slots), log_(log) {}

  // The time of older events is in the event itself: in nanoseconds, where it has one.
  static std::optional<std::int64_t> own_time_ns(std::string_view message, SequenceState& state);
  // `own`: the own field of its packet, which may have the scope of an instant, and arguments.
  void decode(std::string_view message, std::string_view own, std::int64_t ns,
              SequenceState& state);

 private:
  struct Fields;
  // Fills in the event's name, category, scope and arguments; the rest is returned.
  Fields read_fields(std::string_view message, std::string_view own, const SequenceState& state,
                     LoggedEvent& event);
  void add_counters(const Fields& fields, std::int64_t ns, SequenceState& state);
  void add_flows(const Fields& fields, std::uint32_t slot, std::int64_t ns);
  void add_legacy(const Fields& fields, std::uint32_t slot, LoggedEvent& event);
  double counter_value(std::uint32_t slot, std::int64_t value, SequenceState& state);
  std::uint32_t slot_of(const Fields& fields, const SequenceState& state);

  TraceBuilder& builder_;
  TrackSlots& slots_;
  EventLog& log_;
};

}  // namespace lanescope::format
