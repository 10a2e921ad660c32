// Kernels whose code was loaded during the recording: module loads, and first launches that are far
// longer than later ones. docs/rules/lazy-loading.md
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rules/evidence.h"

namespace lanescope::explain::rules {

struct CodeLoading {
  std::vector<analysis::Window> windows;  // of loads and long first launches; any order
  std::vector<SliceId> calls;             // of them
  std::map<std::string, Named> by_name;
  std::uint64_t first_launches = 0;
  std::uint64_t lone_launches = 0;  // of kernels with no later launches to compare
  std::int64_t median = 0;          // of launch calls
  std::int64_t total_ns = 0;
  std::int64_t idle_ns = 0;  // of the main device meanwhile
};

// None: less than 200 us. Needs a main device. O(n log n).
const std::optional<CodeLoading>& find_code_loading(const Facts& facts);

}  // namespace lanescope::explain::rules
