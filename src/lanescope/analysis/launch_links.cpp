// Columns for all slices from what launch_owners.h knows of device work, and the two links that it leaves out: from backward
// operators to forward ones, and from an API call to all that it started.
#include "lanescope/analysis/launch_links.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <tuple>
#include <utility>

#include "lanescope/analysis/launch_owners.h"
#include "lanescope/base/share_work.h"
#include "lanescope/base/sort_shared.h"
#include "lanescope/base/unset_array.h"

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

struct Backward {
  ProcessId process;
  std::int64_t sequence, thread;  // Sequence number, Fwd thread id
  SliceId slice;
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
  Linker(const Trace& trace, unsigned threads, std::uint32_t slices_at_once)
      : trace_(trace),
        count_(static_cast<std::uint32_t>(trace.slices().size())),
        at_once_(slices_at_once),
        threads_(count_ < at_once_ ? 1 : threads) {
    links_.launch_of.assign(count_, kNone<SliceId>);
    links_.op_of.assign(count_, kNone<SliceId>);
    links_.forward_of.assign(count_, kNone<SliceId>);
    owners_ = compute_launch_owners(trace, {.threads = threads_,
                                            .slices_at_once = slices_at_once,
                                            .judges_external_ids = true,
                                            .ops_of_calls = links_.op_of});
  }

  LaunchLinks run() {
    static_cast<LaunchCounts&>(links_) = owners_;
    share(owners_.device.size(), [&](std::size_t, std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) {
        links_.launch_of[raw(owners_.device[i])] = owners_.launch_of[i];
        links_.op_of[raw(owners_.device[i])] = owners_.op_of[i];
      }
    });
    link_backward();
    group_by_launch();
    return std::move(links_);
  }

 private:
  // Fwd thread id is torch's small number of a thread, not the tid in the file; 0 means "not a
  // backward operator". Votes match the numbers of each process to tracks: each backward operator
  // whose Sequence number is on exactly one track of its process votes for that track.
  void link_backward() {
    collect_sequences();
    if (backward_.size() == 0) return;
    sort_shared(forward_, forward_.size(), threads_, at_once_);
    std::vector<Vote> votes(backward_.size());
    std::vector<std::size_t> vote_count(part_count(backward_.size()), 0);
    share(backward_.size(), [&](std::size_t part, std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i)
        if (const auto vote = vote_of(backward_[i])) votes[first + vote_count[part]++] = *vote;
    });
    keep_first_of_parts(votes, vote_count);
    std::sort(votes.begin(), votes.end());
    share(backward_.size(), [&](std::size_t, std::size_t first, std::size_t end) {
      Vote latest{kNone<ProcessId>, 0, kNone<TrackId>};  // no backward operator has this thread
      for (std::size_t i = first; i < end; ++i) {
        const Backward& each = backward_[i];
        if (each.process != latest.process || each.thread != latest.thread)
          latest = {each.process, each.thread, winner(votes, each.process, each.thread)};
        links_.forward_of[raw(each.slice)] =
            last_forward({each.process, each.sequence, latest.track, trace_.start_ns(each.slice),
                          kNone<SliceId>});
      }
    });
  }

  // The track that alone has the Sequence number of this operator.
  std::optional<Vote> vote_of(const Backward& each) const {
    const std::span<const Recorded> forward = forward_.rows();
    const auto [first, last] = std::equal_range(
        forward.begin(), forward.end(), Recorded{each.process, each.sequence, {}, 0, {}},
        [](const Recorded& a, const Recorded& b) {
          return std::tie(a.process, a.sequence) < std::tie(b.process, b.sequence);
        });
    if (first == last || first->track != std::prev(last)->track) return std::nullopt;
    return Vote{each.process, each.thread, first->track};
  }

  // Operators with a Sequence number, in the order of the slices.
  void collect_sequences() {
    std::vector<std::vector<Recorded>> forward(part_count(count_));
    std::vector<std::vector<Backward>> backward(forward.size());
    share(count_, [&](std::size_t part, std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i)
        collect_sequence(SliceId{static_cast<std::uint32_t>(i)}, forward[part], backward[part]);
    });
    backward_ = joined(backward);
    if (backward_.size() > 0) forward_ = joined(forward);
  }

  void collect_sequence(SliceId id, std::vector<Recorded>& forward,
                        std::vector<Backward>& backward) const {
    if (trace_.kind(id) != CategoryKind::kCpuOp) return;
    const ArgsView args = trace_.slice_args(id);
    const auto sequence = args.integer(ArgKey::kSequenceNumber);
    if (!sequence || *sequence < 0) return;
    const ProcessId process = trace_.track(id).process;
    const auto thread = args.integer(ArgKey::kFwdThreadId);
    if (thread && *thread != 0)
      backward.push_back({process, *sequence, *thread, id});
    else
      forward.push_back(
          {process, *sequence, trace_.slices().track[raw(id)], trace_.start_ns(id), id});
  }

  // Work on rows that do not depend on each other, as work(part, first, end).
  template <typename Work>
  void share(std::size_t rows, const Work& work) const {
    share_work(part_count(rows), threads_, [&](std::size_t part) {
      work(part, part * at_once_, std::min(rows, (part + 1) * at_once_));
    });
  }
  std::size_t part_count(std::size_t rows) const { return (rows + at_once_ - 1) / at_once_; }

  template <typename Row>
  UnsetArray<Row> joined(std::vector<std::vector<Row>>& parts) const {
    std::vector<std::size_t> first(parts.size() + 1, 0);
    for (std::size_t i = 0; i < parts.size(); ++i) first[i + 1] = first[i] + parts[i].size();
    UnsetArray<Row> rows(first.back());
    share_work(parts.size(), threads_, [&](std::size_t i) {
      std::copy(parts[i].begin(), parts[i].end(), rows.data() + first[i]);
      std::vector<Row>().swap(parts[i]);
    });
    return rows;
  }

  // Keeps the first rows of each part, as many as `counts` says.
  void keep_first_of_parts(std::vector<Vote>& votes, const std::vector<std::size_t>& counts) const {
    std::size_t kept = 0;
    for (std::size_t part = 0; part < counts.size(); ++part)
      for (std::size_t i = 0; i < counts[part]; ++i) votes[kept++] = votes[part * at_once_ + i];
    votes.resize(kept);
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
  SliceId last_forward(const Recorded& wanted) const {
    const std::span<const Recorded> forward = forward_.rows();
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
  const std::size_t at_once_;
  const unsigned threads_;
  LaunchLinks links_;
  LaunchOwners owners_;
  UnsetArray<Recorded> forward_;  // by process, Sequence number, track and start
  UnsetArray<Backward> backward_;
};

}  // namespace

std::span<const SliceId> LaunchLinks::launched_by(SliceId api_call) const {
  const std::uint32_t first = launched_first[raw(api_call)];
  return std::span(launched).subspan(first, launched_first[raw(api_call) + 1] - first);
}

LaunchLinks compute_launch_links(const Trace& trace, unsigned threads,
                                 std::uint32_t slices_at_once) {
  return Linker(trace, threads, slices_at_once).run();
}

}  // namespace lanescope::analysis
