#include "lanescope/record_cupti/cupti_source.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/tick_clock.h"
#include "lanescope/record_cupti/activity_buffers.h"
#include "lanescope/record_cupti/api_callbacks.h"
#include "lanescope/record_cupti/api_lists.h"
#include "lanescope/record_cupti/cupti_library.h"
#include "lanescope/record_cupti/gpu_description.h"
#include "lanescope/record_cupti/gpu_devices.h"
#include "lanescope/record_cupti/native_recording.h"
#include "lanescope/record_cupti/nvtx_injection.h"

namespace lanescope::record_cupti {
namespace {

// How often CUPTI checks for buffers whose work is all done. A kill loses this time and the work of
// one buffer (BufferSizing), together half a second.
constexpr std::uint32_t kFlushPeriodMs = 350;
// From these versions on, detaching CUPTI did no harm in tests: docs/decisions/gpu_recorder.md.
constexpr std::uint32_t kFirstCuptiSafeToDetach = 130000;
constexpr int kFirstDriverSafeToDetach = 13000;

// Includes room for calls of later versions; CUPTI refuses numbers that it does not know.
constexpr CUpti_CallbackId kMostCalls = 1200;

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD};
// Used only if ApiCallbacks cannot be used, which costs far less: each of these hooks every call.
constexpr CUpti_ActivityKind kCallKinds[] = {
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    CUPTI_ACTIVITY_KIND_CUDA_EVENT};

void say(char* line, std::size_t size, const std::string& text) {
  if (line && size != 0) std::snprintf(line, size, "%s", text.c_str());
}

std::uint64_t CUPTIAPI read_ticks() { return record::ticks(); }

// One per process, like CUPTI; its callbacks take no argument of ours.
class CuptiSource {
 public:
  static CuptiSource& instance() {
    static auto* source = new CuptiSource();  // CUPTI's threads outlive static destructors
    return *source;
  }

  int prepare(char* line, std::size_t size);
  int start(std::uint32_t options, char* line, std::size_t size);
  void stop();
  void change(std::uint32_t options);
  void flush();
  int cost_line(char* line, std::size_t size);
  void forked() { forked_ = touched_.load(); }

 private:
  static void CUPTIAPI finalize_here(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*);
  void end_window();
  bool set_up(std::string* line);
  bool attach(std::string* line);
  void detach();
  bool enable(std::uint32_t options, std::string* line);
  void disable_records();
  void enable_calls(bool all);
  void write_metadata();
  std::string error(CUptiResult result) const;

  std::mutex mutex_;  // guards what follows; never taken by CUPTI's callbacks
  const CuptiLibrary* cupti_ = nullptr;
  const CudaDriver* driver_ = nullptr;
  bool prepared_ = false;
  std::atomic<bool> touched_{false};  // set before the lock is taken, in prepare()
  std::atomic<bool> forked_{false};   // read before the lock is taken: after a fork the lock may be
                                      // held for ever
  bool set_up_ = false, attached_ = false;
  bool running_ = false;
  std::atomic<std::uint32_t> window_{0}, ended_window_{0};  // numbers from 1; ended by the budget
  enum class Detach : std::uint8_t { kNever, kWhereTested, kAlways };
  Detach detach_ = Detach::kNever;  // in this window
  // For the line about this recording.
  const char* stay_reason_ = nullptr;  // why CUPTI stays though asked to leave
  std::size_t missing_buffers_ = 0;
  bool is_only_profiler_ = false;  // no other profiler can have taken written-off buffers
  std::uint64_t reported_drops_ = 0;
  ApiFilter calls_ = default_api_calls();
  pthread_t detaching_{};
  ActivityBuffers& buffers_ = ActivityBuffers::instance();
};

std::string CuptiSource::error(CUptiResult result) const {
  const char* text = nullptr;
  if (cupti_->cuptiGetResultString(result, &text) != CUPTI_SUCCESS || !text) text = "CUPTI error";
  return std::string(text) + " (" + std::to_string(static_cast<int>(result)) + ")";
}

// Done once per process.
bool CuptiSource::set_up(std::string* line) {
  if (set_up_) return true;
  driver_ = find_driver(line);
  if (!driver_) return false;
  cupti_ = find_cupti(line);
  if (!cupti_) return false;
  CUpti_SubscriberHandle subscriber = nullptr;
  const CUptiResult taken = cupti_->cuptiSubscribe(&subscriber, nullptr, nullptr);
  if (taken == CUPTI_SUCCESS) {
    cupti_->cuptiUnsubscribe(subscriber);  // only a test: others may want it
  } else if (taken != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    *line = "CUPTI cannot be used: " + error(taken);
    return false;
  } else if (const char* other = std::getenv("NSYS_PROFILING_SESSION_ID")) {
    *line = std::string("Nsight Systems (session ") + other +
            ") records this program already; stop it to record the GPU here";
    return false;
  }
  set_up_ = buffers_.start(*cupti_);
  if (!set_up_) *line = "cannot start the thread that reads CUPTI's buffers";
  return set_up_;
}

// Once, and again after each detach(): registering the clock twice in between spoils records.
bool CuptiSource::attach(std::string* line) {
  if (attached_) return true;
  std::uint8_t on = 1;
  std::size_t size = sizeof on;
  cupti_->cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &on);
  cupti_->cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  const CUptiResult clock = cupti_->cuptiActivityRegisterTimestampCallback(read_ticks);
  if (clock != CUPTI_SUCCESS) {
    *line = "CUPTI does not take the recorder's clock: " + error(clock);
    return false;
  }
  attached_ = true;
  return true;
}

