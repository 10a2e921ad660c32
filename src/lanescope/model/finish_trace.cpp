// Problem: files list events in any order; analyses want columns that are sorted and whole. Idea:
// once, at the end, pair begins with ends (pair_events.cpp), then sort by one permutation that is
// applied column by column. Cost: O(n log n) at worst, O(n) for the usual nearly sorted file; one
// extra column of memory.
#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lanescope/model/each_column.h"
#include "lanescope/model/nearly_sorted.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope {
namespace {

template <typename T>
void permute(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted;
  sorted.reserve(order.size());
  for (const std::uint32_t from : order) sorted.push_back(column[from]);
  column = std::move(sorted);
}

// A little spare room is cheaper than a copy of the column.
template <typename T>
void give_back_spare(std::vector<T>& column) {
  if (column.capacity() - column.size() > column.size() / 8) column.shrink_to_fit();
}

bool is_identity(const std::vector<std::uint32_t>& order) {
  for (std::uint32_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

// Sorts a few sorted runs that follow each other, as writers leave them (thread by thread, then
// the runtime rows).
template <typename Iterator, typename Less>
void sort_runs(Iterator begin, Iterator end, Less less) {
  std::vector<Iterator> bounds{begin};
  while (bounds.back() != end && bounds.size() <= 64)
    bounds.push_back(std::is_sorted_until(bounds.back(), end, less));
  if (bounds.back() != end) return sort_nearly_sorted(begin, end, less);
  while (bounds.size() > 2) {
    std::vector<Iterator> merged{begin};
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const std::size_t last = std::min(i + 2, bounds.size() - 1);
      std::inplace_merge(bounds[i], bounds[i + 1], bounds[last], less);
      merged.push_back(bounds[last]);
    }
    bounds = std::move(merged);
  }
}

// The number at the end of "stream 7", "stream 7 " or "7".
std::optional<std::int64_t> trailing_number(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::size_t at = text.size();
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || at == text.size())
    return std::nullopt;
  return value;
}

}  // namespace

void TraceBuilder::apply_thread_labels() {
  for (const ThreadLabel& label : labels_) {
    const ProcessId owner = process(label.pid);
    bool found = false;
    for (const TrackKind kind : {TrackKind::kThread, TrackKind::kStream}) {
      const auto it =
          track_by_key_.find({kind, owner, label.tid, kNone<StringId>, kNone<StringId>});
      if (it == track_by_key_.end()) continue;
      found = true;
      Track& track = trace_.tracks_[raw(it->second)];
      if (label.name != kNone<StringId>) track.name = label.name;
      if (label.sort_index) track.sort_index = label.sort_index;
    }
    if (!found) {  // a thread without slices keeps its name
      Track& track = trace_.tracks_[raw(this->track(label.pid, label.tid, false))];
      track.name = label.name;
      track.sort_index = label.sort_index;
    }
  }
  labels_.clear();
}

void TraceBuilder::sort_slices() {
  SliceColumns& slices = trace_.slices_;
  const auto count = static_cast<std::uint32_t>(slices.size());
  // Bucket by track first: within one track, most files are nearly sorted.
  std::vector<std::uint32_t> first(trace_.tracks_.size() + 1, 0);
  for (const TrackId track : slices.track) ++first[raw(track) + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> order(count);
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i) order[at[raw(slices.track[i])]++] = i;
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    if (slices.start_ns[a] != slices.start_ns[b]) return slices.start_ns[a] < slices.start_ns[b];
    if (slices.dur_ns[a] != slices.dur_ns[b]) return slices.dur_ns[a] > slices.dur_ns[b];
    return slices.event_index[a] < slices.event_index[b];
  };
  for (std::size_t track = 0; track < trace_.tracks_.size(); ++track) {
    const auto begin = order.begin() + first[track], end = order.begin() + first[track + 1];
    if (!std::is_sorted(begin, end, less)) {
      sort_runs(begin, end, less);
      stats().count(ImportIssue::kOutOfOrder);
    }
    trace_.tracks_[track].first_slice = first[track];
    trace_.tracks_[track].slice_count = first[track + 1] - first[track];
  }
  if (!is_identity(order)) {
    each_column(slices, [&order](auto& column) { permute(column, order); });
  } else {
    each_column(slices, [](auto& column) { give_back_spare(column); });
  }
}

void TraceBuilder::sort_instants() {
  InstantColumns& instants = trace_.instants_;
  std::vector<std::uint32_t> order(instants.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return instants.time_ns[a] < instants.time_ns[b];
  });
  permute(instants.time_ns, order);
  permute(instants.name, order);
  permute(instants.track, order);
  permute(instants.category, order);
  permute(instants.args, order);
  permute(instants.event_index, order);
  permute(instants.scope, order);
}

void TraceBuilder::sort_counters() {
  CounterColumns& counters = trace_.counters_;
  std::vector<std::uint32_t> order(counters.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return counters.track[a] != counters.track[b] ? counters.track[a] < counters.track[b]
                                                  : counters.time_ns[a] < counters.time_ns[b];
  });
  permute(counters.time_ns, order);
  permute(counters.track, order);
  permute(counters.value, order);
}

