#include "lanescope/base/free_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace lanescope {
namespace {

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;  // "max" is no number
  return std::nullopt;
}

// In kB, as /proc writes it: "MemAvailable:   17825 kB".
std::optional<std::uint64_t> field_of(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return std::stoull(line.substr(name.size())) * 1024;
  return std::nullopt;
}

class Least {
 public:
  void take(std::uint64_t bytes) { least_ = std::min(least_.value_or(bytes), bytes); }
  void take(std::optional<std::uint64_t> limit, std::optional<std::uint64_t> used) {
    if (limit) take(*limit - std::min(*limit, used.value_or(0)));
  }
  std::optional<std::uint64_t> value() const { return least_; }

 private:
  std::optional<std::uint64_t> least_;
};

// A limit of a group holds for all groups in it.
void take_groups(Least& least, std::string root, std::string group, const char* limit,
                 const char* used) {
  for (;;) {
    const std::string folder = root + group + "/";
    least.take(number_in(folder + limit), number_in(folder + used));
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

std::optional<std::uint64_t> free_memory_bytes() {
  Least least;
  if (const auto free = field_of("/proc/meminfo", "MemAvailable:")) least.take(*free);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/job/7", or "0::/job/7"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (kinds.empty())
      take_groups(least, "/sys/fs/cgroup", group, "memory.max", "memory.current");
    else if (("," + kinds + ",").find(",memory,") != std::string::npos)
      take_groups(least, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                  "memory.usage_in_bytes");
  }
  rlimit data{};
  if (::getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
    least.take(data.rlim_cur, field_of("/proc/self/status", "VmData:"));
  return least.value();
}

}  // namespace lanescope
