// What a range's name says about iterations. Private to the files that find iterations.
#pragma once
#include <algorithm>
#include <span>
#include <string_view>

namespace lanescope::analysis {

inline bool contains_any(std::string_view name, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

// Optimizer.step#..., enumerate(DataLoader)..., ProfilerStep#...: torch before 1.11 writes its own
// ranges as operators.
bool is_step_of_loop(std::string_view name);

// Ranges of libraries, of compilers, and of parts of a model: they repeat within an iteration.
bool is_part_of_iteration(std::string_view name);

}  // namespace lanescope::analysis
