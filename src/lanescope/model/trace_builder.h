// How a new Trace is made. Importers add typed tracks, whole slices and arrows, and steps, in any
// order; finish() sorts and freezes them. Some formats write a slice or an arrow as two events (Chrome's
// begin and end). Their importers join the two first: format/kineto_json/chrome_events.h.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "lanescope/base/result.h"
#include "lanescope/base/string_pool.h"
#include "lanescope/model/args_builder.h"
#include "lanescope/model/time_limits.h"
#include "lanescope/model/trace.h"

namespace lanescope {

// One thread. Times are nanoseconds since base_time_ns. Memory: the finished
// Trace plus, during finish(), one extra column at a time and the texts once more.
class TraceBuilder {
 public:
  TraceBuilder();

  StringId intern(std::string_view text) { return strings_.intern(text); }
  std::string_view text(StringId id) const {
    return id == kNone<StringId> ? std::string_view() : strings_.view(id);
  }
  CategoryId category(std::string_view text);  // the text of "cat"
  CategoryId no_category() { return CategoryId{0}; }
  CategoryKind kind(CategoryId id) const { return tables_.categories[raw(id)].kind; }

  ProcessId process(const Scalar& pid);
  // Each is made on first use. A thread and a stream may have the same pid and tid.
  TrackId thread_track(const Scalar& pid, const Scalar& tid);
  // The number in `pid` is the device, the number in `tid` the stream. If these are texts, the
  // importer sets device and stream with set_stream_numbers().
  TrackId stream_track(const Scalar& pid, const Scalar& tid);
  TrackId async_track(const Scalar& pid, std::string_view category, const Scalar& id);
  TrackId counter_track(const Scalar& pid, std::string_view name, std::string_view series);
  // For formats whose events do not say whether they are on a thread or on a stream.
  std::optional<TrackId> find_thread(ProcessId process, const Scalar& tid) const;
  std::optional<TrackId> find_stream(ProcessId process, const Scalar& tid) const;
  // For a thread that turns out to be a stream. There must be no stream with its pid and tid yet.
  void make_stream(TrackId thread);
  std::span<const Track> tracks() const { return tables_.tracks; }
  const Process& process_of(TrackId track) const {
    return tables_.processes[raw(tables_.tracks[raw(track)].process)];
  }

  ArgsBuilder& args() { return args_; }

  // Each call adds one event with the next event_index, so call them in file order. A duration below 0
  // is counted as an issue and read as 0.
  void add_slice(TrackId track, CategoryId category, StringId name, std::int64_t start_ns,
                 std::int64_t dur_ns, ArgsId args) {
    add_slice_at(event_index_++, track, category, name, start_ns, dur_ns, args);
  }
  void add_instant(TrackId track, CategoryId category, StringId name, std::int64_t time_ns,
                   char scope, ArgsId args) {
    add_instant_at(event_index_++, track, category, name, time_ns, scope, args);
  }
  // The same for an event that got its event_index from skip_event().
  void add_slice_at(std::uint32_t event_index, TrackId track, CategoryId category, StringId name,
                    std::int64_t start_ns, std::int64_t dur_ns, ArgsId args);
  void add_instant_at(std::uint32_t event_index, TrackId track, CategoryId category, StringId name,
                      std::int64_t time_ns, char scope, ArgsId args);
  // These take no event_index: formats write an arrow as two or more events, and several counter
  // samples as one event.
  void add_counter(TrackId counter_track, std::int64_t time_ns, double value);
  void add_flow(const Flow& flow) { tables_.flows.push_back(flow); }
  void expect_flows(std::size_t count) { tables_.flows.reserve(count); }
  // `row`: the slice's place in slices(), which is the order of adding.
  void add_step(std::int64_t number, std::uint32_t row) {
    tables_.steps.push_back({number, SliceId{row}});
  }
  // The slices and instants added up to now, not yet sorted.
  const SliceTable<GrowingColumn>& slices() const { return tables_.slices; }
  const InstantTable<GrowingColumn>& instants() const { return tables_.instants; }
  const StringPool& strings() const { return strings_; }
  // Reserves memory for about `count` slices, so that the columns need not grow step by step.
  void expect_slices(std::size_t count);
  // For an event that adds nothing to the columns, or not yet (metadata, a lost event, half of a
  // slice). It still has a place in the file order: its event_index, which is returned.
  std::uint32_t skip_event() { return event_index_++; }

  void set_process_name(const Scalar& pid, StringId name);
  void set_process_labels(const Scalar& pid, StringId labels);
  void set_process_sort_index(const Scalar& pid, std::int64_t index);
  void set_track_name(TrackId track, StringId name) { tables_.tracks[raw(track)].name = name; }
  void set_track_sort_index(TrackId track, std::int64_t index) {
    tables_.tracks[raw(track)].sort_index = index;
  }
  void set_stream_numbers(TrackId stream, std::optional<std::int32_t> device,
                          std::optional<std::int64_t> number) {
    tables_.tracks[raw(stream)].device = device;
    tables_.tracks[raw(stream)].stream = number;
  }
  void add_metadata_event(StringId event_json) {
    tables_.other_metadata_events.push_back(event_json);
  }
  void add_metadata(std::string_view key, std::string_view json);
  void set_base_time_ns(std::int64_t ns) { tables_.values.base_time_ns = ns; }
  std::int64_t base_time_ns() const { return tables_.values.base_time_ns; }
  // Without this, the window is the span of category "Trace", else first start to last end.
  void set_window(std::int64_t start_ns, std::int64_t end_ns);

  // For a trace that is built in pieces: a limit that has already counted the durations of earlier pieces.
  void set_duration_limit(const DurationLimit& limit) { durations_ = limit; }
  const DurationLimit& duration_limit() const { return durations_; }

  ImportStats& stats() { return tables_.values.stats; }
  std::uint32_t event_count() const { return event_index_; }

  // How many of `threads` are worth starting for the slices added up to now: 1 if they are so few that starting a thread takes
  // longer than their work.
  unsigned threads_of_use(unsigned threads) const;
  // kLimit: over 2^32 - 2 events. The builder is empty afterwards. Sorts with up to `threads`, the
  // calling one among them; the Trace is the same for any number.
  Result<Trace> finish(unsigned threads = 1) &&;

 private:
  struct TrackKey {
    TrackKind kind;
    ProcessId process;
    Scalar tid;
    StringId name, series;
    bool operator==(const TrackKey&) const = default;
  };
  struct ScalarHash {
    std::size_t operator()(const Scalar& scalar) const;
  };
  struct TrackKeyHash {
    std::size_t operator()(const TrackKey& key) const;
  };

  TrackId find_or_add_track(const TrackKey& key);
  std::optional<TrackId> find_track(const TrackKey& key) const;
  void number_stream(TrackId stream);
  void sort_flows();
  void sort_slices(unsigned threads);
  void sort_instants();
  void sort_counters();
  void sort_steps();
  void find_window();
  void find_api_calls();
  Trace hand_over();

  DurationLimit durations_;
  TraceTables<GrowingColumn> tables_;  // all but the arguments and texts
  ArgsBuilder args_;
  StringPool strings_;
  std::uint32_t event_index_ = 0;
  std::unordered_map<Scalar, ProcessId, ScalarHash> process_by_pid_;
  std::unordered_map<TrackKey, TrackId, TrackKeyHash> track_by_key_;
  std::unordered_map<std::uint32_t, CategoryId> category_by_text_;
};

}  // namespace lanescope
