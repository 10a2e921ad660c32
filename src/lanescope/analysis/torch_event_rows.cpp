#include "lanescope/analysis/torch_event_rows.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

namespace lanescope::analysis {
namespace {

// Bookkeeping operators that torch hides.
constexpr std::array<std::string_view, 8> kHiddenNames{"[memory]",
                                                       "[OutOfMemory]",
                                                       "profiler::_record_function_enter",
                                                       "profiler::_record_function_enter_new",
                                                       "profiler::_record_function_exit",
                                                       "aten::is_leaf",
                                                       "aten::output_nr",
                                                       "aten::_version"};

// torch passes each name of more than one character to the C++ demangler, so an operator named "Pi"
// becomes "int*". Names longer than this cannot be demangled (the demangler's recursion limit).
constexpr std::size_t kLongestMangledName = 2048;

bool starts_kernels(const Trace& trace) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.api_call(SliceId{i}).does(api_effect::kStartsKernels)) return true;
  return false;
}

// torch knows the requested activities. A file does not say, but with launches and without any
// kernel it was recorded without the device.
std::string device_of(const Trace& trace, TableStyle style) {
  bool has_calls = false, has_work = false;
  for (const Category& category : trace.categories()) {
    const std::string_view text = trace.text(category.text);
    for (const char* device : {"xpu", "mtia", "hpu", "privateuse1"})
      if (text.starts_with(device)) return device;
    has_calls = has_calls || is_api_call(category.kind);
    has_work = has_work || is_on_stream(category.kind);
  }
  if (has_work) return "cuda";
  const bool is_left_out = style == TableStyle::kTorch && starts_kernels(trace);
  return has_calls && !is_left_out ? "cuda" : "";
}

constexpr std::string_view kLanescopeKey = "lanescope_version";

// The thread that stopped the profiler: torch puts rows there that it cannot link (overhead, API
// calls without an operator). A file does not name it; take the thread of the steps, else the
// process's first thread, else the first one.
TrackId find_main_track(const Trace& trace) {
  if (!trace.steps().empty()) return trace.slices().track[raw(trace.steps().front().slice)];
  TrackId first = kNone<TrackId>;
  for (std::uint32_t i = 0; i < trace.tracks().size(); ++i) {
    const Track& track = trace.tracks()[i];
    if (track.kind != TrackKind::kThread || track.slice_count == 0) continue;
    const bool front = is_front_end(trace.kind(SliceId{track.first_slice}));
    if (first == kNone<TrackId> && front) first = TrackId{i};
    if (!track.tid.is_text && track.tid.number != 0 &&
        trace.process(track.process).pid == track.tid)
      return TrackId{i};
  }
  return first;
}

// Kineto writes annotations on the device one tick longer at both ends, so that viewers draw them
// around their first kernel. A tick is 1 us in files with whole microseconds, else 1 ns.
std::int64_t find_tick_ns(const Trace& trace) {
  for (const std::int64_t start : trace.slices().start_ns)
    if (start % 1000 != 0) return 1;
  return 1000;
}

}  // namespace

std::string shown_name(std::string_view name) {
  std::string text(name);
  // The demangler would read only the part before a NUL.
  const bool is_text = name.find('\0') == name.npos;
  if (name.size() > 1 && name.size() <= kLongestMangledName && is_text) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(
        abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
    if (status == 0 && demangled) text = demangled.get();
  }
  return text.starts_with("ProfilerStep#") ? "ProfilerStep*" : text;
}

