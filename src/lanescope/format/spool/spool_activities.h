// The device activities from the activity chunks: records sorted by kind, with their second halves.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

// Common to kernels, copies and memsets. Times are ticks.
struct GpuEvent {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t graph_node_id = 0;
  std::uint32_t correlation = 0, stream = 0, context = 0, graph_id = 0;
  std::uint32_t record = 0;  // index into SpoolActivities::records; its second half follows
  std::uint16_t device = 0;
  spool::ActivityKind kind{};  // kKernel, kMemcpy, kMemset, kGraphTrace
  bool has_more = false;       // the second half is there
};

struct SpoolActivities {
  std::vector<spool::Record> records;  // of all chunks, in the order of the file
  // Indexes into `records`, in the file's order.
  std::vector<std::uint32_t> calls, syncs, events, overheads;
  std::vector<GpuEvent> work;
  std::uint64_t last_tick = 0;  // of all times

  // Reads the record as another kind, by copy.
  template <typename T>
  T as(std::uint32_t record) const {
    return spool::activity_as<T>(records[record]);
  }
};

// Turns records into activities. Counts damage at the chunk's place: kEventLost (an unknown
// kind, a second half without its first), kFieldLost (a first half without its second),
// kUnmeasuredTime (no begin: leaves the event out). Cost: linear; 48 bytes per record and 56 more
// a kernel, copy or memset.
class ActivityDecoder {
 public:
  explicit ActivityDecoder(ImportStats* stats) : stats_(stats) {}
  // `records`: about how many there will be.
  void expect(std::size_t records) { out_.records.reserve(records); }
  void add_chunk(std::span<const spool::Record> records, std::uint64_t offset);
  SpoolActivities take() { return std::move(out_); }

 private:
  bool add(std::uint32_t at, bool has_more);
  void note_times(std::uint32_t at);
  bool is_measured(std::uint32_t at);
  void add_other(std::vector<std::uint32_t>& list, std::uint32_t at);
  void add_kernel(std::uint32_t at, bool has_more);
  template <typename T>
  void add_transfer(const T& transfer, std::uint32_t at, bool has_more);
  void add_work(const GpuEvent& event);

  ImportStats* stats_;
  std::uint64_t offset_ = 0;
  SpoolActivities out_;
};

// Whether this kind can be in a thread's chunk.
bool is_thread_activity(const spool::Record& record);
// The correlation id with the activity's API call; 0: none. Not for a second half.
std::uint32_t correlation_of(const spool::Record& record);

}  // namespace lanescope::format
