// Rule 8 of docs/definitions/key_averages.md: the order of the rows, as torch has it.
#include "lanescope/report/key_averages_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lanescope/base/sort_rows.h"

namespace lanescope::report {

using analysis::KeyAverage;
using analysis::KeyAverages;

namespace {

constexpr std::array<std::string_view, 35> kSortKeys{"cpu_time",
                                                     "cpu_time_total",
                                                     "self_cpu_time_total",
                                                     "device_time",
                                                     "device_time_total",
                                                     "self_device_time_total",
                                                     "cuda_time",
                                                     "cuda_time_total",
                                                     "self_cuda_time_total",
                                                     "xpu_time",
                                                     "xpu_time_total",
                                                     "self_xpu_time_total",
                                                     "privateuse1_time",
                                                     "privateuse1_time_total",
                                                     "self_privateuse1_time_total",
                                                     "cpu_memory_usage",
                                                     "self_cpu_memory_usage",
                                                     "device_memory_usage",
                                                     "self_device_memory_usage",
                                                     "cuda_memory_usage",
                                                     "self_cuda_memory_usage",
                                                     "xpu_memory_usage",
                                                     "self_xpu_memory_usage",
                                                     "privateuse1_memory_usage",
                                                     "self_privateuse1_memory_usage",
                                                     "count",
                                                     "flops",
                                                     "key",
                                                     "input_shapes",
                                                     "overload_name",
                                                     "node_id",
                                                     "is_async",
                                                     "is_remote",
                                                     "is_legacy",
                                                     "is_user_annotation"};

// The value torch sorts by; text keys are handled by their own comparison.
double sort_value(const KeyAverage& row, std::string_view key) {
  if (key == "cpu_time") return average_us(row.cpu_time_total_us, row);
  if (key == "cpu_time_total") return row.cpu_time_total_us;
  if (key == "self_cpu_time_total") return row.self_cpu_time_total_us;
  if (key == "device_time") return average_us(row.device_time_total_us, row);
  if (key == "device_time_total") return row.device_time_total_us;
  if (key == "self_device_time_total") return row.self_device_time_total_us;
  if (key == "cpu_memory_usage") return static_cast<double>(row.cpu_memory_bytes);
  if (key == "self_cpu_memory_usage") return static_cast<double>(row.self_cpu_memory_bytes);
  if (key == "device_memory_usage") return static_cast<double>(row.device_memory_bytes);
  if (key == "self_device_memory_usage") return static_cast<double>(row.self_device_memory_bytes);
  if (key == "count") return static_cast<double>(row.count);
  if (key == "flops") return static_cast<double>(row.flops);
  if (key == "is_async") return row.is_async ? 1 : 0;
  if (key == "is_user_annotation") return row.is_annotation ? 1 : 0;
  return 0;  // node_id, is_remote, is_legacy: the same for every row of a Kineto file
}

std::string with_device_alias(std::string_view key) {
  for (const std::string_view alias : {"cuda", "xpu", "privateuse1"})
    if (const std::size_t at = key.find(alias); at != key.npos)
      return std::string(key.substr(0, at)) + "device" + std::string(key.substr(at + alias.size()));
  return std::string(key);
}

}  // namespace

std::span<const std::string_view> table_sort_keys() { return kSortKeys; }

double average_us(double total_us, const KeyAverage& row) {
  return row.count == 0 ? 0.0 : total_us / static_cast<double>(row.count);
}

Result<std::vector<const KeyAverage*>> sorted_rows(const KeyAverages& table,
                                                   const std::string& sort_by) {
  std::vector<const KeyAverage*> rows;
  for (const KeyAverage& row : table.rows) rows.push_back(&row);
  if (sort_by.empty()) return rows;
  if (std::find(kSortKeys.begin(), kSortKeys.end(), sort_by) == kSortKeys.end())
    return Error{Errc::kInvalidArgument,
                 fmt::format("unknown sort key '{}'; the table sorts by one of: {}", sort_by,
                             fmt::join(kSortKeys, ", "))};
  const std::string key = with_device_alias(sort_by);
  const auto by_text = [&](const std::string KeyAverage::*field) {
    sort_rows(rows.begin(), rows.end(),
              [&](const KeyAverage* a, const KeyAverage* b) { return a->*field > b->*field; });
  };
  if (key == "key")
    by_text(&KeyAverage::name);
  else if (key == "input_shapes")
    by_text(&KeyAverage::input_shapes);
  else if (key == "overload_name")
    by_text(&KeyAverage::overload_name);
  else
    sort_rows(rows.begin(), rows.end(), [&](const KeyAverage* a, const KeyAverage* b) {
      return sort_value(*a, key) > sort_value(*b, key);
    });
  return rows;
}

std::vector<const KeyAverage*> shown_rows(const std::vector<const KeyAverage*>& rows,
                                          const TableOptions& options) {
  std::vector<const KeyAverage*> shown;
  for (const KeyAverage* row : rows) {
    if (options.row_limit >= 0 && shown.size() >= static_cast<std::size_t>(options.row_limit))
      break;
    if (!options.top_level_events_only || row->is_top_level) shown.push_back(row);
  }
  return shown;
}

}  // namespace lanescope::report
