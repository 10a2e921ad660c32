// Problem: work begins after the call that launched it, so a piece of time has calls without their
// work and work without its calls. Idea: work belongs to the piece of its call. Correlation ids
// count upwards in time, so few chunks have the ids of the piece's calls, and few have the calls of
// work that begins here but was launched elsewhere.
#include "lanescope/format/spool/piece_activities.h"

#include <algorithm>
#include <vector>

namespace lanescope::format {
namespace {

class Collector {
 public:
  Collector(const SpoolBytes& bytes, const SpoolScan& scan, const SpoolPiece& piece,
            std::span<std::byte> buffer)
      : bytes_(bytes), scan_(scan), piece_(piece), buffer_(buffer) {}

  SpoolActivities run(std::span<const spool::Record> of_threads, CallCarry* carry) {
    if (piece_.is_whole()) return read_all(of_threads);
    collect_own_calls(of_threads);
    // Calls whose records were lost have ids between those of two pieces.
    if (ids_.first <= ids_.last && carry->last_id < ids_.first) ids_.first = carry->last_id + 1;
    if (ids_.first <= ids_.last) carry->last_id = ids_.last;
    read_chunks(of_threads);
    SpoolActivities found = decoder_.take();
    keep_events_of_piece(&found);
    add_other_calls(find_requested_ids(found), carry->outer_calls, &found);
    return found;
  }

 private:
  bool is_own(std::uint32_t id) const {
    return std::binary_search(own_ids_.begin(), own_ids_.end(), id);
  }

  // First the records of threads, then those of the source.
  SpoolActivities read_all(std::span<const spool::Record> of_threads) {
    decoder_.expect(of_threads.size() + count_records(scan_.index.activity_chunks));
    decoder_.add_chunk(of_threads, 0);
    for (const SpoolChunk& chunk : scan_.index.activity_chunks) add_source_activities(chunk);
    return decoder_.take();
  }
  void add_source_activities(const SpoolChunk& chunk) {
    decoder_.add_chunk(read_records(bytes_, chunk, buffer_, nullptr), chunk.offset);
  }
  void add_thread_activities(const SpoolChunk& chunk) {
    std::vector<spool::Record> list;
    for (const spool::Record& record : read_records(bytes_, chunk, buffer_, nullptr))
      if (is_thread_activity(record)) list.push_back(record);
    decoder_.add_chunk(list, chunk.offset);
  }

  template <typename Visit>
  void each_chunk(const Visit& visit) {
    for (std::size_t i = 0; i < scan_.record_spans.size(); ++i)
      visit(scan_.index.record_chunks[i], scan_.record_spans[i], true);
    for (std::size_t i = 0; i < scan_.activity_spans.size(); ++i)
      visit(scan_.index.activity_chunks[i], scan_.activity_spans[i], false);
  }
  template <typename Visit>
  static void each_call(std::span<const spool::Record> records, const Visit& visit) {
    for (const spool::Record& record : records)
      if (spool::activity_kind(record) == spool::ActivityKind::kApiCall &&
          record.head.begin_tsc != 0)
        visit(record);
  }

  void collect_own_calls(std::span<const spool::Record> of_threads) {
    const auto add = [&](const spool::Record& call) {
      if (!piece_.holds(call.head.begin_tsc)) return;
      own_ids_.push_back(correlation_of(call));
      ids_.add(own_ids_.back());
    };
    each_call(of_threads, add);
    for (std::size_t i = 0; i < scan_.activity_spans.size(); ++i) {
      const ChunkSpan& span = scan_.activity_spans[i];
      if (span.meets(piece_) && span.calls.first <= span.calls.last)
        each_call(read_records(bytes_, scan_.index.activity_chunks[i], buffer_, nullptr), add);
    }
    std::sort(own_ids_.begin(), own_ids_.end());
  }

