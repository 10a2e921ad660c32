// The only way to make a Trace. Readers add events in any order; finish() sorts, pairs
// and freezes them.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope {

// One thread. Times are nanoseconds since base_time_ns. stats() counts what has no partner (ends
// without begin, half flows). Memory: the finished Trace plus, during finish(), one extra column
// at a time.
class TraceBuilder {
 public:
  TraceBuilder();

  StringId intern(std::string_view text) { return trace_.strings_.intern(text); }
  std::string_view text(StringId id) const { return trace_.text(id); }
  CategoryId category(std::string_view text);  // the text of "cat"
  CategoryId no_category() { return CategoryId{0}; }
  CategoryKind kind(CategoryId id) const { return trace_.categories_[raw(id)].kind; }

  ProcessId process(const Scalar& pid);
  // The thread, or for device rows the stream, with that pid and tid; made on first use.
  TrackId track(const Scalar& pid, const Scalar& tid, bool on_stream);
  // The target of an arrow's end: the stream with that pid and tid if there is one, now or later,
  // else the thread.
  TrackId flow_track(const Scalar& pid, const Scalar& tid);
  TrackId async_track(const Scalar& pid, std::string_view category, const Scalar& id);
  TrackId counter_track(const Scalar& pid, std::string_view name, std::string_view series);

  ArgsTable& args() { return trace_.args_; }

  // Every add_* is one event (one event_index), in file order. dur < 0 is counted and read as 0.
  void add_slice(TrackId track, CategoryId category, StringId name, std::int64_t start_ns,
                 std::int64_t dur_ns, ArgsId args);
  void add_begin(TrackId track, CategoryId category, StringId name, std::int64_t time_ns,
                 ArgsId args);
  // Ends the innermost open begin of the same pid and tid, on their thread or their stream. With a
  // `name` (not kNone): the innermost one with that name.
  void add_end(TrackId track, StringId name, std::int64_t time_ns, ArgsId args);
  void add_async(char phase, TrackId async_track, CategoryId category, StringId name,
                 std::int64_t time_ns, ArgsId args);
  void add_instant(TrackId track, CategoryId category, StringId name, std::int64_t time_ns,
                   char scope, ArgsId args);
  void add_counter(TrackId counter_track, std::int64_t time_ns, double value);
  // phase: 's' start, 't' step, 'f' end.
  void add_flow(char phase, TrackId track, CategoryId category, StringId name, const Scalar& id,
                std::int64_t time_ns, bool binds_enclosing);
  // With the rough number of slices to come, the columns need not grow step by step.
  void expect_slices(std::size_t count);
  // For an event that adds nothing to the columns (metadata, a lost event): it still counts in
  // the file order.
  void skip_event() { ++event_index_; }

  void set_process_name(const Scalar& pid, StringId name);
  void set_process_labels(const Scalar& pid, StringId labels);
  void set_process_sort_index(const Scalar& pid, std::int64_t index);
  void set_thread_name(const Scalar& pid, const Scalar& tid, StringId name);
  void set_thread_sort_index(const Scalar& pid, const Scalar& tid, std::int64_t index);
  void add_metadata_event(StringId event_json) {
    trace_.other_metadata_events_.push_back(event_json);
  }
  void add_metadata(std::string_view key, std::string_view json);
  void set_base_time_ns(std::int64_t ns) { trace_.base_time_ns_ = ns; }
  std::int64_t base_time_ns() const { return trace_.base_time_ns_; }
  // Without this, the window is the span of category "Trace", else first start to last end.
  void set_window(std::int64_t start_ns, std::int64_t end_ns);

  ImportStats& stats() { return trace_.stats_; }
  std::uint32_t event_count() const { return event_index_; }

  // kLimit: over 2^32 - 2 events. The builder is empty afterwards.
  Result<Trace> finish() &&;

 private:
  struct OpenEvent {
    std::int64_t time_ns;
    TrackId track;
    CategoryId category;
    char phase;
    StringId name;
    ArgsId args;
    std::uint32_t event_index;
  };
  struct FlowPoint {
    std::int64_t time_ns;
    Scalar id;
    StringId name;
    TrackId track;
    CategoryId category;
    char phase;
    bool binds_enclosing;
    std::uint32_t event_index;
  };
  struct ThreadLabel {
    Scalar pid, tid;
    StringId name = kNone<StringId>;
    std::optional<std::int64_t> sort_index;
  };
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
  void push_slice(TrackId, CategoryId, StringId, std::int64_t start_ns, std::int64_t dur_ns, ArgsId,
                  std::uint32_t event_index);
  std::int64_t last_time_ns() const;
  std::vector<TrackId> pairing_tracks() const;  // for each track; for a stream, the thread with its
                                                // pid and tid
  void pair_begin_end(std::vector<OpenEvent>& events);
  ArgsId merge_args(ArgsId first, ArgsId second);
  void move_arrows_to_streams();
  void pair_flows();
  void apply_thread_labels();
  void sort_slices();
  void sort_instants();
  void sort_counters();
  void name_streams();
  void find_steps();
  void find_window();
  void find_api_calls();

  Trace trace_;
  std::uint32_t event_index_ = 0;
  std::vector<OpenEvent> begin_end_;
  std::vector<OpenEvent> async_;
  std::vector<FlowPoint> flow_points_;
  std::vector<ThreadLabel> labels_;
  std::unordered_map<Scalar, ProcessId, ScalarHash> process_by_pid_;
  std::unordered_map<TrackKey, TrackId, TrackKeyHash> track_by_key_;
  std::unordered_map<std::uint32_t, CategoryId> category_by_text_;
  std::unordered_set<std::uint32_t> flow_only_tracks_;  // threads known only from arrows so far
};

}  // namespace lanescope
