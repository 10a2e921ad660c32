// What to do about waits for the GPU, by the operator that waits.
#pragma once
#include <string_view>
#include <utility>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rule.h"
#include "lanescope/explain/rules/host_syncs.h"

namespace lanescope::explain::rules {

// The name of what waits. For a node of autograd, without the words that the engine puts before its name.
Value asker_name(std::string_view label);

// True: the operator makes copies for itself. Nobody can pin what they copy.
bool converts_layout(std::string_view op);

// One line for the first screen. `ranked`: one of HostSyncs::ranked.
Sentence remedy_for_waits(const Facts& facts, const std::pair<std::string_view, SyncGroup>& ranked);

}  // namespace lanescope::explain::rules
