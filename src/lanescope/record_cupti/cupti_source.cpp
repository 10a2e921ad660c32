#include "lanescope/record_cupti/cupti_source.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/tick_clock.h"
#include "lanescope/record_cupti/activity_decoder.h"
#include "lanescope/record_cupti/api_callbacks.h"
#include "lanescope/record_cupti/api_lists.h"
#include "lanescope/record_cupti/buffer_pool.h"
#include "lanescope/record_cupti/buffer_sizing.h"
#include "lanescope/record_cupti/cupti_library.h"
#include "lanescope/record_cupti/gpu_devices.h"
#include "lanescope/record_cupti/native_recording.h"
#include "lanescope/record_cupti/nvtx_injection.h"

namespace lanescope::record_cupti {
namespace {

// Limit: 96 MiB of buffers, however fast a program launches.
constexpr std::size_t kBufferBytes = std::size_t{128} << 10;
constexpr std::size_t kMaxBuffers = 768;
static_assert(!std::has_single_bit(BufferPool::kSpillBytes));  // the size tells it from
                                                               // other buffers
constexpr std::size_t kReadyBuffers = 64;  // kept ready ahead by the decoding thread
// How often CUPTI checks for buffers whose work is all done. A kill loses this time and the work of
// one buffer (BufferSizing), together half a second.
constexpr std::uint32_t kFlushPeriodMs = 350;
// At the end of a recording: the pause between checks for the last buffers, and the time without
// one after which they are written off. That time is shorter when another profiler has CUPTI's
// subscription, because it may have taken them.
constexpr std::chrono::microseconds kShortestPause{50}, kLongestPause{2000};
constexpr std::chrono::seconds kBufferTimeout{10}, kSharedBufferTimeout{3}, kFlushTimeout{1};
constexpr std::uint32_t kFirstVersionThatTakesNoBuffer =
    28;  // from CUDA 12.9 on, bufferRequested may return no buffer
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

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
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
  void flush();
  int cost_line(char* line, std::size_t size);
  void forked() { forked_ = touched_.load(); }

 private:
  static void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
  static void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size,
                                std::size_t valid);
  static void CUPTIAPI finalize_here(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*);
  bool set_up(std::string* line);
  bool attach(std::string* line);
  bool wait_for_buffers();
  void detach();
  bool enable(std::uint32_t options, std::string* line);
  void disable_records();
  void enable_calls(bool all);
  bool decode(const CUpti_Activity* record) noexcept;
  void decode_completed();
  void run();
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
  enum class Detach : std::uint8_t { kNever, kWhereTested, kAlways };
  Detach detach_ = Detach::kNever;  // in this window
  // For the line about this recording.
  const char* stay_reason_ = nullptr;  // why CUPTI stays though asked to leave
  std::size_t missing_buffers_ = 0;
  bool is_only_profiler_ = false;  // no other profiler can have taken written-off buffers
  std::uint64_t reported_drops_ = 0;
  ApiFilter calls_ = default_api_calls();
  std::thread thread_;
  pthread_t detaching_{};

  BufferPool pool_{kBufferBytes, kMaxBuffers};
  BufferSizing sizing_;
  sem_t completed_{};
  std::mutex decode_mutex_;  // guards the decoder and the count of drops
  std::unique_ptr<ActivityDecoder> decoder_;
  std::uint64_t cupti_drops_ = 0;
};

void CuptiSource::request(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  CuptiSource& source = instance();
  *records = 0;  // as many as fit
  *buffer = source.pool_.take();
  thread_local std::uint64_t seen = 0;
  *size = *buffer
              ? source.sizing_.next(monotonic_ns(), kBufferBytes, source.pool_.outstanding(), seen)
              : 0;
  if (*buffer || source.cupti_->version >= kFirstVersionThatTakesNoBuffer) return;
  *buffer = source.pool_.take_spill();
  *size = *buffer ? BufferPool::kSpillBytes : 0;
}

