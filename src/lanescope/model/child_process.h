// Processes of a trace that the recorded process started, and of which it has samples only.
#pragma once
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope {

// Their label ("process_labels" in a JSON file), where others have "CPU" and "GPU 0".
inline constexpr std::string_view kChildProcessLabel = "Child process";
// How the name of a DataLoader's worker begins; its process number follows.
inline constexpr std::string_view kLoaderWorkerName = "DataLoader worker";

// Of a Python frame's name: torch/utils/data/_utils/worker.py(231): _worker_loop.
inline bool is_loader_worker_loop(std::string_view function) {
  return function.ends_with(": _worker_loop") &&
         function.find("_utils/worker.py(") != std::string_view::npos;
}

inline bool is_child_process(const Trace& trace, const Process& process) {
  return process.labels != kNone<StringId> && trace.text(process.labels) == kChildProcessLabel;
}

}  // namespace lanescope
