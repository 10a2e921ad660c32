#include "lanescope/format/perfetto/track_slots.h"

#include <string>
#include <vector>

#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

constexpr int kMostParents = 64;  // a hostile file has circles

}  // namespace

StringId TrackSlots::clean(std::string_view text) {
  return builder_.intern(codec::valid_utf8(text));
}

std::uint32_t TrackSlots::of_uuid(std::uint64_t uuid) {
  const auto [at, is_new] = by_uuid_.try_emplace(uuid, static_cast<std::uint32_t>(slots_.size()));
  if (is_new) slots_.push_back({.uuid = uuid});
  return at->second;
}

std::uint32_t TrackSlots::find_or_add(const Key& key, const TrackSlot& slot) {
  const auto [at, is_new] = by_key_.try_emplace(key, static_cast<std::uint32_t>(slots_.size()));
  if (is_new) slots_.push_back(slot);
  return at->second;
}

std::uint32_t TrackSlots::of_thread(const LegacyThread& thread) {
  const std::uint32_t index = find_or_add(
      {TrackSlot::kThread, {thread.pid, static_cast<std::uint64_t>(thread.tid)}},
      {.kind = TrackSlot::kThread, .pid = thread.pid, .tid = thread.tid, .has_pid = true});
  if (thread.name != kNone<StringId>) slots_[index].name = thread.name;
  return index;
}

std::uint32_t TrackSlots::of_stream(std::int64_t gpu, std::uint64_t queue, StringId name) {
  const std::uint32_t index = find_or_add(
      {TrackSlot::kStream, {gpu, queue}},
      {.kind = TrackSlot::kStream, .pid = gpu, .tid = static_cast<std::int64_t>(queue)});
  if (name != kNone<StringId>) slots_[index].name = name;
  return index;
}

std::uint32_t TrackSlots::of_async(std::int64_t pid, std::uint64_t id) {
  return find_or_add({TrackSlot::kAsync, {pid, id}},
                     {.kind = TrackSlot::kAsync, .uuid = id, .pid = pid, .has_pid = true});
}

void TrackSlots::describe(std::string_view message) {
  std::uint64_t uuid = 0;
  for (WireReader field(message); field.next();)
    if (field.number() == pftrace::kUuid) uuid = field.integer();
  TrackSlot& slot = slots_[of_uuid(uuid)];
  for (WireReader field(message); field.next();) {
    switch (field.number()) {
      case pftrace::kParentUuid:
        slot.parent = field.integer();
        break;
      case pftrace::kTrackName:
      case pftrace::kStaticName:
      case pftrace::kAtraceName:
        slot.name = clean(field.bytes());
        break;
      case pftrace::kTrackProcess:
        describe_process(field.bytes());
        if (slot.kind == TrackSlot::kNamed) slot.kind = TrackSlot::kProcess;
        for (WireReader inner(field.bytes()); inner.next();)
          if (inner.number() == pftrace::kPid) slot.pid = inner.signed_integer();
        slot.has_pid = true;
        break;
      case pftrace::kTrackThread:
        describe_thread(field.bytes(), slot);
        break;
      case pftrace::kTrackCounter:
        describe_counter(field.bytes(), slot);
        break;
      case pftrace::kOwnField:
        describe_own(field.bytes(), slot);
        break;
      default:
        break;
    }
  }
}

void TrackSlots::describe_thread(std::string_view message, TrackSlot& slot) {
  slot.kind = TrackSlot::kThread;
  slot.has_pid = true;
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kThreadPid) slot.pid = field.signed_integer();
    if (field.number() == pftrace::kTid) slot.tid = field.signed_integer();
    if (field.number() == pftrace::kThreadName) slot.name = clean(field.bytes());
    if (field.number() == pftrace::kThreadSort) slot.sort_index = field.signed_integer();
  }
}

void TrackSlots::describe_counter(std::string_view message, TrackSlot& slot) {
  slot.kind = TrackSlot::kCounter;
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kUnitMultiplier && field.signed_integer() != 0)
      slot.unit = field.signed_integer();
    if (field.number() == pftrace::kIncremental) slot.is_incremental = field.integer() != 0;
  }
}

void TrackSlots::describe_process(std::string_view message) {
  std::int64_t pid = 0;
  for (WireReader field(message); field.next();)
    if (field.number() == pftrace::kPid) pid = field.signed_integer();
  ProcessNames& names = processes_[pid];
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kProcessName) names.name = clean(field.bytes());
    if (field.number() == pftrace::kLabels) names.labels = clean(field.bytes());
    if (field.number() == pftrace::kProcessSort) names.sort_index = field.signed_integer();
  }
}

