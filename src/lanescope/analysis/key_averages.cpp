// Rules 6 and 7 of docs/definitions/key_averages.md over the list of torch_events.h: totals of each
// event, then one row per group key. Example: aten::linear [0, 10) over aten::addmm [2, 8) with one
// kernel of 5 ns:
//                      CPU total  self   device total  self
//   aten::linear              10     4              5     0
//   aten::addmm                6     6              5     5
//   the kernel's row                                5     5
#include "lanescope/analysis/key_averages.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/averages_by_track.h"
#include "lanescope/analysis/call_stacks.h"
#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/key_averages_list.h"
#include "lanescope/analysis/operator_inputs.h"

namespace lanescope::analysis {
namespace {

struct Totals {
  std::int64_t device_ns = 0, device_children_ns = 0, cpu_children_ns = 0;
  double device_us = 0, device_children_us = 0, cpu_children_us = 0;
  std::int64_t cpu_memory_children = 0, device_memory_children = 0;
};

// The key of a row. The rest of torch's key (node id, legacy) is the same for all rows of
// a Kineto file.
struct GroupKey {
  std::uint32_t name;
  std::uint32_t flags;
  std::uint32_t overload, shapes, stack;
  bool operator==(const GroupKey&) const = default;
};
struct GroupKeyHash {
  std::size_t operator()(const GroupKey& key) const {
    std::uint64_t hash = key.name * 0x9e3779b97f4a7c15 + key.flags;
    for (const std::uint32_t part : {key.overload, key.shapes, key.stack})
      hash = (hash ^ part) * 0xd6e8feb86659fd93;
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
};

constexpr std::string_view kProfileMemory = "profile_memory", kWithFlops = "with_flops";

bool metadata_flag(const Trace& trace, std::string_view key) {
  const auto json = trace.metadata_json(key);
  return json && (*json == "1" || *json == "true");
}

bool has_instants(const Trace& trace, std::string_view text) {
  const StringId wanted = trace.strings().find(text);
  if (wanted == kNone<StringId>) return false;
  for (const StringId name : trace.instants().name)
    if (name == wanted) return true;
  return false;
}

bool has_memory_records(const Trace& trace) { return has_instants(trace, "[memory]"); }

// Its rows are sums that need no list of events.
bool is_by_name_alone(const Trace& trace, const KeyAveragesOptions& options) {
  return options.style == TableStyle::kLanescope && !options.group_by_input_shape &&
         !options.group_by_overload_name && options.group_by_stack_n == 0 &&
         !metadata_flag(trace, kWithFlops) && !has_memory_records(trace) &&
         !has_instants(trace, "[OutOfMemory]");
}

void take_exact_microseconds(KeyAverages& averages) {
  for (KeyAverage& row : averages.rows) {
    row.cpu_time_total_us = static_cast<double>(row.cpu_time_total_ns) / 1000.0;
    row.self_cpu_time_total_us = static_cast<double>(row.self_cpu_time_total_ns) / 1000.0;
    row.device_time_total_us = static_cast<double>(row.device_time_total_ns) / 1000.0;
    row.self_device_time_total_us = static_cast<double>(row.self_device_time_total_ns) / 1000.0;
  }
}

class ListAverager {
 public:
  ListAverager(const Trace& trace, const KeyAveragesOptions& options)
      : trace_(trace), options_(options), list_(build_torch_events(trace, options.style)) {}

  KeyAverages run() {
    out_.style = options_.style;
    out_.device = list_.device;
    out_.profile_memory = metadata_flag(trace_, kProfileMemory) || has_memory_records(trace_);
    out_.with_flops = metadata_flag(trace_, kWithFlops);
    out_.window_ns = trace_.window_end_ns() - trace_.window_start_ns();
    out_.corrections = list_.notes;
    compute_totals();
    compute_busy();
    if (options_.group_by_stack_n > 0) cut_stacks();
    for (std::uint32_t i = 0; i < list_.events.size(); ++i)
      if (!list_.events[i].is_removed) add(i);
    if (!is_torch()) take_exact_microseconds(out_);
    return std::move(out_);
  }

 private:
  bool is_torch() const { return options_.style == TableStyle::kTorch; }

  // Children come after their parents, so one pass from the end has every child's total before it
  // is needed. Adds doubles in the order of torch's sums over kernels and children.
  void compute_totals() {
    totals_.resize(list_.events.size());
    for (std::uint32_t i = static_cast<std::uint32_t>(list_.events.size()); i-- > 0;) {
      const TorchEvent& event = list_.events[i];
      Totals& totals = totals_[i];
      if (event.on_device) {
        totals.device_ns = event.end_ns - event.start_ns;
        totals.device_us = event.end_us - event.start_us;
        continue;
      }
      for (std::uint32_t k = event.kernels_first; k < event.kernels_first + event.kernels_count;
           ++k) {
        const TorchEvent& kernel = list_.events[list_.kernels[k]];
        totals.device_ns += kernel.end_ns - kernel.start_ns;
        totals.device_us += kernel.end_us - kernel.start_us;
      }
      for (std::uint32_t c = event.first_child; c != TorchEvent::kNoEvent;
           c = list_.events[c].next_sibling) {
        const TorchEvent& child = list_.events[c];
        totals.cpu_children_ns += child.end_ns - child.start_ns;
        totals.cpu_children_us += child.end_us - child.start_us;
        totals.device_children_ns += totals_[c].device_ns;
        totals.device_children_us += totals_[c].device_us;
        totals.cpu_memory_children += child.cpu_memory_bytes;
        totals.device_memory_children += child.device_memory_bytes;
      }
      totals.device_ns += totals.device_children_ns;
      totals.device_us += totals.device_children_us;
    }
  }

