// `lanescope name` as text and as JSON.
#pragma once
#include <string>

#include "lanescope/analysis/kernel_name.h"
#include "lanescope/analysis/kernel_name_totals.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::report {

// The short text, then one indented line a field that the name gives; "unknown" where nothing was
// recognised. Ends in a newline. Control characters become '?'.
std::string kernel_name_text(const analysis::KernelName& name);

// docs/formats/json_output.md, command "name": what a name says, into the object that is open.
void write_kernel_name(const analysis::KernelName& name, JsonWriter& json);

// One line a name of the trace's device work: total time, share, count, readable and raw name, the
// largest first; the last line says what share of GPU time was named.
std::string kernel_name_totals_text(const Trace& trace, const analysis::KernelNameTotals& totals,
                                    int row_limit);
std::string kernel_name_totals_json(const Trace& trace, const analysis::KernelNameTotals& totals,
                                    int row_limit);

}  // namespace lanescope::report
