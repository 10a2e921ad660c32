// Child processes of the recorded process. The trace has only samples of them.
#pragma once
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope {

// Their label ("process_labels" in a JSON file). Other processes have "CPU" or "GPU 0".
inline constexpr std::string_view kChildProcessLabel = "Child process";
// How the name of a DataLoader's worker begins; its process number follows.
inline constexpr std::string_view kLoaderWorkerName = "DataLoader worker";

// `function`: a Python frame's name, such as torch/utils/data/_utils/worker.py(231): _worker_loop.
inline bool is_loader_worker_loop(std::string_view function) {
  return function.ends_with(": _worker_loop") &&
         function.find("_utils/worker.py(") != std::string_view::npos;
}

inline bool is_child_process(const Trace& trace, const Process& process) {
  return process.labels != kNone<StringId> && trace.text(process.labels) == kChildProcessLabel;
}

}  // namespace lanescope
