// Which cores the process that samples may use: not the one that the recorded program's main thread
// is on, and not the one that shares its execution units with it.
#pragma once
#include <sched.h>
#include <sys/types.h>

#include <string_view>
#include <vector>

namespace lanescope::record_cupti {

// "0-3,8,10-11" of /sys/devices/system/cpu; anything else ends the list.
std::vector<int> cores_in(std::string_view list);

// The core that the process's main thread ran on last, from the text of /proc/PID/stat; -1: unknown.
int core_in_stat(std::string_view stat);

// `allowed` without `core` and its `siblings`. Virtual machines often hide siblings; then two cores
// whose numbers differ only in the last bit count as siblings. `allowed` itself if nothing is left.
cpu_set_t other_cores(const cpu_set_t& allowed, int core, const std::vector<int>& siblings);

// One thread.
class OtherCores {
 public:
  // `program`: 0: stays where it is.
  explicit OtherCores(pid_t program);
  // Moves all threads of this process when the program's main thread is on another core than
  // before. Some 20 us.
  void move();

 private:
  pid_t program_;
  int core_ = -1;
  cpu_set_t allowed_;
};

}  // namespace lanescope::record_cupti
