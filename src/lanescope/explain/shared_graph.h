// The dependency graph of a recording, for all who read it at the same time: it is the largest thing
// that an explanation makes of a trace.
#pragma once
#include <memory>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::explain {

// What the graph of these Facts is built from; they have a main device and a host timeline.
// Borrows them.
class GraphSource {
 public:
  explicit GraphSource(const Facts& facts);
  simulate::GraphInput input() const;

 private:
  const Facts& facts_;
  std::vector<const analysis::DeviceTimeline*> devices_;
  TrackId main_thread_;  // of the marked steps, else the thread that launches most
};

// The graph of these facts, from build_graph(). All who hold it at the same time share one graph;
// it is freed with the last of them. Any thread; waits while another one builds it. O(n log n).
std::shared_ptr<const simulate::StepGraph> step_graph(const Facts& facts);

// While this exists, the graph stays: rules and the replay do not build it once each.
class KeptGraph {
 public:
  explicit KeptGraph(const Facts& facts);
  KeptGraph(const KeptGraph&) = delete;
  KeptGraph& operator=(const KeptGraph&) = delete;
  ~KeptGraph();

 private:
  GraphSlot& slot_;
};

}  // namespace lanescope::explain
