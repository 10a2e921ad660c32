// What `lanescope doctor` looks at, one check a line: what is there, whether it works, what to do.
#pragma once
#include <string>
#include <vector>

#include "lanescope/cli/gpu_probe.h"

namespace lanescope::cli {

enum class Health { kOk, kNote, kProblem };  // kProblem: something that should work here does not

struct Check {
  std::string name;  // "driver", "disk", ...: what it is about
  Health health = Health::kOk;
  std::string text = {};    // one line
  std::string remedy = {};  // what to do; empty when there is nothing to do
};

const char* health_word(Health health);  // "ok", "note", "problem"

// The recorder itself: a range is recorded into a temporary file and read back.
Check check_recorder();
// Free space of the folder for temporary files, where recordings of the API lie.
Check check_disk();
// The counter that times come from: the same on all cores, and how long one reading takes.
Check check_clock();
// Driver, GPUs, CUPTI, permission, the probe. `library` as for look_at_gpu().
std::vector<Check> check_gpu(const GpuReport& report, const std::string& library);
// Other profilers in the environment or in this process.
Check check_other_tools();
// The package lanescope of `python`, its torch, the torch observer. Starts that Python once.
std::vector<Check> check_python(const std::string& python);

}  // namespace lanescope::cli
