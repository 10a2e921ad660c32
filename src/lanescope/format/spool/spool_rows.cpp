#include "lanescope/format/spool/spool_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "lanescope/codec/json_text.h"
#include "lanescope/format/spool/activity_rows.h"
#include "lanescope/format/spool/memory_rows.h"
#include "lanescope/format/spool/record_walk.h"
#include "lanescope/format/spool/sample_rows.h"
#include "lanescope/format/spool/spool_details.h"
#include "lanescope/format/spool/spool_metadata.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/format/spool/thread_tracks.h"
#include "lanescope/format/spool/window_spans.h"
#include "lanescope/model/profiler_steps.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {
namespace {

using spool::CallNumbersRecord;
using spool::MemoryRecord;
using spool::RangeRecord;
using spool::Record;
using spool::TensorRecord;

bool has_sequence(const RangeRecord& range) {
  return (range.flags & spool::kHasSequence) && range.sequence_number >= 0;
}

class RowReader {
 public:
  RowReader(const SpoolBytes& bytes, const SpoolScan& scan, const ReadSpoolOptions& options,
            const SpoolPiece& piece, const RowPlan* plan, RowCarry* carry)
      : bytes_(bytes),
        scan_(scan),
        index_(scan.index),
        options_(options),
        piece_(piece),
        plan_(plan),
        carry_(*carry),
        walk_(scan, this) {}

  Result<Trace> read(ImportStats stats) {
    builder_.stats() = std::move(stats);
    builder_.set_duration_limit(carry_.durations);
    builder_.set_base_time_ns(scan_.base_ns);
    devices_ = parse_gpu_devices(spool_device_properties(index_, options_));
    if (piece_.from == 0) add_spool_metadata(scan_, options_, builder_);
    add_names();
    add_carried_ranges();
    add_ranges();
    add_memory_rows(memory_, plan_ ? plan_->ev_idx_end : walk_.numbers().ev_idx, builder_);
    add_samples();
    carry_.forward_backward.add_flows(builder_, std::move(links_),
                                      [this](std::uint32_t thread) { return tracks_.of(thread); });
    add_activities();
    add_counter_rows({.builder = builder_,
                      .piece = piece_,
                      .windows = scan_.windows,
                      .process_name = index_.process_name,
                      .time_ns = [this](std::uint64_t tick) { return scan_.time_ns(tick); }},
                     &carry_.counters);
    if (piece_.is_last())
      add_window_spans(builder_, scan_.windows,
                       [this](std::uint64_t tick) { return scan_.time_ns(tick); });
    add_profiler_steps(builder_);
    carry_.durations = builder_.duration_limit();
    return std::move(builder_).finish();
  }

  // --- what the walk found

