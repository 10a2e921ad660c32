// One trace from any file or recorder: columns of slices, instants, counters, flows and their
// arguments. TraceBuilder builds it once; it never changes afterwards, so any number of threads
// read it without locks. Its columns lie in memory or in a mapped file; readers see no difference.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lanescope/base/ids.h"
#include "lanescope/model/trace_columns.h"

namespace lanescope {

class Trace {
 public:
  // Defined in trace.cpp: 60 columns each, which every batch of sources would compile again.
  Trace();
  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;
  ~Trace();
  // The columns must fit each other, as TraceBuilder leaves them: sorted, equally long within a
  // table, ids within the table that they point to. Whoever takes them from a file checks that
  // the file is whole.
  static Trace from_columns(TraceColumns columns);
  const TraceColumns& columns() const { return columns_; }

  const SliceColumns& slices() const { return columns_.slices; }
  const InstantColumns& instants() const { return columns_.instants; }
  const CounterColumns& counters() const { return columns_.counters; }
  std::span<const Flow> flows() const { return columns_.flows; }
  std::span<const Track> tracks() const { return columns_.tracks; }
  std::span<const Process> processes() const { return columns_.processes; }
  std::span<const Category> categories() const { return columns_.categories; }
  std::span<const Step> steps() const { return columns_.steps; }
  // Top-level entries in file order, traceEvents left out: deviceProperties, distributedInfo,
  // user metadata, ...
  std::span<const Metadata> metadata() const { return columns_.metadata; }
  // Metadata ("M") events that name neither a process nor a thread, each as JSON.
  std::span<const StringId> other_metadata_events() const { return columns_.other_metadata_events; }

  [[gnu::always_inline]] std::string_view text(StringId id) const {
    return id == kNone<StringId> ? std::string_view() : columns_.strings.view(id);
  }
  const StringColumns& strings() const { return columns_.strings; }
  ArgsView args(ArgsId id) const { return columns_.args.view(id); }
  [[gnu::always_inline]] ArgsView slice_args(SliceId id) const {
    return columns_.args.view(columns_.slices.args[raw(id)]);
  }

  [[gnu::always_inline]] CategoryKind kind(SliceId id) const {
    return columns_.categories[raw(columns_.slices.category[raw(id)])].kind;
  }
  // What a call of a runtime or driver does; for other slices and unknown calls nothing. O(1).
  [[gnu::always_inline]] ApiCall api_call(SliceId id) const {
    const std::uint32_t name = raw(columns_.slices.name[raw(id)]);
    return is_api_call(kind(id)) && name < columns_.api_calls.size() ? columns_.api_calls[name]
                                                                     : ApiCall();
  }
  [[gnu::always_inline]] std::string_view name(SliceId id) const {
    return text(columns_.slices.name[raw(id)]);
  }
  std::int64_t start_ns(SliceId id) const { return columns_.slices.start_ns[raw(id)]; }
  std::int64_t dur_ns(SliceId id) const { return columns_.slices.dur_ns[raw(id)]; }
  [[gnu::always_inline]] std::int64_t end_ns(SliceId id) const { return start_ns(id) + dur_ns(id); }
  const Track& track(TrackId id) const { return columns_.tracks[raw(id)]; }
  const Track& track(SliceId id) const {
    return columns_.tracks[raw(columns_.slices.track[raw(id)])];
  }
  const Process& process(ProcessId id) const { return columns_.processes[raw(id)]; }
  // The JSON of that top-level key; with equal keys, the last one counts, as in other readers.
  std::optional<std::string_view> metadata_json(std::string_view key) const;

  // baseTimeNanoseconds; 0 when the file has none.
  std::int64_t base_time_ns() const { return columns_.values.base_time_ns; }
  // The capture window: from the first to the last of the writer's spans (one per cycle); without
  // such spans, from the first start to the last end. Empty: [0, 0).
  std::int64_t window_start_ns() const { return columns_.values.window_start_ns; }
  std::int64_t window_end_ns() const { return columns_.values.window_end_ns; }
  bool has_window_span() const { return columns_.values.has_window_span; }

  const ImportStats& import_stats() const { return columns_.values.stats; }
  // Memory of all columns, arguments and strings: Column::memory_bytes().
  std::size_t memory_bytes() const;

 private:
  TraceColumns columns_;
};

}  // namespace lanescope
