#include "lanescope/format/spool/activity_links.h"

#include <algorithm>
#include <tuple>

namespace lanescope::format {
namespace {

std::size_t index_in(const SpoolWindows& windows, std::uint64_t tick) {
  return static_cast<std::size_t>(windows.at(tick) - windows.all().data());
}

class Linker {
 public:
  Linker(const ActivityContext& context, const SpoolActivities& activities, ImportStats* stats)
      : context_(context), activities_(activities), stats_(stats) {}

  ActivityLinks run() {
    read_calls();
    find_inner_calls();
    find_open();
    find_steps();
    find_first_calls();
    std::vector<CallsById::Call> calls;
    for (std::uint32_t i = 0; i < out_.calls.size(); ++i)
      if (!out_.calls[i].is_inner)
        calls.push_back({.id = out_.calls[i].record.correlation,
                         .index = i,
                         .start_ns = out_.calls[i].start_ns,
                         .tid = out_.calls[i].record.os_tid});
    const CallsById by_id(std::move(calls));
    for (std::uint32_t i = 0; i < activities_.work.size(); ++i) link_work(i, by_id);
    link_others(activities_.syncs, by_id, &out_.syncs);
    link_others(activities_.events, by_id, &out_.events);
    link_others(activities_.overheads, CallsById({}), &out_.overheads);  // time alone counts
    return std::move(out_);
  }

 private:
  struct Times {
    std::int64_t start, end;
  };
  // An end before its begin is kept: the trace's builder reads it as no length, and counts it.
  std::optional<Times> times(std::uint64_t begin, std::uint64_t end, bool counts) {
    const auto start_ns = context_.time_ns(begin);
    const auto end_ns = end != 0 ? context_.time_ns(end) : start_ns;
    if (start_ns && end_ns) return Times{*start_ns, *end_ns};
    if (counts) stats_->count(ImportIssue::kBadTime);
    return std::nullopt;
  }

  void read_calls() {
    out_.calls.reserve(activities_.calls.size());
    for (const std::uint32_t record : activities_.calls) {
      LinkedCall call;
      call.record = activities_.as<spool::ApiCallRecord>(record);
      call.in_piece = context_.piece.holds(call.record.begin_tsc);
      const auto when = times(call.record.begin_tsc, call.record.end_tsc, call.in_piece);
      if (!when) continue;
      call.start_ns = when->start;
      call.end_ns = when->end;
      call.in_window = context_.windows.at(call.record.begin_tsc) != nullptr;
      if (call.in_window && call.in_piece) call.track = context_.thread_track(call.record.os_tid);
      out_.calls.push_back(call);
    }
  }

  void find_inner_calls() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < out_.calls.size(); ++i)
      if (out_.calls[i].record.correlation != 0) order.push_back(i);
    const auto key = [&](std::uint32_t i) {
      const LinkedCall& call = out_.calls[i];
      return std::tuple(call.record.correlation, call.record.os_tid, call.start_ns, is_driver(call),
                        i);
    };
    const auto less = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
    if (!std::is_sorted(order.begin(), order.end(), less))
      std::sort(order.begin(), order.end(), less);
    const LinkedCall* outer = nullptr;
    for (const std::uint32_t i : order) {
      LinkedCall& call = out_.calls[i];
      if (!is_driver(call))
        outer = &call;
      else
        call.is_inner = outer && outer->record.correlation == call.record.correlation &&
                        outer->record.os_tid == call.record.os_tid &&
                        call.start_ns <= outer->end_ns;
    }
  }
  static bool is_driver(const LinkedCall& call) {
    return call.record.domain == static_cast<std::uint8_t>(spool::ApiDomain::kDriver);
  }

  void find_open() {
    for (LinkedCall& call : out_.calls) {
      if (!call.in_window || !call.in_piece || call.is_inner) continue;
      call.open = static_cast<std::uint32_t>(out_.open.size());
      out_.open.push_back({.track = call.track, .time_ns = call.start_ns});
    }
    find_open_ranges(context_.ranges, out_.open, &out_.annotations);
  }

