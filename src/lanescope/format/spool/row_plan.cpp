#include "lanescope/format/spool/row_plan.h"

#include <algorithm>
#include <unordered_map>

#include "lanescope/format/spool/record_walk.h"
#include "lanescope/format/spool/spool_activities.h"

namespace lanescope::format {
namespace {

using spool::Record;

// Counts, makes nothing.
struct NumbersOnly {
  void issue(std::uint64_t, ImportIssue) {}
  void range(const spool::RangeRecord&, const SlotKey&,
             const std::optional<spool::CallNumbersRecord>&, std::span<const spool::TensorRecord>,
             const RangeTimes&, std::int64_t, std::int64_t) {}
  void frame(const spool::FrameRecord&, const SlotKey&, std::span<const spool::TensorRecord>,
             const RangeTimes&, const FrameNumbers&) {}
  void instant(const spool::InstantRecord&, std::uint32_t, std::int64_t, std::int64_t) {}
  void memory(const spool::MemoryRecord&, std::uint32_t, std::int64_t, std::int64_t) {}
  void sample(const spool::SampleRecord&) {}
  void activity(const Record&) {}
};

// Takes chunks in the order in which their last row begins, and ends a piece each time enough
// rows are complete.
std::vector<SpoolPiece> cut_pieces(const SpoolScan& scan, std::uint64_t rows_per_piece) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ends;  // last begin, rows
  for (const auto* spans : {&scan.record_spans, &scan.activity_spans})
    for (const ChunkSpan& span : *spans)
      if (span.rows != 0) ends.emplace_back(span.last, span.rows);
  std::sort(ends.begin(), ends.end());
  std::vector<SpoolPiece> pieces(1);
  std::uint64_t rows = 0;
  for (const auto& [last, count] : ends) {
    rows += count;
    if (rows < rows_per_piece || last < pieces.back().from || last == SpoolPiece::kNoEnd) continue;
    pieces.back().to = last + 1;
    pieces.push_back({last + 1, SpoolPiece::kNoEnd});
    rows = 0;
  }
  return pieces;
}

}  // namespace

RowPlan plan_rows(const SpoolBytes& bytes, SpoolScan* scan, std::uint64_t rows_per_piece,
                  ActivityCarry* carry) {
  RowPlan plan;
  plan.pieces = cut_pieces(*scan, rows_per_piece);
  if (plan.pieces.size() == 1) return plan;
  const ChunkBuffer buffer;
  ImportStats ignored;
  NumbersOnly nothing;
  RecordWalk<NumbersOnly> walk(*scan, &nothing);
  for (const auto& [place, range] : scan->kept_ranges) walk.add_kept(range, place);
  plan.first_calls.resize(scan->windows.all().size());
  const auto note_call = [&](const Record& record) {
    if (spool::activity_kind(record) != spool::ActivityKind::kApiCall) return;
    const auto call = spool::activity_as<spool::ApiCallRecord>(record);
    const auto start = scan->time_ns(call.begin_tsc);
    if (call.begin_tsc != 0 && start && scan->windows.at(call.begin_tsc))
      note_first_call(scan->windows, call, *start, &plan.first_calls);
  };
  for (std::size_t i = 0; i < scan->index.record_chunks.size(); ++i) {
    plan.at_chunk.push_back(walk.numbers());
    // Its row is made with this chunk.
    if (const auto& waiting = walk.numbers().wrapper) {
      ChunkSpan& span = scan->record_spans[i];
      span.first = std::min(span.first, waiting->range.begin_tsc);
      span.last = std::max(span.last, waiting->range.begin_tsc);
    }
    const auto records = read_records(bytes, scan->index.record_chunks[i], buffer, nullptr);
    walk.add_chunk(records, scan->index.record_chunks[i]);
    for (const Record& record : records) note_call(record);
  }
  walk.add_waiting_wrapper();
  plan.ev_idx_end = walk.numbers().ev_idx;
  std::unordered_map<std::uint32_t, std::int64_t> device_of_work;
  for (const SpoolChunk& chunk : scan->index.activity_chunks) {
    ActivityDecoder decoder(&ignored);
    decoder.add_chunk(read_records(bytes, chunk, buffer, nullptr), chunk.offset);
    const SpoolActivities found = decoder.take();
    for (const std::uint32_t at : found.calls) note_call(found.records[at]);
    for (const GpuEvent& work : found.work) device_of_work[work.context] = work.device;
    for (const std::uint32_t at : found.events) {
      const auto event = found.as<spool::CudaEventRecord>(at);
      if (event.device != spool::kNoDeviceNumber)
        carry->device_of_context[event.context] = event.device;
    }
  }
  for (const auto& [context, device] : device_of_work) carry->device_of_context[context] = device;
  return plan;
}

}  // namespace lanescope::format
