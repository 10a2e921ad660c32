#include "lanescope/format/spool/spool_scan.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "lanescope/base/sort_rows.h"
#include "lanescope/format/spool/spool_activities.h"

namespace lanescope::format {
namespace {

using spool::Record;
using spool::RecordKind;

// Kineto counts from the last multiple of this before the recording, so that times stay short.
constexpr std::int64_t kBaseStepNs = 7'889'238'000'000'000;
// 36 years from the base: times beyond are damage, and a trace with them could not be read again.
constexpr std::int64_t kFarthestNs = std::int64_t{1} << 60;

SlotKey key_of(std::uint32_t thread, spool::RecordPlace place) {
  return {thread, place.sequence, place.slot};
}

class Scanner {
 public:
  Scanner(const SpoolBytes& bytes, const ReadSpoolOptions& options, ImportStats* stats)
      : bytes_(bytes), options_(options), stats_(stats) {}

  Result<SpoolScan> run() {
    LANESCOPE_TRY(scan_.index, read_spool_index(bytes_, options_.live, stats_));
    for (const SpoolChunk& chunk : scan_.index.record_chunks) scan_records(chunk);
    for (const SpoolChunk& chunk : scan_.index.activity_chunks) scan_activities(chunk);
    for (const SpoolChunk& chunk : scan_.index.kept_chunks) read_kept(chunk);
    sort_rows(scan_.kept_ranges.begin(), scan_.kept_ranges.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.thread, a.first.sequence, a.first.slot) <
             std::tie(b.first.thread, b.first.sequence, b.first.slot);
    });
    std::sort(scan_.ends_by_handle.begin(), scan_.ends_by_handle.end());
    for (const TickAnchor& anchor : scan_.index.anchors) note_tick(anchor.ticks);
    find_windows();
    choose_base();
    count_lost_begins();
    return std::move(scan_);
  }

 private:
  void note_tick(std::uint64_t tick) { scan_.last_tick = std::max(scan_.last_tick, tick); }

  void scan_records(const SpoolChunk& chunk) {
    ChunkSpan span;  // local, so that not each record causes a store to memory
    std::uint64_t last_tick = 0;
    for (const Record& record : read_records(bytes_, chunk, buffer_, stats_)) {
      switch (record.head.kind) {
        case RecordKind::kRange:
          last_tick = std::max({last_tick, record.range.begin_tsc, record.range.end_tsc});
          add_row(record.range.begin_tsc, &span);
          break;
        case RecordKind::kInstant:
        case RecordKind::kMemory:
        case RecordKind::kOutOfMemory:
          last_tick = std::max(last_tick, record.head.begin_tsc);
          add_row(record.head.begin_tsc, &span);
          break;
        case RecordKind::kSample:
          last_tick = std::max({last_tick, record.sample.begin_tsc, record.sample.end_tsc});
          add_row(record.sample.begin_tsc, &span);
          break;
        case RecordKind::kRangeEnd:
          last_tick = std::max(last_tick, record.range_end.end_tsc);
          scan_.end_by_slot[key_of(chunk.thread, record.range_end.place)] =
              record.range_end.end_tsc;
          break;
        case RecordKind::kEndByHandle:
          last_tick = std::max(last_tick, record.end_by_handle.end_tsc);
          add_end(record.end_by_handle);
          break;
        case RecordKind::kCallNumbers:
        case RecordKind::kTensor:
          last_tick = std::max(last_tick, record.head.begin_tsc);
          break;
        default:
          if (is_thread_activity(record))
            add_activity(record, chunk.offset, &span);
          else
            stats_->count(ImportIssue::kEventLost, chunk.offset);
      }
    }
    note_tick(last_tick);
    scan_.record_spans.push_back(span);
  }

  void add_end(const spool::EndByHandleRecord& end) {
    scan_.ends_by_handle.emplace_back(end.handle, end.end_tsc);
  }

  static void add_row(std::uint64_t begin, ChunkSpan* span) {
    span->first = std::min(span->first, begin);
    span->last = std::max(span->last, begin);
    ++span->rows;
  }

  // An activity in a thread's chunk.
  void add_activity(const Record& record, std::uint64_t offset, ChunkSpan* span) {
    if (record.head.begin_tsc == 0 &&
        spool::activity_kind(record) != spool::ActivityKind::kCudaEvent)
      return stats_->count(ImportIssue::kUnmeasuredTime, offset);
    note_activity(record, span);
  }

  void scan_activities(const SpoolChunk& chunk) {
    ActivityDecoder decoder(stats_);
    decoder.add_chunk(read_records(bytes_, chunk, buffer_, stats_), chunk.offset);
    const SpoolActivities found = decoder.take();
    ChunkSpan& span = scan_.activity_spans.emplace_back();
    for (const GpuEvent& work : found.work) note_activity(found.records[work.record], &span);
    for (const auto* list : {&found.calls, &found.syncs, &found.events, &found.overheads})
      for (const std::uint32_t at : *list) note_activity(found.records[at], &span);
  }

