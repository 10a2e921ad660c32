#include "lanescope/format/spool/activity_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "lanescope/codec/json_text.h"
#include "lanescope/format/spool/activity_words.h"
#include "lanescope/format/spool/args_writer.h"
#include "lanescope/format/spool/gpu_annotations.h"
#include "lanescope/format/spool/launch_shapes.h"
#include "lanescope/format/spool/stream_annotations.h"

namespace lanescope::format {
namespace {

using spool::ActivityKind;

// Kineto's sort indexes for devices and overhead among the processes of a trace.
constexpr std::int64_t kFirstDeviceSortIndex = 5'000'000, kOverheadSortIndex = 0x100000A;
constexpr std::int64_t kNoDevice = -1;

class RowWriter {
 public:
  RowWriter(const ActivityRowsContext& context, const SpoolActivities& activities,
            const ActivityLinks& links)
      : context_(context),
        carry_(context.carry),
        builder_(context.builder),
        activities_(activities),
        links_(links),
        args_(context.builder),
        annotations_(context.ranges, links, &context.carry),
        launch_shapes_(context.builder, context.devices),
        kernel_names_(context.index.texts.size(), kNone<StringId>) {}

  void run() {
    find_devices();
    for (const LinkedCall& call : links_.calls)
      if (call.open != kNoIndex) add_call(call);
    for (const LinkedWork& work : links_.work) add_work(work);
    add_arrows();
    add_syncs();
    for (const LinkedOther& event : links_.events) add_event(event);
    for (const LinkedOther& overhead : links_.overheads) add_overhead(overhead);
    add_annotations();
    if (!context_.piece.is_last()) annotations_.remember_forward_ops();
  }

 private:
  // --- devices and streams

  void find_devices() {
    for (const std::uint32_t record : activities_.events) {
      const auto event = activities_.as<spool::CudaEventRecord>(record);
      if (event.device != spool::kNoDeviceNumber)
        carry_.device_of_context[event.context] = event.device;
    }
    // Before CUDA 13 events do not name their device; work does.
    for (const GpuEvent& event : activities_.work)
      carry_.device_of_context[event.context] = event.device;
  }
  std::int64_t device_of(std::uint32_t context) const {
    const auto known = carry_.device_of_context.find(context);
    return known == carry_.device_of_context.end() ? kNoDevice : known->second;
  }

  std::uint32_t stream_of(std::int64_t device, std::int64_t stream) {
    const auto [known, is_new] = carry_.stream_index.try_emplace(
        std::pair(device, stream), static_cast<std::uint32_t>(carry_.streams.size()));
    if (is_new) carry_.streams.emplace_back(device, stream);
    return known->second;
  }
  TrackId track_of(std::uint32_t index) {
    if (index >= stream_tracks_.size()) stream_tracks_.resize(index + 1, kNone<TrackId>);
    TrackId& track = stream_tracks_[index];
    if (track != kNone<TrackId>) return track;
    const auto [device, stream] = carry_.streams[index];
    Scalar pid, tid;
    pid.number = device;
    tid.number = stream;
    name_device(device);
    track = builder_.stream_track(pid, tid);
    if (stream >= 0)
      builder_.set_track_name(track, builder_.intern(fmt::format("stream {} ", stream)));
    builder_.set_track_sort_index(track, stream);
    return track;
  }
  TrackId track_of(std::int64_t device, std::int64_t stream) {
    return track_of(stream_of(device, stream));
  }
  void name_device(std::int64_t device) {
    Scalar pid;
    pid.number = device;
    if (device == kNoDevice || !named_devices_.try_emplace(device).second) return;
    builder_.set_process_name(pid, builder_.intern(context_.index.process_name));
    builder_.set_process_labels(pid, builder_.intern(fmt::format("GPU {}", device)));
    builder_.set_process_sort_index(pid, kFirstDeviceSortIndex + device);
  }

  // --- arguments that a call gives to its row and to the rows of its work

  void add_external_id(const OpenRanges* open) {
    if (open && open->innermost != kNoIndex)
      args_.integer("External id", context_.ranges[open->innermost].external_id);
  }

  void add_call(const LinkedCall& call) {
    const bool is_driver =
        call.record.domain == static_cast<std::uint8_t>(spool::ApiDomain::kDriver);
    args_.begin();
    add_external_id(&links_.open[call.open]);
    args_.integer("cbid", call.record.cbid);
    args_.integer("correlation", call.record.correlation);
    if (call.record.result != 0) args_.integer("result", call.record.result);
    builder_.add_slice(call.track, builder_.category(is_driver ? "cuda_driver" : "cuda_runtime"),
                       call_name(call.record, is_driver), call.start_ns,
                       call.end_ns - call.start_ns, args_.end());
  }
  StringId call_name(const spool::ApiCallRecord& record, bool is_driver) {
    const SpoolIndex& index = context_.index;
    if (record.name_given != 0 && record.name < index.texts.size() && index.has_text[record.name])
      return builder_.intern(codec::valid_utf8(index.texts[record.name]));
    const auto [known, is_new] =
        call_names_.try_emplace(std::uint64_t{record.cbid} << 1 | (is_driver ? 1 : 0));
    if (is_new) known->second = builder_.intern(api_call_name(is_driver, record.cbid));
    return known->second;
  }

