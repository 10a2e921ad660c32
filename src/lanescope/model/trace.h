// One trace from any file or recorder: columns of slices, instants, counters, flows and their
// arguments. TraceBuilder builds it once; it never changes afterwards, so any number of threads
// read it without locks.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lanescope/base/ids.h"
#include "lanescope/base/string_pool.h"
#include "lanescope/model/api_calls.h"
#include "lanescope/model/args.h"
#include "lanescope/model/category.h"
#include "lanescope/model/import_stats.h"

namespace lanescope {

// A pid, tid or id as files write it: a number or a text. Compared by kind and value.
struct Scalar {
  bool is_text = false;
  std::int64_t number = 0;
  StringId text = kNone<StringId>;
  bool operator==(const Scalar&) const = default;
};

struct Process {
  Scalar pid;
  StringId name = kNone<StringId>;
  StringId labels = kNone<StringId>;  // "CPU", "GPU 0"
  std::optional<std::int64_t> sort_index;
};

enum class TrackKind : std::uint8_t {
  kThread,   // slices of a CPU thread
  kStream,   // work of one stream of one device
  kAsync,    // slices of one async id; they may overlap
  kCounter,  // one series of a counter
};

struct Track {
  TrackKind kind = TrackKind::kThread;
  ProcessId process = kNone<ProcessId>;
  Scalar tid;                         // thread or stream; for kAsync the async id
  StringId name = kNone<StringId>;    // thread_name; for kCounter the counter's name
  StringId series = kNone<StringId>;  // kCounter: the argument's key; kAsync: the category text
  std::optional<std::int64_t> sort_index;
  std::optional<std::int32_t> device;  // kStream: device ordinal, where the file has one
  std::optional<std::int64_t> stream;  // kStream: stream id ("stream 7" and 7 both give 7)
  std::uint32_t first_slice = 0;       // slices [first_slice, first_slice + slice_count)
  std::uint32_t slice_count = 0;
};

struct Category {
  StringId text = kNone<StringId>;  // kNone: the event had no "cat"
  CategoryKind kind = CategoryKind::kOther;
};

// Slices in order of (track, start, longer first, place in the file). Half-open: [start, start
// + dur). Nanoseconds.
struct SliceColumns {
  std::vector<std::int64_t> start_ns;  // since Trace::base_time_ns()
  std::vector<std::int64_t> dur_ns;    // >= 0
  std::vector<StringId> name;
  std::vector<TrackId> track;
  std::vector<CategoryId> category;
  std::vector<ArgsId> args;
  std::vector<std::uint32_t> event_index;  // place among all events of the file, from 0
  std::size_t size() const { return start_ns.size(); }
};

// In order of (time, place in the file).
struct InstantColumns {
  std::vector<std::int64_t> time_ns;
  std::vector<StringId> name;
  std::vector<TrackId> track;
  std::vector<CategoryId> category;
  std::vector<ArgsId> args;
  std::vector<std::uint32_t> event_index;
  std::vector<char> scope;  // 't' thread, 'p' process, 'g' global
  std::size_t size() const { return time_ns.size(); }
};

// In order of (track, time, place in the file).
struct CounterColumns {
  std::vector<std::int64_t> time_ns;
  std::vector<TrackId> track;
  std::vector<double> value;
  std::size_t size() const { return time_ns.size(); }
};

// A complete arrow. One start may have several ends. Half arrows are counted
// (ImportIssue::kOrphanFlow) and not kept.
struct Flow {
  Scalar id;
  StringId name = kNone<StringId>;
  CategoryId category{};
  TrackId from_track{}, to_track{};
  std::int64_t from_ns = 0, to_ns = 0;
  bool binds_enclosing = false;  // "bp":"e" on the end
};

// One `ProfilerStep#N` range of the CPU. Steps are in order of time.
struct Step {
  std::int64_t number = 0;
  SliceId slice{};
};

struct Metadata {
  StringId key{};
  StringId json{};  // the value as it is in the file
};

class Trace {
 public:
  Trace() = default;
  Trace(Trace&&) = default;
  Trace& operator=(Trace&&) = default;

