// Tables of marks, steps, arrows, arguments, counters, memory, collectives and metadata.
#include <array>
#include <cstring>

#include "lanescope/sql/tables.h"

namespace lanescope::sql {
namespace {

using Rows = TraceRows;
using Id = std::uint32_t;
using enum ColumnUse;

Cell id(Rows&, Id i) { return Cell::of(i); }

// Marks, and those of them that allocators make.
Cell mark_ts(Rows& r, Id i) { return Cell::of(r.trace().instants().time_ns[i]); }
Cell mark_name(Rows& r, Id i) { return text_cell(r.trace(), r.trace().instants().name[i]); }
Cell mark_track(Rows& r, Id i) { return Cell::of(raw(r.trace().instants().track[i])); }
Cell mark_args(Rows& r, Id i) { return id_cell(r.trace().instants().args[i]); }
Cell mark_category(Rows& r, Id i) {
  return text_cell(r.trace(), r.trace().categories()[raw(r.trace().instants().category[i])].text);
}
template <ArgKey key>
Cell mark_arg(Rows& r, Id i) {
  return optional_cell(r.trace().args(r.trace().instants().args[i]).integer(key));
}
std::size_t mark_count(Rows& r) { return r.trace().instants().size(); }
std::vector<Id> memory_marks(Rows& r) {
  std::vector<Id> ids;
  const auto& names = r.trace().instants().name;
  const StringId memory = r.trace().strings().find("[memory]");
  if (memory == kNone<StringId>) return ids;
  for (Id i = 0; i < names.size(); ++i)
    if (names[i] == memory) ids.push_back(i);
  return ids;
}
constexpr ColumnSource kMarkId{"id", id, kId};
constexpr ColumnSource kMarkTs{"ts", mark_ts, kTime};
constexpr ColumnSource kMarkTrack{"track_id", mark_track, kKey};
constexpr ColumnSource kMarkArgs{"arg_set_id", mark_args, kKey};
constexpr std::array kInstant{kMarkId,
                              kMarkTs,
                              ColumnSource{"name", mark_name, kKey},
                              kMarkTrack,
                              ColumnSource{"category", mark_category, kKey},
                              kMarkArgs};
constexpr std::array kMemoryEvent{
    kMarkId,
    kMarkTs,
    ColumnSource{"bytes", mark_arg<ArgKey::kMemoryBytes>},
    ColumnSource{"device_type", mark_arg<ArgKey::kDeviceType>, kKey},
    ColumnSource{"device_id", mark_arg<ArgKey::kDeviceId>, kKey},
    ColumnSource{"address", mark_arg<ArgKey::kAddr>, kKey},
    ColumnSource{"total_allocated", mark_arg<ArgKey::kTotalAllocated>},
    ColumnSource{"total_reserved", mark_arg<ArgKey::kTotalReserved>},
    kMarkTrack,
    kMarkArgs};

// Steps.
Cell step_number(Rows& r, Id i) { return optional_cell(r.steps()[i].number); }
Cell step_ts(Rows& r, Id i) { return Cell::of(r.steps()[i].cpu_start_ns); }
Cell step_dur(Rows& r, Id i) {
  std::int64_t dur_ns = 0;
  if (__builtin_sub_overflow(r.steps()[i].cpu_end_ns, r.steps()[i].cpu_start_ns, &dur_ns))
    return {};
  return Cell::of(dur_ns);
}
Cell step_slice(Rows& r, Id i) { return id_cell(r.steps()[i].slice); }
std::size_t step_count(Rows& r) { return r.steps().size(); }
constexpr std::array kStep{ColumnSource{"number", step_number, kKey},
                           ColumnSource{"ts", step_ts, kTime}, ColumnSource{"dur", step_dur},
                           ColumnSource{"slice_id", step_slice, kKey}};

// Arrows.
const Flow& flow(Rows& r, Id i) { return r.trace().flows()[i]; }
Cell slice_out(Rows& r, Id i) {
  return id_cell(r.slice_at(flow(r, i).from_track, flow(r, i).from_ns));
}
Cell slice_in(Rows& r, Id i) {
  const Flow& arrow = flow(r, i);
  return id_cell(arrow.binds_enclosing ? r.slice_at(arrow.to_track, arrow.to_ns)
                                       : r.slice_after(arrow.to_track, arrow.to_ns));
}
Cell flow_id(Rows& r, Id i) { return scalar_cell(r.trace(), flow(r, i).id()); }
Cell flow_name(Rows& r, Id i) { return text_cell(r.trace(), flow(r, i).name); }
Cell flow_category(Rows& r, Id i) {
  return text_cell(r.trace(), r.trace().categories()[raw(flow(r, i).category)].text);
}
Cell from_track(Rows& r, Id i) { return Cell::of(raw(flow(r, i).from_track)); }
Cell from_ts(Rows& r, Id i) { return Cell::of(flow(r, i).from_ns); }
Cell to_track(Rows& r, Id i) { return Cell::of(raw(flow(r, i).to_track)); }
Cell to_ts(Rows& r, Id i) { return Cell::of(flow(r, i).to_ns); }
std::size_t flow_count(Rows& r) { return r.trace().flows().size(); }
constexpr std::array kFlow{kMarkId,
                           ColumnSource{"slice_out", slice_out, kKey},
                           ColumnSource{"slice_in", slice_in, kKey},
                           ColumnSource{"trace_id", flow_id},
                           ColumnSource{"name", flow_name, kKey},
                           ColumnSource{"category", flow_category, kKey},
                           ColumnSource{"from_track", from_track, kKey},
                           ColumnSource{"from_ts", from_ts},
                           ColumnSource{"to_track", to_track, kKey},
                           ColumnSource{"to_ts", to_ts}};

// Arguments.
struct Arg {
  ArgsView set;
  const ArgField* field;
};
Arg arg(Rows& r, Id i) {
  const TraceRows::ArgPlace place = r.arg_at(i);
  const ArgsView set = r.trace().args(place.id);
  return {set, &set.field(place.field)};
}
Cell arg_set(Rows& r, Id i) { return Cell::of(raw(r.arg_at(i).id)); }
Cell arg_key_text(Rows& r, Id i) { return text_cell(r.trace(), arg(r, i).field->key); }
Cell int_value(Rows& r, Id i) {
  const Arg one = arg(r, i);
  switch (one.field->type) {
    case ArgType::kFalse:
    case ArgType::kTrue:
      return Cell::of(one.field->type == ArgType::kTrue ? 1 : 0);
    case ArgType::kInt32:
    case ArgType::kInt64:
      return optional_cell(one.set.integer(one.field));
    default:
      return {};
  }
}
Cell real_value(Rows& r, Id i) {
  const Arg one = arg(r, i);
  const std::uint64_t bits =
      arg_words(one.field->type) == 2 ? one.set.bits(*one.field) : std::uint64_t{0};
  if (one.field->type == ArgType::kUint64) return Cell::of_real(static_cast<double>(bits));
  if (one.field->type != ArgType::kDouble) return {};
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return Cell::of_real(value);
}
Cell string_value(Rows& r, Id i) {
  const Arg one = arg(r, i);
  if (one.field->type != ArgType::kString && one.field->type != ArgType::kJson) return {};
  return text_cell(r.trace(), static_cast<StringId>(one.set.bits(*one.field)));
}
Cell value_type(Rows& r, Id i) {
  switch (arg(r, i).field->type) {
    case ArgType::kNull:
      return Cell::of_text("null");
    case ArgType::kFalse:
    case ArgType::kTrue:
      return Cell::of_text("bool");
    case ArgType::kInt32:
    case ArgType::kInt64:
      return Cell::of_text("int");
    case ArgType::kUint64:
      return Cell::of_text("uint");
    case ArgType::kDouble:
      return Cell::of_text("real");
    case ArgType::kString:
      return Cell::of_text("string");
    case ArgType::kJson:
      return Cell::of_text("json");
  }
  return {};
}
std::size_t arg_count(Rows& r) { return r.arg_sets().first_row.back(); }
constexpr std::array kArgs{kMarkId,
                           ColumnSource{"arg_set_id", arg_set, kTrack},
                           ColumnSource{"key", arg_key_text, kKey},
                           ColumnSource{"int_value", int_value},
                           ColumnSource{"real_value", real_value},
                           ColumnSource{"string_value", string_value},
                           ColumnSource{"value_type", value_type}};

// Counters.
const Track& counter_track(Rows& r, Id i) { return r.trace().track(r.trace().counters().track[i]); }
Cell counter_ts(Rows& r, Id i) { return Cell::of(r.trace().counters().time_ns[i]); }
Cell counter_track_id(Rows& r, Id i) { return Cell::of(raw(r.trace().counters().track[i])); }
Cell counter_name(Rows& r, Id i) { return text_cell(r.trace(), counter_track(r, i).name); }
Cell counter_series(Rows& r, Id i) { return text_cell(r.trace(), counter_track(r, i).series); }
Cell counter_value(Rows& r, Id i) { return Cell::of_real(r.trace().counters().value[i]); }
std::size_t counter_count(Rows& r) { return r.trace().counters().size(); }
constexpr std::array kCounter{kMarkId,
                              ColumnSource{"ts", counter_ts, kTime},
                              ColumnSource{"track_id", counter_track_id, kTrack},
                              ColumnSource{"name", counter_name, kKey},
                              ColumnSource{"series", counter_series, kKey},
                              ColumnSource{"value", counter_value}};

// Collectives, in order of device, then begin.
const analysis::CollectiveCall& call(Rows& r, Id i) { return r.collectives()[i]; }
Id slice_of(Rows& r, Id i) { return raw(call(r, i).work.slice); }
Cell coll_id(Rows& r, Id i) { return Cell::of(slice_of(r, i)); }
Cell coll_ts(Rows& r, Id i) { return Cell::of(call(r, i).work.start_ns); }
Cell coll_dur(Rows& r, Id i) { return Cell::of(r.trace().dur_ns(call(r, i).work.slice)); }
Cell coll_kernel(Rows& r, Id i) { return Cell::of_text(r.trace().name(call(r, i).work.slice)); }
Cell coll_device(Rows& r, Id i) { return Cell::of(r.collective_devices()[i]); }
Cell coll_name(Rows& r, Id i) { return text_cell(r.trace(), call(r, i).name); }
Cell coll_group(Rows& r, Id i) { return text_cell(r.trace(), call(r, i).group); }
Cell coll_bytes(Rows& r, Id i) { return optional_cell(call(r, i).message_bytes); }
Cell coll_sequence(Rows& r, Id i) { return optional_cell(call(r, i).sequence); }
Cell coll_call(Rows& r, Id i) { return id_cell(r.links().launch_of[slice_of(r, i)]); }
Cell coll_op(Rows& r, Id i) { return id_cell(r.links().op_of[slice_of(r, i)]); }
Cell coll_step(Rows& r, Id i) { return optional_cell(r.step_of_launch(slice_of(r, i))); }
std::size_t coll_count(Rows& r) { return r.collectives().size(); }
constexpr std::array kCollective{ColumnSource{"id", coll_id, kKey},
                                 ColumnSource{"ts", coll_ts, kKey},
                                 ColumnSource{"dur", coll_dur},
                                 ColumnSource{"name", coll_kernel, kKey},
                                 ColumnSource{"device", coll_device, kKey},
                                 ColumnSource{"collective", coll_name, kKey},
                                 ColumnSource{"process_group", coll_group, kKey},
                                 ColumnSource{"message_bytes", coll_bytes},
                                 ColumnSource{"sequence", coll_sequence, kKey},
                                 ColumnSource{"call_id", coll_call, kKey},
                                 ColumnSource{"op_id", coll_op, kKey},
                                 ColumnSource{"step", coll_step, kKey}};

Cell entry_name(Rows& r, Id i) { return text_cell(r.trace(), r.trace().metadata()[i].key); }
Cell entry_value(Rows& r, Id i) { return text_cell(r.trace(), r.trace().metadata()[i].json); }
std::size_t entry_count(Rows& r) { return r.trace().metadata().size(); }
constexpr std::array kMetadata{ColumnSource{"name", entry_name, kKey},
                               ColumnSource{"value", entry_value}};

constexpr std::array kSources{
    TableSource{"instant", kInstant, nullptr, mark_count},
    TableSource{"memory_event", kMemoryEvent, memory_marks, nullptr},
    TableSource{"step", kStep, nullptr, step_count},
    TableSource{"flow", kFlow, nullptr, flow_count},
    TableSource{"args", kArgs, nullptr, arg_count},
    TableSource{"counter", kCounter, nullptr, counter_count},
    TableSource{"collective", kCollective, nullptr, coll_count},
    TableSource{"metadata", kMetadata, nullptr, entry_count},
};

}  // namespace

std::span<const TableSource> detail_sources() { return kSources; }

}  // namespace lanescope::sql
