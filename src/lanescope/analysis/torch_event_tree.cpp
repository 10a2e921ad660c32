// Rules 4 and 5 of docs/definitions/key_averages.md: who called whom. One pass with a stack a thread.
#include <cstdint>
#include <vector>

#include "lanescope/analysis/torch_event_stages.h"

namespace lanescope::analysis {
namespace {

void merge_into_parent(TorchEvent& event, TorchEvent& parent, TorchEvents& out) {
  parent.first_child = event.first_child;
  parent.last_child = event.last_child;
  parent.child_count = event.child_count;
  for (std::uint32_t child = event.first_child; child != TorchEvent::kNoEvent;
       child = out.events[child].next_sibling)
    out.events[child].parent = event.parent;
  if (out.style == TableStyle::kTorch || parent.kernels_count == 0) {
    parent.kernels_first = event.kernels_first;
    parent.kernels_count = event.kernels_count;
  } else if (event.kernels_count > 0) {
    const auto first = static_cast<std::uint32_t>(out.kernels.size());
    for (const TorchEvent* from : {&parent, &event})
      for (std::uint32_t k = 0; k < from->kernels_count; ++k)
        out.kernels.push_back(out.kernels[from->kernels_first + k]);
    parent.kernels_count += event.kernels_count;
    parent.kernels_first = first;
  }
  event.is_removed = true;
}

}  // namespace

// Rule 4.
void build_tree(const Trace& trace, TorchEvents& out) {
  std::vector<std::vector<std::uint32_t>> open(trace.tracks().size());
  for (std::uint32_t i = 0; i < out.events.size(); ++i) {
    TorchEvent& event = out.events[i];
    if (event.on_device || event.is_async) continue;
    std::vector<std::uint32_t>& stack = open[event.thread];
    while (!stack.empty()) {
      TorchEvent& parent = out.events[stack.back()];
      if (event.start_ns >= parent.end_ns || event.end_ns > parent.end_ns) {
        stack.pop_back();
        continue;
      }
      event.parent = stack.back();
      (parent.first_child == TorchEvent::kNoEvent ? parent.first_child
                                                  : out.events[parent.last_child].next_sibling) = i;
      parent.last_child = i;
      ++parent.child_count;
      break;
    }
    stack.push_back(i);
  }
}

// Rule 5: an only child with its parent's name is one call seen twice. In torch, the child's
// kernels replace the parent's; kLanescope keeps both. Repeats until there is none.
void merge_same_names(TorchEvents& out) {
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t i = 0; i < out.events.size(); ++i) candidates.push_back(i);
  bool removed_any = true;
  while (removed_any) {
    removed_any = false;
    std::vector<std::uint32_t> rest;
    for (const std::uint32_t i : candidates) {
      TorchEvent& event = out.events[i];
      if (event.parent == TorchEvent::kNoEvent) continue;
      TorchEvent& parent = out.events[event.parent];
      if (parent.name != event.name) continue;
      rest.push_back(i);
      if (parent.child_count != 1) continue;
      merge_into_parent(event, parent, out);
      rest.pop_back();
      removed_any = true;
    }
    candidates.swap(rest);
  }
}

}  // namespace lanescope::analysis