  const SliceColumns& slices() const { return slices_; }
  const InstantColumns& instants() const { return instants_; }
  const CounterColumns& counters() const { return counters_; }
  std::span<const Flow> flows() const { return flows_; }
  std::span<const Track> tracks() const { return tracks_; }
  std::span<const Process> processes() const { return processes_; }
  std::span<const Category> categories() const { return categories_; }
  std::span<const Step> steps() const { return steps_; }
  // Top-level entries in file order, traceEvents left out: deviceProperties, distributedInfo,
  // user metadata, ...
  std::span<const Metadata> metadata() const { return metadata_; }
  // Metadata ("M") events that name neither a process nor a thread, each as JSON.
  std::span<const StringId> other_metadata_events() const { return other_metadata_events_; }

  std::string_view text(StringId id) const {
    return id == kNone<StringId> ? std::string_view() : strings_.view(id);
  }
  const StringPool& strings() const { return strings_; }
  ArgsView args(ArgsId id) const { return args_.view(id); }
  ArgsView slice_args(SliceId id) const { return args_.view(slices_.args[raw(id)]); }

  CategoryKind kind(SliceId id) const { return categories_[raw(slices_.category[raw(id)])].kind; }
  // What a call of a runtime or driver does; for other slices and unknown calls nothing. O(1).
  ApiCall api_call(SliceId id) const {
    const std::uint32_t name = raw(slices_.name[raw(id)]);
    return is_api_call(kind(id)) && name < api_calls_.size() ? api_calls_[name] : ApiCall();
  }
  std::string_view name(SliceId id) const { return text(slices_.name[raw(id)]); }
  std::int64_t start_ns(SliceId id) const { return slices_.start_ns[raw(id)]; }
  std::int64_t dur_ns(SliceId id) const { return slices_.dur_ns[raw(id)]; }
  std::int64_t end_ns(SliceId id) const { return start_ns(id) + dur_ns(id); }
  const Track& track(TrackId id) const { return tracks_[raw(id)]; }
  const Track& track(SliceId id) const { return tracks_[raw(slices_.track[raw(id)])]; }
  const Process& process(ProcessId id) const { return processes_[raw(id)]; }
  // The JSON of that top-level key; with equal keys, the last one counts, as in other readers.
  std::optional<std::string_view> metadata_json(std::string_view key) const;

  // baseTimeNanoseconds; 0 when the file has none.
  std::int64_t base_time_ns() const { return base_time_ns_; }
  // The capture window: from the first to the last of the writer's spans (one per cycle); without
  // such spans, from the first start to the last end. Empty: [0, 0).
  std::int64_t window_start_ns() const { return window_start_ns_; }
  std::int64_t window_end_ns() const { return window_end_ns_; }
  bool has_window_span() const { return has_window_span_; }

  const ImportStats& import_stats() const { return stats_; }
  // Memory held, in bytes, by all columns, arguments and strings (capacity, not size).
  std::size_t memory_bytes() const;

 private:
  friend class TraceBuilder;
  SliceColumns slices_;
  InstantColumns instants_;
  CounterColumns counters_;
  std::vector<Flow> flows_;
  std::vector<Track> tracks_;
  std::vector<Process> processes_;
  std::vector<Category> categories_;
  std::vector<Step> steps_;
  std::vector<Metadata> metadata_;
  std::vector<StringId> other_metadata_events_;
  std::vector<ApiCall> api_calls_;  // by name, up to the last one that an API call has
  StringPool strings_;
  ArgsTable args_;
  ImportStats stats_;
  std::int64_t base_time_ns_ = 0;
  std::int64_t window_start_ns_ = 0;
  std::int64_t window_end_ns_ = 0;
  bool has_window_span_ = false;
};

}  // namespace lanescope
