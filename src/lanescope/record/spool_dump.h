// Copies a spool that is being written: the dumps of a flight recorder.
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

// Writes the recording up to the call as a finished file. Threads go on writing. Copying a chunk
// takes about 100 us; the recorder's background thread waits no longer than that. The file gets its
// name when it is complete. kIo: the disk is full, or the file exists.
Result<DumpInfo> dump_spool(Spool& spool, const std::string& path, const std::string& why);

// Makes requested dumps on a separate thread, as <spool>_dump<K>.lspool next to the spool. A line
// on stderr says at once where each one is.
class Dumper {
 public:
  Dumper(Spool* spool, const DumpSettings& settings) : spool_(spool), settings_(settings) {}
  // `why` starts the line: "step 7 took 3.1 times as long as ...". Any thread; returns the dump's
  // number at once, or 0: no room to note it. `replaces`: when this dump is made, the dump with
  // that number is removed, or not made if it still waits; 0: none.
  std::uint64_t request(std::string why, std::uint64_t replaces = 0) noexcept
      LANESCOPE_EXCLUDES(mutex_);
  // For the background thread, often: starts requested dumps.
  void check_requests() noexcept LANESCOPE_EXCLUDES(mutex_);
  // Makes the dumps that still wait. No requests are allowed afterwards.
  void finish() noexcept LANESCOPE_EXCLUDES(mutex_);
  // Makes a dump now; waits for a dump under way.
  Result<DumpInfo> dump(const std::string& path, const std::string& why)
      LANESCOPE_EXCLUDES(copy_mutex_);
  // The dumps that were made and not replaced, in order.
  std::vector<std::string> paths() const LANESCOPE_EXCLUDES(mutex_);
  bool is_copying() const noexcept { return copying_.load(std::memory_order_acquire); }

 private:
  struct DumpRequest {
    std::uint64_t number = 0, replaces = 0;
    std::string why;
  };
  struct DumpedFile {
    std::uint64_t number = 0;
    std::string path;
    bool is_replaced = false;
  };
  void make_waiting() noexcept;
  std::string next_path() const LANESCOPE_EXCLUDES(mutex_);
  // The path of the dump that this one replaced; empty: none.
  std::string note_dump(const DumpRequest& wanted, const std::string& path)
      LANESCOPE_EXCLUDES(mutex_);

  Spool* const spool_;
  const DumpSettings settings_;
  std::uint32_t seen_signals_ = settings_.signals ? settings_.signals->load() : 0;
  std::atomic<bool> copying_{false};  // release around a copy; acquire where chunks change
  std::atomic<bool> busy_{false};     // the thread below runs
  std::thread thread_;
  Mutex copy_mutex_;
  mutable Mutex mutex_;
  std::uint64_t numbers_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::vector<DumpRequest> waiting_ LANESCOPE_GUARDED_BY(mutex_);
  std::vector<DumpedFile> made_ LANESCOPE_GUARDED_BY(mutex_);
};

}  // namespace lanescope::record
