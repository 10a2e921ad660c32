// One opened trace with everything that questions about it need.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/analysis/key_averages.h"
#include "lanescope/base/result.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/format/index_file/kept_sections.h"
#include "lanescope/model/trace.h"
#include "lanescope/view/lanes.h"

namespace lanescope::server {

class TraceState {
 public:
  // `path` is what the page shows and what commands name. Errors: explain::gather_facts(). O(n log n).
  // `command`: the command line that prints what the page says; empty: the one of `lanescope explain`.
  static Result<std::shared_ptr<const TraceState>> make(Trace trace, std::string path,
                                                        std::string command = {});
  // Uses the lanes in its index if `kept` has them and they were checked. Then facts are gathered
  // only when a question first needs them, and this costs only the small tables.
  static Result<std::shared_ptr<const TraceState>> make(Trace trace, std::string path,
                                                        const format::KeptSections& kept);

  const Trace& trace() const { return trace_; }
  const std::string& path() const { return path_; }
  const std::string& command() const { return command_; }
  // The first call gathers the facts; others wait until that is done. Lanes and pictures do not need them. Any thread.
  const explain::Facts& facts() const;
  const view::Lanes& lanes() const { return *lanes_; }
  // Made when it is first asked for. Any thread.
  const explain::Explanation& explanation() const;
  // The same without waiting; nullptr: not there yet.
  const explain::Facts* known_facts() const {
    return has_facts_.load(std::memory_order_acquire) ? &*facts_ : nullptr;
  }
  const explain::Explanation* known_explanation() const {
    return has_explanation_.load(std::memory_order_acquire) ? &explanation_ : nullptr;
  }

  // Tables do not wait for facts. If there are none yet, a table computes only what it needs.
  const analysis::KeyAverages& key_averages() const;
  // The groups of all devices in the whole recording; most busy time first.
  const std::vector<analysis::KernelGroup>& kernel_groups() const;
  // The groups of all devices inside the window. O(n log n).
  std::vector<analysis::KernelGroup> kernel_groups_within(const analysis::Window& window) const;
  const analysis::MemoryTimeline& memory() const;

  TraceState(const TraceState&) = delete;
  TraceState& operator=(const TraceState&) = delete;

 private:
  TraceState(Trace trace, std::string path, std::string command)
      : trace_(std::move(trace)), path_(std::move(path)), command_(std::move(command)) {}

  Trace trace_;
  std::string path_, command_;
  mutable std::optional<explain::Facts> facts_;  // refer to trace_
  std::unique_ptr<const view::Lanes> lanes_;
  mutable std::once_flag gathered_, explained_, averaged_, grouped_, remembered_;
  mutable analysis::KeyAverages key_averages_;
  mutable std::vector<analysis::KernelGroup> kernel_groups_;
  mutable bool memory_is_of_facts_ = false;
  mutable analysis::MemoryTimeline memory_;  // empty if memory() returns the one in the facts
  mutable explain::Explanation explanation_;
  // Set (release) once their values are complete; pair with the loads above.
  mutable std::atomic<bool> has_facts_{false}, has_explanation_{false};
};

}  // namespace lanescope::server
