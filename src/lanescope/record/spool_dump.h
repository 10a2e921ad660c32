// Copies of a spool that is being written: what a flight recorder leaves when something is odd.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/record/mutex.h"

namespace lanescope::record {

class Spool;

struct DumpSettings {
  const std::atomic<std::uint32_t>* signals = nullptr;  // a dump for each change; null: none
  const char* signal_name = "";                         // for the line about it
  bool quiet = false;                                   // nothing is written to stderr
  void (*flush_sources)() = nullptr;                    // before each copy; null: no sources
};

struct DumpInfo {
  std::string path;
  std::uint64_t covered_ns = 0;  // before the dump; 0: no window was open
};

// The recording as it is now, as a finished file: what was recorded up to the call, nothing after
// it. Threads go on writing; a chunk is copied in some 100 us, and the recorder's background thread
// waits for no more than that. Appears under its name when it is whole. kIo: the disk is full, the
// file exists.
Result<DumpInfo> dump_spool(Spool& spool, const std::string& path, const std::string& why);

// Dumps that somebody asked for, made by a thread of their own, as <spool>_dump<K>.lspool beside
// the spool. A line on stderr says at once where each one is.
class Dumper {
 public:
  Dumper(Spool* spool, const DumpSettings& settings) : spool_(spool), settings_(settings) {}
  // `why` opens the line: "step 7 took 3.1 times as long as ...". Any thread; returns at once.
  void request(std::string why) noexcept LANESCOPE_EXCLUDES(mutex_);
  // By the background thread, often: starts what was asked for.
  void look() noexcept LANESCOPE_EXCLUDES(mutex_);
  // Makes the dumps that still wait; then nothing may be asked for any more.
  void finish() noexcept LANESCOPE_EXCLUDES(mutex_);
  // A caller's own dump; waits for one that is under way.
  Result<DumpInfo> dump(const std::string& path, const std::string& why)
      LANESCOPE_EXCLUDES(copy_mutex_);
  std::vector<std::string> paths() const LANESCOPE_EXCLUDES(mutex_);
  bool is_copying() const noexcept { return copying_.load(std::memory_order_acquire); }

 private:
  void make_waiting() noexcept;
  std::string next_path() const;

  Spool* const spool_;
  const DumpSettings settings_;
  std::uint32_t seen_signals_ = settings_.signals ? settings_.signals->load() : 0;
  std::atomic<bool> copying_{false};  // release around a copy, acquire by who changes chunks
  std::atomic<bool> busy_{false};     // the thread below runs
  std::thread thread_;
  Mutex copy_mutex_;
  mutable Mutex mutex_;
  std::vector<std::string> waiting_ LANESCOPE_GUARDED_BY(mutex_);
  std::vector<std::string> paths_ LANESCOPE_GUARDED_BY(mutex_);
};

}  // namespace lanescope::record
