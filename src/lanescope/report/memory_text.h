// `lanescope memory` as text and as JSON.
#pragma once
#include <cstddef>
#include <string>

#include "lanescope/analysis/memory_timeline.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// "aten::linear in forward, train.py(31): step"; what is unknown is left out, all unknown:
// "outside any operator". Names of the trace, control characters replaced.
std::string memory_owner_text(const Trace& trace, const analysis::MemoryOwner& owner);

// A section a device, the accelerators first: levels over time, what held the peak, steps, what was
// not freed. Lists of owners end after `rows` rows. Numbers: docs/definitions/memory.md.
std::string memory_text(const Trace& trace, const analysis::MemoryTimeline& timeline,
                        std::size_t rows);

// docs/formats/json_output.md, command "memory": every record, every owner.
std::string memory_json(const Trace& trace, const analysis::MemoryTimeline& timeline);

}  // namespace lanescope::report
