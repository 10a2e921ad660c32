#include "lanescope/explain/shared_graph.h"

#include <mutex>

namespace lanescope::explain {

struct GraphSlot {
  std::mutex mutex;  // guards the graph, and is held while it is built
  std::weak_ptr<const simulate::StepGraph> graph;
  bool keeps = false;
  std::shared_ptr<const simulate::StepGraph> kept;
};

std::shared_ptr<GraphSlot> make_graph_slot() { return std::make_shared<GraphSlot>(); }

GraphSource::GraphSource(const Facts& facts)
    : facts_(facts),
      main_thread_(facts.steps.marked
                       ? facts.trace->slices().track[raw(facts.steps.steps.front().slice)]
                       : facts.main_thread) {
  for (const DeviceFacts& device : facts.devices) devices_.push_back(&device.timeline);
}

simulate::GraphInput GraphSource::input() const {
  return {*facts_.trace,           facts_.links, *facts_.host,        facts_.steps,
          facts_.selection.steady, devices_,     *facts_.main_device, main_thread_};
}

std::shared_ptr<const simulate::StepGraph> step_graph(const Facts& facts) {
  GraphSlot& slot = *facts.graph;
  const std::lock_guard lock(slot.mutex);
  if (auto graph = slot.graph.lock()) return graph;
  const GraphSource source(facts);
  // Not make_shared: the memory of the graph itself would stay with the weak pointer.
  std::shared_ptr<const simulate::StepGraph> graph(
      new simulate::StepGraph(simulate::build_graph(source.input())));
  slot.graph = graph;
  if (slot.keeps) slot.kept = graph;
  return graph;
}

KeptGraph::KeptGraph(const Facts& facts) : slot_(*facts.graph) {
  const std::lock_guard lock(slot_.mutex);
  slot_.keeps = true;
}

KeptGraph::~KeptGraph() {
  const std::lock_guard lock(slot_.mutex);
  slot_.keeps = false;
  slot_.kept.reset();
}

}  // namespace lanescope::explain
