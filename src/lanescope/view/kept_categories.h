// Which categories of a trace a user asks for: "kernel,gpu_memcpy". Defined in
// docs/definitions/reading.md#categories-alone.
#pragma once
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::view {

// By CategoryId: true if its slices and marks are asked for. Names are separated by commas. Each is a text of the file, or a word
// of torch 2 (category_kind_name()), which means all categories of that kind. kInvalidArgument: a name that is not in the
// trace; the message begins with "category", and lists those that are. O(names + categories), the message O(slices).
Result<std::vector<bool>> kept_categories(const Trace& trace, const std::string& names);

}  // namespace lanescope::view