void CuptiSource::finalize_here(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  CuptiSource& source = instance();  // on the thread that detaches, which holds the lock
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite != CUPTI_API_EXIT || !pthread_equal(source.detaching_, pthread_self()) ||
      !source.attached_)
    return;
  source.attached_ = source.cupti_->cuptiFinalize() != CUPTI_SUCCESS;
}

// CUPTI must leave at the end of a CUDA call, says its documentation; we make one that does
// nothing. This would also end other profilers' subscriptions.
void CuptiSource::detach() {
  if (detach_ == Detach::kNever) return;
  const bool must = detach_ == Detach::kAlways;
  if (!must &&
      (cupti_->version < kFirstCuptiSafeToDetach || driver_->version < kFirstDriverSafeToDetach))
    return;
  CUpti_SubscriberHandle subscriber = nullptr;
  if (cupti_->cuptiSubscribe(&subscriber, finalize_here, nullptr) != CUPTI_SUCCESS) {
    if (must) stay_reason_ = "another profiler holds it";
    return;
  }
  detaching_ = pthread_self();
  cupti_->cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                              CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent);
  CUcontext unused = nullptr;
  driver_->cuCtxGetCurrent(&unused);
  if (!attached_) return;
  cupti_->cuptiUnsubscribe(subscriber);
  if (must) stay_reason_ = "it refused";
}

int CuptiSource::prepare(char* line, std::size_t size) {
  if (forked_) {
    say(line, size, "CUPTI does not work in a forked child of a process that used it");
    return 1;
  }
  touched_ = true;
  const std::lock_guard lock(mutex_);
  if (prepared_ && attached_) return 0;
  std::string problem;
  if (!set_up(&problem)) {
    touched_ = false;
    say(line, size, problem);
    return 1;
  }
  const RelaxedCaptureMode relaxed(*driver_);
  if (!attach(&problem)) {
    say(line, size, problem);
    return 1;
  }
  // The first enable is slow (CUPTI attaches to CUDA), so do it in the warm-up.
  if (!enable(0, &problem)) {
    say(line, size, problem);
    return 1;
  }
  disable_records();
  ApiCallbacks::instance().stop();
  prepared_ = true;
  return 0;
}

// Records calls as activity records, when callbacks are impossible. Enables the whole domain, then
// disables unwanted calls: a call enabled alone is recorded only if CUPTI came before the CUDA
// context (measured, CUDA 13.0).
void CuptiSource::enable_calls(bool all) {
  for (const CUpti_ActivityKind kind : kCallKinds) cupti_->cuptiActivityEnable(kind);
  if (all || !cupti_->cuptiActivityEnableRuntimeApi || !cupti_->cuptiActivityEnableDriverApi)
    return;  // the decoder filters as well
  for (CUpti_CallbackId cbid = 1; cbid < kMostCalls; ++cbid) {
    if (!calls_.wants(CUPTI_ACTIVITY_KIND_RUNTIME, cbid))
      cupti_->cuptiActivityEnableRuntimeApi(cbid, 0);
    if (!calls_.wants(CUPTI_ACTIVITY_KIND_DRIVER, cbid))
      cupti_->cuptiActivityEnableDriverApi(cbid, 0);
  }
}

