// Idea: one pass over the packets. What a packet says for later ones is kept by sequence; events go
// to a log by track, because tracks may be described late, and the log is paired at the end.
#include "lanescope/format/perfetto/read_pftrace.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/kineto_json/value_reader.h"
#include "lanescope/format/perfetto/event_decoder.h"
#include "lanescope/format/perfetto/event_log.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/format/perfetto/own_trace.h"
#include "lanescope/format/perfetto/packet_names.h"
#include "lanescope/format/perfetto/packet_source.h"
#include "lanescope/format/perfetto/render_stages.h"
#include "lanescope/format/perfetto/sequence_state.h"
#include "lanescope/format/perfetto/trace_clocks.h"
#include "lanescope/format/perfetto/track_slots.h"
#include "lanescope/model/profiler_steps.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

constexpr std::size_t kMostNames = 64;  // of packets that are not read
constexpr std::size_t kMostSequences = 1'000'000;
constexpr std::uint64_t kFreeBytes = 256ull
                                     << 20;  // of compressed packets, before the ratio counts

class PftraceReader {
 public:
  PftraceReader(codec::UnpackedSource& source, const ReadOptions& options)
      : source_(source), options_(options), slots_(builder_), decoder_(builder_, slots_, log_) {}

  Result<Trace> read() {
    PacketSource packets(source_, options_.max_event_bytes);
    std::uint64_t count = 0;
    while (true) {
      LANESCOPE_TRY(const auto packet, packets.next());
      if (!packet) break;
      offset_ = packets.offset();
      read_packet(*packet, true);
      if (options_.progress && ++count % 65536 == 0)
        options_.progress(source_.done_bytes(), source_.total_bytes());
    }
    ImportStats& stats = builder_.stats();
    if (packets.is_damaged()) stats.count(ImportIssue::kTruncatedFile, packets.offset());
    if (packets.too_long() > 0)
      stats.count(ImportIssue::kEventLost, std::nullopt, packets.too_long());
    if (source_.report().damage)
      stats.count(ImportIssue::kTruncatedStream, source_.report().damage);
    if (source_.report().wrong_checksum)
      stats.count(ImportIssue::kWrongChecksum, source_.report().wrong_checksum);
    if (source_.report().trailing)
      stats.count(ImportIssue::kTrailingBytes, source_.unpacked_bytes());
    stats.input_bytes = source_.done_bytes();
    stats.unpacked_bytes = source_.unpacked_bytes();
    return finish();
  }

 private:
  struct Packet {
    std::uint64_t sequence = 0, flags = 0;
    std::optional<std::uint64_t> time, clock;
    bool is_cleared = false;
    std::string_view event, stage, interned, defaults, track, snapshot, thread, process, packed,
        own;
    std::uint32_t unread = 0;  // the field of another content; 0: none
  };

  Packet fields_of(std::string_view bytes) {
    Packet packet;
    WireReader field(bytes);
    while (field.next()) {
      switch (field.number()) {
        case pftrace::kTimestamp:
          packet.time = field.integer();
          break;
        case pftrace::kTimestampClock:
          packet.clock = field.integer();
          break;
        case pftrace::kSequenceId:
          packet.sequence = field.integer();
          break;
        case pftrace::kSequenceFlags:
          packet.is_cleared |= (field.integer() & pftrace::kFlagCleared) != 0;
          break;
        case pftrace::kStateCleared:
          packet.is_cleared |= field.integer() != 0;
          break;
        case pftrace::kTrackEvent:
          packet.event = field.bytes();
          break;
        case pftrace::kGpuRenderStage:
          packet.stage = field.bytes();
          break;
        case pftrace::kInternedData:
          packet.interned = field.bytes();
          break;
        case pftrace::kPacketDefaults:
          packet.defaults = field.bytes();
          break;
        case pftrace::kTrackDescriptor:
          packet.track = field.bytes();
          break;
        case pftrace::kClockSnapshot:
          packet.snapshot = field.bytes();
          break;
        case pftrace::kThreadDescriptor:
          packet.thread = field.bytes();
          break;
        case pftrace::kProcessDescriptor:
          packet.process = field.bytes();
          break;
        case pftrace::kCompressedPackets:
          packet.packed = field.bytes();
          break;
        case pftrace::kOwnField:
          packet.own = field.bytes();
          break;
        default:
          packet.unread = field.number();
          if (!unread_packet_name(packet.unread).empty()) count_unread(packet.unread);
          break;
      }
    }
    if (field.is_damaged()) builder_.stats().count(ImportIssue::kEventLost, offset_);
    return packet;
  }
  void count_unread(std::uint32_t field) {
    builder_.stats().count(ImportIssue::kUnknownPhase, offset_);
    if (unread_.size() < kMostNames || unread_.contains(field)) ++unread_[field];
  }

