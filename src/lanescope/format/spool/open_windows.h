// The windows of a recording that have started and not yet stopped. A repeating schedule makes thousands
// of windows, so a stop must not search all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace lanescope::format {

// Windows are indexes into the caller's list.
class OpenWindows {
 public:
  void started(std::uint32_t session, std::uint32_t cycle, std::size_t window) {
    open_[{session, cycle}].push_back(window);
  }
  // Takes the windows of that cycle, in order. Usually one; in damaged files several or none.
  std::vector<std::size_t> stopped(std::uint32_t session, std::uint32_t cycle) {
    const auto found = open_.find({session, cycle});
    if (found == open_.end()) return {};
    std::vector<std::size_t> windows = std::move(found->second);
    open_.erase(found);
    looks_ += windows.size();
    return windows;
  }
  // How many windows all stops together have checked.
  std::size_t looks() const { return looks_; }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> open_;
  std::size_t looks_ = 0;
};

}  // namespace lanescope::format
