// The rules as CMake finds them: each rules/<id>.cpp without a header of its name declares
// <id>_rule. For all_rules(), which puts them in order.
#pragma once
#include <span>

#include "lanescope/explain/rule.h"

namespace lanescope::explain {

std::span<const Rule* const> declared_rules();

}  // namespace lanescope::explain
