// Writes the lanes that `lanescope view` made into the indexes of its traces, while it serves the page.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/format/index_file/kept_sections.h"
#include "lanescope/server/trace_state.h"

namespace lanescope::cli {

struct KeptTrace {
  std::string path;
  std::shared_ptr<const server::TraceState> state;
  format::KeptSections kept;  // as the trace was opened
};

class ViewKeeper {
 public:
  // Starts a thread, which begins when the first pictures are drawn.
  explicit ViewKeeper(std::vector<KeptTrace> traces);
  // Waits for an index that is being written.
  ~ViewKeeper();
  ViewKeeper(const ViewKeeper&) = delete;
  ViewKeeper& operator=(const ViewKeeper&) = delete;

 private:
  void run();

  const std::vector<KeptTrace> traces_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace lanescope::cli
