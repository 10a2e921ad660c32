#include "lanescope/format/spool/spool_activities.h"

#include <algorithm>

namespace lanescope::format {
namespace {

using spool::ActivityKind;

template <typename T>
GpuEvent event_of(const T& record, std::uint32_t at) {
  GpuEvent event;
  event.begin = record.begin_tsc;
  event.end = record.end_tsc;
  event.correlation = record.correlation;
  event.stream = record.stream;
  event.context = record.context;
  event.device = record.device;
  event.kind = static_cast<ActivityKind>(record.kind);
  event.record = at;
  return event;
}

static_assert(offsetof(spool::SyncRecord, correlation) ==
                  offsetof(spool::CudaEventRecord, correlation) &&
              offsetof(spool::SyncRecord, correlation) ==
                  offsetof(spool::OverheadRecord, correlation));

}  // namespace

void ActivityDecoder::add_chunk(std::span<const spool::Record> records, std::uint64_t offset) {
  offset_ = offset;
  const std::size_t first = out_.records.size();
  out_.records.insert(out_.records.end(), records.begin(), records.end());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool has_more =
        i + 1 < records.size() && spool::activity_kind(records[i + 1]) == ActivityKind::kContinued;
    if (add(static_cast<std::uint32_t>(first + i), has_more) && has_more) ++i;
  }
}

// True: the next record belongs to it.
bool ActivityDecoder::add(std::uint32_t at, bool has_more) {
  switch (spool::activity_kind(out_.records[at])) {
    case ActivityKind::kApiCall:
      add_other(out_.calls, at);
      return false;
    case ActivityKind::kSync:
      add_other(out_.syncs, at);
      return false;
    case ActivityKind::kCudaEvent:  // without times, it still says what a wait was for
      out_.events.push_back(at);
      note_times(at);
      return false;
    case ActivityKind::kOverhead:
      add_other(out_.overheads, at);
      return false;
    case ActivityKind::kKernel:
      add_kernel(at, has_more);
      return true;
    case ActivityKind::kGraphTrace:
      add_kernel(at, false);
      return false;
    case ActivityKind::kMemcpy: {
      const auto copy = out_.as<spool::MemcpyRecord>(at);
      add_transfer(copy, at, has_more);
      return copy.more != 0;
    }
    case ActivityKind::kMemset: {
      const auto set = out_.as<spool::MemsetRecord>(at);
      add_transfer(set, at, has_more);
      return set.more != 0;
    }
    default:
      stats_->count(ImportIssue::kEventLost, offset_);
      return false;
  }
}

void ActivityDecoder::note_times(std::uint32_t at) {
  const spool::RecordHead& head = out_.records[at].head;
  out_.last_tick = std::max({out_.last_tick, head.begin_tsc, head.end_tsc});
}
bool ActivityDecoder::is_measured(std::uint32_t at) {
  if (out_.records[at].head.begin_tsc != 0) return true;
  stats_->count(ImportIssue::kUnmeasuredTime, offset_);
  return false;
}
void ActivityDecoder::add_other(std::vector<std::uint32_t>& list, std::uint32_t at) {
  if (!is_measured(at)) return;
  list.push_back(at);
  note_times(at);
}

void ActivityDecoder::add_kernel(std::uint32_t at, bool has_more) {
  const auto kernel = out_.as<spool::KernelRecord>(at);
  GpuEvent event = event_of(kernel, at);
  event.graph_id = kernel.graph_id;
  event.has_more = has_more;
  if (has_more)
    event.graph_node_id = out_.as<spool::KernelMoreRecord>(at + 1).graph_node_id;
  else if (event.kind == ActivityKind::kKernel)
    stats_->count(ImportIssue::kFieldLost, offset_);
  add_work(event);
}

template <typename T>
void ActivityDecoder::add_transfer(const T& transfer, std::uint32_t at, bool has_more) {
  GpuEvent event = event_of(transfer, at);
  event.has_more = transfer.more != 0 && has_more;
  if (event.has_more) {
    const auto more = out_.as<spool::TransferMoreRecord>(at + 1);
    event.graph_id = more.graph_id;
    event.graph_node_id = more.graph_node_id;
  } else if (transfer.more != 0) {
    stats_->count(ImportIssue::kFieldLost, offset_);
  }
  add_work(event);
}

void ActivityDecoder::add_work(const GpuEvent& event) {
  if (!is_measured(event.record)) return;
  out_.work.push_back(event);
  note_times(event.record);
}

bool is_thread_activity(const spool::Record& record) {
  const ActivityKind kind = spool::activity_kind(record);
  return kind == ActivityKind::kApiCall || kind == ActivityKind::kSync ||
         kind == ActivityKind::kCudaEvent;
}

std::uint32_t correlation_of(const spool::Record& record) {
  const auto at = [&](std::size_t offset) {
    std::uint32_t id = 0;
    std::memcpy(&id, reinterpret_cast<const char*>(&record) + offset, sizeof id);
    return id;
  };
  switch (spool::activity_kind(record)) {
    case ActivityKind::kApiCall:
      return at(offsetof(spool::ApiCallRecord, correlation));
    case ActivityKind::kKernel:
    case ActivityKind::kGraphTrace:
      return at(offsetof(spool::KernelRecord, correlation));
    case ActivityKind::kMemcpy:
      return at(offsetof(spool::MemcpyRecord, correlation));
    case ActivityKind::kMemset:
      return at(offsetof(spool::MemsetRecord, correlation));
    case ActivityKind::kSync:
    case ActivityKind::kCudaEvent:
    case ActivityKind::kOverhead:
      return at(offsetof(spool::SyncRecord, correlation));
    default:
      return 0;
  }
}

}  // namespace lanescope::format