void TraceBuilder::name_streams() {
  for (Track& track : trace_.tracks_) {
    if (track.kind != TrackKind::kStream) continue;
    const Scalar& pid = trace_.processes_[raw(track.process)].pid;
    const auto device = pid.is_text ? trailing_number(text(pid.text)) : std::optional(pid.number);
    if (device && *device >= 0 && *device <= INT32_MAX)
      track.device = static_cast<std::int32_t>(*device);
    track.stream =
        track.tid.is_text ? trailing_number(text(track.tid.text)) : std::optional(track.tid.number);
  }
}

void TraceBuilder::find_steps() {
  constexpr std::string_view kPrefix = "ProfilerStep#";
  const SliceColumns& slices = trace_.slices_;
  std::unordered_map<std::uint32_t, std::int64_t> number_by_name;
  for (std::uint32_t i = 0; i < trace_.strings_.size(); ++i) {
    const std::string_view name = trace_.strings_.view(StringId{i});
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t number = 0;
    const auto [end, error] =
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) number_by_name.emplace(i, number);
  }
  if (number_by_name.empty()) return;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const auto it = number_by_name.find(raw(slices.name[i]));
    if (it == number_by_name.end() ||
        trace_.tracks_[raw(slices.track[i])].kind != TrackKind::kThread)
      continue;
    if (kind(slices.category[i]) == CategoryKind::kGpuUserAnnotation) continue;
    trace_.steps_.push_back({it->second, SliceId{i}});
  }
  std::stable_sort(trace_.steps_.begin(), trace_.steps_.end(), [&](const Step& a, const Step& b) {
    return trace_.start_ns(a.slice) < trace_.start_ns(b.slice);
  });
}

void TraceBuilder::find_window() {
  if (trace_.has_window_span_) return;
  const SliceColumns& slices = trace_.slices_;
  struct Extent {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    void cover(std::int64_t start, std::int64_t end) {
      first = std::min(first, start);
      last = std::max(last, end);
    }
  };
  Extent all, spans;  // a recording of several cycles has a span for each
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t end = saturating_end(slices.start_ns[i], slices.dur_ns[i]);
    all.cover(slices.start_ns[i], end);
    if (kind(slices.category[i]) != CategoryKind::kTrace) continue;
    spans.cover(slices.start_ns[i], end);
    trace_.has_window_span_ = true;
  }
  if (slices.size() == 0) return;
  const Extent& window = trace_.has_window_span_ ? spans : all;
  trace_.window_start_ns_ = window.first;
  trace_.window_end_ns_ = window.last;
}

void TraceBuilder::find_api_calls() {
  const SliceColumns& slices = trace_.slices_;
  std::vector<char> is_call, is_found(trace_.strings_.size());
  for (const Category& category : trace_.categories_)
    is_call.push_back(is_api_call(category.kind) ? 1 : 0);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (is_call[raw(slices.category[i])] == 0) continue;
    const std::uint32_t name = raw(slices.name[i]);
    if (name >= is_found.size() || is_found[name] != 0) continue;  // the first: no name
    is_found[name] = 1;
    if (trace_.api_calls_.size() <= name) trace_.api_calls_.resize(name + 1);
    trace_.api_calls_[name] = find_api_call(trace_.strings_.view(StringId{name}));
  }
  trace_.api_calls_.shrink_to_fit();
}

Result<Trace> TraceBuilder::finish() && {
  if (trace_.slices_.size() + begin_end_.size() + async_.size() >=
      std::numeric_limits<std::uint32_t>::max() - 1)
    return Error{Errc::kLimit, "expected fewer than 4294967294 slices in one trace"};
  stats().events = event_index_;
  pair_begin_end(begin_end_);
  for (OpenEvent& event : async_) {  // S/T/F/p are the older spelling of b/n/e
    if (event.phase == 'b' || event.phase == 'S')
      event.phase = 'B';
    else if (event.phase == 'e' || event.phase == 'F')
      event.phase = 'E';
  }
  for (const OpenEvent& event : async_) {
    if (event.phase == 'B' || event.phase == 'E') continue;
    InstantColumns& instants = trace_.instants_;
    instants.time_ns.push_back(event.time_ns);
    instants.name.push_back(event.name);
    instants.track.push_back(event.track);
    instants.category.push_back(event.category);
    instants.args.push_back(event.args);
    instants.event_index.push_back(event.event_index);
    instants.scope.push_back('t');
  }
  std::erase_if(async_,
                [](const OpenEvent& event) { return event.phase != 'B' && event.phase != 'E'; });
  pair_begin_end(async_);
  pair_flows();
  apply_thread_labels();
  sort_slices();
  sort_instants();
  sort_counters();
  name_streams();
  find_steps();
  find_window();
  find_api_calls();
  trace_.args_.shrink_to_fit();
  return std::move(trace_);
}

}  // namespace lanescope
