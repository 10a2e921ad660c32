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
  // Empty: the CPU, and CUDA if this machine has an NVIDIA GPU, without a warning if not. An
  // activity named here that cannot be recorded gives one line in warnings().
  std::vector<ProfilerActivity> activities = {};
  ScheduleFunction schedule = {};  // empty: from start() to stop(), without ProfilerStep ranges
  // Called on the thread that steps or stops, after each finished cycle. It must not throw.
  std::function<void(Profiler&)> on_trace_ready = {};
  bool record_shapes = false, profile_memory = false, with_stack = false, with_flops = false,
       with_modules = false, capture_overload_names = false;
  // With CUDA: every call of its runtime and driver, not only the calls that start work or wait.
  bool all_api = false;
  // With CUDA: CUPTI leaves the process at the end of each window (cuptiFinalize), so that it costs
  // nothing afterwards, and comes back with the next window (8 ms). Not set: with CUDA 13 and
  // newer, but not for a ring and not while another profiler uses CUPTI. True: with any CUDA; a
  // line in warnings() if it is impossible. docs/decisions/gpu_recorder.md.
  std::optional<bool> detach = {};
  // Results cover all cycles so far. False: only the last cycle that recorded, as in
  // torch.profiler; a temporary file then keeps at most 16 MiB of earlier cycles.
  bool accumulate = true;
  std::int64_t first_step = 0;  // the number of the step that start() begins
  std::string output_dir = {};  // folder for the recording; empty: a temporary file, removed
                                // with the profiler
  std::string spool_path = {};  // path of the recording, which stays
  bool free_name = false;       // with spool_path: see record::RecorderOptions
  std::uint64_t max_spool_bytes = std::uint64_t{4} << 30;
  std::optional<std::uint64_t> disk_reserve_bytes = {};  // see record::RecorderOptions
  double budget_ratio = 0;                               // likewise
  // A flight recorder: records for ever and keeps the last `last_ns` nanoseconds. Not with a
  // schedule. For these three, see record::RecorderOptions.
  std::int64_t last_ns = 0;
  int dump_signal = 0;
  bool quiet_dumps = false;
  // With last_ns: a step that takes more than `slow_step` times the median of the steps before it
  // makes a dump (above 1; 0: never). At most max_dumps stay, those of the worst steps:
  // docs/definitions/recording.md#slow-step.
  double slow_step = 0;
  std::uint32_t max_dumps = 8;
};

// The result of key_averages(), with its text.
struct KeyAverages : analysis::KeyAverages {
  std::string empty_reason = {};  // why there are no rows; empty: there are some
  // torch's table; without rows, one line that says why. kInvalidArgument: unknown sort key, ...
  Result<std::string> table(const report::TableOptions& options = {}) const;
};

// Any thread may call, one at a time; start, step and stop may come from different threads.
// Records the whole process. Two profilers may run at once: they share one file, each with its
// windows. A copy in a forked child does nothing. Problems during recording never reach the
// program: they are in warnings().
class Profiler {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler();  // stops
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // After stop(), starts a new recording, and the results of the last one are gone. kIo: the file
  // cannot be made. kUnavailable: already running. kInvalidArgument: a ring with a schedule,
  // slow_step without a ring or not above 1.
  Result<void> start();
  // Ends a step of the schedule: closes ProfilerStep#N, does what the schedule says, opens
  // ProfilerStep#N+1. `number`: the number of the new step, if it is not the next one.
  void step(std::optional<std::int64_t> number = {});
  // Does nothing before start(). Keeps an unfinished window and passes it to on_trace_ready.
  void stop();

  // Like stop(), but the recording does not end: go_on() starts again at this step, and with
  // accumulate the results cover both parts. When another Profiler starts while this one rests, the
  // recording ends: can_go_on() is then false, go_on() does nothing, and the results stay.
  void rest();
  bool can_go_on() const;
  void go_on(std::int64_t step);

  // The parts of start() and step(), for programs that open and close windows themselves: no
  // schedule, no ProfilerStep ranges, no on_trace_ready. begin() is start() without a window. Warm
  // up before a window, or let open_window() do it. stop() ends it all.
  Result<void> begin();
  void warm_up();
  void open_window();
  void close_window();

  // Records nothing in between; the cycle goes on afterwards. resume() does nothing without
  // pause(), or after the cycle's end.
  void pause();
  void resume();

  std::int64_t step_count() const;  // steps ended so far
  ProfilerAction current_action() const;

  // Built on the first call and kept until more is recorded. During a window: what was written so
  // far. kUnavailable, with the reason: there was no window.
  Result<std::shared_ptr<const Trace>> trace();
  Result<KeyAverages> key_averages(const analysis::KeyAveragesOptions& options = {});
  // Writes Kineto JSON, packed if the name ends in .gz or .zst. Can be repeated.
  Result<void> export_chrome_trace(const std::string& path);

  // Writes a finished recording of everything up to now (a ring: the last seconds). kIo: `path`
  // exists or cannot be written. kUnavailable: nothing runs.
  Result<void> dump(const std::string& path);
  // The dumps of slow steps and of the signal since the last start(), in order.
  std::vector<std::string> dumps() const;

  // Adds a top-level entry to the trace, at any time. kInvalidArgument: not one JSON value.
  Result<void> add_metadata(std::string_view key, std::string_view text);
  Result<void> add_metadata_json(std::string_view key, std::string_view json);

  const std::string& spool_path() const;  // empty before start()
  std::uint32_t window_count() const;     // opened since start(); a pause makes two of one cycle
  std::uint32_t cycle_count() const;      // begun since start()
  bool is_window_open() const;
  record::RecorderStats stats() const;
  // One line each, in order; the list only grows: schedule misuse, sources that could
  // not start, drops.
  std::vector<std::string> warnings() const;
  // Why the result is empty; "": it is not.
  std::string empty_reason();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lanescope
