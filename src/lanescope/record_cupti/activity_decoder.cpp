#include "lanescope/record_cupti/activity_decoder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "lanescope/codec/spool_layout.h"

namespace lanescope::record_cupti {
namespace {

constexpr std::size_t kBatch = 2048;  // 96 KiB
// From this version on, reads fields after those of CUDA 12.0.
constexpr std::uint32_t kCuda13 = 130000;

template <typename To, typename From>
To narrow(From value) {
  using Wide = std::int64_t;
  return static_cast<To>(std::clamp<Wide>(static_cast<Wide>(value), 0,
                                          static_cast<Wide>(std::numeric_limits<To>::max())));
}

// The struct of CUPTI in CUDA 12.0; later ones begin the same.
struct SynchronizationStart {
  CUpti_ActivityKind kind;
  CUpti_ActivitySynchronizationType type;
  std::uint64_t start, end;
  std::uint32_t correlation, context, stream, event;
};

// The fields that copies inside a device and between devices share.
template <class Copy>
spool::MemcpyRecord copy_record(const Copy& copy) {
  spool::MemcpyRecord out{};
  out.begin_tsc = copy.start;
  out.end_tsc = copy.end;
  out.correlation = copy.correlationId;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kMemcpy);
  out.copy_kind = copy.copyKind;
  out.source_memory = copy.srcKind;
  out.destination_memory = copy.dstKind;
  out.bytes = copy.bytes;
  out.stream = copy.streamId;
  out.context = copy.contextId;
  out.device = narrow<std::uint16_t>(copy.deviceId);
  out.is_async = (copy.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;
  return out;
}

// Where a copy or memset of a CUDA graph belongs.
template <class Transfer>
spool::TransferMoreRecord graph_record(const Transfer& transfer) {
  spool::TransferMoreRecord more{};
  more.kind = static_cast<std::uint8_t>(spool::ActivityKind::kContinued);
  more.graph_node_id = transfer.graphNodeId;
  more.graph_id = transfer.graphId;
  return more;
}

}  // namespace

ActivityDecoder::ActivityDecoder(std::uint32_t cupti_version, Write write, Intern intern)
    : version_(cupti_version), write_(write), intern_(intern) {
  batch_.reserve(kBatch + 2);
}

template <typename T>
void ActivityDecoder::add(const T& record) {
  batch_.push_back(spool::as_record(record));
}

void ActivityDecoder::flush() {
  if (!batch_.empty()) write_(batch_.data(), static_cast<std::uint32_t>(batch_.size()));
  batch_.clear();
}

// An address may have another name later, when its module was unloaded.
std::uint32_t ActivityDecoder::name_id(const char* name) {
  if (!name) return 0;
  const auto known = names_.find(name);
  if (known != names_.end()) {
    const KnownName& same = known->second;  // the recorder's texts end without 0
    if (std::strncmp(same.stored, name, same.size) == 0 && name[same.size] == 0) return same.id;
  }
  const char* stored = nullptr;
  const std::size_t size = std::min(std::strlen(name), spool::kMaxTextBytes);
  const std::uint32_t id = intern_(name, size, &stored);
  if (stored && names_.size() < 100'000)
    names_[name] = {stored, static_cast<std::uint32_t>(size), id};
  return id;
}

void ActivityDecoder::decode(const CUpti_Activity* record) {
  ++decoded_;
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      decode_api(*reinterpret_cast<const CUpti_ActivityAPI*>(record));
      break;
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      decode_kernel(*reinterpret_cast<const CUpti_ActivityKernel9*>(record));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      decode_memcpy(*reinterpret_cast<const CUpti_ActivityMemcpy5*>(record));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      decode_peer_memcpy(*reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      decode_memset(*reinterpret_cast<const CUpti_ActivityMemset4*>(record));
      break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      decode_sync(record);
      break;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      decode_event(record);
      break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      decode_overhead(record);
      break;
    default:
      ++unknown_;
  }
  if (batch_.size() >= kBatch) flush();
}

void ActivityDecoder::decode_api(const CUpti_ActivityAPI& api) {
  if (!filter_.wants(api.kind, api.cbid)) return;
  spool::ApiCallRecord out{};
  out.begin_tsc = api.start;
  out.end_tsc = api.end;
  out.cbid = api.cbid;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kApiCall);
  out.domain = static_cast<std::uint8_t>(api.kind == CUPTI_ACTIVITY_KIND_RUNTIME
                                             ? spool::ApiDomain::kRuntime
                                             : spool::ApiDomain::kDriver);
  out.correlation = api.correlationId;
  out.os_tid = api.threadId;
  out.result = static_cast<std::int32_t>(api.returnValue);
  add(out);
}

void ActivityDecoder::decode_kernel(const CUpti_ActivityKernel9& kernel) {
  spool::KernelRecord out{};
  out.begin_tsc = kernel.start;
  out.end_tsc = kernel.end;
  out.name = name_id(kernel.name);
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kKernel);
  out.launch_type = kernel.launchType;
  out.registers_per_thread = kernel.registersPerThread;
  out.correlation = kernel.correlationId;
  out.stream = kernel.streamId;
  out.context = kernel.contextId;
  out.device = narrow<std::uint16_t>(kernel.deviceId);
  out.block_z = narrow<std::uint16_t>(kernel.blockZ);
  out.graph_id = kernel.graphId;
  out.static_shared_bytes = narrow<std::uint32_t>(kernel.staticSharedMemory);
  spool::KernelMoreRecord more{};
  more.graph_node_id = kernel.graphNodeId;
  more.grid_x = narrow<std::uint32_t>(kernel.gridX);
  more.grid_y = narrow<std::uint32_t>(kernel.gridY);
  more.grid_z = narrow<std::uint32_t>(kernel.gridZ);
  more.kind = static_cast<std::uint8_t>(spool::ActivityKind::kContinued);
  more.cluster_x = narrow<std::uint16_t>(kernel.clusterX);
  more.cluster_y = narrow<std::uint16_t>(kernel.clusterY);
  more.cluster_z = narrow<std::uint16_t>(kernel.clusterZ);
  more.block_x = narrow<std::uint16_t>(kernel.blockX);
  more.block_y = narrow<std::uint16_t>(kernel.blockY);
  more.dynamic_shared_bytes = narrow<std::uint32_t>(kernel.dynamicSharedMemory);
  more.shared_executed_bytes = kernel.sharedMemoryExecuted;
  more.local_bytes_per_thread = kernel.localMemoryPerThread;
  add(out);
  add(more);
}

