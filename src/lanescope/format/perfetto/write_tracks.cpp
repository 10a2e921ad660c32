#include "lanescope/format/perfetto/write_tracks.h"

#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

using codec::WireWriter;

bool fits_int32(std::int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

}  // namespace

TrackWriter::TrackWriter(const Trace& trace, PacketOutput& out)
    : trace_(trace),
      out_(out),
      has_thread_(trace.processes().size()),
      has_other_(trace.processes().size()),
      next_uuid_(group_uuid(trace.processes().size()) + trace.tracks().size()) {
  for (const Track& track : trace.tracks())
    (is_real_thread(track) ? has_thread_ : has_other_)[raw(track.process)] = true;
}

// 0 is the idle process to Perfetto, and device 0 to Kineto.
bool TrackWriter::is_real(const Scalar& pid) const {
  return !pid.is_text && pid.number > 0 && pid.number <= INT32_MAX;
}

bool TrackWriter::is_real_thread(const Track& track) const {
  return track.kind == TrackKind::kThread && is_real(trace_.process(track.process).pid) &&
         !track.tid.is_text;
}

void TrackWriter::write() {
  for (std::size_t i = 0; i < trace_.processes().size(); ++i) write_process(i);
  for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i)
    write_track(TrackId{i}, uuid(TrackId{i}), 0);
}

std::uint64_t TrackWriter::add_row(TrackId track, std::size_t row) {
  write_track(track, next_uuid_, row);
  return next_uuid_++;
}

void TrackWriter::packet(std::string_view descriptor) {
  std::string fields;
  WireWriter(fields).bytes(pftrace::kTrackDescriptor, descriptor);
  out_.track_packet(fields);
}

void TrackWriter::write_process(std::size_t i) {
  const Process& process = trace_.processes()[i];
  const bool is_process = has_thread_[i];
  if (is_process) {
    std::string text, details;
    WireWriter(details).signed_integer(pftrace::kPid, process.pid.number);
    if (process.name != kNone<StringId>)
      WireWriter(details).bytes(pftrace::kProcessName,
                                codec::valid_utf8(trace_.text(process.name)));
    if (process.labels != kNone<StringId>)
      WireWriter(details).bytes(pftrace::kLabels, codec::valid_utf8(trace_.text(process.labels)));
    if (process.sort_index && fits_int32(*process.sort_index))
      WireWriter(details).signed_integer(pftrace::kProcessSort, *process.sort_index);
    WireWriter(text).integer(pftrace::kUuid, process_uuid(i));
    WireWriter(text).bytes(pftrace::kTrackProcess, details);
    WireWriter(text).bytes(pftrace::kOwnField, own_place(process));
    packet(text);
  }
  if (!has_other_[i] && is_process) return;
  std::string text;
  WireWriter(text).integer(pftrace::kUuid, group_uuid(i));
  if (is_process) WireWriter(text).integer(pftrace::kParentUuid, process_uuid(i));
  WireWriter(text).bytes(pftrace::kTrackName, codec::valid_utf8(name_of(process)));
  WireWriter(text).bytes(pftrace::kOwnField, own_place(process));
  packet(text);
}

std::string TrackWriter::name_of(const Process& process) const {
  std::string name(trace_.text(process.labels));
  if (name.empty()) name = trace_.text(process.name);
  if (name.empty())
    name = process.pid.is_text ? std::string(trace_.text(process.pid.text))
                               : std::to_string(process.pid.number);
  return name;
}

std::string TrackWriter::name_of(const Track& track) const {
  std::string name(trace_.text(track.name));
  if (const std::string_view series = trace_.text(track.series); !series.empty())
    name.append(name.empty() ? "" : " ").append(series);
  if (!name.empty()) return name;
  name = track.kind == TrackKind::kStream   ? "stream "
         : track.kind == TrackKind::kThread ? "thread "
                                            : "";
  return name + (track.tid.is_text ? std::string(trace_.text(track.tid.text))
                                   : std::to_string(track.tid.number));
}

void TrackWriter::write_track(TrackId id, std::uint64_t uuid, std::size_t row) {
  const Track& track = trace_.track(id);
  const std::size_t process = raw(track.process);
  std::string text;
  WireWriter writer(text);
  writer.integer(pftrace::kUuid, uuid);
  if (is_real_thread(track) && row == 0) {
    std::string details;
    WireWriter(details).signed_integer(pftrace::kThreadPid, trace_.processes()[process].pid.number);
    WireWriter(details).signed_integer(pftrace::kTid, track.tid.number);
    if (track.name != kNone<StringId>)
      WireWriter(details).bytes(pftrace::kThreadName, codec::valid_utf8(trace_.text(track.name)));
    if (track.sort_index && fits_int32(*track.sort_index))
      WireWriter(details).signed_integer(pftrace::kThreadSort, *track.sort_index);
    writer.integer(pftrace::kParentUuid, process_uuid(process));
    writer.bytes(pftrace::kTrackThread, details);
  } else {
    const bool is_row_of_thread = is_real_thread(track);
    writer.integer(pftrace::kParentUuid, is_row_of_thread ? this->uuid(id) : group_uuid(process));
    writer.bytes(pftrace::kTrackName, codec::valid_utf8(name_of(track)));
    if (track.kind == TrackKind::kCounter) writer.bytes(pftrace::kTrackCounter, {});
  }
  writer.bytes(pftrace::kOwnField, own_place(track));
  packet(text);
}

std::string TrackWriter::own_place(const Process& process) const {
  std::string text;
  WireWriter writer(text);
  writer.integer(pftrace::kOwnKind, pftrace::kOwnProcess);
  if (process.pid.is_text)
    writer.bytes(pftrace::kOwnPidText, trace_.text(process.pid.text));
  else
    writer.signed_integer(pftrace::kOwnPid, process.pid.number);
  if (process.name != kNone<StringId>) writer.bytes(pftrace::kOwnName, trace_.text(process.name));
  if (process.labels != kNone<StringId>)
    writer.bytes(pftrace::kOwnLabels, trace_.text(process.labels));
  if (process.sort_index) writer.signed_integer(pftrace::kOwnSort, *process.sort_index);
  return text;
}

std::string TrackWriter::own_place(const Track& track) const {
  std::string text;
  WireWriter writer(text);
  const Scalar& pid = trace_.process(track.process).pid;
  writer.integer(pftrace::kOwnKind, static_cast<std::uint64_t>(track.kind));
  if (pid.is_text)
    writer.bytes(pftrace::kOwnPidText, trace_.text(pid.text));
  else
    writer.signed_integer(pftrace::kOwnPid, pid.number);
  if (track.tid.is_text)
    writer.bytes(pftrace::kOwnTidText, trace_.text(track.tid.text));
  else
    writer.signed_integer(pftrace::kOwnTid, track.tid.number);
  if (track.name != kNone<StringId>) writer.bytes(pftrace::kOwnName, trace_.text(track.name));
  if (track.series != kNone<StringId>) writer.bytes(pftrace::kOwnSeries, trace_.text(track.series));
  if (track.sort_index) writer.signed_integer(pftrace::kOwnSort, *track.sort_index);
  if (track.device) writer.signed_integer(pftrace::kOwnDevice, *track.device);
  if (track.stream) writer.signed_integer(pftrace::kOwnStream, *track.stream);
  return text;
}

}  // namespace lanescope::format
