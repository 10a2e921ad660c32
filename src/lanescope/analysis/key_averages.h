// Time per operator name: the table that people read first.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/analysis/torch_events.h"
#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct KeyAveragesOptions {
  TableStyle style = TableStyle::kTorch;
  bool group_by_input_shape = false;
  int group_by_stack_n = 0;  // 0: not at all
  bool group_by_overload_name = false;
};

// One group of rows. Nanoseconds and bytes; each field is defined in
// docs/definitions/key_averages.md.
struct KeyAverage {
  std::string name;
  std::string overload_name;       // with group_by_overload_name
  std::string input_shapes;        // with group_by_input_shape: "[[4, 8], []]"
  std::vector<std::string> stack;  // with group_by_stack_n, innermost frame first
  bool on_device = false;
  bool is_annotation = false;
  bool is_overhead = false;
  bool is_async = false;
  bool is_top_level = false;  // the group's first member is inside no other row
  // that member, in TorchEvents of the same style
  std::uint32_t first_event = TorchEvent::kNoEvent;
  std::int64_t count = 0;
  std::int64_t cpu_time_total_ns = 0, self_cpu_time_total_ns = 0;
  std::int64_t cpu_time_union_ns = 0;  // kLanescope: nested calls on a thread count once
  std::int64_t device_time_total_ns = 0, self_device_time_total_ns = 0;
  std::int64_t cpu_memory_bytes = 0, self_cpu_memory_bytes = 0;
  std::int64_t device_memory_bytes = 0, self_device_memory_bytes = 0;
  std::uint64_t flops = 0;
  // The same times in microseconds, summed in doubles as in torch. Text and order of --style
  // torch use these.
  double cpu_time_total_us = 0, self_cpu_time_total_us = 0;
  double device_time_total_us = 0, self_device_time_total_us = 0;
};

struct KeyAverages {
  TableStyle style = TableStyle::kTorch;
  std::string device;           // "cuda", "xpu", ...; empty: no device activity in the trace
  bool profile_memory = false;  // the table shows memory columns
  bool with_flops = false;
  std::vector<KeyAverage> rows;         // in order of first appearance
  std::int64_t device_busy_ns = 0;      // union of device work intervals, summed over devices
  std::int32_t device_count = 0;        // that work
  std::int64_t window_ns = 0;           // length of the capture window
  std::int64_t device_window_ns = 0;    // the same, extended to include all device work
  TorchEventsNotes corrections;         // kLanescope: what was left out or corrected
  std::int64_t annotation_span_ns = 0;  // kLanescope: GPU annotation bars, idle gaps included ...
  // ... and the device work inside them, which is what their rows show
  std::int64_t annotation_busy_ns = 0;
};

// kInvalidArgument: group_by_stack_n < 0. An empty trace gives no rows. One pass after
// build_torch_events. Any thread.
Result<KeyAverages> compute_key_averages(const Trace& trace,
                                         const KeyAveragesOptions& options = {});

}  // namespace lanescope::analysis
