// What events are, for `lanescope name`: as text and as JSON.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "lanescope/analysis/event_name.h"
#include "lanescope/analysis/event_name_totals.h"

namespace lanescope::report {

// The name (its first 500 bytes), then one indented paragraph a thing that is known, at most 100
// columns. Ends in a newline. Control characters become '?'.
std::string event_name_text(std::string_view raw_name, const analysis::EventName& name);

// Names of kernels and events in the order given, each as what it is; a name that may be both is a
// kernel's. Of the first name that nobody knows a line says what can be asked.
std::string names_text(std::span<const std::string> raw_names);
// docs/formats/json_output.md, command "name".
std::string names_json(std::span<const std::string> raw_names);

// By kind, the largest total first: count, total time, name and what it is; the last line says how
// many events are known. row_limit -1: all.
std::string event_name_totals_text(const Trace& trace, const analysis::EventNameTotals& totals,
                                   int row_limit);
std::string event_name_totals_json(const Trace& trace, const analysis::EventNameTotals& totals,
                                   int row_limit);

}  // namespace lanescope::report