bool CuptiSource::enable(std::uint32_t options, std::string* line) {
  if (!attach(line)) return false;
  CUptiResult result = buffers_.register_with_cupti();
  if (result != CUPTI_SUCCESS) {
    *line = "CUPTI does not take our buffers: " + error(result);
    return false;
  }
  for (const CUpti_ActivityKind kind : kKinds) {
    result = cupti_->cuptiActivityEnable(kind);
    if (result == CUPTI_SUCCESS) continue;
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      *line = "CUPTI records no kernels here: " + error(result);
      return false;
    }
  }
  const bool all = (options & LANESCOPE_RECORD_ALL_API) != 0;
  {
    ApiFilter filter = calls_;
    filter.everything = all;
    buffers_.set_filter(std::move(filter));
  }
  if (!ApiCallbacks::instance().start(*cupti_, calls_, all)) enable_calls(all);
  return true;
}

void CuptiSource::disable_records() {
  if (!ApiCallbacks::instance().is_on())
    for (const CUpti_ActivityKind kind : kCallKinds) cupti_->cuptiActivityDisable(kind);
  for (const CUpti_ActivityKind kind : kKinds) cupti_->cuptiActivityDisable(kind);
}

int CuptiSource::start(std::uint32_t options, char* line, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const RelaxedCaptureMode relaxed(*driver_);
  std::string problem;
  if (!enable(options, &problem)) {
    say(line, size, problem);
    return 1;
  }
  if (is_only_profiler_) buffers_.restore_written_off();
  detach_ = options & LANESCOPE_RECORD_DETACH                ? Detach::kAlways
            : options & LANESCOPE_RECORD_DETACH_WHERE_TESTED ? Detach::kWhereTested
                                                             : Detach::kNever;
  cupti_->cuptiActivityFlushPeriod(kFlushPeriodMs);
  ++window_;
  running_ = true;
  return 0;
}

void CuptiSource::stop() {
  if (forked_) return;
  const std::lock_guard lock(mutex_);
  if (running_) return end_window();
  buffers_.decode_completed();  // of work that ended after the budget did
  write_metadata();
}

// The budget is used up. Leaving may wait for work of the GPU, so a thread does it.
void CuptiSource::change(std::uint32_t options) {
  const std::uint32_t window = window_;
  if ((options & LANESCOPE_RECORD_ENDED) == 0 || forked_ ||
      ended_window_.exchange(window) == window)
    return;
  std::thread([this, window] {
    try {
      const std::lock_guard lock(mutex_);
      if (!running_ || window_ != window) return;
      if (detach_ == Detach::kNever) detach_ = Detach::kWhereTested;
      end_window();
    } catch (...) {  // out of memory: as in stop()
    }
  }).detach();
}

void CuptiSource::end_window() {
  running_ = false;
  const RelaxedCaptureMode relaxed(*driver_);
  cupti_->cuptiActivityFlushPeriod(0);
  disable_records();
  bool is_whole = false;
  {
    struct CallbacksEnd {  // in any case: else nobody else can subscribe
      ~CallbacksEnd() { ApiCallbacks::instance().stop(); }
    } const callbacks_end;
    is_only_profiler_ = ApiCallbacks::instance().is_on();
    const ActivityBuffers::End end = buffers_.wait_for_last(*driver_, !is_only_profiler_);
    is_whole = end.is_whole;
    missing_buffers_ += end.missing;
  }
  if (is_whole)
    detach();
  else if (detach_ == Detach::kAlways)
    stay_reason_ =
        is_only_profiler_ ? "work that it measures did not end" : "another profiler holds it";
  buffers_.decode_completed();  // buffers that CUPTI gave back when it left
  write_metadata();
}

// Writes finished work; running work comes later.
void CuptiSource::flush() {
  if (forked_) return;
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  const RelaxedCaptureMode relaxed(*driver_);
  cupti_->cuptiActivityFlushAll(0);
  buffers_.decode_completed();
}