  // --- kernels, copies, memsets

  void add_work(const LinkedWork& work) {
    const GpuEvent& event = activities_.work[work.event];
    const OpenRanges* open = open_at(links_, work.call);
    const std::uint32_t stream = stream_of(event.device, event.stream);
    const bool is_copy = event.kind == ActivityKind::kMemcpy;
    const bool is_transfer = is_copy || event.kind == ActivityKind::kMemset;
    std::vector<Field> collective;
    StringId name{};
    if (!is_transfer) {
      name = work_name(event);
      if (open && open->collective != kNoIndex && is_collective_kernel(name))
        collective = collective_fields(context_.ranges[open->collective]);
    }
    args_.begin();
    add_external_id(open);
    if (is_transfer)
      name = add_transfer_args(event, work);
    else
      add_kernel_args(event);
    if (event.graph_id != 0) {
      args_.integer("graph id", event.graph_id);
      if (event.kind != ActivityKind::kGraphTrace)
        args_.unsigned_integer("graph node id", event.graph_node_id);
    }
    if (work.call != kNoIndex && links_.calls[work.call].step)
      args_.integer("launch step", *links_.calls[work.call].step);
    if (work.launched_before_window) args_.is_true("launched before window");
    for (const Field& field : collective)
      builder_.args().add(field.key, arg_key(builder_.text(field.key)), field.type, field.bits);
    const ArgsId args = args_.end();
    builder_.add_slice(track_of(stream),
                       builder_.category(is_copy       ? "gpu_memcpy"
                                         : is_transfer ? "gpu_memset"
                                                       : "kernel"),
                       name, work.start_ns, work.end_ns - work.start_ns, args);
    if (open) annotations_.add_work(work, *open, stream);
  }

  StringId work_name(const GpuEvent& event) {
    if (event.kind == ActivityKind::kGraphTrace)
      return builder_.intern(fmt::format("CUDA graph {}", event.graph_id));
    const std::uint32_t id = activities_.as<spool::KernelRecord>(event.record).name;
    const SpoolIndex& index = context_.index;
    if (id >= kernel_names_.size() || !index.has_text[id]) {
      builder_.stats().count(ImportIssue::kMissingField);
      return builder_.intern(fmt::format("(lost name {})", id));
    }
    if (kernel_names_[id] == kNone<StringId>)
      kernel_names_[id] = builder_.intern(codec::valid_utf8(kernel_name(index.texts[id])));
    return kernel_names_[id];
  }

  void add_kernel_args(const GpuEvent& event) {
    const auto kernel = activities_.as<spool::KernelRecord>(event.record);
    const bool is_graph = event.kind == ActivityKind::kGraphTrace;
    if (!is_graph) args_.integer("queued", 0);
    add_place(event);
    if (is_graph) return;
    args_.integer("registers per thread", kernel.registers_per_thread);
    if (!event.has_more) return;
    const auto more = activities_.as<spool::KernelMoreRecord>(event.record + 1);
    const LaunchShape& launch = launch_shapes_.of(kernel, more);
    args_.integer("shared memory", launch.shared_bytes);
    if (launch.occupancy) {
      args_.real("blocks per SM", launch.blocks_per_sm);
      args_.real("warps per SM", launch.warps_per_sm);
    }
    args_.json("grid", launch.grid);
    args_.json("block", launch.block);
    if (launch.occupancy) {
      args_.integer("est. achieved occupancy %", launch.achieved_percent);
      args_.text("occupancy limit", launch.limit);
    }
    if (more.priority != 0) args_.integer("priority", more.priority);  // 0: perhaps not reported
    if (more.cluster_x != 0) args_.json("cluster", launch.cluster);
    if (more.local_bytes_per_thread != 0)
      args_.integer("local memory per thread", more.local_bytes_per_thread);
  }
  void add_place(const GpuEvent& event) {
    args_.integer("device", event.device);
    args_.integer("context", event.context);
    args_.integer("stream", event.stream);
    args_.integer("correlation", event.correlation);
  }

