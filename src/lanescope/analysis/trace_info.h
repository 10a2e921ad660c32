// What a trace is: its writer, device, time and contents, and what was lost.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/thinning.h"
#include "lanescope/model/gpu_catalog.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Unknown: absent or an empty text, never a guess. docs/definitions/reading.md#trace-info.
struct TraceInfo {
  std::string producer;                        // "torch.profiler (Kineto)", ..., "unknown"
  std::vector<std::string> producer_evidence;  // what in the file shows that, and the version
  std::string host_name, trace_id;
  std::vector<std::string> recorded_with;  // "record_shapes", "profile_memory", ... when on
  std::vector<std::pair<std::string, std::string>>
      versions;  // "cuda_runtime_version" -> "13000", as in the file

  struct Device {
    std::optional<std::int64_t> id, memory_bytes, compute_major, compute_minor,
        multiprocessor_count;
    std::string name;
    std::optional<std::int64_t> l2_bytes, memory_bandwidth_bytes_per_s;  // from the file, else from
                                                                         // the data sheet
    std::string data_sheet;  // which one; empty: unknown, and no peak rates
    GpuPeakRates peak;       // operations a second
  };
  std::vector<Device> devices;

  std::optional<std::int64_t> rank, world_size;
  std::string distributed_backend;

  std::int64_t window_ns = 0;       // length
  bool window_is_recorded = false;  // from the writer's span; else first start to last end
  std::optional<std::int64_t> window_start_unix_ns;  // absolute, if the file has its base time

  std::optional<RecordingCost> cost;  // with a budget
  std::optional<Thinning> thinning;

  struct Steps {
    std::uint64_t count = 0;
    std::int64_t first = 0, last = 0;
    std::int64_t shortest_ns = 0, median_ns = 0,
                 longest_ns = 0;  // CPU ranges; the device may finish later
  } steps;

  struct TrackRow {
    std::string process, name;             // from the file; empty: none
    std::optional<std::int64_t> pid, tid;  // threads; for streams device and stream
    std::uint64_t slice_count = 0;
    std::int64_t busy_ns = 0;  // union of the slices; for streams of device work only
  };
  std::vector<TrackRow> threads, streams;  // with at least one slice, in the file's order

  struct CategoryRow {
    std::string text;  // as the file spells it; empty: events without one
    CategoryKind kind = CategoryKind::kOther;
    std::uint64_t slice_count = 0, instant_count = 0;
    std::int64_t total_ns = 0;  // sum of durations; of Python frames the union of each thread
  };
  std::vector<CategoryRow> categories;  // most events first
  struct CounterRow {
    std::string process;                         // its label, else its name, else its pid
    std::string name, series;                    // as in the file: "SM active", "%"
    std::uint64_t sample_count = 0;              // at least 1
    double smallest = 0, mean = 0, largest = 0;  // the mean over the samples
  };
  std::vector<CounterRow> counters;  // in the file's order
  std::uint64_t slice_count = 0, instant_count = 0, flow_count = 0, counter_sample_count = 0;

  std::uint64_t device_work_count = 0,
                launched_count = 0;  // kernels, copies, memsets; those whose launch call is known

  struct Issue {
    ImportIssue issue;
    std::uint64_t count = 0;
    std::optional<std::uint64_t> first_offset;
  };
  std::vector<Issue> issues;  // lost first, then repaired, then notes
  std::uint64_t input_bytes = 0, unpacked_bytes = 0, event_count = 0;
  std::uint64_t memory_bytes = 0;  // of the Trace in this process
};

// "VizTracer", "Node.js": the program that wrote the trace, if it is known and not PyTorch; else empty.
std::string other_program_of(const Trace& trace);

// O(n log n) for the busy times. Any thread.
TraceInfo compute_trace_info(const Trace& trace);
// Only the parts that need no pass over all events. The rows of threads, streams, categories and
// counters, device_work_count and launched_count are left out.
TraceInfo describe_trace(const Trace& trace);

}  // namespace lanescope::analysis