  void read_chunks(std::span<const spool::Record> of_threads) {
    decoder_.add_chunk(of_threads, 0);
    each_chunk([&](const SpoolChunk& chunk, const ChunkSpan& span, bool of_thread) {
      const bool meets = span.meets(piece_);
      if (!meets && !span.ids.meets(ids_)) return;
      if (!of_thread)
        add_source_activities(chunk);
      else if (!meets)  // else it is part of `of_threads`
        add_thread_activities(chunk);
    });
  }

  void keep_events_of_piece(SpoolActivities* found) const {
    const auto is_foreign = [&](std::uint64_t begin, std::uint32_t id) {
      return !(begin != 0 && piece_.holds(begin)) && !(id != 0 && is_own(id));
    };
    std::erase_if(found->work,
                  [&](const GpuEvent& work) { return is_foreign(work.begin, work.correlation); });
    for (auto* list : {&found->syncs, &found->events, &found->overheads})
      std::erase_if(*list, [&](std::uint32_t at) {
        const spool::Record& record = found->records[at];
        const std::uint32_t id = correlation_of(record);
        // A wait may be for an event that the device reaches later or at an unknown time.
        if (list == &found->events && (record.head.begin_tsc == 0 || ids_.holds(id))) return false;
        return is_foreign(record.head.begin_tsc, id);
      });
  }

  // Ids whose call may be in another piece: no call here has it, or the id is used again.
  std::vector<std::uint32_t> find_requested_ids(const SpoolActivities& found) const {
    std::vector<std::uint32_t> ids;
    const auto ask = [&](std::uint64_t begin, std::uint32_t id) {
      if (begin != 0 && id != 0 && (!is_own(id) || !piece_.holds(begin))) ids.push_back(id);
    };
    for (const GpuEvent& work : found.work) ask(work.begin, work.correlation);
    for (const auto* list : {&found.syncs, &found.events})
      for (const std::uint32_t at : *list)
        ask(found.records[at].head.begin_tsc, correlation_of(found.records[at]));
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  // Chunks also contain calls of other pieces: keep only the requested ones.
  void add_other_calls(const std::vector<std::uint32_t>& asked,
                       std::span<const spool::Record> outer, SpoolActivities* found) {
    std::erase_if(found->calls, [&](std::uint32_t at) {
      return !piece_.holds(found->records[at].head.begin_tsc);
    });
    const auto add = [&](const spool::Record& call) {
      found->calls.push_back(static_cast<std::uint32_t>(found->records.size()));
      found->records.push_back(call);
    };
    for (const spool::Record& call : outer) add(call);
    if (asked.empty()) return;
    IdSpan span_of_asked;
    for (const std::uint32_t id : asked) span_of_asked.add(id);
    each_chunk([&](const SpoolChunk& chunk, const ChunkSpan& span, bool) {
      if (!span.calls.meets(span_of_asked)) return;
      each_call(read_records(bytes_, chunk, buffer_, nullptr), [&](const spool::Record& call) {
        if (!piece_.holds(call.head.begin_tsc) &&
            std::binary_search(asked.begin(), asked.end(), correlation_of(call)))
          add(call);
      });
    });
  }

  const SpoolBytes& bytes_;
  const SpoolScan& scan_;
  const SpoolPiece piece_;
  std::span<std::byte> buffer_;
  ImportStats ignored_;  // scan_spool() counted
  ActivityDecoder decoder_{&ignored_};
  std::vector<std::uint32_t> own_ids_;  // of the calls of the piece, sorted
  IdSpan ids_;
};

}  // namespace

SpoolActivities read_piece_activities(const SpoolBytes& bytes, const SpoolScan& scan,
                                      const SpoolPiece& piece,
                                      std::span<const spool::Record> of_threads, CallCarry* carry,
                                      std::span<std::byte> buffer) {
  return Collector(bytes, scan, piece, buffer).run(of_threads, carry);
}

}  // namespace lanescope::format
