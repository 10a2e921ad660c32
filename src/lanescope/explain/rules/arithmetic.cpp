#include "lanescope/explain/rules/arithmetic.h"

namespace lanescope::explain::rules {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Sentence sum_of(const std::vector<Term>& terms) {
  Sentence sum;
  for (const Term& term : terms) {
    if (term.time_ns == 0) continue;
    sum.pattern += (sum.pattern.empty() ? "" : " + ") + term.words + " {}";
    sum.values.push_back(ns(term.time_ns));
  }
  if (sum.values.empty() && !terms.empty())
    return say(terms.front().words + " {}", {ns(terms.front().time_ns)});
  return sum;
}

}  // namespace lanescope::explain::rules
