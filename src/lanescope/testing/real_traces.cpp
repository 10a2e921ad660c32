#include "lanescope/testing/real_traces.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace lanescope::testing {

namespace fs = std::filesystem;

fs::path shipped_traces() { return fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data"; }

fs::path odd_traces() { return fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "odd_traces"; }

fs::path shared_traces() {
  const char* folder = std::getenv("LANESCOPE_SHARED_TRACES");
  return folder ? fs::path(folder) : fs::path(LANESCOPE_SOURCE_DIR) / ".." / "shared" / "traces";
}

std::vector<fs::path> json_traces(const fs::path& root) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.find(".json") != name.npos && name != "FACTS.json")
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace lanescope::testing
