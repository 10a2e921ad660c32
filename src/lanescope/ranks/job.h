// One distributed job, from the summaries of its ranks: who is in it, what does not fit, and what
// each rank did in the steps that all ranks have.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/clock_offsets.h"
#include "lanescope/ranks/collective_rates.h"
#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/group_times.h"
#include "lanescope/ranks/job_waits.h"
#include "lanescope/ranks/match_collectives.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// The result of reading one file: its summary, or why there is none.
struct RankFile {
  std::string file;
  std::variant<RankSummary, Error> content;
};

// A file and its place among all files of the job, whichever worker read it.
struct PlacedFile {
  std::uint64_t place = 0;
  RankFile file;
};

// Something about the files that the reader must know; one line each.
enum class RemarkKind : std::uint8_t {
  kUnreadable,  // a file is no trace
  kNoRank,      // neither the file nor its name says which rank it is
  kOtherRank,   // the file's name says another rank than its content
  kDuplicate,   // two files of one rank
  kOtherJob,    // world size or backend differ from most others
  kMissing,     // ranks of the job without a file
  kTruncated,   // the end of a file is missing
  kOtherModel,  // hardly any of its collectives are those of the others
  kMismatch,    // ranks disagree on a collective
  kUnmatched,   // collectives that could not be matched
  kNoSteps,     // a rank lacks the steps that the others have
  kClock,       // collectives contradict each other, or do not link a rank
};
const char* remark_name(RemarkKind kind);  // "unreadable", ...
struct Remark {
  RemarkKind kind{};
  std::string text;  // may hold untrusted text of files
};

// Means over the job's steps, in nanoseconds per step. docs/definitions/ranks.md.
struct RankTimes {
  std::int64_t wall_ns = 0, compute_ns = 0, exposed_ns = 0, hidden_ns = 0, copy_ns = 0;
  std::array<std::int64_t, analysis::kIdleCauseCount> idle{};
  std::int64_t wait_ns = 0;          // for ranks that arrived later, also if hidden
  std::int64_t exposed_wait_ns = 0;  // the part of it in which the device computed nothing
  StageWaits stage;                  // the part of exposed_wait_ns in sends and receives
  std::int64_t own_ns = 0;           // wall_ns - exposed_ns: needs no clock but the rank's own
  std::int64_t host_work_ns = 0, host_loader_ns = 0, host_outside_ns = 0,
               host_recording_ns = 0;  // as RankStep's
  std::int64_t idle_ns() const;
  std::int64_t cpu_idle_ns() const;  // the part of it in which the device waited for its CPU
  // What communication cost without waiting for others.
  std::int64_t exposed_transfer_ns() const { return exposed_ns - exposed_wait_ns; }
  // Exposed waits are at least exposed_wait_ns, and at most this, because computation may hide transfers as well.
  std::int64_t most_exposed_wait_ns() const;
  std::int64_t certain_transfer_ns() const { return exposed_ns - most_exposed_wait_ns(); }
};

struct JobStep {
  std::int64_t number = -1;      // of ProfilerStep#N; -1: counted from the first step of each file
  std::vector<RankTimes> times;  // one a compared rank: Job::compared
  // How late each compared rank is, at least 0: the larger of two times. One is the most that it
  // arrived at a collective after the median. The other is its own time minus the median own time.
  std::vector<std::int64_t> late_ns;
  bool steady = false;  // on all compared ranks
};

struct Job {
  std::vector<RankSummary> ranks;     // by rank; one file per rank; without groups, kinds and calls
  std::vector<std::int64_t> numbers;  // rank of each
  std::optional<std::int64_t> world_size;
  std::vector<Remark> remarks;
  Matching matching;
  std::vector<RankClock> clocks;        // one per rank
  std::vector<std::uint32_t> compared;  // ranks that have the job's steps: indices into `ranks`
  std::vector<JobStep> steps;           // that all compared ranks have, in order
  std::vector<RankTimes> times;         // one a compared rank: means of the steady ones of `steps`
  std::vector<std::uint64_t>
      last_arrivals;  // one per rank: at how many collectives it alone arrived last
  std::vector<CollectiveRate> rates;
  std::vector<GroupTimes> groups;       // by purpose, most exposed transfer first
  std::vector<JobCollective> critical;  // those in which ranks waited longest
  std::uint64_t steady_count() const;
  // True: the clocks of ranks[rank] and of another rank are known, so its waits are known. Else its waits count as transfer.
  bool knows_waits(std::size_t rank) const;
};

// Joins the summaries of all ranks into one job. The result is the same for every order of `files`.
// kInvalidArgument: no file has a summary; the message names the first reason. O(calls log calls).
Result<Job> build_job(std::vector<RankFile> files);
// The same with the files divided among workers; every worker calls it. Worker 0 gets the job,
// without Matching::collectives; the others get an empty one. All get the same error. Summaries
// without their calls go to worker 0, and each call goes to the worker that owns its collective.
Result<Job> build_job(std::vector<PlacedFile> files, Communicator& workers);

// The rank that a file's name says: "rank3", "rank_3", "rank-3"; a recording's name.
std::optional<std::int64_t> rank_in_name(std::string_view path);

}  // namespace lanescope::ranks
