// Which slices of a thread take part in its nesting. Internal to analysis/.
#pragma once
#include "lanescope/model/category.h"

namespace lanescope::analysis {

inline bool takes_part_in_nesting(CategoryKind kind, bool python_frames) {
  if (kind == CategoryKind::kPythonFunction) return python_frames;
  return is_front_end(kind) || is_api_call(kind) || kind == CategoryKind::kOther ||
         kind == CategoryKind::kNone;
}

}  // namespace lanescope::analysis
