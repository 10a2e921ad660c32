#include "lanescope/report/diff_brief.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lanescope/explain/compare_headline.h"
#include "lanescope/explain/compare_reasons.h"
#include "lanescope/report/rounded_numbers.h"

namespace lanescope::report {
namespace {

using explain::CompareScope;
using explain::CompareVerdict;
using explain::Comparison;

constexpr std::size_t kMostParts = 5;

std::string subject(const Comparison& c) {
  return c.scope == CompareScope::kRecordings ? "The recording"
         : c.scope == CompareScope::kCpu      ? "A step on the CPU"
                                              : "A step";
}

// "592 us in B and 613 us in A"
std::string both(std::int64_t a_ns, std::int64_t b_ns) {
  return fmt::format("{} in B and {} in A", rounded_time(b_ns), rounded_time(a_ns));
}

// One digit below 10 %: "3.4 %".
std::string part_of(std::int64_t ns, std::int64_t of_ns) {
  const double percent = 100.0 * static_cast<double>(ns) / static_cast<double>(of_ns);
  return fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0);
}

std::string difference(const Comparison& c, std::int64_t a_ns, std::int64_t b_ns) {
  if (a_ns == b_ns) return fmt::format("{} takes {} in both.", subject(c), rounded_time(a_ns));
  const std::string start = fmt::format("{} takes {}", subject(c), both(a_ns, b_ns));
  if (a_ns <= 0) return start + ".";
  if (b_ns / 2 >= a_ns)
    return fmt::format("{}: {:.1f} times as long.", start,
                       static_cast<double>(b_ns) / static_cast<double>(a_ns));
  return fmt::format("{}: {} {}.", start, part_of(std::llabs(b_ns - a_ns), a_ns),
                     b_ns > a_ns ? "more" : "less");
}

std::string verdict(const Comparison& c, std::int64_t a_ns, std::int64_t b_ns) {
  switch (c.verdict) {
    case CompareVerdict::kEqual:
      return "Every number of A and B is the same.";
    case CompareVerdict::kNotCompared:
      return rounded_sentence(c.headline);
    case CompareVerdict::kWithin:
      return fmt::format(
          "{} takes {}: no more than the steps of one trace differ among themselves.", subject(c),
          both(a_ns, b_ns));
    case CompareVerdict::kSlowSteps:
      return fmt::format("The usual step did not change. A few slow steps change the mean: {}.",
                         both(a_ns, b_ns));
    case CompareVerdict::kDiffers:
    case CompareVerdict::kFewSteps:
      break;
  }
  return difference(c, a_ns, b_ns);
}

std::string caution(const Comparison& c) {
  if (c.verdict == CompareVerdict::kEqual || c.verdict == CompareVerdict::kNotCompared) return {};
  if (c.scope == CompareScope::kRecordings)
    return "One recording on each side does not show how much is chance.";
  if (c.a_steps.count < 3 || c.b_steps.count < 3)
    return fmt::format("Only {} step{} of A and {} of B: too few to show how much steps vary.",
                       c.a_steps.count, c.a_steps.count == 1 ? "" : "s", c.b_steps.count);
  return fmt::format("Medians of {} and {} steps: {}; a step varies by {} in B and {} in A.",
                     c.b_steps.count, c.a_steps.count,
                     both(c.a_steps.median_ns, c.b_steps.median_ns),
                     rounded_time(c.b_steps.spread_ns), rounded_time(c.a_steps.spread_ns));
}

}  // namespace

DiffBrief diff_brief(const Comparison& c) {
  const std::int64_t a_ns = explain::compare_wall_ns(c, true),
                     b_ns = explain::compare_wall_ns(c, false);
  DiffBrief brief{verdict(c, a_ns, b_ns), {}, caution(c)};
  if ((c.scope != CompareScope::kSteps && c.scope != CompareScope::kRecordings) ||
      c.verdict == CompareVerdict::kEqual || c.verdict == CompareVerdict::kNotCompared)
    return brief;
  const std::int64_t least = c.verdict == CompareVerdict::kWithin
                                 ? std::max(explain::compare_noise_ns(c), a_ns / 20)
                                 : std::llabs(b_ns - a_ns) / 10;
  for (const explain::Reason& each : explain::reasons_of(c)) {
    if (each.text.pattern.empty() || std::llabs(each.delta_ns) < std::max<std::int64_t>(least, 1))
      continue;
    brief.parts.push_back({each.delta_ns, rounded_sentence(each.text)});
    if (brief.parts.size() == kMostParts) break;
  }
  return brief;
}

}  // namespace lanescope::report
