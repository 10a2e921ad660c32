// Problem: importers add events in any order; analyses want sorted columns. Idea: sort once, at the
// end, by one permutation that is applied column by column. Cost: O(n log n) at worst, O(n) for the
// usual nearly sorted file; one extra column of memory for each thread. Tracks, columns and tables
// do not depend on each other, so threads share them.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "lanescope/base/share_work.h"
#include "lanescope/model/each_column.h"
#include "lanescope/model/sorted_runs.h"
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

}  // namespace

void TraceBuilder::sort_slices(unsigned threads) {
  auto& slices = tables_.slices;
  const auto count = static_cast<std::uint32_t>(slices.size());
  // Bucket by track first: within one track, most files are nearly sorted.
  std::vector<std::uint32_t> first(tables_.tracks.size() + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) ++first[raw(slices.track[i]) + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> order(count);
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i) order[at[raw(slices.track[i])]++] = i;
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    if (slices.start_ns[a] != slices.start_ns[b]) return slices.start_ns[a] < slices.start_ns[b];
    if (slices.dur_ns[a] != slices.dur_ns[b]) return slices.dur_ns[a] > slices.dur_ns[b];
    return slices.event_index[a] < slices.event_index[b];
  };
  std::vector<char> was_mixed(tables_.tracks.size());
  share_work(tables_.tracks.size(), threads, [&](std::size_t track) {
    const auto begin = order.begin() + first[track], end = order.begin() + first[track + 1];
    was_mixed[track] = !std::is_sorted(begin, end, less);
    if (was_mixed[track]) sort_runs(begin, end, less);
    tables_.tracks[track].first_slice = first[track];
    tables_.tracks[track].slice_count = first[track + 1] - first[track];
  });
  for (const char mixed : was_mixed)
    if (mixed) stats().count(ImportIssue::kOutOfOrder);
  if (!is_identity(order)) {
    std::vector<std::function<void()>> columns;
    each_slice_column(
        [&](const char*, auto& column) {
          columns.emplace_back([&column, &order] { permute(column, order); });
        },
        slices);
    if (!slices.track.high.empty())
      columns.emplace_back([&slices, &order] { permute(slices.track.high, order); });
    constexpr unsigned kMostColumns = 3;  // that exist twice at a time
    share_work(columns.size(), std::min(threads, kMostColumns),
               [&columns](std::size_t column) { columns[column](); });
    if (tables_.steps.empty()) return;
    std::vector<std::uint32_t> place(count);  // the inverse of `order`
    for (std::uint32_t i = 0; i < count; ++i) place[order[i]] = i;
    for (Step& step : tables_.steps) step.slice = SliceId{place[raw(step.slice)]};
  } else {
    each_slice_column([](const char*, auto& column) { give_back_spare(column); }, slices);
  }
}

void TraceBuilder::sort_instants() {
  auto& instants = tables_.instants;
  std::vector<std::uint32_t> order(instants.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return instants.time_ns[a] < instants.time_ns[b];
  });
  each_instant_column([&order](const char*, auto& column) { permute(column, order); }, instants);
}

void TraceBuilder::sort_counters() {
  auto& counters = tables_.counters;
  std::vector<std::uint32_t> order(counters.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return counters.track[a] != counters.track[b] ? counters.track[a] < counters.track[b]
                                                  : counters.time_ns[a] < counters.time_ns[b];
  });
  each_counter_column([&order](const char*, auto& column) { permute(column, order); }, counters);
}

// By start; at equal starts in the order of the slices.
void TraceBuilder::sort_steps() {
  const auto& start_ns = tables_.slices.start_ns;
  std::sort(tables_.steps.begin(), tables_.steps.end(), [&](const Step& a, const Step& b) {
    const std::int64_t a_ns = start_ns[raw(a.slice)], b_ns = start_ns[raw(b.slice)];
    return a_ns != b_ns ? a_ns < b_ns : a.slice < b.slice;
  });
}

void TraceBuilder::sort_flows() {
  sort_runs(tables_.flows.begin(), tables_.flows.end(), [](const Flow& a, const Flow& b) {
    if (a.from_ns != b.from_ns) return a.from_ns < b.from_ns;
    if (a.to_ns != b.to_ns) return a.to_ns < b.to_ns;
    if (a.category != b.category) return a.category < b.category;
    if (a.id_is_text != b.id_is_text || a.id_value != b.id_value) {
      const Scalar id_a = a.id(), id_b = b.id();
      if (id_a.number != id_b.number) return id_a.number < id_b.number;
      return id_a.text < id_b.text;
    }
    if (a.from_track != b.from_track) return a.from_track < b.from_track;
    return a.to_track < b.to_track;
  });
  give_back_spare(tables_.flows);
}

void TraceBuilder::find_window() {
  if (tables_.values.has_window_span) return;
  const auto& slices = tables_.slices;
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
    const std::int64_t end = slices.start_ns[i] + slices.dur_ns[i];
    all.cover(slices.start_ns[i], end);
    if (kind(slices.category[i]) != CategoryKind::kTrace) continue;
    spans.cover(slices.start_ns[i], end);
    tables_.values.has_window_span = true;
  }
  if (slices.size() == 0) return;
  const Extent& window = tables_.values.has_window_span ? spans : all;
  tables_.values.window_start_ns = window.first;
  tables_.values.window_end_ns = window.last;
}

void TraceBuilder::find_api_calls() {
  const auto& slices = tables_.slices;
  std::vector<char> is_call, is_found(strings_.size());
  for (const Category& category : tables_.categories)
    is_call.push_back(is_api_call(category.kind) ? 1 : 0);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (is_call[raw(slices.category[i])] == 0) continue;
    const std::uint32_t name = raw(slices.name[i]);
    if (name >= is_found.size() || is_found[name] != 0) continue;  // the first: no name
    is_found[name] = 1;
    if (tables_.api_calls.size() <= name) tables_.api_calls.resize(name + 1);
    tables_.api_calls[name] = find_api_call(strings_.view(StringId{name}));
  }
  tables_.api_calls.shrink_to_fit();
}

unsigned TraceBuilder::threads_of_use(unsigned threads) const {
  constexpr std::size_t kFewSlices = 1u << 17;
  return tables_.slices.size() < kFewSlices ? 1 : threads;
}

Result<Trace> TraceBuilder::finish(unsigned threads) && {
  const auto& slices = tables_.slices;
  if (slices.size() >= std::numeric_limits<std::uint32_t>::max() - 1 ||
      slices.dur_ns.long_ns.size() > slices.dur_ns.kLong)
    return Error{Errc::kLimit, "expected fewer than 4294967294 slices in one trace"};
  stats().events = event_index_;
  threads = threads_of_use(threads);
  share_work(4, threads, [&](std::size_t table) {
    if (table == 0) sort_slices(threads);
    if (table == 1) sort_flows();
    if (table == 2) sort_instants();
    if (table == 3) sort_counters();
  });
  sort_steps();
  find_window();
  find_api_calls();
  tables_.slices.dur_ns.long_ns.shrink_to_fit();
  return hand_over();
}

// The vectors become columns where they are; only the texts are copied, into one piece.
Trace TraceBuilder::hand_over() {
  tables_.args = std::move(args_).take();
  StringPool::Parts texts = std::move(strings_).take();
  tables_.strings = {std::move(texts.bytes), std::move(texts.starts), std::move(texts.slots)};
  TraceColumns columns;
  columns.values = tables_.values;
  each_column([](const char*, auto& rows, auto& column) { column = Column(std::move(rows)); },
              tables_, columns);
  return Trace::from_columns(std::move(columns));
}

}  // namespace lanescope
