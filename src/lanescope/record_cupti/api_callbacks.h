// Records calls of the CUDA runtime and driver. The calling thread writes each into its chunk.
//
// CUPTI can also report calls as activity records, but then it hooks every call of the program,
// also unwanted ones: a step of 31 us took 10 us more on an H200. A callback hooks only the calls
// that it is asked for (1 to 2 us per step).
#pragma once
#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "lanescope/record_cupti/activity_decoder.h"
#include "lanescope/record_cupti/cupti_library.h"

namespace lanescope::record_cupti {

// Which wait of the host or a stream a call is; codes of CUpti_ActivitySynchronizationType.
enum class WaitKind : std::uint8_t {
  kNone = 0,
  kEvent = 1,
  kStreamForEvent = 2,
  kStream = 3,
  kContext = 4,
  kEventRecord = 255,  // not a wait: later waits for the event refer to it
};
struct WaitCall {
  WaitKind kind = WaitKind::kNone;
  bool per_thread = false;  // its stream 0 is the thread's own default stream
};
WaitCall wait_call_of(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);

// One per process, because CUPTI has one subscriber. Call start() and stop() from one thread
// at a time.
class ApiCallbacks {
 public:
  static ApiCallbacks& instance();

  // False: somebody else has CUPTI's only subscription (torch.profiler keeps one after its first
  // use). `all`: every call, not only those of the filter.
  bool start(const CuptiLibrary& cupti, const ApiFilter& filter, bool all);
  void stop();
  bool is_on() const { return subscriber_ != nullptr; }

 private:
  struct Event {  // of the program, by its handle
    std::uint32_t number = 0;
    std::uint64_t last_record = 0;
  };

  static void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                               const void* data);
  void write_call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                  const CUpti_CallbackData& data, std::uint64_t begin, std::uint64_t end);
  void write_wait(WaitCall wait, const CUpti_CallbackData& data, std::uint64_t begin,
                  std::uint64_t end);
  std::uint32_t stream_id(const CUpti_CallbackData& data, const void* stream, bool per_thread);
  Event event_of(const void* handle, bool is_recorded_now);

  const CuptiLibrary* cupti_ = nullptr;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::atomic<std::uint32_t> round_{0};  // counts starts; a call is recorded only if it ends in the
                                         // round in which it began
  std::mutex events_mutex_;              // guards what follows
  std::unordered_map<const void*, Event> events_;
  std::uint64_t event_records_ = 0;
  std::uint32_t event_numbers_ = 0;
};

}  // namespace lanescope::record_cupti
