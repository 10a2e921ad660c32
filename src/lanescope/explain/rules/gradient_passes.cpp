#include "lanescope/explain/rules/gradient_passes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"

namespace lanescope::explain::rules {
namespace {

GradientPasses make_gradient_passes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::map<std::uint32_t, std::vector<std::int64_t>>
      calls_of;  // by thread: when the program's operators begin
  std::map<std::uint32_t, std::vector<SliceId>> nodes;  // by thread
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    if (trace.name(id).starts_with(kEvaluateNode))
      nodes[raw(trace.slices().track[i])].push_back(id);
    else if (ancestor_named(facts, id, kEvaluateNode) == kNone<SliceId>)
      calls_of[raw(trace.slices().track[i])].push_back(trace.start_ns(id));
  }
  // Of the thread with most of them: others may work during a backward pass.
  std::vector<std::int64_t> calls;
  for (auto& [thread, own] : calls_of)
    if (own.size() > calls.size()) calls = std::move(own);
  GradientPasses found;
  for (const auto& [thread, all] : nodes) {
    std::ptrdiff_t last = -1;  // calls before the node before
    bool adds = false;
    const auto count = [&] {
      if (last >= 0) ++(adds ? found.adding : found.inner);
    };
    for (const SliceId node : all) {
      const std::ptrdiff_t before =
          std::upper_bound(calls.begin(), calls.end(), trace.start_ns(node)) - calls.begin();
      if (before != last) {
        count();
        adds = false;
      }
      last = before;
      adds = adds || trace.name(node).find("AccumulateGrad") != std::string_view::npos;
    }
    count();
  }
  return found;
}

}  // namespace

const GradientPasses& count_gradient_passes(const Facts& facts) {
  return made_once<make_gradient_passes>(facts);
}

}  // namespace lanescope::explain::rules
