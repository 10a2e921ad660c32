// The table of key_averages as text, JSON and CSV.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/base/result.h"

namespace lanescope::report {

enum class TimeUnit : std::uint8_t { kAuto, kSeconds, kMilliseconds, kMicroseconds };

// torch's arguments of EventList.table(), with torch's names and defaults.
struct TableOptions {
  std::string sort_by = {};  // empty: order of first appearance. See table_sort_keys().
  int row_limit = 100;       // rows printed; negative: all of them
  std::optional<int> max_src_column_width = 75, max_name_column_width = 55,
                     max_shapes_column_width = 80;
  std::optional<std::string> header = {};
  bool top_level_events_only = false;
  TimeUnit time_unit = TimeUnit::kAuto;
  // Text only: shows kernels by their readable names (analysis/kernel_name.h). If different raw
  // names have the same readable name, their rows are numbered: "add, f32 (ATen elementwise) #2".
  bool readable_names = false;
};

// Every key that sort_by accepts, aliases included: cuda_*, xpu_* and privateuse1_* mean device_*.
std::span<const std::string_view> table_sort_keys();
// Accepts "s", "ms", "us". kInvalidArgument: another text; the message lists these three.
Result<TimeUnit> parse_time_unit(std::string_view text);

// TableStyle::kTorch: the text of torch's table(), byte for byte, without the newline that print()
// adds; empty without rows. TableStyle::kLanescope: the same columns, then notes on what differs
// from torch's table and by how much. kInvalidArgument: unknown sort key, a column width under 1.
Result<std::string> key_averages_text(const analysis::KeyAverages& table,
                                      const TableOptions& options = {});

// One object (docs/formats/json_output.md, command "table"). The rows are those of the text, in the
// same order.
Result<std::string> key_averages_json(const analysis::KeyAverages& table,
                                      const TableOptions& options = {});

// RFC 4180: one header line, then one line per row, ended by CRLF. Field names contain the unit.
Result<std::string> key_averages_csv(const analysis::KeyAverages& table,
                                     const TableOptions& options = {});

}  // namespace lanescope::report
