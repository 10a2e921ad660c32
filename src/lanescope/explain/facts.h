// What every rule reads: the analyses of one trace, made once.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/frame_table.h"
#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/host_timeline.h"
#include "lanescope/analysis/host_wall.h"
#include "lanescope/analysis/kernel_launches.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/launch_stats.h"
#include "lanescope/analysis/memory_timeline.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/step_selection.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/analysis/vendor_device.h"
#include "lanescope/analysis/wall_partition.h"
#include "lanescope/base/result.h"
#include "lanescope/explain/finding.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

using IdleTimes = std::array<std::int64_t, analysis::kIdleCauseCount>;

// The wall of a device, whole and by cause of idleness. The causes add up to partition.idle_ns.
struct WallTimes {
  analysis::WallPartition partition;
  IdleTimes idle{};
  std::int64_t idle_by(analysis::IdleCause cause) const {
    return idle[static_cast<std::size_t>(cause)];
  }
  WallTimes& operator+=(const WallTimes& other);
};

struct DeviceFacts {
  analysis::DeviceTimeline timeline;
  std::vector<analysis::Window> windows;  // one per step
  analysis::Gaps gaps;                    // from the first window's start to the last one's end
  std::vector<WallTimes> walls;           // one per step
};

// The steps of a recording without GPU work: what one thread did in them.
struct HostFacts {
  TrackId thread = kNone<TrackId>;
  std::vector<analysis::HostWall> walls;  // one per step
};

struct KernelFactsSlot;  // kernel_facts.h
std::shared_ptr<KernelFactsSlot> make_kernel_facts_slot();
struct OwnersSlot;  // owners.h
std::shared_ptr<OwnersSlot> make_owners_slot();
struct GraphSlot;  // shared_graph.h
std::shared_ptr<GraphSlot> make_graph_slot();
struct EnclosingSlot;  // enclosing_facts.h
class FactsMemo;       // facts_memo.h
std::shared_ptr<FactsMemo> make_facts_memo();
std::shared_ptr<EnclosingSlot> make_enclosing_slot();
namespace rules {
struct SequencesSlot;  // program_calls.h
std::shared_ptr<SequencesSlot> make_sequences_slot();
}  // namespace rules

// Borrows the trace. Read-only once made; any thread.
struct Facts {
  // Defined in facts.cpp, so that not every batch of sources compiles them again.
  Facts();
  Facts(Facts&&) noexcept;
  Facts& operator=(Facts&&) noexcept;
  ~Facts();

  const Trace* trace = nullptr;
  unsigned threads = 1;  // of gather_facts(), for what is computed later; 0: usual_threads()
  analysis::LaunchLinks links;
  analysis::SliceNesting nesting;
  analysis::FrameTable frames;
  analysis::Steps steps;
  analysis::KernelLaunches kernel_launches;
  std::vector<DeviceFacts> devices;
  // The device that was busy longest, which the rules are about; ties: the lowest number.
  std::optional<std::size_t> main_device;
  std::optional<HostFacts> cpu;  // only without a device
  // Only without a GPU: a device of another kind, whose rows are not kernels and copies, and its
  // wall in the steady steps.
  std::optional<analysis::VendorDevice> vendor;
  analysis::VendorWall vendor_wall;
  std::optional<analysis::HostTimeline> host;
  TrackId main_thread = kNone<TrackId>;
  analysis::MemoryTimeline memory;  // empty when the trace has no memory records

  // The steps that numbers per step are made from. Their windows on the main device (without one, on
  // the CPU), neighbours joined, and their sums.
  analysis::StepSelection selection;
  std::vector<analysis::Window> steady_windows;
  WallTimes wall;
  analysis::HostWall cpu_wall;  // of `cpu`
  analysis::LaunchStats launches;
  // What kernel_facts() fills when it is first asked; copies of these Facts share it.
  std::shared_ptr<KernelFactsSlot> kernels = make_kernel_facts_slot();
  std::shared_ptr<OwnersSlot> owners = make_owners_slot();  // the same of step_owners()
  std::shared_ptr<GraphSlot> graph = make_graph_slot();     // of step_graph(), while it is used
  std::shared_ptr<EnclosingSlot> enclosing = make_enclosing_slot();
  std::shared_ptr<rules::SequencesSlot> sequences = rules::make_sequences_slot();
  std::shared_ptr<FactsMemo> memo = make_facts_memo();  // of made_once()

