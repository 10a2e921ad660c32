// `lanescope roofline` as text and as JSON.
#pragma once
#include <cstddef>
#include <string>

#include "lanescope/analysis/roofline.h"
#include "lanescope/explain/facts.h"

namespace lanescope::report {

// The GPU's peaks, the time of each class, and the calls with most time, at most `rows`. Names and
// shapes are shortened, control characters replaced. For facts without a main device, one line that
// says so.
std::string roofline_text(const explain::Facts& facts, const analysis::Roofline& roofline,
                          std::size_t rows);

// docs/formats/json_output.md, command "roofline": all rows.
std::string roofline_json(const explain::Facts& facts, const analysis::Roofline& roofline);

}  // namespace lanescope::report
