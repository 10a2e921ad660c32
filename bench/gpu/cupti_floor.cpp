// The least that CUPTI itself costs: kinds of records and callbacks switched on in a running
// program, records counted and thrown away. Loaded by cupti_floor.py, which measures the program.
#include <cupti.h>
#include <x86intrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

// One list; clang-format would make a staircase of it.
// clang-format off
#define FUNCTIONS(X)                                                                        \
  X(cuptiActivityRegisterCallbacks) X(cuptiActivityRegisterTimestampCallback)               \
  X(cuptiActivitySetAttribute) X(cuptiActivityEnable) X(cuptiActivityDisable)               \
  X(cuptiActivityFlushAll) X(cuptiActivityEnableRuntimeApi) X(cuptiActivityEnableDriverApi) \
  X(cuptiSubscribe) X(cuptiUnsubscribe) X(cuptiEnableCallback) X(cuptiFinalize)             \
  X(cuptiActivityGetNextRecord)
// clang-format on
#include "cupti_functions.h"

namespace {
constexpr std::size_t kBufferBytes = 1 << 20;
std::mutex mutex;
std::vector<std::uint8_t*> ready;
long records = 0, callbacks = 0;
std::string wanted;
CUpti_SubscriberHandle subscriber = nullptr;

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  const std::lock_guard lock(mutex);
  if (ready.empty()) {
    ready.push_back(static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBufferBytes)));
    std::memset(ready.back(), 0, kBufferBytes);
  }
  *buffer = ready.back();
  ready.pop_back();
  *size = kBufferBytes;
  *most = 0;
}
void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                       std::size_t valid) {
  long found = 0;
  for (CUpti_Activity* record = nullptr;
       cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS;)
    ++found;
  std::memset(buffer, 0, kBufferBytes);
  const std::lock_guard lock(mutex);
  records += found;
  ready.push_back(buffer);
}
struct Call {
  std::uint64_t begin, end;
  std::uint32_t correlation, unused;
} calls[4096];
void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  Call& slot = calls[callbacks & 4095];
  if (call->callbackSite == CUPTI_API_ENTER) {
    slot.correlation = call->correlationId;
    slot.begin = __rdtsc();
  } else {
    slot.end = __rdtsc();
    ++callbacks;
  }
}

bool has(char letter) { return wanted.find(letter) != std::string::npos; }
// cudaLaunchKernel, cudaLaunchKernelExC, copies, memsets, synchronizes, malloc, free;
// cuLaunchKernel, cuLaunchKernelEx.
const CUpti_CallbackId kRuntime[] = {211, 430, 41, 51, 131, 165, 20, 22}, kDriver[] = {307, 652};

template <std::size_t n>
bool one_of(const CUpti_CallbackId (&list)[n], CUpti_CallbackId id) {
  for (const CUpti_CallbackId one : list)
    if (one == id) return true;
  return false;
}
const struct {
  char letter;
  CUpti_ActivityKind kind;
} kKinds[] = {{'K', CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
              {'k', CUPTI_ACTIVITY_KIND_KERNEL},
              {'M', CUPTI_ACTIVITY_KIND_MEMCPY},
              {'P', CUPTI_ACTIVITY_KIND_MEMCPY2},
              {'S', CUPTI_ACTIVITY_KIND_MEMSET},
              {'O', CUPTI_ACTIVITY_KIND_OVERHEAD},
              {'Y', CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
              {'E', CUPTI_ACTIVITY_KIND_CUDA_EVENT},
              {'R', CUPTI_ACTIVITY_KIND_RUNTIME},
              {'D', CUPTI_ACTIVITY_KIND_DRIVER}};
// What CUPTI lets be set; kept until CUPTI leaves.
const struct {
  char letter;
  CUpti_ActivityAttribute attribute;
  std::size_t value, size;
} kAttributes[] = {
    {'d', CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 64 << 20, sizeof(std::size_t)},
    {'d', CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, 4, sizeof(std::size_t)},
    {'h', CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, 1, 1}};
}  // namespace

extern "C" {
int floor_load(const char* path) { return load_cupti(path) ? 0 : 1; }
// Letters: kinds and attributes as above; n: CUPTI's own clock; f: of R and D only the calls of
// kRuntime and kDriver; b, c: callbacks of kRuntime, of kDriver.
int floor_on(const char* letters) {
  wanted = letters;
  records = callbacks = 0;
  std::uint8_t yes = 1;
  std::size_t size = sizeof yes;
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &yes);
  int failed = cupti.cuptiActivityRegisterCallbacks(request, complete);
  if (!has('n')) failed += cupti.cuptiActivityRegisterTimestampCallback(ticks);
  for (auto attribute : kAttributes)
    if (has(attribute.letter))
      failed +=
          cupti.cuptiActivitySetAttribute(attribute.attribute, &attribute.size, &attribute.value);
  for (const auto& kind : kKinds)
    if (has(kind.letter)) failed += cupti.cuptiActivityEnable(kind.kind);
  for (CUpti_CallbackId id = 1; has('f') && id < 1200; ++id) {
    if (has('R') && !one_of(kRuntime, id)) cupti.cuptiActivityEnableRuntimeApi(id, 0);
    if (has('D') && !one_of(kDriver, id)) cupti.cuptiActivityEnableDriverApi(id, 0);
  }
  if (!has('b') && !has('c')) return failed;
  failed += cupti.cuptiSubscribe(&subscriber, on_call, nullptr);
  for (const CUpti_CallbackId id : kRuntime)
    if (has('b'))
      failed += cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id);
  for (const CUpti_CallbackId id : kDriver)
    if (has('c'))
      failed += cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  return failed;
}
int floor_off() {
  if (has('b') || has('c')) cupti.cuptiUnsubscribe(subscriber);
  for (const auto& kind : kKinds)
    if (has(kind.letter)) cupti.cuptiActivityDisable(kind.kind);
  return cupti.cuptiActivityFlushAll(0);
}
int floor_leave() { return cupti.cuptiFinalize(); }
long floor_records() { return records; }
long floor_callbacks() { return callbacks; }
}
