#include "lanescope/analysis/python_flame.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>

#include "lanescope/model/child_process.h"

namespace lanescope::analysis {
namespace {

// By category: whether its slices are stacks of that source.
std::vector<bool> categories_of(const Trace& trace, FlameSource source) {
  std::vector<bool> wanted;
  for (const Category& category : trace.categories()) {
    const bool is_profile = category.kind == CategoryKind::kOther &&
                            category.text != kNone<StringId> &&
                            trace.text(category.text) == "cpu_profile";
    wanted.push_back(source == FlameSource::kCpuProfile ? is_profile
                     : source == FlameSource::kSamples
                         ? category.kind == CategoryKind::kPythonSample
                         : category.kind == CategoryKind::kPythonFunction);
  }
  return wanted;
}

// The OS thread of a track with stacks; a track of samples is called "<thread> sampled", and that of a profile
// "<thread> CPU profile <id>".
std::optional<std::int64_t> thread_of(const Trace& trace, const Track& track) {
  if (track.kind != TrackKind::kThread) return std::nullopt;
  if (!track.tid.is_text) return track.tid.number;
  const std::string_view text = trace.text(track.tid.text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

TimeSpans merged(TimeSpans spans) {
  std::sort(spans.begin(), spans.end());
  TimeSpans out;
  for (const auto& span : spans) {
    if (span.second <= span.first) continue;
    if (!out.empty() && span.first <= out.back().second)
      out.back().second = std::max(out.back().second, span.second);
    else
      out.push_back(span);
  }
  return out;
}

TimeSpans common(const TimeSpans& a, const TimeSpans& b) {
  TimeSpans out;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const std::int64_t start = std::max(a[i].first, b[k].first),
                       end = std::min(a[i].second, b[k].second);
    if (start < end) out.emplace_back(start, end);
    a[i].second < b[k].second ? ++i : ++k;
  }
  return out;
}

bool holds(const TimeSpans& spans, std::int64_t time) {
  const auto after =
      std::upper_bound(spans.begin(), spans.end(), time,
                       [](std::int64_t at, const std::pair<std::int64_t, std::int64_t>& span) {
                         return at < span.first;
                       });
  return after != spans.begin() && time < std::prev(after)->second;
}

std::int64_t length_within(const TimeSpans& spans, std::int64_t start, std::int64_t end) {
  std::int64_t sum = 0;
  auto span =
      std::upper_bound(spans.begin(), spans.end(), start,
                       [](std::int64_t at, const std::pair<std::int64_t, std::int64_t>& each) {
                         return at < each.second;
                       });
  for (; span != spans.end() && span->first < end; ++span)
    sum += std::min(end, span->second) - std::max(start, span->first);
  return sum;
}

class FlameMaker {
 public:
  FlameMaker(const Trace& trace, FlameSource source, const std::optional<TimeSpans>& spans,
             std::optional<std::int64_t> thread)
      : trace_(trace), spans_(spans), thread_(thread), wanted_(categories_of(trace, source)) {
    out_.source = source;
  }

  PythonFlame run() {
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i) add_track(TrackId{i});
    for (std::size_t i = out_.nodes.size(); i-- > 0;) {
      FlameNode& node = out_.nodes[i];
      node.total += node.self;
      if (node.parent != i)
        out_.nodes[node.parent].total += node.total;
      else
        out_.total += node.total;
    }
    std::sort(out_.threads.begin(), out_.threads.end());
    out_.threads.erase(std::unique(out_.threads.begin(), out_.threads.end()), out_.threads.end());
    return std::move(out_);
  }

 private:
  struct Open {
    SliceId slice{};
    std::uint32_t node = 0;
    std::int64_t end_ns = 0, self_from_ns = 0;
    TimeSpans self;  // when no callee was on the stack
  };

  void add_track(TrackId id) {
    const Track& track = trace_.track(id);
    const auto thread = thread_of(trace_, track);
    // A profile in a file of its own does not say of which thread it is.
    if (!thread && out_.source != FlameSource::kCpuProfile) return;
    bool has_stacks = false;
    is_chosen_ = !thread_ || thread_ == thread;
    root_ = kNoNode;
    const Process& process = trace_.process(track.process);
    if (is_child_process(trace_, process) && process.name != kNone<StringId>)
      root_name_ = process.name;
    else
      root_name_ = kNone<StringId>;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId slice{i};
      if (!wanted_[raw(trace_.slices().category[i])]) continue;
      has_stacks = true;
      add_slice(slice);
    }
    while (!open_.empty()) close();
    if (has_stacks && thread) out_.threads.push_back(*thread);
  }