  // Returns the name of the row.
  StringId add_transfer_args(const GpuEvent& event, const LinkedWork& work) {
    const auto copy = activities_.as<spool::MemcpyRecord>(event.record);
    const auto set = activities_.as<spool::MemsetRecord>(event.record);
    const bool is_copy = event.kind == ActivityKind::kMemcpy;
    const std::uint64_t bytes = is_copy ? copy.bytes : set.bytes;
    add_place(event);
    args_.unsigned_integer("bytes", bytes);
    const std::int64_t dur_ns = work.end_ns - work.start_ns;
    if (dur_ns > 0)
      args_.real("memory bandwidth (GB/s)",
                 static_cast<double>(bytes) / static_cast<double>(dur_ns));
    else
      args_.text("memory bandwidth (GB/s)", "N/A");
    if (!is_copy) return builder_.intern(memset_name(set.memory_kind));
    if (event.has_more) {
      const auto more = activities_.as<spool::TransferMoreRecord>(event.record + 1);
      if (more.is_peer != 0) {
        args_.integer("fromDevice", more.source_device);
        args_.integer("inDevice", event.device);
        args_.integer("toDevice", more.destination_device);
        args_.integer("fromContext", more.source_context);
        args_.integer("inContext", event.context);
        args_.integer("toContext", more.destination_context);
      }
    }
    return builder_.intern(
        memcpy_name(copy.copy_kind, copy.source_memory, copy.destination_memory));
  }

  // --- collectives: a kernel gets the arguments of its record_param_comms

  struct Field {
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  bool is_collective_kernel(StringId name) const {
    return builder_.text(name).find("nccl") != std::string_view::npos;
  }
  std::vector<Field> collective_fields(const SpoolRange& range) {
    std::vector<Field> fields;
    const ArgsView view = builder_.args().view(range.args);
    for (std::size_t i = 0; i < view.size(); ++i) {
      const ArgField& field = view.field(i);
      switch (arg_key(builder_.text(field.key))) {
        case ArgKey::kExternalId:  // the operator's own
        case ArgKey::kRecordFunctionId:
        case ArgKey::kSequenceNumber:
        case ArgKey::kFwdThreadId:
        case ArgKey::kEvIdx:
        case ArgKey::kInputDims:
        case ArgKey::kInputType:
        case ArgKey::kInputStrides:
        case ArgKey::kConcreteInputs:
        case ArgKey::kCallStack:
          continue;
        default:
          fields.push_back({field.key, field.type, view.bits(field)});
      }
    }
    return fields;
  }

  // --- arrows: one start per call with work in the trace, one end per piece of work

  void add_arrows() {
    const CategoryId category = builder_.category("ac2g");
    const StringId name = builder_.intern("ac2g");
    std::vector<bool> has_start(links_.calls.size());
    Flow arrow;
    arrow.name = name;
    arrow.category = category;
    arrow.binds_enclosing = true;
    for (const LinkedWork& work : links_.work) {
      if (work.call == kNoIndex || !links_.calls[work.call].in_window) continue;
      const LinkedCall& call = links_.calls[work.call];
      const GpuEvent& event = activities_.work[work.event];
      arrow.id_value = event.correlation;
      arrow.from_track = call.track;
      arrow.from_ns = call.start_ns;
      arrow.to_track = track_of(event.device, event.stream);
      arrow.to_ns = work.start_ns;
      builder_.add_flow(arrow);
      // Torch's JSON has two events for it, and one more for each further end.
      if (!has_start[work.call]) builder_.skip_event();
      has_start[work.call] = true;
      builder_.skip_event();
    }
  }

  // --- waits, events, overhead

