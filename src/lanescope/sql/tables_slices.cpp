// Tables whose rows are slices: all of them, or those of some kinds.
#include <algorithm>
#include <array>
#include <charconv>

#include "lanescope/sql/tables.h"

namespace lanescope::sql {
namespace {

using Rows = TraceRows;
using Id = std::uint32_t;

Cell id(Rows&, Id i) { return Cell::of(i); }
Cell ts(Rows& r, Id i) { return Cell::of(r.trace().slices().start_ns[i]); }
Cell dur(Rows& r, Id i) { return Cell::of(r.trace().slices().dur_ns[i]); }
Cell name(Rows& r, Id i) { return text_cell(r.trace(), r.trace().slices().name[i]); }
Cell track_id(Rows& r, Id i) { return Cell::of(raw(r.trace().slices().track[i])); }
Cell category(Rows& r, Id i) {
  return text_cell(r.trace(), r.trace().categories()[raw(r.trace().slices().category[i])].text);
}
Cell kind(Rows& r, Id i) { return Cell::of_text(category_kind_name(r.trace().kind(SliceId{i}))); }
Cell depth_in(const analysis::SliceNesting& nesting, Id i) {
  const std::uint32_t depth = nesting.depth[i];
  return depth == analysis::SliceNesting::kNotNested ? Cell() : Cell::of(depth);
}
Cell depth(Rows& r, Id i) { return depth_in(r.nesting(), i); }
Cell parent_id(Rows& r, Id i) { return id_cell(r.nesting().parent[i]); }
Cell self_dur(Rows& r, Id i) { return Cell::of(r.nesting().self_ns[i]); }
Cell depth_without_frames(Rows& r, Id i) { return depth_in(r.nesting_without_frames(), i); }
Cell parent_without_frames(Rows& r, Id i) { return id_cell(r.nesting_without_frames().parent[i]); }
Cell self_without_frames(Rows& r, Id i) { return Cell::of(r.nesting_without_frames().self_ns[i]); }
Cell part_of_name(std::string_view part) { return part.empty() ? Cell() : Cell::of_text(part); }
Cell frame_file(Rows& r, Id i) { return part_of_name(r.frame(i).file); }
Cell frame_line(Rows& r, Id i) {
  const std::string_view digits = r.frame(i).line;
  std::int64_t line = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), line);
  return digits.empty() || read.ec != std::errc() ? Cell() : Cell::of(line);
}
Cell frame_function(Rows& r, Id i) { return part_of_name(r.frame(i).function); }
Cell frame_module(Rows& r, Id i) { return part_of_name(r.frame(i).module_class); }
Cell arg_set_id(Rows& r, Id i) { return id_cell(r.trace().slices().args[i]); }
Cell event_index(Rows& r, Id i) { return Cell::of(r.trace().slices().event_index[i]); }
Cell device(Rows& r, Id i) { return optional_cell(r.trace().track(SliceId{i}).device); }
Cell stream(Rows& r, Id i) { return optional_cell(r.trace().track(SliceId{i}).stream); }
Cell call_id(Rows& r, Id i) { return id_cell(r.links().launch_of[i]); }
Cell op_id(Rows& r, Id i) { return id_cell(r.links().op_of[i]); }
Cell forward_id(Rows& r, Id i) { return id_cell(r.links().forward_of[i]); }
Cell launch_step(Rows& r, Id i) { return optional_cell(r.step_of_launch(i)); }
Cell host_step(Rows& r, Id i) { return optional_cell(r.step_at(r.trace().slices().start_ns[i])); }
Cell launched_count(Rows& r, Id i) {
  return Cell::of(static_cast<std::int64_t>(r.links().launched_by(SliceId{i}).size()));
}
Cell blocks(Rows& r, Id i) {
  return Cell::of(r.trace().api_call(SliceId{i}).does(api_effect::kBlocks) ? 1 : 0);
}
Cell device_dur(Rows& r, Id i) { return Cell::of(r.device_ns(i)); }
Cell on_gpu(Rows& r, Id i) {
  return Cell::of(r.trace().kind(SliceId{i}) == CategoryKind::kGpuUserAnnotation ? 1 : 0);
}
Cell copy_kind(Rows& r, Id i) {
  const bool is_copy = r.trace().kind(SliceId{i}) == CategoryKind::kGpuMemcpy;
  return Cell::of_text(is_copy ? "copy" : "set");
}

