// The activity sources of this process (activity_source.h): lists them, starts and stops them, and
// sets the spool that they write to.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/mutex.h"
#include "lanescope/record/spool.h"

namespace lanescope::record {

// Calls the functions of sources one at a time; the caller holds ActiveRecorder's lock.
// Any thread may call add(), flush(), and what sources call.
class SourceList {
 public:
  // Takes a line from a source for the user; the line starts with the source's name.
  using Note = std::function<void(std::string line)>;

  // See lanescope_register_source().
  int add(const LanescopeActivitySource* source) LANESCOPE_EXCLUDES(mutex_);
  // Stops it first if it runs.
  void remove(const LanescopeActivitySource* source) LANESCOPE_EXCLUDES(mutex_);

  // For the sources that serve one of these LANESCOPE_ACTIVITY_*.
  void prepare(std::uint32_t activities, std::uint32_t options, const Note& note)
      LANESCOPE_EXCLUDES(mutex_);
  void start(std::uint32_t activities, std::uint32_t options, const Note& note)
      LANESCOPE_EXCLUDES(mutex_);
  // For the sources that run. `activities`: only those that serve one of these.
  void stop(std::uint32_t activities = ~std::uint32_t{0}) LANESCOPE_EXCLUDES(mutex_);
  bool is_running(std::uint32_t activities) LANESCOPE_EXCLUDES(mutex_);
  void flush() LANESCOPE_EXCLUDES(mutex_);
  void change(std::uint32_t options) LANESCOPE_EXCLUDES(mutex_);
  // What the prepared sources cost.
  void note_costs(const Note& note) LANESCOPE_EXCLUDES(mutex_);

  // From now on the sources' records go to this spool; null: nowhere. When this returns, no source
  // writes into the former spool any more.
  void set_spool(Spool* spool) LANESCOPE_EXCLUDES(gate_);
  // For sources; see activity_source.h.
  std::uint32_t write(const spool::Record* records, std::uint32_t count) noexcept
      LANESCOPE_EXCLUDES(gate_);
  void count_drops(std::uint64_t count) noexcept LANESCOPE_EXCLUDES(gate_);
  // False: it is too long, or there is no recording.
  bool write_metadata(std::string_view key, std::string_view json) LANESCOPE_EXCLUDES(gate_);

  // Around fork(). The child's list has the same sources, none of them running.
  void lock_for_fork() LANESCOPE_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_in_parent() LANESCOPE_RELEASE(mutex_) { mutex_.unlock(); }
  void copy_in_child(const SourceList& parent) LANESCOPE_NO_THREAD_SAFETY;

 private:
  struct Source {
    const LanescopeActivitySource* table = nullptr;
    bool prepared = false, running = false;
  };
  // A copy, because sources are called without the lock.
  std::vector<Source> sources() LANESCOPE_EXCLUDES(mutex_);
  void update(const Source& changed) LANESCOPE_EXCLUDES(mutex_);

  Mutex mutex_;  // short
  std::vector<Source> sources_ LANESCOPE_GUARDED_BY(mutex_);
  // Sources write from any of their threads, also while one of their functions runs.
  Mutex gate_;
  Spool* spool_ LANESCOPE_GUARDED_BY(gate_) = nullptr;
};

}  // namespace lanescope::record