  void issue(std::uint64_t tick, ImportIssue issue) {
    if (piece_.holds(tick)) builder_.stats().count(issue);
  }
  void range(const RangeRecord& range, const SlotKey& place,
             const std::optional<CallNumbersRecord>& call_numbers,
             std::span<const TensorRecord> tensors, const RangeTimes& times,
             std::int64_t external_id, std::int64_t ev_idx) {
    if (!piece_.holds(range.begin_tsc)) return;
    const TrackId track = tracks_.of(place.thread);
    ArgsBuilder& args = builder_.args();
    args.begin();
    args.add_int(key_.external_id, ArgKey::kExternalId, external_id);
    const bool has_id = call_numbers && (call_numbers->flags & spool::kHasRecordFunctionId) != 0;
    args.add_int(key_.record_function_id, ArgKey::kRecordFunctionId,
                 has_id ? static_cast<std::int64_t>(call_numbers->record_function_id) : 0);
    if (has_sequence(range)) {
      args.add_int(key_.sequence, ArgKey::kSequenceNumber, range.sequence_number);
      args.add_int(key_.fwd_thread, ArgKey::kFwdThreadId, range.forward_thread);
      keep_link(range, place.thread, times.start_ns);
    }
    if (range.detail != 0) details_.add_args(range.detail);
    if (call_numbers) add_collective(*call_numbers);
    if (!tensors.empty()) add_tensors(tensors);
    if (times.early_ns != 0)
      args.add_int(builder_.intern("Began before (ns)"), arg_key("Began before (ns)"),
                   times.early_ns);
    args.add_int(key_.ev_idx, ArgKey::kEvIdx, ev_idx);
    const ArgsId args_id = args.end();
    builder_.add_slice(track, range.scope == spool::kUserScope ? annotation_ : cpu_op_,
                       name_of(range.name), times.start_ns, times.end_ns - times.start_ns, args_id);
    if (has_activities()) {
      keep_range(range, place.thread, track, times, external_id, args_id);
      if (!piece_.is_last()) open_ranges_.push_back({range, place, external_id, call_numbers});
    }
  }
  // Frames are not joined with device activities; operators are.
  void frame(const spool::FrameRecord& frame, const SlotKey& place,
             std::span<const TensorRecord> tensors, const RangeTimes& times,
             const FrameNumbers& numbers) {
    if (!piece_.holds(frame.begin_tsc)) return;
    const TrackId track = tracks_.of(place.thread);
    ArgsBuilder& args = builder_.args();
    args.begin();
    if (numbers.parent_id == 0)
      args.add(key_.python_parent, ArgKey::kPythonParentId, ArgType::kNull);
    else
      args.add_int(key_.python_parent, ArgKey::kPythonParentId, numbers.parent_id);
    args.add_int(key_.python_id, ArgKey::kPythonId, numbers.python_id);
    if (frame.flags & spool::kModuleFrame)
      args.add_int(key_.python_module, ArgKey::kPythonModuleId, frame.module);
    if (!tensors.empty()) add_tensors(tensors);
    args.add_int(key_.ev_idx, ArgKey::kEvIdx, numbers.ev_idx);
    const ArgsId args_id = args.end();
    if (!frame_) frame_ = builder_.category("python_function");
    builder_.add_slice(track, *frame_, name_of(frame.name), times.start_ns,
                       times.end_ns - times.start_ns, args_id);
  }
  void instant(const spool::InstantRecord& instant, std::uint32_t thread, std::int64_t time_ns,
               std::int64_t ev_idx) {
    if (!piece_.holds(instant.begin_tsc)) return;
    const TrackId track = tracks_.of(thread);
    builder_.args().begin();
    if (instant.detail != 0) details_.add_args(instant.detail);
    builder_.args().add_int(key_.ev_idx, ArgKey::kEvIdx, ev_idx);
    const ArgsId args = builder_.args().end();
    builder_.add_instant(track, instant_, name_of(instant.name), time_ns, 't', args);
  }
  // Kineto writes memory events after all ranges, so they get their numbers last.
  void memory(const MemoryRecord& memory, std::uint32_t thread, std::int64_t time_ns,
              std::int64_t number) {
    if (piece_.holds(memory.begin_tsc))
      memory_.push_back({time_ns, number, tracks_.of(thread), memory});
  }

  void sample(const spool::SampleRecord& sample) {
    if (piece_.holds(sample.begin_tsc)) samples_.push_back(sample);
  }
  void activity(const Record& record) {
    if (has_activities()) thread_activities_.push_back(record);
  }

 private:
  bool has_activities() const { return !index_.activity_chunks.empty(); }

  void add_ranges() {
    std::size_t rows = 0;
    for (const ChunkSpan& span : scan_.record_spans) rows += span.meets(piece_) ? span.rows : 0;
    for (const ChunkSpan& span : scan_.activity_spans) rows += span.meets(piece_) ? span.rows : 0;
    builder_.expect_slices(rows);
    for (const auto& [place, range] : scan_.kept_ranges) walk_.add_kept(range, place);
    const auto& chunks = index_.record_chunks;
    std::size_t next = 0;  // the chunk that `walk_` expects
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (!piece_.is_whole() && !scan_.record_spans[i].meets(piece_)) continue;
      if (i != next) walk_.numbers() = plan_->at_chunk[i];
      walk_.add_chunk(read_records(bytes_, chunks[i], buffer_, nullptr), chunks[i]);
      next = i + 1;
    }
    if (next == chunks.size()) walk_.add_waiting_wrapper();
  }

