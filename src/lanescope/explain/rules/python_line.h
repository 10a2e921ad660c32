// The Python line that a slice comes from, for those who have no Facts.
#pragma once
#include <span>
#include <string>

#include "lanescope/explain/frames_around.h"

namespace lanescope::explain::rules {

struct PythonPlace {
  std::string frame;     // "train.py(31): main"; empty: not recorded
  bool is_call = false;  // its line is that of the call; else that of the function's `def`
};
// Its frame is python_line() of evidence.h. `outward`: the slice itself, its parent and so on. Not empty.
PythonPlace python_place(const FramesAround& frames, std::span<const SliceId> outward);

}  // namespace lanescope::explain::rules