std::pair<std::string_view, std::string_view> operator_text(std::string_view text) {
  const std::size_t colons = text.find("::"), dot = text.find('.');
  const bool is_overloaded = colons != text.npos && colons > 0 && dot != text.npos &&
                             dot > colons + 2 && dot + 1 < text.size() &&
                             std::all_of(text.begin(), text.end(), [](unsigned char c) {
                               return std::isalnum(c) || c == '_' || c == ':' || c == '.';
                             });
  if (!is_overloaded) return {text, {}};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

TorchEventRows::TorchEventRows(const Trace& trace, TableStyle style, bool own_frames)
    : trace_(trace),
      style_(style),
      device_(device_of(trace, style)),
      main_track_(find_main_track(trace)),
      tick_ns_(find_tick_ns(trace)),
      // Without steps, nothing is before the first one.
      first_step_ns_(trace.steps().empty() ? std::numeric_limits<std::int64_t>::min()
                                           : trace.start_ns(trace.steps().front().slice)),
      finished_(trace.strings().find("finished")),
      launches_(trace.strings().find("launches")),
      hidden_(trace.strings().size(), false) {
  for (const Metadata& entry : trace.metadata()) is_own_ |= trace.text(entry.key) == kLanescopeKey;
  // Versions of torch that write "host_name" show Python frames as rows of the table;
  // 2.11 does neither.
  has_python_frames_ = style == TableStyle::kTorch &&
                       (is_own_ ? own_frames : trace.metadata_json("host_name").has_value());
  for (const std::string_view name : kHiddenNames) {
    const StringId id = trace.strings().find(name);
    if (id != kNone<StringId>) hidden_[raw(id)] = true;
  }
}

bool TorchEventRows::is_left_out(SliceId device_work, SliceId launch, const LaunchCounts& counts,
                                 TorchEventsNotes& notes) const {
  // Without recorded launches, only the trace's marks count.
  if (counts.launched_count == 0 && !is_marked_as_early(device_work)) return false;
  if (launch == kNone<SliceId>) {
    ++notes.unlaunched_count;
    notes.unlaunched_ns += trace_.dur_ns(device_work);
    return true;
  }
  if (trace_.start_ns(launch) >= first_step_ns_) return false;
  ++notes.before_first_step_count;
  notes.before_first_step_ns += trace_.dur_ns(device_work);
  return true;
}

bool TorchEventRows::is_row(SliceId id, TorchEventsNotes& notes) const {
  const CategoryKind kind = trace_.kind(id);
  if (kind == CategoryKind::kTrace || kind == CategoryKind::kFlow ||
      kind == CategoryKind::kCpuInstant || kind == CategoryKind::kPythonSample)
    return false;
  if (hidden_[raw(trace_.slices().name[raw(id)])]) return false;
  if (kind == CategoryKind::kGpuUserAnnotation && is_extra_annotation(id)) return false;
  const bool is_torch = style_ == TableStyle::kTorch;
  // These are waits of the CPU and marks of events, not device work. If torch records them, it
  // counts them as device time.
  if ((kind == CategoryKind::kCudaSync || kind == CategoryKind::kCudaEvent) &&
      (!is_torch || is_own_))
    return false;
  if (kind == CategoryKind::kPythonFunction) {
    if (has_python_frames_) return true;
    if (!is_torch || is_own_) ++notes.python_frame_count;
    return false;
  }
  return true;
}

EventKey TorchEventRows::key_of(SliceId id) const {
  EventKey key{trace_.start_ns(id), trace_.end_ns(id), id};
  if (trace_.kind(id) == CategoryKind::kGpuUserAnnotation &&
      key.end_ns - key.start_ns >= 2 * tick_ns_) {
    key.start_ns += tick_ns_;
    key.end_ns -= tick_ns_;
  }
  return key;
}

bool TorchEventRows::is_marked_as_early(SliceId id) const {
  const ArgField* mark = trace_.slice_args(id).find(ArgKey::kLaunchedBeforeWindow);
  return mark && mark->type == ArgType::kTrue;
}

// lanescope also projects an annotation for work of annotations inside it and, in separate rows,
// for work of backward ops of its ops; torch does not: docs/decisions/gpu_annotations.md
bool TorchEventRows::is_extra_annotation(SliceId id) const {
  if (launches_ == kNone<StringId>) return false;
  const ArgsView args = trace_.slice_args(id);
  for (std::size_t k = args.size(); k-- > 0;) {
    if (args.field(k).key != launches_) continue;
    if (args.field(k).type != ArgType::kString) return false;
    const auto value = trace_.text(StringId{static_cast<std::uint32_t>(args.bits(args.field(k)))});
    return value == "backward" || (style_ == TableStyle::kTorch && value == "nested");
  }
  return false;
}

// A range that was open when recording stopped has no ending thread, so torch treats
// it as asynchronous.
bool TorchEventRows::is_unfinished(SliceId id) const {
  if (finished_ == kNone<StringId>) return false;
  const ArgsView args = trace_.slice_args(id);
  for (std::size_t k = args.size(); k-- > 0;)
    if (args.field(k).key == finished_) return args.field(k).type == ArgType::kFalse;
  return false;
}

bool TorchEventRows::is_collected_before(SliceId a, SliceId b) const {
  const auto rank = [&](SliceId slice) {
    const auto index = trace_.slice_args(slice).integer(ArgKey::kEvIdx);
    // The slice's own number decides what an index file leaves equal.
    return std::tuple(index.value_or(INT64_MAX), trace_.slices().event_index[raw(slice)],
                      raw(slice));
  };
  return rank(a) < rank(b);
}

}  // namespace lanescope::analysis
