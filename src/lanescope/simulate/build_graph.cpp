#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/gaps.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {
namespace {

using analysis::DeviceWork;
using analysis::WorkClass;

// CUDA keeps about this many launches of a stream that have not started.
constexpr std::size_t kUsualQueue = 1024;
// A launch that takes longer may have waited for room in the queue.
constexpr std::int64_t kLongLaunchNs = 20'000;
// Work that starts within this time after work of another stream, and later than its own stream and
// launch explain, waited for it.
constexpr std::int64_t kStreamWaitNs = 20'000;
constexpr std::int64_t kUsualGapNs = 1'000;  // without a sample in the trace
constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// The order of points at equal times: work follows work that ended, and a call returns after that.
enum class Rank : std::uint8_t { kHost, kWorkEnd, kWorkStart, kEmptyWorkEnd, kAfterWait };

struct Draft {  // of a point
  std::int64_t time_ns;
  Rank rank;
  std::uint32_t id;
  bool operator<(const Draft& other) const {
    return std::tie(time_ns, rank, id) < std::tie(other.time_ns, other.rank, other.id);
  }
};

struct HostPoint {
  std::int64_t time_ns = 0;
  SliceId slice = kNone<SliceId>;  // what the thread does from here on
};

struct Thread {
  TrackId track = kNone<TrackId>;
  std::uint32_t first = 0;  // draft id of its first point
  std::vector<HostPoint> points;
  std::uint32_t at(std::int64_t time_ns) const {  // its point at that time; kNoIndex: none
    const auto found = std::lower_bound(
        points.begin(), points.end(), time_ns,
        [](const HostPoint& each, std::int64_t time) { return each.time_ns < time; });
    if (found == points.end() || found->time_ns != time_ns) return kNoIndex;
    return first + static_cast<std::uint32_t>(found - points.begin());
  }
  // The last point at or before the time; kNoIndex: none.
  std::uint32_t last_at(std::int64_t time_ns) const {
    const auto after = std::upper_bound(
        points.begin(), points.end(), time_ns,
        [](std::int64_t time, const HostPoint& each) { return time < each.time_ns; });
    return after == points.begin() ? kNoIndex
                                   : static_cast<std::uint32_t>(after - points.begin()) - 1;
  }
};

std::int64_t median(std::vector<std::int64_t> values, std::int64_t otherwise) {
  return values.empty() ? otherwise : analysis::lower_median(std::move(values));
}

class Builder {
 public:
  explicit Builder(const GraphInput& input) : in_(input), trace_(input.trace) {}

  StepGraph build() {
    graph_.trace = &trace_;
    graph_.links = &in_.links;
    graph_.main_thread = in_.main_thread;
    add_threads();
    add_works();
    number_points();
    pending_.reserve(next_id_ * std::size_t{2});
    connect_works();
    connect_calls();
    connect_threads();
    connect_boundaries();
    finish_edges();
    return std::move(graph_);
  }

 private:
  struct Pending {
    std::uint32_t target;
    Edge edge;
  };
  // What a CPU point waits for besides its thread's time before it.
  struct Shortened {
    std::int64_t own_ns;
    EdgeKind kind;
  };

  // --- points

  void add_threads() {
    thread_of_.assign(trace_.tracks().size(), kNoIndex);
    next_id_ = 1;  // 0 is the origin
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i) {
      const Track& track = trace_.track(TrackId{i});
      if (track.kind != TrackKind::kThread || track.slice_count == 0) continue;
      Thread thread{TrackId{i}, next_id_, {}};
      const std::int64_t begin = trace_.start_ns(SliceId{track.first_slice});
      std::int64_t end = begin;
      for (std::uint32_t s = track.first_slice; s < track.first_slice + track.slice_count; ++s)
        end = std::max(end, trace_.end_ns(SliceId{s}));
      thread.points.reserve(std::size_t{track.slice_count} * 2);
      in_.host.visit(TrackId{i}, begin, end, [&](SliceId slice, std::int64_t from, std::int64_t) {
        thread.points.push_back({from, slice});
      });
      if (thread.points.empty() ||
          (thread.points.size() == 1 && thread.points[0].slice == kNone<SliceId>))
        continue;
      thread.points.push_back({end, kNone<SliceId>});
      next_id_ += static_cast<std::uint32_t>(thread.points.size());
      thread_of_[i] = static_cast<std::uint32_t>(threads_.size());
      threads_.push_back(std::move(thread));
    }
    host_end_ = next_id_;
  }

