// All tables of a trace, as columns. TraceBuilder fills them as vectors (GrowingColumn) and hands
// them over to the Trace (Column), which may as well get them from a mapped file.
//
// Every row is trivially copyable. Plain rows have no padding, so their bytes are their value:
// numbers, ids, Flow, Metadata, ApiCall and ArgVariant. The rows of tracks, processes, categories,
// steps and of the shapes and fields of arguments have padding, and some have optionals: all that a
// reader sees of them is in their bytes, but the bytes in between are not defined.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "lanescope/base/ids.h"
#include "lanescope/model/api_calls.h"
#include "lanescope/model/args.h"
#include "lanescope/model/category.h"
#include "lanescope/model/column.h"
#include "lanescope/model/import_stats.h"
#include "lanescope/model/narrow_columns.h"
#include "lanescope/model/string_table.h"

namespace lanescope {

// A pid, tid or id as files write it: a number or a text. Compared by kind and value.
struct Scalar {
  constexpr Scalar() = default;
  constexpr Scalar(bool is_a_text, std::int64_t a_number, StringId a_text = kNone<StringId>)
      : is_text(is_a_text), text(a_text), number(a_number) {}

  bool is_text = false;
  StringId text = kNone<StringId>;
  std::int64_t number = 0;
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
template <template <typename> class List>
struct SliceTable {
  List<std::int64_t> start_ns;  // since Trace::base_time_ns()
  DurationColumn<List> dur_ns;  // >= 0
  List<StringId> name;
  TrackColumn<List> track;
  List<CategoryId> category;
  List<ArgsId> args;
  List<std::uint32_t> event_index;  // place among all events of the file, from 0
  std::size_t size() const { return start_ns.size(); }
};

// In order of (time, place in the file).
template <template <typename> class List>
struct InstantTable {
  List<std::int64_t> time_ns;
  List<StringId> name;
  List<TrackId> track;
  List<CategoryId> category;
  List<ArgsId> args;
  List<std::uint32_t> event_index;
  List<char> scope;  // 't' thread, 'p' process, 'g' global
  std::size_t size() const { return time_ns.size(); }
};

// In order of (track, time, place in the file).
template <template <typename> class List>
struct CounterTable {
  List<std::int64_t> time_ns;
  List<TrackId> track;
  List<double> value;
  std::size_t size() const { return time_ns.size(); }
};

// A complete arrow. One start may have several ends. Half arrows are counted
// (ImportIssue::kOrphanFlow) and not kept. The id is not a Scalar, because arrows are many: 40
// bytes each.
struct Flow {
  Scalar id() const {
    return id_is_text ? Scalar{true, 0, StringId{static_cast<std::uint32_t>(id_value)}}
                      : Scalar{false, id_value, kNone<StringId>};
  }
  void set_id(const Scalar& id) {
    id_is_text = id.is_text;
    id_value = id.is_text ? static_cast<std::int64_t>(raw(id.text)) : id.number;
  }

  std::int64_t from_ns = 0, to_ns = 0;
  std::int64_t id_value = 0;  // the number, or the StringId of the text
  TrackId from_track{}, to_track{};
  StringId name = kNone<StringId>;
  CategoryId category{};
  bool id_is_text = false;
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

// What a trace has once, not by row.
struct TraceValues {
  std::int64_t base_time_ns = 0;
  std::int64_t window_start_ns = 0;
  std::int64_t window_end_ns = 0;
  bool has_window_span = false;
  ImportStats stats;
};

// trace.h says what each table means. each_column.h lists all columns.
template <template <typename> class List>
struct TraceTables {
  SliceTable<List> slices;
  InstantTable<List> instants;
  CounterTable<List> counters;
  List<Flow> flows;
  List<Track> tracks;
  List<Process> processes;
  List<Category> categories;
  List<Step> steps;
  List<Metadata> metadata;
  List<StringId> other_metadata_events;
  List<ApiCall> api_calls;  // by name; ends with the last name that an API call has
  ArgsTable<List> args;
  StringTable<List> strings;
  TraceValues values;
};

using SliceColumns = SliceTable<Column>;
using InstantColumns = InstantTable<Column>;
using CounterColumns = CounterTable<Column>;
using TraceColumns = TraceTables<Column>;

static_assert(std::has_unique_object_representations_v<Flow> && sizeof(Flow) == 40);
static_assert(std::has_unique_object_representations_v<ArgVariant>);
static_assert(std::has_unique_object_representations_v<Metadata>);
static_assert(std::has_unique_object_representations_v<ApiCall>);

}  // namespace lanescope
