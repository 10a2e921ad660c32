// The records of device activity in a spool: API calls, kernels, copies, memsets, waits, and the
// profiler's own overhead. An activity source (record_cupti) reports them. docs/formats/spool.md.
//
// They are in chunks of kind kActivities. Each has 48 bytes like all records, with the kind byte at
// offset 20. Calls, waits and events can also be in a chunk of the thread that made them. A kernel
// takes two records; a copy or memset takes two when one is too small. The second record is
// kContinued and follows the first directly, in the same chunk. All times are ticks of the
// recorder's clock. Codes (cbids, copy kinds, ...) are CUPTI's numbers.
#pragma once
#include <cstdint>
#include <cstring>

#include "lanescope/codec/spool_records.h"

namespace lanescope::spool {

enum class ActivityKind : std::uint8_t {
  kApiCall = 32,     // ApiCallRecord
  kKernel = 33,      // KernelRecord, then KernelMoreRecord
  kMemcpy = 34,      // MemcpyRecord, then TransferMoreRecord when `more` is 1
  kMemset = 35,      // MemsetRecord, then TransferMoreRecord when `more` is 1
  kSync = 36,        // SyncRecord
  kOverhead = 37,    // OverheadRecord
  kCudaEvent = 38,   // CudaEventRecord
  kGraphTrace = 39,  // KernelRecord without KernelMoreRecord: one launch of a whole graph (name 0)
  kContinued = 47,
};

enum class ApiDomain : std::uint8_t { kRuntime = 1, kDriver = 2 };

struct ApiCallRecord {
  std::uint64_t begin_tsc, end_tsc;
  std::uint32_t cbid;         // number of the function in its domain
  std::uint8_t kind;          // kApiCall
  std::uint8_t domain;        // ApiDomain
  std::uint16_t name_given;   // 1: `name` is the function's name, for readers without CUPTI's list
  std::uint32_t correlation;  // the same number as in the work that it started
  std::uint32_t os_tid;       // of the calling thread
  std::int32_t result;        // cudaError_t or CUresult
  std::uint32_t name;         // text id
  std::uint64_t reserved;
};

struct KernelRecord {
  std::uint64_t begin_tsc, end_tsc;  // 0: CUPTI could not measure it
  std::uint32_t name;                // text id; mangled, as CUPTI gives it
  std::uint8_t kind;                 // kKernel
  std::uint8_t launch_type;          // CUpti_ActivityLaunchType: 0 regular, 1, 2 cooperative
  std::uint16_t registers_per_thread;
  std::uint32_t correlation;
  std::uint32_t stream;
  std::uint32_t context;
  std::uint16_t device;
  std::uint16_t block_z;
  std::uint32_t graph_id;             // 0: not launched by a graph
  std::uint32_t static_shared_bytes;  // per block
};
struct KernelMoreRecord {
  std::uint64_t graph_node_id;
  std::uint32_t grid_x, grid_y, grid_z;
  std::uint8_t kind;  // kContinued
  std::uint8_t reserved;
  std::uint16_t cluster_x;  // 0: no clusters
  std::uint16_t block_x, block_y;
  std::uint32_t dynamic_shared_bytes;   // per block
  std::uint32_t shared_executed_bytes;  // shared memory of the SM reserved for a block
  std::uint32_t local_bytes_per_thread;
  std::int32_t priority;  // of the stream
  std::uint16_t cluster_y, cluster_z;
};

struct MemcpyRecord {
  std::uint64_t begin_tsc, end_tsc;
  std::uint32_t correlation;
  std::uint8_t kind;       // kMemcpy
  std::uint8_t copy_kind;  // CUpti_ActivityMemcpyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP, ...
  std::uint8_t source_memory, destination_memory;  // CUpti_ActivityMemoryKind: 1 pageable, 2 pinned
  std::uint64_t bytes;
  std::uint32_t stream;
  std::uint32_t context;
  std::uint16_t device;
  std::uint8_t is_async;
  std::uint8_t more;
  std::uint32_t reserved;
};
struct MemsetRecord {
  std::uint64_t begin_tsc, end_tsc;
  std::uint32_t correlation;
  std::uint8_t kind;         // kMemset
  std::uint8_t memory_kind;  // CUpti_ActivityMemoryKind
  std::uint8_t is_async;
  std::uint8_t more;
  std::uint64_t bytes;
  std::uint32_t stream;
  std::uint32_t context;
  std::uint16_t device;
  std::uint16_t reserved;
  std::uint32_t value;
};
struct TransferMoreRecord {
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;  // 0: not launched by a graph
  std::uint32_t source_context;
  std::uint32_t destination_context;
  std::uint8_t kind;     // kContinued
  std::uint8_t is_peer;  // 1: between two devices; its four numbers are set
  std::uint16_t source_device;
  std::uint16_t destination_device;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t reserved2, reserved3;
};

// The host waits for the device, or a stream waits for an event.
struct SyncRecord {
  std::uint64_t begin_tsc, end_tsc;
  std::uint32_t correlation;
  std::uint8_t kind;       // kSync
  std::uint8_t sync_kind;  // CUpti_ActivitySynchronizationType: 1 event, 2 stream waits for an
                           // event, 3 stream, 4 context
  std::uint16_t reserved;
  std::uint32_t stream;  // kNoStream when none
  std::uint32_t context;
  std::uint32_t event_id;  // kNoEvent when none
  std::int32_t result;
  std::uint64_t event_sync_id;  // the same number as in the CudaEventRecord that it waits for
};
inline constexpr std::uint32_t kNoStream = 0xffffffff, kNoEvent = 0xffffffff;
inline constexpr std::uint16_t kNoDeviceNumber = 0xffff;

// An event was recorded on a stream.
struct CudaEventRecord {
  std::uint64_t begin_tsc, end_tsc;  // when the device reached it; 0: unknown
  std::uint32_t correlation;
  std::uint8_t kind;  // kCudaEvent
  std::uint8_t reserved0;
  std::uint16_t device;  // kNoDeviceNumber: unknown
  std::uint32_t stream;
  std::uint32_t context;
  std::uint32_t event_id;
  std::uint32_t reserved1;
  std::uint64_t event_sync_id;
};

// Time that the profiler or the driver took from the program.
struct OverheadRecord {
  std::uint64_t begin_tsc, end_tsc;
  std::uint32_t correlation;  // 0: of no call
  std::uint8_t kind;          // kOverhead
  std::uint8_t object_kind;   // CUpti_ActivityObjectKind: 1 process, 2 thread, 3 device, ...
  std::uint16_t reserved0;
  std::uint32_t overhead_kind;  // CUpti_ActivityOverheadKind
  std::uint32_t os_tid;         // object_kind 2
  std::uint32_t device;         // object_kind 3 and above
  std::uint32_t context, stream;
  std::uint32_t reserved1;
};

static_assert(are_records<ApiCallRecord, KernelRecord, KernelMoreRecord, MemcpyRecord, MemsetRecord,
                          TransferMoreRecord, SyncRecord, CudaEventRecord, OverheadRecord>());

inline ActivityKind activity_kind(const Record& record) {
  return static_cast<ActivityKind>(record.head.kind);
}

// The record as an activity of its kind, and back. By copy; the bytes stay as they are.
template <typename Activity>
Activity activity_as(const Record& record) {
  static_assert(are_records<Activity>());
  Activity activity;
  std::memcpy(&activity, &record, sizeof activity);
  return activity;
}
template <typename Activity>
Record as_record(const Activity& activity) {
  static_assert(are_records<Activity>());
  Record record;
  std::memcpy(static_cast<void*>(&record), &activity, sizeof record);
  return record;
}

}  // namespace lanescope::spool