void CuptiSource::complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size,
                           std::size_t valid) {
  if (!buffer) return;
  CuptiSource& source = instance();
  if (!source.pool_.complete({buffer, valid, size})) return;  // another profiler's
  source.sizing_.completed(valid);
  sem_post(&source.completed_);
}

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
  pool_.prepare(kReadyBuffers);
  sem_init(&completed_, 0, 0);
  decoder_ =
      std::make_unique<ActivityDecoder>(cupti_->version, lanescope_source_write, lanescope_intern);
  // Signals belong to the program: block them in our thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "lanescope-gpu");
    thread_.detach();
  } catch (...) {
    *line = "cannot start the thread that reads CUPTI's buffers";
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  set_up_ = line->empty();
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
  // Another profiler of this process may have registered its callbacks since.
  CUptiResult result = cupti_->cuptiActivityRegisterCallbacks(request, complete);
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
    const std::lock_guard lock(decode_mutex_);
    decoder_->set_filter(std::move(filter));
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
  if (is_only_profiler_) pool_.restore_written_off();  // new work may land in them
  detach_ = options & LANESCOPE_RECORD_DETACH                ? Detach::kAlways
            : options & LANESCOPE_RECORD_DETACH_WHERE_TESTED ? Detach::kWhereTested
                                                             : Detach::kNever;
  cupti_->cuptiActivityFlushPeriod(kFlushPeriodMs);
  running_ = true;
  return 0;
}

// CUPTI gives a buffer back when all the work in it is done, and still records work under way when
// its kind is switched off (docs/measurements/gpu.md). So when the last buffer is back, the
// recording is complete. Waiting for the device instead would break graph captures in other
// threads. False: no buffer came for a while; the missing ones are counted.
bool CuptiSource::wait_for_buffers() {
  is_only_profiler_ = ApiCallbacks::instance().is_on();
  const auto most = is_only_profiler_ ? kBufferTimeout : kSharedBufferTimeout;
  std::uint64_t completed = pool_.completed();
  auto last_came = std::chrono::steady_clock::now(), last_flush = last_came;
  for (auto pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
    const bool flushed = cupti_->cuptiActivityFlushAll(0) == CUPTI_SUCCESS;
    decode_completed();
    int devices = 0;  // at the end of the process CUDA may be gone, and its work with it
    const bool is_gone = driver_->cuDeviceGetCount(&devices) == CUDA_ERROR_DEINITIALIZED;
    if (pool_.outstanding() == 0) return !is_gone && pool_.written_off() == 0;
    const auto now = std::chrono::steady_clock::now();
    if (const std::uint64_t came = pool_.completed(); came != completed) {
      completed = came;
      last_came = now;
    }
    if (flushed) last_flush = now;
    if (is_gone || now - last_came >= most || now - last_flush >= kFlushTimeout) break;
    std::this_thread::sleep_for(pause);
  }
  missing_buffers_ += pool_.write_off();
  return false;
}

void CuptiSource::stop() {
  if (forked_) return;
  const std::lock_guard lock(mutex_);
  running_ = false;
  const RelaxedCaptureMode relaxed(*driver_);
  cupti_->cuptiActivityFlushPeriod(0);
  disable_records();
  bool is_whole = false;
  {
    struct CallbacksEnd {  // in any case: else nobody else can subscribe
      ~CallbacksEnd() { ApiCallbacks::instance().stop(); }
    } const callbacks_end;
    is_whole = wait_for_buffers();
  }
  if (is_whole)
    detach();
  else if (detach_ == Detach::kAlways)
    stay_reason_ =
        is_only_profiler_ ? "work that it measures did not end" : "another profiler holds it";
  decode_completed();  // buffers that CUPTI gave back when it left
  write_metadata();
}

// Writes finished work; running work comes later.
void CuptiSource::flush() {
  if (forked_) return;
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  const RelaxedCaptureMode relaxed(*driver_);
  cupti_->cuptiActivityFlushAll(0);
  decode_completed();
}

// With decode_mutex_ held. False: no memory.
bool CuptiSource::decode(const CUpti_Activity* record) noexcept try {
  decoder_->decode(record);
  return true;
} catch (...) {
  return false;
}

