// Problem: a table that equals torch's to the last digit needs the same event list: its ties, its
// doubles, its links. Idea: one array of events in torch's order, built by merging the tracks (each
// already sorted), then the stages of torch_event_stages.h. Fields that a
// Kineto file lacks (logical thread numbers, linked activities) follow from others, as noted at
// each place. Rule numbers are those of docs/definitions/key_averages.md.
#include "lanescope/analysis/torch_events.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/torch_event_rows.h"
#include "lanescope/analysis/torch_event_stages.h"

namespace lanescope::analysis {
namespace {

class Builder {
 public:
  Builder(const Trace& trace, TableStyle style, bool own_frames)
      : trace_(trace), rows_(trace, style, own_frames) {
    out_.style = style;
    out_.is_own = rows_.is_own();
    out_.device = rows_.device();
    out_.main_track = rows_.main_track();
    out_.has_python_frames = rows_.has_python_frames();
  }

  TorchEvents run() {
    names_.assign(trace_.strings().size(), TorchEvent::kNoEvent);
    operator_names_.resize(trace_.strings().size());
    intern("");
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
    auto [name, overload] = operator_text(trace_.text(id));
    if (overload.empty()) return {name_index(id), 0};
    return {intern(shown_name(name)), intern(std::string(overload))};
  }

  std::uint32_t intern(std::string text) {
    const auto [it, added] =
        name_by_text_.try_emplace(std::move(text), static_cast<std::uint32_t>(out_.names.size()));
    if (added) out_.names.push_back(it->first);
    return it->second;
  }

  // Finds device work that was launched before the trace: warm-up work that still ran
  // in the window.
  void find_left_out() {
    links_ = compute_launch_links(trace_, 0);
    left_out_.assign(trace_.slices().size(), false);
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i)
      if (is_device_work(trace_.kind(SliceId{i})))
        left_out_[i] = rows_.is_left_out(SliceId{i}, links_.launch_of[i], links_, out_.notes);
  }

  bool is_row(SliceId id) {
    return rows_.is_row(id, out_.notes) && (is_torch() || !left_out_[raw(id)]);
  }

  void collect_slices() {
    std::vector<EventKey> keys;
    std::vector<std::size_t> run_ends{0};
    keys.reserve(trace_.slices().size());
    for (const Track& track : trace_.tracks()) {
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
        if (!is_row(SliceId{i})) continue;
        keys.push_back(rows_.key_of(SliceId{i}));
      }
      if (keys.size() > run_ends.back()) run_ends.push_back(keys.size());
    }
    merge_runs(keys, std::move(run_ends));
    out_.events.reserve(keys.size());
    for (const EventKey& key : keys) add_event(key);
  }

  void add_event(const EventKey& key) {
    const SliceId id = key.slice;
    const CategoryKind kind = trace_.kind(id);
    TorchEvent& event = out_.events.emplace_back();
    event.slice = id;
    if (kind == CategoryKind::kCpuOp)
      name_operator(event, trace_.slices().name[raw(id)]);
    else
      event.name = name_index(trace_.slices().name[raw(id)]);
    event.start_ns = key.start_ns;
    event.end_ns = key.end_ns;
    event.start_us = static_cast<double>(key.start_ns - trace_.window_start_ns()) / 1000.0;
    event.end_us = static_cast<double>(key.end_ns - trace_.window_start_ns()) / 1000.0;
    event.thread = raw(trace_.slices().track[raw(id)]);
    event.on_device = rows_.is_on_device(id);
    event.is_annotation = is_annotation(kind);
    event.is_async = rows_.is_async(id);
    event.is_overhead = kind == CategoryKind::kOverhead;
    if (event.is_overhead && out_.main_track != kNone<TrackId>) event.thread = raw(out_.main_track);
  }

  // Each track is a run sorted by time, except for ties; merges neighbouring runs in pairs.
  void merge_runs(std::vector<EventKey>& keys, std::vector<std::size_t> run_ends) const {
    const auto less = [this](const EventKey& a, const EventKey& b) { return rows_.before(a, b); };
    const auto at = [&](std::size_t i) { return keys.begin() + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t i = 1; i < run_ends.size(); ++i)
      if (!std::is_sorted(at(run_ends[i - 1]), at(run_ends[i]), less))
        std::sort(at(run_ends[i - 1]), at(run_ends[i]), less);
    std::vector<EventKey> merged;
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
  const TorchEventRows rows_;
  TorchEvents out_;
  LaunchLinks links_;                         // kLanescope
  std::vector<bool> left_out_;                // kLanescope, one per slice
  std::vector<std::uint32_t> names_;          // index into TorchEvents::names, one per string
  std::vector<OperatorName> operator_names_;  // of operators, one per string
  std::unordered_map<std::string, std::uint32_t> name_by_text_;
};

}  // namespace

TorchEvents build_torch_events(const Trace& trace, TableStyle style, bool own_frames) {
  return Builder(trace, style, own_frames).run();
}

}  // namespace lanescope::analysis
