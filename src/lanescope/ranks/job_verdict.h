// What holds a job up: one rank, uneven work, communication that nothing hides; or nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

enum class VerdictKind : std::uint8_t {
  kUnknown,    // too little is known: one rank, no common steps, clocks not linked
  kBalanced,   // no rank delays the others
  kStraggler,  // the same ranks are late in nearly every step
  kRotating,   // in every step somebody is late, but not always the same rank
  kUneven,     // ranks differ steadily, without one that stands out
  kPipeline,   // stages of a pipeline wait for their neighbours
};
const char* verdict_name(VerdictKind kind);  // "straggler", ...

// What the late ranks did longer than the others.
enum class LateCause : std::uint8_t { kCompute, kHost, kInput, kCopies, kOtherIdle };
const char* cause_name(LateCause cause);  // "compute", "cpu", "input", "copies", ...

struct CausePart {
  LateCause cause{};
  std::int64_t longer_ns = 0;  // a step; the late ranks' mean minus the others' median
};

// A second observation, which may be true next to any verdict.
enum class NoteKind : std::uint8_t {
  kNotHidden,         // communication itself, without waits, is on the wall
  kSmallCollectives,  // many collectives of little data
  kWaitIsNotNetwork,  // time in collectives that is waiting for late ranks
  kProfiler,       // the profiler slows the CPU, unevenly: a small lateness of a CPU may be its own
  kSample,         // files of few of the job's ranks
  kSlowedByWaits,  // the others' kernels run slower next to collectives that wait
  kShortSteps,     // too few steps
  kUnequalSteps,   // some ranks end two steps or more before the others
  kGroupNotHidden,  // most communication that nothing hides is of the groups of one purpose
  kSlowLink,        // one group is much slower than others of its size and kind
  kHiddenCpu,       // ranks whose CPUs need longer for a step, while their GPUs have work queued
  kLateHost,        // the late ranks are all ranks of one host, and no others
  kCpuBound,        // ranks whose devices wait for their CPUs, whoever delays the others
};
const char* note_name(NoteKind kind);
struct JobNote {
  NoteKind kind{};
  std::string text;  // no text of files
};

// How long the stages of a pipeline wait in sends and receives: means of the ranks that receive.
struct PipelineWaits {
  StageWaits waits;
  std::uint64_t stages = 0, micro_batches = 0;  // 0: unknown
  double least_ratio = 0;  // of a step, with equal stages: (p - 1) / (m + p - 1); 0: unknown
  std::int64_t longest_rank = -1;  // the stage with the longest own time
  std::int64_t longer_ns = 0;      // by how much it exceeds the mean
};

// Nanoseconds a step, means over the steady steps. docs/definitions/ranks.md#verdict.
struct JobVerdict {
  VerdictKind kind = VerdictKind::kUnknown;
  std::vector<std::int64_t> ranks;  // the late ones, by number
  std::int64_t step_ns = 0;         // the mean step of the job
  // How much later than the latest other rank; kRotating, kUneven: than the mean of all ranks.
  std::int64_t late_ns = 0;
  std::int64_t error_ns = 0;      // the largest error of the clocks
  std::int64_t threshold_ns = 0;  // less is no verdict
  std::int64_t since_step = -1;   // first step of the unbroken run up to the end; -1: unknown
  bool since_start = false;       // since the first step of the files
  std::uint64_t late_steps = 0, steps = 0;
  std::vector<CausePart> causes;  // of kStraggler: most first
  // The late ranks run the same kernels with the same grids; none: there are no kernels.
  std::optional<bool> same_kernels;
  bool on_cpu = false;            // the job computes on CPUs
  std::string device = "GPU";     // what the job computes on, as a word: "GPU", "NPU" or "device"
  std::string host_part;          // kHost, kInput: what the late rank's CPU did most; untrusted
  std::int64_t host_part_ns = 0;  // a step
  // kHost: the late ranks' CPUs need at least 1.2 times as long for a step's operators, while no single part
  // explains half of it. A step of the quickest late rank and of the others' median one; 0: not so.
  std::int64_t host_work_ns = 0, others_work_ns = 0;
  bool host_part_is_of_step =
      false;  // host_part_ns is of the whole step, not of the device's waits
  // kHost: what recording cost the late ranks' CPUs is at most this, a step, as in most programs; 0: unknown.
  std::int64_t profiler_ns = 0;
  // If that is known: how much longer the late ranks' CPUs need in a step (mean) than the others' (median) for
  // operators, and their CPU lateness outside of these (docs/definitions/ranks.md#cpu-times).
  std::int64_t more_work_ns = 0, more_outside_ns = 0;
  std::string reason;      // kUnknown: why
  PipelineWaits pipeline;  // kPipeline: late_ns is its total
  std::vector<JobNote> notes;
};

// What counts as a difference at all: 3 % of a step, at least 50 us.
std::int64_t least_difference_ns(std::int64_t step_ns);

// Any thread. O(ranks steps).
JobVerdict judge_job(const Job& job);

}  // namespace lanescope::ranks