  // Steps count for all threads: backward and loader threads work for the step that another thread
  // marks. So all calls use the step ranges of that thread.
  void find_steps() {
    std::vector<SpoolRange> steps;
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < context_.step_of.size(); ++i) {
      if (!context_.step_of[i]) continue;
      steps.push_back(context_.ranges[i]);
      steps.back().track = TrackId{0};
      numbers.push_back(*context_.step_of[i]);
    }
    if (steps.empty()) return;
    std::vector<OpenRanges> moments(out_.calls.size());
    for (std::size_t i = 0; i < moments.size(); ++i) {
      moments[i].track = TrackId{0};
      moments[i].time_ns = out_.calls[i].start_ns;
    }
    std::vector<std::uint32_t> unused;
    for (SpoolRange& step : steps) step.is_annotation = false;
    find_open_ranges(steps, moments, &unused);
    for (std::size_t i = 0; i < moments.size(); ++i)
      if (moments[i].innermost != kNoIndex) out_.calls[i].step = numbers[moments[i].innermost];
  }

  void find_first_calls() {
    first_calls_ = context_.first_calls;
    if (!first_calls_.empty()) return;
    own_first_calls_.resize(context_.windows.all().size());
    for (const LinkedCall& call : out_.calls)
      if (call.in_window)
        note_first_call(context_.windows, call.record, call.start_ns, &own_first_calls_);
    first_calls_ = own_first_calls_;
  }

  void link_work(std::uint32_t index, const CallsById& by_id) {
    const GpuEvent& event = activities_.work[index];
    const bool begins_in_piece = context_.piece.holds(event.begin);
    const auto when = times(event.begin, event.end, begins_in_piece);
    if (!when) return;
    LinkedWork work;
    work.event = index;
    work.start_ns = when->start;
    work.end_ns = when->end;
    work.call = by_id.find(event.correlation, work.start_ns);
    const bool begins_inside = context_.windows.at(event.begin) != nullptr;
    if (work.call != kNoIndex && out_.calls[work.call].in_window) {
      if (out_.calls[work.call].in_piece) out_.work.push_back(work);
      return;
    }
    if (!begins_in_piece) return;
    if (!begins_inside) {
      if (!context_.all_windows.at(event.begin)) stats_->count(ImportIssue::kOutOfWindow);
      return;
    }
    work.launched_before_window = work.call != kNoIndex || is_older_than_window(event);
    stats_->count(work.launched_before_window ? ImportIssue::kLaunchedBeforeWindow
                                              : ImportIssue::kLaunchUnknown);
    out_.work.push_back(work);
  }
  bool is_older_than_window(const GpuEvent& event) const {
    const std::size_t window = index_in(context_.windows, event.begin);
    const std::uint32_t first = first_calls_[window].correlation;
    return first != 0 && event.correlation != 0 &&
           static_cast<std::int32_t>(event.correlation - first) < 0;
  }

  void link_others(const std::vector<std::uint32_t>& records, const CallsById& by_id,
                   std::vector<LinkedOther>* out) {
    for (const std::uint32_t record : records) {
      const spool::RecordHead& head = activities_.records[record].head;
      if (head.begin_tsc == 0) continue;  // an event whose time is not known is no row
      const bool begins_in_piece = context_.piece.holds(head.begin_tsc);
      const auto when = times(head.begin_tsc, head.end_tsc, begins_in_piece);
      if (!when) continue;
      const std::uint32_t call =
          by_id.find(correlation_of(activities_.records[record]), when->start);
      const bool launched_inside = call != kNoIndex && out_.calls[call].in_window;
      if (launched_inside ? out_.calls[call].in_piece
                          : begins_in_piece && context_.windows.at(head.begin_tsc) != nullptr)
        out->push_back({record, when->start, when->end, call});
    }
  }

  const ActivityContext& context_;
  const SpoolActivities& activities_;
  ImportStats* stats_;
  ActivityLinks out_;
  std::span<const FirstCall> first_calls_;
  std::vector<FirstCall> own_first_calls_;
};

}  // namespace

void note_first_call(const SpoolWindows& windows, const spool::ApiCallRecord& call,
                     std::int64_t start_ns, std::vector<FirstCall>* first_calls) {
  if (call.correlation == 0) return;
  FirstCall& first = (*first_calls)[index_in(windows, call.begin_tsc)];
  if (first.correlation == 0 || start_ns < first.start_ns) first = {start_ns, call.correlation};
}

ActivityLinks link_activities(const ActivityContext& context, const SpoolActivities& activities,
                              ImportStats* stats) {
  return Linker(context, activities, stats).run();
}

}  // namespace lanescope::format