  void compute_busy() {
    std::map<std::int32_t, IntervalUnion> by_device;
    std::int64_t first_ns = trace_.window_start_ns(), last_ns = trace_.window_end_ns();
    for (const TorchEvent& event : list_.events) {
      if (event.slice == kNone<SliceId> || !is_device_work(trace_.kind(event.slice))) continue;
      by_device[trace_.track(event.slice).device.value_or(-1)].add(event.start_ns, event.end_ns);
      first_ns = std::min(first_ns, event.start_ns);
      last_ns = std::max(last_ns, event.end_ns);
      if (!is_torch()) by_stream_[event.thread].add(event.start_ns, event.end_ns);
    }
    for (auto& [device, busy] : by_device) {
      busy.finish();
      out_.device_busy_ns += busy.length_ns();
    }
    out_.device_count = static_cast<std::int32_t>(by_device.size());
    out_.device_window_ns = last_ns - first_ns;
    for (auto& [stream, busy] : by_stream_) busy.finish();
  }

  void cut_stacks() {
    CallStacks full = build_call_stacks(trace_, list_);
    std::map<std::vector<std::string>, std::uint32_t> by_frames{{{}, 0}};
    std::vector<std::uint32_t> cut_of(full.stacks.size(), 0);
    stacks_.stacks.assign(1, {});
    for (std::size_t i = 0; i < full.stacks.size(); ++i) {
      std::vector<std::string> frames = std::move(full.stacks[i]);
      if (frames.size() > static_cast<std::size_t>(options_.group_by_stack_n))
        frames.resize(static_cast<std::size_t>(options_.group_by_stack_n));
      const auto [it, added] =
          by_frames.try_emplace(frames, static_cast<std::uint32_t>(stacks_.stacks.size()));
      if (added) stacks_.stacks.push_back(std::move(frames));
      cut_of[i] = it->second;
    }
    for (const std::uint32_t stack : full.stack_of) stacks_.stack_of.push_back(cut_of[stack]);
  }

  std::uint32_t shapes_index(const TorchEvent& event) {
    if (event.slice == kNone<SliceId>) return shapes_text("[]");
    const auto dims = trace_.slice_args(event.slice).text(ArgKey::kInputDims);
    if (!dims) return shapes_text("[]");
    const auto [it, added] = shapes_of_dims_.try_emplace(raw(*dims), 0);
    if (added) it->second = shapes_text(torch_shapes_text(trace_.text(*dims)));
    return it->second;
  }
  std::uint32_t shapes_text(std::string text) {
    const auto [it, added] =
        shapes_by_text_.try_emplace(std::move(text), static_cast<std::uint32_t>(shapes_.size()));
    if (added) shapes_.push_back(it->first);
    return it->second;
  }

  std::uint64_t flops(const TorchEvent& event) {
    if (!out_.with_flops || event.slice == kNone<SliceId> ||
        trace_.kind(event.slice) != CategoryKind::kCpuOp)
      return 0;
    const ArgsView args = trace_.slice_args(event.slice);
    const auto dims = args.text(ArgKey::kInputDims);
    if (!dims) return 0;
    const auto types = args.text(ArgKey::kInputType), concrete = args.text(ArgKey::kConcreteInputs);
    const StringId none = kNone<StringId>;
    const std::array<std::uint32_t, 4> key{event.name, raw(*dims), raw(types.value_or(none)),
                                           raw(concrete.value_or(none))};
    const auto [it, added] = flops_by_inputs_.try_emplace(key, 0);
    if (added)
      it->second =
          count_flops({list_.names[event.name], trace_.text(*dims),
                       trace_.text(types.value_or(none)), trace_.text(concrete.value_or(none))});
    return it->second;
  }

