// Problem: the list of all events (torch_events.h) takes 200 bytes per slice, written and read several
// times, on one thread. Idea: a row of the table needs sums, and the sums of an event need its
// children alone. They are on its thread and inside its time, so a thread is cut where nothing is
// open: between two top-level calls. Such a group of events fits the cache, and groups do not know of
// each other, so threads share them.
//   1. Blocks of slices: which are rows, which names they have, what kernels each operator launched (track_blocks.h).
//   2. Pieces of threads, cut at moments at which nothing is open: tree, merges, sums (rules 3 to 7; track_rows.h).
//   3. Rows of all threads are added, and put in the order of their first event.
// Everything is a sum or the first in one order, so the result does not depend on who did what.
#include "lanescope/analysis/averages_by_track.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/analysis/torch_event_rows.h"
#include "lanescope/analysis/track_blocks.h"
#include "lanescope/analysis/track_rows.h"
#include "lanescope/base/share_work.h"

namespace lanescope::analysis {
namespace {

using by_track::kEarliest;

class Averager {
 public:
  Averager(const Trace& trace, unsigned threads, std::uint32_t block_slices)
      : trace_(trace),
        threads_(trace.slices().size() < block_slices ? 1
                 : threads == 0                       ? usual_threads()
                                                      : threads),
        rows_(trace, TableStyle::kLanescope, false),
        blocks_(trace, rows_, threads_, block_slices) {}

  std::optional<KeyAverages> run() {
    // Front-end events on a stream would take part in counting overhead claims.
    const TrackId main = rows_.main_track();
    if (main != kNone<TrackId> && trace_.track(main).kind != TrackKind::kThread)
      return std::nullopt;
    if (!blocks_.read())
      return std::nullopt;  // those rows are events of the main thread and of the device
    blocks_.join(out_);
    cut_pieces();
    make_rows();
    if (!number_first_events()) return std::nullopt;
    return std::move(out_);
  }

 private:
  const std::vector<EventKey>& overhead() const { return blocks_.inputs().overhead; }

  // Cuts each track near the first slice of each block, where nothing is open.
  void cut_pieces() {
    std::vector<std::int64_t> overhead_end_ns;  // the latest of the first i + 1
    for (const EventKey& each : overhead())
      overhead_end_ns.push_back(
          std::max(overhead_end_ns.empty() ? kEarliest : overhead_end_ns.back(), each.end_ns));
    for (std::uint32_t t = 0; t < blocks_.track_count(); ++t) {
      const Track& track = trace_.track(TrackId{t});
      if (track.slice_count == 0) continue;
      const std::uint32_t track_end = track.first_slice + track.slice_count;
      const bool has_moved = TrackId{t} == rows_.main_track();
      std::uint32_t first = track.first_slice;
      std::int64_t latest_ns = kEarliest;
      for (const by_track::Block& block : blocks_.of_track(t)) {
        std::int64_t end_ns = latest_ns;  // the latest end of the slices before `i`
        latest_ns = std::max(latest_ns, block.latest_end_ns);
        if (block.first == track.first_slice) continue;
        for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
          const std::int64_t start_ns = trace_.start_ns(SliceId{i});
          if (start_ns >= end_ns && start_ns > trace_.start_ns(SliceId{i - 1}) &&
              (!has_moved || end_of_overhead_before(start_ns, overhead_end_ns) <= start_ns)) {
            pieces_.push_back({t, first, i, first == track.first_slice});
            first = i;
            break;
          }
          end_ns = std::max(end_ns, trace_.end_ns(SliceId{i}));
        }
      }
      pieces_.push_back({t, first, track_end, first == track.first_slice});
    }
  }

  std::size_t overhead_before(std::int64_t time_ns) const {
    return static_cast<std::size_t>(
        std::partition_point(overhead().begin(), overhead().end(),
                             [&](const EventKey& each) { return each.start_ns < time_ns; }) -
        overhead().begin());
  }
  std::int64_t end_of_overhead_before(std::int64_t time_ns,
                                      const std::vector<std::int64_t>& end_ns) const {
    const std::size_t count = overhead_before(time_ns);
    return count == 0 ? kEarliest : end_ns[count - 1];
  }

  // What other tracks have of the main thread's events, between the ends of a piece of it.
  std::span<const EventKey> moved_to(const by_track::Piece& piece) const {
    if (TrackId{piece.track} != rows_.main_track()) return {};
    const Track& track = trace_.track(TrackId{piece.track});
    const std::size_t first =
        piece.is_first ? 0 : overhead_before(trace_.start_ns(SliceId{piece.first}));
    const std::size_t end = piece.end == track.first_slice + track.slice_count
                                ? overhead().size()
                                : overhead_before(trace_.start_ns(SliceId{piece.end}));
    return std::span(overhead()).subspan(first, end - first);
  }

