// Problem: a table that equals torch's to the last digit needs the same event list: its ties, its
// doubles, its links. Idea: one array of events in torch's order, built by merging the tracks (each
// already sorted), then the stages of torch_event_stages.h. Fields that a
// Kineto file lacks (logical thread numbers, linked activities) follow from others, as noted at
// each place. Rule numbers are those of docs/definitions/key_averages.md.
#include "lanescope/analysis/torch_events.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/torch_event_stages.h"

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

std::string shown_name(std::string_view name) {
  std::string text(name);
  if (name.size() > 1 && name.size() <= kLongestMangledName) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(
        abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
    if (status == 0 && demangled) text = demangled.get();
  }
  return text.starts_with("ProfilerStep#") ? "ProfilerStep*" : text;
}

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

class Builder {
 public:
  Builder(const Trace& trace, TableStyle style, bool own_frames)
      : trace_(trace), own_frames_(own_frames) {
    out_.style = style;
    for (const Metadata& entry : trace.metadata())
      out_.is_own |= trace.text(entry.key) == kLanescopeKey;
  }

  TorchEvents run() {
    out_.device = device_of(trace_, out_.style);
    names_.assign(trace_.strings().size(), TorchEvent::kNoEvent);
    operator_names_.resize(trace_.strings().size());
    intern("");
    finished_ = trace_.strings().find("finished");
    launches_ = trace_.strings().find("launches");
    find_hidden_names();
    find_main_thread();
    find_python_frames();
    find_tick();
    if (!is_torch()) find_left_out();
    collect_slices();
    add_memory(
        trace_, [this](StringId id) { return name_index(id); }, out_);
    if (is_torch())
      link_by_external_id(trace_, out_);
    else
      link_by_launch(trace_, links_, out_);
    build_tree(trace_, out_);
    merge_same_names(out_);
    return std::move(out_);
  }

 private:
  bool is_torch() const { return out_.style == TableStyle::kTorch; }

  std::uint32_t name_index(StringId id) {
    std::uint32_t& index = names_[raw(id)];
    if (index == TorchEvent::kNoEvent) index = intern(shown_name(trace_.text(id)));
    return index;
  }

  // With capture_overload_names torch keeps name and overload apart but writes "aten::add.Tensor"
  // into the file.
  void name_operator(TorchEvent& event, StringId id) {
    OperatorName& name = operator_names_[raw(id)];
    if (name.name == TorchEvent::kNoEvent) name = split_operator_name(id);
    event.name = name.name;
    event.overload = name.overload;
    if (const auto overload = trace_.slice_args(event.slice).text(ArgKey::kOverloadName))
      event.overload = intern(std::string(trace_.text(*overload)));
  }

  struct OperatorName {
    std::uint32_t name = TorchEvent::kNoEvent, overload = 0;  // indexes into TorchEvents::names
  };

  OperatorName split_operator_name(StringId id) {
    const std::string_view text = trace_.text(id);
    const std::size_t colons = text.find("::"), dot = text.find('.');
    const bool is_overloaded = colons != text.npos && colons > 0 && dot != text.npos &&
                               dot > colons + 2 && dot + 1 < text.size() &&
                               std::all_of(text.begin(), text.end(), [](unsigned char c) {
                                 return std::isalnum(c) || c == '_' || c == ':' || c == '.';
                               });
    if (!is_overloaded) return {name_index(id), 0};
    return {intern(shown_name(text.substr(0, dot))), intern(std::string(text.substr(dot + 1)))};
  }

  std::uint32_t intern(std::string text) {
    const auto [it, added] =
        name_by_text_.try_emplace(std::move(text), static_cast<std::uint32_t>(out_.names.size()));
    if (added) out_.names.push_back(it->first);
    return it->second;
  }

  void find_hidden_names() {
    hidden_.assign(trace_.strings().size(), false);
    for (const std::string_view name : kHiddenNames) {
      const StringId id = trace_.strings().find(name);
      if (id != kNone<StringId>) hidden_[raw(id)] = true;
    }
  }

