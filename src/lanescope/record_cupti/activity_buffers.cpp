#include "lanescope/record_cupti/activity_buffers.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "lanescope/record/activity_source.h"

namespace lanescope::record_cupti {
namespace {

static_assert(!std::has_single_bit(BufferPool::kSpillBytes));  // the size tells it from
                                                               // other buffers
constexpr std::size_t kReadyBuffers = 64;  // kept ready ahead by the decoding thread
// At the end of a recording: the pause between checks for the last buffers, and the time without
// one after which they are written off. That time is shorter when another profiler has CUPTI's
// subscription, because it may have taken them.
constexpr std::chrono::microseconds kShortestPause{50}, kLongestPause{2000};
constexpr std::chrono::seconds kBufferTimeout{10}, kSharedBufferTimeout{3}, kFlushTimeout{1};
constexpr std::uint32_t kFirstVersionThatTakesNoBuffer =
    28;  // from CUDA 12.9 on, bufferRequested may return no buffer

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

}  // namespace

ActivityBuffers& ActivityBuffers::instance() {
  static auto* buffers = new ActivityBuffers();  // CUPTI's threads outlive static destructors
  return *buffers;
}

void ActivityBuffers::request(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  ActivityBuffers& self = instance();
  *records = 0;  // as many as fit
  *buffer = self.pool_.take();
  thread_local std::uint64_t seen = 0;
  *size =
      *buffer ? self.sizing_.next(monotonic_ns(), kBufferBytes, self.pool_.outstanding(), seen) : 0;
  if (*buffer || self.cupti_->version >= kFirstVersionThatTakesNoBuffer) return;
  *buffer = self.pool_.take_spill();
  *size = *buffer ? BufferPool::kSpillBytes : 0;
}

void ActivityBuffers::complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size,
                               std::size_t valid) {
  if (!buffer) return;
  ActivityBuffers& self = instance();
  if (!self.pool_.complete({buffer, valid, size})) return;  // another profiler's
  self.sizing_.completed(valid);
  sem_post(&self.completed_);
}

bool ActivityBuffers::start(const CuptiLibrary& cupti) {
  cupti_ = &cupti;
  pool_.prepare(kReadyBuffers);
  sem_init(&completed_, 0, 0);
  decoder_ =
      std::make_unique<ActivityDecoder>(cupti_->version, lanescope_source_write, lanescope_intern);
  // Signals belong to the program: block them in our thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = false;
  try {
    std::thread thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "lanescope-gpu");
    thread.detach();
    started = true;
  } catch (...) {  // no room for a thread
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

CUptiResult ActivityBuffers::register_with_cupti() {
  return cupti_->cuptiActivityRegisterCallbacks(request, complete);
}

void ActivityBuffers::set_filter(ApiFilter filter) {
  const std::lock_guard lock(decode_mutex_);
  decoder_->set_filter(std::move(filter));
}

// CUPTI gives a buffer back when all the work in it is done, and still records work under way when
// its kind is switched off (docs/measurements/gpu.md). So when the last buffer is back, the
// recording is complete. Waiting for the device instead would break graph captures in other
// threads.
ActivityBuffers::End ActivityBuffers::wait_for_last(const CudaDriver& driver,
                                                    bool others_may_take_them) {
  const auto most = others_may_take_them ? kSharedBufferTimeout : kBufferTimeout;
  std::uint64_t completed = pool_.completed();
  auto last_came = std::chrono::steady_clock::now(), last_flush = last_came;
  for (auto pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
    const bool flushed = cupti_->cuptiActivityFlushAll(0) == CUPTI_SUCCESS;
    decode_completed();
    int devices = 0;  // at the end of the process CUDA may be gone, and its work with it
    const bool is_gone = driver.cuDeviceGetCount(&devices) == CUDA_ERROR_DEINITIALIZED;
    if (pool_.outstanding() == 0) return {!is_gone && pool_.written_off() == 0, 0};
    const auto now = std::chrono::steady_clock::now();
    if (const std::uint64_t came = pool_.completed(); came != completed) {
      completed = came;
      last_came = now;
    }
    if (flushed) last_flush = now;
    if (is_gone || now - last_came >= most || now - last_flush >= kFlushTimeout) break;
    std::this_thread::sleep_for(pause);
  }
  return {false, pool_.write_off()};
}

// With decode_mutex_ held. False: no memory.
bool ActivityBuffers::decode(const CUpti_Activity* record) noexcept try {
  decoder_->decode(record);
  return true;
} catch (...) {
  return false;
}

void ActivityBuffers::decode_completed() {
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
      drops_ += dropped;
    }
  }
  decoder_->flush();
}

void ActivityBuffers::run() {
  while (true) {
    while (sem_wait(&completed_) != 0) {
    }
    decode_completed();
    pool_.prepare(kReadyBuffers);
  }
}

std::uint64_t ActivityBuffers::drops() {
  const std::lock_guard lock(decode_mutex_);
  return drops_;
}

std::string ActivityBuffers::counts_json(std::size_t missing_buffers, bool detached) {
  const std::lock_guard lock(decode_mutex_);
  char counts[384];
  std::snprintf(counts, sizeof counts,
                "{\"records\": %llu, \"unknown_records\": %llu, \"dropped_records\": %llu, "
                "\"buffers\": %zu, \"buffer_bytes\": %zu, \"refused_buffers\": %llu, "
                "\"missing_buffers\": %zu, \"detached\": %s}",
                static_cast<unsigned long long>(decoder_->decoded()),
                static_cast<unsigned long long>(decoder_->unknown()),
                static_cast<unsigned long long>(drops_), pool_.made(), kBufferBytes,
                static_cast<unsigned long long>(pool_.refused()), missing_buffers,
                detached ? "true" : "false");
  return counts;
}

}  // namespace lanescope::record_cupti
