// The text and JSON of `lanescope whatif`. docs/definitions/whatif.md.
#pragma once
#include <span>
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/simulate/predict.h"

namespace lanescope::report {

// The recorded step and what the given changes make of it.
std::string whatif_text(const explain::Facts& facts, const simulate::Simulation& simulation,
                        const simulate::Prediction& prediction,
                        std::span<const simulate::Change> changes);
// A row for each change that gains something alone.
std::string whatif_table_text(const explain::Facts& facts, const simulate::Simulation& simulation,
                              std::span<const simulate::Candidate> candidates);
// Where the time along the critical path of the recording goes.
std::string critical_path_text(const explain::Facts& facts, const simulate::Simulation& simulation);
// Everything; without `prediction` the candidates.
std::string whatif_json(const explain::Facts& facts, const simulate::Simulation& simulation,
                        const simulate::Prediction* prediction,
                        std::span<const simulate::Change> changes,
                        std::span<const simulate::Candidate> candidates);

}  // namespace lanescope::report