  void add_syncs() {
    std::vector<EventRecord>& known = carry_.events;
    known.reserve(known.size() + activities_.events.size());
    for (const std::uint32_t record : activities_.events) {
      const auto event = activities_.as<spool::CudaEventRecord>(record);
      known.push_back(
          {event.event_sync_id, event.context, event.event_id, event.correlation, event.stream});
    }
    const bool waits =
        std::any_of(links_.syncs.begin(), links_.syncs.end(), [&](const LinkedOther& sync) {
          return is_event_wait(activities_.as<spool::SyncRecord>(sync.record).sync_kind);
        });
    const EventRecords events(waits ? known : std::vector<EventRecord>());
    for (const LinkedOther& sync : links_.syncs) add_sync(sync, events);
    if (!context_.piece.is_last()) forget_old_events();
  }
  // Several pieces may have seen the same event.
  void forget_old_events() {
    std::vector<EventRecord>& known = carry_.events;
    if (known.size() < 2 * ActivityCarry::kMostEvents) return;
    const auto key = [](const EventRecord& event) {
      return std::tuple(event.correlation, event.context, event.event_id, event.sync_id);
    };
    std::sort(known.begin(), known.end(),
              [&](const EventRecord& a, const EventRecord& b) { return key(a) < key(b); });
    known.erase(
        std::unique(known.begin(), known.end(),
                    [&](const EventRecord& a, const EventRecord& b) { return key(a) == key(b); }),
        known.end());
    if (known.size() > ActivityCarry::kMostEvents)
      known.erase(known.begin(), known.end() - ActivityCarry::kMostEvents);
  }
  void add_sync(const LinkedOther& sync, const EventRecords& events) {
    const auto record = activities_.as<spool::SyncRecord>(sync.record);
    const char* kind = sync_name(record.sync_kind);
    const std::int64_t device = device_of(record.context);
    const std::int64_t stream =
        record.stream == spool::kNoStream ? -1 : std::int64_t{record.stream};
    args_.begin();
    add_external_id(open_at(links_, sync.call));
    args_.text("cuda_sync_kind", kind);
    if (is_event_wait(record.sync_kind)) {
      const EventRecord* waited =
          events.find({record.event_sync_id, record.context, record.event_id, record.correlation});
      args_.integer("wait_on_stream", waited ? std::int64_t{waited->stream} : -1);
      args_.integer("wait_on_cuda_event_record_corr_id",
                    waited ? std::int64_t{waited->correlation} : -1);
      args_.integer("wait_on_cuda_event_id", record.event_id);
    }
    args_.integer("stream", stream);
    args_.integer("correlation", record.correlation);
    args_.integer("device", device);
    args_.integer("context", record.context);
    if (record.result != 0) args_.integer("result", record.result);
    const ArgsId args = args_.end();
    builder_.add_slice(track_of(device, stream), builder_.category("cuda_sync"),
                       builder_.intern(kind), sync.start_ns, sync.end_ns - sync.start_ns, args);
  }

  void add_event(const LinkedOther& event) {
    const auto record = activities_.as<spool::CudaEventRecord>(event.record);
    args_.begin();
    add_external_id(open_at(links_, event.call));
    args_.integer("event_id", record.event_id);
    args_.integer("stream", record.stream);
    args_.integer("correlation", record.correlation);
    args_.integer("device", record.device);
    args_.integer("context", record.context);
    const ArgsId args = args_.end();
    builder_.add_slice(track_of(record.device, record.stream), builder_.category("cuda_event"),
                       builder_.intern("cudaEvent"), event.start_ns, event.end_ns - event.start_ns,
                       args);
  }

  void add_overhead(const LinkedOther& overhead) {
    const auto record = activities_.as<spool::OverheadRecord>(overhead.record);
    constexpr std::uint8_t kThreadObject = 2;  // CUpti_ActivityObjectKind
    Scalar pid, tid;
    pid.number = kNoDevice;
    builder_.set_process_name(pid, builder_.intern(context_.index.process_name));
    builder_.set_process_labels(pid, builder_.intern("Overhead"));
    builder_.set_process_sort_index(pid, kOverheadSortIndex);
    args_.begin();
    if (record.object_kind == kThreadObject) args_.integer("thread", record.os_tid);
    builder_.add_slice(builder_.thread_track(pid, tid), builder_.category("overhead"),
                       builder_.intern(overhead_name(record.overhead_kind)), overhead.start_ns,
                       overhead.end_ns - overhead.start_ns, args_.end());
  }

  // --- annotations on streams

  // Kineto makes them one nanosecond longer at both ends, so that viewers nest the work in them.
  void add_annotations() {
    const std::vector<GpuAnnotation> rows =
        context_.piece.is_last() ? carry_.annotations.take_all()
                                 : carry_.annotations.take_ended(context_.piece_end_ns);
    if (rows.empty()) return;  // a category without rows would name a device
    const CategoryId category = builder_.category("gpu_user_annotation");
    for (const GpuAnnotation& row : rows) {
      args_.begin();
      args_.integer("External id", row.annotation.external_id);
      args_.text("launches", row.work == AnnotationWork::kOwn      ? "own"
                             : row.work == AnnotationWork::kNested ? "nested"
                                                                   : "backward");
      builder_.add_slice(track_of(row.stream), category, context_.name_of(row.annotation.text),
                         row.start_ns - 1, row.end_ns - row.start_ns + 2, args_.end());
    }
  }

  const ActivityRowsContext& context_;
  ActivityCarry& carry_;
  TraceBuilder& builder_;
  const SpoolActivities& activities_;
  const ActivityLinks& links_;
  ArgsWriter args_;
  StreamAnnotations annotations_;
  LaunchShapes launch_shapes_;
  std::vector<StringId> kernel_names_;  // by text id
  std::unordered_map<std::uint64_t, StringId> call_names_;
  std::vector<TrackId> stream_tracks_;  // by index in the carry
  std::map<std::int64_t, bool> named_devices_;
};

}  // namespace

void add_activity_rows(const ActivityRowsContext& context, const SpoolActivities& activities,
                       const ActivityLinks& links) {
  RowWriter(context, activities, links).run();
}

}  // namespace lanescope::format
