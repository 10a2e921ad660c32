#include "lanescope/explain/rules/quiet_code.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

bool is_operator_or_call(const Facts& facts, SliceId slice) {
  if (slice == kNone<SliceId>) return false;
  const CategoryKind kind = facts.trace->kind(slice);
  return kind == CategoryKind::kCpuOp || kind == CategoryKind::kOverhead || is_api_call(kind);
}

// torch's own Python, such as the optimizer's.
bool is_of_torch(const Facts& facts, SliceId slice) {
  if (slice == kNone<SliceId>) return false;
  const std::string_view label = facts.trace->name(slice);
  return facts.trace->kind(slice) == CategoryKind::kPythonFunction
             ? is_frame_of_torch(label)
             : label.starts_with("Optimizer.");
}

// What a thread did since its last operator or call.
struct Run {
  std::int64_t own_ns = 0;
  analysis::Window window{0, 0};
  std::map<std::uint32_t, std::int64_t> inside;  // by slice
};

void close(const Facts& facts, Run& run, std::map<std::size_t, std::int64_t>& by_step,
           QuietCode& found) {
  const Run ended = std::exchange(run, {});
  if (ended.own_ns <= kLongestBetweenOperatorsNs) return;
  found.time_ns += ended.own_ns;
  by_step[steady_step_at(facts, ended.window.start_ns)] += ended.own_ns;
  if (ended.own_ns <= found.longest_ns) return;
  found.longest_ns = ended.own_ns;
  const auto most =
      std::max_element(ended.inside.begin(), ended.inside.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  found.longest_frame = SliceId{most->first};
}

}  // namespace

QuietCode quiet_code(const Facts& facts, const std::vector<HostStretch>& stretches) {
  QuietCode found;
  std::map<std::size_t, std::int64_t> by_step;
  analysis::HostReader host(*facts.host);
  for (const HostStretch& stretch : stretches) {
    Run run;
    host.visit(stretch.thread, stretch.start_ns, stretch.end_ns,
               [&](SliceId slice, std::int64_t from, std::int64_t to) {
                 if (is_operator_or_call(facts, slice)) {
                   close(facts, run, by_step, found);
                   return;
                 }
                 if (is_of_torch(facts, slice)) return;
                 if (run.own_ns == 0) run.window.start_ns = from;
                 run.window.end_ns = to;
                 run.own_ns += to - from;
                 run.inside[raw(slice)] += to - from;
               });
    close(facts, run, by_step, found);
  }
  std::vector<std::int64_t> times;
  for (const auto& [step, time_ns] : by_step) times.push_back(time_ns);
  const std::size_t steps = facts.selection.steady.size();
  times.resize(std::max(times.size(), steps), 0);
  if (!times.empty())
    found.usual_ns = analysis::median_of_steps(times) * static_cast<std::int64_t>(steps);
  return found;
}

}  // namespace lanescope::explain::rules