  void add_works() {
    for (std::size_t d = 0; d < in_.devices.size(); ++d) {
      for (const DeviceWork& each : in_.devices[d]->work) {
        GpuWork work;
        work.slice = each.slice;
        work.launch = in_.links.launch_of[raw(each.slice)];
        work.work = each.work;
        work.before_recording = each.before_recording;
        work.on_main_device = d == in_.main_device;
        graph_.work_without_launch_count += work.launch == kNone<SliceId>;
        graph_.works.push_back(work);
      }
    }
    std::sort(graph_.works.begin(), graph_.works.end(), [&](const GpuWork& a, const GpuWork& b) {
      return std::pair(trace_.start_ns(a.slice), raw(a.slice)) <
             std::pair(trace_.start_ns(b.slice), raw(b.slice));
    });
    std::unordered_map<std::uint32_t, std::uint32_t> last;  // by track
    work_of_.assign(trace_.slices().size(), kNoIndex);
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i) {
      work_of_[raw(graph_.works[i].slice)] = i;
      const std::uint32_t track = raw(trace_.slices().track[raw(graph_.works[i].slice)]);
      if (const auto before = last.find(track); before != last.end()) {
        graph_.works[i].previous = before->second;
        graph_.works[before->second].next = i;
      }
      last[track] = i;
      graph_.works[i].start = host_end_ + 2 * i;
      graph_.works[i].end = host_end_ + 2 * i + 1;
    }
    next_id_ = host_end_ + 2 * static_cast<std::uint32_t>(graph_.works.size());
    by_end_.resize(graph_.works.size());
    for (std::uint32_t i = 0; i < by_end_.size(); ++i) by_end_[i] = i;
    std::sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(end_ns(a), a) < std::pair(end_ns(b), b);
    });
  }

  // Times and the order of points. A point at which a waiting call ends comes after work that ends
  // at the same time.
  void number_points() {
    std::vector<Draft> drafts;
    drafts.reserve(next_id_);
    // Threads, starts and ends are each in order, so they are merged instead of sorted.
    const auto merge_from = [&](std::size_t first) {
      const auto middle = drafts.begin() + static_cast<std::ptrdiff_t>(first);
      if (!std::is_sorted(middle, drafts.end())) std::sort(middle, drafts.end());
      std::inplace_merge(drafts.begin(), middle, drafts.end());
    };
    for (const Thread& thread : threads_) {
      const std::size_t first = drafts.size();
      for (std::uint32_t i = 0; i < thread.points.size(); ++i) {
        const bool after_call = i > 0 && is_call(thread.points[i - 1].slice);
        drafts.push_back({thread.points[i].time_ns, after_call ? Rank::kAfterWait : Rank::kHost,
                          thread.first + i});
      }
      merge_from(first);
    }
    std::size_t first = drafts.size();
    for (const GpuWork& work : graph_.works)
      drafts.push_back({trace_.start_ns(work.slice), Rank::kWorkStart, work.start});
    merge_from(first);
    first = drafts.size();
    for (const std::uint32_t i : by_end_) {
      const GpuWork& work = graph_.works[i];
      drafts.push_back({trace_.end_ns(work.slice),
                        trace_.dur_ns(work.slice) > 0 ? Rank::kWorkEnd : Rank::kEmptyWorkEnd,
                        work.end});
    }
    merge_from(first);
    position_.assign(next_id_, 0);
    graph_.time_ns.assign(next_id_, 0);
    graph_.time_ns[0] = drafts.empty() ? 0 : drafts.front().time_ns;
    for (std::uint32_t i = 0; i < drafts.size(); ++i) {
      position_[drafts[i].id] = i + 1;
      graph_.time_ns[i + 1] = drafts[i].time_ns;
    }
  }

  bool is_call(SliceId slice) const {
    return slice != kNone<SliceId> && is_api_call(trace_.kind(slice));
  }
  std::int64_t start_ns(std::uint32_t work) const {
    return trace_.start_ns(graph_.works[work].slice);
  }
  std::int64_t end_ns(std::uint32_t work) const { return trace_.end_ns(graph_.works[work].slice); }
  std::uint32_t host_point(SliceId slice, std::int64_t time_ns) const {
    const std::uint32_t thread = thread_of_[raw(trace_.slices().track[raw(slice)])];
    return thread == kNoIndex ? kNoIndex : threads_[thread].at(time_ns);
  }

  // --- edges. Points are draft ids here. Returns the index among pending ones; kNoIndex: `from`
  // is not before `to`, because clocks differ, so it cannot be what `to` waited for.
  std::uint32_t add(std::uint32_t from, std::uint32_t to, const Edge& edge) {
    if (from == kNoIndex || to == kNoIndex || position_[from] >= position_[to]) return kNoIndex;
    Edge copy = edge;
    copy.from = position_[from];
    pending_.push_back({position_[to], copy});
    return static_cast<std::uint32_t>(pending_.size() - 1);
  }
  std::int64_t time_of(std::uint32_t id) const { return graph_.time_ns[position_[id]]; }

  // --- GPU work

  struct Usual {
    std::map<std::uint32_t, std::int64_t> launch;      // by name of the call
    std::int64_t gap[2] = {kUsualGapNs, kUsualGapNs};  // after a kernel; into or out of a copy
    std::int64_t launch_of(std::uint32_t name) const {
      const auto found = launch.find(name);
      return found == launch.end() ? 0 : found->second;
    }
  };
  static std::size_t gap_kind(const GpuWork& a, const GpuWork& b) {
    return a.work == WorkClass::kCopy || b.work == WorkClass::kCopy ? 1 : 0;
  }
  std::uint32_t launch_name(const GpuWork& work) const {
    return raw(trace_.slices().name[raw(work.launch)]);
  }

  // Launch to start where the stream was idle; gaps where the launch was long before.
  Usual usual_delays() const {
    std::map<std::uint32_t, std::vector<std::int64_t>> launches;
    std::vector<std::int64_t> gaps[2];
    for (const GpuWork& work : graph_.works) {
      if (work.launch == kNone<SliceId>) continue;
      const std::int64_t start = trace_.start_ns(work.slice);
      const std::int64_t launch = trace_.start_ns(work.launch);
      const std::int64_t before = work.previous == kNoIndex ? kNoTime : end_ns(work.previous);
      if (launch > start) continue;
      if (before == kNoTime || before < launch)
        launches[launch_name(work)].push_back(start - launch);
      else if (before <= start && trace_.end_ns(work.launch) + 10'000 < before)
        gaps[gap_kind(graph_.works[work.previous], work)].push_back(start - before);
    }
    Usual usual;
    for (auto& [name, values] : launches) usual.launch[name] = median(std::move(values), 0);
    for (std::size_t i = 0; i < 2; ++i) usual.gap[i] = median(std::move(gaps[i]), kUsualGapNs);
    return usual;
  }

  void connect_works() {
    const Usual usual = usual_delays();
    // The work of each stream that ends last, among those that started earlier.
    std::unordered_map<std::uint32_t, std::uint32_t> longest;
    // Work of all streams that has ended, in order of end.
    std::size_t ended = 0;
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i) {
      const GpuWork& work = graph_.works[i];
      const std::uint32_t track = raw(trace_.slices().track[raw(work.slice)]);
      std::uint32_t before = work.previous;
      if (const auto found = longest.find(track); found != longest.end()) before = found->second;
      while (ended < by_end_.size() && end_ns(by_end_[ended]) <= start_ns(i)) ++ended;
      connect_start(i, before, ended, usual);
      if (const std::uint32_t edge = add(work.start, work.end,
                                         {.kind = EdgeKind::kWork,
                                          .owner = work.slice,
                                          .weight_ns = trace_.dur_ns(work.slice)});
          edge != kNoIndex)
        graph_.works[i].work_edge = edge;
      if (before == kNoIndex || end_ns(i) >= end_ns(before)) longest[track] = i;
    }
  }

  // The latest of launch, stream and another stream explains the start; the rest of it is slack.
  void connect_start(std::uint32_t index, std::uint32_t before, std::size_t ended,
                     const Usual& usual) {
    GpuWork& work = graph_.works[index];
    const std::int64_t start = trace_.start_ns(work.slice);
    std::uint32_t launch = work.launch == kNone<SliceId>
                               ? kNoIndex
                               : host_point(work.launch, trace_.start_ns(work.launch));
    if (launch != kNoIndex && position_[launch] >= position_[work.start]) launch = kNoIndex;
    // Work that overlaps others of its stream follows the start of the one before it.
    std::uint32_t from = kNoIndex;
    if (before != kNoIndex) {
      from = graph_.works[before].end;
      if (position_[from] >= position_[work.start]) from = graph_.works[work.previous].start;
    }
    const std::int64_t usual_launch = launch == kNoIndex ? 0 : usual.launch_of(launch_name(work));
    const std::int64_t usual_gap =
        before == kNoIndex ? 0 : usual.gap[gap_kind(graph_.works[before], work)];
    const std::int64_t ready_launch = launch == kNoIndex ? kNoTime : time_of(launch) + usual_launch;
    const std::int64_t ready_stream = from == kNoIndex ? kNoTime : time_of(from) + usual_gap;
    const bool by_launch = ready_launch >= ready_stream;
    std::uint32_t other = kNoIndex;
    if (launch != kNoIndex || from != kNoIndex) {
      const std::int64_t late = start - std::max(ready_launch, ready_stream);
      if (late > usual_gap + 500) other = other_stream(index, ended, late);
    }
    const auto weigh = [&](std::uint32_t source, std::int64_t often, bool binds, EdgeKind kind) {
      const std::int64_t whole = start - time_of(source);
      return Edge{.kind = kind,
                  .owner = work.slice,
                  .weight_ns = binds ? whole : std::min(whole, often),
                  .unexplained_ns = binds ? std::max<std::int64_t>(0, whole - often) : 0};
    };
    const bool by_other = other != kNoIndex;
    if (launch != kNoIndex)
      work.launch_edge =
          add(launch, work.start,
              weigh(launch, usual_launch, by_launch && !by_other, EdgeKind::kLaunch));
    if (from != kNoIndex)
      work.stream_edge =
          add(from, work.start, weigh(from, usual_gap, !by_launch && !by_other, EdgeKind::kStream));
    if (by_other) add(other, work.start, weigh(other, usual_gap, true, EdgeKind::kStreamWait));
    if (launch == kNoIndex && from == kNoIndex) fix(work.start, work.slice);
    // Room for a dependency that a change may need.
    if (work.previous != kNoIndex &&
        trace_.kind(graph_.works[work.previous].slice) == CategoryKind::kGpuMemcpy)
      work.spare_edge =
          add(0, work.start, {.kind = EdgeKind::kStreamWait, .dropped = true, .owner = work.slice});
  }

  // The end of the work that this one waited for on another stream of its device, if that ended
  // while this one was late.
  std::uint32_t other_stream(std::uint32_t index, std::size_t ended, std::int64_t late) const {
    const GpuWork& work = graph_.works[index];
    const std::int64_t start = trace_.start_ns(work.slice);
    for (std::size_t back = 0; back < 16 && back < ended; ++back) {
      const std::uint32_t each = by_end_[ended - 1 - back];
      if (start - end_ns(each) > std::min(late, kStreamWaitNs)) break;
      if (trace_.slices().track[raw(graph_.works[each].slice)] !=
              trace_.slices().track[raw(work.slice)] &&
          graph_.works[each].on_main_device == work.on_main_device &&
          position_[graph_.works[each].end] < position_[work.start])
        return graph_.works[each].end;
    }
    return kNoIndex;
  }

  void fix(std::uint32_t id, SliceId owner) {
    const std::int64_t weight = time_of(id) - graph_.time_ns[0];
    Edge edge{.kind = EdgeKind::kFixed, .owner = owner, .weight_ns = weight};
    pending_.push_back({position_[id], edge});
  }

  // --- calls

  void connect_calls() {
    std::map<std::uint32_t, std::vector<std::int64_t>> lengths;  // of launch calls, by name
    for (const GpuWork& work : graph_.works)
      if (work.launch != kNone<SliceId>)
        lengths[launch_name(work)].push_back(trace_.dur_ns(work.launch));
    for (auto& [name, values] : lengths) usual_call_[name] = median(std::move(values), 0);
    for (const Thread& thread : threads_) {
      const Track& track = trace_.track(thread.track);
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
        if (is_call(SliceId{i}) && analysis::is_blocking_call(trace_, in_.links, SliceId{i}))
          connect_wait(SliceId{i});
    }
    connect_queues();
  }

  void connect_wait(SliceId call) {
    const std::uint32_t to = host_point(call, trace_.end_ns(call));
    bool inferred = false;
    const std::uint32_t work = waited_for(call, inferred);
    if (to == kNoIndex || work == kNoIndex) return;
    const std::int64_t tail = trace_.end_ns(call) - end_ns(work);
    const std::uint32_t edge = add(graph_.works[work].end, to,
                                   {.kind = EdgeKind::kHostWait, .owner = call, .weight_ns = tail});
    if (edge == kNoIndex) return;
    shortened_[to] = {std::min(tail, trace_.dur_ns(call)), EdgeKind::kHost};
    graph_.waits.push_back({call, work, edge, to, inferred});
  }

  // The stream that a record of the wait (category cuda_sync) lies on.
  std::optional<TrackId> stream_of_wait(SliceId call) const {
    for (const SliceId each : in_.links.launched_by(call))
      if (trace_.kind(each) == CategoryKind::kCudaSync &&
          trace_.track(each).kind == TrackKind::kStream &&
          trace_.track(each).stream.value_or(-1) >= 0)
        return trace_.slices().track[raw(each)];
    return std::nullopt;
  }

  // The work that ended last while the call was open. For copies their own; of others those that
  // were launched before the call.
  std::uint32_t waited_for(SliceId call, bool& inferred) const {
    const std::int64_t from = trace_.start_ns(call), to = trace_.end_ns(call);
    if (trace_.api_call(call).does(api_effect::kCopies)) {
      std::uint32_t last = kNoIndex;
      for (const SliceId each : in_.links.launched_by(call)) {
        const std::uint32_t found = work_of_[raw(each)];
        if (found != kNoIndex && trace_.end_ns(each) <= to && trace_.end_ns(each) > from)
          last = found;
      }
      return last;
    }
    const std::optional<TrackId> stream = stream_of_wait(call);
    inferred = !stream && !trace_.api_call(call).does(api_effect::kWaitsForDevice);
    auto after = std::upper_bound(
        by_end_.begin(), by_end_.end(), to,
        [&](std::int64_t time, std::uint32_t each) { return time < end_ns(each); });
    for (int tries = 0; after != by_end_.begin() && tries < 64; ++tries) {
      const std::uint32_t each = *--after;
      if (end_ns(each) <= from) break;
      const GpuWork& work = graph_.works[each];
      if (stream && trace_.slices().track[raw(work.slice)] != *stream) continue;
      if (work.launch != kNone<SliceId> && trace_.start_ns(work.launch) >= from) continue;
      return each;
    }
    return kNoIndex;
  }

  // A launch call returns only when fewer than a certain number of launches are in the queue.
  void connect_queues() {
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> streams;  // works by track
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i)
      if (graph_.works[i].launch != kNone<SliceId> &&
          in_.links.launched_by(graph_.works[i].launch).size() == 1)
        streams[raw(trace_.slices().track[raw(graph_.works[i].slice)])].push_back(i);
    for (const auto& [track, works] : streams) {
      std::size_t deepest = 0, started = 0;
      for (std::size_t i = 0; i < works.size(); ++i) {
        const std::int64_t called = trace_.end_ns(graph_.works[works[i]].launch);
        while (started < works.size() && start_ns(works[started]) <= called) ++started;
        if (i + 1 > started) deepest = std::max(deepest, i + 1 - started);
      }
      const std::size_t room = deepest >= kUsualQueue * 7 / 8 ? deepest : kUsualQueue;
      for (std::size_t i = room; i < works.size(); ++i) connect_queue(works[i - room], works[i]);
    }
  }

  void connect_queue(std::uint32_t first, std::uint32_t last) {
    const SliceId call = graph_.works[last].launch;
    const std::uint32_t to = host_point(call, trace_.end_ns(call));
    const std::int64_t left = trace_.end_ns(call) - start_ns(first);
    const bool waited =
        trace_.dur_ns(call) > kLongLaunchNs && start_ns(first) > trace_.start_ns(call);
    const std::uint32_t edge =
        add(graph_.works[first].start, to,
            {.kind = EdgeKind::kQueue, .owner = call, .weight_ns = waited ? left : 0});
    if (edge != kNoIndex && waited)
      shortened_[to] = {std::min(trace_.dur_ns(call), usual_call_[launch_name(graph_.works[last])]),
                        EdgeKind::kHost};
  }

  // --- threads

  bool is_loader(SliceId slice) const {
    if (slice == kNone<SliceId>) return false;
    const std::string_view name = trace_.name(slice);
    return name.find("DataLoader") != std::string_view::npos &&
           name.find("next") != std::string_view::npos;
  }
  const Thread* main_thread() const {
    if (in_.main_thread == kNone<TrackId>) return nullptr;
    const std::uint32_t index = thread_of_[raw(in_.main_thread)];
    return index == kNoIndex ? nullptr : &threads_[index];
  }

  void connect_threads() {
    const Thread* main = main_thread();
    for (const Thread& thread : threads_)
      if (&thread != main) connect_worker(thread, main);
    if (main) connect_main(*main);
  }

  // One segment of a thread's own time.
  std::uint32_t connect_segment(const Thread& thread, std::uint32_t i, EdgeKind kind,
                                std::int64_t own_ns) {
    const std::uint32_t to = thread.first + i + 1;
    if (const auto found = shortened_.find(to); found != shortened_.end()) {
      // The call's own time, less what of it lies before this segment.
      own_ns = std::min(own_ns, found->second.own_ns);
    }
    const std::uint32_t edge = add(
        thread.first + i, to, {.kind = kind, .owner = thread.points[i].slice, .weight_ns = own_ns});
    if (const auto found = shortened_.find(to); found != shortened_.end()) own_edge_[to] = edge;
    return edge;
  }

  void connect_worker(const Thread& thread, const Thread* main) {
    if (!hand_over(thread, 0, main, kNoTime)) fix(thread.first, thread.points[0].slice);
    for (std::uint32_t i = 0; i + 1 < thread.points.size(); ++i) {
      const std::int64_t length = thread.points[i + 1].time_ns - thread.points[i].time_ns;
      const bool handed = thread.points[i].slice == kNone<SliceId> &&
                          hand_over(thread, i + 1, main, thread.points[i].time_ns);
      connect_segment(thread, i, handed ? EdgeKind::kOtherHost : EdgeKind::kHost,
                      handed ? 0 : length);
    }
  }

  // Into point `i`, which begins work after a time without events: if the main thread did something
  // since `idle_from`, it is what woke this one.
  bool hand_over(const Thread& thread, std::uint32_t i, const Thread* main,
                 std::int64_t idle_from) {
    if (!main || i + 1 >= thread.points.size() ||
        trace_.track(thread.track).process != trace_.track(main->track).process)
      return false;
    const std::int64_t time = thread.points[i].time_ns;
    const std::uint32_t last = main->last_at(time);
    if (last == kNoIndex || main->points[last].time_ns <= idle_from) return false;
    return add(main->first + last, thread.first + i,
               {.kind = EdgeKind::kHandOver,
                .owner = main->points[last].slice,
                .weight_ns = time - main->points[last].time_ns}) != kNoIndex;
  }

  void connect_main(const Thread& main) {
    fix(main.first, main.points[0].slice);
    const std::vector<analysis::Window> loading = loader_ranges(main.track);
    std::size_t next_range = 0;
    for (std::uint32_t i = 0; i + 1 < main.points.size(); ++i) {
      const std::int64_t time_ns = main.points[i].time_ns;
      while (next_range < loading.size() && loading[next_range].end_ns <= time_ns) ++next_range;
      const bool in_loader = next_range < loading.size() && loading[next_range].start_ns <= time_ns;
      const SliceId slice = main.points[i].slice;
      const std::int64_t length = main.points[i + 1].time_ns - main.points[i].time_ns;
      const bool is_own =
          slice != kNone<SliceId> && (is_call(slice) || trace_.kind(slice) == CategoryKind::kCpuOp);
      const bool handed = !is_own && length > 20'000 && hand_back(main, i);
      const EdgeKind kind = handed             ? EdgeKind::kOtherHost
                            : is_loader(slice) ? EdgeKind::kData
                                               : EdgeKind::kHost;
      const std::uint32_t edge = connect_segment(main, i, kind, handed ? 0 : length);
      // Operators that make a batch in this process: what makes the loader faster makes them faster.
      if (edge != kNoIndex && kind == EdgeKind::kHost && in_loader &&
          !(slice != kNone<SliceId> && is_call(slice)))
        pending_[edge].edge.in_loader = true;
    }
  }

  // When the thread asked its DataLoader for batches: in order, disjoint.
  std::vector<analysis::Window> loader_ranges(TrackId thread) const {
    std::vector<analysis::Window> ranges;
    const Track& track = trace_.track(thread);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      if (!is_loader(SliceId{i})) continue;
      const std::int64_t start_ns = trace_.start_ns(SliceId{i}), end_ns = trace_.end_ns(SliceId{i});
      if (ranges.empty() || start_ns >= ranges.back().end_ns)
        ranges.push_back({start_ns, end_ns});
      else
        ranges.back().end_ns = std::max(ranges.back().end_ns, end_ns);
    }
    return ranges;
  }

  // The main thread has no event in segment `i`, and another thread works in most of that time: the
  // main thread waited until that one was done.
  bool hand_back(const Thread& main, std::uint32_t i) {
    const std::int64_t from = main.points[i].time_ns, to = main.points[i + 1].time_ns;
    const Thread* last_thread = nullptr;
    std::uint32_t last = 0;
    for (const Thread& thread : threads_) {
      if (&thread == &main ||
          trace_.track(thread.track).process != trace_.track(main.track).process)
        continue;
      const std::uint32_t end = thread.last_at(to);
      if (end == kNoIndex || thread.points[end].time_ns <= from ||
          thread.points[end].slice != kNone<SliceId>)
        continue;
      const std::uint32_t before = thread.last_at(from);
      if (before != kNoIndex && thread.points[before].slice != kNone<SliceId>) continue;
      const std::int64_t begin = thread.points[before == kNoIndex ? 0 : before + 1].time_ns;
      if ((thread.points[end].time_ns - begin) * 2 < to - from) continue;
      if (last_thread && last_thread->points[last].time_ns >= thread.points[end].time_ns) continue;
      last_thread = &thread;
      last = end;
    }
    return last_thread && add(last_thread->first + last, main.first + i + 1,
                              {.kind = EdgeKind::kHandOver,
                               .owner = main.points[i].slice,
                               .weight_ns = to - last_thread->points[last].time_ns}) != kNoIndex;
  }

  // --- steps

  void connect_boundaries() {
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i)
      if (graph_.works[i].on_main_device &&
          (graph_.works[i].launch != kNone<SliceId> || graph_.works[i].before_recording))
        graph_.by_launch.push_back(i);
    std::stable_sort(graph_.by_launch.begin(), graph_.by_launch.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return called_ns(a) < called_ns(b); });
    for (std::size_t i = 0; i < in_.steps.steps.size(); ++i) {
      const analysis::StepRange& step = in_.steps.steps[i];
      StepBoundaries each{boundary_at(step.cpu_start_ns), boundary_at(step.cpu_end_ns), false};
      each.steady = std::find(in_.steady.begin(), in_.steady.end(), i) != in_.steady.end();
      if (!in_.steps.marked) {  // the whole recording ends with its last work
        each.end.launched_count = static_cast<std::uint32_t>(graph_.by_launch.size());
        each.end.cpu_point = kNoIndex;
      }
      graph_.steps.push_back(each);
    }
  }

  // When the work was launched.
  std::int64_t called_ns(std::uint32_t work) const {
    const SliceId launch = graph_.works[work].launch;
    return launch == kNone<SliceId> ? kNoTime : trace_.start_ns(launch);
  }

  Boundary boundary_at(std::int64_t time_ns) const {
    Boundary boundary;
    const auto after = std::lower_bound(
        graph_.by_launch.begin(), graph_.by_launch.end(), time_ns,
        [&](std::uint32_t each, std::int64_t time) { return called_ns(each) < time; });
    boundary.launched_count = static_cast<std::uint32_t>(after - graph_.by_launch.begin());
    const Thread* main = main_thread();
    const std::uint32_t last = main ? main->last_at(time_ns) : kNoIndex;
    if (last == kNoIndex) {  // before its first event: at the time of the recording
      boundary.cpu_point = 0;
      boundary.after_ns = time_ns - graph_.time_ns[0];
      return boundary;
    }
    boundary.cpu_point = position_[main->first + last];
    boundary.after_ns = time_ns - main->points[last].time_ns;
    return boundary;
  }

  // --- the end: edges in order of their points

  void finish_edges() {
    std::vector<std::uint32_t>& first = graph_.first_edge;
    first.assign(graph_.time_ns.size() + 1, 0);
    for (const Pending& each : pending_) ++first[each.target + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    graph_.edges.resize(pending_.size());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1), placed(pending_.size());
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      placed[i] = next[pending_[i].target]++;
      graph_.edges[placed[i]] = pending_[i].edge;
    }
    const auto renumber = [&](std::uint32_t& edge) {
      if (edge != kNoIndex) edge = placed[edge];
    };
    for (GpuWork& work : graph_.works) {
      renumber(work.launch_edge);
      renumber(work.stream_edge);
      renumber(work.work_edge);
      renumber(work.spare_edge);
      work.start = position_[work.start];
      work.end = position_[work.end];
    }
    for (const Thread& thread : threads_) {
      ThreadMoments moments{thread.track, {}};
      moments.points.reserve(thread.points.size());
      for (std::uint32_t i = 0; i < thread.points.size(); ++i)
        moments.points.push_back(position_[thread.first + i]);
      graph_.threads.push_back(std::move(moments));
    }
    for (HostWait& wait : graph_.waits) {
      renumber(wait.wait_edge);
      const auto own = own_edge_.find(wait.own_edge);
      wait.own_edge = own == own_edge_.end() ? kNoIndex : own->second;
      renumber(wait.own_edge);
    }
  }

  const GraphInput& in_;
  const Trace& trace_;
  StepGraph graph_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> thread_of_;  // by track
  std::vector<std::uint32_t> position_;   // of a draft id in the order of points
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> work_of_;                      // by slice
  std::vector<std::uint32_t> by_end_;                       // works
  std::unordered_map<std::uint32_t, Shortened> shortened_;  // by draft id of a call's end
  std::unordered_map<std::uint32_t, std::uint32_t> own_edge_;
  std::map<std::uint32_t, std::int64_t> usual_call_;
  std::uint32_t next_id_ = 0, host_end_ = 0;
};

}  // namespace

std::uint32_t StepGraph::target_of(std::uint32_t edge) const {
  const auto after = std::upper_bound(first_edge.begin(), first_edge.end(), edge);
  return static_cast<std::uint32_t>(after - first_edge.begin()) - 1;
}

StepGraph build_graph(const GraphInput& input) { return Builder(input).build(); }

}  // namespace lanescope::simulate