  // `may_unpack`: packets in compressed ones hold none themselves.
  void read_packet(std::string_view bytes, bool may_unpack) {
    const Packet packet = fields_of(bytes);
    if (!packet.packed.empty()) {
      if (may_unpack)
        read_packed(packet.packed);
      else
        lose();
      return;
    }
    SequenceState* const found = state_of(packet.sequence);
    if (!found) return lose();
    SequenceState& state = *found;
    if (packet.is_cleared) state = SequenceState{};
    if (!packet.snapshot.empty()) clocks_.snapshot(packet.snapshot, packet.sequence);
    if (!packet.interned.empty()) intern(packet.interned, state, builder_);
    if (!packet.defaults.empty()) set_defaults(packet.defaults, state);
    if (!packet.thread.empty()) set_thread(packet.thread, state);
    if (!packet.process.empty()) slots_.describe_process(packet.process);
    if (!packet.track.empty()) slots_.describe(packet.track);
    if (!packet.own.empty()) own_.read(packet.own, builder_);
    if (packet.event.empty() && packet.stage.empty()) return;
    const auto ns = time_of(packet, state);
    if (!ns) {
      builder_.stats().count(packet.time ? ImportIssue::kBadTime : ImportIssue::kMissingField,
                             offset_);
      builder_.skip_event();
      return;
    }
    if (!packet.event.empty()) decoder_.decode(packet.event, packet.own, *ns, state);
    if (!packet.stage.empty()) add_render_stage(packet.stage, *ns, state, builder_, slots_, log_);
  }
  // nullptr: there are too many.
  SequenceState* state_of(std::uint64_t sequence) {
    if (last_state_ && last_sequence_ == sequence) return last_state_;
    if (sequences_.size() >= kMostSequences && !sequences_.contains(sequence)) return nullptr;
    last_sequence_ = sequence;
    return last_state_ = &sequences_[sequence];  // stays where it is
  }
  void lose() { builder_.stats().count(ImportIssue::kEventLost, offset_); }

  void read_packed(std::string_view packed) {
    const std::uint64_t limit =
        kFreeBytes + options_.max_expansion_ratio * (source_.done_bytes() + packed.size());
    const std::uint64_t room = limit - std::min(limit, inflated_);
    const auto bytes = inflate_packets(packed, static_cast<std::size_t>(room));
    if (!bytes) return lose();
    inflated_ += bytes->size();
    WireReader field(*bytes);
    while (field.next())
      if (field.number() == pftrace::kPacket) read_packet(field.bytes(), false);
    if (field.is_damaged()) lose();
  }

  void set_thread(std::string_view message, SequenceState& state) {
    LegacyThread thread;
    for (WireReader field(message); field.next();) {
      if (field.number() == pftrace::kThreadPid) thread.pid = field.signed_integer();
      if (field.number() == pftrace::kTid) thread.tid = field.signed_integer();
      if (field.number() == pftrace::kThreadName)
        thread.name = builder_.intern(codec::valid_utf8(field.bytes()));
      if (field.number() == pftrace::kReferenceUs) state.legacy_us = field.signed_integer();
    }
    state.thread = thread;
  }

  std::optional<std::int64_t> time_of(const Packet& packet, SequenceState& state) {
    auto ns = packet.event.empty() ? std::nullopt : EventDecoder::own_time_ns(packet.event, state);
    if (!ns && packet.time) {
      std::uint64_t clock = packet.clock.value_or(state.default_clock);
      if (clock == 0) clock = pftrace::kBootTime;
      ns = clocks_.to_boot_ns(clock, packet.sequence, *packet.time);
    }
    if (ns && own_.is_there()) ns = own_.shifted(*ns);
    return ns && is_possible_time(*ns) ? ns : std::nullopt;
  }

