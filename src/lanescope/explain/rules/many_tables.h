// Steps that look rows up in many tables, each with a gradient of its own.
#pragma once
#include <cstddef>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// How many lookups of a step have a gradient of their own: a node of autograd for a lookup, and right after it the one that adds to a
// parameter's gradient. Gradients of several lookups in one table are added up first. 0: most have none.
std::size_t tables_with_own_gradient(const Facts& facts);
inline constexpr std::size_t kManyTables = 8;
// There are fewer such tables in a step, or, where sizes are recorded, they have fewer rows together than are looked up.
bool is_not_of_many_tables(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
