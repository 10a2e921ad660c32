// What a device did, out of the activity chunks: records told apart by kind and put together with
// their second halves.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

// What all kernels, copies and memsets have. Times are ticks.
struct GpuEvent {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t graph_node_id = 0;
  std::uint32_t correlation = 0, stream = 0, context = 0, graph_id = 0;
  std::uint32_t record = 0;  // index into SpoolActivities::records; its second half is behind it
  std::uint16_t device = 0;
  spool::ActivityKind kind{};  // kKernel, kMemcpy, kMemset, kGraphTrace
  bool has_more = false;       // the second half is there
};

struct SpoolActivities {
  std::vector<spool::Record> records;  // of all chunks, as they lie in the file
  // Indexes into `records`, in the file's order.
  std::vector<std::uint32_t> calls, syncs, events, overheads;
  std::vector<GpuEvent> work;
  std::uint64_t last_tick = 0;  // of all times

  // Fields are read by copy, as another kind of record.
  template <typename T>
  T as(std::uint32_t record) const {
    static_assert(sizeof(T) == sizeof(spool::Record));
    T out;
    std::memcpy(&out, &records[record], sizeof out);
    return out;
  }
};

// Records become activities. Damage is counted at the chunk's place: kEventLost (a kind that is
// none, a second half without its first), kFieldLost (a first half without its second),
// kUnmeasuredTime (no begin: the event is left out). Cost: linear; 48 bytes a record and 56 more a
// kernel, copy or memset.
class ActivityDecoder {
 public:
  explicit ActivityDecoder(ImportStats* stats) : stats_(stats) {}
  // `records`: about how many are to come.
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

// Kinds that may lie in a thread's chunk.
bool is_thread_activity(const spool::Record& record);
// The id that joins an activity to its API call; 0: none. Not of a second half.
std::uint32_t correlation_of(const spool::Record& record);

}  // namespace lanescope::format
