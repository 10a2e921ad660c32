#include "lanescope/format/spool/read_spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/spool/activity_links.h"
#include "lanescope/format/spool/activity_rows.h"
#include "lanescope/format/spool/clock_anchors.h"
#include "lanescope/format/spool/forward_backward.h"
#include "lanescope/format/spool/spool_activities.h"
#include "lanescope/format/spool/spool_bytes.h"
#include "lanescope/format/spool/spool_details.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/format/spool/spool_windows.h"
#include "lanescope/format/spool/window_spans.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {
namespace {

using spool::Record;
using spool::RecordKind;

// Options in a window's mark; the recorder's LANESCOPE_RECORD_* bits, in the order Kineto names
// them.
constexpr std::pair<std::uint32_t, const char*> kOptionNames[] = {{2, "profile_memory"},
                                                                  {4, "with_stack"},
                                                                  {1, "record_shapes"},
                                                                  {8, "with_flops"},
                                                                  {16, "with_modules"}};
// Kineto counts from the last multiple of this before the recording, so that times stay short.
constexpr std::int64_t kBaseStepNs = 7'889'238'000'000'000;
// 36 years from the base: further is damage, and a trace written with it could not be read again.
constexpr std::int64_t kFarthestNs = std::int64_t{1} << 60;

// Where a thread's chunk and slot are, as one key.
struct SlotKey {
  std::uint32_t thread, sequence, slot;
  bool operator==(const SlotKey&) const = default;
};
struct SlotKeyHash {
  std::size_t operator()(const SlotKey& key) const {
    return (key.thread * 0x9e3779b97f4a7c15u ^ key.sequence) * 0xd6e8feb86659fd93u ^ key.slot;
  }
};

class SpoolReader {
 public:
  SpoolReader(const SpoolBytes& bytes, const ReadSpoolOptions& options)
      : bytes_(bytes), options_(options) {}

  Result<Trace> read() {
    LANESCOPE_TRY(index_, read_spool_index(bytes_, options_.live, &builder_.stats()));
    builder_.stats().input_bytes = builder_.stats().unpacked_bytes = bytes_.size();
    find_ends();
    clock_.emplace(index_.anchors, index_.ticks_per_second);
    windows_ = SpoolWindows(index_, options_.session, options_.cycle, last_tick_, &*clock_);
    choose_base();
    add_metadata();
    add_names();
    builder_.expect_slices(count_records(index_.record_chunks) + activities_.records.size());
    for (const auto& [place, record] : kept_ranges_) add_range(record, place);
    for (const SpoolChunk& chunk : index_.record_chunks) add_records(chunk);
    add_waiting_wrapper();
    count_lost_begins();
    add_memory();
    add_forward_backward_flows(builder_, std::move(links_));
    add_activities();
    add_window_spans(builder_, windows_, [this](std::uint64_t tick) { return time_ns(tick); });
    return std::move(builder_).finish();
  }