  // The thread that stopped the profiler: torch puts rows there that it cannot link (overhead, API
  // calls without an operator). A file does not name it; take the thread of the steps, else the
  // process's first thread, else the first one.
  void find_main_thread() {
    if (!trace_.steps().empty()) {
      out_.main_track = trace_.slices().track[raw(trace_.steps().front().slice)];
      return;
    }
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i) {
      const Track& track = trace_.tracks()[i];
      if (track.kind != TrackKind::kThread || track.slice_count == 0) continue;
      const bool front = is_front_end(trace_.kind(SliceId{track.first_slice}));
      if (out_.main_track == kNone<TrackId> && front) out_.main_track = TrackId{i};
      if (!track.tid.is_text && track.tid.number != 0 &&
          trace_.process(track.process).pid == track.tid) {
        out_.main_track = TrackId{i};
        return;
      }
    }
  }

  // Versions of torch that write "host_name" show Python frames as rows of the table;
  // 2.11 does neither.
  void find_python_frames() {
    out_.has_python_frames =
        is_torch() && (out_.is_own ? own_frames_ : trace_.metadata_json("host_name").has_value());
  }

  // Kineto writes annotations on the device one tick longer at both ends, so that viewers draw them
  // around their first kernel. A tick is 1 us in files with whole microseconds, else 1 ns.
  void find_tick() {
    for (const std::int64_t start : trace_.slices().start_ns)
      if (start % 1000 != 0) return;
    tick_ns_ = 1000;
  }

  // Finds device work that was launched before the trace: warm-up work that still ran
  // in the window.
  void find_left_out() {
    links_ = compute_launch_links(trace_);
    left_out_.assign(trace_.slices().size(), false);
    // Without recorded launches, only the trace's marks count.
    const bool any_launch = links_.launched_count > 0;
    const std::int64_t first_step_ns =  // without steps, nothing is before the first one
        trace_.steps().empty() ? std::numeric_limits<std::int64_t>::min()
                               : trace_.start_ns(trace_.steps().front().slice);
    TorchEventsNotes& notes = out_.notes;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const SliceId id{i};
      if (!is_device_work(trace_.kind(id))) continue;
      const SliceId launch = links_.launch_of[i];
      if (!any_launch && !is_marked_as_early(id)) continue;
      if (launch == kNone<SliceId>) {
        left_out_[i] = true;
        ++notes.unlaunched_count;
        notes.unlaunched_ns += trace_.dur_ns(id);
      } else if (trace_.start_ns(launch) < first_step_ns) {
        left_out_[i] = true;
        ++notes.before_first_step_count;
        notes.before_first_step_ns += trace_.dur_ns(id);
      }
    }
  }

  bool is_marked_as_early(SliceId id) const {
    const ArgField* mark = trace_.slice_args(id).find(ArgKey::kLaunchedBeforeWindow);
    return mark && mark->type == ArgType::kTrue;
  }

  // lanescope also projects an annotation for work of annotations inside it and, in separate rows,
  // for work of backward ops of its ops; torch does not: docs/decisions/gpu_annotations.md
  bool is_extra_annotation(SliceId id) const {
    if (launches_ == kNone<StringId>) return false;
    const ArgsView args = trace_.slice_args(id);
    for (std::size_t k = args.size(); k-- > 0;) {
      if (args.field(k).key != launches_) continue;
      if (args.field(k).type != ArgType::kString) return false;
      const auto value =
          trace_.text(StringId{static_cast<std::uint32_t>(args.bits(args.field(k)))});
      return value == "backward" || (is_torch() && value == "nested");
    }
    return false;
  }

  // A range that was open when recording stopped has no ending thread, so torch treats
  // it as asynchronous.
  bool is_unfinished(SliceId id) const {
    if (finished_ == kNone<StringId>) return false;
    const ArgsView args = trace_.slice_args(id);
    for (std::size_t k = args.size(); k-- > 0;)
      if (args.field(k).key == finished_) return args.field(k).type == ArgType::kFalse;
    return false;
  }

  bool is_row(SliceId id) {
    const CategoryKind kind = trace_.kind(id);
    if (kind == CategoryKind::kTrace || kind == CategoryKind::kFlow ||
        kind == CategoryKind::kCpuInstant || kind == CategoryKind::kPythonSample)
      return false;
    if (hidden_[raw(trace_.slices().name[raw(id)])]) return false;
    if (kind == CategoryKind::kGpuUserAnnotation && is_extra_annotation(id)) return false;
    // These are waits of the CPU and marks of events, not device work. If torch records them, it
    // counts them as device time.
    if ((kind == CategoryKind::kCudaSync || kind == CategoryKind::kCudaEvent) &&
        (!is_torch() || out_.is_own))
      return false;
    if (kind == CategoryKind::kPythonFunction) {
      if (out_.has_python_frames) return true;
      if (!is_torch() || out_.is_own) ++out_.notes.python_frame_count;
      return false;
    }
    return is_torch() || !left_out_[raw(id)];
  }

  // The sort key of a slice; sorting keys moves a fifth of the bytes of whole events.
  struct Key {
    std::int64_t start_ns, end_ns;
    std::uint32_t slice;
  };

  void collect_slices() {
    std::vector<Key> keys;
    std::vector<std::size_t> run_ends{0};
    keys.reserve(trace_.slices().size());
    for (const Track& track : trace_.tracks()) {
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
        if (!is_row(SliceId{i})) continue;
        Key key{trace_.start_ns(SliceId{i}), trace_.end_ns(SliceId{i}), i};
        if (trace_.kind(SliceId{i}) == CategoryKind::kGpuUserAnnotation &&
            key.end_ns - key.start_ns >= 2 * tick_ns_) {
          key.start_ns += tick_ns_;
          key.end_ns -= tick_ns_;
        }
        keys.push_back(key);
      }
      if (keys.size() > run_ends.back()) run_ends.push_back(keys.size());
    }
    merge_runs(keys, std::move(run_ends));
    out_.events.reserve(keys.size());
    for (const Key& key : keys) add_event(key);
  }

  void add_event(const Key& key) {
    const SliceId id{key.slice};
    const CategoryKind kind = trace_.kind(id);
    const Track& track = trace_.track(id);
    TorchEvent& event = out_.events.emplace_back();
    event.slice = id;
    if (kind == CategoryKind::kCpuOp)
      name_operator(event, trace_.slices().name[key.slice]);
    else
      event.name = name_index(trace_.slices().name[key.slice]);
    event.start_ns = key.start_ns;
    event.end_ns = key.end_ns;
    event.start_us = static_cast<double>(key.start_ns - trace_.window_start_ns()) / 1000.0;
    event.end_us = static_cast<double>(key.end_ns - trace_.window_start_ns()) / 1000.0;
    event.thread = raw(trace_.slices().track[key.slice]);
    event.on_device = is_on_stream(kind) || track.kind == TrackKind::kStream;
    event.is_annotation =
        kind == CategoryKind::kUserAnnotation || kind == CategoryKind::kGpuUserAnnotation;
    event.is_async = track.kind == TrackKind::kAsync || is_unfinished(id);
    event.is_overhead = kind == CategoryKind::kOverhead;
    if (event.is_overhead && out_.main_track != kNone<TrackId>) event.thread = raw(out_.main_track);
  }

  // Rule 4's order. Ties (equal start and end) keep the collector's order: operators by "Ev Idx",
  // then the rest.
  bool before(const Key& a, const Key& b) const {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    const auto rank = [&](const Key& key) {
      const auto index = trace_.slice_args(SliceId{key.slice}).integer(ArgKey::kEvIdx);
      return std::pair(index.value_or(INT64_MAX), trace_.slices().event_index[key.slice]);
    };
    return rank(a) < rank(b);
  }

  // Each track is a run sorted by time, except for ties; merges neighbouring runs in pairs.
  void merge_runs(std::vector<Key>& keys, std::vector<std::size_t> run_ends) const {
    const auto less = [this](const Key& a, const Key& b) { return before(a, b); };
    const auto at = [&](std::size_t i) { return keys.begin() + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t i = 1; i < run_ends.size(); ++i)
      if (!std::is_sorted(at(run_ends[i - 1]), at(run_ends[i]), less))
        std::sort(at(run_ends[i - 1]), at(run_ends[i]), less);
    std::vector<Key> merged;
    while (run_ends.size() > 2) {
      std::vector<std::size_t> ends{0};
      merged.clear();
      merged.reserve(keys.size());
      for (std::size_t i = 0; i + 1 < run_ends.size(); i += 2) {
        const std::size_t middle = run_ends[i + 1];
        const std::size_t last = i + 2 < run_ends.size() ? run_ends[i + 2] : middle;
        std::merge(at(run_ends[i]), at(middle), at(middle), at(last), std::back_inserter(merged),
                   less);
        ends.push_back(last);
      }
      keys.swap(merged);
      run_ends = std::move(ends);
    }
  }

  const Trace& trace_;
  const bool own_frames_;
  TorchEvents out_;
  std::int64_t tick_ns_ = 1;
  StringId finished_ = kNone<StringId>;
  StringId launches_ = kNone<StringId>;
  LaunchLinks links_;                         // kLanescope
  std::vector<bool> left_out_;                // kLanescope, one per slice
  std::vector<bool> hidden_;                  // one a string
  std::vector<std::uint32_t> names_;          // index into TorchEvents::names, one per string
  std::vector<OperatorName> operator_names_;  // of operators, one per string
  std::unordered_map<std::string, std::uint32_t> name_by_text_;
};

}  // namespace

TorchEvents build_torch_events(const Trace& trace, TableStyle style, bool own_frames) {
  return Builder(trace, style, own_frames).run();
}

}  // namespace lanescope::analysis
