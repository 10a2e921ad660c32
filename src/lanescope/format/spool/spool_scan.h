// What must be known about a whole recording before any of its rows: the time spans of its chunks,
// the ranges whose end is a separate record, the windows, the clock.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/format/spool/spool_piece.h"
#include "lanescope/format/spool/spool_windows.h"
#include "lanescope/format/spool/tick_map.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

// A record's place: the thread's number, its chunk's sequence, the record's number in the chunk.
struct SlotKey {
  std::uint32_t thread, sequence, slot;
  bool operator==(const SlotKey&) const = default;
};
struct SlotKeyHash {
  std::size_t operator()(const SlotKey& key) const {
    return (key.thread * 0x9e3779b97f4a7c15u ^ key.sequence) * 0xd6e8feb86659fd93u ^ key.slot;
  }
};

// The span of ids in a chunk's records; none: first > last.
struct IdSpan {
  std::uint32_t first = ~std::uint32_t{0}, last = 0;
  void add(std::uint32_t id);  // 0 is no id
  bool holds(std::uint32_t id) const { return first <= id && id <= last; }
  bool meets(const IdSpan& other) const { return first <= other.last && other.first <= last; }
};

// The time that one chunk of records or activities covers.
struct ChunkSpan {
  std::uint64_t first = ~std::uint64_t{0},
                last = 0;  // begins of its rows, ticks; first > last: none
  std::uint32_t rows = 0;
  IdSpan calls;  // correlation ids of its API calls
  IdSpan ids;    // of all its activities
  bool meets(const SpoolPiece& piece) const {
    return first <= last && last >= piece.from && (first < piece.to || piece.is_last());
  }
};

struct SpoolScan {
  SpoolIndex index;
  std::vector<ChunkSpan> record_spans, activity_spans;  // in the order of the chunks in `index`
  std::unordered_map<SlotKey, std::uint64_t, SlotKeyHash> end_by_slot;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ends_by_handle;  // handle, end; sorted
  std::vector<std::pair<SlotKey, spool::RangeRecord>> kept_ranges;      // by place
  std::uint64_t last_tick = 0;
  std::optional<TickMap> clock;
  SpoolWindows windows;      // those asked for
  SpoolWindows all_windows;  // of the whole recording
  std::int64_t base_ns = 0;

  // Nanoseconds since the base. Nothing: damage, the time does not fit.
  std::optional<std::int64_t> time_ns(std::uint64_t tick) const;
  // When a range ended. Nothing: it was open to the end.
  std::optional<std::uint64_t> end_of(const spool::RangeRecord& range, const SlotKey& place) const;
  bool has_chunk(std::uint32_t thread, std::uint32_t sequence) const;
};

// Reads every chunk once and counts all damage of chunks and activities. Errors: as read_spool().
// Memory: the index, 60 bytes per chunk, and 16 to 40 bytes per range whose end is in another chunk
// or from another thread.
Result<SpoolScan> scan_spool(const SpoolBytes& bytes, const ReadSpoolOptions& options,
                             ImportStats* stats);

}  // namespace lanescope::format
