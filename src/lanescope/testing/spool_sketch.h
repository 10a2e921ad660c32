// Recordings in memory, drawn by hand for tests. One tick is 2 ns. Tick 1000 is 5000 ns on the
// monotonic clock and kDay on the real one, so an event at tick t is at kDay + (t - 1000) * 2 ns.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/codec/spool_layout.h"

namespace lanescope::testing {

inline constexpr std::int64_t kDay = 86'400'000'000'000;

class SpoolSketch {
 public:
  SpoolSketch();
  static spool::AnchorRecord anchor(std::uint64_t ticks, std::int64_t monotonic);
  // `stop` 0: the window was never closed. `last_ns`: for a ring, how much time before its end counts.
  SpoolSketch& window(std::uint64_t start, std::uint64_t stop, std::uint32_t cycle = 0,
                      std::uint32_t session = 1, std::uint64_t last_ns = 0,
                      std::uint32_t options = 0);
  std::uint32_t text(std::string_view text);  // its id
  void metadata(std::string_view key, std::string_view json);
  void thread(std::uint32_t tid, std::uint64_t torch_tid, std::uint64_t dropped = 0);
  spool::RangeRecord range(std::string_view name, std::uint64_t begin, std::uint64_t end,
                           std::uint8_t scope = 0);
  // One chunk; more than spool::kRecordsPerChunk ends the test.
  void records(std::uint32_t thread, std::uint32_t sequence, const std::vector<spool::Record>& list,
               bool closed = true);
  // What a ring kept of a chunk that it reused.
  void kept(std::uint32_t thread, std::uint32_t sequence, std::uint32_t slot,
            const spool::Record& record);
  void lost_until(std::uint64_t ticks);
  // As many chunks as needed; cut between records.
  void activities(const std::vector<spool::Record>& list, bool closed = true);
  std::string bytes();

 private:
  void add(spool::ChunkKind kind, std::string_view payload, std::uint32_t used,
           std::uint32_t thread = spool::kNoThread, std::uint32_t sequence = 0, bool closed = true);
  // As many chunks as they need.
  void add_all(spool::ChunkKind kind, const std::vector<spool::Record>& list);
  std::string bytes_, texts_, threads_;
  std::uint32_t next_text_ = 1;
  std::uint32_t next_activity_chunk_ = 1;
  std::vector<spool::Record> control_, kept_;
};

// Device activities. The arguments are those that most tests set. To set other members of a record,
// use add(), or change `records`.
class ActivitySketch {
 public:
  void call(std::uint32_t cbid, std::uint64_t begin, std::uint64_t end, std::uint32_t correlation,
            std::uint32_t tid = 101, spool::ApiDomain domain = spool::ApiDomain::kRuntime);
  struct Shape {
    std::uint32_t grid = 132;
    std::uint16_t block = 128, registers = 32;
    std::uint32_t static_shared = 0, dynamic_shared = 0, graph = 0;
    std::uint64_t graph_node = 0;
    std::int32_t priority = 0;
  };
  void kernel(std::uint32_t name, std::uint64_t begin, std::uint64_t end, std::uint32_t correlation,
              std::uint32_t stream = 7, std::uint16_t device = 0) {
    kernel(name, begin, end, correlation, stream, device, Shape());
  }
  void kernel(std::uint32_t name, std::uint64_t begin, std::uint64_t end, std::uint32_t correlation,
              std::uint32_t stream, std::uint16_t device, const Shape& shape);
  template <typename T>
  void add(const T& record) {
    records.push_back(spool::as_record(record));
  }

  std::vector<spool::Record> records;
};

}  // namespace lanescope::testing