  // Idle because the CPU had not launched, or had only just done so. In marked steps also before
  // the recording's first launch and after its last one, because these are inside the step.
  std::int64_t waiting_for_cpu_ns() const;
  std::int64_t idle_at_ends_ns() const;  // that last part of it
  const DeviceFacts& device() const { return devices[*main_device]; }
  std::int64_t per_step(std::int64_t total_ns) const {
    return selection.steady.empty() ? 0
                                    : total_ns / static_cast<std::int64_t>(selection.steady.size());
  }
  // When a step held the main device; without one, the CPU's range.
  analysis::Window step_window(std::size_t step) const;
  std::int64_t steady_wall_ns() const {
    return main_device ? wall.partition.wall_ns : cpu_wall.wall_ns;
  }
  std::vector<std::int64_t> steady_lengths_ns() const;  // of the windows, in order of time
  // CPU ranges of the steady steps, neighbours joined.
  std::vector<analysis::Window> steady_cpu_windows() const;
  Confidence confidence() const;  // by number of steady steps and length of their wall
};

// The only place that makes Facts; nothing changes them afterwards. Gaps that reach over the ends of
// a long step that is left out are cut there. kInvalidArgument: select_steps(). kCorruptInput:
// its times cannot be one recording (analysis/time_span.h). O(n log n). `threads` join launches and
// nest slices (0: usual_threads()); the facts are the same for any number.
Result<Facts> gather_facts(const Trace& trace, const analysis::StepOptions& options = {},
                           unsigned threads = 0);

// The steps that gather_facts() would select of the same trace with other options. O(steps).
Result<analysis::StepSelection> select_steps_of(const Facts& facts,
                                                const analysis::StepOptions& options);

// The number of the step with that index, for a sentence; 0: it has none.
Value step_number(const Facts& facts, std::size_t step);

// Idle time by cause inside a window. O(log n + parts in it).
IdleTimes idle_within(const analysis::Gaps& gaps, const analysis::Window& window);

// The same for the part of the window that lies in steady steps of the main device.
IdleTimes idle_within_steady(const Facts& facts, const analysis::Window& window);

// True: the time is inside one of these windows, which are disjoint and in order.
bool inside(const std::vector<analysis::Window>& windows, std::int64_t time_ns);

// What a thread did in some stretches: time by name of the innermost event, most first, ties by
// name. ProfilerStep#7 counts as ProfilerStep*, time without any event has an empty name.
struct HostShare {
  std::string name;
  CategoryKind kind = CategoryKind::kNone;
  std::int64_t time_ns = 0;
  SliceId longest = kNone<SliceId>;  // the slice with most of it
};
struct HostStretch {
  TrackId thread = kNone<TrackId>;
  std::int64_t start_ns = 0, end_ns = 0;
  SliceId blame = kNone<SliceId>;  // as IdlePart::blame
};
std::vector<HostShare> host_shares(const Facts& facts, const std::vector<HostStretch>& stretches);
// "aten::mm's own CPU time", "inside cudaLaunchKernel", "code without events in matmul_add", ...
Sentence describe(const HostShare& share);

// Stretches in which the main device waited for the CPU in steady steps: causes kHostLate and
// kAfterSync, in marked steps also the recording's two ends. Made once for these Facts.
const std::vector<HostStretch>& host_late_stretches(const Facts& facts);
// host_shares() of these. Made once for these Facts.
const std::vector<HostShare>& host_late_shares(const Facts& facts);

}  // namespace lanescope::explain
