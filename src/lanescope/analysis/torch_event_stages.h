// What build_torch_events() does after it has collected the rows, in this order. Rule numbers are those
// of docs/definitions/key_averages.md. Private to torch_event*.cpp.
#pragma once
#include <cstdint>
#include <functional>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/torch_events.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

using NameIndex = std::function<std::uint32_t(StringId)>;  // into TorchEvents::names

// Rule 2: bytes of the rows, and rows for memory outside of all. O(n log n).
void add_memory(const Trace& trace, const NameIndex& name_index, TorchEvents& out);

// Rule 3, as torch joins them (kTorch), and corrected (kLanescope). Fill TorchEvents::kernels.
void link_by_external_id(const Trace& trace, TorchEvents& out);
void link_by_launch(const Trace& trace, const LaunchLinks& links, TorchEvents& out);

// Rule 4: parents and children.
void build_tree(const Trace& trace, TorchEvents& out);

// Rule 5: an only child with its parent's name goes into its parent.
void merge_same_names(TorchEvents& out);

}  // namespace lanescope::analysis
