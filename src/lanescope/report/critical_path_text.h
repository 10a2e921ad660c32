// The text and JSON of `lanescope whatif --critical-path`. docs/definitions/whatif.md#critical-path.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/simulate/path_chain.h"
#include "lanescope/simulate/predict.h"
#include "lanescope/simulate/slack.h"

namespace lanescope::report {

// What the recorded step's time is spent on, and what may take longer.
struct CriticalPathReport {
  simulate::Chain chain;
  simulate::Slack slack;
};

// Replays the recording once more and computes the nesting with Python frames. O(n).
CriticalPathReport critical_path_report(const explain::Facts& facts,
                                        const simulate::Simulation& simulation);
// The tables between the shares and the sentence on how sure.
std::string chain_text(const explain::Facts& facts, const simulate::Chain& chain);
std::string slack_text(const explain::Facts& facts, const simulate::Slack& slack);
// Members "chain" and "slack" of the object that is open.
void critical_path_json(JsonWriter& json, const explain::Facts& facts,
                        const CriticalPathReport& report);

}  // namespace lanescope::report
