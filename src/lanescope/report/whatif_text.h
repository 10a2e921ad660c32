// The text and JSON of `lanescope whatif`. docs/definitions/whatif.md.
#pragma once
#include <span>
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/report/critical_path_text.h"
#include "lanescope/simulate/predict.h"

namespace lanescope::report {

// The recorded step, and the step after the given changes.
std::string whatif_text(const explain::Facts& facts, const simulate::Simulation& simulation,
                        const simulate::Prediction& prediction,
                        std::span<const simulate::Change> changes);
// A row for each change that, made alone, gains something.
std::string whatif_table_text(const explain::Facts& facts, const simulate::Simulation& simulation,
                              std::span<const simulate::Candidate> candidates);
// Where the time along the critical path of the recording goes, and what is off it.
std::string critical_path_text(const explain::Facts& facts, const simulate::Simulation& simulation,
                               const CriticalPathReport& report);
// Everything; without `prediction` the path if there is one, else the candidates.
std::string whatif_json(const explain::Facts& facts, const simulate::Simulation& simulation,
                        const simulate::Prediction* prediction,
                        std::span<const simulate::Change> changes,
                        std::span<const simulate::Candidate> candidates,
                        const CriticalPathReport* path);

}  // namespace lanescope::report
