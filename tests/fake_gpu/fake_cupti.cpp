// A libcupti without a GPU: keeps CUPTI's rules (who is switched on, whose buffers, which clock)
// and writes the records that a test asks for. Tests load it by LANESCOPE_CUPTI_LIBRARY.
#include <cupti.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "fake_gpu.h"

namespace {

struct Fake {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;
  std::set<int> kinds;
  std::set<CUpti_CallbackId> runtime_off, driver_off;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, used = 0, dropped = 0;
  int refuse_subscriber = 0, refuse_kernels = 0;
  FakeGpuStats stats{};
};
Fake& fake() {
  static Fake state;
  return state;
}

std::size_t size_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization);
    default:
      return 0;
  }
}

void hand_over(Fake& f) {
  if (!f.buffer) return;
  --f.stats.buffers_out;
  f.complete(nullptr, 0, std::exchange(f.buffer, nullptr), f.size, std::exchange(f.used, 0));
}

template <typename Record>
void write(Fake& f, const Record& record) {
  if (f.buffer && f.used + sizeof record > f.size) hand_over(f);
  if (!f.buffer) {
    std::size_t most = 0;
    f.request(&f.buffer, &f.size, &most);
    f.used = 0;
    if (!f.buffer) {
      ++f.dropped;
      return;
    }
    ++f.stats.buffers_out;
    if (std::any_of(f.buffer, f.buffer + f.size, [](std::uint8_t byte) { return byte != 0; }))
      ++f.stats.dirty_buffers;
  }
  std::memcpy(f.buffer + f.used, &record, sizeof record);
  f.used += sizeof record;
}

bool is_on(const Fake& f, CUpti_ActivityKind kind) { return f.kinds.contains(kind); }

void write_call(Fake& f, CUpti_CallbackId cbid, std::uint32_t correlation) {
  if (!is_on(f, CUPTI_ACTIVITY_KIND_RUNTIME) || f.runtime_off.contains(cbid)) return;
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.cbid = cbid;
  call.start = f.clock();
  call.end = f.clock();
  call.threadId = static_cast<std::uint32_t>(syscall(SYS_gettid));
  call.correlationId = correlation;
  write(f, call);
}

}  // namespace

extern "C" {

FakeGpuStats fake_gpu_stats() {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  f.stats.kinds_on = static_cast<std::uint32_t>(f.kinds.size());
  return f.stats;
}

void fake_gpu_launch(const char* kernel, std::uint32_t correlation) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  write_call(f, 211, correlation);
  if (!is_on(f, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
  CUpti_ActivityKernel9 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.start = f.clock();
  record.end = f.clock();
  record.name = kernel;
  record.correlationId = correlation;
  record.streamId = 7;
  record.contextId = 1;
  record.gridX = 100'000;
  record.gridY = record.gridZ = 1;
  record.blockX = 256;
  record.blockY = 2;
  record.blockZ = 1;
  record.registersPerThread = 40;
  record.dynamicSharedMemory = 213'000;
  write(f, record);
}

void fake_gpu_quiet_call(std::uint32_t correlation) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  write_call(f, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, correlation);
}

void fake_gpu_copy_and_wait(std::uint64_t bytes, std::uint32_t correlation) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  write_call(f, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, correlation);
  if (is_on(f, CUPTI_ACTIVITY_KIND_MEMCPY)) {
    CUpti_ActivityMemcpy5 copy{};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
    copy.bytes = bytes;
    copy.start = f.clock();
    copy.end = f.clock();
    copy.streamId = 7;
    copy.correlationId = correlation;
    write(f, copy);
  }
  if (is_on(f, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    CUpti_ActivitySynchronization sync{};
    sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    sync.start = f.clock();
    sync.end = f.clock();
    sync.correlationId = correlation + 1;
    sync.streamId = 7;
    sync.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    write(f, sync);
  }
}

void fake_gpu_refuse_subscriber(int result) { fake().refuse_subscriber = result; }
void fake_gpu_refuse_kernels(int result) { fake().refuse_kernels = result; }

// ---- CUPTI ----

CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  *version = 28;  // CUDA 12.9: structs without the fields that CUDA 13 added
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult, const char** text) {
  *text = "FAKE_RESULT";
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && f.refuse_kernels != 0)
    return static_cast<CUptiResult>(f.refuse_kernels);
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) f.runtime_off.clear();
  f.kinds.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  f.kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, std::uint8_t enable) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  if (enable)
    f.runtime_off.erase(cbid);
  else
    f.runtime_off.insert(cbid);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId, std::uint8_t) {
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  f.request = request;
  f.complete = complete;
  ++f.stats.buffer_registrations;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                                CUpti_Activity** record) {
  const std::size_t at =
      *record ? static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) +
                    size_of(*record)
              : 0;
  if (at >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
  return size_of(*record) != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t,
                                                       std::size_t* dropped) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  *dropped = std::exchange(f.dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t flag) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  ++(flag == 0 ? f.stats.flushes : f.stats.forced_flushes);
  hand_over(f);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  fake().stats.flush_period_ms = milliseconds;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t*, void*) {
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  f.clock = clock;
  ++f.stats.clock_registrations;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc, void*) {
  Fake& f = fake();
  if (f.refuse_subscriber != 0) return static_cast<CUptiResult>(f.refuse_subscriber);
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&f);
  ++f.stats.subscribers;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) {
  --fake().stats.subscribers;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiFinalize(void) {
  ++fake().stats.finalized;
  return CUPTI_SUCCESS;
}
}
