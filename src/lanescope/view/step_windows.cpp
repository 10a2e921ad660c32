#include "lanescope/view/step_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lanescope/view/kept_lanes.h"
#include "lanescope/view/step_needs.h"

namespace lanescope::view {
namespace {

// 56 bytes each. A profiler's schedule records a few steps; the largest note of a thousand times as many is 5.6 MB.
constexpr std::size_t kMostKeptSteps = 100'000;
static_assert(std::has_unique_object_representations_v<StepWindow> && sizeof(StepWindow) == 56);

std::string head_of_note(std::size_t step_count) { return fmt::format("{} steps\n", step_count); }

}  // namespace

std::vector<StepWindow> step_windows(const explain::Facts& facts) {
  std::vector<StepWindow> windows;
  if (!facts.steps.marked) return windows;
  const std::vector<StepNeeds> needs = step_needs(facts);
  for (std::size_t i = 0; i < facts.steps.steps.size(); ++i) {
    const auto& step = facts.steps.steps[i];
    const analysis::Window device = facts.step_window(i);
    if (step.number)
      windows.push_back({*step.number,
                         {std::min(step.cpu_start_ns, device.start_ns),
                          std::max(step.cpu_end_ns, device.end_ns) + 1},
                         needs[i]});
  }
  return windows;
}

const StepWindow* find_step(const std::vector<StepWindow>& steps, std::int64_t number) {
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const StepWindow& each) { return each.number == number; });
  return found == steps.end() ? nullptr : &*found;
}

Result<TraceWindow> window_of_step(const std::vector<StepWindow>& steps, std::int64_t number) {
  if (const StepWindow* const found = find_step(steps, number)) return found->window;
  if (steps.empty())
    return Error{Errc::kInvalidArgument, "step: the trace marks no steps; ask for a window"};
  return Error{Errc::kInvalidArgument,
               fmt::format("step: expected a step of the trace, {} to {}; found {}",
                           steps.front().number, steps.back().number, number)};
}

std::string steps_layer() { return "steps " + std::string(lanes_build()); }

std::optional<std::string> note_of_steps(const std::vector<StepWindow>& steps) {
  if (steps.size() > kMostKeptSteps) return std::nullopt;
  std::string note = head_of_note(steps.size());
  note.append(reinterpret_cast<const char*>(steps.data()), steps.size() * sizeof(StepWindow));
  return note;
}

std::optional<std::vector<StepWindow>> steps_of_note(std::string_view note) {
  const std::size_t head_bytes = note.find('\n') + 1;  // 0: none
  const std::size_t row_bytes = note.size() - head_bytes;
  std::vector<StepWindow> steps(std::min(row_bytes / sizeof(StepWindow), kMostKeptSteps));
  if (row_bytes != steps.size() * sizeof(StepWindow) ||
      note.substr(0, head_bytes) != head_of_note(steps.size()))
    return std::nullopt;
  if (!steps.empty()) std::memcpy(steps.data(), note.data() + head_bytes, row_bytes);
  const auto is_wrong = [](const StepWindow& each) {
    return each.window.start_ns >= each.window.end_ns ||
           (each.needs.are_known() && each.needs.work.start_ns >= each.needs.work.end_ns);
  };
  if (std::any_of(steps.begin(), steps.end(), is_wrong)) return std::nullopt;
  return steps;
}

}  // namespace lanescope::view