  // An event without a time is no row; it still says what was waited for.
  void note_activity(const Record& record, ChunkSpan* span) {
    note_tick(std::max(record.head.begin_tsc, record.head.end_tsc));
    if (record.head.begin_tsc != 0) add_row(record.head.begin_tsc, span);
    const std::uint32_t id = correlation_of(record);
    span->ids.add(id);
    if (spool::activity_kind(record) == spool::ActivityKind::kApiCall) span->calls.add(id);
  }

  // Reads ranges and ends by handle from chunks that a ring reused.
  void read_kept(const SpoolChunk& chunk) {
    const auto records = read_records(bytes_, chunk, buffer_, stats_);
    for (std::size_t i = 0; i + 1 < records.size(); i += 2) {
      if (records[i].head.kind != RecordKind::kKeptFrom) continue;
      const Record& record = records[i + 1];
      const SlotKey place = key_of(records[i].kept_from.thread, records[i].kept_from.place);
      if (record.head.kind == RecordKind::kEndByHandle) add_end(record.end_by_handle);
      // A process killed between the two steps leaves both the chunk and the copy.
      else if (record.head.kind == RecordKind::kRange &&
               !scan_.has_chunk(place.thread, place.sequence))
        scan_.kept_ranges.emplace_back(place, record.range);
    }
  }

  void find_windows() {
    scan_.clock.emplace(scan_.index.anchors, scan_.index.ticks_per_second);
    scan_.windows = SpoolWindows(scan_.index, options_.session, options_.cycle, scan_.last_tick,
                                 &*scan_.clock, options_.first_cycle);
    scan_.all_windows = SpoolWindows::whole(scan_.index, scan_.last_tick);
  }

  void choose_base() {
    const auto windows = scan_.windows.all();
    std::uint64_t first = windows.empty() ? 0 : windows.front().start;
    if (first == 0 && !scan_.index.anchors.empty()) first = scan_.index.anchors.front().ticks;
    const std::int64_t unix_ns = scan_.clock->unix_ns(first).value_or(0);
    scan_.base_ns = unix_ns > 0 ? unix_ns / kBaseStepNs * kBaseStepNs : 0;
  }

  // Counts ends in a ring's window whose range is missing.
  void count_lost_begins() {
    if (scan_.index.kept_chunks.empty() && scan_.index.ring_lost_until == 0 &&
        !scan_.windows.has_ring())
      return;
    std::unordered_set<SlotKey, SlotKeyHash> kept;
    for (const auto& [place, record] : scan_.kept_ranges) kept.insert(place);
    for (const auto& [place, end] : scan_.end_by_slot)
      if (scan_.windows.at(end) && !scan_.has_chunk(place.thread, place.sequence) &&
          !kept.contains(place))
        stats_->count(ImportIssue::kLostBegin);
  }

  const SpoolBytes& bytes_;
  const ReadSpoolOptions& options_;
  ImportStats* stats_;
  SpoolScan scan_;
  ChunkBuffer buffer_;
};

}  // namespace

void IdSpan::add(std::uint32_t id) {
  if (id == 0) return;
  first = std::min(first, id);
  last = std::max(last, id);
}

std::optional<std::int64_t> SpoolScan::time_ns(std::uint64_t tick) const {
  const auto unix_ns = clock->unix_ns(tick);
  std::int64_t time = 0;
  if (!unix_ns || __builtin_sub_overflow(*unix_ns, base_ns, &time)) return std::nullopt;
  if (time > kFarthestNs || time < -kFarthestNs) return std::nullopt;
  return time;
}

std::optional<std::uint64_t> SpoolScan::end_of(const spool::RangeRecord& range,
                                               const SlotKey& place) const {
  if (range.end_tsc != 0) return range.end_tsc;
  if (!end_by_slot.empty())
    if (const auto end = end_by_slot.find(place); end != end_by_slot.end()) return end->second;
  if (range.handle == 0 || ends_by_handle.empty()) return std::nullopt;
  const auto end = std::lower_bound(ends_by_handle.begin(), ends_by_handle.end(),
                                    std::pair(range.handle, range.begin_tsc));
  if (end == ends_by_handle.end() || end->first != range.handle) return std::nullopt;
  return end->second;
}

bool SpoolScan::has_chunk(std::uint32_t thread, std::uint32_t sequence) const {
  const auto at = std::lower_bound(
      index.record_chunks.begin(), index.record_chunks.end(), std::pair(thread, sequence),
      [](const SpoolChunk& chunk, const std::pair<std::uint32_t, std::uint32_t>& place) {
        return std::pair(chunk.thread, chunk.sequence) < place;
      });
  return at != index.record_chunks.end() && at->thread == thread && at->sequence == sequence;
}

Result<SpoolScan> scan_spool(const SpoolBytes& bytes, const ReadSpoolOptions& options,
                             ImportStats* stats) {
  return Scanner(bytes, options, stats).run();
}

}  // namespace lanescope::format
