#include "lanescope/cli/table_text.h"

#include "lanescope/analysis/key_averages.h"
#include "lanescope/report/key_averages_table.h"

namespace lanescope::cli {

const char* usual_sort_key(bool has_device) {
  return has_device ? "self_device_time_total" : "self_cpu_time_total";
}

Result<std::string> usual_table_text(const Trace& trace, int row_limit) {
  analysis::KeyAveragesOptions grouping;
  grouping.style = analysis::TableStyle::kLanescope;
  LANESCOPE_TRY(const auto table, analysis::compute_key_averages(trace, grouping));
  report::TableOptions options;
  options.readable_names = true;
  options.row_limit = row_limit;
  options.sort_by = usual_sort_key(!table.device.empty());
  return report::key_averages_text(table, options);
}

}  // namespace lanescope::cli