void TrackSlots::describe_own(std::string_view message, TrackSlot& slot) {
  std::uint64_t kind = 0;
  Scalar pid, tid;
  std::optional<StringId> name, labels;
  std::string_view series;
  std::optional<std::int64_t> sort_index, device, stream;
  for (WireReader field(message); field.next();) {
    const std::int64_t value = field.signed_integer();
    switch (field.number()) {
      case pftrace::kOwnKind:
        kind = field.integer();
        break;
      case pftrace::kOwnPid:
        pid = number(value);
        break;
      case pftrace::kOwnPidText:
        pid = text(codec::valid_utf8(field.bytes()));
        break;
      case pftrace::kOwnTid:
        tid = number(value);
        break;
      case pftrace::kOwnTidText:
        tid = text(codec::valid_utf8(field.bytes()));
        break;
      case pftrace::kOwnName:
        name = clean(field.bytes());
        break;
      case pftrace::kOwnSeries:
        series = field.bytes();
        break;
      case pftrace::kOwnSort:
        sort_index = value;
        break;
      case pftrace::kOwnDevice:
        device = value;
        break;
      case pftrace::kOwnStream:
        stream = value;
        break;
      case pftrace::kOwnLabels:
        labels = clean(field.bytes());
        break;
      default:
        break;
    }
  }
  if (kind == pftrace::kOwnProcess) {
    builder_.process(pid);
    if (name) builder_.set_process_name(pid, *name);
    if (labels) builder_.set_process_labels(pid, *labels);
    if (sort_index) builder_.set_process_sort_index(pid, *sort_index);
    return;
  }
  const std::string series_text = codec::valid_utf8(series);
  switch (static_cast<TrackKind>(kind)) {
    case TrackKind::kThread:
      slot.own = builder_.thread_track(pid, tid);
      break;
    case TrackKind::kStream: {
      slot.own = builder_.stream_track(pid, tid);
      const bool fits = device && *device >= INT32_MIN && *device <= INT32_MAX;
      builder_.set_stream_numbers(
          *slot.own, fits ? std::optional(static_cast<std::int32_t>(*device)) : std::nullopt,
          stream);
      break;
    }
    case TrackKind::kAsync:
      slot.own = builder_.async_track(pid, series_text, tid);
      break;
    case TrackKind::kCounter:
      slot.own =
          builder_.counter_track(pid, name ? std::string(builder_.text(*name)) : "", series_text);
      return;
    default:  // of a later version
      return;
  }
  if (name) builder_.set_track_name(*slot.own, *name);
  if (sort_index) builder_.set_track_sort_index(*slot.own, *sort_index);
}

std::int64_t TrackSlots::process_above(const TrackSlot& slot) const {
  const TrackSlot* at = &slot;
  for (int i = 0; i < kMostParents && !at->has_pid && at->parent; ++i) {
    const auto found = by_uuid_.find(*at->parent);
    if (found == by_uuid_.end()) break;
    at = &slots_[found->second];
  }
  return at->pid;
}

TrackId TrackSlots::counter(std::uint32_t index) {
  const TrackSlot& slot = slots_[index];
  if (slot.own && builder_.tracks()[raw(*slot.own)].kind == TrackKind::kCounter) return *slot.own;
  const std::string name(builder_.text(slot.name));
  return builder_.counter_track(number(process_above(slot)),
                                name.empty() ? "counter " + std::to_string(slot.uuid) : name, "");
}

TrackId TrackSlots::track(std::uint32_t index, StringId category_text) {
  const TrackSlot& slot = slots_[index];
  if (slot.own && builder_.tracks()[raw(*slot.own)].kind != TrackKind::kCounter) return *slot.own;
  const std::string category(builder_.text(category_text));
  const Scalar pid = number(slot.kind == TrackSlot::kStream ? slot.pid : process_above(slot));
  TrackId track{};
  if (slot.kind == TrackSlot::kThread)
    track = builder_.thread_track(pid, number(slot.tid));
  else if (slot.kind == TrackSlot::kStream)
    track = builder_.stream_track(pid, number(slot.tid));
  else
    track = builder_.async_track(pid, category, number(static_cast<std::int64_t>(slot.uuid)));
  if (slot.name != kNone<StringId>) builder_.set_track_name(track, slot.name);
  if (slot.sort_index) builder_.set_track_sort_index(track, *slot.sort_index);
  return track;
}

// A trace of a whole machine names all that ran; only those with events are wanted.
void TrackSlots::name_processes() {
  std::vector<std::int64_t> pids;
  for (std::uint32_t i = 0; i < builder_.tracks().size(); ++i) {
    const Scalar& pid = builder_.process_of(TrackId{i}).pid;
    if (!pid.is_text && builder_.tracks()[i].kind != TrackKind::kStream) pids.push_back(pid.number);
  }
  for (const std::int64_t pid : pids) {
    const auto found = processes_.find(pid);
    if (found == processes_.end()) continue;
    const ProcessNames& names = found->second;
    if (names.name != kNone<StringId>) builder_.set_process_name(number(pid), names.name);
    if (names.labels != kNone<StringId>) builder_.set_process_labels(number(pid), names.labels);
    if (names.sort_index) builder_.set_process_sort_index(number(pid), *names.sort_index);
    processes_.erase(found);
  }
}

}  // namespace lanescope::format