  Result<Trace> finish() {
    log_.finish(slots_, builder_);
    add_flows();
    if (!own_.is_there()) {
      if (const auto day = clocks_.day_ns(); day && *day > 0) builder_.set_base_time_ns(*day);
      builder_.add_metadata("recordedBy", "\"Perfetto\"");
    }
    if (!unread_.empty()) {
      std::string json;
      for (const auto& [field, count] : unread_) {
        json += json.empty() ? "{\"" : ", \"";
        json += unread_packet_name(field) + "\": " + std::to_string(count);
      }
      builder_.add_metadata("unreadPackets", json + "}");
    }
    add_profiler_steps(builder_);
    builder_.stats().events = builder_.event_count();
    return std::move(builder_).finish();
  }

  void add_flows() {
    std::vector<FlowMark> marks = log_.flows();
    if (own_.is_there())
      std::erase_if(marks, [](const FlowMark& mark) { return mark.id >= pftrace::kOwnFlowsFrom; });
    const FlowPairs found = pair_flows(std::move(marks));
    for (const FlowPair& pair : found.pairs) {
      Flow flow = own_.flow_of(pair.id, builder_);
      flow.from_track = log_.track(pair.from.slot);
      flow.from_ns = pair.from.ns;
      flow.to_track = log_.track(pair.to.slot);
      flow.to_ns = pair.to.ns;
      builder_.add_flow(flow);
    }
    if (found.unpaired > 0)
      builder_.stats().count(ImportIssue::kOrphanFlow, std::nullopt, found.unpaired);
    for (const OwnFlow& own : own_.flows()) {
      Flow flow = own.flow;
      const auto from = slots_.find_uuid(own.from_uuid), to = slots_.find_uuid(own.to_uuid);
      if (!from || !to || !slots_.slot(*from).own || !slots_.slot(*to).own) {
        builder_.stats().count(ImportIssue::kOrphanFlow);
        continue;
      }
      flow.from_track = *slots_.slot(*from).own;
      flow.to_track = *slots_.slot(*to).own;
      builder_.add_flow(flow);
    }
  }

  codec::UnpackedSource& source_;
  const ReadOptions& options_;
  TraceBuilder builder_;
  TrackSlots slots_;
  EventLog log_;
  EventDecoder decoder_;
  TraceClocks clocks_;
  OwnTrace own_;
  std::unordered_map<std::uint64_t, SequenceState> sequences_;
  std::uint64_t last_sequence_ = 0;
  SequenceState* last_state_ = nullptr;            // of last_sequence_
  std::map<std::uint32_t, std::uint64_t> unread_;  // packets, by field
  std::uint64_t inflated_ = 0, offset_ = 0;
};

// --- detection

// A packet of a trace, as far as the head reaches: whole fields, and one that packets have.
bool is_packet(std::string_view packet, bool is_cut) {
  bool is_known = false;
  WireReader field(packet);
  while (field.next()) {
    const std::uint32_t number = field.number();
    const bool is_number = number == pftrace::kTimestamp || number == pftrace::kSequenceId;
    const bool is_message = number == pftrace::kTrackDescriptor || number == 33 || number == 89 ||
                            number == pftrace::kCompressedPackets;
    if (number > 1000 && number != pftrace::kOwnField) return false;
    if (is_number && field.is_bytes()) return false;
    is_known |= is_number || (is_message && field.is_bytes());
  }
  return is_known && (is_cut || !field.is_damaged());
}

}  // namespace

bool is_pftrace(std::string_view head) {
  if (head.size() < 3 || head[0] != '\x0a') return false;
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  };
  const std::string_view start = head.substr(0, 64);
  if (std::none_of(start.begin(), start.end(), is_control)) return false;  // text after a line end
  std::uint64_t size = 0;
  std::size_t at = 1;
  for (int shift = 0; at < head.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(head[at++]);
    size |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80U) break;
  }
  const std::string_view rest = head.substr(at);
  return size > 0 &&
         is_packet(
             rest.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size()))),
             size > rest.size());
}

Result<Trace> read_pftrace(codec::UnpackedSource& source, const ReadOptions& options) {
  return PftraceReader(source, options).read();
}

}  // namespace lanescope::format