void ActivityDecoder::decode_memcpy(const CUpti_ActivityMemcpy5& copy) {
  spool::MemcpyRecord out = copy_record(copy);
  out.more = copy.graphId != 0;
  add(out);
  if (copy.graphId == 0) return;
  add(graph_record(copy));
}

void ActivityDecoder::decode_peer_memcpy(const CUpti_ActivityMemcpyPtoP4& copy) {
  spool::MemcpyRecord out = copy_record(copy);
  out.more = 1;
  add(out);
  spool::TransferMoreRecord more = graph_record(copy);
  more.is_peer = 1;
  more.source_context = copy.srcContextId;
  more.destination_context = copy.dstContextId;
  more.source_device = narrow<std::uint16_t>(copy.srcDeviceId);
  more.destination_device = narrow<std::uint16_t>(copy.dstDeviceId);
  add(more);
}

void ActivityDecoder::decode_memset(const CUpti_ActivityMemset4& set) {
  spool::MemsetRecord out{};
  out.begin_tsc = set.start;
  out.end_tsc = set.end;
  out.correlation = set.correlationId;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kMemset);
  out.memory_kind = narrow<std::uint8_t>(set.memoryKind);
  out.is_async = (set.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0;
  out.more = set.graphId != 0;
  out.bytes = set.bytes;
  out.stream = set.streamId;
  out.context = set.contextId;
  out.device = narrow<std::uint16_t>(set.deviceId);
  out.value = set.value;
  add(out);
  if (set.graphId == 0) return;
  add(graph_record(set));
}

void ActivityDecoder::decode_sync(const CUpti_Activity* record) {
  const auto& sync = *reinterpret_cast<const SynchronizationStart*>(record);
  spool::SyncRecord out{};
  out.begin_tsc = sync.start;
  out.end_tsc = sync.end;
  out.correlation = sync.correlation;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kSync);
  out.sync_kind = narrow<std::uint8_t>(sync.type);
  out.stream = sync.stream;
  out.context = sync.context;
  out.event_id = sync.event;
#if CUPTI_API_VERSION >= 130000
  if (version_ >= kCuda13) {
    const auto& whole = *reinterpret_cast<const CUpti_ActivitySynchronization2*>(record);
    if (sync.event != spool::kNoEvent) out.event_sync_id = whole.cudaEventSyncId;
    out.result = static_cast<std::int32_t>(whole.returnValue);
  }
#endif
  add(out);
}

void ActivityDecoder::decode_event(const CUpti_Activity* record) {
  const auto& event = *reinterpret_cast<const CUpti_ActivityCudaEvent*>(record);
  spool::CudaEventRecord out{};
  out.correlation = event.correlationId;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kCudaEvent);
  out.stream = event.streamId;
  out.context = event.contextId;
  out.event_id = event.eventId;
  out.device = spool::kNoDeviceNumber;
#if CUPTI_API_VERSION >= 130000
  if (version_ >= kCuda13) {
    const auto& whole = *reinterpret_cast<const CUpti_ActivityCudaEvent2*>(record);
    out.device = narrow<std::uint16_t>(whole.deviceId);
    out.event_sync_id = whole.cudaEventSyncId;
  }
#endif
  add(out);
}

void ActivityDecoder::decode_overhead(const CUpti_Activity* record) {
  const auto& overhead = *reinterpret_cast<const CUpti_ActivityOverhead*>(record);
  spool::OverheadRecord out{};
  out.begin_tsc = overhead.start;
  out.end_tsc = overhead.end;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kOverhead);
  out.object_kind = narrow<std::uint8_t>(overhead.objectKind);
  out.overhead_kind = static_cast<std::uint32_t>(overhead.overheadKind);
  if (overhead.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) {
    out.os_tid = overhead.objectId.pt.threadId;
  } else if (overhead.objectKind >= CUPTI_ACTIVITY_OBJECT_DEVICE) {
    out.device = overhead.objectId.dcs.deviceId;
    out.context = overhead.objectId.dcs.contextId;
    out.stream = overhead.objectId.dcs.streamId;
  }
#if CUPTI_API_VERSION >= 130000
  if (version_ >= kCuda13) {
    const auto& whole = *reinterpret_cast<const CUpti_ActivityOverhead3*>(record);
    out.correlation = whole.correlationId;
    std::free(whole.overheadData);  // CUPTI gives it to its client
  }
#endif
  add(out);
}

}  // namespace lanescope::record_cupti
