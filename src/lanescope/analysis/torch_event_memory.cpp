// Rule 2 of docs/definitions/key_averages.md: whose memory it is. Prefix sums of the records by time,
// and two binary searches a row.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "lanescope/analysis/torch_event_stages.h"

namespace lanescope::analysis {
namespace {

struct MemoryRecord {
  std::int64_t time_ns;
  std::int64_t cpu_bytes, device_bytes;
  TrackId track;
  std::uint32_t name;
  std::int32_t row_count;  // number of CPU rows, of any thread, around it
};

// DeviceType numbers of torch: c10/core/DeviceType.h.
bool is_cpu_memory(std::int64_t device_type) {
  return device_type == 0 || device_type == 2 || device_type == 5;
}
bool is_device_memory(std::int64_t device_type) {
  return device_type == 1 || device_type == 6 || device_type == 12 || device_type == 20;
}

// Gives each of `rows` the bytes inside it (both ends included); records outside of all
// go to `leftover`.
void own_memory(std::vector<MemoryRecord>& records, const std::vector<std::uint32_t>& rows,
                std::vector<MemoryRecord>& leftover, TorchEvents& out) {
  std::vector<std::int64_t> cpu(records.size() + 1, 0), device(records.size() + 1, 0);
  for (std::size_t i = 0; i < records.size(); ++i) {
    cpu[i + 1] = cpu[i] + records[i].cpu_bytes;
    device[i + 1] = device[i] + records[i].device_bytes;
  }
  std::vector<std::int32_t> cover(records.size() + 1, 0);
  for (const std::uint32_t row : rows) {
    TorchEvent& event = out.events[row];
    if (event.on_device) continue;
    const auto first = static_cast<std::size_t>(
        std::lower_bound(
            records.begin(), records.end(), event.start_ns,
            [](const MemoryRecord& record, std::int64_t time) { return record.time_ns < time; }) -
        records.begin());
    const auto last = static_cast<std::size_t>(
        std::upper_bound(
            records.begin(), records.end(), event.end_ns,
            [](std::int64_t time, const MemoryRecord& record) { return time < record.time_ns; }) -
        records.begin());
    event.cpu_memory_bytes = event.device_memory_bytes = 0;
    if (first >= last) continue;
    event.cpu_memory_bytes = cpu[last] - cpu[first];
    event.device_memory_bytes = device[last] - device[first];
    ++cover[first];
    --cover[last];
  }
  std::int32_t depth = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    depth += cover[i];
    if (depth == 0) leftover.push_back(records[i]);
    if (depth < records[i].row_count) ++out.notes.other_thread_memory_count;
    records[i].row_count = depth;
  }
}

void own_memory_by_thread(const Trace& trace, const std::vector<MemoryRecord>& records,
                          std::vector<MemoryRecord>& leftover, TorchEvents& out) {
  std::vector<std::vector<MemoryRecord>> thread_records(trace.tracks().size());
  std::vector<std::vector<std::uint32_t>> thread_events(trace.tracks().size());
  for (const MemoryRecord& record : records) thread_records[raw(record.track)].push_back(record);
  for (std::uint32_t i = 0; i < out.events.size(); ++i)
    thread_events[out.events[i].thread].push_back(i);
  leftover.clear();
  for (std::size_t t = 0; t < thread_records.size(); ++t)
    if (!thread_records[t].empty())
      own_memory(thread_records[t], thread_events[t], leftover, out);
    else
      for (const std::uint32_t i : thread_events[t])
        out.events[i].cpu_memory_bytes = out.events[i].device_memory_bytes = 0;
}

// Records without an operator become rows without duration, after a slice with the same start and
// end, because torch appends them.
void add_memory_rows(const Trace& trace, const std::vector<MemoryRecord>& records,
                     TorchEvents& out) {
  if (records.empty()) return;
  std::vector<TorchEvent> rows;
  const std::int64_t window = trace.window_start_ns();
  for (const MemoryRecord& record : records) {
    TorchEvent event;
    event.name = record.name;
    event.start_ns = event.end_ns = record.time_ns;
    event.start_us = event.end_us = static_cast<double>(record.time_ns - window) / 1000.0;
    event.thread = raw(record.track);
    event.cpu_memory_bytes = record.cpu_bytes;
    event.device_memory_bytes = record.device_bytes;
    rows.push_back(event);
  }
  const auto less = [](const TorchEvent& a, const TorchEvent& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  };
  std::stable_sort(rows.begin(), rows.end(), less);
  std::vector<TorchEvent> merged;
  merged.reserve(out.events.size() + rows.size());
  std::merge(out.events.begin(), out.events.end(), rows.begin(), rows.end(),
             std::back_inserter(merged), less);
  out.events.swap(merged);
}

}  // namespace

// Rule 2: a CPU row gets the bytes of every record inside it, on any thread (kTorch) or on
// its thread (kLanescope).
void add_memory(const Trace& trace, const NameIndex& name_index, TorchEvents& out) {
  const InstantColumns& instants = trace.instants();
  const StringId memory = trace.strings().find("[memory]"),
                 oom = trace.strings().find("[OutOfMemory]");
  if (memory == kNone<StringId> && oom == kNone<StringId>) return;
  std::vector<MemoryRecord> records, out_of_memory, leftover;
  for (std::uint32_t i = 0; i < instants.size(); ++i) {
    if (instants.name[i] != memory && instants.name[i] != oom) continue;
    const ArgsView args = trace.args(instants.args[i]);
    const std::int64_t type = args.integer(ArgKey::kDeviceType).value_or(0);
    // No machine has as much, and the sum of a file's damaged sizes still fits 64 bits.
    constexpr std::int64_t kMostRecordedBytes = std::int64_t{1} << 53;
    const std::int64_t bytes = std::clamp(args.integer(ArgKey::kMemoryBytes).value_or(0),
                                          -kMostRecordedBytes, kMostRecordedBytes);
    (instants.name[i] == oom ? out_of_memory : records)
        .push_back({instants.time_ns[i], is_cpu_memory(type) ? bytes : 0,
                    is_device_memory(type) ? bytes : 0, instants.track[i],
                    name_index(instants.name[i]), 0});
  }
  if (records.empty() && out_of_memory.empty()) return;
  std::vector<std::uint32_t> all(out.events.size());
  std::iota(all.begin(), all.end(), 0u);
  own_memory(records, all, leftover, out);
  if (out.style != TableStyle::kTorch) own_memory_by_thread(trace, records, leftover, out);
  leftover.insert(leftover.end(), out_of_memory.begin(), out_of_memory.end());
  add_memory_rows(trace, leftover, out);
}

}  // namespace lanescope::analysis
