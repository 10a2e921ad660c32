// What events are, for `lanescope describe`: as text and as JSON.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "lanescope/analysis/event_name_totals.h"
#include "lanescope/names/event_name.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::report {

// The name (its first 500 bytes), then one indented paragraph per known fact, at most 100 columns
// wide. Ends in a newline. Control characters become '?'.
std::string event_name_text(std::string_view raw_name, const names::EventName& name);

// docs/formats/json_output.md, command "name": writes the fields of an event's name into the open
// object; `with_details`: also what its parameters say.
void write_event_name(const names::EventName& name, bool with_details, JsonWriter& json);

// Explains names of kernels and events, in the given order. A name that both can have is read as a
// kernel's. After the first unknown name, a line says which kinds of names can be explained.
std::string names_text(std::span<const std::string> raw_names);
// docs/formats/json_output.md, command "name".
std::string names_json(std::span<const std::string> raw_names);

// One row per group of names, by kind, largest total first: count, total time, name and what it is.
// The last line says how many events are known. row_limit -1: all rows.
std::string event_name_totals_text(const Trace& trace, const analysis::EventNameTotals& totals,
                                   int row_limit);
std::string event_name_totals_json(const Trace& trace, const analysis::EventNameTotals& totals,
                                   int row_limit);

}  // namespace lanescope::report
