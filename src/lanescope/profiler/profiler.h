// The profiler that programs use: torch.profiler's words, without torch.
//
//   lanescope::Profiler profiler({.schedule = *lanescope::schedule({.wait = 1, .active = 3})});
//   profiler.start();
//   for (...) { work(); profiler.step(); }
//   profiler.stop();
//   std::puts(profiler.key_averages()->table()->c_str());
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/record/range.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/schedule.h"
#include "lanescope/report/key_averages_table.h"

namespace lanescope {

using record::ProfilerAction;
using record::schedule;
using record::ScheduleFunction;
using record::ScheduleOptions;

enum class ProfilerActivity : std::uint32_t {
  kCpu = LANESCOPE_ACTIVITY_CPU,
  kCuda = LANESCOPE_ACTIVITY_CUDA
};

class Profiler;

struct ProfilerOptions {
  // Empty: the CPU, and CUDA where this machine has an NVIDIA GPU; nothing is said where it has
  // none. What is named here and cannot be recorded becomes one line in warnings().
  std::vector<ProfilerActivity> activities = {};
  ScheduleFunction schedule = {};  // empty: from start() to stop(), without ProfilerStep ranges
  // Called on the thread that steps or stops, after each finished cycle. It must not throw.
  std::function<void(Profiler&)> on_trace_ready = {};
  bool record_shapes = false, profile_memory = false, with_stack = false, with_flops = false,
       with_modules = false, capture_overload_names = false;
  // With CUDA: every call of its runtime and driver, not only those that start or wait for work.
  bool all_api = false;
  // With CUDA: CUPTI leaves the process at the end of each window (cuptiFinalize), so that nothing
  // of its cost stays, and comes back with the next one (8 ms). Not chosen: with CUDA 13 and newer,
  // unless a ring is kept, and never in spite of another profiler. True: with any CUDA, and a line
  // in warnings() when it cannot be done. docs/decisions/gpu_recorder.md.
  std::optional<bool> detach = {};
  // Results cover all cycles so far; false: only the last one, as torch.profiler does.
  bool accumulate = true;
  std::string output_dir = {};  // where the recording goes and stays; empty: a temporary file that
                                // goes with the profiler
  std::string spool_path = {};  // the recording's own path; stays
  bool free_name = false;       // with spool_path: see record::RecorderOptions
  std::uint64_t max_spool_bytes = std::uint64_t{4} << 30;
  std::optional<std::uint64_t> disk_reserve_bytes = {};  // see record::RecorderOptions
  double budget_ratio = 0;                               // likewise
  // A flight recorder: record for ever, keep the last so many nanoseconds. Excludes a schedule. See
  // record::RecorderOptions for these three.
  std::int64_t last_ns = 0;
  int dump_signal = 0;
  bool quiet_dumps = false;
  // With last_ns: a step() more than so many times the median of the steps before it (above 1; 0:
  // never) makes a dump, at most one in last_ns and max_dumps in all.
  double slow_step = 0;
  std::uint32_t max_dumps = 8;
};

// What key_averages() found, with its text.
struct KeyAverages : analysis::KeyAverages {
  std::string empty_reason = {};  // why there are no rows; empty when there are
  // torch's table; without rows, one line that says why. kInvalidArgument: unknown sort key, ...
  Result<std::string> table(const report::TableOptions& options = {}) const;
};

// Any thread may call, one at a time; start, step and stop may come from different threads. What is
// recorded is the whole process. Two profilers may run at once: they share one file, each with
// windows of its own. In a forked child a copy does nothing. What goes wrong while recording never
// reaches the program: it is in warnings().
class Profiler {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler();  // stops
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Again after stop(): a new recording, the results of the last one are gone. kIo: the file cannot
  // be made. kUnavailable: it runs already. kInvalidArgument: a ring with a schedule, slow_step
  // without a ring or not above 1.
  Result<void> start();
  // Ends a step of the schedule: closes ProfilerStep#N, does what the schedule says, opens
  // ProfilerStep#N+1.
  void step();
  // Without start: nothing. An unfinished window is kept and handed to on_trace_ready.
  void stop();

  std::int64_t step_count() const;  // steps ended so far
  ProfilerAction current_action() const;

  // Built when first asked for, kept until more is recorded. During a window: what was written so
  // far. kUnavailable, with the reason, when there was no window.
  Result<std::shared_ptr<const Trace>> trace();
  Result<KeyAverages> key_averages(const analysis::KeyAveragesOptions& options = {});
  // Kineto JSON; packed when the name ends in .gz or .zst. As often as you like.
  Result<void> export_chrome_trace(const std::string& path);

  // A finished recording of what was recorded up to now; of a ring the last seconds. kIo: `path`
  // exists or cannot be written. kUnavailable: nothing runs.
  Result<void> dump(const std::string& path);
  // What slow steps and the signal left, in order; those of the last start().
  std::vector<std::string> dumps() const;

  // Into the trace's top-level entries, at any time. kInvalidArgument: not one JSON value.
  Result<void> add_metadata(std::string_view key, std::string_view text);
  Result<void> add_metadata_json(std::string_view key, std::string_view json);

  const std::string& spool_path() const;  // empty before start()
  std::uint32_t window_count() const;     // opened since start()
  record::RecorderStats stats() const;
  // One line each, in order, only added to: schedule misuse, sources that could not start, drops.
  std::vector<std::string> warnings() const;
  // Why the result has nothing in it; empty when it has.
  std::string empty_reason();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lanescope
