#include "lanescope/record_cupti/api_callbacks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "lanescope/record/cost_meter.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record_cupti {
namespace {

constexpr std::size_t kMostEvents = 65'536;  // beyond that, forgets all: such a wait is unknown

// The call that this thread is in. A driver call inside a runtime call is a part of it: like
// CUPTI's activity records, we show only the outer call.
struct OpenCall {
  std::uint32_t round = 0;  // 0: none
  std::uint32_t correlation = 0;
  CUpti_CallbackDomain domain{};
  std::uint64_t begin = 0;
};
thread_local OpenCall open_call;
thread_local std::uint32_t os_tid = 0;

std::uint32_t this_thread() {
  if (os_tid == 0) os_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return os_tid;
}

// The n-th argument of a call whose first arguments are pointers.
const void* pointer_argument(const CUpti_CallbackData& data, std::size_t n) {
  const void* value = nullptr;
  if (data.functionParams)
    std::memcpy(&value, static_cast<const char*>(data.functionParams) + n * sizeof value,
                sizeof value);
  return value;
}

}  // namespace

// The numbers are those of api_lists.cpp.
WaitCall wait_call_of(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    switch (cbid) {
      case 165:  // cudaDeviceSynchronize
        return {WaitKind::kContext};
      case 131:  // cudaStreamSynchronize
        return {WaitKind::kStream};
      case 239:
        return {WaitKind::kStream, true};
      case 137:  // cudaEventSynchronize
        return {WaitKind::kEvent};
      case 147:  // cudaStreamWaitEvent
        return {WaitKind::kStreamForEvent};
      case 247:
        return {WaitKind::kStreamForEvent, true};
      case 135:  // cudaEventRecord
      case 370:  // cudaEventRecordWithFlags
        return {WaitKind::kEventRecord};
      case 242:
      case 371:
        return {WaitKind::kEventRecord, true};
      default:
        return {};
    }
  }
  switch (cbid) {
    case 17:  // cuCtxSynchronize
    case 800:
      return {WaitKind::kContext};
    case 126:  // cuStreamSynchronize
      return {WaitKind::kStream};
    case 440:
      return {WaitKind::kStream, true};
    case 121:  // cuEventSynchronize
      return {WaitKind::kEvent};
    case 295:  // cuStreamWaitEvent
      return {WaitKind::kStreamForEvent};
    case 436:
      return {WaitKind::kStreamForEvent, true};
    case 119:  // cuEventRecord
    case 587:  // cuEventRecordWithFlags
      return {WaitKind::kEventRecord};
    case 441:
    case 588:
      return {WaitKind::kEventRecord, true};
    default:
      return {};
  }
}

ApiCallbacks& ApiCallbacks::instance() {
  static auto* callbacks = new ApiCallbacks();  // CUPTI's hooks outlive static destructors
  return *callbacks;
}

bool ApiCallbacks::start(const CuptiLibrary& cupti, const ApiFilter& filter, bool all) {
  cupti_ = &cupti;
  CUpti_SubscriberHandle handle = nullptr;
  if (cupti.cuptiSubscribe(&handle, on_call, nullptr) != CUPTI_SUCCESS) return false;
  round_.fetch_add(1, std::memory_order_release);
  subscriber_ = handle;
  const CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API};
  for (const CUpti_CallbackDomain domain : domains) {
    if (all) {
      cupti.cuptiEnableDomain(1, handle, domain);
      continue;
    }
    const auto& wanted = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? filter.runtime : filter.driver;
    for (CUpti_CallbackId cbid = 0; cbid < wanted.size(); ++cbid)
      if (wanted[cbid]) cupti.cuptiEnableCallback(1, handle, domain, cbid);  // unknown: refused
  }
  return true;
}

void ApiCallbacks::stop() {
  if (!subscriber_) return;
  cupti_->cuptiEnableDomain(0, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API);
  cupti_->cuptiEnableDomain(0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API);
  cupti_->cuptiUnsubscribe(subscriber_);
  subscriber_ = nullptr;
}

