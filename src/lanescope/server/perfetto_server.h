// Hands one trace to Perfetto's page, ui.perfetto.dev, which fetches it from this machine. The page
// reads the trace in the browser and sends it nowhere.
#pragma once
#include <functional>
#include <string>

#include "lanescope/base/result.h"

namespace lanescope::server {

// The port that Perfetto's policy allows.
inline constexpr int kPerfettoPort = 9001;

// Serves `json` at 127.0.0.1:9001 and calls `ready` with the link for Perfetto. Returns when it was
// fetched once (true) or `is_ending` returns true. kIo: the port is taken.
Result<bool> serve_to_perfetto(const std::string& json,
                               const std::function<void(const std::string& link)>& ready,
                               const std::function<bool()>& is_ending);

}  // namespace lanescope::server
