// Columns for all slices from what launch_owners.h knows of device work, and the two links that it leaves out: from backward
// operators to forward ones, and from an API call to all that it started.
#include "lanescope/analysis/launch_links.h"

#include <algorithm>
#include <compare>
#include <tuple>
#include <utility>

#include "lanescope/analysis/launch_owners.h"

namespace lanescope::analysis {
namespace {

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

class Linker {
 public:
  Linker(const Trace& trace, unsigned threads)
      : trace_(trace), count_(static_cast<std::uint32_t>(trace.slices().size())) {
    links_.launch_of.assign(count_, kNone<SliceId>);
    links_.op_of.assign(count_, kNone<SliceId>);
    links_.forward_of.assign(count_, kNone<SliceId>);
    owners_ = compute_launch_owners(
        trace, {.threads = threads, .judges_external_ids = true, .ops_of_calls = links_.op_of});
  }

  LaunchLinks run() {
    static_cast<LaunchCounts&>(links_) = owners_;
    for (std::size_t i = 0; i < owners_.device.size(); ++i) {
      links_.launch_of[raw(owners_.device[i])] = owners_.launch_of[i];
      links_.op_of[raw(owners_.device[i])] = owners_.op_of[i];
    }
    link_backward();
    group_by_launch();
    return std::move(links_);
  }

 private:
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
    for (const SliceId id : owners_.device.rows())
      if (links_.launch_of[raw(id)] != kNone<SliceId>)
        ++links_.launched_first[raw(links_.launch_of[raw(id)]) + 1];
    for (std::size_t i = 1; i <= count_; ++i)
      links_.launched_first[i] += links_.launched_first[i - 1];
    links_.launched.resize(links_.launched_first.back());
    std::vector<std::uint32_t> at(links_.launched_first.begin(), links_.launched_first.end() - 1);
    for (const SliceId id : owners_.device.rows())
      if (links_.launch_of[raw(id)] != kNone<SliceId>)
        links_.launched[at[raw(links_.launch_of[raw(id)])]++] = id;
  }

  const Trace& trace_;
  const std::uint32_t count_;
  LaunchLinks links_;
  LaunchOwners owners_;
};

}  // namespace

std::span<const SliceId> LaunchLinks::launched_by(SliceId api_call) const {
  const std::uint32_t first = launched_first[raw(api_call)];
  return std::span(launched).subspan(first, launched_first[raw(api_call) + 1] - first);
}

LaunchLinks compute_launch_links(const Trace& trace, unsigned threads) {
  return Linker(trace, threads).run();
}

}  // namespace lanescope::analysis
