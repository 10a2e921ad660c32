// The ranks of the run whose folder was opened. Each is a trace of its own, read when a page first asks
// for it. One trace of all ranks, with aligned clocks, is made when a page asks for it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/server/trace_state.h"

namespace lanescope::server {

struct RankPath {
  std::uint32_t rank = 0;
  std::string path;
};

// Any thread. A thread that asks for a trace which another thread is making waits for it.
class RankSet {
 public:
  using ReadTrace = std::function<Result<Trace>(const std::string& path)>;

  // If there are more ranks, they are listed and opened one by one, but not together.
  static constexpr std::size_t kMostTogether = 16;
  // This many traces are kept, those that were asked for last.
  static constexpr std::size_t kMostOpen = 4;

  // `ranks`: two or more, in order. `folder`: as the user named it, for commands to type.
  RankSet(std::string folder, std::vector<RankPath> ranks, ReadTrace read);

  bool has(const std::string& path) const;
  // Empty: there is no such rank.
  std::string path_of(std::string_view which) const;
  bool can_be_together() const { return ranks_.size() <= kMostTogether; }

  // `which`: a rank's number, or "all". kInvalidArgument: neither, or too many ranks for "all".
  // Other errors: those of reading and merging.
  Result<std::shared_ptr<const TraceState>> open(std::string_view which);

  // "ranks" into the open object: who they are, and which one `path` is.
  void write_list(report::JsonWriter& json, const std::string& path) const;
  // What holds the job up, and what each rank does in a step. docs/formats/view_api.md.
  Result<std::string> job_answer();

 private:
  struct JobVerdict {
    ranks::Job job;
    ranks::JobVerdict verdict;
  };
  Result<const JobVerdict*> job();  // read once
  Result<std::shared_ptr<const TraceState>> make(std::string_view which);

  const std::string folder_;
  const std::vector<RankPath> ranks_;
  const ReadTrace read_;
  std::mutex open_mutex_, job_mutex_;
  std::vector<std::pair<std::string, std::shared_ptr<const TraceState>>> open_;  // newest last
  std::optional<Result<JobVerdict>> job_;
};

}  // namespace lanescope::server