// Called by the decoding thread, by stop() and by flush().
void CuptiSource::decode_completed() {
  const std::lock_guard lock(decode_mutex_);
  std::size_t lost = 0;
  while (true) {
    const Buffer buffer = pool_.next_completed();
    if (!buffer.data) break;
    CUpti_Activity* record = nullptr;
    while (cupti_->cuptiActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record) ==
           CUPTI_SUCCESS) {
      if (BufferPool::is_spill(buffer) || !decode(record)) ++lost;
    }
    pool_.recycle(buffer);
    std::size_t dropped = 0;
    cupti_->cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
    dropped += std::exchange(lost, 0);
    if (dropped != 0) {
      lanescope_source_count_drops(dropped);
      cupti_drops_ += dropped;
    }
  }
  decoder_->flush();
}

void CuptiSource::run() {
  while (true) {
    while (sem_wait(&completed_) != 0) {
    }
    decode_completed();
    pool_.prepare(kReadyBuffers);
  }
}

void CuptiSource::write_metadata() {
  if (const std::string devices = devices_json(*driver_); devices != "[]")
    lanescope_source_metadata("deviceProperties", devices.c_str());
  lanescope_source_metadata("cuda_driver_version", std::to_string(driver_->version).c_str());
  lanescope_source_metadata("cupti_version", std::to_string(cupti_->version).c_str());
  const std::lock_guard lock(decode_mutex_);
  char counts[384];
  std::snprintf(counts, sizeof counts,
                "{\"records\": %llu, \"unknown_records\": %llu, \"dropped_records\": %llu, "
                "\"buffers\": %zu, \"buffer_bytes\": %zu, \"refused_buffers\": %llu, "
                "\"missing_buffers\": %zu, \"detached\": %s}",
                static_cast<unsigned long long>(decoder_->decoded()),
                static_cast<unsigned long long>(decoder_->unknown()),
                static_cast<unsigned long long>(cupti_drops_), pool_.made(), kBufferBytes,
                static_cast<unsigned long long>(pool_.refused()), missing_buffers_,
                attached_ ? "false" : "true");
  lanescope_source_metadata("lanescope_cupti", counts);
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
  std::uint64_t drops = 0;
  {
    const std::lock_guard decoding(decode_mutex_);
    drops = cupti_drops_ - std::exchange(reported_drops_, cupti_drops_);
  }
  if (drops != 0)
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
                                         flush};

void in_child() { CuptiSource::instance().forked(); }

}  // namespace

std::string describe_gpu_recording() {
  std::string problem;
  const CudaDriver* driver = find_driver(&problem);
  if (driver) {
    if (const CUresult result = driver->cuInit(0); result != CUDA_SUCCESS) {
      problem = "CUDA could not be initialised (cuInit answered " +
                std::to_string(static_cast<int>(result)) + ")";
    }
  }
  std::string line;
  const CuptiLibrary* cupti = find_cupti(&line);
  if (!cupti && problem.empty()) problem = line;
  std::string subscriber = "unknown";
  if (cupti && driver && problem.empty()) {
    CUpti_SubscriberHandle handle = nullptr;
    const CUptiResult taken = cupti->cuptiSubscribe(&handle, nullptr, nullptr);
    if (taken == CUPTI_SUCCESS) {
      cupti->cuptiUnsubscribe(handle);
      subscriber = "free";
    } else {
      const char* text = nullptr;
      cupti->cuptiGetResultString(taken, &text);
      subscriber = text ? text : "taken";
    }
  }
  return "{\"cupti_library\": " + (cupti ? json_text(cupti->path) : std::string("null")) +
         ", \"cupti_version\": " + std::to_string(cupti ? cupti->version : 0) +
         ", \"driver_version\": " + std::to_string(driver ? driver->version : 0) +
         ", \"subscriber\": " + json_text(subscriber) +
         ", \"problem\": " + (problem.empty() ? std::string("null") : json_text(problem)) +
         ", \"devices\": " + (driver ? devices_json(*driver) : std::string("[]")) + "}";
}

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
