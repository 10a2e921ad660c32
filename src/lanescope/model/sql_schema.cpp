// The tables of SQL. sql/tables_*.cpp has a function for each column.
#include <array>

#include "lanescope/model/table_schema.h"

namespace lanescope {
namespace {

// Columns that several tables have, so that they mean the same everywhere.
constexpr ColumnSchema kSliceId{"id", "integer", "row of slice",
                                "The slice; ids are in order of track, then begin."};
constexpr ColumnSchema kTs{"ts", "integer", "ns", "Begin, since base_time_ns."};
constexpr ColumnSchema kDur{"dur", "integer", "ns", "Duration, never below 0."};
constexpr ColumnSchema kName{"name", "text", "", "The name."};
constexpr ColumnSchema kTrackId{"track_id", "integer", "row of track",
                                "The thread or stream that it is on."};
constexpr ColumnSchema kDepth{
    "depth", "integer", "count",
    "Slices around it on its thread; NULL: not on a thread, or no part of the nesting."};
constexpr ColumnSchema kParentId{"parent_id", "integer", "row of slice",
                                 "The innermost slice around it on its thread; NULL: none."};
constexpr ColumnSchema kArgSetId{"arg_set_id", "integer", "id of args",
                                 "Its arguments; NULL: none."};
constexpr ColumnSchema kCorrelation{"correlation", "integer", "id",
                                    "The number that joins a call and its GPU work; NULL: none."};
constexpr ColumnSchema kCallId{"call_id", "integer", "row of slice",
                               "The API call that launched it; NULL: not in the trace."};
constexpr ColumnSchema kOpId{
    "op_id", "integer", "row of slice",
    "The innermost operator or annotation around the launching call; NULL: none."};
constexpr ColumnSchema kLaunchStep{
    "step", "integer", "number of step",
    "The step in which the launching call began; NULL: unknown, or outside of steps."};
constexpr ColumnSchema kHostStep{"step", "integer", "number of step",
                                 "The step in which it began; NULL: outside of steps."};
constexpr ColumnSchema kDevice{"device", "integer", "ordinal", "The device; NULL: unknown."};
constexpr ColumnSchema kStream{"stream", "integer", "id", "The stream's number; NULL: unknown."};

constexpr std::array kSlice{
    kSliceId,
    kTs,
    kDur,
    kTrackId,
    ColumnSchema{"category", "text", "", "The category, as the file has it; NULL: none."},
    kName,
    kDepth,
    kParentId,
    kArgSetId,
    ColumnSchema{"kind", "text", "",
                 "The category in torch 2's words, for every writer: cpu_op, kernel, ..."},
    ColumnSchema{"self_dur", "integer", "ns",
                 "Duration without the direct children on its thread, Python frames included."},
    kCorrelation,
    ColumnSchema{"external_id", "integer", "id", "The operator's number; NULL: none."},
    ColumnSchema{"event_index", "integer", "count", "Place among all events of the file, from 0."},
};
constexpr std::array kInstant{
    ColumnSchema{"id", "integer", "row of instant", "The mark; ids are in order of time."},
    ColumnSchema{"ts", "integer", "ns", "Time, since base_time_ns."},
    kName,
    kTrackId,
    ColumnSchema{"category", "text", "", "The category, as the file has it; NULL: none."},
    kArgSetId,
};
constexpr std::array kTrack{
    ColumnSchema{"id", "integer", "row of track", "The track."},
    ColumnSchema{"type", "text", "", "thread, stream, async or counter."},
    ColumnSchema{"name", "text", "", "The name of the track; NULL: it has none."},
    ColumnSchema{"upid", "integer", "row of process", "Its process; NULL: none."},
    ColumnSchema{"tid", "any", "", "The thread or stream, as the file has it."},
    kDevice,
    kStream,
    ColumnSchema{"slice_count", "integer", "count", "Slices on it."},
};
constexpr std::array kThread{
    ColumnSchema{"utid", "integer", "row of track", "The thread's track."},
    ColumnSchema{"tid", "any", "", "The thread's number, as the file has it."},
    ColumnSchema{"name", "text", "", "The name of the thread; NULL: it has none."},
    ColumnSchema{"upid", "integer", "row of process", "Its process."},
    ColumnSchema{"slice_count", "integer", "count", "Slices on it."},
};
constexpr std::array kProcess{
    ColumnSchema{"upid", "integer", "row of process",
                 "The process, or a device that the file has as one."},
    ColumnSchema{"pid", "any", "", "The process or device, as the file has it."},
    ColumnSchema{"name", "text", "", "The name of the process; NULL: it has none."},
    ColumnSchema{"labels", "text", "", "CPU, GPU 0, ...; NULL: none."},
};
constexpr std::array kStreamTable{
    ColumnSchema{"track_id", "integer", "row of track", "The stream's track."},
    kDevice,
    kStream,
    ColumnSchema{"name", "text", "", "The name of the stream; NULL: it has none."},
    ColumnSchema{"upid", "integer", "row of process", "Its device, as the file has it."},
    ColumnSchema{"slice_count", "integer", "count", "Slices on it."},
};
constexpr std::array kKernel{
    kSliceId,
    kTs,
    kDur,
    kName,
    kTrackId,
    kDevice,
    kStream,
    kCorrelation,
    kCallId,
    kOpId,
    kLaunchStep,
    ColumnSchema{"grid_x", "integer", "count", "Blocks in x; NULL: not in the file."},
    ColumnSchema{"grid_y", "integer", "count", "Blocks in y."},
    ColumnSchema{"grid_z", "integer", "count", "Blocks in z."},
    ColumnSchema{"block_x", "integer", "count", "Threads of a block in x; NULL: not in the file."},
    ColumnSchema{"block_y", "integer", "count", "Threads of a block in y."},
    ColumnSchema{"block_z", "integer", "count", "Threads of a block in z."},
    ColumnSchema{"registers_per_thread", "integer", "count",
                 "Registers of a thread; NULL: not in the file."},
    ColumnSchema{"shared_memory", "integer", "bytes",
                 "Shared memory of a block; NULL: not in the file."},
    ColumnSchema{"occupancy", "real", "%", "The occupancy that the file estimates; NULL: none."},
    kArgSetId,
};
constexpr std::array kMemcpy{
    kSliceId,
    kTs,
    kDur,
    kName,
    ColumnSchema{"kind", "text", "", "copy or set."},
    ColumnSchema{"bytes", "integer", "bytes", "Size; NULL: not in the file."},
    kTrackId,
    kDevice,
    kStream,
    kCorrelation,
    kCallId,
    kOpId,
    kLaunchStep,
    kArgSetId,
};
constexpr std::array kRuntimeCall{
    kSliceId,
    kTs,
    kDur,
    kName,
    kTrackId,
    kDepth,
    kParentId,
    kCorrelation,
    ColumnSchema{"op_id", "integer", "row of slice",
                 "The innermost operator or annotation around its start; NULL: none."},
    kHostStep,
    ColumnSchema{"launched_count", "integer", "count", "Pieces of GPU work that it launched."},
    ColumnSchema{"blocks", "integer", "",
                 "1: the CPU may wait in it for the GPU; 0: it does not, or the call is unknown."},
    kArgSetId,
};
constexpr std::array kOp{
    kSliceId,
    kTs,
    kDur,
    ColumnSchema{
        "self_dur", "integer", "ns",
        "Duration without the direct children on its thread, as in the table of operators."},
    kName,
    kTrackId,
    ColumnSchema{"depth", "integer", "count",
                 "Slices around it on its thread, without Python frames."},
    ColumnSchema{"parent_id", "integer", "row of slice",
                 "The innermost slice around it that is no Python frame; NULL: none."},
    ColumnSchema{"device_dur", "integer", "ns",
                 "Sum of the durations of GPU work whose op_id is this operator; that of its "
                 "children is not in it."},
    kHostStep,
    ColumnSchema{"external_id", "integer", "id", "The operator's number; NULL: none."},
    ColumnSchema{"sequence_number", "integer", "id", "Joins forward and backward; NULL: none."},
    ColumnSchema{"forward_id", "integer", "row of slice",
                 "The forward operator of a backward one; NULL: none."},
    ColumnSchema{"input_dims", "text", "", "Shapes of the inputs as JSON; NULL: not recorded."},
    ColumnSchema{"input_types", "text", "", "Types of the inputs as JSON; NULL: not recorded."},
    kArgSetId,
};
constexpr std::array kAnnotation{
    kSliceId,
    kTs,
    kDur,
    kName,
    kTrackId,
    kDepth,
    kParentId,
    ColumnSchema{"on_gpu", "integer", "",
                 "1: the range as it shows on a stream; 0: on its thread."},
    kArgSetId,
};
constexpr std::array kStep{
    ColumnSchema{"number", "integer", "",
                 "N of ProfilerStep#N, or the number of the iteration that was found; NULL: the "
                 "whole recording."},
    kTs,
    ColumnSchema{"dur", "integer", "ns",
                 "Until the next step begins; of the last one until it ends."},
    ColumnSchema{"slice_id", "integer", "row of slice",
                 "The range of the step; NULL: nothing marks it."},
};
constexpr std::array kLaunch{
    ColumnSchema{"id", "integer", "row of slice", "The GPU work: a kernel, a copy or a memset."},
    ColumnSchema{"name", "text", "", "Its name."},
    kTs,
    kDur,
    kTrackId,
    kDevice,
    kStream,
    kCallId,
    ColumnSchema{"call_name", "text", "", "The name of the API call."},
    ColumnSchema{"call_ts", "integer", "ns", "Start of the API call, since base_time_ns."},
    ColumnSchema{"call_dur", "integer", "ns", "Duration of the API call."},
    ColumnSchema{"delay", "integer", "ns",
                 "From the start of the call to the start of the GPU work."},
    kOpId,
    ColumnSchema{"op_name", "text", "", "The name of that operator or annotation."},
    kLaunchStep,
};
constexpr std::array kFlow{
    ColumnSchema{"id", "integer", "row of flow", "The arrow; ids are in order of begin."},
    ColumnSchema{"slice_out", "integer", "row of slice",
                 "The innermost slice in which it begins; NULL: none."},
    ColumnSchema{"slice_in", "integer", "row of slice",
                 "The innermost slice in which it ends, or the next one on the track where the "
                 "file binds it to that; NULL: none."},
    ColumnSchema{"trace_id", "any", "id", "The arrow's id, as the file has it."},
    ColumnSchema{"name", "text", "", "The arrow's name; NULL: it has none."},
    ColumnSchema{"category", "text", "", "ac2g, fwdbwd, ..."},
    ColumnSchema{"from_track", "integer", "row of track", "The track on which it begins."},
    ColumnSchema{"from_ts", "integer", "ns", "The time at which it begins, since base_time_ns."},
    ColumnSchema{"to_track", "integer", "row of track", "The track on which it ends."},
    ColumnSchema{"to_ts", "integer", "ns", "The time at which it ends, since base_time_ns."},
};
constexpr std::array kArgs{
    ColumnSchema{"id", "integer", "count", "The row."},
    ColumnSchema{"arg_set_id", "integer", "id of args", "All arguments of one event."},
    ColumnSchema{"key", "text", "", "The key, as the file has it."},
    ColumnSchema{"int_value", "integer", "",
                 "The value of an integer or of a truth value; else NULL."},
    ColumnSchema{"real_value", "real", "", "The value of a number with a fraction; else NULL."},
    ColumnSchema{"string_value", "text", "",
                 "The value of a text; of a list or an object its JSON; else NULL."},
    ColumnSchema{"value_type", "text", "", "int, uint, real, bool, string, json or null."},
};
constexpr std::array kCounter{
    ColumnSchema{"id", "integer", "row of counter",
                 "The sample; ids are in order of track, then time."},
    ColumnSchema{"ts", "integer", "ns", "Time, since base_time_ns."},
    ColumnSchema{"track_id", "integer", "row of track", "The counter's track."},
    ColumnSchema{"name", "text", "", "The name of the counter."},
    ColumnSchema{"series", "text", "", "The name of the series."},
    ColumnSchema{"value", "real", "", "The value, in the unit of the file."},
};
constexpr std::array kMemoryEvent{
    ColumnSchema{"id", "integer", "row of instant", "The mark of the allocator."},
    ColumnSchema{"ts", "integer", "ns", "Time, since base_time_ns."},
    ColumnSchema{"bytes", "integer", "bytes", "Allocated; below 0: freed."},
    ColumnSchema{"device_type", "integer", "", "0 CPU, 1 CUDA, ... as in torch."},
    ColumnSchema{"device_id", "integer", "ordinal", "The device; -1 for the CPU."},
    ColumnSchema{"address", "integer", "", "The address; NULL: not in the file."},
    ColumnSchema{"total_allocated", "integer", "bytes",
                 "Allocated on the device after it; NULL: not in the file."},
    ColumnSchema{"total_reserved", "integer", "bytes",
                 "Reserved on the device after it; NULL: not in the file."},
    kTrackId,
    kArgSetId,
};
constexpr std::array kCollective{
    kSliceId,
    kTs,
    kDur,
    kName,
    kDevice,
    ColumnSchema{"collective", "text", "", "allreduce, ...; NULL: the file does not say."},
    ColumnSchema{"process_group", "text", "", "The process group; NULL: the file does not say."},
    ColumnSchema{"message_bytes", "integer", "bytes",
                 "The larger of input and output; NULL: unknown."},
    ColumnSchema{"sequence", "integer", "id", "Its number in the process group; NULL: unknown."},
    kCallId,
    kOpId,
    kLaunchStep,
};
constexpr std::array kStackFrame{
    kSliceId,
    kTs,
    kDur,
    kName,
    kTrackId,
    kDepth,
    kParentId,
    ColumnSchema{"python_id", "integer", "id", "The call's number; NULL: none."},
    ColumnSchema{"python_parent_id", "integer", "id",
                 "The number of the call around it; NULL: none."},
    ColumnSchema{"file", "text", "", "The file of the function; NULL: a module, or written in C."},
    ColumnSchema{"line", "integer", "number",
                 "The line where the function begins; NULL: as for file."},
    ColumnSchema{"function", "text", "", "The function; NULL: a module."},
    ColumnSchema{"module", "text", "", "The class of the nn.Module; NULL: a function."},
};
constexpr std::array kMetadataTable{
    ColumnSchema{"name", "text", "", "The key of an entry outside of the events."},
    ColumnSchema{"value", "text", "", "Its value as JSON."},
};

constexpr std::array kTables{
    TableSchema{"slice", TableForm::kSql, "Whatever has a begin and a duration.", kSlice},
    TableSchema{"instant", TableForm::kSql, "Marks without a duration.", kInstant},
    TableSchema{"track", TableForm::kSql, "The places where slices, marks and samples are.",
                kTrack},
    TableSchema{"thread", TableForm::kSql, "Tracks that are threads of the CPU.", kThread},
    TableSchema{"process", TableForm::kSql,
                "Processes, and devices that the file has as processes.", kProcess},
    TableSchema{"stream", TableForm::kSql, "Tracks that are streams of a device.", kStreamTable},
    TableSchema{"kernel", TableForm::kSql, "Slices that are kernels of a device.", kKernel},
    TableSchema{"memcpy", TableForm::kSql, "Slices that are copies and memsets of a device.",
                kMemcpy},
    TableSchema{"runtime_call", TableForm::kSql,
                "Slices that are calls of a GPU runtime or driver.", kRuntimeCall},
    TableSchema{"op", TableForm::kSql, "Slices that are operators.", kOp},
    TableSchema{"annotation", TableForm::kSql, "Slices that are ranges of the program.",
                kAnnotation},
    TableSchema{"step", TableForm::kSql, "Training steps, in order of time.", kStep},
    TableSchema{"launch", TableForm::kSql,
                "GPU work with the call that launched it and the operator around that.", kLaunch},
    TableSchema{"flow", TableForm::kSql, "Whole arrows between tracks.", kFlow},
    TableSchema{"args", TableForm::kSql, "Arguments of slices and marks, one per row.", kArgs},
    TableSchema{"counter", TableForm::kSql, "Samples of counters.", kCounter},
    TableSchema{"memory_event", TableForm::kSql, "What the allocators did.", kMemoryEvent},
    TableSchema{"collective", TableForm::kSql, "Kernels of collective communication.", kCollective},
    TableSchema{"stack_frame", TableForm::kSql, "Slices that are calls of Python functions.",
                kStackFrame},
    TableSchema{"metadata", TableForm::kSql, "What the file says outside of its events.",
                kMetadataTable},
};

constexpr ColumnSchema kCount{"count", "integer", "count", "Rows."};
constexpr ColumnSchema kTotalDur{"dur", "integer", "ns", "Sum of durations."};
constexpr std::array kThreadTrack{
    ColumnSchema{"id", "integer", "row of track", "The thread's track."},
    ColumnSchema{"utid", "integer", "row of track", "The same, for joins with thread."},
    ColumnSchema{"name", "text", "", "The name of the thread; NULL: it has none."},
};
constexpr std::array kKernelsByName{
    kName,
    kCount,
    kTotalDur,
    ColumnSchema{"mean_dur", "integer", "ns",
                 "Sum divided by the number of kernels, rounded down."},
    ColumnSchema{"min_dur", "integer", "ns", "The shortest."},
    ColumnSchema{"max_dur", "integer", "ns", "The longest."},
    ColumnSchema{"percent", "real", "%", "Share of the sum over all kernels."},
};
constexpr std::array kOpsByName{
    kName,
    kCount,
    kTotalDur,
    ColumnSchema{"self_dur", "integer", "ns", "Sum of the operators' own durations."},
    ColumnSchema{"device_dur", "integer", "ns", "Sum of GPU work that they launched themselves."},
};
constexpr std::array kDeviceGap{
    kDevice,
    ColumnSchema{"ts", "integer", "ns", "End of the work before, since base_time_ns."},
    ColumnSchema{"dur", "integer", "ns",
                 "Time in which no kernel, copy or memset ran on the device."},
    ColumnSchema{"next_id", "integer", "row of slice", "The work after the gap."},
    ColumnSchema{"next_name", "text", "", "Its name."},
    ColumnSchema{"op_name", "text", "", "The operator or annotation that launched it; NULL: none."},
    ColumnSchema{"step", "integer", "number of step",
                 "The step in which it was launched; NULL: unknown."},
};
constexpr std::array kStepTime{
    ColumnSchema{"step", "integer", "number of step", "The step."},
    ColumnSchema{"ts", "integer", "ns", "Begin, since base_time_ns."},
    ColumnSchema{"dur", "integer", "ns", "Duration on the CPU."},
    ColumnSchema{"kernel_count", "integer", "count", "Kernels that it launched."},
    ColumnSchema{"kernel_dur", "integer", "ns",
                 "Sum of their durations; kernels that overlap count twice."},
    ColumnSchema{"copy_count", "integer", "count", "Copies and memsets that it launched."},
    ColumnSchema{"copy_dur", "integer", "ns", "Sum of their durations."},
};
constexpr std::array kViews{
    TableSchema{"thread_track", TableForm::kSql,
                "Threads as in Perfetto: joins slice.track_id with thread.utid.", kThreadTrack},
    TableSchema{"kernels_by_name", TableForm::kSql, "Kernels with equal names, most time first.",
                kKernelsByName},
    TableSchema{"ops_by_name", TableForm::kSql,
                "Operators with equal names, most time of their own first.", kOpsByName},
    TableSchema{"device_gap", TableForm::kSql, "When a device had no work, longest first.",
                kDeviceGap},
    TableSchema{"step_time", TableForm::kSql, "What each step did, in order of time.", kStepTime},
};

}  // namespace

std::span<const TableSchema> sql_tables() { return kTables; }
std::span<const TableSchema> sql_views() { return kViews; }

}  // namespace lanescope
