#include "lanescope/format/perfetto/event_decoder.h"

#include <string>
#include <vector>

#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/annotations.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/format/perfetto/own_arguments.h"
#include "lanescope/format/perfetto/own_trace.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

constexpr std::int64_t kFlowIn = 1, kFlowOut = 2, kFlowBoth = 3;

struct Legacy {
  bool is_there = false;
  char phase = 0;
  std::int64_t duration_us = 0, direction = 0;
  std::optional<std::uint64_t> bind_id, id;
  std::optional<std::int64_t> pid, tid;
  std::uint64_t name_iid = 0;
};

Legacy legacy_of(std::string_view message) {
  Legacy legacy;
  legacy.is_there = true;
  for (WireReader field(message); field.next();) {
    switch (field.number()) {
      case pftrace::kLegacyName:
        legacy.name_iid = field.integer();
        break;
      case pftrace::kPhase:
        legacy.phase = static_cast<char>(field.integer());
        break;
      case pftrace::kDurationUs:
        legacy.duration_us = field.signed_integer();
        break;
      case pftrace::kUnscopedId:
      case pftrace::kLocalId:
      case pftrace::kGlobalId:
        legacy.id = field.integer();
        break;
      case pftrace::kBindId:
        legacy.bind_id = field.integer();
        break;
      case pftrace::kFlowDirection:
        legacy.direction = field.signed_integer();
        break;
      case pftrace::kPidOverride:
        legacy.pid = field.signed_integer();
        break;
      case pftrace::kTidOverride:
        legacy.tid = field.signed_integer();
        break;
      default:
        break;
    }
  }
  return legacy;
}

std::int64_t us_to_ns(std::int64_t us) {
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(us, std::int64_t{1000}, &ns)) return us < 0 ? INT64_MIN : INT64_MAX;
  return ns;
}

StringId text_of(const TextByIid& texts, std::uint64_t iid) {
  const StringId* const found = texts.find(iid);
  return found ? *found : kNone<StringId>;
}

}  // namespace

struct EventDecoder::Fields {
  std::uint64_t type = 0;
  std::optional<std::uint64_t> track;
  std::optional<std::int64_t> value;
  std::optional<double> double_value;
  std::vector<std::uint64_t> extra_tracks, extra_double_tracks, extra_values, extra_doubles;
  std::vector<std::uint64_t> flows, ending_flows;
  Legacy legacy;

  // Takes the field if it is one of the lists of numbers.
  void take_list(const WireReader& field) {
    struct Row {
      std::uint32_t number;
      std::size_t width;  // bytes of a number; 0: varints
      std::vector<std::uint64_t> Fields::*list;
    };
    static constexpr Row kRows[] = {{pftrace::kExtraTracks, 0, &Fields::extra_tracks},
                                    {pftrace::kExtraValues, 0, &Fields::extra_values},
                                    {pftrace::kExtraDoubleTracks, 0, &Fields::extra_double_tracks},
                                    {pftrace::kExtraDoubles, 8, &Fields::extra_doubles},
                                    {pftrace::kFlows, 8, &Fields::flows},
                                    {pftrace::kFlowsOld, 0, &Fields::flows},
                                    {pftrace::kEndingFlows, 8, &Fields::ending_flows},
                                    {pftrace::kEndingFlowsOld, 0, &Fields::ending_flows}};
    for (const Row& row : kRows)
      if (row.number == field.number())
        field.each_number(row.width, [&](std::uint64_t one) { (this->*row.list).push_back(one); });
  }
};

std::optional<std::int64_t> EventDecoder::own_time_ns(std::string_view message,
                                                      SequenceState& state) {
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kAbsoluteUs) return us_to_ns(field.signed_integer());
    if (field.number() != pftrace::kDeltaUs) continue;
    state.legacy_us =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(state.legacy_us) + field.integer());
    return us_to_ns(state.legacy_us);
  }
  return std::nullopt;
}

