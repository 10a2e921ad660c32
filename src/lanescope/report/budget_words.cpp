#include "lanescope/report/budget_words.h"

#include <fmt/format.h>

namespace lanescope::report {

using explain::BudgetState;

const char* budget_label(BudgetState state) {
  switch (state) {
    case BudgetState::kKept:
      return "kept";
    case BudgetState::kBroken:
      return "BROKEN";
    case BudgetState::kMissing:
      return "MISSING";
  }
  return "";
}

std::string budget_result(std::size_t lines, std::size_t broken, std::size_t missing) {
  if (broken == 0 && missing == 0)
    return fmt::format("The budget is kept: {} of {} {}.", lines, lines,
                       lines == 1 ? "line" : "lines");
  std::string text = "The budget is broken: ";
  if (broken > 0) text += fmt::format("{} of {} lines not kept", broken, lines);
  if (missing > 0)
    text +=
        fmt::format("{}{} of {} lines cannot be checked", broken > 0 ? "; " : "", missing, lines);
  return text + ".";
}

}  // namespace lanescope::report
