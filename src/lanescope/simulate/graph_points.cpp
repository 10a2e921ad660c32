#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/simulate/graph_draft.h"

namespace lanescope::simulate {
namespace {

// The order of points at equal times: work follows work that ended, and a call returns after that.
enum class Rank : std::uint8_t { kHost, kWorkEnd, kWorkStart, kEmptyWorkEnd, kAfterWait };

struct DraftPoint {
  std::int64_t time_ns;
  Rank rank;
  std::uint32_t id;
  bool operator<(const DraftPoint& other) const {
    return std::tie(time_ns, rank, id) < std::tie(other.time_ns, other.rank, other.id);
  }
};

void add_threads(GraphDraft& draft) {
  draft.thread_of.assign(draft.trace.tracks().size(), kNoIndex);
  draft.next_id = 1;  // 0 is the origin
  for (std::uint32_t i = 0; i < draft.trace.tracks().size(); ++i) {
    const Track& track = draft.trace.track(TrackId{i});
    if (track.kind != TrackKind::kThread || track.slice_count == 0) continue;
    DraftThread thread{TrackId{i}, draft.next_id, {}};
    const std::int64_t begin = draft.trace.start_ns(SliceId{track.first_slice});
    std::int64_t end = begin;
    for (std::uint32_t s = track.first_slice; s < track.first_slice + track.slice_count; ++s)
      end = std::max(end, draft.trace.end_ns(SliceId{s}));
    thread.points.reserve(std::size_t{track.slice_count} * 2);
    draft.in.host.visit(TrackId{i}, begin, end,
                        [&](SliceId slice, std::int64_t from, std::int64_t) {
                          thread.points.push_back({from, slice});
                        });
    if (thread.points.empty() ||
        (thread.points.size() == 1 && thread.points[0].slice == kNone<SliceId>))
      continue;
    thread.points.push_back({end, kNone<SliceId>});
    draft.next_id += static_cast<std::uint32_t>(thread.points.size());
    draft.thread_of[i] = static_cast<std::uint32_t>(draft.threads.size());
    draft.threads.push_back(std::move(thread));
  }
  draft.host_end = draft.next_id;
}

void add_works(GraphDraft& draft) {
  std::size_t count = 0;
  for (const analysis::DeviceTimeline* device : draft.in.devices) count += device->work.size();
  draft.graph.works.reserve(count);
  for (std::size_t d = 0; d < draft.in.devices.size(); ++d) {
    for (const analysis::DeviceWork& each : draft.in.devices[d]->work) {
      GpuWork work;
      work.slice = each.slice;
      work.launch = draft.in.links.launch_of[raw(each.slice)];
      work.work = each.work;
      work.before_recording = each.before_recording;
      work.on_main_device = d == draft.in.main_device;
      draft.graph.work_without_launch_count += work.launch == kNone<SliceId>;
      draft.graph.works.push_back(work);
    }
  }
  std::sort(draft.graph.works.begin(), draft.graph.works.end(),
            [&](const GpuWork& a, const GpuWork& b) {
              return std::pair(draft.trace.start_ns(a.slice), raw(a.slice)) <
                     std::pair(draft.trace.start_ns(b.slice), raw(b.slice));
            });
  std::unordered_map<std::uint32_t, std::uint32_t> last;  // by track
  draft.work_of.assign(draft.trace.slices().size(), kNoIndex);
  for (std::uint32_t i = 0; i < draft.graph.works.size(); ++i) {
    draft.work_of[raw(draft.graph.works[i].slice)] = i;
    const std::uint32_t track = raw(draft.trace.slices().track[raw(draft.graph.works[i].slice)]);
    if (const auto before = last.find(track); before != last.end()) {
      draft.graph.works[i].previous = before->second;
      draft.graph.works[before->second].next = i;
    }
    last[track] = i;
    draft.graph.works[i].start = draft.host_end + 2 * i;
    draft.graph.works[i].end = draft.host_end + 2 * i + 1;
  }
  draft.next_id = draft.host_end + 2 * static_cast<std::uint32_t>(draft.graph.works.size());
  draft.by_end.resize(draft.graph.works.size());
  for (std::uint32_t i = 0; i < draft.by_end.size(); ++i) draft.by_end[i] = i;
  std::sort(draft.by_end.begin(), draft.by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(draft.end_ns(a), a) < std::pair(draft.end_ns(b), b);
  });
}

// Points of one thread, starts of all work, or ends of all work: in order.
class PointList {
 public:
  PointList(const GraphDraft& draft, const DraftThread& thread)
      : PointList(draft, &thread, false, thread.points.size()) {}
  PointList(const GraphDraft& draft, bool are_ends)
      : PointList(draft, nullptr, are_ends, draft.graph.works.size()) {}