EventDecoder::Fields EventDecoder::read_fields(std::string_view message, std::string_view own,
                                               const SequenceState& state, LoggedEvent& event) {
  Fields fields;
  OwnArguments own_arguments(own);
  std::string categories;
  const auto add_category = [&](std::string_view text) {
    categories.append(categories.empty() ? "" : ",").append(text);
    event.category = builder_.intern(codec::valid_utf8(categories));
  };
  builder_.args().begin();
  WireReader field(message);
  while (field.next()) {
    switch (field.number()) {
      case pftrace::kType:
        fields.type = field.integer();
        break;
      case pftrace::kTrackUuid:
        fields.track = field.integer();
        break;
      case pftrace::kNameIid:
        event.name = text_of(state.names, field.integer());
        break;
      case pftrace::kName:
        event.name = builder_.intern(codec::valid_utf8(field.bytes()));
        break;
      case pftrace::kCategoryIids:
        field.each_number(0, [&](std::uint64_t iid) {
          const StringId text = text_of(state.categories, iid);
          if (text == kNone<StringId>) return;
          if (categories.empty() && event.category == kNone<StringId>)
            event.category = text;  // nearly always the only one
          else if (categories.empty())
            categories = builder_.text(event.category);
          if (!categories.empty()) add_category(std::string(builder_.text(text)));
        });
        break;
      case pftrace::kCategories:
        if (categories.empty() && event.category != kNone<StringId>)
          categories = builder_.text(event.category);
        add_category(field.bytes());
        break;
      case pftrace::kAnnotations:
        own_arguments.add_those_before_the_next(state, builder_);
        add_annotation(field.bytes(), state, builder_);
        break;
      case pftrace::kCounterValue:
        fields.value = field.signed_integer();
        break;
      case pftrace::kDoubleValue:
        fields.double_value = field.real();
        break;
      case pftrace::kLegacyEvent:
        fields.legacy = legacy_of(field.bytes());
        break;
      case pftrace::kOwnField:
        for (WireReader old(field.bytes()); old.next();)
          if (old.number() == pftrace::kOwnScope && (old.integer() == 'p' || old.integer() == 'g'))
            event.scope = static_cast<char>(old.integer());
        break;
      default:
        fields.take_list(field);
    }
  }
  own_arguments.add_all_left(state, builder_);
  bool overflowed = false;
  event.args = builder_.args().end(&overflowed);
  if (overflowed || field.is_damaged()) builder_.stats().count(ImportIssue::kFieldLost);
  if (event.name == kNone<StringId> && fields.legacy.name_iid != 0)
    event.name = text_of(state.names, fields.legacy.name_iid);
  return fields;
}

void EventDecoder::decode(std::string_view message, std::string_view own, std::int64_t ns,
                          SequenceState& state) {
  LoggedEvent event;
  event.ns = ns;
  const Fields fields = read_fields(message, own, state, event);
  if (const auto scope = OwnTrace::event_scope(own)) event.scope = *scope;
  add_counters(fields, ns, state);
  const std::uint32_t slot = slot_of(fields, state);
  if (fields.type == pftrace::kCounter) {
    builder_.skip_event();
    if (fields.double_value)
      log_.add_value(slot, ns, *fields.double_value);
    else if (fields.value)
      log_.add_value(slot, ns, counter_value(slot, *fields.value, state));
    else
      builder_.stats().count(ImportIssue::kFieldLost);
    return;
  }
  add_flows(fields, slot, ns);
  if (fields.type == pftrace::kSliceBegin) {
    event.type = LoggedEvent::kBegin;
  } else if (fields.type == pftrace::kSliceEnd) {
    event.type = LoggedEvent::kEnd;
    if (event.args != kNone<ArgsId>) builder_.stats().count(ImportIssue::kFieldLost);
  } else if (fields.type != pftrace::kInstant) {
    return add_legacy(fields, slot, event);
  }
  log_.add(slot, event);
}

std::uint32_t EventDecoder::slot_of(const Fields& fields, const SequenceState& state) {
  const Legacy& legacy = fields.legacy;
  if (legacy.is_there && (legacy.pid || legacy.tid)) {
    LegacyThread thread = state.thread.value_or(LegacyThread{});
    thread.name = kNone<StringId>;
    if (legacy.pid) thread.pid = *legacy.pid;
    if (legacy.tid) thread.tid = *legacy.tid;
    return slots_.of_thread(thread);
  }
  if (fields.track) return slots_.of_uuid(*fields.track);
  if (state.default_track) return slots_.of_uuid(*state.default_track);
  if (state.thread) return slots_.of_thread(*state.thread);
  return slots_.of_uuid(0);  // the track that Perfetto calls the default one
}

