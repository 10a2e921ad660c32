// Makes the stops of a tour, one after the other. Internal to report/.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/report/tour.h"

namespace lanescope::report {

// Runs once.
class TourMaker {
 public:
  TourMaker(const view::Lanes& lanes, const explain::Explanation& explanation)
      : lanes_(lanes),
        facts_(lanes.facts()),
        trace_(*facts_.trace),
        explanation_(explanation),
        window_(usual_window()) {}

  std::vector<TourStop> run();

 private:
  using Window = analysis::Window;

  // tour.cpp: what all stops use, the verdict and the findings.
  // The steady step of median length; without marked steps, the recording.
  Window usual_window() const;
  std::optional<std::uint32_t> main_lane(view::LaneKind kind) const;
  std::string name_of(SliceId slice) const;
  // Some writers give a step the category of operators.
  bool is_operator(SliceId slice) const;
  TourStop& add(std::string title, std::string text, const Window& window, std::string word = {});
  TourStop& add_slice(std::string title, std::string text, SliceId slice, std::string word = {});
  bool is_of_ranks() const;  // is the trace of several ranks of one job?
  void add_ranks();
  void name_ranks();
  void add_verdict();
  // What to do first, each on its evidence; then it is the reader's turn.
  void add_findings();

  // tour_program.cpp: what the program did on the CPU, and the memory.
  void add_steps();
  void add_thread();
  SliceId longest_operator() const;
  void add_operator(SliceId op);
  void add_self_and_total();
  void add_profiler();
  void add_memory();

  // tour_device.cpp: the way to the GPU, and where it waits.
  // The longest GPU work of the usual step whose operator and launch are known.
  void choose_kernel();
  void add_way_to_the_gpu();
  void add_gap();
  void add_queue();

  // tour_other_device.cpp: devices that are no GPU write their streams as threads, and mostly
  // without their launches.
  void add_other_device();
  void add_wait_of_other_device();

  const view::Lanes& lanes_;
  const explain::Facts& facts_;
  const Trace& trace_;
  const explain::Explanation& explanation_;
  Window window_;
  SliceId kernel_ = kNone<SliceId>, operator_ = kNone<SliceId>;
  std::vector<TourStop> stops_;
};

}  // namespace lanescope::report
