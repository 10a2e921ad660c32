// Draws the summaries of a job's ranks by hand.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

inline bool has(const JobVerdict& verdict, NoteKind kind, std::string_view part) {
  return std::ranges::any_of(verdict.notes, [&](const JobNote& note) {
    return note.kind == kind && note.text.find(part) != std::string::npos;
  });
}

// Times in microseconds of the job's own clock; `clock_us` is what the rank's clock adds.
class DrawnRank {
 public:
  DrawnRank(std::int64_t rank, std::int64_t world, std::int64_t clock_us = 0) : clock_(clock_us) {
    summary_.file = "rank" + std::to_string(rank) + ".json";
    summary_.rank = rank;
    summary_.world_size = world;
    summary_.backend = "nccl";
    summary_.device_count = 1;
    summary_.steps_marked = true;
    summary_.groups.push_back({"0", "default_pg", "cuda:nccl", world, {}});
  }
  // The step's wall is computing, then idle, then exposed communication.
  DrawnRank& step(std::int64_t number, std::int64_t start, std::int64_t compute, std::int64_t idle,
                  std::int64_t exposed) {
    RankStep step;
    step.number = number;
    step.steady = true;
    step.start_ns = (start + clock_) * 1000;
    step.wall_ns = (compute + idle + exposed) * 1000;
    step.compute_ns = compute * 1000;
    step.exposed_ns = exposed * 1000;
    step.idle[0] = idle * 1000;  // kHostLate
    step.kernels = 1;
    summary_.steps.push_back(step);
    return *this;
  }
  // Steps that were found, with so many kernels each.
  DrawnRank& found(const std::string& unit, std::uint64_t kernels) {
    summary_.step_unit = unit;
    for (RankStep& step : summary_.steps) step.kernels = kernels;
    return *this;
  }
  // The group of the calls that follow.
  DrawnRank& in_group(const std::string& name, std::int64_t size,
                      const std::string& description = "") {
    for (group_ = 0; group_ < summary_.groups.size(); ++group_)
      if (summary_.groups[group_].name == name) return *this;
    summary_.groups.push_back({name, description, "cuda:nccl", size, {}});
    return *this;
  }
  DrawnRank& call(std::int64_t start, std::int64_t end, std::int64_t exposed,
                  std::int64_t elements = 1000, std::int64_t sequence = -1,
                  const std::string& name = "allreduce") {
    CollectiveKind kind{name, "Float", elements, elements, elements * 4, group_, true};
    auto& kinds = summary_.kinds;
    std::uint32_t index = 0;
    while (index < kinds.size() && !(kinds[index] == kind)) ++index;
    if (index == kinds.size()) kinds.push_back(kind);
    summary_.collectives.push_back({index, static_cast<std::int32_t>(summary_.steps.size()) - 1,
                                    sequence, (start + clock_) * 1000, (end + clock_) * 1000,
                                    exposed * 1000});
    return *this;
  }
  // What its CPU does in each step so far: in operators, in a DataLoader, outside of both.
  DrawnRank& cpu(std::int64_t work, std::int64_t loader, std::int64_t outside) {
    for (RankStep& step : summary_.steps) {
      step.host_work_ns = work * 1000;
      step.host_loader_ns = loader * 1000;
      step.host_outside_ns = outside * 1000;
    }
    return *this;
  }
  // What its CPU does while the device waits, in all steps together.
  DrawnRank& host_part(const std::string& name, std::int64_t us) {
    summary_.host_parts.push_back({name, us * 1000});
    return *this;
  }
  RankSummary summary() const { return summary_; }
  RankFile file() const { return {summary_.file, summary_}; }

 private:
  std::int64_t clock_;
  std::uint32_t group_ = 0;
  RankSummary summary_;
};

}  // namespace lanescope::ranks
