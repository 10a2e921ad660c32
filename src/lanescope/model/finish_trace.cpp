// Problem: importers add events in any order; analyses want sorted columns. Idea: sort once, at the
// end, by one permutation that is applied column by column. Cost: O(n log n) at worst, O(n) for the
// usual nearly sorted file; one extra column of memory.
#include <algorithm>
#include <limits>
#include <numeric>
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

}  // namespace

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
    if (trace_.steps_.empty()) return;
    std::vector<std::uint32_t> place(count);  // the inverse of `order`
    for (std::uint32_t i = 0; i < count; ++i) place[order[i]] = i;
    for (Step& step : trace_.steps_) step.slice = SliceId{place[raw(step.slice)]};
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

// By start; at equal starts in the order of the slices.
void TraceBuilder::sort_steps() {
  std::sort(trace_.steps_.begin(), trace_.steps_.end(), [&](const Step& a, const Step& b) {
    const std::int64_t a_ns = trace_.start_ns(a.slice), b_ns = trace_.start_ns(b.slice);
    return a_ns != b_ns ? a_ns < b_ns : a.slice < b.slice;
  });
}

void TraceBuilder::sort_flows() {
  sort_nearly_sorted(trace_.flows_.begin(), trace_.flows_.end(), [](const Flow& a, const Flow& b) {
    if (a.from_ns != b.from_ns) return a.from_ns < b.from_ns;
    if (a.to_ns != b.to_ns) return a.to_ns < b.to_ns;
    if (a.category != b.category) return a.category < b.category;
    if (a.id.number != b.id.number) return a.id.number < b.id.number;
    if (a.id.text != b.id.text) return a.id.text < b.id.text;
    if (a.from_track != b.from_track) return a.from_track < b.from_track;
    return a.to_track < b.to_track;
  });
  trace_.flows_.shrink_to_fit();
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
  if (trace_.slices_.size() >= std::numeric_limits<std::uint32_t>::max() - 1)
    return Error{Errc::kLimit, "expected fewer than 4294967294 slices in one trace"};
  stats().events = event_index_;
  sort_flows();
  sort_slices();
  sort_instants();
  sort_counters();
  sort_steps();
  find_window();
  find_api_calls();
  trace_.args_.shrink_to_fit();
  return std::move(trace_);
}

}  // namespace lanescope
