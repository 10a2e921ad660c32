// How many cores this thread may run on.
#pragma once

namespace lanescope {

// At least 1. Counts what taskset, a job scheduler or a container leaves, which
// std::thread::hardware_concurrency() does not. It ignores quotas of CPU time. Any thread; one
// system call.
unsigned usable_cores();

}  // namespace lanescope
