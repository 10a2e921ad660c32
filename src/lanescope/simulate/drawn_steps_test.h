// The simulation of a drawn trace, for tests.
#pragma once
#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/kernel_launches.h"
#include "lanescope/analysis/step_selection.h"
#include "lanescope/simulate/predict.h"

namespace lanescope::simulate::testing {

// A simulation and everything that it borrows. Not copyable: the pointers of a copy would point into the original.
struct DrawnSteps {
  explicit DrawnSteps(Trace drawn, unsigned threads = 1)
      : trace(std::move(drawn)),
        links(analysis::compute_launch_links(trace)),
        nesting(analysis::compute_slice_nesting(trace)),
        host(trace),
        steps(analysis::find_steps(trace, links)),
        devices(analysis::compute_device_timelines(trace, links)),
        windows(analysis::compute_step_windows(trace, links, steps, devices.front())) {
    const auto launches = analysis::find_kernel_launches(trace, links);
    steady = analysis::select_steps({trace, steps, launches, &devices.front(), windows})->steady;
    for (const auto& device : devices) timelines.push_back(&device);
    const TrackId main = steps.marked ? trace.slices().track[raw(steps.steps.front().slice)]
                                      : analysis::main_launch_thread(trace, links);
    const GraphInput input{trace, links, host, steps, steady, timelines, 0, main};
    simulation = simulate(std::make_shared<const StepGraph>(build_graph(input)), input, nesting,
                          windows, threads);
  }
  DrawnSteps(const DrawnSteps&) = delete;
  DrawnSteps& operator=(const DrawnSteps&) = delete;

  // The length of a step after the changes, in ns; -1: a change is not possible.
  std::int64_t step_ns(std::initializer_list<const char*> texts) const {
    std::vector<Change> changes;
    for (const char* text : texts) changes.push_back(*parse_change(text));
    const auto prediction = predict(simulation, changes);
    return prediction ? prediction->after.step_ns : -1;
  }

  Trace trace;
  analysis::LaunchLinks links;
  analysis::SliceNesting nesting;
  analysis::HostTimeline host;
  analysis::Steps steps;
  std::vector<analysis::DeviceTimeline> devices;
  std::vector<analysis::Window> windows;
  std::vector<std::size_t> steady;
  std::vector<const analysis::DeviceTimeline*> timelines;
  Simulation simulation;
};

}  // namespace lanescope::simulate::testing
