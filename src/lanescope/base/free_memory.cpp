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

// "active_file 4096", as a group's memory.stat has it.
std::uint64_t bytes_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  for (std::uint64_t value = 0; file >> word >> value;)
    if (word == name) return value;
  return 0;
}

// "MemAvailable:   17825 kB", as /proc has it.
std::optional<std::uint64_t> kib_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return std::stoull(line.substr(name.size())) * 1024;
  return std::nullopt;
}

// How the files of one version are called.
struct Version {
  std::string_view folder, limit, used, active_files, inactive_files;
};
constexpr Version kSecond = {"/sys/fs/cgroup", "memory.max", "memory.current", "active_file",
                             "inactive_file"};
constexpr Version kFirst = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                            "memory.usage_in_bytes", "total_active_file", "total_inactive_file"};
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;  // version 1 says 2^63 less a page

std::uint64_t difference(std::uint64_t all, std::uint64_t part) {
  return all - std::min(all, part);
}

std::uint64_t swap_of(const std::string& folder, const Version& version, std::uint64_t limit,
                      std::uint64_t on_machine) {
  if (version.limit == kSecond.limit) {
    const auto most = number_in(folder + "memory.swap.max");
    const std::uint64_t used = number_in(folder + "memory.swap.current").value_or(0);
    return most ? std::min(on_machine, difference(*most, used)) : on_machine;
  }
  const auto with_swap = number_in(folder + "memory.memsw.limit_in_bytes");
  return with_swap ? std::min(on_machine, difference(*with_swap, limit)) : on_machine;
}

// A limit of a group holds for all groups in it.
void take_groups(std::optional<GroupMemory>& least, const std::string& root, std::string group,
                 const Version& version, std::uint64_t swap_on_machine) {
  for (;;) {
    std::string folder = root;
    folder.append(version.folder).append(group).append("/");
    const auto in = [&](std::string_view name) { return std::string(folder).append(name); };
    if (const auto limit = number_in(in(version.limit)); limit && *limit < kNoLimit) {
      const std::string details = in("memory.stat");
      const std::uint64_t files =
          bytes_of(details, version.active_files) + bytes_of(details, version.inactive_files);
      const std::uint64_t used = number_in(in(version.used)).value_or(0);
      const GroupMemory found = {*limit, difference(*limit, difference(used, files)),
                                 difference(*limit, used),
                                 swap_of(folder, version, *limit, swap_on_machine)};
      if (!least || found.free_bytes < least->free_bytes) least = found;
    }
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

std::optional<GroupMemory> group_memory(const std::string& root) {
  std::optional<GroupMemory> least;
  const std::uint64_t swap = kib_of(root + "/proc/meminfo", "SwapFree:").value_or(0);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/job/7", or "0::/job/7"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (kinds == ",,")
      take_groups(least, root, group, kSecond, swap);
    else if (kinds.find(",memory,") != std::string::npos)
      take_groups(least, root, group, kFirst, swap);
  }
  return least;
}

std::optional<std::uint64_t> free_memory_bytes() {
  std::optional<std::uint64_t> least = kib_of("/proc/meminfo", "MemAvailable:");
  const auto take = [&](std::uint64_t bytes) { least = std::min(least.value_or(bytes), bytes); };
  if (const auto group = group_memory()) take(group->free_bytes);
  rlimit data{};
  if (::getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
    take(difference(data.rlim_cur, kib_of("/proc/self/status", "VmData:").value_or(0)));
  return least;
}

}  // namespace lanescope
