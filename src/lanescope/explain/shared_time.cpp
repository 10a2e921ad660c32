#include "lanescope/explain/shared_time.h"

#include <algorithm>
#include <span>

#include "lanescope/explain/predicted_gains.h"

namespace lanescope::explain {
namespace {

using analysis::Window;

// The code of one thread that a finding is about; empty: unknown.
struct CodeOfFinding {
  TrackId thread = kNone<TrackId>;
  std::span<const Window> windows;
};
CodeOfFinding code_of(const Finding& finding) {
  if (!finding.spared_windows.empty()) return {finding.spared_thread, finding.spared_windows};
  return {finding.told_thread, finding.told_windows};
}

// Nine tenths of the code that it is about, which is no more than the other's.
bool is_within(const Finding& part, const Finding& whole) {
  const CodeOfFinding its = code_of(part), of_whole = code_of(whole);
  if (its.windows.empty() || of_whole.windows.empty() || its.thread != of_whole.thread)
    return false;
  const std::int64_t part_ns = length_of_windows(its.windows);
  return part_ns <= length_of_windows(of_whole.windows) &&
         overlap_of_windows(its.windows, of_whole.windows) * 10 >= part_ns * 9;
}

}  // namespace

std::int64_t length_of_windows(std::span<const Window> windows) {
  std::int64_t time_ns = 0;
  for (const Window& window : windows) time_ns += window.length_ns();
  return time_ns;
}

// Both disjoint and in order.
std::int64_t overlap_of_windows(std::span<const Window> a, std::span<const Window> b) {
  std::int64_t time_ns = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    time_ns += std::max<std::int64_t>(
        0, std::min(a[i].end_ns, b[k].end_ns) - std::max(a[i].start_ns, b[k].start_ns));
    ++(a[i].end_ns < b[k].end_ns ? i : k);
  }
  return time_ns;
}

std::optional<SharedTime> shared_time(const Explanation& explanation,
                                      const std::vector<Suggestion>& first) {
  if (!explanation.gains) return std::nullopt;
  const auto finding_of = [&](std::size_t i) -> const Finding& {
    return explanation.findings[first[i].finding];
  };
  SharedTime shared;
  std::vector<const Finding*> findings;
  std::int64_t sum_ns = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Finding& finding = finding_of(i);
    const bool is_counted = is_of_cpu(finding) || !finding.told_windows.empty();
    if (finding.kind != FindingKind::kCost || !is_counted || first[i].gain_ns <= 0) continue;
    for (std::size_t other = 0; other < first.size(); ++other)
      if (other != i && is_within(finding, finding_of(other)))
        return SharedTime{.numbers = {other + 1, i + 1}, .is_part = true, .most_ns = 0};
    shared.numbers.push_back(i + 1);
    findings.push_back(&finding);
    sum_ns += first[i].gain_ns;
  }
  if (findings.size() < 2) return std::nullopt;
  shared.most_ns = explanation.gains->most_of(findings);
  // Less than a tenth too much is no more than what is rounded.
  if (sum_ns * 10 <= shared.most_ns * 11) return std::nullopt;
  return shared;
}

}  // namespace lanescope::explain
