// The checks of `lanescope doctor`, one per line: what is there, whether it works, what to do.
#pragma once
#include <string>
#include <vector>

#include "lanescope/cli/gpu_probe.h"

namespace lanescope::cli {

enum class Health { kOk, kNote, kProblem };  // kProblem: something should work here but does not

struct Check {
  std::string name;  // "driver", "disk", ...: what it is about
  Health health = Health::kOk;
  std::string text = {};    // one line
  std::string remedy = {};  // what to do; empty: nothing
};

const char* health_word(Health health);  // "ok", "note", "problem"

// The recorder: records a range into a temporary file and reads it back.
Check check_recorder();
// Free space in the folder for temporary files, which the API records to.
Check check_disk();
// The tick counter: whether it is the same on all cores, and how long one reading takes.
Check check_clock();
// Driver, GPUs, CUPTI, permission, the probe. `library`: as in look_at_gpu().
std::vector<Check> check_gpu(const GpuReport& report, const std::string& library);
// Other profilers in the environment or in this process.
Check check_other_tools();
// The package lanescope of `python`, its torch, the torch observer. Starts `python` once.
std::vector<Check> check_python(const std::string& python);

}  // namespace lanescope::cli