  KeyAverage& row_of(std::uint32_t i) {
    const TorchEvent& event = list_.events[i];
    GroupKey key{event.name, (event.on_device ? 1u : 0u) | (event.is_annotation ? 2u : 0u), 0, 0,
                 0};
    if (options_.group_by_overload_name) key.overload = event.overload;
    if (options_.group_by_input_shape) key.shapes = shapes_index(event);
    if (options_.group_by_stack_n > 0) key.stack = stacks_.stack_of[i];
    const auto [it, added] = groups_.try_emplace(key, out_.rows.size());
    if (added) {
      KeyAverage row;
      row.name = list_.names[event.name];
      if (options_.group_by_overload_name) row.overload_name = list_.names[key.overload];
      if (options_.group_by_input_shape) row.input_shapes = shapes_[key.shapes];
      if (options_.group_by_stack_n > 0) row.stack = stacks_.stacks[key.stack];
      row.on_device = event.on_device;
      row.is_annotation = event.is_annotation;
      row.is_overhead = event.is_overhead;
      row.is_async = event.is_async;
      row.is_top_level = event.parent == TorchEvent::kNoEvent;
      row.first_event = i;
      out_.rows.push_back(std::move(row));
    }
    return out_.rows[it->second];
  }

  void add(std::uint32_t i) {
    const TorchEvent& event = list_.events[i];
    const Totals& totals = totals_[i];
    KeyAverage& row = row_of(i);
    const std::int64_t dur_ns = event.end_ns - event.start_ns;
    const double dur_us = event.end_us - event.start_us;
    ++row.count;
    row.cpu_memory_bytes += event.cpu_memory_bytes;
    row.device_memory_bytes += event.device_memory_bytes;
    row.flops += flops(event);
    if (event.on_device) {
      add_device_row(event, row, dur_ns, dur_us);
      return;
    }
    row.cpu_time_total_ns += dur_ns;
    row.cpu_time_total_us += dur_us;
    if (event.is_async) return;
    if (!is_torch()) add_to_union(event, row);
    row.self_cpu_time_total_ns += dur_ns - totals.cpu_children_ns;
    row.self_cpu_time_total_us += dur_us - totals.cpu_children_us;
    row.self_cpu_memory_bytes += event.cpu_memory_bytes - totals.cpu_memory_children;
    row.self_device_memory_bytes += event.device_memory_bytes - totals.device_memory_children;
    row.device_time_total_ns += totals.device_ns;
    row.device_time_total_us += totals.device_us;
    row.self_device_time_total_ns += totals.device_ns - totals.device_children_ns;
    row.self_device_time_total_us += totals.device_us - totals.device_children_us;
  }

  // Events come in order of start, so time before the latest end of the row's earlier calls on the
  // thread is already counted.
  void add_to_union(const TorchEvent& event, KeyAverage& row) {
    const auto index = static_cast<std::uint64_t>(&row - out_.rows.data());
    std::int64_t& until =
        counted_until_.try_emplace(index << 32 | event.thread, event.start_ns).first->second;
    row.cpu_time_union_ns +=
        std::max<std::int64_t>(0, event.end_ns - std::max(event.start_ns, until));
    until = std::max(until, event.end_ns);
  }

  void add_device_row(const TorchEvent& event, KeyAverage& row, std::int64_t dur_ns,
                      double dur_us) {
    if (!is_torch() && event.is_annotation) {
      const auto it = by_stream_.find(event.thread);
      const std::int64_t busy =
          it == by_stream_.end() ? 0 : it->second.length_within_ns(event.start_ns, event.end_ns);
      row.device_time_total_ns += busy;
      out_.annotation_span_ns += dur_ns;
      out_.annotation_busy_ns += busy;
      return;
    }
    row.device_time_total_ns += dur_ns;
    row.self_device_time_total_ns += dur_ns;
    row.device_time_total_us += dur_us;
    row.self_device_time_total_us += dur_us;
  }

  const Trace& trace_;
  KeyAveragesOptions options_;
  TorchEvents list_;
  KeyAverages out_;
  std::vector<Totals> totals_;
  std::map<std::uint32_t, IntervalUnion> by_stream_;               // kLanescope
  std::unordered_map<std::uint64_t, std::int64_t> counted_until_;  // kLanescope: by row and thread
  CallStacks stacks_;                                              // cut to group_by_stack_n frames
  std::vector<std::string> shapes_;
  std::unordered_map<std::string, std::uint32_t> shapes_by_text_;
  std::unordered_map<std::uint32_t, std::uint32_t> shapes_of_dims_;
  std::map<std::array<std::uint32_t, 4>, std::uint64_t> flops_by_inputs_;
  std::unordered_map<GroupKey, std::size_t, GroupKeyHash> groups_;
};

}  // namespace

Result<KeyAverages> compute_key_averages(const Trace& trace, const KeyAveragesOptions& options) {
  if (is_by_name_alone(trace, options))
    if (std::optional<KeyAverages> averages = averages_by_track(trace, 0)) {
      averages->profile_memory = metadata_flag(trace, kProfileMemory);
      take_exact_microseconds(*averages);
      return std::move(*averages);
    }
  return key_averages_of_list(trace, options);
}

Result<KeyAverages> key_averages_of_list(const Trace& trace, const KeyAveragesOptions& options) {
  if (options.group_by_stack_n < 0)
    return Error{Errc::kInvalidArgument,
                 "group_by_stack_n must be 0 (no stacks) or a number of frames, not " +
                     std::to_string(options.group_by_stack_n)};
  return ListAverager(trace, options).run();
}

}  // namespace lanescope::analysis
