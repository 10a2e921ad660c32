// What a job's analyses keep of one rank's trace: steps, collectives and a few totals. Small and
// without pointers, so that it can be sent to another process or written to a file.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::ranks {

// A process group as distributedInfo or a collective's arguments describe it.
struct ProcessGroup {
  std::string name, description, backend;
  std::int64_t size = 0;            // 0: unknown
  std::vector<std::int64_t> ranks;  // empty: unknown, or more than kMostGroupRanks
  bool operator==(const ProcessGroup&) const = default;
};
inline constexpr std::size_t kMostGroupRanks = 4096;

// What two calls of one collective have in common on all ranks.
struct CollectiveKind {
  std::string name;   // "allreduce", as the file has it; without metadata from the kernel's name
  std::string dtype;  // c10's name; empty: unknown
  std::int64_t in_elements = -1, out_elements = -1;  // -1: unknown
  std::int64_t bytes = -1;                           // the larger of in and out; -1: unknown
  std::uint32_t group = 0;                           // index into RankSummary::groups
  bool has_metadata = false;
  bool operator==(const CollectiveKind&) const = default;
};

// Nanoseconds since RankSummary::origin_ns.
struct CollectiveRecord {
  std::uint32_t kind = 0;      // index into RankSummary::kinds
  std::int32_t step = -1;      // index into RankSummary::steps: where it was launched; -1: none
  std::int64_t sequence = -1;  // of the group; -1: not recorded
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t exposed_ns = 0;  // the part in which the device computed nothing
  bool operator==(const CollectiveRecord&) const = default;
};

// One step on the rank's main device. docs/definitions/ranks.md.
struct RankStep {
  std::int64_t number = -1;   // of ProfilerStep#N; -1: the steps have no numbers
  bool steady = false;        // analysis::StepSelection
  std::int64_t start_ns = 0;  // since RankSummary::origin_ns
  std::int64_t wall_ns = 0, compute_ns = 0, exposed_ns = 0, hidden_ns = 0, copy_ns = 0;
  std::array<std::int64_t, analysis::kIdleCauseCount> idle{};
  std::uint64_t kernels = 0;      // computing kernels that began in it
  std::uint64_t names_hash = 0;   // of their names, in any order
  std::uint64_t shapes_hash = 0;  // of names, grids and blocks, in any order
  // Parts of the CPU's own step: in operators but not in API calls; in a DataLoader; in none of these, nor in a
  // call. All 0: unknown. docs/definitions/ranks.md#cpu-times.
  std::int64_t host_work_ns = 0, host_loader_ns = 0, host_outside_ns = 0;
  // What recording cost the launching threads in that step, estimated: #recording-cost.
  std::int64_t host_recording_ns = 0;
  std::int64_t idle_ns() const;
  std::int64_t communication_ns() const { return exposed_ns + hidden_ns; }
  bool operator==(const RankStep&) const = default;
};

// What the launching threads did while the device waited for them, in all steady steps together.
struct HostPart {
  std::string name;
  std::int64_t time_ns = 0;
  bool operator==(const HostPart&) const = default;
};

// Sums over a rank's calls, which stay when the calls themselves are given to other workers.
struct RankCallTotals {
  std::uint64_t calls = 0;
  std::uint64_t small_calls = 0;      // of less than analysis::kSmallMessageBytes, in steady steps
  std::int64_t small_exposed_ns = 0;  // of these
  bool operator==(const RankCallTotals&) const = default;
};

struct RankSummary {
  std::string file;
  std::optional<std::int64_t> rank, world_size;  // as distributedInfo says
  std::string backend, host_name, device;        // empty: unknown
  std::uint64_t device_count = 0;
  std::int64_t origin_ns = 0;  // of the file's clock; all times count from here
  std::int64_t window_ns = 0;  // length of the recording
  bool truncated = false;      // the end of the file is missing
  std::uint64_t lost_events = 0;
  bool steps_marked = false;  // by the program, or found
  std::string step_unit;      // of steps that were found: "one round of 12 operators"; else empty
  std::uint64_t unlinked_collectives = 0;  // launched before the recording, or without metadata
  std::uint64_t dropped_collectives = 0;   // over the limits below
  bool groups_unknown =
      false;  // the calls do not say which of several groups they are of: all are unlinked
  std::vector<ProcessGroup> groups;
  std::vector<CollectiveKind> kinds;
  std::vector<RankStep> steps;
  std::vector<CollectiveRecord> collectives;  // in launch order
  std::vector<HostPart> host_parts;           // most time first
  // Set by build_job(), which takes groups, kinds and collectives out. Not in the text of a summary.
  RankCallTotals totals;
  std::uint64_t place = 0;  // of the file among the job's files
  bool operator==(const RankSummary&) const = default;
};

inline constexpr std::size_t kMostCollectives = 3072, kMostSteps = 128, kMostKinds = 256,
                             kMostGroups = 64, kMostHostParts = 8;

// The map step: one trace in, its summary out. Errors: explain::gather_facts(). O(n log n).
Result<RankSummary> summarize_rank(const Trace& trace, std::string file);

}  // namespace lanescope::ranks