 private:
  struct MemoryEvent {
    std::int64_t time_ns;
    TrackId track;
    spool::MemoryFields fields;
    bool out_of_memory;
  };
  // Ends that were written apart from their range, and the last tick of all.
  void find_ends() {
    for (const SpoolChunk& chunk : index_.record_chunks)
      for (const Record& record : read_records(bytes_, chunk, buffer_, &builder_.stats())) {
        if (is_thread_activity(record)) {
          thread_activities_.push_back(record);
          continue;
        }
        const auto kind = static_cast<RecordKind>(record.kind);
        const bool is_memory = kind == RecordKind::kMemory || kind == RecordKind::kOutOfMemory;
        last_tick_ = std::max({last_tick_, record.begin_tsc, is_memory ? 0 : record.end_tsc});
        if (kind == RecordKind::kRangeEnd) {
          end_by_slot_[place_of(chunk.thread, record.a)] = record.end_tsc;
        } else if (kind == RecordKind::kEndByHandle) {
          ends_by_handle_[record.d].push_back(record.end_tsc);
        }
      }
    activities_ = read_activities(bytes_, index_, thread_activities_, buffer_, &builder_.stats());
    thread_activities_ = {};
    for (const SpoolChunk& chunk : index_.kept_chunks) read_kept(chunk);
    std::sort(kept_ranges_.begin(), kept_ranges_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.thread, a.first.sequence, a.first.slot) <
             std::tie(b.first.thread, b.first.sequence, b.first.slot);
    });
    for (auto& [handle, ends] : ends_by_handle_) std::sort(ends.begin(), ends.end());
    for (const TickAnchor& anchor : index_.anchors) last_tick_ = std::max(last_tick_, anchor.ticks);
    last_tick_ = std::max(last_tick_, activities_.last_tick);
  }

  static SlotKey place_of(std::uint32_t thread, std::int64_t place) {
    const auto bits = static_cast<std::uint64_t>(place);
    return {thread, static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
  }

  // Ranges, and ends by handle, of chunks that a ring gave back.
  void read_kept(const SpoolChunk& chunk) {
    const auto records = read_records(bytes_, chunk, buffer_, &builder_.stats());
    for (std::size_t i = 0; i + 1 < records.size(); i += 2) {
      if (static_cast<RecordKind>(records[i].kind) != RecordKind::kKeptFrom) continue;
      const Record& record = records[i + 1];
      const SlotKey place = place_of(records[i].b, records[i].a);
      const auto kind = static_cast<RecordKind>(record.kind);
      if (kind == RecordKind::kEndByHandle) ends_by_handle_[record.d].push_back(record.end_tsc);
      // A process that was killed between the two leaves the chunk and the copy.
      else if (kind == RecordKind::kRange && !has_chunk(place.thread, place.sequence))
        kept_ranges_.emplace_back(place, record);
    }
  }

  bool has_chunk(std::uint32_t thread, std::uint32_t sequence) const {
    const auto at = std::lower_bound(
        index_.record_chunks.begin(), index_.record_chunks.end(), std::pair(thread, sequence),
        [](const SpoolChunk& chunk, const std::pair<std::uint32_t, std::uint32_t>& place) {
          return std::pair(chunk.thread, chunk.sequence) < place;
        });
    return at != index_.record_chunks.end() && at->thread == thread && at->sequence == sequence;
  }

  // Ends in a ring's window whose range is nowhere.
  void count_lost_begins() {
    if (index_.kept_chunks.empty() && index_.ring_lost_until == 0 && !windows_.has_ring()) return;
    std::unordered_map<SlotKey, bool, SlotKeyHash> kept;
    for (const auto& [place, record] : kept_ranges_) kept[place] = true;
    for (const auto& [place, end] : end_by_slot_)
      if (windows_.at(end) && !has_chunk(place.thread, place.sequence) && !kept.contains(place))
        builder_.stats().count(ImportIssue::kLostBegin);
  }

  void choose_base() {
    std::uint64_t first = windows_.all().empty() ? 0 : windows_.all().front().start;
    if (first == 0 && !index_.anchors.empty()) first = index_.anchors.front().ticks;
    const std::int64_t unix_ns = clock_->unix_ns(first).value_or(0);
    base_ns_ = unix_ns > 0 ? unix_ns / kBaseStepNs * kBaseStepNs : 0;
    builder_.set_base_time_ns(base_ns_);
  }

  // Nanoseconds since the base; damage brings times that do not fit.
  std::optional<std::int64_t> time_ns(std::uint64_t tick) {
    const auto unix_ns = clock_->unix_ns(tick);
    std::int64_t time = 0;
    if (!unix_ns || __builtin_sub_overflow(*unix_ns, base_ns_, &time)) return std::nullopt;
    if (time > kFarthestNs || time < -kFarthestNs) return std::nullopt;
    return time;
  }

  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    codec::append_escaped_json(out, text);
    return out + '"';
  }

  void add_metadata() {
    builder_.add_metadata("schemaVersion", "1");
    for (const auto& [bit, name] : kOptionNames)
      if (windows_.options() & bit) builder_.add_metadata(name, "1");
    if (!index_.host_name.empty()) builder_.add_metadata("host_name", quoted(index_.host_name));
    std::vector<std::pair<std::string_view, std::string_view>> entries{{"deviceProperties", "[]"}};
    const auto set = [&](std::string_view key,
                         std::string_view json) {  // the last of equal keys wins
      const auto known = std::find_if(entries.begin(), entries.end(),
                                      [&](const auto& entry) { return entry.first == key; });
      if (known == entries.end())
        entries.emplace_back(key, json);
      else
        known->second = json;
    };
    for (const SpoolMetadata& entry : index_.metadata) {
      if (options_.session && entry.session != 0 && entry.session != *options_.session) continue;
      if (!codec::is_strict_json(entry.json))
        builder_.stats().count(ImportIssue::kMetadataLost);
      else
        set(entry.key, entry.json);
    }
    for (const auto& [key, json] : options_.metadata) set(key, json);
    for (const auto& [key, json] : entries) builder_.add_metadata(key, json);
    devices_ = parse_gpu_devices(entries.front().second);
    std::string notes;
    for (const auto& [session, line] : index_.notes)
      if (!options_.session || session == *options_.session)
        notes += (notes.empty() ? "" : ", ") + quoted(line);
    if (!notes.empty()) builder_.add_metadata("lanescope_notes", "[" + notes + "]");
    if (const std::string anchors = clock_anchors_json(*clock_, index_.ticks_per_second);
        !anchors.empty())
      builder_.add_metadata("lanescope_clock_anchors", anchors);
    builder_.add_metadata("lanescope_version", quoted(LANESCOPE_VERSION));
    builder_.add_metadata("displayTimeUnit", "\"ms\"");
    builder_.add_metadata("baseTimeNanoseconds", std::to_string(base_ns_));
  }

  void add_names() {
    pid_.number = static_cast<std::int64_t>(index_.pid);
    builder_.set_process_name(pid_, builder_.intern(index_.process_name));
    builder_.set_process_labels(pid_, builder_.intern("CPU"));
    builder_.set_process_sort_index(pid_, pid_.number);
    cpu_op_ = builder_.category("cpu_op");
    annotation_ = builder_.category("user_annotation");
    instant_ = builder_.category("cpu_instant_event");
    name_ids_.assign(index_.texts.size(), kNone<StringId>);
    key_.external_id = builder_.intern("External id");
    key_.record_function_id = builder_.intern("Record function id");
    key_.sequence = builder_.intern("Sequence number");
    key_.fwd_thread = builder_.intern("Fwd thread id");
    key_.ev_idx = builder_.intern("Ev Idx");
  }

  // A thread's track and name appear with its first event.
  TrackId track_of(std::uint32_t thread) {
    if (thread >= tracks_.size()) {
      if (thread > index_.threads.size() + 1'000'000) thread = 0;  // damage
      tracks_.resize(std::max<std::size_t>(thread + 1, index_.threads.size()), kNone<TrackId>);
    }
    if (tracks_[thread] != kNone<TrackId>) return tracks_[thread];
    const SpoolThread* info = thread < index_.threads.size() ? &index_.threads[thread] : nullptr;
    Scalar tid;
    tid.number = info ? info->os_tid : static_cast<std::int64_t>(thread);
    if (info)
      builder_.set_thread_name(
          pid_, tid, builder_.intern(fmt::format("thread {} ({})", info->os_tid, info->name)));
    builder_.set_thread_sort_index(pid_, tid, tid.number);
    return tracks_[thread] = builder_.track(pid_, tid, false);
  }

  StringId name_of(std::uint32_t id) {
    if (id >= name_ids_.size() || !index_.has_text[id]) {
      builder_.stats().count(ImportIssue::kMissingField);
      return builder_.intern(fmt::format("(lost name {})", id));
    }
    if (name_ids_[id] == kNone<StringId>) {
      bool replaced = false;
      name_ids_[id] = builder_.intern(codec::valid_utf8(index_.texts[id], &replaced));
      if (replaced) builder_.stats().count(ImportIssue::kInvalidUtf8);
    }
    return name_ids_[id];
  }

  void add_records(const SpoolChunk& chunk) {
    ImportStats ignored;  // the chunk's damage was counted when the ends were read
    std::uint32_t slot = 0;
    for (const Record& record : read_records(bytes_, chunk, buffer_, &ignored)) {
      switch (static_cast<RecordKind>(record.kind)) {
        case RecordKind::kRange:
          meet_range(record, {chunk.thread, chunk.sequence, slot});
          break;
        case RecordKind::kInstant:
          add_instant(record, chunk.thread);
          break;
        case RecordKind::kMemory:
        case RecordKind::kOutOfMemory:
          keep_memory(record, chunk.thread);
          break;
        case RecordKind::kCollective:
          add_waiting_wrapper();
          collective_.emplace(record, chunk.thread);
          break;
        case RecordKind::kRangeEnd:
        case RecordKind::kEndByHandle:
          break;
        default:
          if (!is_thread_activity(record))
            builder_.stats().count(ImportIssue::kEventLost, chunk.offset);
      }
      ++slot;
    }
  }

  // The engine's wrapper of a backward node begins without the node's numbers; torch.profiler gives
  // it those of the node when that is the thread's next range.
  void meet_range(const Record& record, const SlotKey& place) {
    if (wrapper_ && wrapper_->second.thread == place.thread &&
        record.scope == spool::kBackwardScope) {
      wrapper_->first.a = record.a;
      wrapper_->first.b = record.b;
      wrapper_->first.flags |= record.flags & (spool::kHasSequence | spool::kHasForwardThread);
    }
    add_waiting_wrapper();
    if (record.scope == spool::kFunctionScope && is_engine_wrapper(record.name))
      wrapper_.emplace(record, place);
    else
      add_range(record, place);
  }
  void add_waiting_wrapper() {
    if (wrapper_) add_range(wrapper_->first, wrapper_->second);
    wrapper_.reset();
  }

  // Kineto's values for the ends of a range, in ticks. Nothing: still open.
  std::optional<std::uint64_t> end_of(const Record& record, const SlotKey& place) {
    if (record.end_tsc != 0) return record.end_tsc;
    if (!end_by_slot_.empty())
      if (const auto end = end_by_slot_.find(place); end != end_by_slot_.end()) return end->second;
    if (record.d == 0 || ends_by_handle_.empty()) return std::nullopt;
    const auto ends = ends_by_handle_.find(record.d);
    if (ends == ends_by_handle_.end()) return std::nullopt;
    const auto end = std::lower_bound(ends->second.begin(), ends->second.end(), record.begin_tsc);
    if (end == ends->second.end()) return std::nullopt;
    return *end;
  }

  // What the thread's last record said of this range, if it did.
  std::optional<Record> take_collective(const Record& range, const SlotKey& place) {
    auto taken = std::exchange(collective_, std::nullopt);
    if (!taken || taken->second != place.thread || taken->first.name != range.name)
      return std::nullopt;  // its range was lost
    return taken->first;
  }

  void add_collective(const Record& record) {
    ArgsTable& args = builder_.args();
    if (record.flags & spool::kHasSeq)
      args.add_int(builder_.intern("Seq"), arg_key("Seq"), record.a);
    if (record.flags & spool::kHasCommsId)
      args.add_uint(builder_.intern("Comms Id"), arg_key("Comms Id"), record.d);
  }

  void add_range(const Record& record, const SlotKey& place) {
    const auto collective = take_collective(record, place);
    const SpoolWindows::Window* window = windows_.at(record.begin_tsc);
    if (!window && !windows_.has_ring()) return;
    std::uint64_t begin = record.begin_tsc;
    std::uint64_t end = end_of(record, place).value_or(std::numeric_limits<std::uint64_t>::max());
    if (!window) {
      window = windows_.reached(begin, end);
      if (!window) return;
      builder_.stats().count(ImportIssue::kEarlyRange);
      begin = window->start;
    }
    if (end > window->stop) {
      builder_.stats().count(ImportIssue::kOpenRange);
      end = window->stop;
    }
    const auto start_ns = time_ns(begin), end_ns = time_ns(end);
    const auto early_ns = begin == record.begin_tsc ? start_ns : time_ns(record.begin_tsc);
    if (!start_ns || !end_ns || !early_ns) return builder_.stats().count(ImportIssue::kBadTime);
    const TrackId track = track_of(place.thread);
    const bool has_sequence = (record.flags & spool::kHasSequence) && record.a >= 0;
    ArgsTable& args = builder_.args();
    args.begin();
    args.add_int(key_.external_id, ArgKey::kExternalId, ++external_id_);
    args.add_int(key_.record_function_id, ArgKey::kRecordFunctionId, 0);
    if (has_sequence) {
      args.add_int(key_.sequence, ArgKey::kSequenceNumber, record.a);
      args.add_int(key_.fwd_thread, ArgKey::kFwdThreadId, record.b);
      keep_link(record, place.thread, track, *start_ns);
    }
    if (record.c != 0) details_.add_args(record.c);
    if (collective) add_collective(*collective);
    if (begin != record.begin_tsc)
      args.add_int(builder_.intern("Began before (ns)"), arg_key("Began before (ns)"),
                   *start_ns - *early_ns);
    args.add_int(key_.ev_idx, ArgKey::kEvIdx, ev_idx_++);
    const ArgsId args_id = args.end();
    const StringId name = name_of(record.name);
    builder_.add_slice(track, record.scope == spool::kUserScope ? annotation_ : cpu_op_, name,
                       *start_ns, *end_ns - *start_ns, args_id);
    if (!index_.activity_chunks.empty())
      keep_range(record, place.thread,
                 {.start_ns = *start_ns,
                  .end_ns = *end_ns,
                  .external_id = external_id_,
                  .track = track,
                  .name = name,
                  .args = args_id});
  }

  // For the joins with what a device did.
  void keep_range(const Record& record, std::uint32_t thread, SpoolRange range) {
    range.is_annotation = record.scope == spool::kUserScope;
    range.is_collective = builder_.text(range.name) == "record_param_comms";
    if ((record.flags & spool::kHasSequence) && record.a >= 0) {
      range.sequence = record.a;
      range.is_backward = record.b != 0;
      if (range.is_backward)
        range.forward_thread = record.b;
      else if (thread < index_.threads.size() && index_.threads[thread].has_torch_tid)
        range.forward_thread = index_.threads[thread].torch_tid;
    }
    ranges_.push_back(range);
    steps_.push_back(range.is_annotation ? step_number(builder_.text(range.name)) : std::nullopt);
  }
  static std::optional<std::int64_t> step_number(std::string_view name) {
    constexpr std::string_view kPrefix = "ProfilerStep#";
    std::int64_t number = 0;
    if (!name.starts_with(kPrefix)) return std::nullopt;
    const auto [end, error] =
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return number;
  }

  void add_activities() {
    if (index_.activity_chunks.empty()) return;
    const SpoolWindows all(index_, std::nullopt, std::nullopt, last_tick_, nullptr);
    const ActivityLinks links = link_activities(
        {.windows = windows_,
         .all_windows = all,
         .ranges = ranges_,
         .step_of = steps_,
         .time_ns = [this](std::uint64_t tick) { return time_ns(tick); },
         .thread_track = [this](std::uint32_t os_tid) { return track_of_os_thread(os_tid); }},
        activities_, &builder_.stats());
    add_activity_rows(
        {.builder = builder_, .index = index_, .ranges = ranges_, .devices = devices_}, activities_,
        links);
  }
  // A thread that recorded no range has no slot.
  TrackId track_of_os_thread(std::uint32_t os_tid) {
    if (thread_by_os_tid_.empty() && !index_.threads.empty())
      for (std::uint32_t i = 0; i < index_.threads.size(); ++i)
        thread_by_os_tid_[index_.threads[i].os_tid] = i;
    if (const auto slot = thread_by_os_tid_.find(os_tid); slot != thread_by_os_tid_.end())
      return track_of(slot->second);
    const auto [known, is_new] = other_tracks_.try_emplace(os_tid);
    if (is_new) {
      Scalar tid;
      tid.number = os_tid;
      builder_.set_thread_name(pid_, tid, builder_.intern(fmt::format("thread {}", os_tid)));
      builder_.set_thread_sort_index(pid_, tid, tid.number);
      known->second = builder_.track(pid_, tid, false);
    }
    return known->second;
  }

  void add_instant(const Record& record, std::uint32_t thread) {
    if (!windows_.at(record.begin_tsc)) return;
    const auto time = time_ns(record.begin_tsc);
    if (!time) return builder_.stats().count(ImportIssue::kBadTime);
    const TrackId track = track_of(thread);
    builder_.args().begin();
    if (record.c != 0) details_.add_args(record.c);
    builder_.args().add_int(key_.ev_idx, ArgKey::kEvIdx, ev_idx_++);
    const ArgsId args = builder_.args().end();
    builder_.add_instant(track, instant_, name_of(record.name), *time, 't', args);
  }

  // Kineto writes memory events behind all ranges.
  void keep_memory(const Record& record, std::uint32_t thread) {
    if (!windows_.at(record.begin_tsc)) return;
    const auto time = time_ns(record.begin_tsc);
    if (!time) return builder_.stats().count(ImportIssue::kBadTime);
    memory_.push_back({*time, track_of(thread), spool::memory_fields(record),
                       static_cast<RecordKind>(record.kind) == RecordKind::kOutOfMemory});
  }

  void add_memory() {
    const StringId memory = builder_.intern("[memory]"),
                   out_of_memory = builder_.intern("[OutOfMemory]");
    const StringId finished = builder_.intern("finished");
    ArgsTable& args = builder_.args();
    const auto add = [&](const char* key, std::int64_t value) {
      args.add_int(builder_.intern(key), arg_key(key), value);
    };
    for (const MemoryEvent& event : memory_) {
      args.begin();
      add("Total Reserved", static_cast<std::int64_t>(event.fields.total_reserved));
      add("Total Allocated", static_cast<std::int64_t>(event.fields.total_allocated));
      add("Bytes", event.fields.bytes);
      add("Device Id", event.fields.device_index);
      add("Device Type", event.fields.device_type);
      if (!event.out_of_memory) {
        args.add_uint(builder_.intern("Addr"), ArgKey::kAddr, event.fields.address);
        args.add(finished, arg_key("finished"), ArgType::kFalse);
      }
      add("Ev Idx", ev_idx_++);
      const ArgsId id = args.end();
      builder_.add_instant(event.track, instant_, event.out_of_memory ? out_of_memory : memory,
                           event.time_ns, 't', id);
    }
  }

  void keep_link(const Record& record, std::uint32_t thread, TrackId track, std::int64_t start_ns) {
    const bool backward = record.b != 0;
    if (backward) {
      // The engine's wrapper carries the numbers of the node inside it; the arrow ends at the node.
      if (record.scope != spool::kBackwardScope || is_engine_wrapper(record.name)) return;
      links_.push_back({start_ns, record.a, record.b, track, true});
    } else if (thread < index_.threads.size() && index_.threads[thread].has_torch_tid) {
      links_.push_back({start_ns, record.a, index_.threads[thread].torch_tid, track, false});
    }
  }

  bool is_engine_wrapper(std::uint32_t name) const {
    return name < index_.texts.size() &&
           index_.texts[name].starts_with("autograd::engine::evaluate_function");
  }

  const SpoolBytes& bytes_;
  const ReadSpoolOptions& options_;
  TraceBuilder builder_;
  SpoolIndex index_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(spool::kChunkBytes);
  std::unordered_map<SlotKey, std::uint64_t, SlotKeyHash> end_by_slot_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> ends_by_handle_;
  std::uint64_t last_tick_ = 0;
  SpoolWindows windows_;
  std::vector<std::pair<SlotKey, Record>> kept_ranges_;
  std::optional<TickMap> clock_;
  std::int64_t base_ns_ = 0;
  Scalar pid_;
  CategoryId cpu_op_{}, annotation_{}, instant_{};
  struct {
    StringId external_id{}, record_function_id{}, sequence{}, fwd_thread{}, ev_idx{};
  } key_;
  std::vector<TrackId> tracks_;
  std::vector<StringId> name_ids_;
  SpoolDetails details_{builder_, index_};
  std::optional<std::pair<Record, SlotKey>> wrapper_;           // waits for the range after it
  std::optional<std::pair<Record, std::uint32_t>> collective_;  // the same; its thread
  std::vector<MemoryEvent> memory_;
  std::vector<SequenceLink> links_;
  std::vector<Record> thread_activities_;  // until they are part of the next one
  SpoolActivities activities_;
  std::vector<SpoolRange> ranges_;  // kept only when there are activities
  std::vector<std::optional<std::int64_t>> steps_;
  std::vector<GpuDevice> devices_;
  std::unordered_map<std::uint32_t, std::uint32_t> thread_by_os_tid_;
  std::unordered_map<std::uint32_t, TrackId> other_tracks_;
  std::int64_t external_id_ = 0;
  std::int64_t ev_idx_ = 0;
};

}  // namespace

bool is_spool(std::string_view first_bytes) {
  return first_bytes.starts_with(std::string_view(spool::kMagic, sizeof spool::kMagic));
}

Result<Trace> read_spool(const std::filesystem::path& path, const ReadSpoolOptions& options) {
  LANESCOPE_TRY(const auto file, open_spool_file(path));
  auto trace = SpoolReader(*file, options).read();
  if (!trace) {
    Error error = std::move(trace).error();
    error.message = path.string() + ": " + error.message;
    return error;
  }
  return trace;
}

Result<Trace> read_spool_bytes(std::string_view bytes, const ReadSpoolOptions& options) {
  return SpoolReader(*spool_bytes_of(bytes), options).read();
}

Result<std::vector<std::filesystem::path>> find_spools(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".lspool") found.push_back(entry->path());
  if (error) return Error{Errc::kIo, fmt::format("{}: {}", directory.string(), error.message())};
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace lanescope::format
