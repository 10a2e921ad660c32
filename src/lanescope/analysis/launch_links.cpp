// Problem: files say who launched what in three ways that disagree (flow arrows, External id,
// correlation). Idea: the correlation id joins device work to its API call, by one sort and binary
// search. The API call is on a CPU thread, so the operator open there at its start made it: one
// sweep per thread with a stack. Example: aten::mm [10, 90) on thread 1, cuLaunchKernelEx [40, 50)
// correlation 7, kernel correlation 7 at 95
//   -> launch_of(kernel) = cuLaunchKernelEx, op_of(both) = aten::mm.
#include "lanescope/analysis/launch_links.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <tuple>
#include <utility>

#include "lanescope/analysis/call_owners.h"
#include "lanescope/analysis/launch_owners.h"
#include "lanescope/base/share_work.h"
#include "lanescope/model/joins.h"

namespace lanescope::analysis {
namespace {

// An API call with its correlation id, or a front-end slice with its External id.
using Keyed = CorrelatedCall;

void sort_if_needed(std::vector<Keyed>& entries) {
  if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
}

// The last entry with that id to start at or before `time_ns`, else the first one. `place`:
// find_by_id_and_time().
SliceId nearest_before(const std::vector<Keyed>& entries, std::int64_t id, std::int64_t time_ns,
                       std::size_t& place) {
  const Keyed* const found =
      find_by_id_and_time(std::span<const Keyed>(entries), id, time_ns, place);
  return found ? found->slice : kNone<SliceId>;
}

// Slices that one thread reads at once.
constexpr std::uint32_t kSlicesAtOnce = 1u << 16;

// What joins need of the slices, in order of the slices.
struct Collected {
  std::vector<Keyed> api_calls, front_ends;
  std::vector<Keyed> uncorrelated_calls;  // API calls without a correlation id, by External id
  std::vector<SliceId> device;
  std::uint64_t device_work_count = 0;
};

template <typename Row>
void append(std::vector<Row>& rows, const std::vector<Row>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

// A forward operator with its process and Sequence number.
struct Recorded {
  ProcessId process;
  std::int64_t sequence;
  TrackId track;
  std::int64_t start_ns;
  SliceId slice;
  auto operator<=>(const Recorded&) const = default;
};

// One backward operator's vote: this thread number of its process is that track.
struct Vote {
  ProcessId process;
  std::int64_t thread;
  TrackId track;
  auto operator<=>(const Vote&) const = default;
};

bool contains(const Trace& trace, SliceId outer, SliceId inner) {
  return trace.slices().track[raw(outer)] == trace.slices().track[raw(inner)] &&
         trace.start_ns(outer) <= trace.start_ns(inner) &&
         trace.start_ns(inner) <= trace.end_ns(outer);
}

class Linker {
 public:
  Linker(const Trace& trace, unsigned threads)
      : trace_(trace),
        count_(static_cast<std::uint32_t>(trace.slices().size())),
        threads_(threads) {
    links_.launch_of.assign(count_, kNone<SliceId>);
    links_.op_of.assign(count_, kNone<SliceId>);
  }

  LaunchLinks owners() {
    collect(false);
    link_launches();
    link_api_calls();
    share_work(pieces(device_.size()), threads_, [&](std::size_t piece) {
      for (const SliceId id : device_of(piece))
        if (const SliceId launch = links_.launch_of[raw(id)]; launch != kNone<SliceId>)
          links_.op_of[raw(id)] = links_.op_of[raw(launch)];
    });
    const bool all_are_owned = std::all_of(device_.begin(), device_.end(), [&](SliceId id) {
      return links_.op_of[raw(id)] != kNone<SliceId>;
    });
    if (all_are_owned) return std::move(links_);
    collect_front_ends();
    judge_external_ids();
    link_device_work();
    return std::move(links_);
  }

  LaunchLinks all() {
    links_.forward_of.assign(count_, kNone<SliceId>);
    collect(true);
    link_launches();
    link_api_calls();
    judge_external_ids();
    link_device_work();
    link_backward();
    group_by_launch();
    return std::move(links_);
  }

 private:
  static std::size_t pieces(std::size_t rows) { return (rows + kSlicesAtOnce - 1) / kSlicesAtOnce; }
  std::span<const SliceId> device_of(std::size_t piece) const {
    const std::size_t first = piece * kSlicesAtOnce;
    return std::span(device_).subspan(first,
                                      std::min<std::size_t>(kSlicesAtOnce, device_.size() - first));
  }

  void collect(bool with_front_ends) {
    std::vector<Collected> parts(pieces(count_));
    share_work(parts.size(), threads_, [&](std::size_t piece) {
      const auto first = static_cast<std::uint32_t>(piece * kSlicesAtOnce);
      for (std::uint32_t i = first; i < std::min(count_, first + kSlicesAtOnce); ++i)
        collect(SliceId{i}, with_front_ends, parts[piece]);
    });
    std::size_t calls = 0, works = 0;
    for (const Collected& part : parts) {
      calls += part.api_calls.size();
      works += part.device.size();
    }
    api_calls_.reserve(calls);
    device_.reserve(works);
    for (const Collected& part : parts) {
      append(api_calls_, part.api_calls);
      append(front_ends_, part.front_ends);
      append(uncorrelated_calls_, part.uncorrelated_calls);
      append(device_, part.device);
      links_.device_work_count += part.device_work_count;
    }
    sort_if_needed(api_calls_);
    sort_if_needed(front_ends_);
    sort_if_needed(uncorrelated_calls_);
  }

  void collect(SliceId id, bool with_front_ends, Collected& part) const {
    const CategoryKind kind = trace_.kind(id);
    if (is_api_call(kind)) {
      const ArgsView args = trace_.slice_args(id);
      const auto correlation = args.integer(ArgKey::kCorrelation);
      const auto external = args.integer(ArgKey::kExternalId);
      if (correlation && *correlation != 0)
        part.api_calls.push_back({*correlation, trace_.start_ns(id), id});
      else if (external && *external != 0)
        part.uncorrelated_calls.push_back({*external, trace_.start_ns(id), id});
    } else if (is_front_end(kind)) {
      if (!with_front_ends) return;
      const auto external = trace_.slice_args(id).integer(ArgKey::kExternalId);
      if (external && *external != 0)
        part.front_ends.push_back({*external, trace_.start_ns(id), id});
    } else if (is_device_work(kind) || kind == CategoryKind::kCudaSync) {
      part.device.push_back(id);
      if (is_device_work(kind)) ++part.device_work_count;
    }
  }

  void collect_front_ends() {
    Collected part;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (is_front_end(trace_.kind(SliceId{i}))) collect(SliceId{i}, true, part);
    front_ends_ = std::move(part.front_ends);
    sort_if_needed(front_ends_);
  }

  // Files without correlation ids: the only call with the External id of the work.
  SliceId call_by_external_id(SliceId work) const {
    const auto external = trace_.slice_args(work).integer(ArgKey::kExternalId);
    if (!external || *external == 0) return kNone<SliceId>;
    const auto first =
        std::lower_bound(uncorrelated_calls_.begin(), uncorrelated_calls_.end(), *external,
                         [](const Keyed& call, std::int64_t id) { return call.id < id; });
    if (first == uncorrelated_calls_.end() || first->id != *external) return kNone<SliceId>;
    const auto next = std::next(first);
    const bool is_only = next == uncorrelated_calls_.end() || next->id != *external;
    return is_only && first->start_ns <= trace_.start_ns(work) ? first->slice : kNone<SliceId>;
  }

  void link_launches() {
    share_work(pieces(device_.size()), threads_, [&](std::size_t piece) {
      std::size_t place = 0;
      for (const SliceId id : device_of(piece)) {
        const auto correlation = trace_.slice_args(id).integer(ArgKey::kCorrelation);
        if (correlation && *correlation != 0)
          links_.launch_of[raw(id)] =
              nearest_before(api_calls_, *correlation, trace_.start_ns(id), place);
        else if (!uncorrelated_calls_.empty())
          links_.launch_of[raw(id)] = call_by_external_id(id);
      }
    });
    if (ids_repeat_across_processes(trace_, api_calls_))
      join_by_process(trace_, api_calls_, device_, links_.launch_of);
    for (const SliceId id : device_)
      if (links_.launch_of[raw(id)] != kNone<SliceId> && is_device_work(trace_.kind(id)))
        ++links_.launched_count;
  }

  void link_api_calls() {
    const std::span<const Track> tracks = trace_.tracks();
    const bool is_small = count_ < kSlicesAtOnce;
    share_work(tracks.size(), is_small ? 1 : threads_, [&](std::size_t i) {
      if (tracks[i].kind == TrackKind::kThread) link_api_calls(tracks[i]);
    });
  }

  // The last front-end slice to start that contains the start of the call.
  void link_api_calls(const Track& track) {
    const auto end_of = [this](SliceId id) { return trace_.end_ns(id); };
    OpenRangeStack<SliceId, decltype(end_of)> open(end_of);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      const CategoryKind kind = trace_.kind(id);
      if (is_front_end(kind)) {
        open.push(id, trace_.start_ns(id));
      } else if (is_api_call(kind)) {
        if (const SliceId* const op = open.top(trace_.start_ns(id))) links_.op_of[i] = *op;
      }
    }
  }

  SliceId by_external_id(SliceId id, std::size_t& place) const {
    const auto external = trace_.slice_args(id).integer(ArgKey::kExternalId);
    if (!external || *external == 0) return kNone<SliceId>;
    return nearest_before(front_ends_, *external, trace_.start_ns(id), place);
  }

  void judge_external_ids() {
    std::uint64_t copies = 0, present = 0;
    std::size_t place = 0;
    for (const SliceId id : device_) {
      const ArgsView args = trace_.slice_args(id);
      const auto external = args.integer(ArgKey::kExternalId);
      if (!external || *external == 0) continue;
      ++present;
      if (external == args.integer(ArgKey::kCorrelation)) ++copies;
      const SliceId launch = links_.launch_of[raw(id)];
      if (launch == kNone<SliceId> || links_.op_of[raw(launch)] == kNone<SliceId>) continue;
      ++links_.external_id_checked_count;
      const SliceId op = by_external_id(id, place);
      if (op != kNone<SliceId> && contains(trace_, op, launch)) ++links_.external_id_right_count;
    }
    if (links_.external_id_checked_count > 0)
      links_.external_id_trusted =
          links_.external_id_right_count * 100 > links_.external_id_checked_count * 99;
    else
      links_.external_id_trusted = present > 0 && copies < present;
  }

  void link_device_work() {
    std::size_t place = 0;
    for (const SliceId id : device_) {
      const SliceId launch = links_.launch_of[raw(id)];
      SliceId& op = links_.op_of[raw(id)];
      if (launch != kNone<SliceId>) op = links_.op_of[raw(launch)];
      if (op != kNone<SliceId> || !links_.external_id_trusted) continue;
      op = by_external_id(id, place);
      if (op != kNone<SliceId> && is_device_work(trace_.kind(id))) ++links_.external_id_used_count;
    }
  }

  // Fwd thread id is torch's small number of a thread, not the tid in the file; 0 means "not a
  // backward operator". Votes match the numbers of each process to tracks: each backward operator
  // whose Sequence number is on exactly one track of its process votes for that track.
  void link_backward() {
    std::vector<Recorded> forward;
    std::vector<SliceId> backward;
    for (std::uint32_t i = 0; i < count_; ++i) collect_sequence(SliceId{i}, forward, backward);
    if (backward.empty()) return;
    std::sort(forward.begin(), forward.end());
    std::vector<Vote> votes;
    for (const SliceId id : backward) {
      const ArgsView args = trace_.slice_args(id);
      const ProcessId process = trace_.track(id).process;
      const auto [first, last] = std::equal_range(
          forward.begin(), forward.end(),
          Recorded{process, *args.integer(ArgKey::kSequenceNumber), {}, 0, {}},
          [](const Recorded& a, const Recorded& b) {
            return std::tie(a.process, a.sequence) < std::tie(b.process, b.sequence);
          });
      if (first != last && first->track == std::prev(last)->track)
        votes.push_back({process, *args.integer(ArgKey::kFwdThreadId), first->track});
    }
    std::sort(votes.begin(), votes.end());
    Vote latest{kNone<ProcessId>, 0, kNone<TrackId>};  // no backward operator has this thread
    for (const SliceId id : backward) {
      const ArgsView args = trace_.slice_args(id);
      const ProcessId process = trace_.track(id).process;
      const std::int64_t thread = *args.integer(ArgKey::kFwdThreadId);
      if (process != latest.process || thread != latest.thread)
        latest = {process, thread, winner(votes, process, thread)};
      links_.forward_of[raw(id)] =
          last_forward(forward, {process, *args.integer(ArgKey::kSequenceNumber), latest.track,
                                 trace_.start_ns(id), kNone<SliceId>});
    }
  }

  void collect_sequence(SliceId id, std::vector<Recorded>& forward,
                        std::vector<SliceId>& backward) const {
    if (trace_.kind(id) != CategoryKind::kCpuOp) return;
    const ArgsView args = trace_.slice_args(id);
    const auto sequence = args.integer(ArgKey::kSequenceNumber);
    if (!sequence || *sequence < 0) return;
    const auto fwd_thread = args.integer(ArgKey::kFwdThreadId);
    if (fwd_thread && *fwd_thread != 0)
      backward.push_back(id);
    else
      forward.push_back({trace_.track(id).process, *sequence, trace_.slices().track[raw(id)],
                         trace_.start_ns(id), id});
  }

  static TrackId winner(const std::vector<Vote>& votes, ProcessId process, std::int64_t thread) {
    auto at = std::lower_bound(votes.begin(), votes.end(), Vote{process, thread, TrackId{0}});
    TrackId best = kNone<TrackId>;
    for (std::ptrdiff_t most = 0;
         at != votes.end() && at->process == process && at->thread == thread;) {
      const auto next = std::upper_bound(at, votes.end(), *at);
      if (next - at > most) {
        most = next - at;
        best = at->track;
      }
      at = next;
    }
    return best;
  }

  // Nested operators may repeat a Sequence number; the last to start before the backward pass made
  // the node. `wanted` has the start of the backward pass instead of its own.
  static SliceId last_forward(const std::vector<Recorded>& forward, const Recorded& wanted) {
    const auto after = std::upper_bound(forward.begin(), forward.end(), wanted);
    if (after == forward.begin()) return kNone<SliceId>;
    const Recorded& found = *std::prev(after);
    return found.process == wanted.process && found.sequence == wanted.sequence &&
                   found.track == wanted.track
               ? found.slice
               : kNone<SliceId>;
  }

  void group_by_launch() {
    links_.launched_first.assign(count_ + std::size_t{1}, 0);
    for (const SliceId id : device_)
      if (links_.launch_of[raw(id)] != kNone<SliceId>)
        ++links_.launched_first[raw(links_.launch_of[raw(id)]) + 1];
    for (std::size_t i = 1; i <= count_; ++i)
      links_.launched_first[i] += links_.launched_first[i - 1];
    links_.launched.resize(links_.launched_first.back());
    std::vector<std::uint32_t> at(links_.launched_first.begin(), links_.launched_first.end() - 1);
    for (const SliceId id : device_)
      if (links_.launch_of[raw(id)] != kNone<SliceId>)
        links_.launched[at[raw(links_.launch_of[raw(id)])]++] = id;
  }

  const Trace& trace_;
  const std::uint32_t count_;
  const unsigned threads_;
  LaunchLinks links_;
  std::vector<Keyed> api_calls_, front_ends_;
  std::vector<Keyed> uncorrelated_calls_;  // API calls without a correlation id, by External id
  std::vector<SliceId> device_;
};

}  // namespace

std::span<const SliceId> LaunchLinks::launched_by(SliceId api_call) const {
  const std::uint32_t first = launched_first[raw(api_call)];
  return std::span(launched).subspan(first, launched_first[raw(api_call) + 1] - first);
}

LaunchLinks compute_launch_links(const Trace& trace) { return Linker(trace, 1).all(); }

LaunchLinks compute_launch_owners(const Trace& trace, unsigned threads) {
  return Linker(trace, threads).owners();
}

}  // namespace lanescope::analysis
