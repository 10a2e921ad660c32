// A libcupti without a GPU: keeps CUPTI's rules (who is switched on, whose buffers, which clock)
// and writes the records that a test asks for. Tests load it by LANESCOPE_CUPTI_LIBRARY.
#include <cupti.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
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
  CUpti_CallbackFunc callback = nullptr;
  bool whole_domain[8] = {};
  std::set<std::pair<int, CUpti_CallbackId>> callbacks;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, used = 0, dropped = 0;
  int refuse_subscriber = 0, refuse_kernels = 0, refuse_to_leave = 0, refuse_to_flush = 0;
  std::uint32_t version = 28;  // CUDA 12.9: structs without the fields that CUDA 13 added
  int work_ms = 0;             // of each launch
  std::chrono::steady_clock::time_point work_ends{};
  FakeGpuStats stats{};
};
Fake& fake() {
  static Fake state;
  return state;
}

void forget_callbacks(Fake& f) {
  f.callback = nullptr;
  f.callbacks.clear();
  for (bool& whole : f.whole_domain) whole = false;
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

// A call of the program, around `work`: callbacks first and last, then its activity record.
struct Call {
  CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_RUNTIME_API;
  CUpti_CallbackId cbid = 0;
  std::uint32_t correlation = 0;
  const void* params = nullptr;
  int result = 0;
};
void call_back(const Call& call, CUpti_ApiCallbackSite site) {
  Fake& f = fake();
  CUpti_CallbackFunc callback = nullptr;
  {
    const std::lock_guard lock(f.mutex);
    if (f.whole_domain[call.domain] || f.callbacks.contains({call.domain, call.cbid}))
      callback = f.callback;
  }
  if (!callback) return;
  int result = call.result;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.correlationId = call.correlation;
  data.functionParams = call.params;
  data.functionReturnValue = &result;
  data.context = reinterpret_cast<CUcontext>(&f);
  data.contextUid = 1;
  callback(nullptr, call.domain, call.cbid, &data);
}
template <typename Work>
void make_call(const Call& call, const Work& work) {
  call_back(call, CUPTI_API_ENTER);
  work();
  call_back(call, CUPTI_API_EXIT);
}

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

void launch(const char* kernel, std::uint32_t correlation) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  write_call(f, 211, correlation);
  f.work_ends = std::chrono::steady_clock::now() + std::chrono::milliseconds(f.work_ms);
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

void copy(std::uint64_t bytes, std::uint32_t correlation) {
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
}

void wait_for_stream(std::uint32_t correlation) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  write_call(f, 131, correlation);
  if (is_on(f, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    CUpti_ActivitySynchronization sync{};
    sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    sync.start = f.clock();
    sync.end = f.clock();
    sync.correlationId = correlation;
    sync.streamId = 7;
    sync.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    write(f, sync);
  }
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
  // As in CUDA: the runtime's call makes the driver's, under the same number.
  make_call({CUPTI_CB_DOMAIN_RUNTIME_API, 211, correlation}, [&] {
    make_call({CUPTI_CB_DOMAIN_DRIVER_API, 307, correlation}, [&] { launch(kernel, correlation); });
  });
}

void fake_gpu_quiet_call(std::uint32_t correlation) {
  const CUpti_CallbackId cbid = CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020;
  make_call({CUPTI_CB_DOMAIN_RUNTIME_API, cbid, correlation}, [&] {
    Fake& f = fake();
    const std::lock_guard lock(f.mutex);
    write_call(f, cbid, correlation);
  });
}

void fake_gpu_record_and_wait(void* event, std::uint32_t correlation) {
  const void* record[] = {event, nullptr};
  const void* wait[] = {nullptr, event};
  make_call({CUPTI_CB_DOMAIN_RUNTIME_API, 135, correlation, record}, [] {});
  make_call({CUPTI_CB_DOMAIN_RUNTIME_API, 147, correlation + 1, wait}, [] {});
  const void* host[] = {event};
  make_call({CUPTI_CB_DOMAIN_DRIVER_API, 121, correlation + 2, host}, [] {});
}

void fake_gpu_copy_and_wait(std::uint64_t bytes, std::uint32_t correlation) {
  const void* stream = nullptr;
  make_call(
      {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, correlation},
      [&] { copy(bytes, correlation); });
  make_call({CUPTI_CB_DOMAIN_RUNTIME_API, 131, correlation + 1, &stream},
            [&] { wait_for_stream(correlation + 1); });
}

void fake_gpu_get_context(void) {
  make_call({CUPTI_CB_DOMAIN_DRIVER_API, 304, 0xffff}, [] {});
}

void fake_gpu_refuse_subscriber(int result) { fake().refuse_subscriber = result; }
void fake_gpu_refuse_kernels(int result) { fake().refuse_kernels = result; }
void fake_gpu_refuse_to_flush(int result) { fake().refuse_to_flush = result; }
void fake_gpu_refuse_to_leave(int result) { fake().refuse_to_leave = result; }
void fake_gpu_be_busy(int milliseconds) { fake().work_ms = milliseconds; }
std::uint8_t* fake_gpu_lose_buffer(void) {
  const std::lock_guard lock(fake().mutex);
  return std::exchange(fake().buffer, nullptr);
}
void fake_gpu_give_back(std::uint8_t* buffer, std::size_t size) {
  fake().complete(nullptr, 0, buffer, size, size);
}
void fake_gpu_set_version(std::uint32_t version) { fake().version = version; }

// ---- CUPTI ----

CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  *version = fake().version;
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
  const auto mode = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "fake_cuda_capture_mode"));
  if (mode && mode() != CU_STREAM_CAPTURE_MODE_RELAXED) ++f.stats.strict_allocations;
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
  if (f.refuse_to_flush != 0) return static_cast<CUptiResult>(f.refuse_to_flush);
  ++(flag == 0 ? f.stats.flushes : f.stats.forced_flushes);
  if (flag != 0 || std::chrono::steady_clock::now() >= f.work_ends) hand_over(f);
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
CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                    void*) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  if (f.refuse_subscriber != 0) return static_cast<CUptiResult>(f.refuse_subscriber);
  if (f.stats.subscribers != 0) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  f.callback = callback;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&f);
  ++f.stats.subscribers;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  --f.stats.subscribers;
  forget_callbacks(f);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  if (enable)
    f.callbacks.insert({domain, cbid});
  else
    f.callbacks.erase({domain, cbid});
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiEnableDomain(std::uint32_t enable, CUpti_SubscriberHandle,
                                       CUpti_CallbackDomain domain) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  f.whole_domain[domain] = enable != 0;
  if (!enable) std::erase_if(f.callbacks, [&](const auto& one) { return one.first == domain; });
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext, CUstream, std::uint8_t, std::uint32_t* id) {
  *id = 7;
  return CUPTI_SUCCESS;
}
// Everything is gone with it: subscription, switches, clock, buffers.
CUptiResult CUPTIAPI cuptiFinalize(void) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  if (f.refuse_to_leave != 0) return static_cast<CUptiResult>(f.refuse_to_leave);
  ++f.stats.finalized;
  hand_over(f);
  f.stats.subscribers = 0;
  forget_callbacks(f);
  f.kinds.clear();
  f.clock = nullptr;
  f.request = nullptr;
  f.complete = nullptr;
  return CUPTI_SUCCESS;
}
}
