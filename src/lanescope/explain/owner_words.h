// An owner in words: who it is, and what kind of time it holds.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// "64 x aten::mm", "a loop of 64 x aten::mm"
Sentence owner_name(const Facts& facts, const Owner& owner);
// With its place: "64 x aten::mm, in range forward"
Sentence owner_text(const Facts& facts, const Owner& owner);
// With its mechanism: "64 x aten::mm, in range forward: launching: ..."
Sentence owner_sentence(const Facts& facts, const Owner& owner);

// For owners that are one operator at several lines: "3 x aten::sort, at a.py:7 f, b.py:9 g; the first: GPU work: ...".
Sentence owners_sentence(const Facts& facts, const std::vector<const Owner*>& owners);

}  // namespace lanescope::explain