void CuptiSource::write_metadata() {
  if (const std::string devices = devices_json(*driver_); devices != "[]")
    lanescope_source_metadata("deviceProperties", devices.c_str());
  lanescope_source_metadata("cuda_driver_version", std::to_string(driver_->version).c_str());
  if (const int runtime = cuda_runtime_version(); runtime != 0)
    lanescope_source_metadata("cuda_runtime_version", std::to_string(runtime).c_str());
  lanescope_source_metadata("cupti_version", std::to_string(cupti_->version).c_str());
  lanescope_source_metadata("lanescope_cupti",
                            buffers_.counts_json(missing_buffers_, !attached_).c_str());
}

// About the recording that ends; each line once.
int CuptiSource::cost_line(char* line, std::size_t size) {
  if (forked_) return 1;
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  if (const std::size_t missing = std::exchange(missing_buffers_, 0); missing != 0)
    add(std::to_string(missing) +
        " buffer(s) of GPU records did not come back from CUPTI when the recording ended: the GPU "
        "was still at their work, another profiler of this process took them, or CUDA had ended; "
        "what is in them is missing");
  if (const char* why = std::exchange(stay_reason_, nullptr))
    add(std::string("CUPTI stays in the process after the recording, though asked to leave: ") +
        why);
  const std::uint64_t all_drops = buffers_.drops();
  if (const std::uint64_t drops = all_drops - std::exchange(reported_drops_, all_drops); drops != 0)
    add(std::to_string(drops) +
        " GPU records were dropped: no buffer was free, of the 96 MiB that there may be");
  if (text.empty()) return 1;
  say(line, size, text);
  return 0;
}

int prepare(void*, std::uint32_t, char* line, std::size_t size) {
  try {
    return CuptiSource::instance().prepare(line, size);
  } catch (...) {
    say(line, size, "out of memory");
    return 1;
  }
}
int start(void*, std::uint32_t options, char* line, std::size_t size) {
  try {
    return CuptiSource::instance().start(options, line, size);
  } catch (...) {
    say(line, size, "out of memory");
    return 1;
  }
}
void stop(void*) {
  try {
    CuptiSource::instance().stop();
  } catch (...) {  // out of memory: what was decoded is in the file
  }
}
void change(void*, std::uint32_t options) {
  try {
    CuptiSource::instance().change(options);
  } catch (...) {  // no thread: it goes on until the window closes
  }
}
void flush(void*) {
  try {
    CuptiSource::instance().flush();
  } catch (...) {  // as in stop()
  }
}
int cost_line(void*, char* line, std::size_t size) {
  try {
    return CuptiSource::instance().cost_line(line, size);
  } catch (...) {
    return 1;
  }
}

const LanescopeActivitySource kSource = {LANESCOPE_RECORD_ABI,
                                         LANESCOPE_ACTIVITY_CUDA,
                                         "cupti",
                                         nullptr,
                                         prepare,
                                         start,
                                         stop,
                                         cost_line,
                                         flush,
                                         change};

void in_child() { CuptiSource::instance().forked(); }

}  // namespace

}  // namespace lanescope::record_cupti

extern "C" {

uint32_t lanescope_cupti_abi(void) { return LANESCOPE_RECORD_ABI; }

int lanescope_cupti_install(char* line, size_t size) {
  namespace cupti = lanescope::record_cupti;
  if (lanescope_record_abi() != LANESCOPE_RECORD_ABI) {
    cupti::say(line, size,
               "the GPU source and the recorder are of different versions of lanescope");
    return 1;
  }
  const int refused = lanescope_register_source(&cupti::kSource);
  if (refused == 0) pthread_atfork(nullptr, nullptr, cupti::in_child);
  if (refused == 0 || refused == 3) return 0;  // 3: already registered
  cupti::say(line, size, "the recorder takes no more sources");
  return 1;
}

int lanescope_cupti_describe(char* json, size_t size) {
  try {
    const std::string text = lanescope::record_cupti::describe_gpu_recording();
    if (text.size() + 1 > size) return 1;
    std::memcpy(json, text.c_str(), text.size() + 1);
    return 0;
  } catch (...) {
    return 1;
  }
}

int InitializeInjection(void) {
  char line[256] = "";
  if (lanescope_cupti_install(line, sizeof line) == 0)
    lanescope::record_cupti::start_native_recording();
  return 1;  // anything else would make CUDA itself fail
}

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  return lanescope::record_cupti::take_nvtx(export_table) ? 1 : 0;
}

}  // extern "C"
