// `lanescope tree` as text for people and as JSON.
#pragma once
#include <string>

#include "lanescope/analysis/dispatch_tree.h"

namespace lanescope::report {

struct TreeTextOptions {
  int width = 120;     // columns of a line, at least 80; longer names are cut
  int max_rows = 400;  // rows printed; one line counts the rest. Negative: all
  bool color = false;  // ANSI colours, for terminals only
};

// One line per node: start, total, self and device time, the gap before it, then the indented name.
// Device work is below its launch call; instead of a gap it has the delay from the start of the
// call to its own start. Ends in a newline. For an empty tree, one line that says so.
std::string dispatch_tree_text(const analysis::DispatchTree& tree,
                               const TreeTextOptions& options = {});

// docs/formats/json_output.md, command "tree": the whole tree.
std::string dispatch_tree_json(const analysis::DispatchTree& tree);

}  // namespace lanescope::report