template <ArgKey key>
Cell integer_arg(Rows& r, Id i) {
  return optional_cell(r.trace().slice_args(SliceId{i}).integer(key));
}
template <ArgKey key>
Cell real_arg(Rows& r, Id i) {
  const auto value = r.trace().slice_args(SliceId{i}).number(key);
  return value ? Cell::of_real(*value) : Cell();
}
template <ArgKey key>
Cell text_arg(Rows& r, Id i) {
  const auto value = r.trace().slice_args(SliceId{i}).text(key);
  return value ? text_cell(r.trace(), *value) : Cell();
}
// One number of a JSON list such as "[64, 1, 1]".
template <ArgKey key, int place>
Cell list_arg(Rows& r, Id i) {
  const auto value = r.trace().slice_args(SliceId{i}).text(key);
  if (!value) return {};
  std::string_view text = r.trace().text(*value);
  for (int skip = 0; skip < place; ++skip) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
  text.remove_prefix(std::min(text.find_first_not_of("[ "), text.size()));
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() ? Cell::of(number) : Cell();
}

// The three columns that only GPU work with its call has.
Cell call_name(Rows& r, Id i) {
  const SliceId call = r.links().launch_of[i];
  return call == kNone<SliceId> ? Cell() : name(r, raw(call));
}
Cell call_ts(Rows& r, Id i) {
  const SliceId call = r.links().launch_of[i];
  return call == kNone<SliceId> ? Cell() : ts(r, raw(call));
}
Cell call_dur(Rows& r, Id i) {
  const SliceId call = r.links().launch_of[i];
  return call == kNone<SliceId> ? Cell() : dur(r, raw(call));
}
Cell delay(Rows& r, Id i) {
  const SliceId call = r.links().launch_of[i];
  std::int64_t delay_ns = 0;
  if (call == kNone<SliceId> ||
      __builtin_sub_overflow(r.trace().start_ns(SliceId{i}), r.trace().start_ns(call), &delay_ns))
    return {};
  return Cell::of(delay_ns);
}
Cell op_name(Rows& r, Id i) {
  const SliceId op = r.links().op_of[i];
  return op == kNone<SliceId> ? Cell() : name(r, raw(op));
}

template <typename Test>
std::vector<Id> slices_that(Rows& r, Test test) {
  // The kind belongs to the category, so it is tested once a category.
  std::vector<char> takes;
  for (const Category& one : r.trace().categories()) takes.push_back(test(one.kind) ? 1 : 0);
  std::vector<Id> ids;
  const auto& categories = r.trace().slices().category;
  for (Id i = 0; i < categories.size(); ++i)
    if (takes[raw(categories[i])]) ids.push_back(i);
  return ids;
}
template <CategoryKind... kinds>
std::vector<Id> of_kinds(Rows& r) {
  return slices_that(r, [](CategoryKind one) { return ((one == kinds) || ...); });
}
std::vector<Id> launched_work(Rows& r) {
  std::vector<Id> ids = slices_that(r, is_device_work);
  const auto& launch_of = r.links().launch_of;
  std::erase_if(ids, [&](Id i) { return launch_of[i] == kNone<SliceId>; });
  return ids;
}
std::size_t slice_count(Rows& r) { return r.trace().slices().size(); }

using enum ColumnUse;
constexpr ColumnSource kIdColumn{"id", id, kId};
constexpr ColumnSource kTsColumn{"ts", ts, kTime};
constexpr ColumnSource kDurColumn{"dur", dur};
constexpr ColumnSource kNameColumn{"name", name, kKey};
constexpr ColumnSource kTrackColumn{"track_id", track_id, kTrack};
constexpr ColumnSource kArgsColumn{"arg_set_id", arg_set_id, kKey};
constexpr ColumnSource kCorrelation{"correlation", integer_arg<ArgKey::kCorrelation>, kKey};
constexpr ColumnSource kExternalId{"external_id", integer_arg<ArgKey::kExternalId>, kKey};
constexpr ColumnSource kDevice{"device", device, kKey};
constexpr ColumnSource kStream{"stream", stream, kKey};
constexpr ColumnSource kCall{"call_id", call_id, kKey};
constexpr ColumnSource kOpColumn{"op_id", op_id, kKey};
constexpr ColumnSource kLaunchStep{"step", launch_step, kKey};
constexpr ColumnSource kHostStep{"step", host_step, kKey};
constexpr ColumnSource kDepth{"depth", depth, kKey};
constexpr ColumnSource kParent{"parent_id", parent_id, kKey};

constexpr std::array kSlice{kIdColumn,
                            kTsColumn,
                            kDurColumn,
                            kTrackColumn,
                            ColumnSource{"category", category, kKey},
                            kNameColumn,
                            kDepth,
                            kParent,
                            kArgsColumn,
                            ColumnSource{"kind", kind, kKey},
                            ColumnSource{"self_dur", self_dur},
                            kCorrelation,
                            kExternalId,
                            ColumnSource{"event_index", event_index, kKey}};