  void make_rows() {
    std::vector<by_track::RowMaker> makers(
        std::min<std::size_t>(threads_, pieces_.size()),
        by_track::RowMaker(blocks_.inputs(), blocks_.names().size() * by_track::kKeysOfName));
    std::atomic<std::uint32_t> next = 0;  // piece; whoever takes it has it alone
    share_work(makers.size(), threads_, [&](std::size_t i) {
      for (std::uint32_t at; (at = next.fetch_add(1, std::memory_order_relaxed)) < pieces_.size();)
        makers[i].add(pieces_[at], at, moved_to(pieces_[at]), blocks_.of_track(pieces_[at].track));
    });
    std::unordered_map<std::uint32_t, std::size_t> place;  // of a key
    std::vector<SliceId> claimed;
    for (by_track::RowMaker& maker : makers) {
      by_track::add_notes(maker.notes(), out_.corrections);
      claimed.insert(claimed.end(), maker.claimed().begin(), maker.claimed().end());
      out_.annotation_span_ns += maker.annotation_span_ns();
      out_.annotation_busy_ns += maker.annotation_busy_ns();
      for (const by_track::Row& row : maker.rows()) {
        const auto [it, added] = place.try_emplace(row.key, table_.size());
        if (added)
          table_.push_back(row);
        else
          join(row, table_[it->second]);
      }
    }
    std::sort(claimed.begin(), claimed.end());
    out_.corrections.overhead_claim_count += blocks_.count_work_of(claimed);
    std::sort(table_.begin(), table_.end(), [&](const by_track::Row& a, const by_track::Row& b) {
      return rows_.before(a.first, b.first);
    });
    for (const by_track::Row& row : table_) out_.rows.push_back(average_of(row));
    out_.style = TableStyle::kLanescope;
    out_.device = rows_.device();
    out_.window_ns = trace_.window_end_ns() - trace_.window_start_ns();
  }

  void join(const by_track::Row& from, by_track::Row& to) const {
    to.count += from.count;
    to.cpu_ns += from.cpu_ns;
    to.self_cpu_ns += from.self_cpu_ns;
    to.cpu_union_ns += from.cpu_union_ns;
    to.device_ns += from.device_ns;
    to.self_device_ns += from.self_device_ns;
    if (!rows_.before(from.first, to.first)) return;
    to.first = from.first;
    to.is_top_level = from.is_top_level;
  }

  KeyAverage average_of(const by_track::Row& row) const {
    KeyAverage average;
    average.name = blocks_.names()[row.key / by_track::kKeysOfName];
    average.on_device = (row.key & by_track::kOnDevice) != 0;
    average.is_annotation = (row.key & by_track::kAnnotation) != 0;
    average.is_overhead = trace_.kind(row.first.slice) == CategoryKind::kOverhead;
    average.is_async = rows_.is_async(row.first.slice);
    average.is_top_level = row.is_top_level;
    average.count = row.count;
    average.cpu_time_total_ns = row.cpu_ns;
    average.self_cpu_time_total_ns = row.self_cpu_ns;
    average.cpu_time_union_ns = row.cpu_union_ns;
    average.device_time_total_ns = row.device_ns;
    average.self_device_time_total_ns = row.self_device_ns;
    return average;
  }

  // The place of each row's first event in the list of all events. False: it would take too long,
  // because very many events begin at the same time.
  bool number_first_events() {
    std::uint64_t steps = 0;
    const std::uint64_t most_steps = 64 * std::uint64_t{trace_.slices().size()} + 1'000'000;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      std::uint32_t before = 0;
      for (std::uint32_t t = 0; t < blocks_.track_count(); ++t)
        before += blocks_.rows_before(t, table_[i].first, steps);
      if (steps > most_steps) return false;
      out_.rows[i].first_event = before;
    }
    return true;
  }

  const Trace& trace_;
  const unsigned threads_;
  const TorchEventRows rows_;
  by_track::TrackBlocks blocks_;
  std::vector<by_track::Piece> pieces_;
  std::vector<by_track::Row> table_;
  KeyAverages out_;
};

}  // namespace

std::optional<KeyAverages> averages_by_track(const Trace& trace, unsigned threads,
                                             std::uint32_t block_slices) {
  return Averager(trace, threads, block_slices).run();
}

}  // namespace lanescope::analysis