double EventDecoder::counter_value(std::uint32_t slot, std::int64_t value, SequenceState& state) {
  const TrackSlot& track = slots_.slot(slot);
  if (track.is_incremental) {
    std::int64_t& sum = state.counters[track.uuid];
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                    static_cast<std::uint64_t>(value));
    value = sum;
  }
  return static_cast<double>(value) * static_cast<double>(track.unit);
}

void EventDecoder::add_counters(const Fields& fields, std::int64_t ns, SequenceState& state) {
  const auto& tracks = fields.extra_tracks.empty() ? state.extra_tracks : fields.extra_tracks;
  const auto& double_tracks =
      fields.extra_double_tracks.empty() ? state.extra_double_tracks : fields.extra_double_tracks;
  for (std::size_t i = 0; i < fields.extra_values.size(); ++i) {
    if (i >= tracks.size()) {
      builder_.stats().count(ImportIssue::kFieldLost);
      continue;
    }
    const std::uint32_t slot = slots_.of_uuid(tracks[i]);
    log_.add_value(slot, ns,
                   counter_value(slot, static_cast<std::int64_t>(fields.extra_values[i]), state));
  }
  for (std::size_t i = 0; i < fields.extra_doubles.size(); ++i) {
    if (i < double_tracks.size())
      log_.add_value(slots_.of_uuid(double_tracks[i]), ns,
                     std::bit_cast<double>(fields.extra_doubles[i]));
    else
      builder_.stats().count(ImportIssue::kFieldLost);
  }
}

void EventDecoder::add_flows(const Fields& fields, std::uint32_t slot, std::int64_t ns) {
  for (const std::uint64_t id : fields.flows)
    log_.add_flow({.id = id, .ns = ns, .slot = slot, .starts = true, .ends = true});
  for (const std::uint64_t id : fields.ending_flows)
    log_.add_flow({.id = id, .ns = ns, .slot = slot, .ends = true, .is_last = true});
  const Legacy& legacy = fields.legacy;
  if (legacy.bind_id && legacy.direction >= kFlowIn && legacy.direction <= kFlowBoth)
    log_.add_flow({.id = *legacy.bind_id,
                   .ns = ns,
                   .slot = slot,
                   .starts = legacy.direction != kFlowIn,
                   .ends = legacy.direction != kFlowOut});
}

// Events that Chrome's JSON would have, with its phases.
void EventDecoder::add_legacy(const Fields& fields, std::uint32_t slot, LoggedEvent& event) {
  const Legacy& legacy = fields.legacy;
  switch (legacy.phase) {
    case 'B':
      event.type = LoggedEvent::kBegin;
      break;
    case 'E':
      event.type = LoggedEvent::kEnd;
      break;
    case 'X':
      event.type = LoggedEvent::kWhole;
      event.dur_ns = us_to_ns(legacy.duration_us);
      break;
    case 'i':
    case 'I':
    case 'R':
      break;
    case 'b':
    case 'e':
    case 'n':
    case 'S':
    case 'F':
      event.type = legacy.phase == 'b' || legacy.phase == 'S'   ? LoggedEvent::kBegin
                   : legacy.phase == 'e' || legacy.phase == 'F' ? LoggedEvent::kEnd
                                                                : LoggedEvent::kInstant;
      slot = slots_.of_async(slots_.slot(slot).pid, legacy.id.value_or(0));
      break;
    case 's':
    case 't':
    case 'f':
      builder_.skip_event();
      return log_.add_flow({.id = legacy.id ? *legacy.id : legacy.bind_id.value_or(0),
                            .ns = event.ns,
                            .slot = slot,
                            .starts = legacy.phase != 'f',
                            .ends = legacy.phase != 's'});
    default:
      builder_.skip_event();
      builder_.stats().count(ImportIssue::kUnknownPhase);
      return;
  }
  log_.add(slot, event);
}

}  // namespace lanescope::format
