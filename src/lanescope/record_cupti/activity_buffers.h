// Where CUPTI's records go: the buffers that it fills, and the thread that writes what is in them
// into the spool.
#pragma once
#include <cupti.h>
#include <semaphore.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "lanescope/record_cupti/activity_decoder.h"
#include "lanescope/record_cupti/buffer_pool.h"
#include "lanescope/record_cupti/buffer_sizing.h"
#include "lanescope/record_cupti/cupti_library.h"

namespace lanescope::record_cupti {

// Any thread, unless a comment says otherwise.
class ActivityBuffers {
 public:
  // Limit: 96 MiB of buffers, however fast a program launches.
  static constexpr std::size_t kBufferBytes = std::size_t{128} << 10;
  static constexpr std::size_t kMaxBuffers = 768;

  // One per process, like CUPTI; its callbacks take no argument of ours.
  static ActivityBuffers& instance();

  // Prepares buffers and starts the thread; once per process, before all that follows. False: the
  // thread cannot be started. One thread at a time.
  bool start(const CuptiLibrary& cupti);
  // Makes CUPTI use these buffers. Call it for each recording: another profiler of this process may
  // have registered its own since.
  CUptiResult register_with_cupti();
  void set_filter(ApiFilter filter);
  // Writes the records of all buffers that CUPTI gave back.
  void decode_completed();

  // How a recording ended. `is_whole`: all buffers came back, also those of earlier recordings.
  struct End {
    bool is_whole = false;
    std::size_t missing = 0;  // buffers, which are written off
  };
  // Call it when records are switched off. Waits for buffers, up to 10 s after the last one; 3 s if
  // `others_may_take_them`: another profiler has CUPTI's subscription.
  End wait_for_last(const CudaDriver& driver, bool others_may_take_them);
  // A recording begins: new work may land in buffers that were written off.
  void restore_written_off() { pool_.restore_written_off(); }

  std::uint64_t drops();  // so far
  // The counts of the trace's entry "lanescope_cupti", as a JSON object.
  std::string counts_json(std::size_t missing_buffers, bool detached);

 private:
  ActivityBuffers() = default;
  static void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
  static void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size,
                                std::size_t valid);
  bool decode(const CUpti_Activity* record) noexcept;
  void run();

  const CuptiLibrary* cupti_ = nullptr;
  BufferPool pool_{kBufferBytes, kMaxBuffers};
  BufferSizing sizing_;
  sem_t completed_{};
  std::mutex decode_mutex_;  // guards the decoder and the count of drops
  std::unique_ptr<ActivityDecoder> decoder_;
  std::uint64_t drops_ = 0;
};

}  // namespace lanescope::record_cupti