  // Adds ranges of earlier pieces that may contain calls of this one; they make no rows.
  void add_carried_ranges() {
    for (const RowCarry::OpenRange& open : carry_.open_ranges) {
      const auto start_ns = scan_.time_ns(open.range.begin_tsc), end_ns = end_ns_of(open);
      if (!start_ns || !end_ns) continue;
      builder_.args().begin();
      if (open.range.detail != 0) details_.add_args(open.range.detail);
      if (open.call_numbers) add_collective(*open.call_numbers);
      const ArgsId args = builder_.args().end();
      keep_range(open.range, open.place.thread, tracks_.of(open.place.thread),
                 {*start_ns, *end_ns, 0}, open.external_id, args);
      ranges_.back().in_piece = false;
    }
    open_ranges_ = std::move(carry_.open_ranges);
  }
  std::optional<std::int64_t> end_ns_of(const RowCarry::OpenRange& open) const {
    const SpoolWindows::Window* const window = scan_.windows.at(open.range.begin_tsc);
    const std::uint64_t stop = window ? window->stop : scan_.last_tick;
    return scan_.time_ns(std::min(scan_.end_of(open.range, open.place).value_or(stop), stop));
  }

  void add_names() {
    const Scalar& pid = tracks_.pid();
    builder_.set_process_name(pid, builder_.intern(index_.process_name));
    builder_.set_process_labels(pid, builder_.intern("CPU"));
    builder_.set_process_sort_index(pid, pid.number);
    cpu_op_ = builder_.category("cpu_op");
    annotation_ = builder_.category("user_annotation");
    instant_ = builder_.category("cpu_instant_event");
    name_ids_.assign(index_.texts.size(), kNone<StringId>);
    key_.external_id = builder_.intern("External id");
    key_.record_function_id = builder_.intern("Record function id");
    key_.sequence = builder_.intern("Sequence number");
    key_.fwd_thread = builder_.intern("Fwd thread id");
    key_.ev_idx = builder_.intern("Ev Idx");
    key_.python_id = builder_.intern("Python id");
    key_.python_parent = builder_.intern("Python parent id");
    key_.python_module = builder_.intern("Python module id");
    key_.tensors = builder_.intern(kTensorIdentities);
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

  void add_collective(const CallNumbersRecord& numbers) {
    ArgsBuilder& args = builder_.args();
    if (numbers.flags & spool::kHasSeq)
      args.add_int(builder_.intern("Seq"), arg_key("Seq"), numbers.seq);
    if (numbers.flags & spool::kHasCommsId)
      args.add_uint(builder_.intern("Comms Id"), arg_key("Comms Id"), numbers.comms_id);
  }

  // A list for each tensor: role, input, item, address, implementation, bytes, device type and
  // index.
  void add_tensors(std::span<const TensorRecord> tensors) {
    std::string json;
    for (const TensorRecord& tensor : tensors)
      json += fmt::format("{}[{}, {}, {}, {}, {}, {}, {}, {}]", json.empty() ? "[" : ", ",
                          static_cast<int>(tensor.role), std::uint32_t{tensor.input}, tensor.item,
                          tensor.address, tensor.implementation, tensor.bytes, tensor.device_type,
                          tensor.device_index);
    builder_.args().add_json(key_.tensors, arg_key(kTensorIdentities), builder_.intern(json + "]"));
  }

  // Keeps a range for the joins with device activities.
  void keep_range(const RangeRecord& range, std::uint32_t thread, TrackId track,
                  const RangeTimes& times, std::int64_t external_id, ArgsId args) {
    SpoolRange kept{.start_ns = times.start_ns,
                    .end_ns = times.end_ns,
                    .external_id = external_id,
                    .track = track,
                    .text = range.name,
                    .args = args};
    const std::string_view name =
        range.name < index_.texts.size() ? index_.texts[range.name] : std::string_view();
    kept.is_annotation = range.scope == spool::kUserScope;
    kept.is_collective = name == "record_param_comms";
    if (has_sequence(range)) {
      kept.sequence = range.sequence_number;
      kept.is_backward = range.forward_thread != 0;
      if (kept.is_backward)
        kept.forward_thread = range.forward_thread;
      else if (thread < index_.threads.size() && index_.threads[thread].has_torch_tid)
        kept.forward_thread = index_.threads[thread].torch_tid;
    }
    ranges_.push_back(kept);
    steps_.push_back(kept.is_annotation ? profiler_step_number(name) : std::nullopt);
  }
  void add_activities() {
    if (!has_activities()) return;
    const SpoolActivities activities =
        read_piece_activities(bytes_, scan_, piece_, thread_activities_, &carry_.calls, buffer_);
    const ActivityLinks links = link_activities(
        {.piece = piece_,
         .windows = scan_.windows,
         .all_windows = scan_.all_windows,
         .first_calls =
             plan_ ? std::span<const FirstCall>(plan_->first_calls) : std::span<const FirstCall>(),
         .ranges = ranges_,
         .step_of = steps_,
         .time_ns = [this](std::uint64_t tick) { return scan_.time_ns(tick); },
         .thread_track = [this](std::uint32_t os_tid) { return tracks_.of_os_thread(os_tid); }},
        activities, &builder_.stats());
    const std::int64_t end_ns =
        piece_.is_last() ? 0 : scan_.time_ns(piece_.to).value_or(std::int64_t{0});
    add_activity_rows({.builder = builder_,
                       .index = index_,
                       .piece = piece_,
                       .piece_end_ns = end_ns,
                       .ranges = ranges_,
                       .devices = devices_,
                       .name_of = [this](std::uint32_t text) { return name_of(text); },
                       .carry = carry_.activities},
                      activities, links);
    if (piece_.is_last()) return;
    for (std::size_t i = 0; i < open_ranges_.size(); ++i)
      if (const auto open_to = end_ns_of(open_ranges_[i]); open_to && *open_to > end_ns)
        carry_.open_ranges.push_back(std::move(open_ranges_[i]));
    carry_.calls.outer_calls.clear();
    for (const LinkedCall& call : links.calls)
      if (call.record.domain == static_cast<std::uint8_t>(spool::ApiDomain::kRuntime) &&
          call.record.correlation != 0 && call.record.begin_tsc < piece_.to &&
          call.end_ns >= end_ns)
        carry_.calls.outer_calls.push_back(spool::as_record(call.record));
  }

  void add_samples() {
    if (samples_.empty()) return;
    add_sample_rows({.builder = builder_,
                     .index = index_,
                     .pid = tracks_.pid(),
                     .name_of = [this](std::uint32_t text) { return name_of(text); },
                     .time_ns = [this](std::uint64_t tick) { return scan_.time_ns(tick); }},
                    std::move(samples_));
  }

  void keep_link(const RangeRecord& range, std::uint32_t thread, std::int64_t start_ns) {
    if (range.forward_thread != 0) {
      // The engine's wrapper has the numbers of the node inside it; the arrow ends at the node.
      if (range.scope != spool::kBackwardScope || is_engine_wrapper(index_, range.name)) return;
      links_.push_back({start_ns, {range.forward_thread, range.sequence_number}, thread, true});
    } else if (thread < index_.threads.size() && index_.threads[thread].has_torch_tid) {
      links_.push_back(
          {start_ns, {index_.threads[thread].torch_tid, range.sequence_number}, thread, false});
    }
  }

  const SpoolBytes& bytes_;
  const SpoolScan& scan_;
  const SpoolIndex& index_;
  const ReadSpoolOptions& options_;
  const SpoolPiece piece_;
  const RowPlan* plan_;
  RowCarry& carry_;
  RecordWalk<RowReader> walk_;
  TraceBuilder builder_;
  ChunkBuffer buffer_;
  CategoryId cpu_op_{}, annotation_{}, instant_{};
  std::optional<CategoryId> frame_;  // only if the trace has frames
  struct {
    StringId external_id{}, record_function_id{}, sequence{}, fwd_thread{}, ev_idx{}, python_id{},
        python_parent{}, python_module{}, tensors{};
  } key_;
  ThreadTracks tracks_{index_, builder_};
  std::vector<StringId> name_ids_;
  SpoolDetails details_{builder_, index_};
  std::vector<MemoryEvent> memory_;
  std::vector<spool::SampleRecord> samples_;
  std::vector<Record> thread_activities_;  // of the chunks that overlap the piece
  std::vector<SequenceLink> links_;
  std::vector<SpoolRange> ranges_;  // kept only when there are activities
  std::vector<std::optional<std::int64_t>> steps_;
  std::vector<RowCarry::OpenRange> open_ranges_;  // like ranges_, unless this is the last piece
  std::vector<GpuDevice> devices_;
};

}  // namespace

Result<Trace> read_rows(const SpoolBytes& bytes, const SpoolScan& scan,
                        const ReadSpoolOptions& options, const SpoolPiece& piece,
                        const RowPlan* plan, RowCarry* carry, ImportStats stats) {
  return RowReader(bytes, scan, options, piece, plan, carry).read(std::move(stats));
}

}  // namespace lanescope::format
