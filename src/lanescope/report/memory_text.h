// `lanescope memory` as text and as JSON.
#pragma once
#include <cstddef>
#include <string>

#include "lanescope/analysis/memory_timeline.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// "aten::linear in forward, train.py(31): step"; unknown parts are left out. If all are unknown:
// "outside any operator". Control characters in names are replaced.
std::string memory_owner_text(const Trace& trace, const analysis::MemoryOwner& owner);

// One section per device, accelerators first: levels over time, what held the peak, steps, what was
// not freed. Lists have at most `rows` rows; the list of steps
// also has the last step. Numbers: docs/definitions/memory.md.
std::string memory_text(const Trace& trace, const analysis::MemoryTimeline& timeline,
                        std::size_t rows);

// docs/formats/json_output.md, command "memory": every record, every owner.
std::string memory_json(const Trace& trace, const analysis::MemoryTimeline& timeline);

}  // namespace lanescope::report