constexpr std::array kKernel{
    kIdColumn,
    kTsColumn,
    kDurColumn,
    kNameColumn,
    kTrackColumn,
    kDevice,
    kStream,
    kCorrelation,
    kCall,
    kOpColumn,
    kLaunchStep,
    ColumnSource{"grid_x", list_arg<ArgKey::kGrid, 0>},
    ColumnSource{"grid_y", list_arg<ArgKey::kGrid, 1>},
    ColumnSource{"grid_z", list_arg<ArgKey::kGrid, 2>},
    ColumnSource{"block_x", list_arg<ArgKey::kBlock, 0>},
    ColumnSource{"block_y", list_arg<ArgKey::kBlock, 1>},
    ColumnSource{"block_z", list_arg<ArgKey::kBlock, 2>},
    ColumnSource{"registers_per_thread", integer_arg<ArgKey::kRegistersPerThread>},
    ColumnSource{"shared_memory", integer_arg<ArgKey::kSharedMemory>},
    ColumnSource{"occupancy", real_arg<ArgKey::kOccupancy>},
    kArgsColumn};
constexpr std::array kMemcpy{kIdColumn,
                             kTsColumn,
                             kDurColumn,
                             kNameColumn,
                             ColumnSource{"kind", copy_kind, kKey},
                             ColumnSource{"bytes", integer_arg<ArgKey::kBytes>},
                             kTrackColumn,
                             kDevice,
                             kStream,
                             kCorrelation,
                             kCall,
                             kOpColumn,
                             kLaunchStep,
                             kArgsColumn};
constexpr std::array kRuntimeCall{kIdColumn,
                                  kTsColumn,
                                  kDurColumn,
                                  kNameColumn,
                                  kTrackColumn,
                                  kDepth,
                                  kParent,
                                  kCorrelation,
                                  kOpColumn,
                                  kHostStep,
                                  ColumnSource{"launched_count", launched_count},
                                  ColumnSource{"blocks", blocks},
                                  kArgsColumn};
constexpr std::array kOp{
    kIdColumn,
    kTsColumn,
    kDurColumn,
    ColumnSource{"self_dur", self_without_frames},
    kNameColumn,
    kTrackColumn,
    ColumnSource{"depth", depth_without_frames, kKey},
    ColumnSource{"parent_id", parent_without_frames, kKey},
    ColumnSource{"device_dur", device_dur},
    kHostStep,
    kExternalId,
    ColumnSource{"sequence_number", integer_arg<ArgKey::kSequenceNumber>, kKey},
    ColumnSource{"forward_id", forward_id, kKey},
    ColumnSource{"input_dims", text_arg<ArgKey::kInputDims>, kKey},
    ColumnSource{"input_types", text_arg<ArgKey::kInputType>, kKey},
    kArgsColumn};
constexpr std::array kAnnotation{
    kIdColumn,    kTsColumn, kDurColumn, kNameColumn,
    kTrackColumn, kDepth,    kParent,    ColumnSource{"on_gpu", on_gpu},
    kArgsColumn};
constexpr std::array kLaunch{kIdColumn,
                             kNameColumn,
                             kTsColumn,
                             kDurColumn,
                             kTrackColumn,
                             kDevice,
                             kStream,
                             kCall,
                             ColumnSource{"call_name", call_name, kKey},
                             ColumnSource{"call_ts", call_ts},
                             ColumnSource{"call_dur", call_dur},
                             ColumnSource{"delay", delay},
                             kOpColumn,
                             ColumnSource{"op_name", op_name, kKey},
                             kLaunchStep};
constexpr std::array kStackFrame{
    kIdColumn,
    kTsColumn,
    kDurColumn,
    kNameColumn,
    kTrackColumn,
    kDepth,
    kParent,
    ColumnSource{"python_id", integer_arg<ArgKey::kPythonId>, kKey},
    ColumnSource{"python_parent_id", integer_arg<ArgKey::kPythonParentId>, kKey},
    ColumnSource{"file", frame_file},
    ColumnSource{"line", frame_line},
    ColumnSource{"function", frame_function},
    ColumnSource{"module", frame_module}};

constexpr std::array kSources{
    TableSource{"slice", kSlice, nullptr, slice_count},
    TableSource{"kernel", kKernel, of_kinds<CategoryKind::kKernel>, nullptr},
    TableSource{"memcpy", kMemcpy, of_kinds<CategoryKind::kGpuMemcpy, CategoryKind::kGpuMemset>,
                nullptr},
    TableSource{"runtime_call", kRuntimeCall,
                of_kinds<CategoryKind::kRuntime, CategoryKind::kDriver>, nullptr},
    TableSource{"op", kOp, of_kinds<CategoryKind::kCpuOp>, nullptr},
    TableSource{"annotation", kAnnotation,
                of_kinds<CategoryKind::kUserAnnotation, CategoryKind::kGpuUserAnnotation>, nullptr},
    TableSource{"launch", kLaunch, launched_work, nullptr},
    TableSource{"stack_frame", kStackFrame, of_kinds<CategoryKind::kPythonFunction>, nullptr},
};

}  // namespace

std::span<const TableSource> slice_sources() { return kSources; }

}  // namespace lanescope::sql
