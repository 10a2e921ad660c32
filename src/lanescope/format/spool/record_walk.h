// Chunks of records become numbered ranges, instants and memory events.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "lanescope/format/spool/row_plan.h"
#include "lanescope/format/spool/spool_scan.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

struct RangeTimes {
  std::int64_t start_ns, end_ns;
  std::int64_t early_ns;  // began this much before its start
};

inline bool is_engine_wrapper(const SpoolIndex& index, std::uint32_t name) {
  return name < index.texts.size() &&
         index.texts[name].starts_with("autograd::engine::evaluate_function");
}

// Goes through the chunks of records in the order of threads and numbers what belongs to the trace.
// `Out` says what becomes of it: range(), instant(), memory().
template <typename Out>
class RecordWalk {
 public:
  RecordWalk(const SpoolScan& scan, Out* out) : scan_(scan), out_(*out) {}
  RowNumbers& numbers() { return numbers_; }

  void add_chunk(std::span<const spool::Record> records, const SpoolChunk& chunk) {
    std::uint32_t slot = 0;
    for (const spool::Record& record : records) {
      switch (static_cast<spool::RecordKind>(record.kind)) {
        case spool::RecordKind::kRange:
          meet_range(record, {chunk.thread, chunk.sequence, slot});
          break;
        case spool::RecordKind::kInstant:
          if (const auto time = time_in_window(record))
            out_.instant(record, chunk.thread, *time, numbers_.ev_idx++);
          break;
        case spool::RecordKind::kMemory:
        case spool::RecordKind::kOutOfMemory:
          if (const auto time = time_in_window(record))
            out_.memory(record, chunk.thread, *time, numbers_.memory++);
          break;
        case spool::RecordKind::kCollective:
          add_waiting_wrapper();
          numbers_.collective.emplace(record, chunk.thread);
          break;
        default:  // ends were read before, activities are read apart, damage was counted
          break;
      }
      ++slot;
    }
  }
  void add_waiting_wrapper() {
    if (numbers_.wrapper) add_range(numbers_.wrapper->first, numbers_.wrapper->second);
    numbers_.wrapper.reset();
  }
  void add_range(const spool::Record& record, const SlotKey& place) {
    const auto collective = take_collective(record, place);
    const SpoolWindows::Window* window = scan_.windows.at(record.begin_tsc);
    if (!window && !scan_.windows.has_ring()) return;
    std::uint64_t begin = record.begin_tsc;
    std::uint64_t end =
        scan_.end_of(record, place).value_or(std::numeric_limits<std::uint64_t>::max());
    if (!window) {
      window = scan_.windows.reached(begin, end);
      if (!window) return;
      out_.issue(record, ImportIssue::kEarlyRange);
      begin = window->start;
    }
    if (end > window->stop) {
      out_.issue(record, ImportIssue::kOpenRange);
      end = window->stop;
    }
    const auto start_ns = scan_.time_ns(begin), end_ns = scan_.time_ns(end);
    const auto early_ns = begin == record.begin_tsc ? start_ns : scan_.time_ns(record.begin_tsc);
    if (!start_ns || !end_ns || !early_ns) return out_.issue(record, ImportIssue::kBadTime);
    const RangeTimes times{*start_ns, *end_ns,
                           begin == record.begin_tsc ? 0 : *start_ns - *early_ns};
    out_.range(record, place, collective, times, ++numbers_.external_id, numbers_.ev_idx++);
  }

 private:
  std::optional<std::int64_t> time_in_window(const spool::Record& record) {
    if (!scan_.windows.at(record.begin_tsc)) return std::nullopt;
    const auto time = scan_.time_ns(record.begin_tsc);
    if (!time) out_.issue(record, ImportIssue::kBadTime);
    return time;
  }

  // The engine's wrapper of a backward node begins without the node's numbers; torch.profiler gives
  // it those of the node when that is the thread's next range.
  void meet_range(const spool::Record& record, const SlotKey& place) {
    if (numbers_.wrapper && numbers_.wrapper->second.thread == place.thread &&
        record.scope == spool::kBackwardScope) {
      spool::Record& wrapper = numbers_.wrapper->first;
      wrapper.a = record.a;
      wrapper.b = record.b;
      wrapper.flags |= record.flags & (spool::kHasSequence | spool::kHasForwardThread);
    }
    add_waiting_wrapper();
    if (record.scope == spool::kFunctionScope && is_engine_wrapper(scan_.index, record.name))
      numbers_.wrapper.emplace(record, place);
    else
      add_range(record, place);
  }

  // What the thread's last record said of this range, if it did.
  std::optional<spool::Record> take_collective(const spool::Record& range, const SlotKey& place) {
    auto taken = std::exchange(numbers_.collective, std::nullopt);
    if (!taken || taken->second != place.thread || taken->first.name != range.name)
      return std::nullopt;  // its range was lost
    return taken->first;
  }

  const SpoolScan& scan_;
  Out& out_;
  RowNumbers numbers_;
};

}  // namespace lanescope::format