  void add_slice(SliceId slice) {
    const std::int64_t start = trace_.start_ns(slice), end = trace_.end_ns(slice);
    // A slice that ends before this one does is no caller, even when it overlaps.
    while (!open_.empty() && (open_.back().end_ns <= start || open_.back().end_ns < end)) close();
    if (!open_.empty()) {
      Open& caller = open_.back();
      if (start > caller.self_from_ns) caller.self.emplace_back(caller.self_from_ns, start);
      caller.self_from_ns = std::max(caller.self_from_ns, end);
    }
    open_.push_back({slice, node_of(slice), end, start, {}});
  }

  void close() {
    Open& open = open_.back();
    if (open.end_ns > open.self_from_ns) open.self.emplace_back(open.self_from_ns, open.end_ns);
    const auto [all, chosen] =
        out_.source == FlameSource::kSamples ? samples_of(open) : time_of(open);
    out_.available += all;
    if (is_chosen_) out_.nodes[open.node].self += chosen;
    open_.pop_back();
  }

  // All self samples of a slice, and those inside the spans: the samples are at equal distances
  // in the slice's self time.
  std::pair<std::int64_t, std::int64_t> samples_of(const Open& open) const {
    const std::int64_t self = std::max<std::int64_t>(
        trace_.slice_args(open.slice).integer(ArgKey::kSelfSamples).value_or(0), 0);
    if (!spans_) return {self, self};
    std::int64_t length = 0;
    for (const auto& [start, end] : open.self) length += end - start;
    // A damaged count must not cost time: beyond a thousand and one per microsecond, shares will do.
    if (self > length / 1000 + 1000) {
      const auto [all, inside] = time_of(open);
      return {self, all == 0 ? 0
                             : static_cast<std::int64_t>(static_cast<double>(self) *
                                                         static_cast<double>(inside) /
                                                         static_cast<double>(all))};
    }
    std::int64_t inside = 0;
    for (std::int64_t i = 0; i < self; ++i) {
      auto at = static_cast<std::int64_t>((static_cast<double>(i) + 0.5) *
                                          static_cast<double>(length) / static_cast<double>(self));
      for (const auto& [start, end] : open.self) {
        if (at < end - start) {
          inside += holds(*spans_, start + at);
          break;
        }
        at -= end - start;
      }
    }
    return {self, inside};
  }

  std::pair<std::int64_t, std::int64_t> time_of(const Open& open) const {
    std::int64_t all = 0, inside = 0;
    for (const auto& [start, end] : open.self) {
      all += end - start;
      if (spans_) inside += length_within(*spans_, start, end);
    }
    return {all, spans_ ? inside : all};
  }

  std::uint32_t node_of(SliceId slice) {
    if (root_ == kNoNode && root_name_ != kNone<StringId>) root_ = node_below(kNoNode, root_name_);
    return node_below(open_.empty() ? root_ : open_.back().node, trace_.slices().name[raw(slice)]);
  }
  std::uint32_t node_below(std::uint32_t caller, StringId name) {
    const auto [known, is_new] = node_by_place_.try_emplace(
        {caller, raw(name)}, static_cast<std::uint32_t>(out_.nodes.size()));
    if (is_new) out_.nodes.push_back({caller == kNoNode ? known->second : caller, name, 0, 0});
    return known->second;
  }

  static constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

