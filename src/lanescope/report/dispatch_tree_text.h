// `lanescope tree` as text for people and as JSON.
#pragma once
#include <string>

#include "lanescope/analysis/dispatch_tree.h"

namespace lanescope::report {

struct TreeTextOptions {
  int width = 120;     // columns of a line; longer names are cut; at least 80 are used
  int max_rows = 400;  // rows printed; the rest is counted in one line. Negative: all
  bool color = false;  // ANSI colours, for terminals only
};

// One line a node: start, total, self and device time, the gap before it, then the indented name.
// Device work stands under its launch call, the delay from call to start in place of the gap. Ends
// in a newline. An empty tree says so.
std::string dispatch_tree_text(const analysis::DispatchTree& tree,
                               const TreeTextOptions& options = {});

// docs/formats/json_output.md, command "tree": everything, max_rows and width aside.
std::string dispatch_tree_json(const analysis::DispatchTree& tree);

}  // namespace lanescope::report
