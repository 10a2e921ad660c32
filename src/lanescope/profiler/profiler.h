// The profiler that programs use: torch.profiler's words, without torch.
//
//   lanescope::Profiler profiler({.schedule = *lanescope::schedule({.wait = 1, .warmup = 1, .active
//   = 3})}); profiler.start(); for (...) { work(); profiler.step(); } profiler.stop();
//   std::puts(profiler.table()->c_str());
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
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
  std::vector<ProfilerActivity> activities = {ProfilerActivity::kCpu, ProfilerActivity::kCuda};
  ScheduleFunction schedule =
      {};  // empty: records from start() to stop(), without ProfilerStep ranges
  // Called on the thread that steps or stops, after each finished cycle. It must not throw.
  std::function<void(Profiler&)> on_trace_ready = {};
  bool record_shapes = false, profile_memory = false, with_stack = false, with_flops = false,
       with_modules = false;
  bool capture_overload_names = false;
  // Results cover all cycles so far; false: only the last one, as torch.profiler does.
  bool accumulate = true;
  std::string output_dir =
      {};  // where the spool goes and stays; empty: a temporary file, gone with the profiler
  std::string spool_path = {};  // the spool itself; stays
  std::uint64_t max_spool_bytes = std::uint64_t{4} << 30;
};

// Any thread may call, one at a time; start, step and stop may come from different threads. Results
// are those of the whole process. What goes wrong while recording never reaches the program: it is
// in warnings().
class Profiler {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler();  // stops
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // kIo: the spool cannot be made. kUnavailable: started twice.
  Result<void> start();
  // Ends a step of the schedule: closes ProfilerStep#N, does what the schedule says, opens
  // ProfilerStep#N+1.
  void step();
  // Without start: nothing. An unfinished window is kept and handed to on_trace_ready.
  void stop();

  std::int64_t step_count() const;  // steps ended so far
  ProfilerAction current_action() const;

  // The recorded trace, built when first asked for and kept until more is recorded. Valid during a
  // window too (what was written so far). kUnavailable with the reason when nothing was recorded.
  Result<std::shared_ptr<const Trace>> trace();
  Result<analysis::KeyAverages> key_averages(const analysis::KeyAveragesOptions& options = {});
  // key_averages() as text; torch's table.
  Result<std::string> table(const report::TableOptions& options = {});
  // Kineto JSON; .gz and .zst by the name. As often as you like.
  Result<void> export_chrome_trace(const std::string& path);

  // Into the trace's top-level entries. `json` must be one JSON value, else kInvalidArgument.
  void add_metadata(std::string_view key, std::string_view text);
  Result<void> add_metadata_json(std::string_view key, std::string_view json);

  const std::string& spool_path() const;  // empty before start()
  record::RecorderStats stats() const;
  // One line each, in order: schedule misuse, sources that could not start, drops.
  std::vector<std::string> warnings() const;
  // Why trace() has nothing in it; empty when it has.
  std::string empty_reason() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lanescope