  bool is_done() const { return next_ == size_; }
  const DraftPoint& now() const { return now_; }
  void move_on() {
    if (++next_ < size_) now_ = sorted_.empty() ? at(next_) : sorted_[next_];
  }

 private:
  PointList(const GraphDraft& draft, const DraftThread* thread, bool are_ends, std::size_t size)
      : draft_(&draft),
        thread_(thread),
        are_ends_(are_ends),
        size_(static_cast<std::uint32_t>(size)) {
    if (!is_sorted()) sort();
    if (size_ > 0) now_ = sorted_.empty() ? at(0) : sorted_[0];
  }

  const GpuWork& work(std::uint32_t place) const {
    return draft_->graph.works[are_ends_ ? draft_->by_end[place] : place];
  }
  std::int64_t time_ns(std::uint32_t place) const {
    if (thread_) return thread_->points[place].time_ns;
    const SliceId slice = work(place).slice;
    return are_ends_ ? draft_->trace.end_ns(slice) : draft_->trace.start_ns(slice);
  }
  DraftPoint at(std::uint32_t place) const {
    if (thread_) {
      const bool after_call = place > 0 && draft_->is_call(thread_->points[place - 1].slice);
      return {time_ns(place), after_call ? Rank::kAfterWait : Rank::kHost, thread_->first + place};
    }
    const GpuWork& each = work(place);
    if (!are_ends_) return {time_ns(place), Rank::kWorkStart, each.start};
    return {time_ns(place),
            draft_->trace.dur_ns(each.slice) > 0 ? Rank::kWorkEnd : Rank::kEmptyWorkEnd, each.end};
  }
  bool is_sorted() const {
    std::int64_t before_ns = kNoTime;
    for (std::uint32_t i = 0; i < size_; ++i) {
      const std::int64_t now_ns = time_ns(i);
      if (now_ns < before_ns || (now_ns == before_ns && i > 0 && at(i) < at(i - 1))) return false;
      before_ns = now_ns;
    }
    return true;
  }
  void sort() {
    sorted_.reserve(size_);
    for (std::uint32_t i = 0; i < size_; ++i) sorted_.push_back(at(i));
    std::sort(sorted_.begin(), sorted_.end());
  }

  const GraphDraft* draft_;
  const DraftThread* thread_;  // nullptr: of work
  bool are_ends_;
  std::uint32_t size_, next_ = 0;
  std::vector<DraftPoint> sorted_;  // where the list was not in order
  DraftPoint now_{};
};

// Times and the order of points. A point at which a waiting call ends comes after work that ends
// at the same time.
void number_points(GraphDraft& draft) {
  std::vector<PointList> lists;
  lists.reserve(draft.threads.size() + 2);
  for (const DraftThread& thread : draft.threads) lists.emplace_back(draft, thread);
  for (const bool are_ends : {false, true}) lists.emplace_back(draft, are_ends);
  std::erase_if(lists, [](const PointList& list) { return list.is_done(); });
  const auto is_later = [](const PointList* a, const PointList* b) { return b->now() < a->now(); };
  std::vector<PointList*> heads;  // a heap: the list with the first point is at the front
  for (PointList& list : lists) heads.push_back(&list);
  std::make_heap(heads.begin(), heads.end(), is_later);
  draft.position.assign(draft.next_id, 0);
  draft.graph.time_ns.assign(draft.next_id, 0);
  if (!heads.empty()) draft.graph.time_ns[0] = heads.front()->now().time_ns;
  for (std::uint32_t place = 1; !heads.empty();) {
    std::pop_heap(heads.begin(), heads.end(), is_later);
    PointList& list = *heads.back();
    // Several points of one list often follow each other.
    const PointList* const next = heads.size() > 1 ? heads.front() : nullptr;
    do {
      draft.position[list.now().id] = place;
      draft.graph.time_ns[place++] = list.now().time_ns;
      list.move_on();
    } while (!list.is_done() && (!next || list.now() < next->now()));
    if (list.is_done())
      heads.pop_back();
    else
      std::push_heap(heads.begin(), heads.end(), is_later);
  }
}

}  // namespace

void add_points(GraphDraft& draft) {
  add_threads(draft);
  add_works(draft);
  number_points(draft);
}

}  // namespace lanescope::simulate
