#include "lanescope/explain/python_frames.h"

#include <fmt/format.h>

#include <algorithm>

namespace lanescope::explain {

bool has_python_frames(const Trace& trace) {
  return std::any_of(
      trace.categories().begin(), trace.categories().end(),
      [](const Category& each) { return each.kind == CategoryKind::kPythonFunction; });
}

std::string advise_python_frames(const Trace& trace, std::string_view there,
                                 std::string_view tell) {
  if (has_python_frames(trace)) return std::string(there);
  if (!trace.metadata_json("with_stack"))
    return fmt::format("record with with_stack=True: {}", tell);
  return fmt::format(
      "this trace has stacks and no Python frames (another profile hook was set, a budget left "
      "them out, or an older version recorded it); record again with them: {}",
      tell);
}

}  // namespace lanescope::explain
