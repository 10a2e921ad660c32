// The inside of a Profiler: its options, its recorder, the cycles of its schedule; for
// profiler.cpp.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler/profiler.h"
#include "lanescope/profiler/slow_step_watch.h"
#include "lanescope/profiler/step_range.h"

namespace lanescope {

struct Profiler::State {
  ProfilerOptions options;
  const pid_t pid = getpid();
  std::unique_ptr<record::Recorder> recorder;
  // Without accumulate: the finished recording of the last cycle, until the next window opens.
  std::unique_ptr<record::Recorder> last_cycle;
  std::uint32_t windows_before = 0;  // of recorders that are gone
  std::uint64_t dropped_before = 0;  // likewise, records
  std::uint32_t cycles = 0;          // cycles since start()
  // The first window of the current cycle, by the recorder's count. A pause splits a cycle into windows.
  std::uint32_t cycle_first_window = 0;
  bool is_paused = false;
  bool running = false;
  std::int64_t step = 0;
  ProfilerAction action = ProfilerAction::kNone;
  StepRange step_range;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::shared_ptr<const Trace> trace;
  std::uint32_t trace_windows = 0;  // windows that `trace` covers
  mutable std::vector<std::string> warnings;
  std::optional<SlowStepWatch> slow_steps;

  bool is_copy() const { return getpid() != pid; }  // by fork()
  bool is_temporary() const { return options.spool_path.empty() && options.output_dir.empty(); }
  Result<void> check_options() const;
  ProfilerAction action_at(std::int64_t number) const;
  void run_tasks(std::span<const record::ProfilerTask> tasks, Profiler& profiler);
  void warm_up();
  void open_window();

  Result<void> open_recorder();
  // A temporary file needs only the last cycle, so a long run gets a new file from time to time.
  // Not for each cycle: a new file costs 15 ms, and the reader finds the last of many cycles.
  void renew_recorder();
  // The recorder with the cycle that the results show.
  record::Recorder& shown() const;
  // A ring reuses its chunks while we read, so read a copy.
  Result<Trace> read_recording(const format::ReadSpoolOptions& read) const;

  // The recorder's notes on the session, without "no GPU" if nobody asked for one.
  std::vector<std::string> recorder_notes() const;
  // Adds these notes, and what was dropped, to the warnings.
  void collect_notes() const;
  void warn(std::string line) const;  // once each
};

}  // namespace lanescope
