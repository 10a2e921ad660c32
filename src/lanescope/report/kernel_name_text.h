// What names of kernels say, for `lanescope describe`: as text and as JSON.
#pragma once
#include <string>

#include "lanescope/analysis/kernel_name_totals.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::report {

// The short text, then one indented line per field that the name gives; "unknown" if nothing was
// recognised. Ends in a newline. Control characters become '?'.
std::string kernel_name_text(const names::KernelName& name);

// docs/formats/json_output.md, command "name": writes the fields into the open object.
void write_kernel_name(const names::KernelName& name, JsonWriter& json);

// One line per name of the trace's device work, largest total first: total time, share, count,
// readable and raw name. The last line says what share of GPU time has known names. row_limit -1:
// all names.
std::string kernel_name_totals_text(const Trace& trace, const analysis::KernelNameTotals& totals,
                                    int row_limit);
std::string kernel_name_totals_json(const Trace& trace, const analysis::KernelNameTotals& totals,
                                    int row_limit);

}  // namespace lanescope::report