void ApiCallbacks::on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                           const void* data) {
  // CUPTI's own part of a callback cannot be seen from here.
  const record::MeasuredCall cost(kLanescopeGpuCalls, lanescope_cost_scale,
                                  (record::record_options() & LANESCOPE_RECORD_MEASURE) != 0);
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  ApiCallbacks& self = instance();
  if (call.callbackSite == CUPTI_API_ENTER) {
    const std::uint32_t round = self.round_.load(std::memory_order_acquire);
    if (open_call.round == round) return;  // inside another one
    open_call = {round, call.correlationId, domain, record::ticks()};
    return;
  }
  const std::uint64_t end = record::ticks();
  if (open_call.correlation != call.correlationId || open_call.domain != domain ||
      open_call.round != self.round_.load(std::memory_order_acquire))
    return;
  open_call.round = 0;
  self.write_call(domain, cbid, call, open_call.begin, end);
}

void ApiCallbacks::write_call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                              const CUpti_CallbackData& data, std::uint64_t begin,
                              std::uint64_t end) {
  if (!record::is_recording()) return;
  spool::ApiCallRecord out{};
  out.begin_tsc = begin;
  out.end_tsc = end;
  out.cbid = cbid;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kApiCall);
  out.domain =
      static_cast<std::uint8_t>(domain == CUPTI_CB_DOMAIN_RUNTIME_API ? spool::ApiDomain::kRuntime
                                                                      : spool::ApiDomain::kDriver);
  out.correlation = data.correlationId;
  out.os_tid = this_thread();
  if (data.functionReturnValue)  // cudaError_t and CUresult: both are ints
    std::memcpy(&out.result, data.functionReturnValue, sizeof out.result);
  record::record_activity(out);
  if (const WaitCall wait = wait_call_of(domain, cbid); wait.kind != WaitKind::kNone)
    write_wait(wait, data, begin, end);
}

void ApiCallbacks::write_wait(WaitCall wait, const CUpti_CallbackData& data, std::uint64_t begin,
                              std::uint64_t end) {
  const auto [kind, per_thread] = wait;
  if (kind == WaitKind::kEventRecord) {
    spool::CudaEventRecord out{};
    out.correlation = data.correlationId;
    out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kCudaEvent);
    out.stream = stream_id(data, pointer_argument(data, 1), per_thread);
    out.context = data.contextUid;
    out.device = spool::kNoDeviceNumber;
    const Event event = event_of(pointer_argument(data, 0), true);
    out.event_id = event.number;
    out.event_sync_id = event.last_record;
    record::record_activity(out);
    return;
  }
  spool::SyncRecord out{};
  out.begin_tsc = begin;
  out.end_tsc = end;
  out.correlation = data.correlationId;
  out.kind = static_cast<std::uint8_t>(spool::ActivityKind::kSync);
  out.sync_kind = static_cast<std::uint8_t>(kind);
  out.context = data.contextUid;
  out.stream = spool::kNoStream;
  out.event_id = spool::kNoEvent;
  if (kind == WaitKind::kStream || kind == WaitKind::kStreamForEvent)
    out.stream = stream_id(data, pointer_argument(data, 0), per_thread);
  if (kind == WaitKind::kEvent || kind == WaitKind::kStreamForEvent) {
    const Event event = event_of(pointer_argument(data, kind == WaitKind::kEvent ? 0 : 1), false);
    out.event_id = event.number;
    out.event_sync_id = event.last_record;
  }
  if (data.functionReturnValue)
    std::memcpy(&out.result, data.functionReturnValue, sizeof out.result);
  record::record_activity(out);
}

std::uint32_t ApiCallbacks::stream_id(const CUpti_CallbackData& data, const void* stream,
                                      bool per_thread) {
  std::uint32_t id = spool::kNoStream;
  if (!cupti_->cuptiGetStreamIdEx || !data.context) return id;
  auto* handle = static_cast<CUstream>(const_cast<void*>(stream));
  const CUptiResult result =
      cupti_->cuptiGetStreamIdEx(data.context, handle, per_thread ? 1 : 0, &id);
  return result == CUPTI_SUCCESS ? id : spool::kNoStream;
}

ApiCallbacks::Event ApiCallbacks::event_of(const void* handle, bool is_recorded_now) try {
  const std::lock_guard lock(events_mutex_);
  if (events_.size() >= kMostEvents) events_.clear();
  Event& event = events_[handle];
  if (event.number == 0) event.number = ++event_numbers_;
  if (is_recorded_now) event.last_record = ++event_records_;
  return event;
} catch (...) {  // out of memory: an event without a name
  return {};
}

}  // namespace lanescope::record_cupti
