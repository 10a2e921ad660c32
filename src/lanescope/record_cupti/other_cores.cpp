#include "lanescope/record_cupti/other_cores.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string>

namespace lanescope::record_cupti {
namespace {

constexpr int kProcessorField = 36;  // in /proc/PID/stat, counted from the one after the name

std::string text_of(const std::string& path) {
  char text[1024];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

void move_all_threads(const cpu_set_t& cores) {
  DIR* const tasks = opendir("/proc/self/task");
  if (!tasks) return;
  while (const dirent* entry = readdir(tasks)) {
    const std::string_view name = entry->d_name;
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc())
      sched_setaffinity(thread, sizeof cores, &cores);
  }
  closedir(tasks);
}

}  // namespace

std::vector<int> cores_in(std::string_view list) {
  std::vector<int> cores;
  while (true) {
    int first = 0;
    auto [at, error] = std::from_chars(list.data(), list.data() + list.size(), first);
    if (error != std::errc()) return cores;
    list.remove_prefix(static_cast<std::size_t>(at - list.data()));
    int last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      const auto [end, wrong] = std::from_chars(list.data(), list.data() + list.size(), last);
      if (wrong != std::errc()) return cores;
      list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    }
    for (int core = first; core <= last && core < CPU_SETSIZE; ++core) cores.push_back(core);
    if (!list.starts_with(',')) return cores;
    list.remove_prefix(1);
  }
}

int core_in_stat(std::string_view stat) {
  // The name before it may have spaces and brackets.
  const std::size_t name = stat.rfind(") ");
  if (name == std::string_view::npos) return -1;
  stat.remove_prefix(name + 2);
  for (int field = 0; field < kProcessorField; ++field) {
    const std::size_t space = stat.find(' ');
    if (space == std::string_view::npos) return -1;
    stat.remove_prefix(space + 1);
  }
  int core = -1;
  std::from_chars(stat.data(), stat.data() + stat.size(), core);
  return core;
}

cpu_set_t other_cores(const cpu_set_t& allowed, int core, const std::vector<int>& siblings) {
  cpu_set_t cores = allowed;
  const auto leave_out = [&](int one) {
    if (one >= 0 && one < CPU_SETSIZE) CPU_CLR(static_cast<std::size_t>(one), &cores);
  };
  if (core < 0) return allowed;
  leave_out(core);
  for (const int sibling : siblings) leave_out(sibling);
  if (siblings.size() < 2) leave_out(core ^ 1);
  return CPU_COUNT(&cores) == 0 ? allowed : cores;
}

OtherCores::OtherCores(pid_t program) : program_(program) {
  CPU_ZERO(&allowed_);
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) program_ = 0;
}

void OtherCores::move() {
  if (program_ == 0) return;
  const int core = core_in_stat(text_of("/proc/" + std::to_string(program_) + "/stat"));
  if (core == core_ || core < 0) return;
  core_ = core;
  const std::string siblings = text_of("/sys/devices/system/cpu/cpu" + std::to_string(core) +
                                       "/topology/thread_siblings_list");
  move_all_threads(other_cores(allowed_, core, cores_in(siblings)));
}

}  // namespace lanescope::record_cupti