  const Trace& trace_;
  const std::optional<TimeSpans>& spans_;
  const std::optional<std::int64_t> thread_;
  const std::vector<bool> wanted_;        // by category
  StringId root_name_ = kNone<StringId>;  // of the track's process, where that is a child process
  std::uint32_t root_ = kNoNode;
  bool is_chosen_ = false;
  PythonFlame out_;
  std::vector<Open> open_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> node_by_place_;
};

bool has_slices(const Trace& trace, FlameSource source) {
  const std::vector<bool> wanted = categories_of(trace, source);
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return false;
  const auto& categories = trace.slices().category;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (wanted[raw(categories[i])]) return true;
  return false;
}

Result<FlameSource> choose_source(const Trace& trace, std::optional<FlameSource> wanted) {
  for (const FlameSource source :
       {FlameSource::kSamples, FlameSource::kCalls, FlameSource::kCpuProfile})
    if ((!wanted || *wanted == source) && has_slices(trace, source)) return source;
  const std::string_view found = wanted == FlameSource::kSamples ? "no samples of Python stacks"
                                 : wanted                        ? "no recorded Python calls"
                                                                 : "neither samples nor calls";
  return Error{
      Errc::kUnavailable,
      fmt::format("expected Python stacks, found {}; record with --sample-python (samples) "
                  "or --stack (calls)",
                  found)};
}

Result<TimeSpans> step_spans(const Trace& trace, std::int64_t step) {
  TimeSpans spans;
  for (const Step& each : trace.steps())
    if (each.number == step)
      spans.emplace_back(trace.start_ns(each.slice), trace.end_ns(each.slice));
  if (spans.empty())
    return Error{
        Errc::kUnavailable,
        trace.steps().empty()
            ? std::string("--step: expected a trace with steps, found none")
            : fmt::format("--step: expected a step from {} to {}, found {}",
                          trace.steps().front().number, trace.steps().back().number, step)};
  return merged(std::move(spans));
}

}  // namespace

TimeSpans find_idle_spans(const Trace& trace) {
  TimeSpans busy;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (is_device_work(trace.kind(SliceId{i})))
      busy.emplace_back(trace.start_ns(SliceId{i}), trace.end_ns(SliceId{i}));
  busy = merged(std::move(busy));
  TimeSpans idle;
  for (std::size_t i = 1; i < busy.size(); ++i)
    idle.emplace_back(busy[i - 1].second, busy[i].first);
  return idle;
}

Result<PythonFlame> compute_python_flame(const Trace& trace, const FlameOptions& options) {
  LANESCOPE_TRY(const FlameSource source, choose_source(trace, options.source));
  std::optional<TimeSpans> spans;
  if (options.step) {
    LANESCOPE_TRY(spans, step_spans(trace, *options.step));
  }
  if (options.gpu_idle) {
    TimeSpans idle = find_idle_spans(trace);
    if (idle.empty())
      return Error{Errc::kUnavailable,
                   "--gpu-idle: expected GPU work with pauses, found none in the trace"};
    spans = spans ? common(*spans, idle) : std::move(idle);
  }
  if (options.within) spans = spans ? common(*spans, *options.within) : *options.within;
  PythonFlame flame = FlameMaker(trace, source, spans, options.thread).run();
  if (options.thread &&
      !std::binary_search(flame.threads.begin(), flame.threads.end(), *options.thread)) {
    if (flame.threads.empty())
      return Error{Errc::kUnavailable,
                   "--thread: expected stacks of a known thread; the profile does not name its "
                   "thread"};
    std::string known;
    for (std::size_t i = 0; i < flame.threads.size() && i < 8; ++i)
      known += fmt::format("{}{}", i == 0 ? "" : ", ", flame.threads[i]);
    if (flame.threads.size() > 8) known += ", ...";
    return Error{Errc::kUnavailable,
                 fmt::format("--thread: expected one of {}, found {}", known, *options.thread)};
  }
  return flame;
}

}  // namespace lanescope::analysis
