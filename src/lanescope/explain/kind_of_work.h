// What a piece of GPU work does, in the words of the first screen.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"

namespace lanescope::explain {

inline constexpr char kCastsAndCopies[] = "casts and copies";

// "matrix products", "elementwise"; empty: its name does not say.
std::string kind_of_work(const Facts& facts, SliceId work);

}  // namespace lanescope::explain
